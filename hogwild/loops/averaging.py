"""`averaged` and `mixed`: workers learn for themselves, and their weights are averaged."""

from typing import Any

import numpy as np

from hogwild.kernels.compile import Kernel
from hogwild.kernels.exchange import add_up
from hogwild.kernels.views import Clock, Span, view
from hogwild.learn.problem import RowProblem, Share
from hogwild.loops.shared import RowWorker
from hogwild.parallel.memory import Arrays, Wanted, private_arrays
from hogwild.parallel.team import Control
from hogwild.threads import share_of

END = 0  # the phase at whose end workers wait for each other


class MixedWorker(RowWorker):
    """Goes on from the mean of all workers' weights, after every epoch (McDonald et al. 2010)."""

    own_time = True
    goes_on_alone = False

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._weights = private_arrays({"weights": (problem.size, np.float32)})["weights"]
        self._stored = self._view(self._weights)
        self._scale = 1.0  # of the weights, at the end of the last part
        self._done = -1  # steps of all when that was over

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        """What it calls."""
        return [*super().kernels(problem), add_up]

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """A copy of the weights for every worker."""
        return {"copies": (workers * problem.size, np.float32)}

    def _go_through(self, share: Share, begin: int, stop: int) -> float:
        bias = self._problem.size - self._problem.width
        if self.goes_on_alone and share.done == self._done:
            self._weights[:bias] *= np.float32(self._scale)
        else:
            self._weights[:] = self._shared["stored"]
        # Each counts its own steps
        before = share.done // self._control.workers
        task = self._problem.task(self._order, share._replace(done=before))
        total = 0.0
        place = begin
        while place < stop and self._control.goes_on():
            end = min(place + self._problem.chunk, stop)
            clock: Any = view(Clock, before + place - begin, 1)
            total += self._visit(task, place, end, clock)
            self._control.count(self._rank, end - begin)
            place = end
        self._scale = float(self._problem.step.scale(task.plan, float(before + place - begin)))
        self._average()
        self._done = share.done + self._control.steps()
        return total

    def _average(self) -> None:
        workers, size = self._control.workers, self._problem.size
        copies = self._shared["copies"]
        copies.reshape(workers, -1)[self._rank] = self._weights
        if not self._wait_for_everyone(END):
            return
        begin, end = share_of(size, workers, self._rank)
        add_up(copies, workers, 0, view(Span, begin, end), self._shared["stored"])
        self._shared["stored"][begin:end] /= np.float32(workers)


class AveragedWorker(MixedWorker):
    """Trains alone; only the model is a mean (Mann et al. 2009, Zinkevich et al. 2010)."""

    goes_on_alone = True
