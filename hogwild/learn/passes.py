"""Passes over all rows, by threads: each sums over fixed shards of the rows in its own memory.

Shards depend on the data alone, and their sums are added in order. So the result is the same, byte
for byte, for any number of threads.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.kernels import passes as kernels
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import Span, view
from hogwild.learn.cholesky import is_packed
from hogwild.learn.heads import Heads, room_on_a_line
from hogwild.learn.sets import Set
from hogwild.threads import share_of, side_by_side

Doubles = npt.NDArray[np.float64]
T = TypeVar("T")
Bias = Any  # the intercept: a number, or one for each class

TRIES = 60  # of intercepts
ROUNDING = 1e-14  # share of a loss: less than that is no progress
BESIDE = 1e-9  # how far beside a kink slopes are asked for
MOST_SHARDS = 8
# Non-zeros of a shard, at least: with fewer, threads take longer to begin than they save
SHARD = 200_000
SMALL = 256  # columns: memory for matrices of more is not kept
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


class Subgradient(NamedTuple):
    """What a subgradient of the mean loss at some scores is made of.

    Attributes:
        product: the mean of loss - slope * score.
        slope: the mean of the slopes.
        gradient: the mean of slope * row.
    """

    product: float
    slope: float
    gradient: Doubles


class Shards:
    """The rows of a set in shards, and sums over them.

    Attributes:
        threads: that may be used.
        size: the number of rows.
    """

    def __init__(self, data: Set, columns: int, heads: int = 1) -> None:
        self.threads = 1
        self.size = len(data)
        self._data, self._columns = data, columns
        self._spans = _spans(data, columns, heads)
        # Memory for what shards add up, by its size and type
        self._rooms: dict[tuple[int, Any], npt.NDArray[Any]] = {}

    @property
    def _rows(self) -> Any:
        return self._data.view

    def _sums(self, size: int, add: Callable[..., T]) -> tuple[list[T], Doubles]:
        """What `add(span, out)` returns for each shard, and the sum of what it added to zeros.

        The next call may overwrite the memory of the sum.
        """

        room, found = self._added_by_shards(size, add, np.float64)
        return found, room[0] if len(room) == 1 else room.sum(axis=0)

    def _added_by_shards(
        self, size: int, add: Callable[..., T], kind: Any
    ) -> tuple[npt.NDArray[Any], list[T]]:
        """What each shard added to zeros, a line each; and what `add(span, out)` returned."""

        def added(span: Any, out: npt.NDArray[Any]) -> T:
            out.fill(0)
            return add(span, out)

        if (size, kind) not in self._rooms:
            self._rooms[size, kind] = room_on_a_line(len(self._spans) * size, kind)
        room = self._rooms[size, kind].reshape(len(self._spans), size)
        tasks = [partial(added, span, out) for span, out in zip(self._spans, room, strict=True)]
        return room, side_by_side(tasks, self.threads)

    def _over_shards(self, work: Callable[[Any], T]) -> list[T]:
        """What `work` returns for each shard of the rows."""
        return side_by_side([partial(work, span) for span in self._spans], self.threads)


class Passes(Shards):
    """Sums over the rows of a set.

    With an intercept, which is not penalized and always where its derivative is 0, the Hessian is
    that of the mean loss with the best intercept for the weights:

        H = X'D X / n - c c' / d,   c = X'D 1 / n,   d = 1'D 1 / n

    Attributes:
        seconds: the second derivatives of the rows, from the last `slope`.
        edge: c / d from the last `slope`; None where the intercept does not move.
    """

    def __init__(
        self, heads: Heads, data: Set, columns: int, parameter: float, intercept: bool = False
    ) -> None:
        super().__init__(data, columns)
        self.edge: Doubles | None = None
        self.seconds = np.empty(0)
        self._intercept, self._is_quadratic = intercept, heads.loss == "squared"
        self._parameter = parameter
        given = heads.loss, data.weighted
        self._gradient, self._along = kernels.gradient(*given), kernels.along(*given)
        self._slopes = kernels.slopes(*given)
        self._errors = kernels.errors(heads.loss, heads.kind, data.weighted)

    def read(self, stored: npt.NDArray[np.float32]) -> tuple[Doubles, float]:
        """The stored weights and intercept."""
        both = stored.astype(np.float64)
        return both[:-1], float(both[-1])

    def write(self, stored: npt.NDArray[np.float32], weights: Doubles, bias: float) -> None:
        """Stores weights and an intercept."""
        stored[:-1], stored[-1] = weights, bias

    def kernels(self, smooth: bool = True) -> list[Kernel]:
        """All that will be called; for a loss that is not smooth, derivatives are given."""
        ours = [self._gradient, self._along] if smooth else [kernels.spread]
        return [*ours, self._errors, kernels.hessian_product, kernels.scores_of]

    @property
    def of_subgradients(self) -> list[Kernel]:
        """All that will be called where only slopes are asked for."""
        return [self._slopes, kernels.spread, self._along, self._errors, kernels.scores_of]

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
        given = scores, bias, self._parameter, np.empty(self.size), self.seconds
        sums, total = self._planes(lambda *to: self._gradient(self._rows, to[0], *given, to[1]))
        found = Slope(*(sum(some) / self.size for some in zip(*sums, strict=True)), *total)
        self._take_edge(found.second, found.border)
        return found

    def _take_edge(self, second: float, border: Doubles) -> None:
        moves = self._intercept and second > 0.0
        self._border, self.edge = border, border / second if moves else None

    def diagonal(self, slope: Slope) -> Doubles:
        """That of the Hessian; it is not below 0 by rounding."""
        if self.edge is None:
            return slope.diagonal
        return np.maximum(slope.diagonal - self.edge * slope.border, 1e-12 * slope.diagonal)

    def turn(self, changes: Doubles) -> Bias:
        """How the best intercept changes where scores change, by its first derivative."""
        if self.edge is None:
            return 0.0
        return -float(kernels.inner(self.seconds, changes)) / float(np.sum(self.seconds))

    def subgradient(self, scores: Doubles, bias: float) -> Subgradient:
        """A subgradient at scores + bias; one pass.

        At the best intercept slopes jump, and the mean of all slopes jumps from below 0 to above 0.
        So some mix of the slopes on both sides has a mean of 0.
        """
        near = BESIDE * (1.0 + abs(bias)) * self._intercept
        below = self._slopes_at(scores, bias - near)
        beyond = self._slopes_at(scores, bias + near) if near else below
        (slopes, *low), (above, *high) = below, beyond
        share = high[2] / (high[2] - low[2]) if low[2] < 0.0 < high[2] else 1.0
        slopes = share * slopes + (1.0 - share) * above
        loss, product, slope = (
            share * a + (1.0 - share) * b for a, b in zip(low, high, strict=True)
        )
        gradient = self.spread(slopes, np.zeros(self.size))[0]
        return Subgradient(loss - product, slope, gradient)

    def _slopes_at(self, scores: Doubles, bias: float) -> tuple[Doubles, float, float, float]:
        """The slopes of the rows; the means of losses, of slope * score and of slopes."""
        slopes = np.empty(self.size)
        given = scores, bias, self._parameter, slopes
        parts = self._over_shards(lambda span: self._slopes(self._rows, span, *given))
        loss, product, slope = (sum(some) / self.size for some in zip(*parts, strict=True))
        return slopes, loss, product, slope

    def spread(self, slopes: Doubles, seconds: Doubles) -> Doubles:
        """The means of slope * row, of second * row and of second * row^2; one pass.

        Products and the Hessian are then with these second derivatives.
        """
        self.seconds = seconds
        given = slopes, seconds
        return self._planes(lambda *to: kernels.spread(self._rows, to[0], *given, to[1]))[1]

    def _planes(self, add: Callable[..., T]) -> tuple[list[T], Doubles]:
        """What is returned for each shard, and the means of what is added to each plane."""
        found, total = self._sums(kernels.PLANES * self._columns, add)
        planes = total.reshape(-1, kernels.PLANES)[:, :-1]  # the last one is 0
        return found, np.ascontiguousarray(planes.T) / self.size

    def product(self, vector: Doubles, dots: Doubles) -> Doubles:
        """The Hessian times a vector, until the next product; one pass.

        `dots` gets the products of the rows with the vector.
        """
        given = vector, self.seconds, dots
        _, total = self._sums(
            self._columns,
            lambda *to: kernels.hessian_product(self._rows, to[0], *given, to[1]),
        )
        total /= self.size
        if self.edge is not None:
            total -= self._border * float(kernels.inner(self.edge, vector))
        return total

    def hessian(self) -> Doubles:
        """The Hessian as a matrix; one pass."""
        total = self.bordered()
        border, corner = total[:-1, -1], float(total[-1, -1])
        if self._intercept and corner > 0.0:
            return total[:-1, :-1] - np.outer(border, border / corner)
        return total[:-1, :-1].copy()

    def bordered(self) -> Doubles:
        """The same by weights and intercept, whose line is the last; one pass."""
        size = self._columns + 1
        add = self._add_packed if self._is_packed else self._add_products
        _, found = self._sums(size**2, add)
        total = found.reshape(size, size)
        if size > SMALL:
            del self._rooms[size**2, np.float64]  # of every head, and large
        return (total + total.T) / self.size

    def products_of_rows(self) -> Doubles:
        """The products of all rows with each other, X X', as a matrix; for few rows."""
        from scipy.sparse import csr_matrix  # loaded where it is needed

        rows, begins = self._rows, self._rows.begins.astype(np.int64)
        lengths = rows.ends.astype(np.int64) - begins
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1]) + np.repeat(begins - (ends - lengths), lengths)
        parts = rows.values[places].astype(np.float64), rows.columns[places], np.append(0, ends)
        matrix = csr_matrix(parts, (self.size, self._columns))
        found: Doubles = (matrix @ matrix.T).toarray()
        return found

    @property
    def of_matrix(self) -> Kernel:
        """What `hessian` and `bordered` call."""
        return kernels.add_packed_products if self._is_packed else kernels.add_products

    @property
    def _is_packed(self) -> bool:
        return is_packed(self._data.nonzeros, self.size, self._columns)

    def _add_products(self, span: Any, out: Doubles) -> None:
        kernels.add_products(self._rows, span, self.seconds, out)

    def _add_packed(self, span: Any, out: Doubles) -> None:
        count = int(kernels.PACKED)
        room = np.empty(count * (self._columns + 1)), np.empty(count)
        kernels.add_packed_products(self._rows, span, self.seconds, *room, out)

    def along(
        self, scores: Doubles, changes: Doubles, step: float, bias: float, share: float, turn: float
    ) -> tuple[float, float, float]:
        """The mean loss at scores + step * changes + bias; no pass over the non-zeros.

        And its first and second derivative in the direction share * changes + turn.
        """
        given = scores, changes, step, bias, share, turn, self._parameter
        return self._means(lambda span: self._along(self._rows, span, *given))

    def _means(
        self, work: Callable[[Any], tuple[float, float, float]]
    ) -> tuple[float, float, float]:
        """The means of three numbers that are returned for each shard as sums."""
        one, two, three = (
            sum(some) / self.size for some in zip(*self._over_shards(work), strict=True)
        )
        return one, two, three

    def loss(self, scores: Doubles, bias: Bias) -> float:
        """The mean loss at scores + bias."""
        return self.along(scores, scores, 0.0, bias, 0.0, 0.0)[0]

    def best_bias(self, scores: Doubles, bias: Bias) -> Bias:
        """The intercept whose derivative is 0, by Newton's method, from a first one."""
        low, high, wide = -math.inf, math.inf, 1.0
        for _ in range(TRIES * self._intercept):
            loss, first, second = self.along(scores, scores, 0.0, bias, 0.0, 1.0)
            if first == 0.0:
                break
            low, high = (low, bias) if first > 0.0 else (bias, high)
            move = -first / second if second > 0.0 else math.inf
            if abs(move) > wide and not self._is_quadratic:
                move, wide = -math.copysign(wide, first), 2.0 * wide
            after = bias + move
            if after == bias:
                break
            if not low < after < high:
                after = 0.5 * (low + high)
            if after in (low, high):
                break
            bias = after
            if abs(first * move) <= ROUNDING**2 * abs(loss):
                break
        return bias

    def errors(self, scores: Doubles, bias: Bias) -> Doubles:
        """The sums of the two errors of all rows."""
        parts = self._over_shards(lambda span: self._errors(self._rows, span, scores, bias))
        return np.array([sum(some) for some in zip(*parts, strict=True)])


def _spans(data: Set, columns: int, heads: int = 1) -> list[Span]:
    """Shards with the same number of rows, or one more."""
    least = max(SHARD // heads, SHARD_OF_COLUMNS * columns)
    most = max(1, min(MOST_SHARDS, len(data), data.nonzeros // least))
    count = 1 << (most.bit_length() - 1)  # two or four threads get as much each
    return [view(Span, *share_of(len(data), count, number)) for number in range(count)]
