"""`heads`: workers share the classes, not the rows, where each class is learned independently.

Every worker visits all rows in the same order, and learns the weights of some groups of heads. A
group is a cache line of each column. The result is the same for any number of workers.

Each worker learns in its own memory, and copies its weights to the shared array at the end. In the
shared array, the groups of a column are adjacent. There, the processor would read ahead, beyond a
worker's group, into cache lines that another worker writes.
"""

import time
from itertools import compress
from typing import Any

import numpy as np

from hogwild.kernels.views import Clock, Task, view
from hogwild.learn.problem import SUMS, RowProblem, Share
from hogwild.loops.shared import LATE, RowWorker
from hogwild.parallel.memory import Arrays, Wanted, private_arrays
from hogwild.parallel.team import SLOT, Control
from hogwild.seeds import seed_of
from hogwild.threads import share_of

STOPPED = 0  # the phase that ends when all workers have reported their places


class HeadsWorker(RowWorker):
    """Learns some of the heads from all rows. Without a group of its own, it does nothing."""

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._team = min(control.workers, problem.groups)
        self._groups = share_of(problem.groups, self._team, rank) if rank < self._team else (0, 0)
        each = problem.width // problem.groups
        self._mine = slice(each * self._groups[0], each * self._groups[1])  # of each column
        self._own = self._own_arrays() if 1 < self._team > rank else shared

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """The place of each worker at its end, or when it is asked to stop."""
        return {"reached": (workers * SLOT, np.int64)}

    @classmethod
    def own_memory(cls, problem: RowProblem, workers: int) -> int:
        """Bytes of `_own_arrays` in all workers, without the few unused numbers."""
        copies = 1 + len(SUMS) * bool(problem.snapshots)
        return 4 * problem.size * copies if min(workers, problem.groups) > 1 else 0

    @property
    def _turn(self) -> tuple[int, int]:
        return 1, 0

    def _learn(self, share: Share) -> list[tuple[int, float]]:
        if self._rank >= self._team:
            self._control.finish(self._rank)
            return []
        if share.begin == 0:
            seed = seed_of(self._problem.seed, share.epoch, 0)
            self._problem.shuffle(self._order, 0, seed, self._shared["row_state"])
        size = len(self._order)
        task = self._problem.task(self._order, share, self._control.workers, self._groups)
        begin, stop = int(size * share.begin), int(size * share.end)
        self._windows.begin([0], begin)
        try:
            total = self._go(share, task, begin, stop)
        finally:
            self._windows.rest()
        self._control.finish(self._rank)
        if self._problem.groups == 1:
            return [(0, total)]
        return [(group, float(task.own.slopes[group])) for group in range(*self._groups)]

    def _own_arrays(self) -> Arrays:
        """Its weights, and sums of them over snapshots, in memory of its own."""
        first, columns = self._mine.start, self._problem.columns + 1
        size = columns * (self._mine.stop - first)
        sums = dict.fromkeys(SUMS if self._problem.snapshots else (), (size, np.float32))
        found = private_arrays({"stored": (first + size, np.float32)} | sums)
        self._stored = self._view(found["stored"])  # with unused numbers before, as `Shape` says
        return found | {"stored": found["stored"][first:]}

    def _fetch(self) -> None:
        """Copies its weights from the shared ones, which the coordinator may have changed."""
        if self._own is not self._shared:
            began = time.monotonic()
            here, there = self._places("stored")
            here[:] = there
            self._merged += time.monotonic() - began

    def _hand_in(self, taken: list[int]) -> None:
        """Copies its weights, and its sums over snapshots if any were taken, to the shared ones."""
        if self._own is not self._shared:
            began = time.monotonic()
            for name in ("stored", *compress(SUMS, taken)):
                here, there = self._places(name)
                there[:] = here
            self._merged += time.monotonic() - began

    def _places(self, name: str) -> tuple[Any, Any]:
        """Its part of an array, a line for each column: its own, and the shared one."""
        columns = self._problem.columns + 1
        own, shared = (arrays[name].reshape(columns, -1) for arrays in (self._own, self._shared))
        return own, shared[:, self._mine]

    def _go(self, share: Share, task: Task, begin: int, stop: int) -> float:
        """Visits the rows at places begin, ..., stop - 1; returns the sum of their losses.

        When asked to stop, all workers stop at the same place: all heads learn from the same rows.
        """
        snapshots = self._problem.snapshots if share.end == 1 else 0
        gap = max(1, len(self._order) // max(1, snapshots))
        taken = [0, 0]
        total, place, reported = 0.0, begin, False
        self._fetch()
        while place < stop:
            if not reported and not self._goes_on(total):
                stop, reported = self._last_place(place), True
                continue
            end = min(place + self._problem.chunk, (place // gap + 1) * gap, stop)
            task, end = self._windows.open(task, place, end)
            now = view(Clock, share.done + place - begin, 1)
            total += self._visit(task, place, end, now)
            place = end
            first, last = share_of(place - begin, self._team, self._rank)
            self._control.count(self._rank, last - first)
            if snapshots and place % gap == 0:
                late = place > LATE * len(self._order)
                scale = self._problem.step.scale(task.plan, float(share.done + place - begin))
                self._problem.add_snapshot(self._own, late, not taken[late], scale)
                taken[late] += 1
        if not reported:
            self._say(place)
        self._hand_in(taken)
        if self._rank == 0:
            self._control.add_snapshots(*taken)
        return total

    def _say(self, place: int) -> None:
        self._shared["reached"][self._rank * SLOT] = place
        self._control.finish_task(STOPPED)

    def _last_place(self, place: int) -> int:
        """Where all workers stop: the farthest place that any of them has reached."""
        self._say(place)
        if not self._wait_though_stopped(STOPPED, self._team):
            return place
        return int(self._shared["reached"][: self._team * SLOT : SLOT].max())
