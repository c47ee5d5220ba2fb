"""A few rows, on which to try rates and to compare weights, for next to nothing."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from threading import local
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.rows import Rows
from hogwild.kernels import rows as row_kernels
from hogwild.kernels.evaluate import squared_norm
from hogwild.kernels.views import RowView, Span, view
from hogwild.problems.heads import Heads, zeros_on_a_line
from hogwild.problems.rate_search import best_rate
from hogwild.threads import in_shares, side_by_side

NONZEROS = 1_000_000  # about, in the sample
COMPARED = 8  # one in so many of all rows, at most, is in the sample that weights are compared on
TRIED = 8000  # rows, at most, to try rates on
DOUBT = 2.0  # standard errors that a gain on the sample must be to be believed
FEW_COLUMNS = 1 << 17  # with more, the sample is renumbered to its own columns


class Options(NamedTuple):
    """What a sample must know of the objective."""

    heads: Heads
    parameter: float
    l2: float
    weighted: bool
    seed: int


class Point(NamedTuple):
    """What is known of some weights and an intercept: losses of rows, and the weights' length."""

    losses: npt.NDArray[np.float64]
    squared_norm: float


# Weights with the intercept behind them, and the squared length of the weights
Candidate = tuple[npt.NDArray[np.float32], float]
# A trial learns from the rows of an order at a rate, and writes the last weights and a
# mean of them
Arrays = Sequence[npt.NDArray[np.float32]]
Trial = Callable[[RowView, npt.NDArray[np.uint32], float, Arrays], None]


class Sample:
    """A few rows, drawn at random."""

    def __init__(
        self,
        rows: Rows,
        targets: npt.NDArray[np.float32],
        options: Options,
        threads: int = 1,
    ) -> None:
        size = len(rows)
        mean_length = max(1.0, rows.nonzeros / size)
        self._heads = options.heads
        most = max(16, int(NONZEROS / mean_length / options.heads.effort**0.5))
        picker = np.random.default_rng(options.seed)
        chosen = picker.choice(size, min(size, most), replace=False)
        indptr, indices, values = rows.gather(chosen.astype(np.uint64), threads)
        self._options = options
        self._columns = rows.columns
        self._used = np.empty(0, np.uint32)  # where the sample is renumbered, its columns
        if rows.columns * options.heads.width > FEW_COLUMNS:
            used = _renumbered(indices, rows.columns)
            self._columns = max(1, len(used))
            self._used = np.append(used, np.uint32(rows.columns))  # and the intercept
        taken = targets.reshape(size, -1)[chosen].ravel()
        self._rows: RowView = view(RowView, indptr[:-1], indptr[1:], indices, values, taken)
        self._size = len(chosen)
        share = int(COMPARED * options.heads.effort)
        self._compared = min(self._size, max(TRIED // COMPARED, size // share))

    def points(self, candidates: Sequence[Candidate], threads: int) -> list[Point]:
        """What is known of some weights; so many threads find it out side by side."""
        weights = [some for some, _ in candidates]
        if len(self._used):
            weights = side_by_side((partial(self._taken, some) for some in weights), threads)
        look = partial(self._losses, self._heads, weights)
        losses_of_each = np.concatenate(in_shares(look, self._compared, threads), axis=1)
        norms = [norm for _, norm in candidates]
        return [Point(*point) for point in zip(losses_of_each, norms, strict=True)]

    def _taken(self, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The weights of the columns that the sample has."""
        width = self._heads.width
        taken = zeros_on_a_line(width * len(self._used)).reshape(-1, width)
        return np.take(weights.reshape(-1, width), self._used, axis=0, out=taken).reshape(-1)

    def _losses(
        self, heads: Heads, weights: Arrays, begin: int, end: int
    ) -> npt.NDArray[np.float64]:
        """The losses of some rows, a line for each of some weights."""
        options, span = self._options, view(Span, begin, end)
        return heads.losses(self._rows, options.weighted, span, weights, options.parameter)

    def sure_gain(self, present: Point, other: Point, doubt: float = DOUBT) -> float:
        """By how much the objective is lower at another point, less what may well be chance."""
        with np.errstate(all="ignore"):  # where training diverges
            gains = present.losses - other.losses
            mean, chance = gains.mean(), doubt * gains.std() / math.sqrt(len(gains))
        norms = present.squared_norm, other.squared_norm
        if not math.isfinite(norms[0]) and math.isfinite(norms[1]):
            return math.inf
        gain = float(mean) + 0.5 * self._options.l2 * (norms[0] - norms[1]) - chance
        return gain if math.isfinite(gain) else -math.inf

    def best_rate(self, trial: Trial, threads: int) -> float:
        """A first rate: learned with on one half of the sample, and judged on the other."""
        # The fewer rows, the less they may say against the guess
        most = max(4.0, self._size / 32)
        room = local()  # of each thread, used again: memory that is new takes longest of all
        objective = partial(self._objective_after, trial, room)
        return best_rate(objective, self._guess(), most, threads)

    def _guess(self) -> float:
        """One over the mean squared length of a row, as a power of two."""
        mean_square = float(squared_norm(self._rows.values)) / self._size
        nearest = 2.0 ** round(-math.log2(mean_square)) if mean_square else 1.0
        return min(1e6, max(1e-9, nearest))

    def _objective_after(self, trial: Trial, room: local, rate: float) -> float:
        """The objective on the one half, after learning from the other at this rate.

        It is that of the last weights or of their mean, whichever is lower: on noisy data the last
        ones alone would call for next to no learning.
        """
        size, few = min(self._size, TRIED), self._heads.few()
        # With very few rows, the same ones must do for both
        count, judged = (size // 2, size // 2) if size >= 16 else (size, 0)
        if not hasattr(room, "arrays"):
            length = (self._columns + 1) * few.width
            room.arrays = [zeros_on_a_line(length) for _ in range(2)]
        for array in room.arrays:
            array[:] = 0
        trial(self._rows, np.arange(count, dtype=np.uint32), rate, room.arrays)
        found = self._losses(few, room.arrays, judged, size)
        l2, last = self._options.l2, -few.width
        penalties = [0.5 * l2 * float(squared_norm(some[:last])) for some in room.arrays]
        with np.errstate(all="ignore"):  # where it diverges
            objectives = found.mean(axis=1) + penalties
        return min(value if math.isfinite(value) else math.inf for value in objectives.tolist())


def _renumbered(indices: npt.NDArray[np.uint32], columns: int) -> npt.NDArray[np.uint32]:
    """Renumbers columns to those that occur, which it returns."""
    words = -(-columns // int(row_kernels.WORD))
    bits, before = np.zeros(words, np.uint64), np.empty(words, np.uint32)
    used = np.empty(min(columns, len(indices)), np.uint32)
    return used[: row_kernels.renumber(indices, bits, before, used)]
