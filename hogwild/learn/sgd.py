"""The solver `sgd`: stochastic gradient descent, with a learning rate found on a few rows."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import NO_FETCHING, RowView, Stored, task_of, view
from hogwild.learn.averages import Averages, RunAverages
from hogwild.learn.problem import Now, Share
from hogwild.learn.sample import Sample
from hogwild.learn.solver import Solver
from hogwild.learn.trials import Room, first_rate, learned_from, power_of_two, tried
from hogwild.loops.trying import trial_loop
from hogwild.steps.sgd import Plan
from hogwild.steps.step import Step

PIECES = 16  # of a trial; weights are averaged over the ends of the later half
STEADY = 0.25  # share of the weights that the penalty may take until workers synchronize again


class Sgd(Solver):
    """Stochastic gradient descent: its step, and the numbers of each epoch."""

    @property
    def step(self) -> Step:
        return self._heads.step(str(self._config.schedule), self._data.weighted)

    def outcome(self, columns: int, nonzeros: float) -> Averages:
        """The last weights, or means of them."""
        config = self._config
        kind = RunAverages if config.is_perceptron and config.average else Averages
        return kind(columns, self._heads.width, nonzeros, config.average)

    def plan(self, since: float, eta0: float, *numbers: float) -> Any:
        config = self._config
        rows = len(self._data)
        own = self.intercept_share, config.loss_value, since + rows, rows
        return view(Plan, eta0, config.l2, since, *own)

    def plan_of(self, share: Share) -> Any:
        plan = super().plan_of(share)
        return plan._replace(end=plan.end - int(share.begin * plan.rows))

    def rate(self, done: int, eta0: float) -> float:
        return float(self.step.reach(self.plan(0.0, eta0), float(max(1, done))))

    def scale(self, now: Now) -> float:
        return float(self.step.scale(self.plan(now.since, now.eta0), float(now.done)))

    def factor(self, epoch: int) -> float:
        return self._config.backoff(epoch)

    def steady_steps(self, done: int, eta0: float) -> int:
        """Steps in which the penalty takes no more than a share STEADY of the weights."""
        units = len(self._data)
        taken = float(self._config.l2 or 0.0) * self.rate(done + 1, eta0)
        return int(STEADY / taken) if taken > STEADY / units else units

    def kernels(self) -> list[Kernel]:
        return [trial_loop(self.step)]

    def find_rate(self, sample: Sample) -> float:
        """A first rate; the search starts at one over the mean squared length of a row."""
        square = sample.mean_square
        guess = power_of_two(1 / square if square else 0.0)
        times = len(self._data) / learned_from(sample)
        trial = partial(self._try_out, times)
        return first_rate(sample, trial, guess, self._heads.few(), times=times)

    def tried(self, sample: Sample) -> float:
        rate = self.find_rate(sample)
        return tried(sample, partial(self._try_out, 1.0), self._heads.few(), rate)

    def _try_out(
        self,
        times: float,
        rows: RowView,
        order: npt.NDArray[np.uint32],
        rate: float,
        room: Room,
    ) -> list[npt.NDArray[np.float32]]:
        """Learns a few heads from a few rows at a rate: the last weights, and a mean of them."""
        heads, weighted = self._heads.few(), self._data.weighted
        weights, mean = room.zeros(heads.width, heads.width)
        intercept = np.zeros(heads.width, np.float32)
        stored = view(Stored, weights, weights, intercept, intercept, weights[:0])
        plan = self.plan(0.0, rate)
        size = float(len(order))
        plan = plan._replace(l2=plan.l2 * times, end=size, rows=size)
        shape = heads.shape(weighted)
        task = task_of(rows, order, heads.scratch(), shape, plan, NO_FETCHING)
        trial_loop(self.step)(task, stored, PIECES, mean)
        return [weights, mean]
