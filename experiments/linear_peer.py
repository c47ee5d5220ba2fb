"""One peer of the linear models, run by the Python of its own virtual environment.

Reads a request (JSON) from standard input and answers on standard output, a line of JSON for each
result. Imports nothing of hogwild. The request's folder has the rows: `indptr.npy`, `indices.npy`,
`values.npy` (float32) and `targets.npy` (-1 or 1).

Every trainer is run afresh with each setting of its sweep: more and more passes (or iterations),
or smaller and smaller tolerances. The clock runs during the call that trains. Importing, and
putting the arrays into the form that the trainer takes best, is before it. The objective is
computed here, for all in the same way:

    l2/2 |w|^2 + l1 |w|_1 + mean(loss),    no intercept
"""

import importlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.answering import Request, Row, serve

PASSES = [1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640, 896, 1280]
TOLERANCES = [factor * 10.0**power for power in range(0, -10, -1) for factor in (1, 0.3)]
NEVER_STOPS = 1e-12  # a tolerance
MANY = 10_000  # iterations, where a tolerance ends them
FEW = 500  # rows
SHORT = 0.2  # seconds; a call is repeated while all its repetitions take less,
REPEATS = 5  # and not more often than this

Array = Any
Fit = Callable[[float], Array]  # a setting of the sweep: the weights


class Problem(NamedTuple):
    """What to minimize."""

    loss: str
    l2: float
    l1: float = 0.0

    @property
    def kind(self) -> str:
        """What a trainer has to be able to solve: hinge, logistic or l1 (logistic)."""
        return "l1" if self.l1 else self.loss

    def objective(self, X: Any, targets: Array, weights: Array) -> float:
        """In float64. X is a scipy matrix."""
        margins = targets * (X @ weights)
        if self.loss == "hinge":
            mean = float(np.mean(np.maximum(0.0, 1.0 - margins)))
        else:
            mean = float(np.mean(np.logaddexp(0.0, -margins)))
        squares, sizes = float(weights @ weights), float(np.abs(weights).sum())
        return self.l2 / 2 * squares + self.l1 * sizes + mean


class Data(NamedTuple):
    """The rows (float32), their targets, and a folder for trainers that want a file."""

    X: Any
    y: Array
    folder: Path

    @property
    def wide(self) -> Any:
        """The rows in float64."""
        return self.X.astype(np.float64)

    def weight_of_losses(self, problem: Problem) -> float:
        """C, where a trainer minimizes |w|^2 / 2 (or |w|_1) + C sum(loss)."""
        return 1 / ((problem.l1 or problem.l2) * len(self.y))


class Trainer(NamedTuple):
    """A way to train.

    Attributes:
        name: as shown, unlike all others.
        solves: the kinds of problem.
        make: puts data into the trainer's form, for a problem and a number of threads.
        sweep: its settings, each nearer the optimum than the last.
    """

    name: str
    solves: tuple[str, ...]
    make: Callable[[Data, Problem, int], Fit]
    sweep: Sequence[float] = PASSES


def coefficients(X: Any, y: Array, trainer: Callable[[float], Any]) -> Fit:
    """Of a trainer with scikit-learn's face, made for a setting."""
    return lambda setting: trainer(setting).fit(X, y).coef_


# scikit-learn


def sgd(average: bool) -> Trainer:
    """SGDClassifier; it is faster on float32."""

    def make(data: Data, problem: Problem, threads: int) -> Fit:
        kind = importlib.import_module("sklearn.linear_model").SGDClassifier
        loss = {"hinge": "hinge", "logistic": "log_loss"}[problem.loss]
        fixed = {"alpha": problem.l2, "tol": None, "fit_intercept": False, "random_state": 0}
        return coefficients(
            data.X, data.y, lambda passes: kind(loss, max_iter=passes, average=average, **fixed)
        )

    return Trainer(f"SGDClassifier{', average' * average}", ("hinge", "logistic"), make)


def linear_svc(data: Data, problem: Problem, threads: int) -> Fit:
    """LinearSVC: LIBLINEAR with a number of passes."""
    kind = importlib.import_module("sklearn.svm").LinearSVC
    fixed = {"loss": "hinge", "dual": True, "C": data.weight_of_losses(problem)}
    fixed |= {"fit_intercept": False, "tol": NEVER_STOPS, "random_state": 0}
    return coefficients(data.wide, data.y, lambda passes: kind(max_iter=passes, **fixed))


def logistic_regression(solver: str, *solves: str, wide: bool = True) -> Trainer:
    """LogisticRegression in double or in single precision."""

    def make(data: Data, problem: Problem, threads: int) -> Fit:
        kind = importlib.import_module("sklearn.linear_model").LogisticRegression
        fixed = {"solver": solver, "C": data.weight_of_losses(problem), "fit_intercept": False}
        fixed |= {"l1_ratio": float(problem.l1 > 0), "tol": NEVER_STOPS, "random_state": 0}
        X = data.wide if wide else data.X
        return coefficients(X, data.y, lambda passes: kind(max_iter=passes, **fixed))

    return Trainer(f"{solver}{'' if wide else ', float32'}", solves, make)


# LIBLINEAR


def liblinear(solver: int, kind: str, several: bool = False) -> Trainer:
    """LIBLINEAR by its own Python layer, on a problem that it has made before."""

    def make(data: Data, problem: Problem, threads: int) -> Fit:
        layer = importlib.import_module("liblinear.liblinear")
        train = importlib.import_module("liblinear.liblinearutil").train
        rows = layer.problem(data.y, importlib.import_module("scipy.sparse").csr_matrix(data.wide))
        fixed = f"-q -s {solver} -c {data.weight_of_losses(problem)!r}"
        fixed += f" -m {threads}" if several else ""

        def fit(tolerance: float) -> Array:
            model = train(rows, layer.parameter(f"{fixed} -e {tolerance!r}"))
            weights = np.ctypeslib.as_array(model.w, (model.nr_feature,))
            return weights * model.label[0]  # scores are for the first label that it met

        return fit

    return Trainer(f"liblinear{'-multicore' * several} -s {solver}", (kind,), make, TOLERANCES)


# Snap ML


def snap(several: bool, dual: bool, *solves: str) -> Trainer:
    """Snap ML: coordinate descent on one or all threads, of the dual or the primal problem."""

    def make(data: Data, problem: Problem, threads: int) -> Fit:
        package = importlib.import_module("snapml")
        fixed: dict[str, Any] = {"n_jobs": threads if several else 1, "tol": NEVER_STOPS}
        fixed |= {"regularizer": 1 / data.weight_of_losses(problem), "random_state": 0}
        if problem.loss == "hinge":
            kind = package.SupportVectorMachine
        else:
            kind = package.LogisticRegression
            fixed |= {"dual": dual, "penalty": "l1" if problem.l1 else "l2"}
        return coefficients(data.X, data.y, lambda passes: kind(max_iter=passes, **fixed))

    name = f"snapml, {'dual' if dual else 'primal'}, {'all threads' if several else '1 thread'}"
    return Trainer(name, solves, make)


# Vowpal Wabbit


def vowpal_wabbit(data: Data, problem: Problem, threads: int) -> Fit:
    """Vowpal Wabbit's SGD, from its own cache file (its first run writes it), in file order.

    Only a saved model has the penalty in its weights; and integer names are column numbers. A
    Workspace reads its data when `data` and `passes` are keywords, and not from a line of options.
    """
    package = importlib.import_module("vowpalwabbit")
    text, cache, model = (data.folder / name for name in ("rows.vw", "rows.cache", "model"))
    if not text.exists():
        _write_for_vowpal_wabbit(data, text)
    bits = max(18, data.X.shape[1].bit_length())
    options = (
        f"--cache_file {cache} --sgd --l2 {problem.l2} "
        f"--loss_function {problem.loss} --noconstant --holdout_off -b {bits} "
        f"--final_regressor {model}"
    )

    def fit(passes: float) -> Array:
        package.Workspace(options, data=str(text), passes=passes, quiet=True).finish()
        return model

    return fit


def _write_for_vowpal_wabbit(data: Data, path: Path) -> None:
    bounds = data.X.indptr.tolist()
    with path.open("w") as file:
        for row, target in enumerate(data.y.astype(int).tolist()):
            part = slice(bounds[row], bounds[row + 1])
            columns, values = data.X.indices[part].tolist(), data.X.data[part].tolist()
            cells = (f"{k}:{value:.9g}" for k, value in zip(columns, values, strict=True))
            file.write(f"{target} | {' '.join(cells)}\n")


def _weights(found: Any, columns: int) -> Array:
    """The weights in what a trainer returned: an array, or the file of Vowpal Wabbit's model."""
    if not isinstance(found, Path):
        return np.asarray(found, np.float64).ravel()
    model = importlib.import_module("vowpalwabbit").Workspace(f"-i {found} -t", quiet=True)
    weights = np.array([model.get_weight(column) for column in range(columns)])
    model.finish()
    return weights


# lightning


def lightning_dual(name: str) -> Trainer:
    """lightning's dual coordinate ascent for the hinge."""

    def make(data: Data, problem: Problem, threads: int) -> Fit:
        kind = getattr(importlib.import_module("lightning.classification"), name)
        fixed = {"loss": "hinge", "tol": NEVER_STOPS, "random_state": 0}
        if name == "LinearSVC":
            fixed |= {"C": data.weight_of_losses(problem)}
        else:
            fixed |= {"alpha": problem.l2}
        return coefficients(data.wide, data.y, lambda passes: kind(max_iter=passes, **fixed))

    return Trainer(f"lightning {name}", ("hinge",), make)


def lightning_columns(data: Data, problem: Problem, threads: int) -> Fit:
    """lightning's coordinate descent on columns."""
    kind = importlib.import_module("lightning.classification").CDClassifier
    fixed = {"loss": "log", "penalty": "l1" if problem.l1 else "l2", "C": 1 / len(data.y)}
    fixed |= {"alpha": problem.l1 or problem.l2, "tol": NEVER_STOPS, "random_state": 0}
    return coefficients(data.wide.tocsc(), data.y, lambda passes: kind(max_iter=passes, **fixed))


def lightning_saga(data: Data, problem: Problem, threads: int) -> Fit:
    """lightning's SAGA."""
    kind = importlib.import_module("lightning.classification").SAGAClassifier
    fixed = {"loss": "log", "alpha": problem.l2, "tol": NEVER_STOPS, "random_state": 0}
    fixed |= {"penalty": "l1", "beta": problem.l1} if problem.l1 else {}
    return coefficients(data.wide, data.y, lambda passes: kind(max_iter=passes, **fixed))


# celer, skglm


def celer(data: Data, problem: Problem, threads: int) -> Fit:
    """celer's working sets, each solved by a proximal Newton method."""
    kind = importlib.import_module("celer").LogisticRegression
    C = data.weight_of_losses(problem)
    X = data.wide.tocsc()
    return coefficients(X, data.y, lambda tolerance: kind(C=C, tol=tolerance, max_iter=MANY))


def skglm(data: Data, problem: Problem, threads: int) -> Fit:
    """skglm: its dual of the hinge, L-BFGS for L2, proximal Newton for L1.

    Some rows are solved first: a wide tolerance would not have all code compiled. Estimators
    compile again in each call to `fit`, so the solvers of the logistic loss are called directly.
    """
    if problem.kind == "hinge":
        kind = importlib.import_module("skglm.estimators").LinearSVC
        fixed = {"C": data.weight_of_losses(problem), "fit_intercept": False, "max_iter": MANY}
        X = data.wide
        kind(tol=1e-3, **fixed).fit(X[:FEW], data.y[:FEW])
        return coefficients(X, data.y, lambda tolerance: kind(tol=tolerance, **fixed))
    compiled = importlib.import_module("skglm.utils.jit_compilation").compiled_clone
    penalties = importlib.import_module("skglm.penalties")
    solvers = importlib.import_module("skglm.solvers")
    loss = compiled(importlib.import_module("skglm.datafits").Logistic())
    penalty = compiled(penalties.L1(problem.l1) if problem.l1 else penalties.L2(problem.l2))

    def solved(X: Any, y: Array, tolerance: float) -> Array:
        if problem.l1:
            solver = solvers.ProxNewton(max_iter=MANY, tol=tolerance, fit_intercept=False)
        else:
            solver = solvers.LBFGS(max_iter=MANY, tol=tolerance / 100)  # of a gradient
        return solver.solve(X, y, loss, penalty)[0]

    X = data.wide.tocsc()
    solved(X[:FEW], data.y[:FEW], 1e-3)
    return lambda tolerance: solved(X, data.y, tolerance)


PACKAGES = {
    "scikit-learn": "scikit-learn",
    "liblinear": "liblinear-official",
    "liblinear-multicore": "liblinear-multicore",
    "snapml": "snapml",
    "lightning": "sklearn-contrib-lightning",
    "celer": "celer",
    "skglm": "skglm",
    "vowpalwabbit": "vowpalwabbit",
}
TRAINERS = {
    "scikit-learn": [
        sgd(average=False),
        sgd(average=True),
        Trainer("LinearSVC", ("hinge",), linear_svc),
        logistic_regression("lbfgs", "logistic"),
        logistic_regression("lbfgs", "logistic", wide=False),
        logistic_regression("newton-cg", "logistic"),
        logistic_regression("saga", "logistic", "l1"),
        logistic_regression("saga", "logistic", "l1", wide=False),
    ],
    "liblinear": [
        liblinear(3, "hinge"),
        liblinear(0, "logistic"),
        liblinear(7, "logistic"),
        liblinear(6, "l1"),
    ],
    "liblinear-multicore": [
        liblinear(3, "hinge", several=True),
        liblinear(0, "logistic", several=True),
        liblinear(6, "l1", several=True),
    ],
    "snapml": [
        snap(False, True, "hinge", "logistic"),
        snap(True, True, "hinge", "logistic"),
        snap(True, False, "logistic", "l1"),
    ],
    "lightning": [
        lightning_dual("LinearSVC"),
        lightning_dual("SDCAClassifier"),
        Trainer("lightning CDClassifier", ("logistic", "l1"), lightning_columns),
        Trainer("lightning SAGAClassifier", ("logistic", "l1"), lightning_saga),
    ],
    "celer": [Trainer("celer", ("l1",), celer, TOLERANCES)],
    "skglm": [Trainer("skglm", ("hinge", "logistic", "l1"), skglm, TOLERANCES)],
    "vowpalwabbit": [Trainer("vw --sgd", ("hinge", "logistic"), vowpal_wabbit)],
}


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of some repetitions, and the last result."""
    found: list[float] = []
    while len(found) < REPEATS and sum(found) < SHORT:
        start = time.perf_counter()
        result = call()
        found.append(time.perf_counter() - start)
    return min(found), result


def swept(trainer: Trainer, data: Data, problem: Problem, request: Request) -> Iterator[Row]:
    """The results, until one is near enough or the time is used up."""
    about = {"trainer": trainer.name}
    try:
        fit = trainer.make(data, problem, request["threads"])
        fit(trainer.sweep[0])  # compiles, starts its threads, writes its files
        begun = time.perf_counter()
        for setting in trainer.sweep:
            seconds, found = timed(partial(fit, setting))
            objective = problem.objective(data.X, data.y, _weights(found, data.X.shape[1]))
            if np.isfinite(objective):
                yield about | {"setting": setting, "seconds": seconds, "objective": objective}
            if objective <= request["enough"] or time.perf_counter() - begun > request["budget"]:
                break
    except Exception as problem_met:  # the peer's other trainers go on
        yield about | {"problem": repr(problem_met)}


def load(folder: Path, columns: int) -> Data:
    """The rows in a folder."""
    matrix = importlib.import_module("scipy.sparse").csr_matrix
    names = ("values", "indices", "indptr", "targets")
    values, indices, indptr, targets = (np.load(folder / f"{name}.npy") for name in names)
    X = matrix((values, indices, indptr), shape=(len(targets), columns))
    return Data(X, targets, folder)


def answer(request: Request) -> Iterator[Row]:
    """The results of all of a peer's trainers on a problem."""
    data = load(Path(request["folder"]), request["columns"])
    problem = Problem(*request["problem"])
    warnings.simplefilter("ignore")  # that it has not converged
    for trainer in TRAINERS[request["peer"]]:
        if problem.kind in trainer.solves:
            yield from swept(trainer, data, problem, request)


if __name__ == "__main__":
    serve(PACKAGES, answer)
