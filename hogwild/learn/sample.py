"""A small sample of the rows, to try learning rates and to compare weights at little cost."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from hogwild.computed import cached_property
from hogwild.config import Config
from hogwild.data.rows import Rows
from hogwild.data.used_columns import Numbering
from hogwild.kernels.evaluate import squared_norm
from hogwild.kernels.views import RowView, Span, view
from hogwild.learn.heads import Heads, zeros_on_a_line
from hogwild.learn.penalties import Penalty
from hogwild.learn.problem import Doubles
from hogwild.learn.sets import Set
from hogwild.threads import in_shares, side_by_side

NONZEROS = 700_000  # about, in the sample
COMPARED = 8  # at most one of 8 rows is in the sample on which weights are compared
LEAST_COMPARED = 1000  # rows, where there are as many
TRIED = 8000  # rows, at most, to try rates on
DOUBT = 0.25  # standard errors that are taken off a gain on the sample
CLOSE = 2.0  # standard errors: weights that differ by less are compared on more rows
FEW_COLUMNS = 1 << 17  # with more, the sample is renumbered to its own columns


Arrays = Sequence[npt.NDArray[np.float32]]


class Sample:
    """A few rows, drawn at random.

    Attributes:
        rows: the rows with their targets; their columns may be numbered anew.
        size: how many rows there are.
        columns: how many columns.
        threads: how many look at the rows side by side.
    """

    def __init__(
        self, rows: Rows, data: Set, heads: Heads, config: Config, threads: int = 1
    ) -> None:
        size = len(rows)
        mean_length = max(1.0, rows.nonzeros / size)
        self.threads = threads
        self._heads = heads
        self._weighted = data.weighted
        self._parameter, self._penalty = config.loss_value, Penalty.of(config.as_dict())
        most = max(16, int(NONZEROS / mean_length / heads.effort**0.5))
        picker = np.random.default_rng(config.seed)
        chosen = rows.drawn(picker, min(size, most))
        indptr, indices, values = rows.gather(chosen.astype(np.uint64), threads)
        self.columns = rows.columns
        self._used = np.empty(0, np.uint32)  # where the sample is renumbered, its columns
        if rows.columns * heads.width > FEW_COLUMNS:
            used = Numbering.of(indices, rows.columns)
            assert used is not None
            indices, self.columns = used.places(indices), max(1, len(used.columns))
            self._used = np.append(used.columns, np.uint32(rows.columns))  # and the intercept
        taken = data.view.targets.reshape(size, -1)[chosen].ravel()
        self.rows = view(RowView, indptr[:-1], indptr[1:], indices, values, taken)
        self.size = len(chosen)
        share = int(COMPARED * heads.effort)
        self._compared = min(self.size, max(LEAST_COMPARED, size // share))

    def sure_gains(self, candidates: Arrays, squares: Doubles, default: int) -> Doubles:
        """By how much the objective is lower with some weights than with the default ones.

        What may be chance is subtracted. Weights close to the best are compared on all rows of the
        sample. `squares`: the squared lengths of the weights, without the intercept, which stands
        behind them.
        """
        weights = list(candidates)
        if len(self._used):
            weights = side_by_side((partial(self._taken, some) for some in weights), self.threads)
        less = self._penalty.of_squares(squares)
        losses = self._side_by_side(weights, self._compared)
        if self._compared < self.size and _are_close(losses, less):
            losses = self._side_by_side(weights, self.size)
        gains, chance = _gains(losses, less, default)
        with np.errstate(all="ignore"):  # where training diverges
            sure: Doubles = gains - DOUBT * chance
        sure[~np.isfinite(sure)] = -math.inf
        if not math.isfinite(squares[default]):
            sure[np.isfinite(squares)] = math.inf
        sure[default] = 0.0
        return sure

    def _side_by_side(self, weights: Arrays, size: int) -> Doubles:
        """The losses of the first rows, a line for each of some weights."""
        look = partial(self._losses, self._heads, weights)
        return np.concatenate(in_shares(look, size, self.threads), axis=1)

    def _taken(self, weights: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The weights of the columns that the sample has."""
        width = self._heads.width
        taken = zeros_on_a_line(width * len(self._used)).reshape(-1, width)
        return np.take(weights.reshape(-1, width), self._used, axis=0, out=taken).reshape(-1)

    def _losses(self, heads: Heads, weights: Arrays, begin: int, end: int) -> Doubles:
        """The losses of some rows, a line for each of some weights."""
        span = view(Span, begin, end)
        return heads.losses(self.rows, self._weighted, span, weights, self._parameter)

    @cached_property
    def mean_square(self) -> float:
        """The mean squared length of a row."""
        return float(squared_norm(self.rows.values)) / self.size

    def objectives(self, heads: Heads, weights: Arrays, size: int, times: float) -> Doubles:
        """The objective of some heads on the first rows, for each of some weights.

        The penalty is multiplied by `times`.
        """
        found = self._losses(heads, weights, 0, size)
        penalties = [times * self._penalty.value(some[: -heads.width]) for some in weights]
        with np.errstate(all="ignore"):  # where it diverges
            objectives: Doubles = found.mean(axis=1) + penalties
        return objectives


def _gains(losses: Doubles, penalties: Doubles, base: int) -> tuple[Doubles, Doubles]:
    """By how much objectives are below that of the base, on some rows; and the standard errors."""
    with np.errstate(all="ignore"):  # where training diverges
        gains = losses[base] - losses
        chance = gains.std(axis=1) / math.sqrt(losses.shape[1])
        return gains.mean(axis=1) + (penalties[base] - penalties), chance


def _are_close(losses: Doubles, penalties: Doubles) -> bool:
    """Whether it may be chance which of some weights are best."""
    with np.errstate(all="ignore"):
        best = int(np.argmin(losses.mean(axis=1) + penalties))
        gains, chance = _gains(losses, penalties, best)
        return int(np.sum(gains + CLOSE * chance >= 0)) > 1
