"""Workers that learn for themselves, and whose weights are averaged: `averaged` and `mixed`."""

import numpy as np

from hogwild.kernels.combine import add_up
from hogwild.kernels.compile import Kernel
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.row_worker import RowWorker
from hogwild.parallel.team import Control
from hogwild.parallel.worker import Part
from hogwild.problems.problem import Problem, RowProblem
from hogwild.problems.schedules import Clock
from hogwild.threads import share_of

END = 0  # the phase at whose end workers meet


class MixedWorker(RowWorker):
    """Goes on from the mean of all workers' weights, after every epoch (McDonald et al. 2010)."""

    own_time = True
    goes_on_alone = False

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._own = {
            "weights": np.zeros(problem.columns, np.float32),
            "intercept": np.zeros(1, np.float32),
        }
        self._left = 1.0  # of the weights, by the penalty of the last part
        self._done = -1  # steps of all when that was over

    @classmethod
    def kernels(cls) -> list[Kernel]:
        """What it calls besides the problem's own kernels."""
        return [add_up]

    @classmethod
    def arrays(cls, problem: Problem, workers: int) -> Wanted:
        """A copy of the weights for every worker, and the intercept."""
        assert isinstance(problem, RowProblem)
        return {"copies": (workers * (problem.columns + 1), np.float32)}

    def _go_through(self, part: Part, begin: int, stop: int) -> float:
        if self.goes_on_alone and part.done == self._done:
            self._own["weights"] *= np.float32(self._left)
        else:
            for name, array in self._own.items():
                array[:] = self._shared[name]
        total = 0.0
        place = begin
        while place < stop and self._control.goes_on():
            end = min(place + self._problem.chunk, stop)
            clock = self._own_clock(part, place - begin)
            total += self._problem.learn(self._own, self._order, place, end, clock)
            self._control.count(self._rank, end - begin)
            place = end
        clock = self._own_clock(part, place - begin)
        self._left = self._problem.left(clock.done, clock.since, clock.eta0)
        self._average()
        self._done = part.done + self._control.steps()
        return total

    def _own_clock(self, part: Part, steps: int) -> Clock:
        before = part.done // self._control.workers
        return Clock(before + steps, before, 1, part.eta0)

    def _average(self) -> None:
        workers, columns = self._control.workers, self._problem.columns
        copies = self._shared["copies"]
        mine = copies.reshape(workers, -1)[self._rank]
        mine[:-1], mine[-1] = self._own["weights"], self._own["intercept"][0]
        if not self._meet(END):
            return
        begin, end = share_of(columns, workers, self._rank)
        add_up(copies, workers, 0, (begin, end), self._shared["weights"])
        self._shared["weights"][begin:end] /= np.float32(workers)
        if self._rank == 0:
            mean = copies.reshape(workers, -1)[:, -1].mean(dtype=np.float64)
            self._shared["intercept"][0] = mean


class AveragedWorker(MixedWorker):
    """Trains alone; only the model is a mean (Mann et al. 2009, Zinkevich et al. 2010)."""

    goes_on_alone = True
