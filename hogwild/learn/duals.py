"""Dual forms of losses: one dual variable for each row, and the best value of one of them.

    loss(score) = max over a of e(a) - a * score,   weights = 1 / (l2 n) * sum of a * row

`a` is minus the slope of the loss at the optimum. For classes a = t * target, with t >= 0. A step
sets one `a` to where the dual objective is highest while all others stay:

    best(score, target, a, k, parameter) = argmax over A of e(A) - score * A - k / 2 * (A - a)^2

`k` is 1 / (l2 n) times the squared length of the row. After Hsieh et al., "A dual coordinate
descent method for large-scale linear SVM", 2008, and Yu, Huang and Lin, "Dual coordinate descent
methods for logistic regression and maximum entropy models", 2011.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from hogwild.kernels.compile import inline
from hogwild.learn.losses import LOSSES

Scalar = Callable[..., float]
Bounds = Callable[[float, float], tuple[float, float]]

# Bounds that single precision does not hold exactly are moved inwards by this share
INWARDS = 1.0 - 2.0**-22
# A step on a logistic margin that is at most this long needs one round of Newton's method
SHORT = 0.8
NEAR = 0.02  # two rounds of Newton's method whose margins are this close end the search
ROUNDS = 50
TINY = 1e-30


@dataclass(frozen=True)
class Dual:
    """The dual form of a loss; a missing `pull` means that no variable stays at a bound for long.

    Attributes:
        best: (score, target, a, k, parameter) -> the new dual variable.
        value: (a, target, parameter) -> e(a).
        bounds: (target, parameter) -> the least and the largest dual variable.
        excess: (score, target, a, parameter) -> about loss(score) + a * score - e(a), which is what
            a row adds to the duality gap.
        pull: (score, target, a, parameter) -> how much the score must change until a variable
            moves that did not, or the size of the derivative for one that did.
        smooth: whether the loss has a slope that does not jump: the weights are then as good as
            any mean of them.
        grows: whether the first pass may be one of stochastic gradient descent.
        flat: whether the loss is 0 over a whole range, in which a is 0.
    """

    best: Scalar
    value: Scalar
    bounds: Bounds
    excess: Scalar
    pull: Scalar | None = None
    smooth: bool = False
    grows: bool = False
    flat: bool = False

    @property
    def lean(self) -> bool:
        """Whether rows are put aside whose variables will likely not change any more."""
        return self.pull is not None


def exact_excess(loss: str, value: Scalar) -> Scalar:
    """What a row adds to the duality gap."""
    loss_of = LOSSES[loss].value

    @inline
    def excess(score, target, a, parameter):
        return loss_of(score, target, parameter) + a * score - value(a, target, parameter)

    return excess


# Hinge: e = t, 0 <= t <= 1


@inline
def hinge_best(score, target, a, k, parameter):
    return target * min(1.0, max(0.0, target * a - (target * score - 1.0) / k))


@inline
def hinge_value(a, target, parameter):
    return target * a


@inline
def hinge_bounds(target, parameter):
    return min(0.0, target), max(0.0, target)


@inline
def hinge_pull(score, target, a, parameter):
    return abs(target * score - 1.0)


# Squared hinge: e = t - t^2 / 4, 0 <= t


@inline
def squared_hinge_best(score, target, a, k, parameter):
    t = target * a
    return target * max(0.0, t - (target * score - 1.0 + 0.5 * t) / (k + 0.5))


@inline
def squared_hinge_value(a, target, parameter):
    return target * a - 0.25 * a * a


@inline
def squared_hinge_bounds(target, parameter):
    return (0.0, math.inf) if target > 0.0 else (-math.inf, 0.0)


@inline
def squared_hinge_pull(score, target, a, parameter):
    return abs(target * score - 1.0 + 0.5 * target * a)


# Logistic: e = -t log t - (1 - t) log(1 - t), 0 < t < 1


@inline
def sigmoid_of_minus(margin):
    """1 / (1 + exp(margin)), with all digits where it is small."""
    small = math.exp(-abs(margin))
    return (small if margin > 0.0 else 1.0) / (1.0 + small)


@inline
def margin_after(margin, t, k):
    """The root m of m = margin + k (sigma(-m) - t).

    One round of Newton's method is enough for a short step. A long one is kept in a bracket: a
    single round would diverge where k is large.
    """
    share = sigmoid_of_minus(margin)
    step = k * (share - t)
    if abs(step) <= SHORT:
        return margin + step / (1.0 + k * share * (1.0 - share))
    # The root lies between the old margin and the one that ignores how the slope changes; and
    # before the margin at which t would not move
    far = margin + step
    if 0.0 < t < 1.0:
        unmoved = math.log((1.0 - t) / t)
        far = min(far, unmoved) if step > 0.0 else max(far, unmoved)
    low, high = min(margin, far), max(margin, far)
    at, moved = margin, 2.0 * abs(step)
    for _ in range(ROUNDS):
        excess = at - margin - k * (share - t)
        if excess > 0.0:
            high = at
        else:
            low = at
        after = at - excess / (1.0 + k * share * (1.0 - share))
        if not low <= after <= high or abs(after - at) > 0.5 * moved:
            after = 0.5 * (low + high)
        moved = abs(after - at)
        at = after
        # Near enough, also beside how far t moves: else a step might do harm
        if moved < NEAR and k * share * (1.0 - share) * moved <= 0.5 * abs(at - margin):
            break
        share = sigmoid_of_minus(at)
    return at


@inline
def logistic_best(score, target, a, k, parameter):
    return target * sigmoid_of_minus(margin_after(target * score, target * a, k))


@inline
def logistic_value(a, target, parameter):
    t = target * a
    return -t * math.log(max(t, TINY)) - (1.0 - t) * math.log(max(1.0 - t, TINY))


@inline
def logistic_excess(score, target, a, parameter):
    # A divergence of two probabilities, without its logarithms
    share, t = sigmoid_of_minus(target * score), target * a
    spread = max(share * (1.0 - share), t * (1.0 - t)) + TINY
    return 0.5 * (share - t) ** 2 / spread


# Losses of numbers, whose derivative by a is target - score at most


@inline
def squared_best(score, target, a, k, parameter):
    return a + (target - score - a) / (1.0 + k)


@inline
def squared_value(a, target, parameter):
    return a * target - 0.5 * a * a


@inline
def unbounded(target, parameter):
    return -math.inf, math.inf


@inline
def huber_best(score, target, a, k, epsilon):
    most = INWARDS * epsilon
    return min(most, max(-most, a + (target - score - a) / (1.0 + k)))


@inline
def huber_bounds(target, epsilon):
    return -INWARDS * epsilon, INWARDS * epsilon


@inline
def huber_pull(score, target, a, parameter):
    return abs(target - score - a)


@inline
def absolute_best(score, target, a, k, parameter):
    return min(1.0, max(-1.0, a + (target - score) / k))


@inline
def absolute_value(a, target, parameter):
    return a * target


@inline
def absolute_bounds(target, parameter):
    return -1.0, 1.0


@inline
def absolute_pull(score, target, a, parameter):
    return abs(target - score)


@inline
def quantile_best(score, target, a, k, quantile):
    least, most = INWARDS * (quantile - 1.0), INWARDS * quantile
    return min(most, max(least, a + (target - score) / k))


@inline
def quantile_bounds(target, quantile):
    return INWARDS * (quantile - 1.0), INWARDS * quantile


@inline
def tube_best(score, target, a, k, epsilon):
    free = a + (target - score) / k
    near = min(abs(free), epsilon / k)
    return min(1.0, max(-1.0, free - math.copysign(near, free)))


@inline
def tube_value(a, target, epsilon):
    return a * target - epsilon * abs(a)


@inline
def tube_pull(score, target, a, epsilon):
    error = target - score
    return abs(abs(error) - epsilon if a == 0.0 else error - math.copysign(epsilon, a))


DUALS: dict[str, Dual] = {
    "hinge": Dual(
        hinge_best,
        hinge_value,
        hinge_bounds,
        exact_excess("hinge", hinge_value),
        hinge_pull,
        grows=True,
    ),
    "squared_hinge": Dual(
        squared_hinge_best,
        squared_hinge_value,
        squared_hinge_bounds,
        exact_excess("squared_hinge", squared_hinge_value),
        squared_hinge_pull,
        smooth=True,
        grows=True,
    ),
    "logistic": Dual(
        logistic_best, logistic_value, hinge_bounds, logistic_excess, smooth=True, grows=True
    ),
    "squared": Dual(
        squared_best,
        squared_value,
        unbounded,
        exact_excess("squared", squared_value),
        smooth=True,
    ),
    "huber": Dual(
        huber_best,
        squared_value,
        huber_bounds,
        exact_excess("huber", squared_value),
        huber_pull,
        smooth=True,
    ),
    "epsilon_insensitive": Dual(
        tube_best,
        tube_value,
        absolute_bounds,
        exact_excess("epsilon_insensitive", tube_value),
        tube_pull,
        flat=True,
    ),
    "quantile": Dual(
        quantile_best,
        absolute_value,
        quantile_bounds,
        exact_excess("quantile", absolute_value),
        absolute_pull,
    ),
    "absolute": Dual(
        absolute_best,
        absolute_value,
        absolute_bounds,
        exact_excess("absolute", absolute_value),
        absolute_pull,
    ),
}
