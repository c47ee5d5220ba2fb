"""Updates that exclude each other: a lock for every coordinate, or one worker after the other."""

from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.atomic import SLOT, let_others_go, read_now, replace_if, write_now
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.linear import CLOCK, FLOATS, HOW, ROWS, dot_with, take_off
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.problems.losses import slope_of, value_of
from hogwild.problems.schedules import left_of, rate_of

WORDS = writable(types.int64)
PATIENCE = 200  # looks at a lock before others get the core, and all locks that are held are let go


@inline
def step_of(row: Any, t: Any, dot: Any, bias: Any, targets: Any, how: Any, since: Any) -> Any:
    """The loss of a row, and what its weights and the intercept are to be changed by."""
    loss, _, plan = how
    schedule, eta0, l2, intercept_share = plan
    left = left_of(schedule, t - 1.0, since, eta0, l2)
    target = np.float64(targets[row])
    score = np.float64(np.float32(left) * dot + bias)
    slope = slope_of(loss, score, target)
    step = rate_of(schedule, t, eta0, l2)
    whole_step = step / left_of(schedule, t, since, eta0, l2)
    change = np.float32(slope * whole_step)
    return value_of(loss, score, target), change, np.float32(slope * step * intercept_share)


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
    _, indices, _, _ = rows
    for k in range(begin, end):
        replace_if(locks, U(indices[k]), me, 0)
    replace_if(locks, U(locks.size) - U(1), me, 0)


@inline
def lock_row(rows: Any, begin: Any, end: Any, locks: Any, who: Any, stop: Any, waited: Any) -> Any:
    """Takes the locks of all columns of a row, and of the intercept if there is one.

    False if asked to stop. Where one is kept by another, all are let go and it begins anew: so two
    that take them in different orders do not wait for each other for ever.
    """
    _, indices, _, _ = rows
    me, with_intercept = who
    began = np.int64(0)
    while stop[0] == 0:
        held = not with_intercept or lock(locks, U(locks.size) - U(1), me)
        k = begin
        while held and k < end:
            held = lock(locks, U(indices[k]), me)
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


@kernel(
    types.float64(
        ROWS,
        readonly(types.uint32),
        types.UniTuple(types.uintp, 2),
        FLOATS,
        FLOATS,
        HOW,
        CLOCK,
        WORDS,
        types.int64,
        WORDS,
        WORDS,
    )
)
def learn_locked(
    rows: Any,
    order: Any,
    places: Any,
    weights: Any,
    intercept: Any,
    how: Any,
    clock: Any,
    locks: Any,
    me: Any,
    stop: Any,
    waited: Any,
) -> Any:
    """Visits rows with the locks of all their columns in hand; the sum of their losses.

    What it waits for locks that others keep, in nanoseconds, is added to `waited`.
    """
    indptr, _, _, targets = rows
    done, since, stride = clock
    _, _, (_, _, _, intercept_share) = how
    with_intercept = intercept_share != 0.0
    begin, end = places
    total = 0.0
    for i in range(begin, end):
        row = U(order[i])
        first, last = U(indptr[row]), U(indptr[row + U(1)])
        if not lock_row(rows, first, last, locks, (me, with_intercept), stop, waited):
            break
        t = done + stride * np.float64(i - begin + U(1))
        dot = dot_with(rows, row, weights)
        loss, change, of_intercept = step_of(row, t, dot, intercept[0], targets, how, since)
        take_off(rows, row, change, weights)
        intercept[0] -= of_intercept
        unlock(rows, first, last, locks, me)
        total += loss
    return total


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


@kernel(
    types.float64(
        ROWS,
        readonly(types.uint32),
        types.UniTuple(types.uintp, 2),
        FLOATS,
        FLOATS,
        HOW,
        CLOCK,
        WORDS,
        types.int64,
        types.UniTuple(WORDS, 2),
        WORDS,
    )
)
def learn_in_turn(
    rows: Any,
    order: Any,
    places: Any,
    weights: Any,
    intercept: Any,
    how: Any,
    clock: Any,
    turn: Any,
    me: Any,
    control: Any,
    waited: Any,
) -> Any:
    """Visits rows, and writes what comes of each when it is this worker's turn.

    What it waits for its turns, in nanoseconds, is added to `waited`.
    """
    _, _, _, targets = rows
    done, since, stride = clock
    begin, end = places
    at_work, stop = control
    total = 0.0
    for i in range(begin, end):
        row = U(order[i])
        t = done + stride * np.float64(i - begin + U(1))
        dot = dot_with(rows, row, weights)
        loss, change, of_intercept = step_of(row, t, dot, intercept[0], targets, how, since)
        if not await_turn(turn, me, stop, waited):
            break
        take_off(rows, row, change, weights)
        intercept[0] -= of_intercept
        pass_on(turn, me, at_work)
        total += loss
    return total


@kernel(types.void(WORDS, types.int64, types.UniTuple(WORDS, 2), WORDS))
def leave_turn(turn: Any, me: Any, control: Any, waited: Any) -> None:
    """Takes part no longer: waits for the last turn, and passes it on for good."""
    at_work, stop = control
    if await_turn(turn, me, stop, waited):
        at_work[U(me) * SLOT] = 0
        pass_on(turn, me, at_work)
