"""`passes`: whole passes over the rows, shared by threads of this process.

For solvers whose steps need sums over all rows. There is one worker, in the caller's thread, and
its sums do not depend on how many threads there are.
"""

from functools import partial

import numpy as np
import numpy.typing as npt

from hogwild.learn.problem import RowProblem, Share
from hogwild.loops.worker import Worker
from hogwild.threads import side_by_side


class PassesWorker(Worker):
    """An epoch is one step of the solver, and has as many passes as the step needs."""

    _problem: RowProblem

    def _learn(self, share: Share) -> list[tuple[int, float]]:
        steps = 0.0

        def passed(share: float = 1.0) -> bool:
            nonlocal steps
            steps += share * self._problem.units
            self._control.count(self._rank, round(steps))
            return self._control.goes_on()

        loss = self._problem.iterate(self._shared, passed)
        return [(0, round(steps) * loss)]

    def evaluate(self, data: str) -> npt.NDArray[np.float64]:
        """The sums over all parts of a set of examples, a row for each part."""
        one = partial(self._problem.evaluate, self._shared, data)
        parts = [partial(one, part) for part in range(self._problem.parts(data))]
        return np.array(side_by_side(parts, self._problem.threads))
