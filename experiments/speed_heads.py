"""Many classes: K heads in one pass beside scikit-learn, and softmax to a gap.

One against the rest on rows of RCV1's shape with several labels each, K = 20 and K = 101: the
seconds of an epoch with all cores, beside `SGDClassifier` with one job for each core. That takes
minutes on all rows and classes, so it learns some of the classes from some of the rows, and its
seconds are scaled up by non-zeros x classes. Beside it the macro F1 on rows not seen, of heads that
were learned together and of the same classes learned one by one.

Each against the rest to a gap of GAP, without an intercept, on `--data` or on the rows above:
seconds of the solver dual, which proves it, and of sgd, beside LIBLINEAR as scikit-learn has it,
with the largest of several tolerances that comes near enough. LIBLINEAR learns some of the classes,
and its seconds are scaled up by their number.

Softmax on 20 classes: seconds to a relative gap of GAP, with defaults, which prove it, and with the
solver sgd, beside scikit-learn's lbfgs and saga; each of their runs does more iterations than the
one before, and the first to come near enough counts.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import hogwild
from experiments import report
from hogwild import Rows
from hogwild.data.synthetic import rcv1_classes
from hogwild.machine import usable_cores

L2 = 1e-5
HEADS = {20: 15.0, 101: 30.0}  # classes, and how many times scikit-learn's speed is demanded
LABELS = 3.0  # of a row, on average
EPOCHS = 5
PEER_CLASSES, PEER_ROWS = 8, 50_000  # that scikit-learn learns
SEPARATE = 10  # classes that are learned one by one, at most
TEST_ROWS = 20_000
MOST_F1 = 0.002  # by which heads learned together may be worse
CLASSES, GAP, SOFTMAX = 20, 1e-3, 5.0  # of softmax: classes, the gap, and the demanded ratio
PROVED_L2 = 1e-4, 1e-5  # of training to a proved gap
TIMES = 3  # that ours is trained, of which the fastest counts
TOLERANCES = 1e-1, 1e-2, 1e-3, 1e-4, 1e-5  # of LIBLINEAR
PATIENCE = 120.0  # seconds that a peer's run may take for another, twice as long, to follow

Row = dict[str, Any]


def macro_f1(has: Any, said: Any) -> float:
    """The mean of F1 over the columns."""
    sums = has.sum(axis=0) + said.sum(axis=0)
    return float(np.mean(2 * (has & said).sum(axis=0) / np.maximum(sums, 1)))


def against_the_rest(rows: int, heads: int, demanded: float) -> Row:
    """An epoch of K heads and of scikit-learn's, and macro F1 together and one by one."""
    cores = usable_cores()
    drawn, _ = rcv1_classes(rows + TEST_ROWS, classes=heads, labels_per_row=LABELS)
    train, test = drawn.take(np.arange(rows)), drawn.take(np.arange(rows, rows + TEST_ROWS))
    options: Row = {"loss": "hinge", "l2": L2, "epochs": EPOCHS, "tol": 0, "objective_every": 0}
    options["solver"] = "sgd"
    hogwild.train(train, **(options | {"epochs": 1}))  # makes the workers ready
    ours = report.finished(hogwild.train(train, **options))
    epoch = min(row["epoch_seconds"] for row in ours.trace)
    one = report.finished(hogwild.train(train, workers=1, **options))
    of_one = min(row["epoch_seconds"] for row in one.trace)

    some = np.arange(min(rows, PEER_ROWS))
    few, classes = train.take(some), min(heads, PEER_CLASSES)
    Y = indicators(few, heads)[:, :classes]
    X = few.to_scipy()
    peer = OneVsRestClassifier(SGDClassifier(alpha=L2, max_iter=1, tol=None), n_jobs=cores)
    peer.fit(X[:1000], Y[:1000])  # makes its workers ready
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(X, Y)
    taken = time.perf_counter() - began
    theirs = taken * train.nonzeros / few.nonzeros * heads / classes

    has = indicators(test, heads)[:, : min(heads, SEPARATE)].astype(bool)
    together = macro_f1(has, ours.model.decision_function(test)[:, : has.shape[1]] > 0)
    separate = macro_f1(has, one_by_one(train, test, has.shape[1], options))
    report.say(
        f"scikit-learn: {classes} of {heads} classes on {len(few):,} of {rows:,} rows took "
        f"{taken:.2f} s"
    )
    return {
        "heads": heads,
        "rows": rows,
        "epoch": epoch,
        "epoch_of_one": of_one,
        "work": train.nonzeros * heads / epoch,
        "peer": theirs,
        "ratio": theirs / epoch,
        "demanded": demanded,
        "together": together,
        "separate": separate,
        "strategy": ours.header["chosen"]["strategy"],
    }


def indicators(rows: Rows, heads: int) -> Any:
    """The labels of rows as a matrix."""
    found = np.zeros((len(rows), heads), np.int8)
    found[rows.y.rows, rows.y.numbers] = 1
    return found


def one_by_one(train: Rows, test: Rows, heads: int, options: Row) -> Any:
    """Trains some classes one by one. Returns which of the test rows belong to each."""
    Y = indicators(train, int(train.y.numbers.max()) + 1)
    found = [
        hogwild.train(train.labelled(Y[:, head]), **options).model.decision_function(test) > 0
        for head in range(heads)
    ]
    return np.column_stack(found)


def to_a_proof(rows: Rows, heads: int, loss: str, l2: float) -> Row:
    """Seconds until the gap is small enough, on one core but for the second of ours."""
    has = indicators(rows, int(rows.y.numbers.max()) + 1)
    has = has[:, np.argsort(-has.sum(axis=0), kind="stable")[:heads]]
    given = rows.labelled(has)
    options: Row = {"loss": loss, "l2": l2, "intercept": False}
    hogwild.train(given, solver="dual", **options)  # compiles
    one, all_cores = (
        min((timed(given, tol=GAP, workers=n, **options) for _ in range(TIMES)), key=seconds_of)
        for n in (1, usable_cores())
    )
    bound = one[1]["objective"] / (1 + one[1]["gap"])
    descent: Row = {"solver": "sgd", "tol": 0, "epochs": 60, "target": bound * (1 + GAP)}
    other = timed(given, workers=1, **options | descent)
    chosen = np.arange(0, heads, max(1, heads // PEER_CLASSES))[:PEER_CLASSES]
    peer = liblinear(given, has[:, chosen], loss, l2)
    return {
        "loss": loss,
        "l2": l2,
        "heads": heads,
        "one": one[0],
        "all": all_cores[0],
        "gap": float(one[1]["gap"]),
        "sgd": other[0],
        "gap_of_sgd": other[1]["objective"] / bound - 1,
        "peer": None if peer is None else peer * heads / len(chosen),
    }


def timed(rows: Rows, **options: Any) -> tuple[float, Row]:
    """Seconds of a whole training, and the last row of its trace."""
    began = time.perf_counter()
    result = hogwild.train(rows, **({"solver": "dual"} | options))
    return time.perf_counter() - began, result.trace[-1]


def seconds_of(run: tuple[float, Row]) -> float:
    """How long a run took."""
    return run[0]


def liblinear(rows: Rows, has: Any, loss: str, l2: float) -> float | None:
    """Seconds of LIBLINEAR for some classes to a gap of GAP, if it gets there."""
    X, size = rows.to_scipy(), len(rows)
    options: Row = {"loss": loss, "l2": l2, "intercept": False, "solver": "dual", "tol": GAP / 20}
    best = sum(
        row["objective"] / (1 + row["gap"])
        for row in (hogwild.train(rows.labelled(y), **options).trace[-1] for y in has.T)
    )
    for tol in TOLERANCES:
        shared = {"C": 1 / (l2 * size), "tol": tol, "fit_intercept": False, "max_iter": 10_000}
        make: Any = LinearSVC(loss=loss, **shared)
        if loss == "logistic":
            make = LogisticRegression(solver="liblinear", dual=True, **shared)
        objective, spent = 0.0, 0.0
        for y in has.T:
            began = time.perf_counter()
            w = make.fit(X, y).coef_[0]
            spent += time.perf_counter() - began
            margins = (2.0 * y - 1) * (X @ w)
            losses = np.maximum(0, 1 - margins) if loss == "hinge" else np.logaddexp(0, -margins)
            objective += l2 / 2 * float(w @ w) + float(np.mean(losses))
        if objective <= best * (1 + GAP):
            return spent
    return None


def show_proofs(lines: list[Row], rows: Rows) -> None:
    """Prints the table of training to a proved gap."""
    head = ["loss", "l2", "heads", "dual", "all cores", "proved", "sgd", "its gap", "LIBLINEAR"]
    cells = [
        [
            line["loss"],
            f"{line['l2']:g}",
            str(line["heads"]),
            f"{line['one']:.2f} s",
            f"{line['all']:.2f} s",
            f"{line['gap']:.1e}",
            f"{line['sgd']:.2f} s",
            f"{line['gap_of_sgd']:.1e}",
            "-" if line["peer"] is None else f"{line['peer']:.2f} s",
        ]
        for line in lines
    ]
    report.say(f"\nEach against the rest to a gap of {GAP:g}: {len(rows):,} rows, one core")
    report.say(report.table(head, cells))


def softmax(rows: int) -> tuple[list[Row], float]:
    """Seconds to the gap of each trainer, and the least objective that any came to."""
    drawn, _ = rcv1_classes(rows, classes=CLASSES)
    curves = {}
    for name, solver, tol in (("hogwild", "auto", GAP), ("hogwild, sgd", "sgd", 0)):
        options: Row = {"task": "softmax", "l2": L2, "tol": tol, "solver": solver}
        hogwild.train(drawn, epochs=1, **options)
        run = report.finished(hogwild.train(drawn, epochs=60, **options))
        curves[name] = [(row["seconds"], row["objective"]) for row in run.trace]
    for solver in ("lbfgs", "saga"):
        curves[solver] = peer_curve(drawn, solver, curves["hogwild"][-1][1])
    least = min(value for curve in curves.values() for _, value in curve)
    found = []
    for name, curve in curves.items():
        near = [seconds for seconds, value in curve if value <= least * (1 + GAP)]
        found.append({"trainer": name, "seconds": near[0] if near else None})
    return found, least


def peer_curve(rows: Rows, solver: str, best: float) -> list[tuple[float, float]]:
    """Seconds and objective of runs with twice as many iterations each."""
    X, y = rows.to_scipy(), np.asarray(rows.y)
    curve: list[tuple[float, float]] = []
    iterations = 8
    while not curve or (curve[-1][1] > best * (1 + GAP / 4) and curve[-1][0] < PATIENCE):
        given = {"C": 1 / (L2 * len(rows)), "solver": solver, "tol": 1e-12}
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = LogisticRegression(max_iter=iterations, **given).fit(X, y)
        seconds = time.perf_counter() - began
        scores = X @ fitted.coef_.T + fitted.intercept_
        true = scores[np.arange(len(y)), y]
        loss = float(np.mean(np.logaddexp.reduce(scores, axis=1) - true))
        curve.append((seconds, L2 / 2 * float(np.sum(fitted.coef_**2)) + loss))
        iterations *= 2
    return curve


def yes(holds: bool) -> str:
    """Whether something is as demanded, as a word."""
    return "yes" if holds else "no"


def main() -> None:
    """Measures, prints the tables, and writes the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    report.rows_option(parser, 400_000, 4)
    parser.add_argument("--softmax-rows", type=int, default=50_000, metavar="N", help="[50000]")
    parser.add_argument("--data", metavar="FILE", help="labelled rows to learn to a proved gap")
    parser.add_argument("--proved-only", action="store_true", help="nothing but that")
    given = parser.parse_args()
    report.say(report.about_machine())
    drawn: Row = {"classes": max(HEADS), "labels_per_row": LABELS}
    rows = hogwild.load(given.data) if given.data else rcv1_classes(given.rows, **drawn)[0]
    proofs = [
        to_a_proof(rows, heads, loss, l2)
        for heads in HEADS
        for loss in ("hinge", "logistic")
        for l2 in PROVED_L2
    ]
    show_proofs(proofs, rows)
    if given.proved_only:
        report.record("speed-heads-proved", [report.header(vars(given)), *proofs])
        return
    lines = [against_the_rest(given.rows, heads, ratio) for heads, ratio in HEADS.items()]
    head = ["heads", "1 worker", "all", "G nnz x heads/s", "scikit-learn", "ratio", "demanded"]
    head += ["holds", "macro F1", "one by one", "holds"]
    cells = [
        [
            f"{line['heads']} ({line['strategy']})",
            f"{line['epoch_of_one']:.3f} s",
            f"{line['epoch']:.3f} s",
            f"{line['work'] / 1e9:.1f}",
            f"{line['peer']:.1f} s",
            f"{line['ratio']:.1f}",
            f"{line['demanded']:g}",
            yes(line["ratio"] >= line["demanded"]),
            f"{line['together']:.4f}",
            f"{line['separate']:.4f}",
            yes(line["together"] >= line["separate"] - MOST_F1),
        ]
        for line in lines
    ]
    report.say(f"\nAn epoch of one against the rest, hinge, {given.rows:,} rows")
    report.say(report.table(head, cells))
    found, least = softmax(given.softmax_rows)
    ours = found[0]["seconds"]
    cells = [
        [
            line["trainer"],
            "-" if line["seconds"] is None else f"{line['seconds']:.2f} s",
            f"{line['seconds'] / ours:.1f}" if line["seconds"] and ours else "-",
        ]
        for line in found
    ]
    report.say(
        f"\nSoftmax, {CLASSES} classes, {given.softmax_rows:,} rows: to a gap of {GAP:g} above "
        f"{least:.6f} (demanded: {SOFTMAX:g} times as fast as either)"
    )
    report.say(report.table(["trainer", "seconds", "ratio"], cells))
    report.record("speed-heads", [report.header(vars(given)), *proofs, *lines, *found])


if __name__ == "__main__":
    sys.exit(report.command(main))
