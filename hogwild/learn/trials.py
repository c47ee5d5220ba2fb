"""The search for a first learning rate, for any solver: it trains on a few rows at some rates."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from hogwild.kernels.views import RowView
from hogwild.learn.heads import Heads, zeros_on_a_line
from hogwild.learn.rate_search import best_rate
from hogwild.learn.sample import TRIED, Sample

Floats = npt.NDArray[np.float32]


class Room:
    """Arrays that trials reuse: new memory would take longer than all else."""

    def __init__(self, columns: int) -> None:
        self._size = columns + 1
        self._arrays: dict[tuple[int, ...], list[Floats]] = {}

    def zeros(self, *widths: int) -> list[Floats]:
        """An array of zeros for each width: that many for each column and for the intercept."""
        if widths not in self._arrays:
            self._arrays[widths] = [zeros_on_a_line(width * self._size) for width in widths]
        for array in self._arrays[widths]:
            array[:] = 0
        return self._arrays[widths]


# Learns from the rows of an order at a rate. The weights, with the intercept behind them, that may
# be what is taken in the end
Trial = Callable[[RowView, npt.NDArray[np.uint32], float, Room], Sequence[Floats]]


def first_rate(
    sample: Sample,
    trial: Trial,
    guess: float,
    heads: Heads,
    on_all: bool = False,
    times: float = 1.0,
) -> float:
    """The best of some rates: learned with on half of the sample, and judged on the same rows.

    An epoch is also judged on its own rows. For a trial to be comparable, the penalty of the few
    rows is multiplied by `times`, so that it weighs as much as in an epoch.

    `on_all`: judged on the other half as well, for a solver that takes no mean of its weights. Over
    many epochs such a solver fits the rows more closely than a trial does, at a rate that is too
    large for one pass.
    """
    # The fewer rows, the less they may say against the guess
    most = max(4.0, sample.size / 32)
    rooms = [Room(sample.columns) for _ in range(sample.threads)]
    objective = partial(_objective_after, sample, trial, rooms, heads, on_all, times)
    return best_rate(objective, guess, most, sample.threads)


def tried(sample: Sample, trial: Trial, heads: Heads, rate: float) -> float:
    """The objective on all of the sample that is tried on, after learning from half of it."""
    return _objective_after(sample, trial, [Room(sample.columns)], heads, True, 1.0, rate)


def learned_from(sample: Sample) -> int:
    """How many rows a trial learns from: the first of the sample."""
    return min(sample.size, TRIED) // 2 if sample.size >= 16 else sample.size


def power_of_two(wanted: float) -> float:
    """The nearest one; 1 for 0, where nothing is known."""
    return 2.0 ** round(math.log2(wanted)) if wanted else 1.0


def _objective_after(
    sample: Sample,
    trial: Trial,
    rooms: list[Room],
    heads: Heads,
    on_all: bool,
    times: float,
    rate: float,
) -> float:
    """The objective on the rows that were learned from at this rate, or on all.

    It is that of the last weights or of their mean, whichever is lower: on noisy data the last
    ones alone would call for next to no learning.
    """
    count = learned_from(sample)
    room = rooms.pop()  # as many as there are threads
    weights = trial(sample.rows, np.arange(count, dtype=np.uint32), rate, room)
    size = min(sample.size, TRIED) if on_all else count
    objectives = sample.objectives(heads, weights, size, times)
    rooms.append(room)
    return min(value if math.isfinite(value) else math.inf for value in objectives.tolist())
