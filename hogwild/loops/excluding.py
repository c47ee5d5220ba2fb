"""`locked` and `roundrobin`: updates that exclude each other.

A lock for every column of a row (AIG: Niu et al. 2011), or one worker after the other (RR:
Langford, Smola, Zinkevich 2009).
"""

from abc import abstractmethod
from functools import cache
from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.atomic import SLOT, let_others_go, read_now, replace_if, write_now
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.compile import Kernel, inline, kernel
from hogwild.kernels.primitives import U
from hogwild.kernels.views import FLOAT, WORDS, Clock, Span, Stored, Task, task_type, type_of, view
from hogwild.learn.problem import RowProblem, Share
from hogwild.loops.shared import RowWorker
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.team import Control
from hogwild.steps.step import Step

PATIENCE = 200  # looks at a lock before others get the core, and all locks that are held are let go
KINDS = tuple(type_of(kind) for kind in (Span, Stored, Clock))


@inline
def lock(locks: Any, place: Any, me: Any) -> Any:
    """Takes a lock, or has it already; False where another keeps it for long."""
    for _ in range(PATIENCE):
        if replace_if(locks, place, 0, me):
            return True
        if read_now(locks, place) == me:
            return True
    return False


@inline
def unlock(rows: Any, begin: Any, end: Any, locks: Any, me: Any) -> None:
    """Lets go of what is held of a row's locks, and of the intercept's."""
    for k in range(begin, end):
        replace_if(locks, U(rows.columns[k]), me, 0)
    replace_if(locks, U(locks.size) - U(1), me, 0)


@inline
def lock_row(rows: Any, begin: Any, end: Any, locks: Any, who: Any, stop: Any, waited: Any) -> Any:
    """Takes the locks of all columns of a row, and of the intercept if there is one.

    False if asked to stop. Where one is kept by another, all are let go and it begins anew: so two
    that take them in different orders do not wait for each other for ever.
    """
    me, with_intercept = who
    began = np.int64(0)
    while stop[0] == 0:
        held = not with_intercept or lock(locks, U(locks.size) - U(1), me)
        k = begin
        while held and k < end:
            held = lock(locks, U(rows.columns[k]), me)
            k += U(1)
        if held:
            if began > 0:
                waited[0] += nanoseconds() - began
            return True
        if began == 0:
            began = nanoseconds()
        unlock(rows, begin, end, locks, me)
        let_others_go()
    return False


@cache
def locking_loop(step: Step) -> Kernel:
    """The kernel that visits rows while it holds the locks of all their columns.

    What it waits for locks that others keep, in nanoseconds, is added to `waited`.
    """
    look, write = step.look, step.write

    def learn(
        task: Any,
        span: Any,
        stored: Any,
        clock: Any,
        locks: Any,
        me: Any,
        stop: Any,
        waited: Any,
    ) -> Any:
        rows, with_intercept = task.rows, task.plan.intercept != 0.0
        sums = 0.0, 1.0
        for i in range(span.begin, span.end):
            row = U(task.order[i])
            first, last = U(rows.begins[row]), U(rows.ends[row])
            if not lock_row(rows, first, last, locks, (me, with_intercept), stop, waited):
                break
            t = clock.done + clock.pace * np.float64(i - span.begin + U(1))
            sums = look(task, row, stored, t, sums)
            write(task, row, stored, t)
            unlock(rows, first, last, locks, me)
        total, product = sums
        return total + np.log(product)

    signature = FLOAT(task_type(step.plan), *KINDS, WORDS, types.int64, WORDS, WORDS)
    return Kernel(learn, signature, name=f"locked-{step.name}")


@inline
def await_turn(turn: Any, me: Any, stop: Any, waited: Any) -> Any:
    """Waits until it is this worker's turn; False if asked to stop."""
    if read_now(turn, U(0)) == me:
        return True
    began = nanoseconds()
    looks = 0
    while read_now(turn, U(0)) != me:
        looks += 1
        if looks % PATIENCE == 0:
            if stop[0] != 0:
                return False
            let_others_go()
    waited[0] += nanoseconds() - began
    return True


@inline
def pass_on(turn: Any, me: Any, at_work: Any) -> None:
    """Gives the turn to the next worker that still is at work."""
    workers = np.int64(at_work.size) // np.int64(SLOT)
    other = me
    for _ in range(workers):
        other = (other + 1) % workers
        if at_work[U(other) * SLOT] != 0:
            break
    write_now(turn, U(0), other)


@cache
def turns_loop(step: Step) -> Kernel:
    """The kernel that looks at rows any time, and writes when it is this worker's turn.

    What it waits for its turns, in nanoseconds, is added to `waited`.
    """
    look, write = step.look, step.write

    def learn(
        task: Any,
        span: Any,
        stored: Any,
        clock: Any,
        turn: Any,
        me: Any,
        at_work: Any,
        stop: Any,
        waited: Any,
    ) -> Any:
        sums = 0.0, 1.0
        for i in range(span.begin, span.end):
            row = U(task.order[i])
            t = clock.done + clock.pace * np.float64(i - span.begin + U(1))
            sums = look(task, row, stored, t, sums)
            if not await_turn(turn, me, stop, waited):
                break
            write(task, row, stored, t)
            pass_on(turn, me, at_work)
        total, product = sums
        return total + np.log(product)

    signature = FLOAT(task_type(step.plan), *KINDS, WORDS, types.int64, WORDS, WORDS, WORDS)
    return Kernel(learn, signature, name=f"turns-{step.name}")


@kernel(types.void(WORDS, types.int64, WORDS, WORDS, WORDS))
def leave_turn(turn: Any, me: Any, at_work: Any, stop: Any, waited: Any) -> None:
    """Takes part no longer: waits for the last turn, and passes it on for good."""
    if await_turn(turn, me, stop, waited):
        at_work[U(me) * SLOT] = 0
        pass_on(turn, me, at_work)


class ExcludingWorker(RowWorker):
    """A worker that may have to wait for others in the middle of its work."""

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._waiting = np.zeros(1, np.int64)  # nanoseconds

    def _view(self, weights: Any) -> Any:
        """The intercept, too, is written where it lies: updates exclude each other."""
        bias = weights[-self._problem.width :]
        return view(Stored, weights, weights, bias, bias, self._shared["row_state"])

    def _go_through(self, share: Share, begin: int, stop: int) -> float:
        self._waiting[0] = 0
        total = super()._go_through(share, begin, stop)
        self._leave()
        self._waited += 1e-9 * int(self._waiting[0])
        return total

    def _leave(self) -> None:
        """Called when it has nothing left to do."""

    @property
    @abstractmethod
    def _more(self) -> tuple[Any, ...]:
        """What the kernel takes besides, but for the counter of waiting."""

    def _visit(self, task: Task, begin: int, end: int, clock: Clock) -> float:
        learn, span = self.kernel(self._problem.step), view(Span, begin, end)
        return float(learn(task, span, self._stored, clock, *self._more, self._waiting))


class LockedWorker(ExcludingWorker):
    """Holds a lock for each column of a row while it learns from it."""

    kernel = staticmethod(locking_loop)

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """A lock for each column, and one for the intercept."""
        return {"locks": (problem.columns + 1, np.int64)}

    @property
    def _more(self) -> tuple[Any, ...]:
        return self._shared["locks"], self._rank + 1, self._control.words[2]


class RoundRobinWorker(ExcludingWorker):
    """Writes its updates when it is its turn."""

    kernel = staticmethod(turns_loop)

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        """What it calls."""
        return [*super().kernels(problem), leave_turn]

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """Whose turn it is."""
        return {"turn": (8, np.int64)}

    @property
    def _more(self) -> tuple[Any, ...]:
        return self._shared["turn"], self._rank, *self._control.words[1:]

    def _leave(self) -> None:
        leave_turn(*self._more, self._waiting)
