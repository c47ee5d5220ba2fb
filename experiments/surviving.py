"""What it costs that a training survives: checkpoints, and the deaths of workers.

Checkpoints: the seconds of whole calls of hogwild.train on rows of RCV1's shape, with a checkpoint
every 5 seconds and without one, in turn, the best of several; and of a call with checkpoints, the
share that is spent on them. The share is steady on a shared machine, too. Nothing is demanded of
shorter trainings. Deaths: the same with a worker killed five times at moments spread
over the training; deterministic trainings must end with the same bytes, others within a share of
the objective.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hogwild
from experiments import measure, report
from experiments.measure import Line, best, timed
from hogwild import Rows
from hogwild.checkpoint import Checkpoints
from hogwild.coordinator import Run
from hogwild.data.synthetic import rcv1
from hogwild.learn.linear import LinearProblem
from hogwild.parallel import pool

DEFAULT_ROWS = 781_265
EVERY, SECONDS = "5s", 5.0
MOST_SPENT = 0.02  # of the seconds of a training
DEATHS, MOST_LONGER, MOST_WORSE = 5, 1.5, 1e-3
REPEATS = 3

Options = dict[str, Any]
# Epochs enough for some 10 seconds with the usual number of rows
TRAININGS: dict[str, Options] = {
    "sgd": {"solver": "sgd", "eta0": 0.5, "epochs": 120},
    "sgd, deterministic": {"solver": "sgd", "eta0": 0.5, "epochs": 100, "deterministic": True},
    "dual": {"solver": "dual", "l2": 1e-6, "epochs": 120},
    "dual, deterministic": {"solver": "dual", "l2": 1e-6, "epochs": 100, "deterministic": True},
    "newton": {"solver": "newton", "loss": "logistic", "l2": 1e-6, "epochs": 8},
}


def checkpoints(rows: Rows, folder: Path) -> list[Line]:
    """Trainings with checkpoints, beside the same without."""
    lines = []
    for name, options in TRAININGS.items():
        train = partial(hogwild.train, rows, tol=0, **options)
        path = folder / "checkpoint.hog"
        stopwatch = Stopwatch()
        calls = {
            "with": partial(stopwatch.timed, partial(train, checkpoint=path, every=EVERY)),
            "without": partial(timed, train),
        }
        found = best(calls, REPEATS)
        beside = f"without; {measure.megabytes(path.stat().st_size)}"
        measured = f"{name}, a checkpoint every {EVERY}", found["with"], found["without"]
        lines.append(Line(*measured, measure.seconds, beside))
        most = MOST_SPENT if found["without"] > SECONDS else None
        lines.append(Line(f"{name}, spent on them", stopwatch.share, None, percent, most=most))
    return lines


class Stopwatch:
    """Times trainings with checkpoints, and what they do for these and would not do otherwise.

    That is a look at all of the data, a copy of what the next epoch needs, and the files.
    """

    METHODS = (LinearProblem, "fingerprints"), (Run, "_save"), (Checkpoints, "write")

    def __init__(self) -> None:
        self._whole = self._spent = 0.0

    @property
    def share(self) -> float:
        """Of all seconds that were timed: those spent on checkpoints."""
        return self._spent / self._whole

    def timed(self, train: Callable[[], Any]) -> float:
        """Seconds that a training takes."""
        with ExitStack() as patches:
            for owner, name in self.METHODS:
                method = self._timing(getattr(owner, name))
                patches.enter_context(mock.patch.object(owner, name, method))
            seconds = timed(train)
        self._whole += seconds
        return seconds

    def _timing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timing(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*arguments, **options)
            finally:
                self._spent += time.perf_counter() - began

        return timing


def deaths(rows: Rows) -> list[Line]:
    """Trainings in which a worker is killed again and again, beside undisturbed ones."""
    lines = []
    for name, options in TRAININGS.items():
        if name == "newton":  # its workers are threads of this process
            continue
        train = partial(hogwild.train, rows, workers=2, tol=0, **options)
        results: dict[str, Any] = {}

        def run(key: str, call: Any, results: dict[str, Any] = results) -> None:
            results[key] = call()

        whole = timed(partial(run, "whole", train))
        killer = Killer(whole / (DEATHS + 1))
        with killer:
            disturbed = timed(partial(run, "disturbed", train))
        a, b = (results[key] for key in ("whole", "disturbed"))
        worse = abs(b.trace[-1]["objective"] / a.trace[-1]["objective"] - 1.0)
        same = a.model.weights.tobytes() == b.model.weights.tobytes()
        words = f"{killer.killed} workers killed"
        measured = f"{name}, {words}", disturbed, whole, measure.seconds, "undisturbed"
        lines.append(Line(*measured, least=1 / MOST_LONGER))
        if "deterministic" in options:
            lines.append(
                Line(f"{name}, {words}: other bytes", float(not same), None, yes_or_no, most=0.0)
            )
        else:
            differs = f"{name}, {words}: objective differs"
            lines.append(Line(differs, worse, None, percent, most=MOST_WORSE))
    return lines


def percent(value: float) -> str:
    return f"{100 * value:.3f} %"


def yes_or_no(value: float) -> str:
    return "yes" if value else "no"


class Killer:
    """Kills a worker now and then, until there were enough deaths or the block ends."""

    def __init__(self, seconds: float) -> None:
        self.killed = 0
        self._seconds, self._over = seconds, threading.Event()
        self._thread = threading.Thread(target=self._go)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *problem: Any) -> None:
        self._over.set()
        self._thread.join()

    def _go(self) -> None:
        while self.killed < DEATHS and not self._over.wait(self._seconds):
            if pids := pool.pids():
                os.kill(pids[self.killed % len(pids)], signal.SIGKILL)
                self.killed += 1


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, DEFAULT_ROWS, copies=2)
    parsed = parser.parse_args()
    report.say(report.about_machine())
    warnings.simplefilter("ignore", hogwild.HogwildWarning)  # of the workers that were replaced
    rows = rcv1(parsed.rows)[0]
    with tempfile.TemporaryDirectory(prefix="hogwild-surviving-") as folder:
        lines = [*checkpoints(rows, Path(folder)), *deaths(rows)]
    if parsed.rows != DEFAULT_ROWS:
        lines = measure.undemanded(lines)
    report.say(measure.table(lines))
    records = [line.record() for line in lines]
    report.record("surviving", [report.header({"rows": parsed.rows}), *records])
    measure.check(lines)


if __name__ == "__main__":
    sys.exit(report.command(main))
