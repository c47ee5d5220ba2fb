"""Losses with kinks, each a sum of hinges.

    loss(score) = sum over sides of cost * max(0, wanted - sign * score)

The hinge has one side, and losses of numbers have two: a score may be too low or too high.
"""

from typing import NamedTuple

import numpy as np

from hogwild.learn.problem import Doubles


class Sides(NamedTuple):
    """The sides of the losses of all rows; arrays have a line for each side.

    Attributes:
        signs: 1 if higher scores lack less, -1 if lower ones do; 0 for rows that do not count.
        wanted: the score times the sign from which nothing is lacking.
        costs: what a lack of 1 costs; a number for each side.
    """

    signs: Doubles
    wanted: Doubles
    costs: Doubles

    def lack(self, scores: Doubles) -> Doubles:
        """What the scores lack."""
        return np.maximum(0.0, self.wanted - self.signs * scores)

    def signed_sums(self, values: Doubles) -> Doubles:
        """For each row, the sum over its sides of value times sign."""
        found: Doubles = np.sum(self.signs * values, axis=0)
        return found


def sides_of(loss: str, targets: Doubles, counts: Doubles, parameter: float) -> Sides:
    """The sides of a loss; `counts` is 0 for rows that do not count, else 1."""
    if loss == "hinge":
        return Sides((targets * counts)[None], np.ones((1, len(targets))), np.ones((1, 1)))
    width = parameter if loss == "epsilon_insensitive" else 0.0
    low = parameter if loss == "quantile" else 1.0
    high = 1.0 - parameter if loss == "quantile" else 1.0
    wanted = np.stack([targets - width, -targets - width]) * counts
    return Sides(np.stack([counts, -counts]), wanted, np.array([[low], [high]]))
