"""`averaged` and `mixed`: workers train independently, and their weights are averaged.

If the model is a mean over all epochs (averaged perceptrons), each worker sums its own snapshots.
"""

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

    lasting: tuple[str, ...] = ("members",)

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._weights = private_arrays({"weights": (problem.size, np.float32)})["weights"]
        self._stored = self._view(self._weights)
        self._scale = 1.0  # of the weights, at the end of the last part
        snapshots = problem.snapshots if problem.averages_run else 0
        # Rows between two snapshots; 0: no snapshots
        self._gap = max(1, -(-len(self._order) // snapshots)) if snapshots else 0

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        return [*super().kernels(problem), add_up]

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """For every worker a copy of the weights, a sum over its snapshots, and its results."""
        names = ["copies", *["sums"] * problem.averages_run, *["members"] * problem.votes]
        return dict.fromkeys(names, (workers * problem.size, np.float32))

    def _go_through(self, share: Share, begin: int, stop: int) -> float:
        self._begin(share)
        if self._gap and share.begin == 0:
            self._mine("sums")[:] = 0
        # Each counts its own steps
        before = share.done // self._control.workers
        task = self._task(share._replace(done=before))
        total, place, self._scale = 0.0, begin, 1.0
        while place < stop and self._goes_on(total):
            end = min(place + self._problem.chunk, stop)
            if self._gap:
                end = min(end, (place // self._gap + 1) * self._gap)
            task, end = self._windows.open(task, place, end)
            clock = view(Clock, before + place - begin, 1)
            total += self._visit(task, place, end, clock)
            self._control.count(self._rank, end - begin)
            place = end
            self._scale = float(self._problem.step.scale(task.plan, float(before + place - begin)))
            if self._gap and (place % self._gap == 0 or place == len(self._order)):
                own = {"stored": self._weights, "tail": self._mine("sums")}
                self._problem.add_snapshot(own, late=True, first=False, scale=self._scale)
                self._control.add_snapshots(0, 1)
        self._average()
        self._end(share)
        return total

    def _begin(self, share: Share) -> None:
        """Takes the weights to go on from."""
        self._weights[:] = self._shared["stored"]

    def _end(self, share: Share) -> None:
        """Notes what to go on from."""

    def _mine(self, name: str) -> Any:
        return self._shared[name].reshape(self._control.workers, -1)[self._rank]

    def _average(self) -> None:
        """Computes a share of the mean of all weights, and of the sum of all snapshots."""
        shared, workers = self._shared, self._control.workers
        self._mine("copies")[:] = self._weights
        if not self._wait_for_everyone(END) and not self._wait_though_stopped(END, workers):
            return
        begin, end = share_of(self._problem.size, workers, self._rank)
        span = view(Span, begin, end)
        add_up(shared["copies"], workers, 0, span, shared["stored"])
        shared["stored"][begin:end] /= np.float32(workers)
        if self._gap:
            add_up(shared["sums"], workers, 0, span, shared["tail"])


class AveragedWorker(MixedWorker):
    """Trains alone; only the final model is a mean (Mann et al. 2009, Zinkevich et al. 2010)."""

    lasting = (*MixedWorker.lasting, "copies", "reached")

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """The same, and for every worker the scale of its copy and the steps of all until then."""
        return super().arrays(problem, workers) | {"reached": (workers * 2, np.float64)}

    def _begin(self, share: Share) -> None:
        """Goes on from its own copy, unless the coordinator went back."""
        scale, done = self._mine("reached")
        if share.done == 0 or share.done != done:
            super()._begin(share)
            return
        self._weights[:] = self._mine("copies")
        self._weights[: self._problem.size - self._problem.width] *= np.float32(scale)

    def _end(self, share: Share) -> None:
        self._mine("reached")[:] = self._scale, share.done + self._control.steps()
