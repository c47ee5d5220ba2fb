"""Losses: the cost of a score, and its derivative by the score.

A loss is two scalar functions, ``value(score, target, parameter)`` and ``slope`` with the same
arguments; kernels compile them in. For classes, targets are -1 and +1, and z = target * score is
the margin; for numbers, d = score - target. A new entry of ``LOSSES`` is known to the kernels, the
command line, the documentation and the tests.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hogwild.kernels.compile import always_inline, inline
from hogwild.kernels.exponential import exp, log1p

Scalar = Callable[[float, float, float], float]

# Below this margin the exponential loss continues as its tangent (exp(50) is 5e21): no overflow
STEEPEST = -50.0
# Above this score the Poisson loss continues as its tangent
HIGHEST = 30.0
ROUNDS = 8  # of Newton's method in an implicit step; one that has not ended by then is shorter
# Where a product of factors exceeds this, its logarithm is added to the total
LARGE = 1e300
# Below this share of the target, the Kullback-Leibler divergence continues as its tangent
FAINTEST = 0.1

# Kinds of targets: one of two classes, numbers, one of several classes, several labels at once
SIGNS, NUMBERS, COUNTS, CLASSES, LABELS = "signs", "numbers", "counts", "classes", "labels"


@dataclass(frozen=True)
class Parameter:
    """The parameter of a loss: the option that sets it, and its default."""

    option: str
    default: float


@dataclass(frozen=True)
class Loss:
    """A loss.

    Attributes:
        formula: for the reader.
        value, slope: the cost of a score, and its derivative by the score.
        kinds: the kinds of targets that it is for.
        curvature: the largest change of the slope where the score changes by one. Where the slope
            jumps, half of the jump: few scores are at the jump at a time.
        second: the second derivative by the score, with the same arguments, of a loss whose slope
            does not jump.
        has_class_passes: whether `kernels/class_passes.py` has the derivatives by all scores of a
            row, of a loss of all classes together.
        parameter: the parameter, if any.
        after: for a loss so steep that plain steps overshoot: (score, target, pull) -> the score u
            after an implicit step, u = score - pull * slope(u).
        probability: scores -> probabilities of the class +1, if the loss gives any.
        mean: scores -> expected values of the target, where that is not the score.
        for_many: value and slope that LLVM can vectorize, where it cannot vectorize the others.
        add: adds a value to a sum kept as two numbers, ``total + log(product)``: hundreds of
            logarithms become one.
    """

    formula: str
    value: Scalar
    slope: Scalar
    kinds: tuple[str, ...] = (SIGNS,)
    curvature: float = 1.0
    second: Scalar | None = None
    has_class_passes: bool = False
    parameter: Parameter | None = None
    after: Scalar | None = None
    probability: Callable[[Any], Any] | None = None
    mean: Callable[[Any], Any] | None = None
    for_many: tuple[Scalar, Scalar] | None = None
    add: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        own = self.value, self.slope, self.second, self.after, self.add
        for function in (*own, *(self.for_many or ())):
            if function is not None:
                inline(function)

    @property
    def is_smooth(self) -> bool:
        """Whether its slope does not jump, so that Newton's method and L-BFGS take it."""
        return self.second is not None or self.has_class_passes

    @property
    def of_heads(self) -> tuple[Scalar, Scalar]:
        """Value and slope for rows with several scores."""
        return self.for_many or (self.value, self.slope)


def _logistic(exp_of: Any, log1p_of: Any) -> tuple[Scalar, Scalar]:
    """Value and slope, given exp and log1p."""

    def logistic(score: float, target: float, parameter: float) -> Any:
        margin = target * score
        return max(0.0, -margin) + log1p_of(exp_of(-abs(margin)))

    def logistic_slope(score: float, target: float, parameter: float) -> Any:
        # -target / (1 + exp(z)), written so that exp cannot overflow
        margin = target * score
        small = exp_of(-abs(margin))
        return -target * (small if margin > 0.0 else 1.0) / (1.0 + small)

    return logistic, logistic_slope


def add_logistic(sums: Any, score: float, target: float, parameter: float) -> Any:
    # A value below 1e-16 is lost: each row adds an absolute error of at most 1e-16
    total, product = sums
    margin = target * score
    total += max(0.0, -margin)
    product *= 1.0 + math.exp(-abs(margin))
    if product > LARGE:
        return total + math.log(product), 1.0
    return total, product


def logistic_second(score: float, target: float, parameter: float) -> float:
    small = exp(-abs(score))
    return small / ((1.0 + small) * (1.0 + small))


def modified_huber(score: float, target: float, parameter: float) -> float:
    margin = target * score
    return max(0.0, 1.0 - margin) ** 2 if margin >= -1.0 else -4.0 * margin


def exponential(score: float, target: float, parameter: float) -> float:
    margin = target * score
    clipped = max(margin, STEEPEST)
    return math.exp(-clipped) * (1.0 + (clipped - margin))


def exponential_second(score: float, target: float, parameter: float) -> float:
    margin = target * score
    return math.exp(-margin) if margin > STEEPEST else 0.0


def divergence(score: float, target: float, parameter: float) -> float:
    if target <= 0.0:
        return score - target
    clipped = max(score, FAINTEST * target)
    tangent = (1.0 - target / clipped) * (score - clipped)
    return target * math.log(target / clipped) - target + clipped + tangent


def huber(score: float, target: float, parameter: float) -> float:
    size = abs(score - target)
    return 0.5 * size * size if size <= parameter else parameter * (size - 0.5 * parameter)


def epsilon_insensitive_slope(score: float, target: float, parameter: float) -> float:
    difference = score - target
    return 1.0 if difference > parameter else -1.0 if difference < -parameter else 0.0


def poisson(score: float, target: float, parameter: float) -> float:
    clipped = min(score, HIGHEST)
    return math.exp(clipped) * (1.0 + (score - clipped)) - target * score


def poisson_after(score: float, target: float, pull: float) -> float:
    # Newton's method for u = score - pull * (exp(u) - target); it starts above u and stays there
    after = score
    if math.exp(min(score, HIGHEST)) < target:
        after = min(math.log(target), score + pull * target)
    for _ in range(ROUNDS):
        power = pull * math.exp(min(after, HIGHEST))
        after -= (after - score + power - pull * target) / (1.0 + power)
    return after


def _sigmoid(score: Any) -> Any:
    from scipy.special import expit

    return expit(score)


def _softmax(scores: Any) -> Any:
    from scipy.special import softmax

    return softmax(scores, axis=1)


LOSSES: dict[str, Loss] = {
    "hinge": Loss(
        "max(0, 1 - z)",
        lambda score, target, _: max(0.0, 1.0 - target * score),
        lambda score, target, _: -target if target * score < 1.0 else 0.0,
        curvature=0.5,
    ),
    "squared_hinge": Loss(
        "max(0, 1 - z)^2",
        lambda score, target, _: max(0.0, 1.0 - target * score) ** 2,
        lambda score, target, _: -2.0 * target * max(0.0, 1.0 - target * score),
        curvature=2.0,
        second=lambda score, target, _: 2.0 if target * score < 1.0 else 0.0,
    ),
    "logistic": Loss(
        "log(1 + exp(-z))",
        *_logistic(math.exp, math.log1p),
        curvature=0.25,
        second=logistic_second,
        probability=_sigmoid,
        add=add_logistic,
        for_many=_logistic(exp, log1p),
    ),
    "squared": Loss(
        "d^2 / 2",
        lambda score, target, _: 0.5 * (score - target) ** 2,
        lambda score, target, _: score - target,
        (SIGNS, NUMBERS, COUNTS),
        second=lambda score, target, _: 1.0,
    ),
    "modified_huber": Loss(
        "max(0, 1 - z)^2, and -4 z below z = -1",
        modified_huber,
        lambda score, target, _: -2.0 * target * min(2.0, max(0.0, 1.0 - target * score)),
        curvature=2.0,
        second=lambda score, target, _: 2.0 if abs(target * score) < 1.0 else 0.0,
        probability=lambda score: (score.clip(-1, 1) + 1) / 2,
    ),
    "exponential": Loss(
        "exp(-z), straight below z = -50",
        exponential,
        lambda score, target, _: -target * math.exp(-max(target * score, STEEPEST)),
        second=exponential_second,
    ),
    "cross_entropy": Loss(
        "log(1 + exp(-z)), z = score of the class - log(sum of exp(scores of the others))",
        *_logistic(math.exp, math.log1p),
        (CLASSES,),
        curvature=0.5,
        has_class_passes=True,
        probability=_softmax,
    ),
    "perceptron": Loss(
        "max(0, -z)",
        lambda score, target, _: max(0.0, -target * score),
        # At zero, too: all scores start there, and training must get going
        lambda score, target, _: -target if target * score <= 0.0 else 0.0,
        curvature=0.5,
    ),
    "absolute": Loss(
        "|d|",
        lambda score, target, _: abs(score - target),
        lambda score, target, _: 1.0 if score > target else -1.0 if score < target else 0.0,
        (NUMBERS, COUNTS),
    ),
    "huber": Loss(
        "d^2 / 2, straight above |d| = epsilon",
        huber,
        lambda score, target, epsilon: max(-epsilon, min(epsilon, score - target)),
        (NUMBERS, COUNTS),
        second=lambda score, target, epsilon: 1.0 if abs(score - target) < epsilon else 0.0,
        parameter=Parameter("epsilon", 0.1),
    ),
    "epsilon_insensitive": Loss(
        "max(0, |d| - epsilon)",
        lambda score, target, epsilon: max(0.0, abs(score - target) - epsilon),
        epsilon_insensitive_slope,
        (NUMBERS, COUNTS),
        parameter=Parameter("epsilon", 0.1),
    ),
    "quantile": Loss(
        "quantile * max(0, -d) + (1 - quantile) * max(0, d)",
        lambda score, target, q: max((1.0 - q) * (score - target), q * (target - score)),
        lambda score, target, q: 1.0 - q if score > target else -q if score < target else 0.0,
        (NUMBERS, COUNTS),
        curvature=0.5,
        parameter=Parameter("quantile", 0.5),
    ),
    "poisson": Loss(
        "exp(score) - target * score, straight above a score of 30",
        poisson,
        lambda score, target, _: math.exp(min(score, HIGHEST)) - target,
        (COUNTS,),
        second=lambda score, target, _: math.exp(score) if score < HIGHEST else 0.0,
        after=poisson_after,
        mean=np.exp,
    ),
}

# Factorization learns values, not signs (logistic: -1 and 1 stand for the values 0 and 1)
FACTOR_LOSSES: dict[str, Loss] = {
    name: LOSSES[name] for name in ("squared", "absolute", "logistic")
}
FACTOR_LOSSES["kl"] = Loss(
    "target log(target / score) - target + score, straight below target / 10",
    divergence,
    lambda score, target, _: 1.0 - target / max(score, FAINTEST * target) if target > 0.0 else 1.0,
    (NUMBERS,),
)


@cache
def adder(loss: str, weighted: bool) -> Callable[..., Any]:
    """(sums, weight, score, target, parameter) -> sums, with the weighted loss of a row added."""
    value, add = LOSSES[loss].value, LOSSES[loss].add

    @inline
    def add_weighted(sums: Any, weight: Any, score: Any, target: Any, parameter: Any) -> Any:
        total, product = sums
        return total + weight * value(score, target, parameter), product

    if add is None:
        return add_weighted

    @inline
    def add_one(sums: Any, weight: Any, score: Any, target: Any, parameter: Any) -> Any:
        if weighted and weight != 1.0:
            return add_weighted(sums, weight, score, target, parameter)
        return add(sums, score, target, parameter)

    return add_one


# scikit-learn's names of some losses
ALIASES = {"log_loss": "logistic", "squared_error": "squared", "absolute_error": "absolute"}


def loss_named(name: Any) -> Any:
    """The name of a loss in `LOSSES`, where scikit-learn has another one for it."""
    return ALIASES.get(name, name) if isinstance(name, str) else name


def names_for(kind: str) -> list[str]:
    """The losses for a kind of targets."""
    return [name for name, loss in LOSSES.items() if kind in loss.kinds]


@always_inline
def rating_error(is_logistic: Any, score: Any, value: Any) -> Any:
    """The error of a predicted rating; with the logistic loss, that of the probability of a 1."""
    expected, given = np.float64(score), np.float64(value)
    if is_logistic:
        return 1.0 / (1.0 + np.exp(-expected)) - 0.5 * (given + 1.0)
    return expected - given
