"""What the objectives of a linear model say of its training.

Gains are counted from the objective at zero weights, which is known before training. Steps are
taken in a random order, so the objective also rises by chance, the more the fewer rows there are.
"""

import math

CHANCE = 1e-3  # of the objective: a rise that says nothing
UNDONE = 0.25  # of all that was gained: more is not chance (0.21 was seen on 60,000 good rows)
LEAST = 0.01  # of the objective at zero weights, that a model gains at least


def went_wrong(objective: float, best: float, start: float) -> bool:
    """Whether an epoch undid too much, given the best objective so far and that at the start."""
    if math.isinf(start):
        return False
    best = min(best, start)
    return not objective <= best + max(CHANCE * abs(best), UNDONE * (start - best))


def has_risen(objective: float, best: float) -> bool:
    """Whether an objective is above the best one so far, by more than may be chance."""
    return objective > best + CHANCE * abs(best)
