"""The solvers `gd` and `lbfgs`: batch gradient descent and L-BFGS, for teaching and comparison.

Both use the passes of `newton`, and its intercept, line search and proof. An epoch is a step,
and takes two passes: one for the gradient g, and one for the scores along the direction d.

    gd       d = -g, as long as the curvature along it says
    lbfgs    d = -B g, B from the last changes s of the weights and y of the gradient

Where the slope of a loss jumps there is no line search. `gd` then makes steps along subgradients,

    w <- w - g_t / (1/c + l2 (t - 1)),   without l2: w - c g_t / sqrt(t),   c = P(w) / |g_1|^2

and keeps the best weights so far. After Nocedal and Wright, "Numerical optimization", 2006,
chapters 3 and 7; the rates of subgradients are those of Shalev-Shwartz, Singer and Srebro,
"Pegasos", 2007, and the first step is that of Polyak, 1969, for a least objective of 0.
"""

import math
from abc import abstractmethod

import numpy as np

from hogwild.kernels.compile import Kernel
from hogwild.kernels.passes import inner
from hogwild.lasting import Lasting, Saved, fit
from hogwild.learn.conjugate import Solution
from hogwild.learn.losses import LOSSES
from hogwild.learn.newton import RESIDUAL, Newton, NewtonProof
from hogwild.learn.passes import ROUNDING
from hogwild.learn.problem import Doubles, Passed
from hogwild.parallel.memory import Arrays, Wanted

PAIRS = 10
FEWEST = 10  # steps, before their gains are too small
# Steps along subgradients, and share of all of them, without progress, after which it is stuck.
# With 0.5, 20 rows 20 times each ended with a gap of 9 %; with 0.9 it was 1.4 %, and falling
PATIENCE, IDLE = 100, 0.9


class GradientDescent(Newton):
    """Steepest descent; along subgradients where the slope of the loss jumps."""

    def outcome(self, columns: int, nonzeros: float) -> NewtonProof:
        smooth = LOSSES[self._config.loss_name].is_smooth
        proof = SteepestProof if smooth else SubgradientProof
        return proof(self._config, self._heads, self._data, columns)


class Lbfgs(Newton):
    """L-BFGS."""

    def outcome(self, columns: int, nonzeros: float) -> NewtonProof:
        return LbfgsProof(self._config, self._heads, self._data, columns)


class Gains(Lasting):
    """The objectives of all steps."""

    lasting = ("_objectives",)

    def __init__(self) -> None:
        self._objectives: list[float] = []

    def add(self, objective: float) -> None:
        self._objectives.append(objective)

    @property
    def lately(self) -> float:
        """What the last half of the steps gained; infinite where they are few.

        Where gaps shrink like 1/t, as much is still to be gained.
        """
        steps = len(self._objectives)
        if steps < FEWEST:
            return np.inf
        return self._objectives[steps // 2] - self._objectives[-1]


class DescentProof(NewtonProof):
    """Weights that move along directions found from gradients."""

    polishes = False
    lasting: tuple[str, ...] = (*NewtonProof.lasting, "_gains")

    def kernels(self, alone: bool) -> list[Kernel]:
        return [*self._passes.kernels(), inner]

    def _reset(self) -> None:
        super()._reset()
        self._gains = Gains()

    @abstractmethod
    def _way(self, downhill: Doubles) -> Doubles:
        """A direction of any length, given minus the gradient."""

    def _look(self) -> None:
        super()._look()
        self._gains.add(self._objective)

    def _direction(self, passed: Passed) -> Solution:
        """A direction; its length is that of a Newton step along it, until more is known."""
        downhill = self._downhill
        way = self._way(downhill)
        changes = self._passes.scores(way)
        passed()
        falls = float(inner(downhill, way))
        length = self._first_length(way, changes, falls)
        return Solution(length * way, length * changes, 0.5 * length * falls)

    def _first_length(self, way: Doubles, changes: Doubles, falls: float) -> float:
        """How far to try to go along a way."""
        turn = self._passes.turn(changes)
        scores, bias = self._scores, self._bias
        _, _, bends = self._passes.along(scores, changes, 0.0, bias, 1.0, turn)
        bends += self._l2 * float(inner(way, way))
        return falls / bends if bends > 0.0 and falls > 0.0 else 1.0

    @property
    def _lately(self) -> float:
        """What the last steps gained."""
        return self._gains.lately


class SteepestProof(DescentProof):
    """Steepest descent."""

    def _way(self, downhill: Doubles) -> Doubles:
        return downhill


class LbfgsProof(DescentProof):
    """L-BFGS, with a memory of `PAIRS` pairs."""

    lasting = (*DescentProof.lasting, "_pairs", "_last")

    def _reset(self) -> None:
        super()._reset()
        self._pairs: list[tuple[Doubles, Doubles, float]] = []  # s, y and their product
        self._last: tuple[Doubles, Doubles] | None = None  # weights, and minus their gradient

    def put_back(self, saved: Saved) -> None:
        super().put_back(saved)
        known = [array for s, y, _ in self._pairs for array in (s, y)]
        fit(self._weights.size, *known, *(self._last or ()))

    def _way(self, downhill: Doubles) -> Doubles:
        """The two loops of L-BFGS."""
        self._remember(downhill)
        way, shares = downhill.copy(), []
        for s, y, product in reversed(self._pairs):
            shares.append(float(inner(s, way)) / product)
            way -= shares[-1] * y
        if self._pairs:
            _, y, product = self._pairs[-1]
            way *= product / float(inner(y, y))
        for s, y, product in self._pairs:
            way += (shares.pop() - float(inner(y, way)) / product) * s
        return way

    def _remember(self, downhill: Doubles) -> None:
        if self._last is not None:
            s, y = self._weights - self._last[0], self._last[1] - downhill
            product = float(inner(s, y))
            if not s.any():  # the pairs led to no progress
                self._pairs.clear()
            if product > 0.0:
                self._pairs = [*self._pairs, (s, y, product)][-PAIRS:]
        self._last = self._weights.copy(), downhill

    def _first_length(self, way: Doubles, changes: Doubles, falls: float) -> float:
        return 1.0 if self._pairs else super()._first_length(way, changes, falls)


class SubgradientProof(NewtonProof):
    """The best weights of all steps along subgradients, and a bound from a mean of the slopes.

    The slopes at any weights are dual variables, and so is a mean of such slopes. The mean proves
    much more: its gradients are like those of an optimum (`NewtonProof` has the bound). Later
    slopes count more, like t^2.
    """

    kept = "stored", "walked"
    polishes = False
    lasting = (
        *NewtonProof.lasting,
        *("_begun", "_loss", "_first", "_steps", "_gains", "_pull", "_at", "_reached"),
        *("_shares", "_mean", "_mean_pull"),
    )

    def shared(self) -> Wanted:
        """The number of steps, and the first rate."""
        return {"walked": (2, np.float32)}

    def kernels(self, alone: bool) -> list[Kernel]:
        return [*self._passes.of_subgradients, inner]

    def _reset(self) -> None:
        super()._reset()
        self._begun, self._loss, self._first = False, 0.0, 0.0
        self._steps, self._idle = 0, 0
        self._pull: Doubles = np.zeros(self._columns)
        self._gains = Gains()
        self._at, self._reached = np.zeros(self._columns), np.zeros(self._rows)
        # Means of product and slope, and of the gradients, times the sum of their shares
        self._shares, self._mean, self._mean_pull = 0.0, np.zeros(2), np.zeros(self._columns)

    def _look_again(self) -> None:
        """Nothing: all that follows from the scores lasts."""

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        """Makes a step; the mean loss before it."""
        goes_on = True
        if not self._begun:
            self._start(shared)
            goes_on = self._look_at(shared, passed)
        loss = self._loss
        if goes_on and self.reason is None:
            downhill = -(self._l2 * self._at + self._pull)
            self._at += self._rate(downhill) * downhill
            self._steps += 1
            self._reached = self._passes.scores(self._at)
            passed()
            self._look_at(shared, passed)
            shared["walked"][:] = self._steps, self._first
        return loss

    def _start(self, shared: Arrays) -> None:
        """Starts at the weights that are there."""
        self._begun = True
        self._steps, self._first = int(shared["walked"][0]), float(shared["walked"][1])
        zeros = np.zeros(self._rows)
        bias = self._passes.best_bias(zeros, self._bias)
        self._scale = min(self._scale, self._loss_at(zeros, bias))
        self._at, self._reached = self._weights.copy(), self._passes.scores(self._weights)
        # Means of product and slope, and of the gradients, times the sum of their shares
        self._shares, self._mean, self._mean_pull = 0.0, np.zeros(2), np.zeros(self._columns)

    def _look_at(self, shared: Arrays, passed: Passed) -> bool:
        """Keeps the weights if they are the best so far, and finds what is proved; one pass."""
        bias = self._passes.best_bias(self._reached, self._bias)
        self._loss = self._loss_at(self._reached, bias)
        square = float(inner(self._at, self._at))
        objective = self._loss + 0.5 * self._l2 * square
        before = self._objective, self.bound
        if objective < self._objective:
            self._objective, self._bias = objective, bias
            self._weights, self._scores = self._at.copy(), self._reached
            self._store(shared)
        self._gains.add(self._objective)
        found = self._passes.subgradient(self._reached, bias)
        self._pull = found.gradient
        self._prove_by(np.array([found.product, found.slope]), (self._steps + 1) ** 2)
        if self._l2 > 0.0 and self._objective == 0.0:
            self.bound = 0.0  # no loss with kinks is negative: more than 0 was rounding
        least = ROUNDING * abs(objective)
        is_better = self._objective < before[0] - least or self.bound > before[1] + least
        self._idle = 0 if is_better else self._idle + 1
        return passed()

    def _prove_by(self, means: Doubles, share: float) -> None:
        """Adds the slopes at some weights to the mean of slopes, and finds what they prove."""
        self._shares += share
        self._mean += share * means
        self._mean_pull += share * self._pull
        if self._l2 > 0.0:
            product, slope = self._mean / self._shares
            square = float(inner(self._mean_pull, self._mean_pull)) / self._shares**2
            found = product - 0.5 * square / self._l2
            self.bound = max(self.bound, found - RESIDUAL * abs(self._bias * slope))

    def _rate(self, downhill: Doubles) -> float:
        """The length of this step."""
        square = float(inner(downhill, downhill))
        if not self._first and square:
            self._first = self._objective / square
        if not self._l2:
            return self._first / math.sqrt(self._steps + 1.0)
        return self._first / (1.0 + self._l2 * self._first * self._steps)

    @property
    def _lately(self) -> float:
        """What the last steps gained."""
        return self._gains.lately

    @property
    def _stuck(self) -> str | None:
        return "stuck" if self._idle > max(PATIENCE, IDLE * self._steps) else None
