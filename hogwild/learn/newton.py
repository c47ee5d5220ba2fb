"""The solvers `newton` and `cg`: Newton's method on whole passes, with a proved gap.

For losses with a second derivative. An epoch finds a direction by conjugate gradients, which need
only products with the Hessian. If columns are few, the Hessian is formed and factored instead. Then
the epoch finds how far to go, from the scores alone. There is no learning rate, and columns may be
of very different sizes. The Hessian of the squared loss does not change: a single step is the
textbooks' method of conjugate gradients, which `cg` names. Softmax has one score for each class
(`learn/class_passes.py`).

The intercept is not penalized. It is always the best one for the weights, and the Hessian takes
that into account (`learn/passes.py`).

After Lin, Weng and Keerthi, "Trust region Newton method for large-scale logistic regression", 2008.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels.compile import Kernel
from hogwild.kernels.passes import advance, inner, turn
from hogwild.lasting import Saved, fit
from hogwild.learn.cholesky import MOST_COLUMNS, factored, products_worth
from hogwild.learn.choosing import begins_with_dual
from hogwild.learn.class_passes import ClassPasses, ClassSlope
from hogwild.learn.conjugate import Progress, Solution, conjugate_gradients
from hogwild.learn.first_epochs import FirstEpochs
from hogwild.learn.first_passes import FirstPasses
from hogwild.learn.heads import Heads, zeros_on_a_line
from hogwild.learn.intercepts import Farthest
from hogwild.learn.iterated import Iterated, IteratedSolver
from hogwild.learn.passes import ROUNDING, TRIES, Bias, Passes, Slope
from hogwild.learn.problem import Doubles, Passed
from hogwild.learn.proof import NOTHING
from hogwild.learn.sets import Set
from hogwild.parallel.memory import Arrays

FEW_COLUMNS = 2_000  # with more, softmax begins with epochs of descent
ENOUGH = 0.04  # share of the squared residual that conjugate gradients leave, in M^-1
MOST_PRODUCTS = 60
# The Hessian is made and factored if that takes no longer than `MOST_WORTH` products with it
WORTH = 20.0
# Of the squared loss, whose step need not be repeated
EXACT, MOST_PRODUCTS_EXACT = 1e-20, 10_000
# If the next gap may be within `NEAR` times the wanted one, conjugate gradients go on to the end
NEAR, SURE = 30.0, 0.5
# Without a penalty: products whose gains, together, must be a small share of what is wanted
LATELY, SLOW = 10, 0.01
# Without a penalty, too: the share of the largest squared residual that may be rounding of values.
# Weights that fit the rounding cancel each other: rows of rank 1 had weights of 1e6
ROUNDED = 1e-13
# Of a step that is tried: what the objective must gain, and how much of its slope may be left
GAIN, LEFT = 1e-4, 0.1
# Of the slope at a step's other end, each time it stays: it says little beside a kink
STALE = 0.5
SHORTEST, LONGEST = 0.1, 0.9  # of the way between a step that is too short and one too long
PATIENCE = 2  # steps without progress; the second is solved as exactly as rounding allows
IN_VAIN = 1_000_000  # steps without progress: more than any patience
MOST_UNDONE = 5  # proofs in double precision that do not hold in single, until training ends
PROGRESS = 0.9  # share of the gap before: one that is larger is no progress
# Work, in what a product takes for a non-zero, up to which a step takes no longer than the Python
# around it: 0.1 ms. Such steps go on while each leaves less than half of the gap
FREE, HALF = 1e5, 0.5
ROUNDED_SLOPES = 1e-8  # share of a loss of all classes, whose slopes are in single precision
RESIDUAL = 2.0  # times the intercept: how much larger that of the optimum may be


class Newton(IteratedSolver):
    """Newton's method: what it needs of the rows it gets by whole passes."""

    def outcome(self, columns: int, nonzeros: float) -> "NewtonProof":
        proof = NewtonProof(self._config, self._heads, self._data, columns)
        if self._heads.coupled and columns > FEW_COLUMNS:
            given = self._config, self._heads, self._data, self.intercept_share
            proof.first = FirstEpochs(*given)
        elif begins_with_dual(self._config, len(self._data), columns, self._data.nonzeros):
            proof.first = FirstPasses(self._config, self._heads, self._data, columns)
        return proof


class NewtonProof(Iterated):
    """Weights in double precision, and a lower bound of the optimum from the slopes of the rows.

    Attributes:
        first: epochs or passes of another method to begin with, or none.
        most_worth: the Hessian is factored if that takes no longer than this number of products.
        polishes: whether a few more steps make the weights exact.
    """

    first: FirstEpochs | FirstPasses | None = None
    most_worth = WORTH
    kind_of_passes: type[Passes] = Passes
    polishes = True
    lasting = (
        *Iterated.lasting,
        *("_weights", "_bias", "_scores", "_largest", "_gained", "_idle", "_undone"),
    )

    def __init__(self, config: Config, heads: Heads, data: Set, columns: int) -> None:
        super().__init__(config)
        self._columns, self._rows, self._nonzeros = columns, len(data), data.nonzeros
        self._l2, self._intercept = float(config.l2 or 0.0), config.intercept
        self._farthest = Farthest(config.loss_name, data, self._l2, config.loss_value)
        self._count = heads.count if heads.coupled else 1  # scores of a row
        self._is_quadratic = config.loss_name == "squared"
        given = heads, data, columns
        self._passes: Any
        if heads.coupled:
            self._passes = ClassPasses(*given, config.intercept)
            self.scratch = self._passes.scratch
        else:
            self._passes = self.kind_of_passes(*given, config.loss_value, config.intercept)
        self._reset()

    def _reset(self) -> None:
        self._objective, self.bound = math.inf, -math.inf
        self._slope: Slope | ClassSlope | None = None
        self._scores: Doubles = np.zeros(0)  # none before the first look
        self._largest = 0.0  # without a penalty: residual at which conjugate gradients began
        self._gained = math.inf  # by the last step, as conjugate gradients expected it
        self._idle = 0  # steps in a row without progress
        self._undone = 0  # how many proofs rounding has undone
        self._polishing = False

    def put_back(self, saved: Saved) -> None:
        super().put_back(saved)
        fit(self._rows * self._count, self._scores)
        if len(self._scores):
            self._look_again()

    def _look_again(self) -> Any:
        """Finds anew what follows from the scores."""
        self._slope = self._passes.slope(self._scores, self._bias)

    def use(self, threads: int) -> None:
        self._passes.threads = threads

    def kernels(self, alone: bool) -> list[Kernel]:
        more = self.first.kernels if self.first else []
        more += [self._passes.of_matrix] if self._is_factored else []
        return [*self._passes.kernels(), inner, advance, turn, *more]

    @property
    def _is_factored(self) -> bool:
        if self._is_quadratic or self._l2 == 0.0 or self._count > 1:
            return False
        worth = products_worth(self._nonzeros, self._rows, self._columns)
        return self._columns <= MOST_COLUMNS and worth <= self.most_worth

    @property
    def _is_free(self) -> bool:
        """Whether the data is so small that a step takes next to no time."""
        worth = products_worth(self._nonzeros, self._rows, self._columns)
        return self._is_factored and worth * self._nonzeros <= FREE

    @property
    def reason(self) -> str | None:
        return None if self._polishing else super().reason

    def begin(self, shared: Arrays, start: Arrays, at_zero: float) -> None:
        """Takes the weights to go on from."""
        self._reset()
        self._scale = at_zero if math.isfinite(at_zero) else 0.0
        self._weights, self._bias = self._passes.read(shared["stored"])

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        super().restore(shared, learned, last)
        self.begin(shared, last, self._scale)

    # An epoch

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        """Makes a step, if there is one; the mean loss before it.

        `passed` is called after each pass, and says whether to go on.
        """
        goes_on = True
        if self._slope is None:
            goes_on = self._look_first(len(shared["stored"]), passed)
            self._store(shared)
        assert self._slope is not None
        loss = self._slope.loss
        if goes_on and self.reason is None:
            self._move(self._direction(passed))
            self._store(shared)
            passed()
        return loss

    def polish(self, shared: Arrays, passed: Passed) -> None:
        """Makes more steps on small data, until they leave nothing of the gap but rounding.

        Problems with the same optimum, such as one with a row of weight 2 and one with two copies
        of the row, then have the same weights in single precision.
        """
        if not (self.polishes and self._is_free):
            return
        self._polishing = True
        try:
            while self._objective > NOTHING * self._scale and passed(0.0):
                before = self._objective - self.bound
                self.iterate(shared, passed)
                if not max(0.0, self._objective - self.bound) < HALF * before:
                    break
        finally:
            self._polishing = False

    def _look_first(self, size: int, passed: Passed) -> bool:
        self._scores = np.zeros(self._rows * self._count)
        if self._intercept:
            # Where targets are far from 0, a gap is not small because the intercept made it so
            self._bias = self._passes.best_bias(self._scores, self._bias)
            self._scale = min(self._scale, self._passes.loss(self._scores, self._bias))
        if self._weights.any():
            self._scores = self._passes.scores(self._weights)
            passed()
        elif self.first:
            stored = zeros_on_a_line(size)
            self.first.learn(stored, passed, self.fetching)
            self.bound = max(self.bound, self.first.bound)
            self._begin_by(stored)
        self._look()
        return passed()

    def _begin_by(self, stored: npt.NDArray[np.float32]) -> None:
        """Takes the weights that another method found, if they are better than zeros."""
        if not np.isfinite(stored).all():
            return
        weights, bias = self._passes.read(stored)
        scores = self._passes.scores(weights)
        loss = self._loss_at(scores, bias)
        if loss + 0.5 * self._l2 * float(inner(weights, weights)) < self._loss_at(
            self._scores, self._bias
        ):
            self._weights, self._bias, self._scores = weights, bias, scores

    def _look(self) -> None:
        """Finds the best intercept, the slope there, and what they prove; one pass."""
        self._bias = self._passes.best_bias(self._scores, self._bias)
        self._slope = self._passes.slope(self._scores, self._bias)
        self._objective = self._slope.loss + 0.5 * self._l2 * float(
            inner(self._weights, self._weights)
        )
        self._raise_bound(self._slope)

    def _raise_bound(self, slope: Slope | ClassSlope) -> None:
        """Finds the dual objective at a_i = -slope_i, a lower bound of the optimum.

        Whatever the scores m_i are: a loss is the maximum over a of e(a) - a m, which -slope
        attains. So e(a_i) = loss_i - slope_i m_i, and with v = -mean of slope_i x_i

            D = mean of e(a_i) - |v|^2 / (2 l2) = P - |l2 w - v|^2 / (2 l2)

        of which the latter is the gradient by the weights. With an intercept, D is less by what
        the mean of the slopes, which is not quite 0, may make it too high.
        """
        if self._l2 > 0.0:
            square = float(inner(slope.gradient, slope.gradient))
            found = slope.loss - slope.product - 0.5 * square / self._l2
            found -= RESIDUAL * float(np.sum(np.abs(self._bias * slope.slope))) * self._intercept
            found -= ROUNDED_SLOPES * abs(slope.loss) * (self._count > 1)
            self.bound = max(self.bound, found)

    def _store(self, shared: Arrays) -> None:
        self._passes.write(shared["stored"], self._weights, self._bias)

    # The step

    def _direction(self, passed: Passed) -> Solution:
        """Solves H d = -gradient, by factors of H or by conjugate gradients."""
        return (self._is_factored and self._exact(passed)) or self._by_products(passed)

    def _by_products(self, passed: Passed) -> Solution:
        """Solves it by conjugate gradients."""
        slope, l2 = self._slope, self._l2
        assert slope is not None
        diagonal = l2 + self._passes.diagonal(slope)
        diagonal[diagonal <= 0.0] = 1.0  # of a column without curvature nothing is known
        gains: list[float] = []

        def product(search: Doubles, dots: Doubles) -> Doubles:
            image: Doubles = self._passes.product(search, dots)
            image += l2 * search
            return image

        def goes_on(now: Progress) -> bool:
            gains.append(now.last)
            return passed() and not self._is_enough(now, gains)

        nothing = ROUNDED * self._largest
        given = self._downhill, diagonal, len(self._scores), goes_on, nothing
        return conjugate_gradients(product, *given)

    def _exact(self, passed: Passed) -> Solution | None:
        """Solves it by the factors of H, unless rounding leaves none."""
        right = self._downhill
        matrix = self._bordered()
        passed()
        try:
            direction = factored(matrix)(np.append(right, 0.0))[:-1]
        except np.linalg.LinAlgError:
            return None
        found = Solution(
            direction, self._passes.scores(direction), 0.5 * float(inner(direction, right))
        )
        passed()
        return found

    def _bordered(self) -> Doubles:
        """The Hessian of the objective by weights and intercept, if there is one."""
        matrix: Doubles = self._passes.bordered()
        matrix[np.diag_indices(self._columns)] += self._l2
        if not self._intercept:
            matrix[-1] = matrix[:, -1] = 0.0
            matrix[-1, -1] = 1.0
        return matrix

    @property
    def _downhill(self) -> Doubles:
        """Minus the gradient of the objective by the weights."""
        assert self._slope is not None
        found: Doubles = -(self._l2 * self._weights + self._slope.gradient)
        return found

    def _is_enough(self, now: Progress, gains: list[float]) -> bool:
        """Whether conjugate gradients may end."""
        if now.products >= (MOST_PRODUCTS_EXACT if self._is_quadratic else MOST_PRODUCTS):
            return True
        target = self._config.target
        if target is not None and self._objective - now.gain <= target:
            return True
        wanted = 0.0 if target is not None else self._config.tol * self._size_at(now.gain)
        is_small = now.size <= (EXACT if self._is_quadratic else ENOUGH)
        if self._l2 == 0.0:
            least = SLOW * wanted if self._is_quadratic else SLOW * max(wanted, now.gain)
            slow = sum(gains[-LATELY:]) <= least and len(gains) >= LATELY
            self._largest = max(self._largest, now.first)
            return slow or now.size * now.first <= ROUNDED * self._largest
        # What would be proved after the step, if the Hessian did not change
        gap = 0.5 * now.square / self._l2
        if gap <= SURE * wanted:
            return True
        return is_small and (self._is_quadratic or (gap > NEAR * wanted and not self._idle))

    def _size_at(self, gain: float) -> float:
        """What a gap will be small beside, when the objective is less by so much."""
        return max(abs(self._objective - gain), NOTHING * self._scale)

    def _move(self, found: Solution) -> None:
        """Goes along the direction as far as the objective falls, and looks there."""
        before, gap = self._objective, self._objective - self.bound
        self._go(found)
        stands = self._objective >= before - ROUNDING * abs(before)
        least = min(PROGRESS * gap, gap - ROUNDING * abs(before))
        idle = stands and self._objective - self.bound > least
        self._idle = self._idle + 1 if idle else 0

    def _go(self, found: Solution) -> None:
        turn = self._passes.turn(found.changes)
        step = self._length(found, turn)
        self._gained = found.gain
        self._weights += step * found.direction
        self._scores += step * found.changes
        self._bias += step * turn
        self._look()

    def _length(self, found: Solution, turn: Bias) -> float:
        """How far to go: where the slope along the direction is small, and the objective lower.

        It needs no pass over the non-zeros. 0: nowhere is it lower.
        """
        w, d, l2 = self._weights, found.direction, self._l2
        square, product = float(inner(d, d)), float(inner(w, d))

        def at(step: float) -> tuple[float, float]:
            bias = self._bias + step * turn
            loss, first, _ = self._passes.along(self._scores, found.changes, step, bias, 1.0, turn)
            change = l2 * (step * product + 0.5 * step * step * square)
            return loss + change, first + l2 * (product + step * square)

        start, slope = at(0.0)
        if not slope < 0.0:
            return 0.0
        slack = ROUNDING * abs(self._objective)
        short, short_slope, long, long_slope = 0.0, slope, math.inf, math.inf
        step = 1.0
        for _ in range(TRIES):
            value, here = at(step)
            falls = value <= start + GAIN * step * slope + slack
            if falls and abs(here) <= LEFT * abs(slope):
                return step
            if falls and here < 0.0:
                long_slope *= STALE if short else 1.0
                short, short_slope = step, here
            else:
                short_slope *= STALE if long < math.inf else 1.0
                long, long_slope = step, here
            step = _between(short, short_slope, long, long_slope)
        return short

    # The proof

    def prove(self, shared: Arrays) -> Doubles:
        """The sums for the weights; before a claim, for those in single precision."""
        found = self._taken if self.reason is None else self.settle(shared)
        return np.array([self._loss_at(*found) * self._rows, *self._passes.errors(*found)])

    @property
    def _taken(self) -> tuple[Doubles, Bias]:
        """The scores and the intercept of the weights that are stored."""
        return self._scores, self._bias

    def settle(self, shared: Arrays) -> tuple[Doubles, Bias]:
        """Takes the objective of the weights in single precision; their scores and intercept.

        Where rounding costs more than is wanted, steps in double precision would be in vain.
        """
        exact, was_near = self._objective, self._is_near
        found = self._rounded(shared)
        if was_near and not self._is_near:
            self._undone += 1
            costs = self._objective - exact
            if costs > self._config.tol * self._size or self._undone >= MOST_UNDONE:
                self._idle = IN_VAIN
        return found

    def _rounded(self, shared: Arrays) -> tuple[Doubles, Bias]:
        """Takes the objective of the weights as they are stored; their scores and intercept."""
        weights, bias = self._passes.read(shared["stored"])
        scores = self._passes.scores(weights)
        square = float(inner(weights, weights))
        self._objective = self._loss_at(scores, bias) + 0.5 * self._l2 * square
        return scores, bias

    def _loss_at(self, scores: Doubles, bias: Bias) -> float:
        return float(self._passes.loss(scores, bias))

    @property
    def _is_near(self) -> bool:
        """Whether the gap is small; without a penalty, whether little was gained lately."""
        if self._l2 > 0.0:
            return super()._is_near
        return self._config.tol > 0 and self._lately <= self._config.tol * self._size

    @property
    def _lately(self) -> float:
        """What the last step gained."""
        return self._gained

    @property
    def _stuck(self) -> str | None:
        return "stuck" if self._idle >= PATIENCE else None


def _between(short: float, short_slope: float, long: float, long_slope: float) -> float:
    """A step between one that is too short and one that is too long, by their slopes."""
    if math.isinf(long):
        return 2.0 * short
    share = 0.0
    if math.isfinite(long_slope) and long_slope > short_slope:
        share = -short_slope / (long_slope - short_slope)
    return short + min(LONGEST, max(SHORTEST, share)) * (long - short)
