"""A few rows, on which to try rates and to compare weights, for next to nothing."""

import math
from collections.abc import Callable, Sequence
from threading import Thread
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.rows import Rows
from hogwild.kernels import linear as kernels
from hogwild.problems import losses, schedules

NONZEROS = 1_000_000  # about, in the sample
COMPARED = 8  # one in so many of all rows, at most, is in the sample that weights are compared on
TRIED = 8000  # rows, at most, to try rates on
PIECES = 16  # that a trial goes in; the mean is over the ends of the later half of them
FETCHING = 8, 0  # rows ahead, that are fetched into the cache; and no weights
DOUBT = 2.0  # standard errors that a gain on the sample must be to be believed
FEW_COLUMNS = 1 << 20  # with more, the sample is renumbered to its own columns


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
    ) -> None:
        size = len(rows)
        mean_length = max(1.0, rows.nonzeros / size)
        most = max(16, int(NONZEROS / mean_length))
        picker = np.random.default_rng(config.seed)
        chosen = picker.choice(size, min(size, most), replace=False)
        rows = rows.take(chosen)
        self._used: npt.NDArray[np.uint32] | None = None
        if rows.columns > FEW_COLUMNS:
            self._used, renumbered = np.unique(rows.indices, return_inverse=True)
            rows = Rows.from_arrays(rows.indptr, renumbered, rows.values, max(1, len(self._used)))
        self._data = rows.indptr, rows.indices, rows.values, targets[chosen]
        self._rows = rows
        few = min(len(rows), max(TRIED // COMPARED, size // COMPARED))
        self._compared = rows.indptr, rows.indices, rows.values, targets[chosen][:few]
        self._config = config
        self._l2 = float(config.l2 or 0.0)
        self._loss = losses.code(config.loss_name)
        self._schedule = schedules.code(str(config.schedule))
        self._intercept_share = intercept_share

    def points(self, candidates: Sequence[Candidate], threads: int) -> list[Point]:
        """What is known of some weights; so many threads find it out side by side."""
        size = len(self._compared[3])
        found = [Point(np.empty(size), norm) for _, _, norm in candidates]
        known = [
            (weights if self._used is None else weights[self._used], intercept)
            for weights, intercept, _ in candidates
        ]

        def look(part: int) -> None:
            share = size * part // threads, size * (part + 1) // threads
            for point, some in zip(found, known, strict=True):
                kernels.losses_of(self._compared, *share, *some, self._loss, point.losses)

        others = [Thread(target=look, args=(part,)) for part in range(1, threads)]
        for thread in others:
            thread.start()
        look(0)
        for thread in others:
            thread.join()
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

    def best_rate(self) -> float:
        """A first rate: learned with on one half of the sample, and judged on the other."""
        # The fewer rows, the less they may say against the guess
        most = max(4.0, len(self._rows) / 32)
        return best_rate(self._objective_after, self._guess(), most)

    def _guess(self) -> float:
        """One over the mean squared length of a row, as a power of two."""
        mean_square = float(np.sum(self._rows.values.astype(np.float64) ** 2)) / len(self._rows)
        nearest = 2.0 ** round(-math.log2(mean_square)) if mean_square else 1.0
        return min(1e6, max(1e-9, nearest))

    def _objective_after(self, rate: float) -> float:
        """The objective on the one half, after learning from the other at this rate.

        It is that of the last weights or of their mean, whichever is lower: on noisy data the last
        ones alone would call for next to no learning.
        """
        weights, mean = np.zeros((2, self._rows.columns), np.float32)
        intercept, mean_intercept = np.zeros((2, 1), np.float32)
        size = min(len(self._rows), TRIED)
        # With very few rows, the same ones must do for both
        count, judged = (size // 2, size // 2) if size >= 16 else (size, 0)
        order = np.arange(count, dtype=np.uint32)
        plan = (self._schedule, rate, self._l2, self._intercept_share)
        left_at = schedules.SCHEDULES[str(self._config.schedule)].left
        with np.errstate(all="ignore"):
            for piece in range(PIECES):
                begin, end = count * piece // PIECES, count * (piece + 1) // PIECES
                learning = self._data, order, begin, end, FETCHING, weights, intercept, self._loss
                kernels.learn(*learning, plan, (float(begin), 0.0, 1.0))
                left = left_at(float(end), 0.0, rate, self._l2)
                if 2 * piece >= PIECES:
                    kernels.add_scaled(weights, 2 * left / PIECES, 1.0, mean)
                    kernels.add_scaled(intercept, 2 / PIECES, 1.0, mean_intercept)
            weights *= np.float32(left)
            points = (weights, intercept[0]), (mean, mean_intercept[0])
            return min(self._objective(*point, judged, size) for point in points)

    def _objective(
        self, weights: npt.NDArray[np.float32], intercept: np.float32, begin: int, end: int
    ) -> float:
        total, _ = kernels.evaluate(self._data, begin, end, weights, intercept, self._loss)
        value = 0.5 * self._l2 * float(kernels.squared_norm(weights))
        value += float(total) / (end - begin)
        return value if math.isfinite(value) else math.inf


def best_rate(objective: Callable[[float], float], guess: float, most: float) -> float:
    """Doubles, else halves, the guess for as long as that lowers the objective (after Bottou).

    One rise is stepped over: on a sample the objective is not smooth. `most` is the largest factor
    between the guess and the answer.
    """
    best = (objective(guess), guess)
    for factor in (2.0, 0.5):
        rate, rises = guess, 0
        start = best
        while rises < 2 and 1 / most < rate / guess < most:
            rate *= factor
            tried = (objective(rate), rate)
            rises = 0 if tried < best else rises + 1
            best = min(best, tried)
        if best < start:
            break
    return best[1]
