"""The solver `newton` for losses with kinks, whose slopes jump: Newton's method on smooth ones.

    P(w) = l2/2 |w|^2 + mean of loss_i,   S(w) = l2/2 |w|^2 + mean of smooth_i

A smooth loss has the slope -a, where a is the dual variable that is best with a penalty on its
distance from a center (`kernels/smoothed.py`). Only rows whose score lies near a kink have
curvature. An epoch is a step of Newton's method on S. Once a step has gained less than smoothing
costs, the dual variables become the centers, and the width a fraction of what it was: the method of
multipliers. The dual variables also prove how near the optimum the weights are. With g the gradient
of S:

    P - D = mean of (loss_i + a_i score_i - e(a_i)) + |g|^2 / (2 l2)

of which the former is what smoothing costs, and the latter what steps have left. It needs no scaled
columns. Where columns are not few or nearly as many as rows, few rows would have curvature: it
then learns by interior points (`learn/interior.py`), and so it does where values are far larger
than others.

After Li, Sun and Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving
Lasso problems", 2018; for support vector machines with smooth kinks Chapelle, "Training a support
vector machine in the primal", 2007.
"""

import math
from typing import NamedTuple

import numpy as np

from hogwild.kernels import passes
from hogwild.kernels import smoothed as kernels
from hogwild.kernels.compile import Kernel
from hogwild.lasting import Lasting, Saved, fit
from hogwild.learn.cholesky import FEW_WORTH, FEWEST_ROWS
from hogwild.learn.choosing import is_smoothed
from hogwild.learn.conjugate import Progress, Solution
from hogwild.learn.duals import DUALS
from hogwild.learn.heads import Heads
from hogwild.learn.interior import InteriorProof
from hogwild.learn.kinks import KinkedProof
from hogwild.learn.newton import Newton, NewtonProof
from hogwild.learn.passes import Bias, Passes, Slope
from hogwild.learn.problem import Doubles, Passed
from hogwild.learn.row_sizes import are_unequal, has_outliers
from hogwild.learn.sets import Set
from hogwild.parallel.memory import Arrays

WIDEST = 4.0  # times the mean loss at the start
NARROWER = 0.25  # times the width before
# Times the width before, if `NARROWER` would leave fewer rows with curvature than `ROWS_FOR_COLUMN`
# for each column. With 0.7, training ends stuck; with 0.95, it takes twice the steps
GENTLY, ROWS_FOR_COLUMN = 0.85, 1.5
# What smoothing costs, over what is wanted: below it, a width is kept until the gap is proved or
# steps gain next to nothing, over what smoothing costs
ENOUGH, NEXT_TO_NOTHING = 0.5, 1e-3
PATIENCE = 30  # steps without progress at one width
PROGRESS = 0.9  # share of the gap before: one that is larger is no progress
SHARPEST = 1e-12  # share of the first width, from where on rounding decides
# Conjugate gradients leave this share of the squared residual; where what is left must be proved to
# be little, they go on, but not for more products or below a smaller share
LEFT, EXACT, MOST_PRODUCTS = 0.04, 1e-10, 300


class Point(NamedTuple):
    """What is known of some weights.

    Attributes:
        loss: the mean loss, as it is.
        blur: the mean of loss + a * score - e(a), what smoothing costs.
        value: the mean of e(a).
        slope: the smooth loss and its derivatives.
    """

    loss: float
    blur: float
    value: float
    slope: Slope


class SmoothPasses(Passes, Lasting):
    """Sums over the rows, of smooth losses.

    Attributes:
        width: by how much a score changes while a slope rises by 1.
        centers, duals: the center of each row's dual variable, and the variable itself.
    """

    lasting = "width", "centers"

    def __init__(
        self, heads: Heads, data: Set, columns: int, parameter: float, intercept: bool
    ) -> None:
        super().__init__(heads, data, columns, parameter, intercept)
        given = heads.loss, data.weighted
        self._smooth_gradient, self._smooth_along = kernels.gradient(*given), kernels.along(*given)
        self._losses = passes.losses(*given)
        self.seconds, self.duals = np.empty((2, self.size))
        below, above = (
            0.5 * sum(DUALS[heads.loss].bounds(target, parameter)) for target in (-1.0, 1.0)
        )
        self._middles = np.where(self.targets[:, 0] > 0.0, above, below)
        self.blur(1.0)

    def blur(self, width: float) -> None:
        """Begins with a width, and all dual variables in the middle of their bounds."""
        self.width, self.centers = width, self._middles.copy()

    def sharpen(self) -> None:
        """Goes on with the dual variables that were found, and a smaller width."""
        self.width *= NARROWER
        self.centers[:] = self.duals

    def kernels(self, smooth: bool = True) -> list[Kernel]:
        own = [self._smooth_gradient, self._smooth_along, self._losses, self._errors]
        return [*own, passes.hessian_product, passes.scores_of]

    def point(self, scores: Doubles, bias: float) -> Point:
        """The losses and their derivatives at scores + bias; one pass."""
        given = scores, bias, self.centers, self.width, self._parameter, self.duals, self.seconds
        sums, planes = self._planes(
            lambda *to: self._smooth_gradient(self._rows, to[0], *given, to[1])
        )
        smooth, loss, value, product, slope, second = (
            sum(some) / self.size for some in zip(*sums, strict=True)
        )
        self._take_edge(second, planes[1])
        blur = loss - product - value
        return Point(loss, blur, value, Slope(smooth, product, slope, second, *planes))

    def along(
        self, scores: Doubles, changes: Doubles, step: float, bias: float, share: float, turn: float
    ) -> tuple[float, float, float]:
        given = scores, changes, step, bias, share, turn, self.centers, self.width, self._parameter
        return self._means(lambda span: self._smooth_along(self._rows, span, *given))

    def loss(self, scores: Doubles, bias: Bias) -> float:
        given = scores, bias, self._parameter
        sums = self._over_shards(lambda span: self._losses(self._rows, span, *given))
        return float(sum(sums)) / self.size


class Kinked(Newton):
    """Newton's method for a loss with kinks."""

    def outcome(self, columns: int, nonzeros: float) -> NewtonProof:
        given = self._config, self._heads, self._data, columns
        sizes = columns, len(self._data), self._data.nonzeros
        # Where values are far larger than others, steps at any width get stuck
        rows = self._data.view
        is_able = is_smoothed(self._config, *sizes) and not (
            has_outliers(rows) or are_unequal(rows)
        )
        return (SmoothedProof if is_able else InteriorProof)(*given)


class SmoothedProof(KinkedProof):
    """The best weights so far, and a lower bound of the optimum from the dual variables."""

    most_worth = FEW_WORTH
    kind_of_passes: type[Passes] = SmoothPasses
    lasting = (*KinkedProof.lasting, "_passes", "_best", "_least", "_widest")

    def _reset(self) -> None:
        super()._reset()
        self._best: tuple[Doubles, float, Doubles] | None = None  # with the scores
        self._least = self._blur = math.inf  # the gap, and what smoothing costs
        self._widest = 1.0

    def put_back(self, saved: Saved) -> None:
        super().put_back(saved)
        if self._best is not None:
            weights, _, scores = self._best
            fit(self._columns, weights)
            fit(self._rows, scores)

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        loss = super().iterate(shared, passed)
        if self.reason is None and self._is_sharp_enough:
            self._narrow(passed)
            self._idle = 0
            self._store(shared)
            passed()
        return loss

    def _narrow(self, passed: Passed) -> None:
        """Goes on at a smaller width, but not with too few rows for the columns.

        With fewer rows that have curvature than columns, steps would gain next to nothing.
        """
        width = self._passes.width
        self._passes.sharpen()
        self._look()
        passed()
        few = np.count_nonzero(self._passes.seconds) < ROWS_FOR_COLUMN * self._columns
        if few and FEWEST_ROWS * self._columns <= self._rows:
            self._passes.width = GENTLY * width
            self._look()
            passed()

    def _look_first(self, size: int, passed: Passed) -> bool:
        """Takes the present weights, and a width that suits them."""
        given, scores, bias = self._bias, np.zeros(self._rows), 0.0
        for _ in range(1 + self._intercept):  # an intercept is found with some width
            self._widest = WIDEST * self._loss_at(scores, bias) or 1.0
            self._passes.blur(self._widest)
            bias = self._passes.best_bias(scores, bias)
        goes_on = super()._look_first(size, passed)
        if self._weights.any():
            self._keep_if_better(self._loss_at(self._scores, given), given)
            goes_on = self._sharpen(passed)
        return goes_on

    def _sharpen(self, passed: Passed) -> bool:
        """Finds the width at which the present weights prove most."""
        proved, goes_on = -math.inf, True
        while goes_on and self._proved > proved and self._passes.width > SHARPEST * self._widest:
            proved = self._proved
            self._passes.sharpen()
            self._look()
            goes_on = passed()
        return goes_on

    def _look(self) -> None:
        """Finds the best intercept, the slope there, and what they prove; one pass."""
        self._bias = self._passes.best_bias(self._scores, self._bias)
        point = self._look_again()
        self._keep_if_better(point.loss, self._bias)
        gradient = point.slope.gradient
        self._proved = point.value - 0.5 * float(passes.inner(gradient, gradient)) / self._l2
        if self._intercept:
            self._proved -= self._farthest.less(point.slope.slope, self._objective)
        self.bound = max(self.bound, self._proved)

    def _look_again(self) -> Point:
        point: Point = self._passes.point(self._scores, self._bias)
        self._slope, self._blur = point.slope, point.blur
        return point

    def _keep_if_better(self, loss: float, bias: float) -> None:
        objective = loss + 0.5 * self._l2 * float(passes.inner(self._weights, self._weights))
        if objective < self._objective:
            self._objective = objective
            self._best = self._weights.copy(), bias, self._scores.copy()

    def _move(self, found: Solution) -> None:
        self._go(found)
        gap = self._objective - self.bound
        self._idle = self._idle + 1 if gap >= PROGRESS * self._least else 0
        self._least = min(self._least, gap)

    @property
    def _is_sharp_enough(self) -> bool:
        """Whether there is more to gain by a smaller width than by steps at this one."""
        return self._gained <= (NEXT_TO_NOTHING if self._is_sharp else 1.0) * self._blur

    @property
    def _is_sharp(self) -> bool:
        """Whether smoothing costs so little that steps at this width may prove what is wanted."""
        return self._blur <= ENOUGH * self._wanted_size

    @property
    def _wanted_size(self) -> float:
        """The gap that ends the training; 0 where that is not decided by a proof."""
        return 0.0 if self._config.target is not None else self._config.tol * self._size

    def _is_enough(self, now: Progress, gains: list[float]) -> bool:
        if now.products >= MOST_PRODUCTS:
            return True
        left = 0.5 * now.square / self._l2
        return now.size <= EXACT or (
            now.size <= LEFT and not (self._is_sharp and left > 0.5 * self._wanted_size)
        )

    @property
    def _doubles(self) -> tuple[Doubles, float]:
        assert self._best is not None
        return self._best[:2]

    @property
    def _taken(self) -> tuple[Doubles, Bias]:
        assert self._best is not None
        return self._best[2], self._best[1]

    @property
    def _stuck(self) -> str | None:
        blunt = self._passes.width > SHARPEST * self._widest
        return None if blunt and self._idle < PATIENCE else "stuck"
