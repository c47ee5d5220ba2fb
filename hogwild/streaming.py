"""Learning from a stream: each row is visited once. Memory does not grow with the number of rows.

Rows come in pieces. The loss of a row is computed just before the weights learn from it. The mean
of such losses is an honest estimate of the loss on new rows (progressive validation). A stream has
no known end that a learning rate could be planned for, and no second epoch. The model has the last
weights.
"""

import io
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hogwild import status
from hogwild.config import TASKS, Config
from hogwild.data import svmlight
from hogwild.data.files import FORMATS, check_index_base
from hogwild.data.opening import is_packed, suffix_of
from hogwild.data.rows import Labels, Rows
from hogwild.data.sources import Piece
from hogwild.errors import DataError, DivergenceError, OptionError
from hogwild.interrupt import Interrupt
from hogwild.kernels.text import PADDING
from hogwild.kernels.views import Clock, Span, Stored, view
from hogwild.learn.heads import zeros_on_a_line
from hogwild.learn.linear import LinearProblem
from hogwild.learn.problem import Now, Share
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from hogwild.machine import versions
from hogwild.models.linear import LinearModel
from hogwild.paths import PathLike, check_files
from hogwild.trace import Row

STANDARD_INPUT = "-"
PIECE = 1 << 22  # bytes of text, at most, that are learned from at a time
LOOK = 0.2  # seconds between two looks whether to go on, while nothing comes
FIRST_LINE = 1000  # rows before the first line with the loss; the number doubles for each next line
LEAST_SCALE = 0.25  # scale of the stored weights below which they are unscaled
SCHEDULES = ("inverse", "constant", "sqrt")
# The options of a stream; all others need rows to be read again, or together
OPTIONS = (
    *("task", "loss", "epsilon", "quantile", "l2", "intercept", "schedule", "eta0", "seed"),
    *("solver", "time_limit"),
)

Show = Callable[[Row], Any]


@dataclass(frozen=True)
class StreamResult:
    """The result of a stream.

    Attributes:
        model: the model after the last row.
        reason: why training ended: end (of the stream), time or interrupted.
        rows: the number of rows that were learned from.
        loss: the mean loss of rows, each just before it was learned from.
        trace: a dict for each line that is printed: `rows`, `loss` (of all so far), `recent_loss`
            (since the line before), `columns` and `seconds`.
    """

    model: LinearModel
    reason: str
    rows: int
    loss: float
    trace: list[Row]


def train_stream(
    data: PathLike | Iterable[Rows],
    *,
    labels: Labels | None = None,
    model: PathLike | None = None,
    save_every: int | None = None,
    index_base: str | int = "auto",
    show: Show = lambda row: None,
    **options: Any,
) -> StreamResult:
    """Trains a linear model by stochastic gradient descent, in one pass over rows as they come.

    Args:
        data: svmlight text: a file, a pipe, or "-" for standard input; or pieces of rows.
        labels: the classes; by default they are those of the first piece.
        model: a file to save the model in, also after Ctrl-C.
        save_every: number of rows after which the model is saved again.
        index_base: the number of the first column of text; see `load`.
        show: is called with each row of the trace.
        **options: task, loss, epsilon, quantile, l2, intercept, schedule (inverse, constant or
            sqrt), eta0 (found on the first piece, if it is not given), seed and time_limit, as for
            `train`.

    Raises:
        OptionError: lists the options that are wrong, or that a stream cannot have.
        DataError: text is wrong, or a label is not one of the classes.
        DivergenceError: the weights overflow.
    """
    config = _config(options, model, save_every)
    check_index_base(index_base)
    if isinstance(data, str | os.PathLike) and (
        suffix_of(Path(data)) in FORMATS or is_packed(Path(data))
    ):
        raise OptionError(f"data: a stream is plain svmlight text; hogwild.train reads {data}")
    check_files({"model": model}, *([data] if isinstance(data, str | os.PathLike) else []))
    with Interrupt() as interrupt, status.doing("learning from the stream") as now:
        pieces: Iterable[Rows] = (
            rows_of_stream(data, index_base, interrupt=interrupt)
            if isinstance(data, str | os.PathLike)
            else data
        )
        run = _Stream(config, labels, model, save_every, show)
        reason = run.learn_all(pieces, interrupt, now)
        if run.learner is None:
            interrupt.check()
            raise DataError("the stream has no rows to learn from")
        run.say()
        found = run.learner.model(reason)
        if model is not None:
            found.save(model)
    return StreamResult(found, reason, run.learner.done, run.mean_loss, run.trace)


def _config(options: dict[str, Any], model: Any, save_every: Any) -> Config:
    """Makes the options, and refuses those that a stream cannot have."""
    problems = [
        f"{name}: not available for a stream, which visits each row once; leave it out"
        for name, value in options.items()
        if name not in OPTIONS and value is not None and hasattr(Config, name)
    ]
    if options.get("task") == "mf":
        problems.append(f"task: a stream has rows, for {', '.join(t for t in TASKS if t != 'mf')}")
    if options.get("solver", "sgd") not in ("auto", "sgd"):
        problems.append("solver: a stream needs sgd; others visit rows more than once")
    if options.get("schedule", "inverse") not in SCHEDULES:
        problems.append(f"schedule: for a stream it needs to be one of {', '.join(SCHEDULES)}")
    if save_every is not None and (not isinstance(save_every, int) or save_every < 1):
        problems.append(f"save_every: expected a number of rows, not {save_every!r}")
    if save_every is not None and model is None:
        problems.append("save_every: it needs a model file to save to")
    if problems:
        raise OptionError("\n".join(problems))
    usual = {"task": Config.task, "schedule": "inverse"}
    return Config.of(usual | options | {"solver": "sgd", "epochs": 1, "average": False})


def rows_of_stream(
    source: PathLike,
    index_base: str | int,
    *,
    labels: bool = True,
    interrupt: Interrupt | None = None,
) -> Iterator[Rows]:
    """The rows of svmlight text as they come: all available ones, but not too many at a time."""
    is_standard = str(source) == STANDARD_INPUT
    name = "standard input" if is_standard else str(source)
    try:
        place = sys.stdin.fileno() if is_standard else str(source)
        raw = io.FileIO(place, closefd=not is_standard)
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{name}: cannot be read: {error}") from error
    found: list[Rows] = []
    reader = svmlight.Handing(name, index_base, labels, found.append)
    with raw:
        for piece in _pieces(name, raw, interrupt or Interrupt()):
            reader.take(reader.parse(piece))
            yield from found
            found.clear()
    reader.end()


def _pieces(name: str, raw: io.FileIO, interrupt: Interrupt) -> Iterator[Piece]:
    """Whole lines, as many as are available at once."""
    text, kept, lines, first = bytearray(PIECE + PADDING), 0, 0, True
    ended = False
    while not ended:
        have = _filled(raw, text, kept, interrupt)
        ended = have == kept
        size = text.rfind(b"\n", kept, have) + 1
        if ended and kept:
            text[kept] = ord("\n")
            size = kept + 1
        if size:
            array = np.frombuffer(text, np.uint8)
            yield Piece(name, text, array, 0, size, first, partial(int, lines))
            del array
            lines, first = lines + text.count(b"\n", 0, size), False
        if not ended:
            text[: have - size] = text[size:have]
        kept = have - size
        if kept >= len(text) - PADDING - 1:  # a line that is longer than the buffer
            text = text + bytes(kept)


def _filled(raw: io.FileIO, text: bytearray, have: int, interrupt: Interrupt) -> int:
    """Reads what is available, at least one byte; returns the length of the text then.

    While it waits, it checks for Ctrl-C: a call of the system would go on waiting.
    """
    view, wait = memoryview(text)[: len(text) - PADDING - 1], LOOK
    while have < len(view):
        if interrupt.happened:
            raise KeyboardInterrupt
        ready = True
        with suppress(OSError):  # a file that cannot be waited for is always ready
            ready = bool(select.select([raw], [], [], wait)[0])
        if ready:
            got = raw.readinto(view[have:]) or 0
            have += got
            if not got:
                break
            wait = 0.0
        elif not wait:
            break
    return have


class _Stream:
    """A stream while it is learned from."""

    def __init__(
        self,
        config: Config,
        labels: Labels | None,
        model: PathLike | None,
        save_every: int | None,
        show: Show,
    ) -> None:
        self._config, self._labels, self._show = config, labels, show
        self._path, self._every = model, save_every
        self.learner: _Learner | None = None
        self.trace: list[Row] = []
        self._total = self._said = 0.0
        self._next_line, self._next_save = FIRST_LINE, save_every or 0
        self._began = time.monotonic()

    def learn_all(self, pieces: Iterable[Rows], interrupt: Interrupt, now: status.Doing) -> str:
        """Learns from all pieces; why it ended."""
        try:
            for rows in pieces:
                self._learn(rows)
                assert self.learner is not None
                now.at(None, f"{self.learner.done:,} rows, loss {self.mean_loss:.4g}")
                if interrupt.happened:
                    return "interrupted"
                limit = self._config.time_limit
                if limit is not None and time.monotonic() - self._began >= limit:
                    return "time"
        except KeyboardInterrupt:
            return "interrupted"
        return "end"

    @property
    def mean_loss(self) -> float:
        """The mean loss of all rows so far."""
        return self._total / self.learner.done if self.learner else 0.0

    def _learn(self, rows: Rows) -> None:
        if self.learner is None:
            self.learner = _Learner(rows, self._config, self._labels)
        begin = 0
        while begin < len(rows):  # in steps up to the next row at which a line or a model is due
            due = [self._next_line, *([self._next_save] if self._every else [])]
            end = min(len(rows), begin + max(1, min(due) - self.learner.done))
            part = rows if (begin, end) == (0, len(rows)) else rows.part(np.arange(begin, end))
            self._total += self.learner.learn(part, self._next_line)
            begin = end
            if self.learner.done >= self._next_line:
                self.say()
                self._next_line *= 2
            if self._every and self.learner.done >= self._next_save:
                assert self._path is not None
                self.learner.model("unfinished").save(self._path)
                self._next_save += self._every

    def say(self) -> None:
        """Adds a row to the trace, unless there is nothing new."""
        assert self.learner is not None
        done = self.learner.done
        before = self.trace[-1]["rows"] if self.trace else 0
        if done == before:
            return
        recent = (self._total - self._said) / (done - before)
        self._said = self._total
        row = {"rows": done, "loss": self.mean_loss, "recent_loss": recent}
        row |= {"columns": self.learner.columns, "seconds": time.monotonic() - self._began}
        self.trace.append(row)
        self._show(row)


class _Learner:
    """The weights, which grow with the columns."""

    def __init__(self, rows: Rows, config: Config, labels: Labels | None) -> None:
        try:
            self._problem = LinearProblem(rows, None, config, labels, centers=False)
        except DataError as error:
            raise self._with_remedy(error, labels) from None
        self._problem.prepare()
        self._eta0 = config.eta0 or self._problem.find_rate()
        self._config, self._labels = config, labels
        self.columns, self._base = 0, rows.index_base
        self._width = self._problem.width
        self._weights = zeros_on_a_line(self._width)  # the intercept, which stands last
        self.done = self._since = 0

    def learn(self, rows: Rows, line: int) -> float:
        """Learns from some rows before the next printed line; returns the sum of their losses."""
        problem = self._problem
        if self._base == 1 and rows.index_base == 0:  # the first column turned out to be number 0
            self._grow(self.columns + 1, 1)
        self._base = rows.index_base
        if rows.columns > self.columns:
            self._grow(rows.columns, 0)
        try:
            problem.goes_on_with(rows)
        except DataError as error:
            raise self._with_remedy(error, self._labels) from None
        order = np.arange(len(rows), dtype=np.uint32)
        share = Share(1, 0.0, 1.0, self._since, self._eta0)
        task = problem.task(order, share)
        # Every row moves the intercept. It settles as rows go on, not at their end
        calm = 1.0 if self._config.schedule == "sqrt" else (FIRST_LINE / line) ** 0.5
        plan = task.plan
        plan = plan._replace(end=float("inf"), rows=1.0, intercept=plan.intercept * calm)
        arrays = self._weights, self._weights, *(2 * [np.zeros(self._width, np.float32)])
        stored = view(Stored, *arrays, np.empty(0, np.float32))
        span, clock = view(Span, 0, len(rows)), view(Clock, self.done, 1)
        kernel = shared_loop(problem.step)
        loss = float(kernel(task._replace(plan=plan), span, stored, clock, NO_SNAPSHOTS))
        self.done += len(rows)
        if not np.isfinite(loss):
            raise DivergenceError(
                f"the weights overflowed within the first {self.done:,} rows: the learning rate "
                f"eta0 = {self._eta0:g} is too large for them. Give a smaller eta0"
            )
        if self._scale < LEAST_SCALE:
            self._weights[: -self._width] *= np.float32(self._scale)
            self._since = self.done
        return loss

    @property
    def _scale(self) -> float:
        """The share of the stored weights that the penalty has left since they were unscaled."""
        return self._problem.scale(Now(self.done, self._since, self._eta0))

    def _grow(self, columns: int, first: int) -> None:
        """Makes room for more columns; the first known column moves to place `first`."""
        width = self._width
        grown = zeros_on_a_line((columns + 1) * width)
        place = slice(first * width, (first + self.columns) * width)
        grown[place] = self._weights[: self.columns * width]
        grown[-width:] = self._weights[-width:]
        self._weights, self.columns = grown, columns

    def model(self, reason: str) -> LinearModel:
        """The model so far."""
        whole = self._weights.copy()
        whole[: -self._width] *= np.float32(self._scale)
        about = {
            "options": self._config.as_dict() | {"eta0": self._eta0},
            "data": {"name": "a stream", "rows": self.done, "columns": self.columns},
            "versions": versions(),
            "trace": {"reason": reason, "epochs": 1, "last": {}},
        }
        return self._problem.model({"weights": whole}, about)

    @staticmethod
    def _with_remedy(error: DataError, labels: Labels | None) -> DataError:
        if "label" not in str(error) or labels is not None:
            return error
        return DataError(
            f"{error}. The classes of a stream are those of its first rows: give all of them as "
            "labels"
        )
