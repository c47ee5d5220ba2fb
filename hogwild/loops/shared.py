"""`hogwild`: all workers write one array of weights, without locks (Niu et al. 2011).

With one worker, or on a worker's own weights, the same loop is plain sequential learning.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.averages import add_whole
from hogwild.kernels.compile import Kernel, inline
from hogwild.kernels.primitives import U
from hogwild.kernels.views import (
    FLOAT,
    Clock,
    Floats,
    Span,
    Stored,
    Task,
    task_type,
    type_of,
    view,
)
from hogwild.learn.problem import RowProblem, Share
from hogwild.loops.visiting import visitor
from hogwild.loops.windows import Windows
from hogwild.loops.worker import Worker
from hogwild.parallel.memory import Arrays
from hogwild.parallel.team import Control
from hogwild.seeds import seed_of
from hogwild.steps.step import Step

BLOCK = U(256)  # rows between two exchanges of the intercept
LATE = 0.75  # of an epoch: snapshots after it are in both means of the weights
FEWEST = 16  # rows in a piece: with fewer, the looks between pieces would take most of the time


@cache
def going_through(step: Step) -> Any:
    """Visits the rows at some places of an order, and shares the intercept every `BLOCK` rows.

    Every row moves the intercept. If it were shared at each row, workers would wait for its cache
    line.
    """
    visit, fixed = visitor(step), step.width

    @inline
    def go_through(task, span, stored, clock):
        begin, end = span
        width = U(fixed) if fixed else task.shape.width
        learned = (U(0), width) if fixed else (task.shape.first, task.shape.end)
        # An array of some heads begins with `first` unused numbers
        bias = U(stored.read.size) - width - learned[0]
        total = 0.0
        for first in range(begin, end, BLOCK):
            for k in range(learned[0], learned[1]):
                task.own.shared_bias[k] = stored.read[bias + k]
                stored.bias[k] = task.own.shared_bias[k]
            block = first, min(first + BLOCK, end)
            now = Clock(clock.done + clock.pace * np.float64(first - begin), clock.pace)
            total += visit(task, block, stored, now)
            for k in range(learned[0], learned[1]):
                # races, as the weights
                stored.write[bias + k] += stored.bias[k] - task.own.shared_bias[k]
        return total

    return go_through


class Snapshots(NamedTuple):
    """Sums of the unscaled weights after every `gap` rows: for one worker, in its kernel.

    Snapshots after row `late_from` of the order are in `late`, the others in `early`. A gap of 0
    means no snapshots.
    """

    early: Floats
    late: Floats
    gap: int
    late_from: int


_NOTHING = np.empty(0, np.float32)
NO_SNAPSHOTS = view(Snapshots, _NOTHING, _NOTHING, 0, 0)


@cache
def shared_loop(step: Step) -> Kernel:
    """The kernel that goes through rows; it returns the sum of their losses before each step."""
    go_through, scale_of, fixed = going_through(step), step.scale, step.width

    def learn(task, span, stored, clock, snapshots):
        early, late, gap, late_from = snapshots
        width = U(fixed) if fixed else task.shape.width
        total, begin = 0.0, span.begin
        while begin < span.end:
            end = min(begin + gap - begin % gap, span.end) if gap > U(0) else span.end
            done = clock.done + clock.pace * np.float64(begin - span.begin)
            total += go_through(task, (begin, end), stored, Clock(done, clock.pace))
            if gap > U(0) and end % gap == U(0):
                done = clock.done + clock.pace * np.float64(end - span.begin)
                is_late = end > late_from
                is_first = end - gap <= late_from if is_late else end == gap
                sums = late if is_late else early
                scale, keep = np.float32(scale_of(task.plan, done)), np.float32(not is_first)
                add_whole(stored.read, scale, keep, U(sums.size) - width, sums)
            begin = end
        return total

    kinds = (type_of(kind) for kind in (Span, Stored, Clock, Snapshots))
    return Kernel(learn, FLOAT(task_type(step.plan), *kinds), name=f"learn-{step.name}")


@cache
def parts_loop(step: Step) -> Kernel:
    """As `shared_loop`, for columns that only one worker writes: the intercept is not shared."""
    visit = visitor(step)

    def learn(task, span, stored, clock):
        return visit(task, span, stored, clock)

    kinds = (type_of(kind) for kind in (Span, Stored, Clock))
    return Kernel(learn, FLOAT(task_type(step.plan), *kinds), name=f"part-{step.name}")


class RowWorker(Worker):
    """Goes through rows in a random order, a piece at a time.

    Between two pieces, it checks the clock, the other workers and the control.
    """

    _problem: RowProblem
    kernel = staticmethod(shared_loop)
    writes_alone = False  # whatever the number of workers
    excludes = False  # whether updates exclude each other

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        first, end = problem.rows_of(*self._turn)
        self._order = np.empty(end - first, np.uint32)
        self._stored = self._view(shared["stored"])
        self._snapshots = NO_SNAPSHOTS
        self._made: Task | None = None
        self._windows = Windows(problem.mapped, [self._order])

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        """What it calls."""
        return [cls.kernel(problem.step)]

    @property
    def _turn(self) -> tuple[int, int]:
        """How many workers share the rows, and this worker's number among them."""
        return self._control.workers, self._rank

    def _view(self, weights: Any) -> Any:
        """Weights as a step sees them, with a copy of the intercept if others may write it."""
        width = self._problem.width
        bias = weights[-width:] if self.excludes else np.zeros(width, np.float32)
        return view(Stored, weights, weights, bias, bias, self._shared["row_state"])

    def _learn(self, share: Share) -> list[tuple[int, float]]:
        size = len(self._order)
        if share.begin == 0:
            seed = seed_of(self._problem.seed, share.epoch, self._rank)
            self._problem.shuffle_share(self._order, *self._turn, seed, self._shared["row_state"])
        begin, stop = int(size * share.begin), int(size * share.end)
        self._windows.begin([0], begin)
        try:
            total = self._go_through(share, begin, stop)
        finally:
            self._windows.rest()
        self._control.finish(self._rank)
        return [(self._rank, total)]

    def _go_through(self, share: Share, begin: int, stop: int) -> float:
        """Visits the rows at some places of the order; returns the sum of their losses."""
        task = self._task(share, self._control.workers)
        self._snapshots = self._in_kernel()
        total = 0.0
        place = begin
        while place < stop and self._goes_on(total):
            clock = self._clock(share)
            end = min(place + self._piece(share, clock), stop)
            task, end = self._windows.open(task, place, end)
            total += self._visit(task, place, end, clock)
            self._control.count(self._rank, end - begin)
            self._add_snapshot(share, task.plan, place, end)
            place = end
        return total

    def _task(self, share: Share, writers: int = 1) -> Task:
        """What the loop works on in this share. Only the plan is made anew for each share."""
        if self._made is None:
            self._made = self._problem.task(self._order, share, writers)
        return self._made._replace(plan=self._problem.plan(share))

    def _visit(self, task: Task, begin: int, end: int, clock: Clock) -> float:
        learn, span = self.kernel(self._problem.step), view(Span, begin, end)
        return float(learn(task, span, self._stored, clock, self._snapshots))

    def _clock(self, share: Share) -> Clock:
        done = share.done + self._control.steps()
        return view(Clock, done, max(1, self._control.at_work()))

    def _piece(self, share: Share, clock: Clock) -> int:
        """Rows until the next look: few enough to notice Ctrl-C and to miss no snapshot.

        Between looks, a worker assumes that the others make equal progress. So the learning rate
        may change only little within a piece.
        """
        if self._snapshots.gap:
            return self._problem.chunk
        snapshots = max(1, self._problem.snapshots)
        piece = min(self._problem.chunk, -(-len(self._order) // snapshots))
        if clock.pace > 1:
            together = self._problem.steady_steps(int(clock.done), share.eta0)
            piece = min(piece, max(FEWEST, together // int(clock.pace)))
        return max(1, piece)

    def _add_snapshot(self, share: Share, plan: Any, begin: int, end: int) -> None:
        """Adds the weights to a mean when all workers together have reached the next snapshot."""
        if self._snapshots.gap:
            before, after = self._taken_until(begin), self._taken_until(end)
            self._control.add_snapshots(after[0] - before[0], after[1] - before[1])
            return
        units, snapshots = self._problem.units, self._problem.snapshots
        steps = int(units * share.begin) + self._control.steps()
        late = steps > LATE * units
        with self._control.snapshot(steps * snapshots // units, late) as mine:
            if mine:
                first = self._control.snapshots()[late] == 0
                scale = self._problem.step.scale(plan, self._clock(share).done)
                self._problem.add_snapshot(self._shared, late, first, scale)

    def _in_kernel(self) -> Snapshots:
        """The snapshots that the kernel takes; if others write too, they come between pieces."""
        count, size = self._problem.snapshots, len(self._order)
        is_only_one = self.writes_alone or self._control.workers == 1
        if not count or not is_only_one or self.kernel is not shared_loop:
            return NO_SNAPSHOTS
        early, late = self._shared["whole"], self._shared["tail"]
        return view(Snapshots, early, late, max(1, size // count), int(LATE * size))

    def _taken_until(self, place: int) -> tuple[int, int]:
        """How many snapshots the kernel takes up to a place of the order, early and late."""
        gap, late_from = int(self._snapshots.gap), int(self._snapshots.late_from)
        early = min(place, late_from) // gap
        return early, place // gap - early


class LoneWorker(RowWorker):
    """Goes through all rows, while the other workers are idle."""

    writes_alone = True

    @property
    def _turn(self) -> tuple[int, int]:
        return 1, 0

    def _clock(self, share: Share) -> Clock:
        return view(Clock, share.done + self._control.steps(), 1)
