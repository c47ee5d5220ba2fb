"""Whether the objectives show that the training of a linear model works.

Gains are counted from the objective at zero weights, which is known before training. Rows come in a
random order, so the objective also rises by chance: the fewer rows, the more.
"""

import math

CHANCE = 1e-3  # share of the objective: a rise that may be chance
# Share of the gain so far: a larger loss is no chance (0.21 seen on 60,000 good rows)
UNDONE = 0.25
LEAST = 0.01  # share of the objective at zero weights that a model gains at least


def went_wrong(objective: float, best: float, start: float) -> bool:
    """Whether an epoch undid too much, given the best objective so far and that at the start."""
    if math.isinf(start):
        return False
    best = min(best, start)
    return not objective <= best + max(CHANCE * abs(best), UNDONE * (start - best))


def has_risen(objective: float, best: float) -> bool:
    """Whether an objective is above the best one so far by more than chance."""
    return objective > best + CHANCE * abs(best)
