"""Passes over rows with K scores that depend on each other, as `learn/passes.py` has for one.

Weights, scores and directions are K numbers for each column or row, one after the other. Kernels
take those of columns in single precision, in whole cache lines (`learn/heads.py`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels import class_passes as kernels
from hogwild.kernels.compile import Kernel
from hogwild.kernels.heads import register_of
from hogwild.kernels.views import Span, view
from hogwild.learn.heads import Heads, zeros_on_a_line
from hogwild.learn.passes import Doubles, Shards
from hogwild.learn.sets import Set
from hogwild.threads import in_shares

ROUNDS, HALVINGS = 60, 40  # of intercepts, and of each of their steps
NEAR = 1e-10  # share of the loss: a step that gains less is the last one
TINY = 1e-12  # share of the curvature of all classes together that is added to that of each


class ClassSlope(NamedTuple):
    """The mean loss of scores, and its derivatives.

    Attributes:
        loss: the mean loss.
        product: the mean of <slopes, scores>.
        slope: the means of the slopes, one for each class.
        gradient: the mean of slopes * row.
    """

    loss: float
    product: float
    slope: Doubles
    gradient: Doubles


class ClassPasses(Shards):
    """Sums over the rows of a set, for cross-entropy."""

    def __init__(self, heads: Heads, data: Set, columns: int, intercept: bool) -> None:
        super().__init__(data, columns, heads.count)
        self._heads, self._intercept = heads, intercept
        self._padded, self._shape = columns * heads.width, heads.shape(data.weighted)
        register = register_of(heads.width)
        self._scores, self._pulls = kernels.scores(register), kernels.pulls(data.weighted)
        self._moments, self._along = kernels.moments(data.weighted), kernels.along(data.weighted)
        self._gradient = kernels.gradient(data.weighted)
        self._product = kernels.product(data.weighted, register)
        self._errors = kernels.errors(data.weighted)
        self._slopes: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self._weights: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self._inverse: Doubles = np.empty(0)
        self._bends: Doubles = np.empty(0)
        self._squares: Doubles = np.empty(0)

    def kernels(self) -> list[Kernel]:
        """All that will be called."""
        several = [self._moments, self._along, self._gradient, self._product, self._errors]
        plain = [kernels.add_squares, kernels.add_up, kernels.pad]
        return [*several, self._scores, self._pulls, *plain]

    @property
    def scratch(self) -> int:
        """Bytes that Newton's method needs besides the data and what is stored."""
        count, shards = self._heads.count, len(self._spans)
        of_rows = (3 * 8 + 4) * count * self.size  # scores, changes, products, slopes
        return of_rows + 8 * (8 + shards) * count * self._columns + 4 * (1 + shards) * self._padded

    def read(self, stored: npt.NDArray[np.float32]) -> tuple[Doubles, Doubles]:
        """The stored weights and intercepts."""
        both = stored.reshape(-1, self._heads.width)[:, : self._heads.count].astype(np.float64)
        return both[:-1].ravel(), both[-1].copy()

    def write(self, stored: npt.NDArray[np.float32], weights: Doubles, bias: Doubles) -> None:
        """Stores weights and intercepts."""
        both = stored.reshape(-1, self._heads.width)[:, : self._heads.count]
        both[:-1], both[-1] = weights.reshape(-1, self._heads.count), bias

    def scores(self, weights: Doubles, out: Doubles | None = None) -> Doubles:
        """The products of the rows with weights."""
        found = np.empty(self.size * self._heads.count) if out is None else out
        if not len(self._weights):
            self._weights = zeros_on_a_line(self._padded)
        self._over_columns(lambda span: kernels.pad(span, weights, self._shape, self._weights))
        given = self._weights, self._shape
        self._over_shards(lambda span: self._scores(self._rows, span, *given, self._own, found))
        return found

    def slope(self, scores: Doubles, bias: Doubles) -> ClassSlope:
        """The loss and its derivatives at scores + bias; one pass."""
        loss, product, slope, bends = self._looked(scores, bias)
        self._bends = np.diag(bends).copy()
        self._inverse = _inverse(bends)
        add = partial(self._spread, self._gradient, self._slopes)
        gradient = self._sums(self._columns * self._heads.count, add)[1] / self.size
        return ClassSlope(loss, product, slope, gradient)

    def diagonal(self, slope: ClassSlope) -> Doubles:
        """About the diagonal of the Hessian: curvatures of columns times curvatures of classes."""
        if not len(self._squares):
            add = partial(kernels.add_squares, self._rows)
            self._squares = self._sums(self._columns, add)[1] / self.size
        return np.outer(self._squares, self._bends).ravel()

    def turn(self, changes: Doubles) -> Doubles:
        """How the best intercepts change where scores change, by its first derivative."""
        turn: Doubles = np.zeros(self._heads.count)
        if self._intercept:
            given = self._slopes, changes, turn, self._shape

            def added(span: Any) -> Doubles:
                out = np.zeros(self._heads.count)
                self._pulls(self._rows, span, *given, self._own, out)
                return out

            turn = -self._inverse @ (sum(self._over_shards(added)) / self.size)
        return turn

    def product(self, vector: Doubles, dots: Doubles) -> Doubles:
        """The Hessian times a vector; one pass.

        It is that of the mean loss with the best intercepts for the weights. `dots` gets the
        products of the rows with the vector.
        """
        self.scores(vector, dots)
        given = self._slopes, dots, self.turn(dots)
        add = partial(self._spread, self._product, *given)
        room, _ = self._added_by_shards(self._padded, add, np.float32)
        found = np.empty(self._columns * self._heads.count)
        sums = room.ravel(), 1.0 / self.size, self._shape, found
        self._over_columns(lambda span: kernels.add_up(span, *sums))
        return found

    def along(
        self, scores: Doubles, changes: Doubles, step: float, bias: Any, share: float, turn: Any
    ) -> tuple[float, float, float]:
        """The mean loss at scores + step * changes + bias; no pass over the non-zeros.

        And its first and second derivative in the direction share * changes + turn.
        """
        given = scores, changes, step, bias, share, turn, self._shape
        parts = self._over_shards(lambda span: self._along(self._rows, span, *given, self._own))
        loss, first, second = (sum(some) / self.size for some in zip(*parts, strict=True))
        return loss, first, second

    def loss(self, scores: Doubles, bias: Doubles) -> float:
        """The mean loss at scores + bias."""
        return self.along(scores, scores, 0.0, bias, 0.0, np.zeros(self._heads.count))[0]

    def best_bias(self, scores: Doubles, bias: Doubles) -> Doubles:
        """The intercepts whose derivatives are 0, and whose sum is 0; from first ones.

        By Newton's method, with steps that are halved while the loss is above what it was.
        """
        if not self._intercept:
            return bias
        loss, _, slope, bends = self._looked(scores, bias)
        for _ in range(ROUNDS):
            step = -_inverse(bends) @ slope
            if -float(slope @ step) <= NEAR * abs(loss):
                bias = bias + step  # after which slopes are much smaller, without looking
                break
            for _ in range(HALVINGS):
                found, _, *derivatives = self._looked(scores, bias + step)
                if found < loss:
                    break
                step *= 0.5
            else:
                break
            bias, loss, (slope, bends) = bias + step, found, derivatives
        centered: Doubles = bias - bias.mean()
        return centered

    def errors(self, scores: Doubles, bias: Doubles) -> Doubles:
        """The sums of the two errors of all rows."""
        given = scores, bias, self._shape
        parts = self._over_shards(lambda span: self._errors(self._rows, span, *given))
        return np.array([sum(parts), 0.0])

    def _looked(self, scores: Doubles, bias: Doubles) -> tuple[float, float, Doubles, Doubles]:
        """The means of losses, of <slopes, scores>, of slopes, and their derivatives by the bias.

        From then on, the stored slopes of the rows are those at scores + bias.
        """
        count = self._heads.count
        if not len(self._slopes):
            self._slopes = np.empty(self.size * count, np.float32)

        def added(span: Any) -> tuple[float, float, Doubles]:
            out = np.zeros(count * (count + 1))
            given = scores, bias, self._shape, self._own, self._slopes
            return (*self._moments(self._rows, span, *given, out), out)

        loss, product, sums = (
            sum(some) / self.size for some in zip(*self._over_shards(added), strict=True)
        )
        slope, squares = sums[:count], sums[count:].reshape(count, count)
        return loss, product, slope, np.diag(squares.sum(axis=1)) - squares

    @property
    def _own(self) -> Any:
        """Scratch of one shard."""
        return self._heads.scratch()

    def _spread(self, add: Kernel, *given: Any) -> None:
        span, out = given[-2:]
        add(self._rows, span, *given[:-2], self._shape, self._own, out)

    def _over_columns(self, work: Callable[[Any], None]) -> None:
        in_shares(lambda *ends: work(view(Span, *ends)), self._columns, self.threads)


def _inverse(bends: Doubles) -> Doubles:
    """The inverse of the curvature by the intercepts, whose sum is nothing to the loss."""
    count = len(bends)
    scale = np.trace(bends) / count
    if not scale > 0.0:
        return np.zeros((count, count))
    ridge = TINY * scale * np.eye(count)
    found: Doubles = np.linalg.inv(bends + ridge + scale / count)
    return found
