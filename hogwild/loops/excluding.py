"""`locked` and `roundrobin`: updates that exclude each other.

A lock for every column of a row (AIG: Niu et al. 2011), or one worker after the other (RR:
Langford, Smola, Zinkevich 2009).
"""

from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numba import types

from hogwild.kernels.atomic import SLOT, let_others_go, read_now, replace_if, write_now
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.compile import Kernel, inline, kernel
from hogwild.kernels.primitives import U
from hogwild.kernels.views import (
    FLOAT,
    Clock,
    Signed,
    Span,
    Stored,
    Task,
    Words,
    task_type,
    type_of,
    view,
)
from hogwild.learn.problem import RowProblem, Share
from hogwild.loops.shared import RowWorker
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.team import Control
from hogwild.steps.step import Step

PATIENCE = 200  # looks at a lock; after that, a worker releases all its locks and yields the core


class Others(NamedTuple):
    """What a worker shares with the others, its rank, and the nanoseconds it has waited."""

    words: Words  # locks (0: free, else 1 + the rank that holds it), or whose turn
    me: Signed
    at_work: Words
    stop: Words
    waited: Words


@inline
def lock(locks, place, me):
    """Takes a lock, unless this worker has it; False where another worker keeps it for long."""
    for _ in range(PATIENCE):
        if replace_if(locks, place, 0, me):
            return True
        if read_now(locks, place) == me:
            return True
    return False


@inline
def unlock_row(rows, row, others):
    """Releases the locks of a row's columns and of the intercept, as far as they are held."""
    locks, me = others.words, others.me + 1
    for k in range(U(rows.begins[row]), U(rows.ends[row])):
        replace_if(locks, U(rows.columns[k]), me, 0)
    replace_if(locks, U(locks.size) - U(1), me, 0)


@inline
def lock_row(rows, row, others, with_intercept):
    """Takes the locks of all columns of a row, and of the intercept if there is one.

    False if asked to stop. Where another worker holds one, all are released and it begins anew:
    two workers that take locks in different orders would wait for each other forever.
    """
    locks, me = others.words, others.me + 1
    end = U(rows.ends[row])
    began = np.int64(0)
    while others.stop[0] == 0:
        held = not with_intercept or lock(locks, U(locks.size) - U(1), me)
        k = U(rows.begins[row])
        while held and k < end:
            held = lock(locks, U(rows.columns[k]), me)
            k += U(1)
        if held:
            if began > 0:
                others.waited[0] += nanoseconds() - began
            return True
        if began == 0:
            began = nanoseconds()
        unlock_row(rows, row, others)
        let_others_go()
    return False


@inline
def await_turn(others):
    """Waits until it is this worker's turn; False if asked to stop."""
    if read_now(others.words, U(0)) == others.me:
        return True
    began = nanoseconds()
    looks = 0
    while read_now(others.words, U(0)) != others.me:
        looks += 1
        if looks % PATIENCE == 0:
            if others.stop[0] != 0:
                return False
            let_others_go()
    others.waited[0] += nanoseconds() - began
    return True


@inline
def pass_on(others):
    """Gives the turn to the next worker that is still at work."""
    workers = np.int64(others.at_work.size) // np.int64(SLOT)
    other = others.me
    for _ in range(workers):
        other = (other + 1) % workers
        if others.at_work[U(other) * SLOT] != 0:
            break
    write_now(others.words, U(0), other)


@kernel(types.void(type_of(Others)))
def leave_turn(others):
    """Waits for the last turn of this worker, and passes it on for good."""
    if await_turn(others):
        others.at_work[U(others.me) * SLOT] = 0
        pass_on(others)


@cache
def excluding_loop(locks: bool, step: Step) -> Kernel:
    """The kernel that visits rows under mutual exclusion.

    With `locks`, it holds the locks of all columns of a row during its step. Otherwise it reads
    rows at any time, and writes when it is this worker's turn.
    """
    look, write = step.look, step.write

    def learn(task, span, stored, clock, others):
        rows, with_intercept = task.rows, task.plan.intercept != 0.0
        sums = 0.0, 1.0
        for i in range(span.begin, span.end):
            row = U(task.order[i])
            t = clock.done + clock.pace * np.float64(i - span.begin + U(1))
            if locks and not lock_row(rows, row, others, with_intercept):
                break
            sums = look(task, row, stored, t, sums)
            if not locks and not await_turn(others):
                break
            write(task, row, stored, t)
            if locks:
                unlock_row(rows, row, others)
            else:
                pass_on(others)
        total, product = sums
        return total + np.log(product)

    kinds = (type_of(kind) for kind in (Span, Stored, Clock, Others))
    name = f"{'locked' if locks else 'turns'}-{step.name}"
    return Kernel(learn, FLOAT(task_type(step.plan), *kinds), name=name)


class ExcludingWorker(RowWorker):
    """A worker that may have to wait for others while it works."""

    excludes = True

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        _, at_work, stop = control.words
        waited = np.zeros(1, np.int64)
        self._others = view(Others, shared["excluding"], rank, at_work, stop, waited)

    def _go_through(self, share: Share, begin: int, stop: int) -> float:
        self._others.waited[0] = 0
        total = super()._go_through(share, begin, stop)
        self._leave()
        self._waited += 1e-9 * int(self._others.waited[0])
        return total

    def _leave(self) -> None:
        """Called when it has nothing left to do."""

    def _visit(self, task: Task, begin: int, end: int, clock: Clock) -> float:
        learn, span = self.kernel(self._problem.step), view(Span, begin, end)
        return float(learn(task, span, self._stored, clock, self._others))


class LockedWorker(ExcludingWorker):
    """Holds a lock for each column of a row while it learns from it."""

    kernel = staticmethod(partial(excluding_loop, True))

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """A lock for each column, and one for the intercept."""
        return {"excluding": (problem.columns + 1, np.int64)}


class RoundRobinWorker(ExcludingWorker):
    """Writes its updates when it is its turn."""

    kernel = staticmethod(partial(excluding_loop, False))

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        return [*super().kernels(problem), leave_turn]

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """Whose turn it is."""
        return {"excluding": (8, np.int64)}

    def _leave(self) -> None:
        leave_turn(self._others)
