"""What the objectives of a linear model say of its training.

Gains are counted from the objective at zero weights, which is known before training. Steps are
taken in a random order, so the objective also rises by chance, the more the fewer rows there are.
"""

import math

import numpy as np
import numpy.typing as npt

from hogwild.problems.losses import LOSSES

CHANCE = 1e-3  # of the objective: a rise that says nothing
UNDONE = 0.25  # of all that was gained: more is not chance (0.21 was seen on 60,000 good rows)
LEAST = 0.01  # of the objective at zero weights, that a model gains at least


def at_zero(loss: str, targets: npt.NDArray[np.float32]) -> float:
    """The objective at zero weights; infinity for a loss that is 0 there and tells nothing."""
    positive = np.count_nonzero(targets > 0) / len(targets)
    value = LOSSES[loss].value
    return positive * value(0.0, 1.0) + (1 - positive) * value(0.0, -1.0) or math.inf


def went_wrong(objective: float, best: float, start: float) -> bool:
    """Whether an epoch undid too much, given the best objective so far and that at the start."""
    if math.isinf(start):
        return False
    best = min(best, start)
    return not objective <= best + max(CHANCE * best, UNDONE * (start - best))


def has_risen(objective: float, best: float) -> bool:
    """Whether an objective is above the best one so far, by more than may be chance."""
    return objective > (1 + CHANCE) * best
