"""The solver `sgd`: stochastic gradient descent, with a rate that is found on a few rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels.views import Fetching, RowView, Stored, task_of, view
from hogwild.loops.trying import trial_loop
from hogwild.problems.heads import Heads
from hogwild.steps.sgd import Plan
from hogwild.steps.step import Step

PIECES = 16  # that a trial goes in; the mean is over the ends of the later half of them
FETCHED = 8  # rows ahead, in a trial
STEADY = 0.25  # of the weights: what the penalty may take until workers look at each other again


class Sgd:
    """What stochastic gradient descent is made of: its step, and the numbers of each epoch."""

    def __init__(
        self,
        config: Config,
        heads: Heads,
        weighted: bool,
        parameter: float,
        intercept_share: float,
    ) -> None:
        self._config = config
        self._heads = heads
        self._weighted = weighted
        self._l2 = float(config.l2 or 0.0)
        self._parameter = parameter
        self._intercept_share = intercept_share

    @property
    def step(self) -> Step:
        """The step that loops are compiled for."""
        return self._heads.step(str(self._config.schedule), self._weighted)

    def plan(self, since: float, eta0: float) -> Any:
        """The numbers of a share of an epoch."""
        given = eta0, self._l2, since, self._intercept_share, self._parameter
        return view(Plan, *given)

    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""
        return float(self.step.reach(self.plan(0.0, eta0), float(max(1, done))))

    def scale(self, done: int, since: int, eta0: float) -> float:
        """What weights stored whole at step `since` are multiplied by at step `done`."""
        return float(self.step.scale(self.plan(since, eta0), float(done)))

    def factor(self, epoch: int) -> float:
        """What the first rate is multiplied by in an epoch (they count from 1)."""
        return self._config.backoff(epoch)

    def steady_steps(self, done: int, eta0: float, units: int) -> int:
        """Steps in which the penalty takes no more than a share STEADY of the weights."""
        taken = self._l2 * self.rate(done + 1, eta0)
        return int(STEADY / taken) if taken > STEADY / units else units

    def try_out(
        self,
        rows: RowView,
        order: npt.NDArray[np.uint32],
        rate: float,
        arrays: Sequence[npt.NDArray[np.float32]],
    ) -> None:
        """Learns a few heads from a few rows; writes the last weights, and a mean of them."""
        weights, mean = arrays
        heads = self._heads.few()
        intercept = np.zeros(heads.width, np.float32)
        stored = view(Stored, weights, weights, intercept, intercept, weights[:0])
        fetching = view(Fetching, FETCHED, 0, 0)
        shape, plan = heads.shape(self._weighted), self.plan(0.0, rate)
        task = task_of(rows, order, heads.scratch(), shape, plan, fetching)
        trial_loop(self.step)(task, stored, PIECES, mean)
