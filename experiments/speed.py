"""Every speed that is demanded of linear models, as a ratio to another's in the same run.

The best of several, ours and the other's in turn, on the same float32 matrix (scikit-learn is
slower on float64), which is in memory already.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import hogwild
from experiments import measure, orders, report, sgd_peer, starts
from experiments.measure import REPEATS, Line, best, megabytes, nonzeros_per_second, seconds, timed
from experiments.optimum import optimum
from hogwild import Config, HogwildClassifier, HogwildError, HogwildRegressor, Rows
from hogwild.data.synthetic import rcv1
from hogwild.kernels.views import Clock, Span, Stored, view
from hogwild.learn.linear import LinearProblem
from hogwild.learn.problem import Now, Share
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from hogwild.parallel.memory import shared_arrays

ROWS = 781_265  # of RCV1
LEAST_ROWS = 400_000  # from which on something is demanded
CACHED_ROWS = 20_242  # of RCV1's usual training set
EPOCHS = 3
FURTHER = 4  # epochs more, to tell an epoch of scikit-learn from what it does once
CACHED_EPOCHS, CACHED_FURTHER = 20, 20
CLOSE_REPEATS = 10  # of what must differ by little
L2 = 1e-4
TASKS = {"hinge": "svm", "logistic": "logistic"}
CERTAINTY = 1e-6  # relative, of the optimum

# Least factors
LEAST_EPOCH = {"hinge": 3.5, "logistic": 3.2}
LEAST_REGRESSION = 3.0
LEAST_CACHED = {"hinge": 2.0, "logistic": 1.8}
LEAST_FIT = 1.75
LEAST_WEIGHTED = 0.98
MOST_GAP = 5e-3

NOTES = f"""
The best of {REPEATS} or more, in turn; l2 = {L2:g}; random order; scikit-learn {sgd_peer.version},
SGDClassifier or SGDRegressor, one thread. kernel: an epoch and nothing else. train: an epoch in
hogwild.train with one worker, as the trace times it. scikit-learn beside both: the CPU time that
each further epoch adds to `fit`. Its gap is the better of those with and without `average`.
The very first train of {starts.SMALL:,} rows, which compiles, took {{:.1f}} s."""


class Data:
    """The rows, and what scikit-learn calls X and y."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.X = rows.to_scipy()
        self.y = rows.targets().astype(np.float64)


class Kernel:
    """Epochs of the kernel and of nothing else: one call each, in a new random order."""

    def __init__(self, rows: Rows, loss: str) -> None:
        config = Config.of({"task": TASKS[loss], "l2": L2, "average": False})
        problem = self._problem = LinearProblem(rows, None, config)
        problem.prepare()
        self._kernel = shared_loop(problem.step)
        self._weights = shared_arrays(problem.shared())
        stored, bias = self._weights["stored"], np.zeros(problem.width, np.float32)
        state = self._weights["row_state"]
        self._stored = view(Stored, stored, stored, bias, bias, state)
        self._order = np.empty(len(rows), np.uint32)
        self._eta0 = problem.find_rate()
        self._epochs = 0
        self.epoch()  # compiled, and the weights are there

    def epoch(self) -> float:
        """Seconds that the kernel takes for one more epoch."""
        problem, size = self._problem, len(self._order)
        done = self._epochs * size
        self._epochs += 1
        problem.shuffle(self._order, 0, self._epochs, self._stored.state)
        given = (
            problem.task(self._order, Share(self._epochs, 0, 1, done, self._eta0)),
            view(Span, 0, size),
            self._stored,
            view(Clock, done, 1),
            NO_SNAPSHOTS,
        )
        elapsed = timed(lambda: self._kernel(*given))
        problem.finish(self._weights, Now(done + size, done, self._eta0), None, 0, 1)
        return elapsed


def epoch_of_train(rows: Rows, loss: str, epochs: int = EPOCHS) -> float:
    """Seconds of the quickest epoch of a run with one worker."""
    options: dict[str, Any] = {"l2": L2, "workers": 1, "epochs": epochs, "tol": 0, "solver": "sgd"}
    result = hogwild.train(rows, task=TASKS[loss], objective_every=0, **options)
    return float(min(row["epoch_seconds"] for row in report.finished(result).trace))


def epochs(data: Data, loss: str) -> list[Line]:
    """An epoch in the kernel, and as part of a run."""
    kernel = Kernel(data.rows, loss)
    calls = sgd_peer.epoch_calls(data.X, data.y, loss, L2, FURTHER)
    calls |= {"kernel": kernel.epoch, "train": partial(epoch_of_train, data.rows, loss)}
    found = best(calls)
    nonzeros = data.rows.nonzeros
    other = nonzeros / sgd_peer.epoch_seconds(found, FURTHER)
    return [
        Line(
            *(f"{loss}, {which}", nonzeros / found[which], other, nonzeros_per_second),
            higher_is_better=True,
            least=LEAST_EPOCH[loss],
        )
        for which in ("kernel", "train")
    ]


def cached(data: Data, name: str, loss: str) -> Line:
    """An epoch over rows that fit into a cache, as part of a run."""
    calls = sgd_peer.epoch_calls(data.X, data.y, loss, L2, CACHED_FURTHER)
    calls["train"] = partial(epoch_of_train, data.rows, loss, CACHED_EPOCHS)
    found = best(calls, CLOSE_REPEATS)
    nonzeros = data.rows.nonzeros
    other = nonzeros / sgd_peer.epoch_seconds(found, CACHED_FURTHER)
    return Line(
        *(f"{loss}, train, {name}", nonzeros / found["train"], other, nonzeros_per_second),
        higher_is_better=True,
        least=LEAST_CACHED[loss],
    )


def regression(data: Data) -> Line:
    """An epoch of HogwildRegressor, which learns the labels as numbers."""
    options: dict[str, Any] = {"alpha": L2, "n_jobs": 1, "random_state": 0, "solver": "sgd"}
    ours = HogwildRegressor(max_iter=EPOCHS, tol=None, **options)

    def epoch() -> float:
        return float(min(row["epoch_seconds"] for row in ours.fit(data.X, data.y).history_))

    calls = sgd_peer.epoch_calls(data.X, data.y, "squared", L2, FURTHER)
    calls["ours"] = epoch
    found = best(calls)
    nonzeros = data.rows.nonzeros
    other = nonzeros / sgd_peer.epoch_seconds(found, FURTHER)
    return Line(
        *("squared, HogwildRegressor", nonzeros / found["ours"], other, nonzeros_per_second),
        higher_is_better=True,
        least=LEAST_REGRESSION,
    )


def fits(data: Data) -> list[Line]:
    """HogwildClassifier.fit for one epoch, all that it does included."""
    ours = HogwildClassifier(n_jobs=1, alpha=L2, max_iter=1, solver="sgd", random_state=0)
    matrices = {"float32": data.X, "float64": data.X.astype(np.float64)}
    calls = {}
    for name, X in matrices.items():
        calls[f"{name}, hogwild"] = partial(timed, partial(ours.fit, X, data.y))
        peer = partial(sgd_peer.fitted, X, data.y, "hinge", L2, 1)
        calls[f"{name}, other"] = partial(timed, peer)
    found = best(calls)
    least = {"float32": LEAST_FIT}
    return [
        Line(
            *(f"fit of 1 epoch, {name}", found[f"{name}, hogwild"], found[f"{name}, other"]),
            *(seconds,),
            least=least.get(name),
        )
        for name in matrices
    ]


def gaps(data: Data, loss: str) -> Line:
    """How far from the optimum the objective is after one epoch, by default."""
    lowest = optimum(data.rows, loss, L2, intercept=True, gap=CERTAINTY)
    if not lowest.certified:
        raise HogwildError(f"the optimum was found with a gap of {lowest.gap:.1e} only")

    def away(weights: Any, intercept: float) -> float:
        weights = weights.astype(np.float64).ravel()
        value = report.objective(data.X, data.y, weights, intercept, loss, L2)
        return (value - lowest.objective) / lowest.objective

    model = report.finished(
        hogwild.train(data.rows, task=TASKS[loss], l2=L2, epochs=1, solver="sgd")
    ).model
    fitted = [sgd_peer.fitted(data.X, data.y, loss, L2, 1, average) for average in (False, True)]
    other = min(away(one.coef_, float(one.intercept_[0])) for one in fitted)
    ours = away(model.weights, model.intercept)
    return Line(f"gap after 1 epoch, {loss}", ours, other, gap, most=MOST_GAP)


def gap(value: float) -> str:
    return f"{value:.1e}"


def weighted(rows: Rows, loss: str) -> Line:
    """What weights of the rows cost: an epoch with weights of 1 beside one without."""
    ones = rows.weighted(np.ones(len(rows), np.float32))
    calls = {
        "weighted": partial(epoch_of_train, ones, loss),
        "plain": partial(epoch_of_train, rows, loss),
    }
    found = best(calls, CLOSE_REPEATS)
    given = found["weighted"], found["plain"], seconds, "no weights"
    return Line(f"{loss}, sample weights of 1", *given, least=LEAST_WEIGHTED)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=8.0)
    parser.add_argument(
        "--data",
        metavar="FILE",
        help=f"labelled rows that fit into a cache [{CACHED_ROWS:,} generated ones]",
    )
    parser.add_argument(
        "--baseline",
        metavar="DIR",
        help="a checkout of an earlier commit, whose first training is measured, too",
    )
    parsed = parser.parse_args()
    baseline = starts.checked_baseline(parsed.baseline)

    report.say(report.about_machine())
    small = Data(hogwild.load(parsed.data) if parsed.data else rcv1(CACHED_ROWS)[0])
    small_name = Path(parsed.data).name if parsed.data else "in cache"
    data = Data(rcv1(parsed.rows)[0])
    for rows, name in (data.rows, data.rows.name), (small.rows, small_name):
        report.say(
            f"Data      {name}: {len(rows):,} rows, {rows.columns:,} columns, "
            f"{rows.nonzeros:,} non-zeros, {megabytes(rows.nbytes)}"
        )
    if baseline is None:
        report.say("Left out  first training beside an earlier commit: give --baseline DIR")

    lines = [line for loss in TASKS for line in epochs(data, loss)]
    lines += [cached(small, small_name, loss) for loss in TASKS]
    lines += [regression(data), *(weighted(data.rows, loss) for loss in TASKS)]
    lines += [*fits(data), *(gaps(data, loss) for loss in TASKS)]
    lines += orders.lines(data.rows, L2)
    of_programs, compiling = starts.lines(data.rows, baseline)
    lines += of_programs
    if parsed.rows < LEAST_ROWS:
        lines = measure.undemanded(lines)
        report.say(f"With fewer than {LEAST_ROWS:,} rows nothing is demanded.")

    report.say("\n" + measure.table(lines))
    report.say(NOTES.format(compiling))
    options = {"rows": parsed.rows, "data": small_name, "baseline": baseline is not None}
    extra = {"nbytes": data.rows.nbytes, "first_start_seconds": compiling}
    report.record("speed", [report.header(options, **extra), *map(Line.record, lines)])
    measure.check(lines)


if __name__ == "__main__":
    sys.exit(report.command(main))
