"""Passes over all rows, by threads: each adds up fixed shards of the rows in memory of its own.

Shards depend on the data alone and are summed in their order, so sums are the same bytes for any
number of threads.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.kernels import passes as kernels
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import Span, view
from hogwild.learn.heads import Heads
from hogwild.learn.sets import Set
from hogwild.threads import share_of, side_by_side

Doubles = npt.NDArray[np.float64]
T = TypeVar("T")

MOST_SHARDS = 8
# Non-zeros of a shard, at least: with fewer, threads take longer to begin than they save
SHARD = 2_500_000
SHARD_OF_COLUMNS = 16  # the same, times the columns: sums of shards have to be added up


class Slope(NamedTuple):
    """The mean loss of scores, and what a Newton step needs of it.

    Attributes:
        loss: the mean loss.
        product: the mean of slope * score.
        slope, second: the means of first and second derivatives by the scores.
        gradient: the mean of slope * row.
        border: the mean of second * row.
        diagonal: the mean of second * row^2.
    """

    loss: float
    product: float
    slope: float
    second: float
    gradient: Doubles
    border: Doubles
    diagonal: Doubles


class Passes:
    """Sums over the rows of a set, for a loss with a second derivative.

    Attributes:
        threads: that may be used.
        seconds: the second derivatives of the rows, from the last `slope`.
    """

    def __init__(self, heads: Heads, data: Set, columns: int, parameter: float) -> None:
        self.threads = 1
        self.size = len(data)
        self._columns = columns
        self._data, self._parameter = data, parameter
        given = heads.loss, data.weighted
        self._gradient, self._along = kernels.gradient(*given), kernels.along(*given)
        self._errors = kernels.errors(heads.loss, heads.kind, data.weighted)
        self._spans = _spans(data, columns)
        self.seconds = np.empty(0)
        self._rooms: dict[int, Doubles] = {}  # memory for the sums of shards, by planes

    def kernels(self, smooth: bool = True) -> list[Kernel]:
        """All that will be called; for a loss that is not smooth, derivatives are given."""
        ours = [self._gradient, self._along] if smooth else [kernels.spread]
        return [*ours, self._errors, kernels.hessian_product, kernels.scores_of]

    @property
    def nonzeros(self) -> int:
        """Of all rows."""
        return int((self._rows.ends - self._rows.begins).sum())

    @property
    def targets(self) -> Doubles:
        """A line for each row: its target, and its weight where rows have weights."""
        found: Doubles = self._rows.targets.reshape(self.size, -1).astype(np.float64)
        return found

    def scores(self, weights: Doubles) -> Doubles:
        """The products of the rows with weights."""
        found = np.empty(self.size)
        self._over_shards(lambda span: kernels.scores_of(self._rows, span, weights, found))
        return found

    def slope(self, scores: Doubles, bias: float) -> Slope:
        """The loss and its derivatives at scores + bias; one pass."""
        if not len(self.seconds):
            self.seconds = np.empty(self.size)
        given = scores, bias, self._parameter, self.seconds
        sums, total = self._sums(kernels.PLANES, partial(self._gradient, self._rows), *given)
        planes = np.ascontiguousarray(total.reshape(-1, kernels.PLANES).T) / self.size
        return Slope(*(sum(some) / self.size for some in zip(*sums, strict=True)), *planes)

    def spread(self, slopes: Doubles, seconds: Doubles) -> Doubles:
        """The means of slope * row, of second * row and of second * row^2; one pass.

        Products and the Hessian are then with these second derivatives.
        """
        self.seconds = seconds
        _, total = self._sums(kernels.PLANES, partial(kernels.spread, self._rows), slopes, seconds)
        return np.ascontiguousarray(total.reshape(-1, kernels.PLANES).T) / self.size

    def product(self, vector: Doubles, dots: Doubles) -> Doubles:
        """The Hessian of the mean loss times a vector, until the next product; one pass.

        `dots` gets the products of the rows with the vector.
        """
        given = vector, self.seconds, dots
        _, total = self._sums(1, partial(kernels.hessian_product, self._rows), *given)
        total /= self.size
        return total

    def hessian(self, diagonal: Doubles) -> Doubles:
        """The Hessian of the mean loss as a matrix, given its diagonal; one pass."""
        add = partial(kernels.add_products, self._rows)
        total = self._sums(self._columns, add, self.seconds)[1].reshape(-1, self._columns)
        return (total + total.T) / self.size + np.diag(diagonal)

    def along(
        self, scores: Doubles, changes: Doubles, step: float, bias: float, share: float, turn: float
    ) -> tuple[float, float, float]:
        """The mean loss at scores + step * changes + bias; no pass over the non-zeros.

        And its first and second derivative in the direction share * changes + turn.
        """
        given = scores, changes, step, bias, share, turn, self._parameter
        parts = self._over_shards(lambda span: self._along(self._rows, span, *given))
        loss, first, second = (sum(some) / self.size for some in zip(*parts, strict=True))
        return loss, first, second

    def errors(self, scores: Doubles, bias: float) -> Doubles:
        """The sums of the two errors of all rows."""
        parts = self._over_shards(lambda span: self._errors(self._rows, span, scores, bias))
        return np.array([sum(some) for some in zip(*parts, strict=True)])

    @property
    def _rows(self) -> Any:
        return self._data.view

    def _sums(self, planes: int, add: Callable[..., T], *given: Any) -> tuple[list[T], Doubles]:
        """What `add` returns for each shard, and the sum of what it added to zeros.

        The sum may be in memory that the next one takes.
        """

        def added(span: Any, out: Doubles) -> T:
            out.fill(0.0)
            return add(span, *given, out)

        if planes not in self._rooms:
            self._rooms[planes] = np.empty((len(self._spans), planes * self._columns))
        room = self._rooms[planes]
        tasks = [partial(added, span, out) for span, out in zip(self._spans, room, strict=True)]
        found = side_by_side(tasks, self.threads)
        return found, room[0] if len(room) == 1 else room.sum(axis=0)

    def _over_shards(self, work: Callable[[Any], T]) -> list[T]:
        """What `work` returns for each shard of the rows."""
        return side_by_side([partial(work, span) for span in self._spans], self.threads)


def _spans(data: Set, columns: int) -> list[Span]:
    """Shards that have as many rows each."""
    nonzeros = int((data.view.ends - data.view.begins).sum())
    least = max(SHARD, SHARD_OF_COLUMNS * columns)
    count = max(1, min(MOST_SHARDS, len(data), nonzeros // least))
    return [view(Span, *share_of(len(data), count, number)) for number in range(count)]
