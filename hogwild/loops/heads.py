"""`heads`: workers share the classes, not the rows, where each class is learned independently.

Every worker visits all rows in the same order, and learns the weights of some groups of heads: a
cache line of each column. There are no copies. The result is the same for any number of workers.
"""

import numpy as np

from hogwild.kernels.averages import add_groups
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import Clock, Task, view
from hogwild.learn.problem import RowProblem, Share
from hogwild.loops.shared import LATE, RowWorker
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.team import SLOT, Control
from hogwild.seeds import seed_of
from hogwild.threads import share_of

STOPPED = 0  # the phase that ends when all have said where they are


class HeadsWorker(RowWorker):
    """Learns some of the heads from all rows; does nothing where there are fewer groups."""

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._team = min(control.workers, problem.groups)
        self._groups = share_of(problem.groups, self._team, rank) if rank < self._team else (0, 0)

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        return [*super().kernels(problem), *([add_groups] if problem.snapshots else [])]

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """The place of each worker at its end, or when it is asked to stop."""
        return {"reached": (workers * SLOT, np.int64)}

    def _share(self) -> tuple[int, int]:
        return 0, self._problem.units

    def _learn(self, share: Share) -> list[tuple[int, float]]:
        if self._rank >= self._team:
            self._control.finish(self._rank)
            return []
        if share.begin == 0:
            self._problem.shuffle(self._order, 0, seed_of(self._problem.seed, share.epoch, 0))
        size = len(self._order)
        task = self._problem.task(self._order, share, self._control.workers, self._groups)
        total = self._go(share, task, int(size * share.begin), int(size * share.end))
        self._control.finish(self._rank)
        if self._problem.groups == 1:
            return [(0, total)]
        return [(group, float(task.own.slopes[group])) for group in range(*self._groups)]

    def _go(self, share: Share, task: Task, begin: int, stop: int) -> float:
        """Visits the rows at places begin, ..., stop - 1; returns the sum of their losses.

        When asked to stop, all workers stop at the same place: all heads learn from the same rows.
        """
        snapshots = self._problem.snapshots if share.end == 1 else 0
        gap = max(1, len(self._order) // max(1, snapshots))
        taken = [0, 0]
        total, place, reported = 0.0, begin, False
        while place < stop:
            if not reported and not self._control.goes_on():
                stop, reported = self._last_place(place), True
                continue
            end = min(place + self._problem.chunk, (place // gap + 1) * gap, stop)
            now = view(Clock, share.done + place - begin, 1)
            total += self._visit(task, place, end, now)
            place = end
            first, last = share_of(place - begin, self._team, self._rank)
            self._control.count(self._rank, last - first)
            if snapshots and place % gap == 0:
                late = place > LATE * len(self._order)
                scale = self._problem.step.scale(task.plan, float(share.done + place - begin))
                self._problem.add_snapshot(self._shared, late, not taken[late], scale, self._groups)
                taken[late] += 1
        if not reported:
            self._say(place)
        if self._rank == 0:
            self._control.add_snapshots(*taken)
        return total

    def _say(self, place: int) -> None:
        self._shared["reached"][self._rank * SLOT] = place
        self._control.finish_task(STOPPED)

    def _last_place(self, place: int) -> int:
        """Where all stop: at the farthest place that any has come to."""
        self._say(place)
        if not self._wait_though_stopped(STOPPED, self._team):
            return place
        return int(self._shared["reached"][: self._team * SLOT : SLOT].max())
