"""The solver `ftrl`: follow the proximally regularized leader, with a rate for each weight.

With an L1 penalty, weights are exactly zero. They are not averaged: the mean of weights that are
zero at different times is not zero.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.computed import cached_property
from hogwild.config import ADAPTIVE, NORMALIZED
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import NO_FETCHING, Clock, RowView, Span, Stored, task_of, view
from hogwild.learn.losses import LOSSES
from hogwild.learn.penalties import Penalty
from hogwild.learn.problem import Doubles, Now
from hogwild.learn.sample import Sample
from hogwild.learn.solver import Outcome, Solver
from hogwild.learn.trials import Room, first_rate, power_of_two, tried
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.steps.ftrl import SIZE, D, Plan, count, finisher, ftrl, rate_at, width_of
from hogwild.steps.step import Step
from hogwild.threads import share_of

# Share of the rows that hold a column: the rate of such a column decides how often copies merge.
# Found on RCV1, a9a and Debian's paths: with far less, merging takes long; with far more, the first
# epochs are worse
SHARED = 0.01
LOOKED_AT = 4096  # rows and values, at most, from which typical sizes are estimated


class Ftrl(Solver):
    """FTRL-proximal: its step, and the numbers of each epoch."""

    effort = 4.0

    @property
    def step(self) -> Step:
        return ftrl(self._config.loss_name, self._data.weighted, self._normalized)

    @property
    def _normalized(self) -> bool:
        """Whether the size of a column's values makes no difference."""
        return self._config.schedule == NORMALIZED

    def outcome(self, columns: int, nonzeros: float) -> "Reading":
        """Weights are computed from sums."""
        return Reading(columns, self._normalized)

    def plan(self, since: float, eta0: float, *numbers: float) -> Plan:
        penalty = Penalty.of(self._config.as_dict())
        intercept, typical, square = math.sqrt(self.intercept_share), self._gradient, 1.0
        if self._normalized:  # a typical value is 1, and so is the intercept's
            intercept, typical = float(intercept > 0), self._slope
            square = (self._gradient / typical) ** 2
        growth = SHARED * typical**2
        given = eta0, typical, *penalty, since, growth, square, intercept, self._config.loss_value
        return view(Plan, *given)

    @cached_property
    def _slope(self) -> float:
        """The typical size of the slope of a row's loss at zero weights."""
        targets, parameter = self._data.view.targets, self._config.loss_value
        per_row = 1 + self._data.weighted
        some = _some(targets[::per_row])
        slopes = [LOSSES[self._config.loss_name].slope(0.0, float(t), parameter) for t in some]
        return float(np.sqrt(np.mean(np.square(slopes)))) or 1.0

    @cached_property
    def _gradient(self) -> float:
        """The typical size of a derivative at zero weights."""
        values = _some(self._data.some_values).astype(np.float64)
        return self._slope * float(np.sqrt(np.mean(values**2))) if values.any() else 1.0

    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`, of a column that many rows share."""
        return float(rate_at(self.plan(0.0, eta0), float(max(1, done))))

    def reading(self, now: Now) -> Plan:
        """The numbers of the next share of the epoch; all rows so far come before this share."""
        return self.plan(float(now.done), now.eta0)

    def start(self, stored: npt.NDArray[np.float32]) -> None:
        """Writes how rare each column is, and how large its values are."""
        pieces = self._data.pieces(view(Span, 0, len(self._data)))
        _note_columns(pieces, len(self._data), stored, self._normalized)

    def steady_steps(self, done: int, eta0: float) -> int:
        """A whole epoch: what a row adds does not depend on the step."""
        return len(self._data)

    def kernels(self) -> list[Kernel]:
        return [shared_loop(self.step)]

    def find_rate(self, sample: Sample) -> float:
        """A first rate, from the size of weights that change scores by a typical amount."""
        square = len(sample.rows.values) / sample.size if self._normalized else sample.mean_square
        length = math.sqrt(square)
        wanted = self._slope / LOSSES[self._config.loss_name].curvature
        guess = power_of_two(wanted / length if length else 0.0)
        return first_rate(sample, self._try_out, guess, self._heads, on_all=True)

    def tried(self, sample: Sample) -> float:
        return tried(sample, self._try_out, self._heads, self.find_rate(sample))

    def _try_out(
        self, rows: RowView, order: npt.NDArray[np.uint32], rate: float, room: Room
    ) -> list[npt.NDArray[np.float32]]:
        width, normalized = self.step.width, self._normalized
        sums, weights = room.zeros(width, 1)
        size = len(order)  # all rows
        _note_columns([(rows, view(Span, 0, size))], size, sums, normalized)
        bias, plan = np.zeros(width, np.float32), self.plan(0.0, rate)
        stored = view(Stored, sums, sums, bias, bias, sums[:0])
        heads = self._heads
        shape, own = heads.shape(self._data.weighted), heads.scratch(width)
        task = task_of(rows, order, own, shape, plan, NO_FETCHING)
        shared_loop(self.step)(task, view(Span, 0, size), stored, view(Clock, 0, 1), NO_SNAPSHOTS)
        span = view(Span, 0, len(weights))
        finisher(normalized)(sums, self.plan(size, rate), span, weights)
        return [weights]


def _note_columns(
    pieces: Iterable[tuple[RowView, Span]],
    size: int,
    stored: npt.NDArray[np.float32],
    normalized: bool,
) -> None:
    """Writes for each column: one in how many of `size` rows holds it, and the size of its values.

    The size of values is the root of their mean square; the intercept's is 1.
    """
    width = width_of(normalized)
    counts = np.zeros(len(stored) // width, np.uint32)
    squares = np.zeros(len(counts))
    for rows, span in pieces:
        count(rows, span, counts, squares)
    counts = np.maximum(counts, 1)
    stored[int(D) :: width] = size / counts
    if normalized:
        sizes = np.sqrt(squares / counts)
        stored[int(SIZE) :: width] = np.where(sizes > 0, sizes, 1)


def schedule_of(state: Arrays) -> str | None:
    """The schedule with a rate for each weight that a state was learned with, if it was."""
    if not {"stored", "weights"} <= state.keys():
        return None
    width = len(state["stored"]) // len(state["weights"])
    return {width_of(False): ADAPTIVE, width_of(True): NORMALIZED}.get(width)


class Reading(Outcome):
    """The weights that the stored numbers stand for at an epoch's end."""

    kept = ("stored", "weights")

    def __init__(self, columns: int, normalized: bool) -> None:
        self._size = columns + 1
        self._normalized = normalized

    def shared(self) -> Wanted:
        """The weights; what they are computed from is shared anyway."""
        return {"weights": (self._size, np.float32)}

    def kernels(self, alone: bool) -> list[Kernel]:
        return [finisher(self._normalized), count]

    def finish(
        self, shared: Arrays, reading: Any, snapshots: tuple[int, int] | None, part: int, parts: int
    ) -> Doubles:
        span = view(Span, *share_of(self._size, parts, part))
        finisher(self._normalized)(shared["stored"], reading, span, shared["weights"])
        return np.zeros(0)

    def name(self, shared: Arrays) -> str:
        return "weights"


def _some(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Some of the values, evenly spaced."""
    return values[:: max(1, len(values) // LOOKED_AT)]
