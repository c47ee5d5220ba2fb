"""Callbacks: follow a training, look at its model, stop it. Add one here.

    best = BestModel("test_error")
    hogwild.train(rows, test="test.svm", callbacks=[best, CSVLog("run.csv")])
    best.model, best.row

MLflow, TensorBoard and Optuna are imported when they are used.
"""

import csv
import json
import math
import numbers
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

from hogwild.coordinator import Run
from hogwild.errors import HogwildError, OptionError
from hogwild.extras import library
from hogwild.paths import PathLike, check_files
from hogwild.results import Result, Watcher
from hogwild.trace import Row

NEEDED_BY = "this callback"


class Callback(Watcher):
    """A watcher that knows its run, while that lasts.

    `run.header` and `run.trace` are the record so far. `run.stop("why")` ends the run, from any
    method and any thread. Within an epoch, the run ends at the next `tick`; there is a model, as at
    any other end. `run.model()` makes the model of the last epoch, and copies the weights for it.
    In `epoch`, `run.measured()` returns the row with an objective, even if the run left it out.

    An error that a callback raises ends the training, and no model is written.
    """

    run: Run

    def note(self, text: str) -> None:
        """Something was left out; the watcher says so."""

    def end(self, result: Result | None) -> None:
        """Called when a training that began is over. An error may leave no result: None."""


class Followers(Watcher):
    """A watcher and callbacks, as one."""

    def __init__(self, all_of_them: list[Watcher]) -> None:
        self._all = all_of_them
        self.result: Result | None = None

    @contextmanager
    def following(self, run: Run) -> Iterator[None]:
        """Gives callbacks the run, and calls `end` when the run is over, however it ends."""
        self._run = run
        with ExitStack() as self._ends:  # calls `end` of every callback, even if one fails
            try:
                yield
            except HogwildError as problem:
                self.result = problem.result
                raise

    def _end(self, one: Callback) -> None:
        one.end(self.result)

    def note(self, text: str) -> None:
        for one in self._all:
            one.note(text)

    def tell(self, text: str) -> None:
        for one in self._all:
            one.tell(text)

    def start(self, header: Row) -> None:
        for one in self._all:
            if isinstance(one, Callback):
                one.run = self._run
            one.start(header)
            if isinstance(one, Callback):
                self._ends.callback(self._end, one)

    def begin(self, epoch: int) -> None:
        for one in self._all:
            one.begin(epoch)

    def tick(self, epoch: int, share: float, seconds: float) -> None:
        for one in self._all:
            one.tick(epoch, share, seconds)

    def epoch(self, row: Row) -> None:
        for one in self._all:
            one.epoch(row)


def together(watcher: Watcher, callbacks: Iterable[Watcher]) -> Followers:
    """A watcher and callbacks as one; an error where something else was given."""
    given = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for one in given:
        if not isinstance(one, Watcher) or not isinstance(callbacks, Iterable):
            raise OptionError(
                f"callbacks: {one!r} is not a list of callbacks; give instances of hogwild.Callback"
            )
    return Followers([watcher, *given])


def _numbers(row: Row) -> dict[str, float]:
    """The numbers of a row that can be drawn over epochs."""
    found = {name: value for name, value in row.items() if isinstance(value, numbers.Real)}
    return {name: float(value) for name, value in found.items() if name != "epoch"}


def _number(row: Row, metric: str) -> float | None:
    """A number of a row of the trace; None if this epoch has none."""
    known = _numbers(row)
    if metric not in known and row.get(metric, "") is not None:
        raise OptionError(f"metric: {metric!r} is not one of {', '.join(known)}")
    return known.get(metric)


class BestModel(Callback):
    """Keeps the model of the epoch with the least `metric`; with a path, also saves the model.

    `metric` is a name in the rows of the trace.

    Attributes:
        model: the best one so far, or None.
        row: the row of its epoch.
    """

    def __init__(self, metric: str = "objective", path: PathLike | None = None) -> None:
        self._metric, self._path = metric, path
        check_files({"path": path})

    def start(self, header: Row) -> None:
        self.model: Any = None
        self.row: Row | None = None
        self._least = math.inf

    def epoch(self, row: Row) -> None:
        value = _number(row, self._metric)
        if value is None or value >= self._least:
            return
        self._least, self.row, self.model = value, dict(row), self.run.model()
        if self._path is not None:
            self.model.save(self._path)


class _Log(Callback):
    """A file that grows with every epoch, so that others can follow it."""

    def __init__(self, path: PathLike) -> None:
        self._path = path
        check_files({"path": path})

    def start(self, header: Row) -> None:
        try:
            self._file: TextIO = open(self._path, "w", newline="")  # noqa: PTH123, SIM115
        except OSError as error:
            raise HogwildError(f"{self._path} cannot be written: {error.strerror}") from error

    def end(self, result: Result | None) -> None:
        self._file.close()


class CSVLog(_Log):
    """A line of CSV for every epoch, with a line of names above.

    A number that an epoch lacks is left empty.
    """

    def start(self, header: Row) -> None:
        super().start(header)
        self._names: dict[str, None] = {}

    def epoch(self, row: Row) -> None:
        """Adds a line; all lines are written again where a row has a new name."""
        rows = [row]
        if not row.keys() <= self._names.keys():
            self._names |= dict.fromkeys(row)
            self._file.seek(0)
            csv.writer(self._file).writerow(self._names)
            rows = self.run.trace
        csv.DictWriter(self._file, list(self._names)).writerows(rows)
        self._file.flush()


class JSONLines(_Log):
    """The record of the run as `trace=` writes it, but line by line as the run goes on."""

    def start(self, header: Row) -> None:
        super().start(header)
        self._write(header)

    def epoch(self, row: Row) -> None:
        self._write(row)

    def end(self, result: Result | None) -> None:
        if result is not None:
            self._write(result.records()[-1])
        super().end(result)

    def _write(self, row: Row) -> None:
        print(json.dumps(row, allow_nan=False), file=self._file, flush=True)


class MLflow(Callback):
    """Logs options, the numbers of every epoch and why training stopped to MLflow.

    Logs to the active run. If there is none, logs to a new run, which ends with the training.
    """

    def start(self, header: Row) -> None:
        self._mlflow = library("mlflow", "mlflow", NEEDED_BY)
        self._is_ours = self._mlflow.active_run() is None
        if self._is_ours:
            self._mlflow.start_run()
        self._mlflow.log_params(header["options"] | header["chosen"])

    def epoch(self, row: Row) -> None:
        self._mlflow.log_metrics(_numbers(row), step=row["epoch"])

    def end(self, result: Result | None) -> None:
        self._mlflow.set_tag("reason", "failed" if result is None else result.reason)
        if self._is_ours:
            self._mlflow.end_run("FAILED" if result is None else "FINISHED")


class TensorBoard(Callback):
    """Writes the numbers of every epoch to a folder of TensorBoard; needs no TensorFlow."""

    def __init__(self, folder: PathLike) -> None:
        self._folder = folder

    def start(self, header: Row) -> None:
        summary = library("tensorboard.summary", "tensorboard", NEEDED_BY)
        self._writer = summary.Writer(str(self._folder))

    def epoch(self, row: Row) -> None:
        for name, value in _numbers(row).items():
            self._writer.add_scalar(name, value, row["epoch"])
        self._writer.flush()

    def end(self, result: Result | None) -> None:
        self._writer.close()


class OptunaPruning(Callback):
    """Reports `metric` to a trial of Optuna, which may prune it: `train` raises TrialPruned."""

    def __init__(self, trial: Any, metric: str = "objective") -> None:
        self._trial, self._metric = trial, metric

    def epoch(self, row: Row) -> None:
        value = _number(row, self._metric)
        if value is None:
            return
        self._trial.report(value, row["epoch"])
        if self._trial.should_prune():
            raise library("optuna", "optuna", NEEDED_BY).TrialPruned(f"{self._metric} {value:g}")
