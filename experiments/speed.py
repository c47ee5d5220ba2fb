"""Every speed that the README names, beside scikit-learn's, from one run.

The best of several, ours and the other's in turn, on the same float32 matrix (scikit-learn is
slower on float64), which is in memory already.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import psutil

import hogwild
from experiments import report
from experiments.optimum import optimum
from hogwild import Config, HogwildClassifier, HogwildError, Rows
from hogwild.data.synthetic import rcv1
from hogwild.kernels.views import Clock, Span, Stored, view
from hogwild.loops.shared import shared_loop
from hogwild.parallel.memory import shared_arrays
from hogwild.problems.linear import LinearProblem
from hogwild.problems.problem import Now, Share

try:
    from sklearn.linear_model import SGDClassifier
except ImportError:
    SGDClassifier = None

ROWS = 781_265  # of RCV1
REPEATS = 5
FURTHER = 4  # epochs more, to tell an epoch of scikit-learn from what it does once
SHORTEST = 1e-6  # seconds
L2 = 1e-4
TASKS = {"hinge": "svm", "logistic": "logistic"}
SKLEARN_LOSSES = {"hinge": "hinge", "logistic": "log_loss"}
SAMPLED_EVERY = 0.01  # seconds
CERTAINTY = 1e-6  # relative, of the optimum

LEAST_SPEED = {"hinge": 800e6, "logistic": 600e6}  # non-zeros a second
LEAST_FACTOR = 3.0
MOST_START = 1.0
MOST_GAP = 5e-3

HEAD = ["measured", "hogwild", "scikit-learn", "factor", "demanded", "holds"]

NOTES = f"""
The best of {REPEATS}; l2 = {L2:g}; random order. kernel: an epoch and nothing else. train: an
epoch in hogwild.train. scikit-learn beside both: what each further epoch adds to `fit`.
scikit-learn's gap is the better of those with and without `average`.
The very first train of 1,000 rows, which compiles, took {{:.1f}} s."""

# What a user of scikit-learn would run for `python -m hogwild train FILE`
SKLEARN_START = """
import sys
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier
X, y = load_svmlight_file(sys.argv[1])
X.indices, X.indptr = X.indices.astype("i4"), X.indptr.astype("i4")  # else fit refuses them
SGDClassifier().fit(X, y)
"""
SKLEARN_MEMORY = """
import sys, numpy, scipy.sparse
from sklearn.linear_model import SGDClassifier
y = numpy.load(sys.argv[1])["y"]
SGDClassifier(max_iter=10, tol=None).fit(scipy.sparse.load_npz(sys.argv[1]), y)
"""


class Line(NamedTuple):
    """A line of the table."""

    measured: str
    ours: float
    other: float | None
    show: Callable[[float], str]
    higher_is_better: bool = False
    demanded: str = "-"
    holds: bool | None = None

    @property
    def factor(self) -> float | None:
        """How many times better ours is."""
        if self.other is None:
            return None
        return self.ours / self.other if self.higher_is_better else self.other / self.ours

    def cells(self) -> list[str]:
        """As printed."""
        return [
            self.measured,
            self.show(self.ours),
            "-" if self.other is None else self.show(self.other),
            "-" if self.factor is None else f"{self.factor:.2f}",
            self.demanded,
            "-" if self.holds is None else "yes" if self.holds else "NO",
        ]


def nonzeros_per_second(value: float) -> str:
    return f"{value / 1e6:.0f} M nnz/s"


def seconds(value: float) -> str:
    return f"{value:.3f} s"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


def gap(value: float) -> str:
    return f"{value:.1e}"


def timed(call: Callable[[], Any]) -> float:
    """Seconds that the call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def best(calls: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The least result of each call, of REPEATS of all of them in turn."""
    rounds = [{name: call() for name, call in calls.items()} for _ in range(REPEATS)]
    return {name: min(found[name] for found in rounds) for name in calls}


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
        problem.shuffle(self._order, 0, self._epochs)
        given = (
            problem.task(self._order, Share(self._epochs, 0, 1, done, self._eta0)),
            view(Span, 0, size),
            self._stored,
            view(Clock, done, 1),
        )
        elapsed = timed(lambda: self._kernel(*given))
        problem.finish(self._weights, Now(done + size, done, self._eta0), None, 0, 1)
        return elapsed


def epoch_of_train(rows: Rows, loss: str) -> float:
    """Seconds of the quickest epoch of a run with one worker."""
    result = hogwild.train(rows, task=TASKS[loss], l2=L2, workers=1, epochs=3, tol=0)
    return float(min(row["epoch_seconds"] for row in report.finished(result).trace))


def sklearn_fit(X: Any, y: Any, loss: str, epochs: int, average: bool = False) -> Any:
    """A fitted SGDClassifier."""
    classifier = SGDClassifier(
        SKLEARN_LOSSES[loss], alpha=L2, max_iter=epochs, tol=None, average=average, random_state=0
    )
    return classifier.fit(X, y)


def epochs(data: Data, loss: str) -> list[Line]:
    """An epoch in the kernel, and as part of a run."""
    kernel = Kernel(data.rows, loss)
    calls = {"kernel": kernel.epoch, "train": lambda: epoch_of_train(data.rows, loss)}
    if SGDClassifier:
        calls["one"] = lambda: timed(lambda: sklearn_fit(data.X, data.y, loss, 1))
        calls["more"] = lambda: timed(lambda: sklearn_fit(data.X, data.y, loss, 1 + FURTHER))
    found = best(calls)
    nonzeros = data.rows.nonzeros
    ours, train = nonzeros / found["kernel"], nonzeros / found["train"]
    other = None
    if SGDClassifier:
        other = nonzeros * FURTHER / max(found["more"] - found["one"], SHORTEST)
    least = LEAST_SPEED[loss]
    demanded, holds = f">= {least / 1e6:.0f}", ours >= least
    if loss == "hinge":
        demanded += f", factor {LEAST_FACTOR:.0f}"
        holds = holds and (other is None or ours >= LEAST_FACTOR * other)
    return [
        Line(f"{loss}, kernel", ours, other, nonzeros_per_second, True, demanded, holds),
        Line(f"{loss}, train, 1 worker", train, other, nonzeros_per_second, True),
    ]


def fits(data: Data) -> list[Line]:
    """HogwildClassifier.fit for one epoch, all that it does included, against the kernel's time."""
    ours = HogwildClassifier(n_jobs=1, alpha=L2, max_iter=1, tol=None, random_state=0)
    matrices = {"float32": data.X, "float64": data.X.astype(np.float64)}
    calls = {"kernel": Kernel(data.rows, "hinge").epoch}
    for name, X in matrices.items():
        calls[f"{name}, hogwild"] = partial(timed, partial(ours.fit, X, data.y))
        if SGDClassifier:
            calls[f"{name}, other"] = partial(timed, partial(sklearn_fit, X, data.y, "hinge", 1))
    found = best(calls)
    most = 1.5 * found["kernel"] + 0.080
    lines = []
    for name in matrices:
        took, other = found[f"{name}, hogwild"], found.get(f"{name}, other")
        lines.append(Line(f"fit of 1 epoch, {name}", took, other, seconds))
    lines[0] = lines[0]._replace(demanded=f"<= {seconds(most)}", holds=lines[0].ours <= most)
    return lines


def gaps(data: Data, loss: str) -> Line:
    """How far from the optimum the objective is after one epoch, by default."""
    least = optimum(data.rows, loss, L2, intercept=True, gap=CERTAINTY)
    if not least.certified:
        raise HogwildError(f"the optimum was found with a gap of {least.gap:.1e} only")

    def away(weights: Any, intercept: float) -> float:
        weights = weights.astype(np.float64).ravel()
        value = report.objective(data.X, data.y, weights, intercept, loss, L2)
        return (value - least.objective) / least.objective

    model = report.finished(hogwild.train(data.rows, task=TASKS[loss], l2=L2, epochs=1)).model
    ours = away(model.weights, model.intercept)
    other = None
    if SGDClassifier:
        fitted = [sklearn_fit(data.X, data.y, loss, 1, average) for average in (False, True)]
        other = min(away(one.coef_, float(one.intercept_[0])) for one in fitted)
    demanded = f"<= {gap(MOST_GAP)}"
    return Line(f"gap after 1 epoch, {loss}", ours, other, gap, False, demanded, ours <= MOST_GAP)


def start(folder: Path) -> tuple[Line, float]:
    """The command line on 1,000 rows; and the seconds of the first run, which compiles."""
    file = folder / "small.svm"
    hogwild.save(rcv1(1000)[0], file)
    kernels = {"XDG_CACHE_HOME": str(folder), "NUMBA_CACHE_DIR": ""}
    ours = [sys.executable, "-m", "hogwild", "train", str(file)]
    other = [sys.executable, "-c", SKLEARN_START, str(file)]
    first = timed(lambda: finish(ours, kernels))
    calls = {"hogwild": lambda: timed(lambda: finish(ours, kernels))}
    if SGDClassifier:
        calls["sklearn"] = lambda: timed(lambda: finish(other))
    found = best(calls)
    demanded, took = f"< {seconds(MOST_START)}", found["hogwild"]
    name = "train of 1,000 rows, shell"
    holds = took < MOST_START
    return Line(name, took, found.get("sklearn"), seconds, False, demanded, holds), first


def memory(rows: Rows, folder: Path) -> Line:
    """Peak memory of a run with two workers."""
    file = folder / "rows.npz"
    hogwild.save(rows, file)
    train = ["-m", "hogwild", "train", str(file), "--workers", "2", "--tol", "0", "--epochs", "10"]
    ours = peak([sys.executable, *train])
    other = peak([sys.executable, "-c", SKLEARN_MEMORY, str(file)]) if SGDClassifier else None
    most = 1.3 * rows.nbytes + 250e6
    demanded = f"<= {megabytes(most)}"
    return Line("peak memory, 2 workers", ours, other, megabytes, False, demanded, ours <= most)


def finish(
    command: list[str],
    environment: dict[str, str] | None = None,
    watch: Callable[[int], None] | None = None,
) -> None:
    """Runs a command in the repository's folder to its end; an error if that is not a good one.

    `watch` is called with its process number again and again meanwhile.
    """
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            cwd=report.FOLDER.parent,
            env=os.environ | (environment or {}),
        )
        try:
            while watch and child.poll() is None:
                watch(child.pid)
                time.sleep(SAMPLED_EVERY)
            code = child.wait()
        finally:
            child.kill()
            child.wait()
        if code != 0:
            complaints.seek(0)
            last = complaints.read().decode().strip()[-400:]
            raise HogwildError(f"{' '.join(command[1:4]).strip()} ended with {code}: {last}")


def peak(command: list[str]) -> float:
    """The most bytes that a command has: the greater of what two counts say.

    One adds up its processes, pages that they share once (PSS), and may miss a short peak. The
    other is the system's, which misses none, of what is resident in the parent alone.
    """
    most = 0

    def watch(number: int) -> None:
        nonlocal most
        most = max(most, _shared(number), _parent(number))

    finish(command, watch=watch)
    return float(most)


def _shared(number: int) -> int:
    total = 0
    with suppress(psutil.Error):
        root = psutil.Process(number)
        for member in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                total += member.memory_full_info().pss
    return total


def _parent(number: int) -> int:
    """The high-water mark. (The ru_maxrss of a child would begin with the size of this process.)"""
    with suppress(OSError):
        for line in Path(f"/proc/{number}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=6.0)
    count = parser.parse_args().rows

    report.say(report.about_machine())
    data = Data(rcv1(count)[0])
    rows = data.rows
    report.say(
        f"Data      {rows.name}: {len(rows):,} rows, {rows.columns:,} columns, "
        f"{rows.nonzeros:,} non-zeros, {megabytes(rows.nbytes)}"
    )
    other = "is not installed; install it to compare"
    if SGDClassifier:
        from sklearn import __version__ as version

        other = f"{version}, SGDClassifier, one thread"
    report.say(f"Other     scikit-learn {other}\n")

    lines: list[Line] = []
    for loss in TASKS:
        lines += epochs(data, loss)
    lines += fits(data)
    lines += [gaps(data, loss) for loss in TASKS]
    with tempfile.TemporaryDirectory(prefix="hogwild-speed-") as folder:
        starting, compiling = start(Path(folder))
        lines += [starting, memory(rows, Path(folder))]

    report.say(report.table(HEAD, [line.cells() for line in lines]))
    report.say(NOTES.format(compiling))
    if count != ROWS:
        report.say(f"What is demanded is demanded with --rows {ROWS}.")
    shown: list[dict[str, Any]] = [
        {"kind": "speed", "factor": line.factor} | line._asdict() | {"show": line.show.__name__}
        for line in lines
    ]
    extra = {"nbytes": rows.nbytes, "first_start_seconds": compiling}
    report.record("speed", [report.header({"rows": count}, **extra), *shown])


if __name__ == "__main__":
    sys.exit(report.command(main))
