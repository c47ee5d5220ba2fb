"""The solver `newton` for losses whose slopes jump: a primal-dual interior-point method.

    minimize l2/2 |w|^2 + mean of cost lack_i,   lack_i >= 0,
             excess_i = sign_i score_i - wanted_i + lack_i >= 0

Each row has a dual variable t_i between 0 and the cost; left_i = cost - t_i. Of the hinge, y_i is
the sign, and wanted_i and the cost are 1. A loss of numbers has two of each for a row, one for a
score that is too low and one for a score that is too high; where rows meet, they are added up
(`learn/sides.py`). At the optimum

    l2 w = mean of t_i sign_i x_i,   mean of t_i sign_i = 0,   t_i excess_i = 0,   left_i lack_i = 0

An epoch is a step of Newton's method on these equations, with products that are not 0 but become
smaller from step to step. It solves, with D_i = 1 / (excess_i / t_i + lack_i / left_i),

    (l2 I + X'D X / n) dw + X'D 1 / n db = ...,   1'D X / n dw + 1'D 1 / n db = ...

or, with u = D (X dw + db), as many equations as there are rows, where these are fewer than columns:

    (l2 D^-1 + X X'/n) u = X (...) + l2 db,   1'u / n = ...,   l2 dw = ... - X'u / n

twice: first for products of 0, which shows how small they may become, and to correct for what that
leaves out. Some 10 to 40 steps are enough, whatever the sizes of the columns, and each has a proof
by t, which says little until the mean of t_i sign_i is near 0. A start near the optimum saves
nothing: variables near their bounds would leave no room for steps.

After Mehrotra, "On the implementation of a primal-dual interior point method", 1992; for support
vector machines, Ferris and Munson, "Interior-point methods for massive support vector machines",
2002; for quantiles, Portnoy and Koenker, "The Gaussian hare and the Laplacian tortoise", 1997.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hogwild.kernels import passes as kernels
from hogwild.kernels.compile import Kernel
from hogwild.learn.cholesky import MOST_WORTH, are_rows_few, factored, products_worth_by_rows
from hogwild.learn.conjugate import Progress, conjugate_gradients
from hogwild.learn.kinks import KinkedProof
from hogwild.learn.problem import Doubles, Passed
from hogwild.learn.row_sizes import median_and_deviation
from hogwild.learn.sides import sides_of
from hogwild.parallel.memory import Arrays

# What scores may lack and exceed at the start; of numbers, over the mean error there. Outliers have
# such scores on the way: with values of 1e6 in some rows, 1 takes more than 100 steps, and 1000
# takes 25; where there are none, it is 20
SLACK = 100.0
NEARLY = 0.99  # of the way to where a variable would become 0
CENTERING = 3  # the power of the share of the products that a step to 0 would leave
# Where no matrix is worth making, conjugate gradients leave this share of the squared residual, and
# of the products what would be added to the gap; or end after so many of them
ENOUGH, LEAST, MOST_PRODUCTS = 1e-6, 0.01, 500
# Steps without progress until the training ends; and until conjugate gradients that make the most
# products give way to a matrix that takes longer than these
PATIENCE, IDLE = 20, 5
PROGRESS = 0.9  # share of the gap before: one that is larger is no progress
BALANCED = 1e-3  # largest share of what dual variables can change by, to make their balance exact

# right -> the changes of weights and intercept, and of scores
Solve = Callable[[Doubles], tuple[Doubles, Doubles]]


class Step(NamedTuple):
    """How all variables change."""

    weights: Doubles  # and the intercept
    scores: Doubles
    t: Doubles
    excess: Doubles
    lack: Doubles


class InteriorProof(KinkedProof):
    """The best weights so far, and a lower bound of the optimum from the dual variables."""

    most_worth = MOST_WORTH
    lasting = (
        *KinkedProof.lasting,
        *("_begun", "_least", "_at", "_reached", "_lack", "_excess", "_t", "_left"),
        *("_in_vain", "_is_hard"),
    )
    _products_of_rows: Doubles | None = None

    def kernels(self, alone: bool) -> list[Kernel]:
        makes = [self._passes.of_matrix] if self._is_factored else []
        several = [kernels.spread, kernels.inner, kernels.advance, kernels.turn]
        return [*self._passes.kernels(smooth=False), *several, *makes]

    def _reset(self) -> None:
        super()._reset()
        self._begun, self._in_vain, self._is_hard = False, False, False
        self._least = math.inf
        self._at = np.zeros(self._columns + 1)
        self._reached = np.zeros(self._rows)
        self._take_targets()
        self._lack, self._excess, self._t, self._left = np.zeros((4, *self._sides.signs.shape))

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        """Makes a step; the mean loss before it."""
        if not self._begun:
            self._start(passed)
            self._look_at(shared, passed)
        loss = self._loss_at(self._scores, self._bias)
        if self.reason is None and self._advance(passed):
            self._look_at(shared, passed)
            self._take_harder()
        return loss

    def _take_harder(self) -> None:
        """Begins anew with a matrix by rows, if conjugate gradients do not get on.

        After their steps, variables may be near their bounds at the wrong places.
        """
        is_able = not self._is_factored and are_rows_few(self._rows, self._columns)
        if self._is_hard or not (is_able and self._in_vain):
            return
        is_cheap = products_worth_by_rows(self._nonzeros, self._rows) <= MOST_PRODUCTS
        if is_cheap or self._idle >= IDLE:
            self._is_hard, self._begun = True, False
            self._idle, self._least = 0, math.inf

    def _start(self, passed: Passed) -> None:
        """Starts with the weights that are there, and all variables far from their bounds."""
        self._begun = True
        reached = self._passes.scores(self._weights)
        passed()
        bias, slack = self._bias, SLACK
        if len(self._sides.signs) > 1:  # targets are numbers
            errors = (self._passes.targets[:, 0] - reached)[self._shares > 0.0]
            bias = median_and_deviation(errors)[0] if self._intercept else bias
            slack *= float(np.mean(np.abs(errors - bias))) or 1.0
        self._at = np.append(self._weights, bias)
        self._reached = reached + bias
        self._lack = self._sides.lack(self._reached) + slack
        self._excess = np.full(self._lack.shape, slack)
        self._t, self._left = np.zeros((2, *self._lack.shape)) + 0.5 * self._sides.costs

    def _take_targets(self) -> None:
        targets = self._passes.targets
        self._shares = targets[:, 1] if targets.shape[1] > 1 else np.ones(self._rows)
        counts = (self._shares > 0.0).astype(np.float64)
        loss, parameter = str(self._config.loss_name), self._config.loss_value
        self._sides = sides_of(loss, targets[:, 0], counts, parameter)

    def _look_again(self) -> None:
        self._spread()

    def _look_at(self, shared: Arrays, passed: Passed) -> None:
        """Keeps the weights if they are the best so far, and finds what is proved; one pass."""
        weights, bias, l2 = self._at[:-1], float(self._at[-1]), self._l2
        square = float(kernels.inner(weights, weights))
        objective = self._loss_at(self._reached, 0.0) + 0.5 * l2 * square
        if objective < self._objective:
            self._objective, self._bias = objective, bias
            self._weights, self._scores = weights.copy(), self._reached - bias
            self._store(shared)
        self._spread()
        passed()
        bound = self._mean(self._sides.wanted * self._t)
        bound -= 0.5 * float(kernels.inner(self._pull, self._pull)) / l2
        less = self._farthest.less(self._balance_left, self._objective)
        self.bound = max(self.bound, bound - less)
        gap = self._objective - self.bound
        self._idle = self._idle + 1 if gap >= PROGRESS * self._least else 0
        self._least = min(self._least, gap)

    def _spread(self) -> None:
        """Finds what the step needs of the dual variables; one pass."""
        self._balance()
        self._second = 1.0 / (self._excess / self._t + self._lack / self._left)
        self._seconds = self._shares * np.sum(self._second, axis=0)
        slopes, seconds = self._shares * self._sides.signed_sums(self._t), self._seconds
        self._pull, self._border, self._diagonal = self._passes.spread(slopes, seconds)
        self._balance_left = float(np.mean(slopes)) if self._intercept else 0.0

    def _balance(self) -> None:
        """Makes the mean of t_i sign_i exactly 0 once it is so nearly.

        Rounding leaves some of it, and the proof is the less by that, times how far from 0 the
        intercept may be: with long rows, millions.
        """
        if not self._intercept:
            return
        room = self._t * self._left
        left, able = self._mean(self._sides.signs * self._t), self._mean(room)
        if abs(left) <= BALANCED * able:
            change = self._sides.signs * room * (left / able)
            self._t, self._left = self._t - change, self._left + change

    @property
    def _doubles(self) -> tuple[Doubles, float]:
        return self._weights, self._bias

    def _loss_at(self, scores: Doubles, bias: float) -> float:
        return self._mean(self._sides.costs * self._sides.lack(scores + bias))

    def _mean(self, values: Doubles) -> float:
        """The mean over the rows of sums over their sides."""
        return float(np.mean(self._shares * np.sum(values, axis=0)))

    @property
    def _stuck(self) -> str | None:
        return "stuck" if self._idle >= PATIENCE else None

    # The step

    def _advance(self, passed: Passed) -> bool:
        """Makes a step, unless it was told to stop."""
        made = self._is_factored and self._factored(passed)
        solve = made or (self._is_hard and self._factored_by_rows(passed)) or self._iterated(passed)
        t, left, excess, lack = self._t, self._left, self._excess, self._lack
        plain = self._step(solve, -t * excess, -left * lack)
        mu = self._product(plain, 0.0)
        wanted = mu * (self._product(plain, self._share_of(plain, 1.0)) / mu) ** CENTERING
        of_excess = wanted - t * excess - plain.t * plain.excess
        found = self._step(solve, of_excess, wanted - left * lack + plain.t * plain.lack)
        if not passed(0.0):
            return False
        length = self._share_of(found, NEARLY)
        self._at = self._at + length * found.weights
        self._reached = self._reached + length * found.scores
        self._t, self._left = t + length * found.t, left - length * found.t
        self._excess = excess + length * found.excess
        self._lack = lack + length * found.lack
        return True

    def _step(self, solve: Solve, of_excess: Doubles, of_lack: Doubles) -> Step:
        """The step that changes t excess and left lack by these amounts, and solves the rest."""
        signs = self._sides.signs
        missing = self._sides.wanted - self._lack + self._excess - signs * self._reached
        # The change of t, but for what follows from that of the scores
        offset = self._second * (missing - of_lack / self._left + of_excess / self._t)
        slopes = self._shares * self._sides.signed_sums(offset)
        right = self._pull - self._l2 * self._at[:-1]
        right += self._passes.spread(slopes, self._passes.seconds)[0]
        balance = self._balance_left + float(np.mean(slopes))
        weights, scores = solve(np.append(right, balance * self._intercept))
        t = offset - self._second * signs * scores
        excess = (of_excess - self._excess * t) / self._t
        return Step(weights, scores, t, excess, (of_lack + self._lack * t) / self._left)

    def _product(self, step: Step, length: float) -> float:
        """The mean of the products after a part of a step."""
        t = self._t + length * step.t, self._left - length * step.t
        others = self._excess + length * step.excess, self._lack + length * step.lack
        return float(np.mean(t[0] * others[0]) + np.mean(t[1] * others[1])) / 2.0

    def _share_of(self, step: Step, share: float) -> float:
        """How far to go: this share of the way to where a variable is 0, and at most 1."""
        now = self._t, self._left, self._excess, self._lack
        changes = step.t, -step.t, step.excess, step.lack
        fastest = max(float(np.max(-by / at)) for at, by in zip(now, changes, strict=True))
        return min(1.0, share / fastest) if fastest > 0.0 else 1.0

    # The equations

    @property
    def _corner(self) -> float:
        return float(np.mean(self._seconds)) if self._intercept else 1.0

    @property
    def _edge(self) -> Doubles:
        return self._border if self._intercept else np.zeros(self._columns)

    def _factored(self, passed: Passed) -> Solve | None:
        """Solves with the factors of the matrix, unless rounding leaves none."""
        matrix = self._bordered()
        passed()
        try:
            solution = factored(matrix)
        except np.linalg.LinAlgError:
            return None

        def solve(right: Doubles) -> tuple[Doubles, Doubles]:
            found = solution(right)
            passed()
            return found, self._passes.scores(found[:-1]) + found[-1]

        return solve

    def _factored_by_rows(self, passed: Passed) -> Solve | None:
        """The same with as many equations as rows, for u / sqrt(D)."""
        if self._products_of_rows is None:
            self._products_of_rows = self._passes.products_of_rows() / self._rows
        roots = np.sqrt(self._seconds)
        matrix = roots[:, None] * self._products_of_rows
        matrix *= roots
        matrix[np.diag_indices(self._rows)] += self._l2
        try:
            solution = factored(matrix)
        except np.linalg.LinAlgError:
            return None
        of_bias = solution(self._l2 * roots) if self._intercept else roots

        def solve(right: Doubles) -> tuple[Doubles, Doubles]:
            found, bias = solution(roots * self._passes.scores(right[:-1])), 0.0
            passed()
            if self._intercept:
                left = self._rows * right[-1] - float(kernels.inner(roots, found))
                bias = left / float(kernels.inner(roots, of_bias))
                found += bias * of_bias
            pulled = self._passes.spread(roots * found, self._passes.seconds)[0]
            passed()
            weights = (right[:-1] - pulled) / self._l2
            scores = self._passes.scores(weights) + bias
            passed()
            return np.append(weights, bias), scores

        return solve

    def _iterated(self, passed: Passed) -> Solve:
        """Solves by conjugate gradients."""
        edge, corner = self._edge, self._corner
        mean = float(np.mean(self._t * self._excess) + np.mean(self._left * self._lack))
        enough = 2.0 * self._l2 * LEAST * mean

        def product(search: Doubles, dots: Doubles) -> Doubles:
            image = self._passes.product(search[:-1], dots) + self._l2 * search[:-1]
            dots += search[-1]
            image += search[-1] * edge
            along = float(kernels.inner(edge, search[:-1]))
            return np.append(image, along + corner * search[-1])

        def goes_on(now: Progress) -> bool:
            is_enough = now.size <= ENOUGH and now.square <= enough
            is_last = now.products >= MOST_PRODUCTS
            self._in_vain |= is_last and not is_enough
            return passed() and not is_enough and not is_last

        def solve(right: Doubles) -> tuple[Doubles, Doubles]:
            diagonal = np.append(self._l2 + self._diagonal, corner)
            found = conjugate_gradients(product, right, diagonal, self._rows, goes_on)
            return found.direction, found.changes

        return solve
