"""A few rows, on which to try rates and to compare weights, for next to nothing."""

import math
from collections.abc import Sequence
from functools import partial
from threading import local
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.rows import Rows
from hogwild.kernels import linear as kernels
from hogwild.kernels import rows as row_kernels
from hogwild.problems import losses, schedules
from hogwild.problems.rate_search import best_rate
from hogwild.threads import in_shares, side_by_side

NONZEROS = 1_000_000  # about, in the sample
COMPARED = 8  # one in so many of all rows, at most, is in the sample that weights are compared on
TRIED = 8000  # rows, at most, to try rates on
PIECES = 16  # that a trial goes in; the mean is over the ends of the later half of them
FETCHING = 8, 0, 0  # rows ahead that are fetched, no more lines than they have; and no weights
DOUBT = 2.0  # standard errors that a gain on the sample must be to be believed
FEW_COLUMNS = 1 << 17  # with more, the sample is renumbered to its own columns


class Point(NamedTuple):
    """What is known of some weights and an intercept: losses of rows, and the weights' length."""

    losses: npt.NDArray[np.float64]
    squared_norm: float


# Weights, an intercept, and the squared length of the weights
Candidate = tuple[npt.NDArray[np.float32], np.float32, float]


class Sample:
    """A few rows, drawn at random."""

    def __init__(
        self,
        rows: Rows,
        targets: npt.NDArray[np.float32],
        config: Config,
        intercept_share: float,
        threads: int = 1,
    ) -> None:
        size = len(rows)
        mean_length = max(1.0, rows.nonzeros / size)
        most = max(16, int(NONZEROS / mean_length))
        picker = np.random.default_rng(config.seed)
        chosen = picker.choice(size, min(size, most), replace=False)
        indptr, indices, values = rows.gather(chosen.astype(np.uint64), threads)
        self._columns = rows.columns
        self._used: npt.NDArray[np.uint32] | None = None
        if rows.columns > FEW_COLUMNS:
            self._used = _renumbered(indices, rows.columns)
            self._columns = max(1, len(self._used))
        self._data = indptr, indices, values, targets[chosen]
        self._size = len(chosen)
        self._compared = min(self._size, max(TRIED // COMPARED, size // COMPARED))
        self._l2 = float(config.l2 or 0.0)
        self._loss = losses.code(config.loss_name)
        self._schedule = schedules.code(str(config.schedule))
        self._intercept_share = intercept_share

    def points(self, candidates: Sequence[Candidate], threads: int) -> list[Point]:
        """What is known of some weights; so many threads find it out side by side."""
        weights = [some for some, _, _ in candidates]
        intercepts = [intercept for _, intercept, _ in candidates]
        if self._used is not None:
            weights = side_by_side(
                (partial(np.take, some, self._used) for some in weights), threads
            )
        look = partial(self._losses, weights, intercepts)
        losses_of_each = np.concatenate(in_shares(look, self._compared, threads), axis=1)
        norms = [norm for _, _, norm in candidates]
        return [Point(*point) for point in zip(losses_of_each, norms, strict=True)]

    def _losses(
        self,
        weights: list[npt.NDArray[np.float32]],
        intercepts: list[np.float32],
        begin: int,
        end: int,
    ) -> npt.NDArray[np.float64]:
        """The losses of some rows, a line for each of some weights."""
        more = kernels.POINTS - len(weights)  # which are not looked at
        points = tuple(weights + more * weights[:1]), tuple(intercepts + more * intercepts[:1])
        found = np.empty((len(weights), end - begin))
        flat = found.reshape(-1)
        kernels.losses_of(self._data, begin, end, *points, len(weights), self._loss, flat)
        return found

    def sure_gain(self, present: Point, other: Point, doubt: float = DOUBT) -> float:
        """By how much the objective is lower at another point, less what may well be chance."""
        with np.errstate(all="ignore"):  # where training diverges
            gains = present.losses - other.losses
            mean, chance = gains.mean(), doubt * gains.std() / math.sqrt(len(gains))
        norms = present.squared_norm, other.squared_norm
        if not math.isfinite(norms[0]) and math.isfinite(norms[1]):
            return math.inf
        gain = float(mean) + 0.5 * self._l2 * (norms[0] - norms[1]) - chance
        return gain if math.isfinite(gain) else -math.inf

    def best_rate(self, threads: int) -> float:
        """A first rate: learned with on one half of the sample, and judged on the other."""
        # The fewer rows, the less they may say against the guess
        most = max(4.0, self._size / 32)
        room = local()  # of each thread, used again: memory that is new takes longest of all
        return best_rate(partial(self._objective_after, room), self._guess(), most, threads)

    def _guess(self) -> float:
        """One over the mean squared length of a row, as a power of two."""
        mean_square = float(kernels.squared_norm(self._data[2])) / self._size
        nearest = 2.0 ** round(-math.log2(mean_square)) if mean_square else 1.0
        return min(1e6, max(1e-9, nearest))

    def _objective_after(self, room: local, rate: float) -> float:
        """The objective on the one half, after learning from the other at this rate.

        It is that of the last weights or of their mean, whichever is lower: on noisy data the last
        ones alone would call for next to no learning.
        """
        size = min(self._size, TRIED)
        # With very few rows, the same ones must do for both
        count, judged = (size // 2, size // 2) if size >= 16 else (size, 0)
        if not hasattr(room, "arrays"):
            room.arrays = [np.empty(length, np.float32) for length in 2 * (self._columns, 1)]
        for array in room.arrays:
            array[:] = 0
        weights, intercept, mean, mean_intercept = room.arrays
        plan = (self._schedule, rate, self._l2, self._intercept_share)
        how = self._loss, FETCHING, plan
        order = np.arange(count, dtype=np.uint32)
        kernels.try_out(self._data, order, how, PIECES, tuple(room.arrays))
        points = [weights, mean], [intercept[0], mean_intercept[0]]
        found = self._losses(*points, judged, size)
        penalties = [0.5 * self._l2 * float(kernels.squared_norm(some)) for some in points[0]]
        with np.errstate(all="ignore"):  # where it diverges
            objectives = found.mean(axis=1) + penalties
        return min(value if math.isfinite(value) else math.inf for value in objectives.tolist())


def _renumbered(indices: npt.NDArray[np.uint32], columns: int) -> npt.NDArray[np.uint32]:
    """Renumbers columns to those that occur, which it returns."""
    words = -(-columns // int(row_kernels.WORD))
    bits, before = np.zeros(words, np.uint64), np.empty(words, np.uint32)
    used = np.empty(min(columns, len(indices)), np.uint32)
    return used[: row_kernels.renumber(indices, bits, before, used)]
