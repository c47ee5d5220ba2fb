"""Losses: what a score costs, and the derivative of that by the score.

A loss is two scalar functions, ``value(score, target)`` and ``slope(score, target)``, with targets
-1 and +1; in the formulas z = target * score is the margin. Add one here and the kernels, the
command line, the documentation and the tests know it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hogwild.kernels.compile import inline, one_of

Scalar = Callable[[float, float], float]

# Below this margin the exponential loss goes on as its tangent (exp(50) is 5e21): no overflow
STEEPEST = -50.0
# A product beyond this is not multiplied any more, but its logarithm taken
LARGE = 1e300
# Below this share of the target the Kullback-Leibler divergence of a score goes on as its tangent
FAINTEST = 0.1


@dataclass(frozen=True)
class Loss:
    """A loss: its formula for the reader, value, slope, and what a score says of the odds.

    `bend` is how far the slope changes, at most, where the score changes by one; where the slope
    jumps, which few scores come to at a time, half of the jump.
    `add` adds a value to a sum that is kept as two numbers, ``total + log(product)``: of values
    that are logarithms themselves, one logarithm is then taken for hundreds of them.
    """

    formula: str
    value: Scalar
    slope: Scalar
    probability: Callable[[Any], Any] | None = None
    bend: float = 1.0
    add: Callable[[float, float, float, float], tuple[float, float]] | None = None


@inline
def hinge(score: float, target: float) -> float:
    return max(0.0, 1.0 - target * score)


@inline
def hinge_slope(score: float, target: float) -> float:
    return -target if target * score < 1.0 else 0.0


@inline
def squared_hinge(score: float, target: float) -> float:
    return max(0.0, 1.0 - target * score) ** 2


@inline
def squared_hinge_slope(score: float, target: float) -> float:
    return -2.0 * target * max(0.0, 1.0 - target * score)


@inline
def logistic(score: float, target: float) -> float:
    margin = target * score
    return max(0.0, -margin) + math.log1p(math.exp(-abs(margin)))


@inline
def logistic_slope(score: float, target: float) -> float:
    # -target / (1 + exp(z)), written so that exp cannot overflow
    margin = target * score
    small = math.exp(-abs(margin))
    return -target * (small if margin > 0.0 else 1.0) / (1.0 + small)


@inline
def add_logistic(total: float, product: float, score: float, target: float) -> tuple[float, float]:
    # Of a value below 1e-16 nothing is left: what is added is right to as much for each row
    margin = target * score
    total += max(0.0, -margin)
    product *= 1.0 + math.exp(-abs(margin))
    if product > LARGE:
        return total + math.log(product), 1.0
    return total, product


@inline
def squared(score: float, target: float) -> float:
    return 0.5 * (score - target) ** 2


@inline
def squared_slope(score: float, target: float) -> float:
    return score - target


@inline
def modified_huber(score: float, target: float) -> float:
    margin = target * score
    return max(0.0, 1.0 - margin) ** 2 if margin >= -1.0 else -4.0 * margin


@inline
def modified_huber_slope(score: float, target: float) -> float:
    return -2.0 * target * min(2.0, max(0.0, 1.0 - target * score))


@inline
def exponential(score: float, target: float) -> float:
    margin = target * score
    bend = max(margin, STEEPEST)
    return math.exp(-bend) * (1.0 + (bend - margin))


@inline
def exponential_slope(score: float, target: float) -> float:
    return -target * math.exp(-max(target * score, STEEPEST))


@inline
def perceptron(score: float, target: float) -> float:
    return max(0.0, -target * score)


@inline
def perceptron_slope(score: float, target: float) -> float:
    # At zero too, where all scores start: else nothing would ever be learned
    return -target if target * score <= 0.0 else 0.0


@inline
def absolute(score: float, target: float) -> float:
    return abs(score - target)


@inline
def absolute_slope(score: float, target: float) -> float:
    return 1.0 if score > target else -1.0 if score < target else 0.0


@inline
def divergence(score: float, target: float) -> float:
    if target <= 0.0:
        return score - target
    bend = max(score, FAINTEST * target)
    tangent = (1.0 - target / bend) * (score - bend)
    return target * math.log(target / bend) - target + bend + tangent


@inline
def divergence_slope(score: float, target: float) -> float:
    return 1.0 - target / max(score, FAINTEST * target) if target > 0.0 else 1.0


def _adding(value: Scalar) -> Callable[[float, float, float, float], tuple[float, float]]:
    """Adds values that are no logarithms."""

    @inline
    def add(total: float, product: float, score: float, target: float) -> tuple[float, float]:
        return total + value(score, target), product

    return add


def _sigmoid(score: Any) -> Any:
    from scipy.special import expit

    return expit(score)


def _clipped(score: Any) -> Any:
    return (score.clip(-1, 1) + 1) / 2


LOSSES: dict[str, Loss] = {
    "hinge": Loss("max(0, 1 - z)", hinge, hinge_slope, bend=0.5),
    "squared_hinge": Loss("max(0, 1 - z)^2", squared_hinge, squared_hinge_slope, bend=2.0),
    "logistic": Loss(
        "log(1 + exp(-z))",
        logistic,
        logistic_slope,
        _sigmoid,
        bend=0.25,
        add=add_logistic,
    ),
    "squared": Loss("(score - target)^2 / 2", squared, squared_slope),
    "modified_huber": Loss(
        "max(0, 1 - z)^2, and -4 z below z = -1",
        modified_huber,
        modified_huber_slope,
        _clipped,
        bend=2.0,
    ),
    "exponential": Loss("exp(-z), straight below z = -50", exponential, exponential_slope),
    "perceptron": Loss("max(0, -z)", perceptron, perceptron_slope, bend=0.5),
}


# Factorization learns values, not signs: its losses compare a score with a value (logistic: with
# -1 or 1, made of the values 0 and 1)
FACTOR_LOSSES: dict[str, Loss] = {
    "squared": LOSSES["squared"],
    "absolute": Loss("|score - target|", absolute, absolute_slope),
    "logistic": LOSSES["logistic"],
    "kl": Loss(
        "target log(target / score) - target + score, straight below target / 10",
        divergence,
        divergence_slope,
    ),
}


def code(name: str) -> int:
    """The number by which the kernels know a loss."""
    return list(LOSSES).index(name)


def factor_code(name: str) -> int:
    """The number by which the kernels of factorization know a loss."""
    return list(FACTOR_LOSSES).index(name)


value_of = one_of([loss.value for loss in LOSSES.values()])
slope_of = one_of([loss.slope for loss in LOSSES.values()])
add_of = one_of([loss.add or _adding(loss.value) for loss in LOSSES.values()])
factor_value_of = one_of([loss.value for loss in FACTOR_LOSSES.values()])
factor_slope_of = one_of([loss.slope for loss in FACTOR_LOSSES.values()])
