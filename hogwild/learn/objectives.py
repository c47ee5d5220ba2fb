"""The primal and the dual objective of a linear model on its training rows.

    P(w, b) = l2/2 |w|^2 + 1/n sum of weight_i loss_i(<w, x_i> + b)
    D(a) = 1/n sum of weight_i e(a_i) - l2/2 |w(a)|^2,   w(a) = c sum of weight_i a_i x_i

P >= D for any weights and dual variables, if with an intercept the sum of weight_i a_i is 0.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.kernels import dual as kernels
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import Span, view
from hogwild.lasting import Lasting
from hogwild.learn.duals import DUALS
from hogwild.learn.intercepts import Farthest
from hogwild.learn.losses import LOSSES
from hogwild.learn.sets import Set
from hogwild.threads import share_of, side_by_side

Weights = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
T = TypeVar("T")

PART, MOST_PARTS = 32_768, 8  # rows of a part; parts do not depend on the number of threads
FIRST_STEP = 0.1  # of a search for a scale or an intercept
ROUNDS = 12
FINER, FINEST = 0.2, 1e-7  # the next one, over this one, at least
CLOSE = 1e-2  # share of the first step at which a search ends


class Point(NamedTuple):
    """Scaled weights with an intercept, and their objective."""

    objective: float
    scale: float
    bias: float


class Objectives(Lasting):
    """What is needed to prove how good weights are."""

    lasting = ("_steps",)

    def __init__(
        self, loss: str, kind: str, data: Set, l2: float, intercept: bool, parameter: float
    ) -> None:
        self.threads = 1
        self._data, self.rows, self.size = data, data.view, len(data)
        self.c = 1.0 / (l2 * self.size)
        self._l2, self._parameter = l2, parameter
        self._intercept = intercept
        self._loss, self._kind, self._weighted = loss, kind, data.weighted
        self._farthest = Farthest(loss, data, l2, parameter)
        self._steps = dict.fromkeys(("scale", "bias"), FIRST_STEP)

    def kernels(self, points: Sequence[int]) -> list[Kernel]:
        """What a training calls; `points` are the numbers of weights that it compares at once."""
        loss, weighted = self._loss, self._weighted
        always = [*map(kernels.scorer, points), kernels.primal(loss, weighted)]
        always += [kernels.errors(self._kind, weighted), kernels.dual_value(loss, weighted)]
        if DUALS[loss].lean:
            always.append(kernels.reviewer(loss, weighted))
        if self._intercept:
            always += [kernels.room(loss, weighted), kernels.longest]
        return [*always, kernels.standing(weighted), kernels.collector(weighted), kernels.arrange]

    # Primal

    def scores(self, weights: Sequence[Weights]) -> npt.NDArray[np.float32]:
        """A line of scores for each of some weights, without intercepts."""
        found = np.empty((len(weights), self.size), np.float32)
        kernel = kernels.scorer(len(weights))

        def score(given: Span) -> None:
            for rows, span in self._data.pieces(given):
                kernel(rows, span, tuple(weights), found.ravel())

        self._in_parts(score)
        return found

    def best(self, scores: Weights, square: float, bias: float, scaled: bool) -> Point:
        """The best intercept for weights with these scores, and if wanted their best scale.

        `square` is the squared length of the weights. A search ends near its zero: the best of all
        points that were looked at is taken.
        """
        points: list[Point] = []

        def sums(scale: float, bias: float) -> Doubles:
            found = self._sums(scores, scale, bias) / self.size
            objective = 0.5 * self._l2 * scale * scale * square + float(found[0])
            if scale >= 0.0:
                points.append(Point(objective, scale, bias))
            return found

        def by_scale(at: float) -> float:
            return float(self._l2 * at * square + sums(at, bias)[2])

        def by_bias(at: float) -> float:
            return float(sums(scale, at)[1])

        scale = 1.0
        sums(scale, bias)
        for _ in range(2 if scaled and self._intercept else 1):
            if scaled:
                scale = self._searched("scale", by_scale, scale)
            if self._intercept:
                bias = self._searched("bias", by_bias, bias)
        return min(points)

    def bias_at_zero(self) -> float:
        """The best intercept of two classes for weights that are zero."""
        targets = self.rows.targets.reshape(self.size, -1)
        positive = targets[:, 0] > 0
        # The last number is the weight, or else the target, which is 1
        share = float(np.sum(targets[positive, -1], dtype=np.float64)) / self.size
        slope, parameter = LOSSES[self._loss].slope, self._parameter

        def rising(at: float) -> float:
            return share * slope(at, 1.0, parameter) + (1.0 - share) * slope(at, -1.0, parameter)

        return zero_of(rising, 0.0, FIRST_STEP) if 0.0 < share < 1.0 else 0.0

    def _searched(self, name: str, rising: Callable[[float], float], start: float) -> float:
        """The zero of a function; the better the guesses were so far, the finer the search."""
        found = zero_of(rising, start, self._steps[name])
        self._steps[name] = max(FINEST, FINER * self._steps[name], abs(found - start))
        return found

    def measured(self, scores: Weights, point: Point) -> Doubles:
        """The sums of the losses and of the two errors of all rows."""
        kernel = kernels.errors(self._kind, self._weighted)
        given = scores, point.scale, point.bias
        parts = self._in_parts(lambda span: kernel(self.rows, span, *given))
        return np.array([self._sums(*given)[0], *np.sum(parts, axis=0)])

    def _sums(self, scores: Weights, scale: float, bias: float) -> Doubles:
        kernel = kernels.primal(self._loss, self._weighted)
        given = scores, float(scale), float(bias), self._parameter
        found: Doubles = np.sum(self._in_parts(lambda s: kernel(self.rows, s, *given)), axis=0)
        return found

    # Dual

    def standing(self, state: Weights) -> tuple[float, float, int]:
        """The sum of a, the largest distance of a row from its optimum, and the active rows."""
        kernel = kernels.standing(self._weighted)
        parts = self._in_parts(lambda span: kernel(self.rows, span, state))
        balance, largest, active = zip(*parts, strict=True)
        return sum(balance), max(largest), int(sum(active))

    def dual(self, state: Weights, square: float) -> float:
        """The dual objective, given the squared length of the weights."""
        kernel = kernels.dual_value(self._loss, self._weighted)
        given = state, self._parameter
        total = float(sum(self._in_parts(lambda span: kernel(self.rows, span, *given))))
        return total / self.size - 0.5 * self._l2 * square

    def residual(self, state: Weights, objective: float) -> float:
        """By how much the dual objective may be too high for a sum of a that is not quite 0.

        `objective` is that of any weights.
        """
        if not self._intercept:
            return 0.0
        return self._farthest.less(self.standing(state)[0] / self.size, objective)

    def weights_of(self, state: Weights, columns: int) -> Doubles:
        """The weights that dual variables stand for, in double precision."""
        kernel, halves = kernels.collector(self._weighted), 2 if self.size > PART else 1

        def collected(half: int) -> Doubles:
            found = np.zeros(columns)
            given = view(Span, *share_of(self.size, halves, half))
            for rows, span in self._data.pieces(given):
                kernel(rows, span, state, self.c, found)
            return found

        tasks = [partial(collected, half) for half in range(halves)]
        found: Doubles = sum(side_by_side(tasks, self.threads))  # type: ignore[assignment]
        return found

    def balance(self, state: Weights) -> None:
        """Moves dual variables until their sum is 0: those between their bounds, if they can."""
        for everything in (0.0, 0.0, 1.0):
            left = self.standing(state)[0]
            up, down = self._moved(state, 0.0, everything)
            there = up if left < 0.0 else down
            if left == 0.0 or there == 0.0:
                continue
            share = -float(np.sign(left)) * min(1.0, abs(left) / there)
            self._moved(state, share, everything)

    def _moved(self, state: Weights, share: float, everything: float) -> Doubles:
        """How far dual variables can move up, and down; a share of that is done."""
        kernel = kernels.room(self._loss, self._weighted)
        given = state, self._parameter, share, everything
        found: Doubles = np.sum(self._in_parts(lambda s: kernel(self.rows, s, *given)), axis=0)
        return found

    def review(self, scores: Weights, bias: float, state: Weights) -> int:
        """Takes rows that are not at their optimum back into the passes; returns their number."""
        kernel = kernels.reviewer(self._loss, self._weighted)
        given = scores, bias, self.c, self._parameter, state
        return int(sum(self._in_parts(lambda span: kernel(self.rows, span, *given))))

    def adopt(self, scores: Weights, bias: float, known: bool, state: Weights) -> None:
        """Dual variables to continue from: the known ones, or those that suit the scores."""
        kernel = kernels.adopter(self._loss, self._weighted)
        kernel(self.rows, scores, bias, self._parameter, float(known), state)

    def _in_parts(self, work: Callable[[Any], T]) -> list[T]:
        """What `work` returns for each part of the rows."""
        count = min(MOST_PARTS, -(-self.size // PART))
        spans = [view(Span, *share_of(self.size, count, number)) for number in range(count)]
        return side_by_side([partial(work, span) for span in spans], self.threads)


def zero_of(rising: Callable[[float], float], start: float, step: float) -> float:
    """Where a function that never falls is about 0; it is likely within a step of `start`."""
    at, value = start, rising(start)
    if value == 0.0:
        return at
    close = CLOSE * step
    direction = -1.0 if value > 0.0 else 1.0
    for _ in range(ROUNDS):
        other = at + direction * step
        beyond = rising(other)
        if beyond * value <= 0.0:
            return _between(rising, (at, value), (other, beyond), close)
        at, value, step = other, beyond, 2.0 * step
    return at


def _between(
    rising: Callable[[float], float],
    one: tuple[float, float],
    other: tuple[float, float],
    close: float,
) -> float:
    """The zero between two places where the function has different signs (Illinois' method)."""
    (a, at_a), (b, at_b) = one, other
    for _ in range(ROUNDS):
        if at_a == at_b or abs(b - a) <= close:
            break
        c = (a * at_b - b * at_a) / (at_b - at_a)
        at_c = rising(c)
        if at_c == 0.0:
            return c
        if at_c * at_b < 0.0:
            a, at_a = b, at_b
        else:
            at_a *= 0.5
        b, at_b = c, at_c
    return b
