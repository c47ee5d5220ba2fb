"""Passes of dual coordinate ascent that Newton's method may begin with.

Far from the optimum such a pass gains more than many products with a Hessian. Near it, where the
penalty is weak, passes gain less and less, and products gain as much as before. One thread visits
the rows, so the result is the same for any number of workers.
"""

import math
from itertools import count

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import NO_FETCHING, Fetching
from hogwild.learn.dual import DualAscent
from hogwild.learn.heads import Heads
from hogwild.learn.one_vs_rest import Ascent
from hogwild.learn.problem import Passed
from hogwild.learn.sets import Set

FEWEST = 3  # passes; earlier ones leave a gap of a tenth at least
# Share of what rows added to the gap in the pass before. A pass takes as long as two or three
# products, and one that leaves more gains less than they do. Real RCV1, logistic, l2 1e-6: passes
# leave 0.3, 0.4, 0.5 and then 0.6; beginning with 4 to 8 of them takes equally long to 1e-6
ENOUGH = 0.5
# If a proved gap is at most `NEAR` times the wanted one when passes become slow, they go on until
# there are `LONGER` times as many: products prove little before the last one
NEAR, LONGER = 30.0, 3


class FirstPasses:
    """The passes, and what they need.

    Attributes:
        bound: a lower bound of the optimum that was found, if any.
    """

    bound = -math.inf

    def __init__(self, config: Config, heads: Heads, data: Set, columns: int) -> None:
        self._tol = config.tol if config.target is None else 0.0
        self._given = config, DualAscent(config, heads, data, 0.0), data, columns

    @property
    def kernels(self) -> list[Kernel]:
        """All that will be called."""
        return Ascent(*self._given, NO_FETCHING).kernels()

    def learn(self, stored: npt.NDArray[np.float32], passed: Passed, fetching: Fetching) -> None:
        """Learns weights, with the intercept behind them, from zero weights on."""
        ascent, before = Ascent(*self._given, fetching), math.inf
        ascent.begin({}, 0.0)
        last = 0  # the pass at which slow ones end, once there was one
        for done in count(1):
            ascent.advance(passed)
            if not passed(0.0):
                break
            slows = not ascent.outcome.excess < ENOUGH * before
            decides = slows and not last
            if (ascent.is_due and done >= FEWEST) or (decides and self._tol):
                ascent.look()
            if decides:
                last = LONGER * done if ascent.outcome.gap <= NEAR * self._tol else done
            if ascent.reason or (slows and done >= last):
                break
            before = ascent.outcome.excess
        stored[:], self.bound = ascent.weights, ascent.outcome.bound
