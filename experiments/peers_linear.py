"""Time to come near the optimum of l2/2 |w|^2 + mean(loss): hogwild beside other trainers.

Every trainer is run afresh for 1, 2, 3, 5, ... passes (or iterations) until it is near enough or
its time is used up. The time is that of the training call, with the data in memory in the form it
takes best; the objective is computed here, from the weights, for all in the same way. There is no
intercept, since some penalise it and some do not. Everything else is each one's default.
"""

import argparse
import importlib
import importlib.util
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import hogwild
from experiments import report
from experiments.optimum import Optimum, optimum
from experiments.report import Vector
from hogwild import OptionError, Rows
from hogwild.data.synthetic import rcv1
from hogwild.machine import usable_cores

ROWS = 100_000
BUDGET = 5.0
LOSSES = ("hinge", "logistic")
PENALTIES = (1e-4, 1e-6)
TARGETS = (1e-2, 1e-3, 1e-4)  # gaps, relative
PASSES = [1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640, 896, 1280]
SHORT = 0.5  # seconds; what takes less is measured REPEATS times
REPEATS = 3
CERTAINTY = 1e-5  # relative, of the optimum
PATIENCE = 120.0  # seconds, for the optimum
NEVER_STOPS = 1e-12  # a tolerance

HEAD = ["seconds to a gap of", *(f"{target:.0e}" for target in TARGETS), "least gap", "s", "passes"]


class Data:
    """The rows in the forms that trainers take, and a folder for those that want a file."""

    def __init__(self, rows: Rows, folder: Path) -> None:
        self.rows = rows
        self.X = rows.to_scipy()
        self.y = rows.targets().astype(np.float64)
        self.folder = folder


Fit = Callable[[Data, str, float, int], Any]  # data, loss, l2, passes: the weights


class Trainer(NamedTuple):
    """Something that trains: what to import for it, and for which losses it can be had."""

    name: str
    package: str
    losses: tuple[str, ...]
    fit: Fit


def ours(workers: int) -> Trainer:
    """hogwild.train, all by default but what is compared."""
    tasks = {"hinge": "svm", "logistic": "logistic"}

    def fit(data: Data, loss: str, l2: float, passes: int) -> Any:
        result = hogwild.train(
            data.rows,
            task=tasks[loss],
            l2=l2,
            epochs=passes,
            workers=workers,
            intercept=False,
            tol=0,
            objective_every=0,
        )
        return report.finished(result).model.weights

    name = f"hogwild, {workers} {'worker' if workers == 1 else 'workers'}"
    return Trainer(name, "hogwild", LOSSES, fit)


def sgd(average: bool) -> Trainer:
    """scikit-learn's SGDClassifier."""
    losses = {"hinge": "hinge", "logistic": "log_loss"}

    def fit(data: Data, loss: str, l2: float, passes: int) -> Any:
        from sklearn.linear_model import SGDClassifier

        trainer = SGDClassifier(
            losses[loss],
            alpha=l2,
            max_iter=passes,
            tol=None,
            fit_intercept=False,
            average=average,
            random_state=0,
        )
        return trainer.fit(data.X, data.y).coef_

    return Trainer(f"SGDClassifier{', average' if average else ''}", "sklearn", LOSSES, fit)


def linear_svc(data: Data, loss: str, l2: float, passes: int) -> Any:
    """liblinear's dual coordinate descent, as scikit-learn wraps it."""
    from sklearn.svm import LinearSVC

    trainer = LinearSVC(
        loss=loss,
        dual=True,
        C=1 / (l2 * len(data.y)),
        fit_intercept=False,
        tol=NEVER_STOPS,
        max_iter=passes,
        random_state=0,
    )
    return trainer.fit(data.X, data.y).coef_


def logistic_regression(solver: str) -> Trainer:
    """scikit-learn's LogisticRegression."""

    def fit(data: Data, loss: str, l2: float, passes: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        trainer = LogisticRegression(
            solver=solver,
            C=1 / (l2 * len(data.y)),
            fit_intercept=False,
            tol=NEVER_STOPS,
            max_iter=passes,
            random_state=0,
        )
        return trainer.fit(data.X, data.y).coef_

    return Trainer(f"LogisticRegression, {solver}", "sklearn", ("logistic",), fit)


def snap(threads: int) -> Trainer:
    """Snap ML: dual coordinate ascent on several threads."""

    def fit(data: Data, loss: str, l2: float, passes: int) -> Any:
        snapml = importlib.import_module("snapml")
        kind = snapml.SupportVectorMachine if loss == "hinge" else snapml.LogisticRegression
        trainer = kind(
            regularizer=l2 * len(data.y),
            max_iter=passes,
            n_jobs=threads,
            tol=NEVER_STOPS,
            fit_intercept=False,
            random_state=0,
        )
        return trainer.fit(data.X, data.y).coef_

    return Trainer(f"snapml, {threads} threads", "snapml", LOSSES, fit)


def vowpal_wabbit(data: Data, loss: str, l2: float, passes: int) -> Any:
    """Vowpal Wabbit's SGD, from its own cache file (its first run writes it), in file order.

    Only a saved model has the penalty in its weights; and integer names are column numbers.
    """
    package = importlib.import_module("vowpalwabbit")
    text, cache, model = (data.folder / name for name in ("rows.vw", "rows.cache", "model"))
    if not text.exists():
        _write_for_vowpal_wabbit(data.rows, text)
    bits = max(18, data.rows.columns.bit_length())
    options = (
        f"--data {text} --cache_file {cache} --passes {passes} --sgd --l2 {l2} "
        f"--loss_function {loss} --noconstant --holdout_off -b {bits} --final_regressor {model}"
    )
    package.Workspace(options, quiet=True).finish()
    return model


def _write_for_vowpal_wabbit(rows: Rows, path: Path) -> None:
    targets = rows.targets().astype(int).tolist()
    bounds = rows.indptr.tolist()
    with path.open("w") as file:
        for row, target in enumerate(targets):
            part = slice(bounds[row], bounds[row + 1])
            cells = zip(rows.indices[part].tolist(), rows.values[part].tolist(), strict=True)
            file.write(f"{target} | {' '.join(f'{k}:{value:.9g}' for k, value in cells)}\n")


def _weights(found: Any, columns: int) -> Vector:
    """The weights in what a trainer returned: an array, or the file of Vowpal Wabbit's model."""
    if not isinstance(found, Path):
        return np.asarray(found, np.float64).ravel()
    model = importlib.import_module("vowpalwabbit").Workspace(f"-i {found} -t", quiet=True)
    weights = np.array([model.get_weight(column) for column in range(columns)])
    model.finish()
    return weights


def trainers() -> list[Trainer]:
    """All of them, installed or not."""
    cores = usable_cores()
    return [
        *(ours(workers) for workers in sorted({1, cores})),
        sgd(average=False),
        sgd(average=True),
        Trainer("LinearSVC", "sklearn", ("hinge",), linear_svc),
        logistic_regression("lbfgs"),
        logistic_regression("saga"),
        snap(cores),
        Trainer("Vowpal Wabbit --sgd", "vowpalwabbit", LOSSES, vowpal_wabbit),
    ]


class Run(NamedTuple):
    """One number of passes."""

    passes: int
    seconds: float
    gap: float


def runs(
    trainer: Trainer, data: Data, loss: str, l2: float, best: Optimum, budget: float
) -> list[Run]:
    """More and more passes, until the gap is the least that counts or the time is used up."""
    found: list[Run] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        trainer.fit(data, loss, l2, 1)  # compiles, imports, writes its files
        used = 0.0
        for passes in PASSES:
            took = np.inf
            for _ in range(REPEATS):
                start = time.perf_counter()
                result = trainer.fit(data, loss, l2, passes)
                took = min(took, time.perf_counter() - start)
                if took > SHORT:
                    break
            used += took
            weights = _weights(result, data.rows.columns)
            value = report.objective(data.X, data.y, weights, 0.0, loss, l2)
            found.append(Run(passes, took, (value - best.objective) / best.objective))
            if found[-1].gap <= TARGETS[-1] or used > budget:
                break
    return found


def cells(name: str, found: list[Run]) -> list[str]:
    """A row of the table."""
    reached = [
        min((run.seconds for run in found if run.gap <= target), default=None) for target in TARGETS
    ]
    nearest = min(found, key=lambda run: run.gap)
    return [
        name,
        *("-" if seconds is None else f"{seconds:.3f}" for seconds in reached),
        *(f"{nearest.gap:.1e}", f"{nearest.seconds:.2f}", str(nearest.passes)),
    ]


def compare(
    present: list[Trainer], data: Data, loss: str, l2: float, budget: float
) -> list[dict[str, Any]]:
    """Prints one table; returns its runs for the record."""
    best = optimum(data.rows, loss, l2, intercept=False, gap=CERTAINTY, seconds=PATIENCE)
    report.say(f"\n{loss}, l2 = {l2:g}: optimum {best.objective:.6f}, proved to {best.gap:.0e}")
    shown, lines = [], []
    for trainer in present:
        if loss in trainer.losses:
            found = runs(trainer, data, loss, l2, best, budget)
            shown.append(cells(trainer.name, found))
            about = {"kind": "run", "trainer": trainer.name, "loss": loss, "l2": l2}
            lines += [about | run._asdict() for run in found]
    report.say(report.table(HEAD, shown))
    known = {"kind": "optimum", "loss": loss, "l2": l2, "objective": best.objective}
    return [known | {"lower_bound": best.lower_bound}, *lines]


def positive(text: str) -> float:
    """A number above 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=6.0)
    parser.add_argument("--data", metavar="FILE", help="these rows, not generated ones")
    parser.add_argument(
        "--budget",
        type=positive,
        default=BUDGET,
        metavar="SECONDS",
        help=f"for each trainer, loss and l2 [{BUDGET:g}]",
    )
    parsed = parser.parse_args()
    if parsed.data and parsed.rows != ROWS:
        raise OptionError("--rows says how many rows to generate, and --data not to; choose one")

    report.say(report.about_machine())
    rows = hogwild.load(parsed.data) if parsed.data else rcv1(parsed.rows)[0]
    report.say(
        f"Data      {rows.name}: {len(rows):,} rows, {rows.columns:,} columns, "
        f"{rows.nonzeros:,} non-zeros"
    )
    known = trainers()
    present = [one for one in known if importlib.util.find_spec(one.package)]
    missing = sorted({one.package for one in known} - {one.package for one in present})
    if missing:
        report.say(f"Missing   {', '.join(missing)}: install with pip to compare")
    lines = [report.header({"rows": len(rows), "data": rows.name, "budget": parsed.budget})]
    with tempfile.TemporaryDirectory(prefix="hogwild-peers-") as folder:
        data = Data(rows, Path(folder))
        for loss in LOSSES:
            for l2 in PENALTIES:
                lines += compare(present, data, loss, l2, parsed.budget)
    report.record("peers-linear", lines)


if __name__ == "__main__":
    sys.exit(report.command(main))
