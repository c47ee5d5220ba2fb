"""Write-combining: each worker learns on a copy of its own, and workers exchange their changes.

Of every weight, each worker has a slot in shared memory that holds the sum of its changes, and
that nobody else writes to: a weight is the sum of its slots, and no change is ever lost. Worker 0
holds the weights to begin with in its slots. A worker's copy is its own slot plus what it has seen
of the others'.

Columns are exchanged the more often the hotter they are: in tiers, of which the first few are lists
of the hottest columns, with slots of their own that lie together, and the last is all of them
(where the hot columns' slots stay 0).
After HOGWILD++ (Zhang, Hsieh, Akella 2016) and HogBatch (Sallinen, Satish, Smelyanskiy, Sury, Re
2016).
"""

from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.atomic import SLOT
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.linear import FLOATS, HOW, ROWS, visit
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.problems.schedules import left_of, rate_of

WORDS = writable(types.int64)
# a copy of the weights (the intercept is the last of them), what it holds of others', the same for
# the hot columns, and sums of the weights over early and over late moments
OWN = types.UniTuple(FLOATS, 4)
# slots of all columns, and of the hot ones: those of worker 0, of worker 1, ...
SLOTS = types.UniTuple(FLOATS, 2)
# the hot columns, the hottest first; where each tier ends among them; for each tier and the last,
# all columns: 1 / (rate * this) is how many rows may pass, and the fewest that must
TIERS = types.Tuple(
    (
        readonly(types.uint32),
        readonly(types.uint64),
        readonly(types.float64),
        readonly(types.float64),
    )
)
# this worker's number, and how many there are
PLACE = types.UniTuple(types.uintp, 2)

# Places in a worker's tally; from TIER on, one for each tier
GAP, LATE_FROM, EARLY, LATE, SPENT, TIER = range(6)

FEWEST = 32.0  # rows between two exchanges, and the most between two looks at the others
MOST = 16384.0
PIECE = U(1024)  # columns of which all that is needed stays in the nearest cache


@inline
def exchange_hot(own: Any, slots: Any, hot: Any, place: Any, begin: Any, end: Any) -> None:
    """Exchanges the changes of the hot columns number begin, ..., end - 1."""
    weights, _, seen, _ = own
    mine, workers = place
    stride = slots.size // workers
    for p in range(begin, end):
        column = U(hot[p])
        change = weights[column] - seen[p]
        slots[mine * stride + p] = change
        others = np.float32(0)
        for worker in range(U(0), workers):
            if worker != mine:
                others += slots[worker * stride + p]
        seen[p] = others
        weights[column] = change + others


@inline
def exchange_all(own: Any, slots: Any, hot: Any, hot_slots: Any, place: Any) -> None:
    """Exchanges the changes of all columns, of which the hot ones have just been exchanged."""
    weights, seen, hot_seen, _ = own
    mine, workers = place
    for p in range(U(0), U(hot.size)):
        weights[U(hot[p])] = np.float32(0)
    stride = slots.size // workers
    for first in range(U(0), U(weights.size), PIECE):
        end = min(first + PIECE, U(weights.size))
        for column in range(first, end):
            change = weights[column] - seen[column]
            slots[mine * stride + column] = change
            weights[column] = change
            seen[column] = np.float32(0)
        for worker in range(U(0), workers):
            if worker != mine:
                for column in range(first, end):
                    seen[column] += slots[worker * stride + column]
        for column in range(first, end):
            weights[column] += seen[column]
    stride = hot_slots.size // workers
    for p in range(U(0), U(hot.size)):
        weights[U(hot[p])] = hot_slots[mine * stride + p] + hot_seen[p]


@inline
def rows_until(tier: Any, rate: Any, calm: Any, tiers: Any) -> Any:
    """How many rows may pass between two exchanges of a tier.

    So many that slopes do not change by much meanwhile; but not so few that exchanging
    takes much of the time, once training has become calm (1; from 0 at the start).
    """
    _, _, moves, floors = tiers
    wanted = 1.0 / max(1e-30, rate * moves[tier])
    return max(FEWEST, wanted, calm * floors[tier])


@inline
def add_moment(own: Any, tiers: Any, workers: Any, left: Any, late: Any, first: Any) -> None:
    """Adds this worker's part of the weights, made whole, to a sum; the first begins it.

    The parts of all workers add up to the weights, of which no copy has all. Of the hottest columns
    each copy knows nearly all, so its part is an equal share of what it knows: their own changes
    drift apart, and workers come to a moment at slightly different times.
    """
    weights, seen, hot_seen, sums = own
    hot, ends, _, _ = tiers
    size = U(weights.size)
    offset = late * size
    factor = np.float32(left)
    for column in range(U(0), size):
        before = np.float32(0) if first else sums[offset + column]
        sums[offset + column] = before + factor * (weights[column] - seen[column])
    share = np.float32(1) / np.float32(workers)
    shared = U(ends[min(U(1), U(ends.size) - U(1))])
    for p in range(U(0), U(hot.size)):
        column = U(hot[p])
        part = share * weights[column] if p < shared else weights[column] - hot_seen[p]
        sums[offset + column] += factor * (part - (weights[column] - seen[column]))
    last = size - U(1)  # the intercept is whole
    sums[offset + last] += (np.float32(1) - factor) * share * weights[last]


@kernel(
    types.float64(
        ROWS,
        readonly(types.uint32),
        types.UniTuple(types.uintp, 3),
        HOW,
        types.UniTuple(types.float64, 3),
        OWN,
        SLOTS,
        TIERS,
        PLACE,
        types.UniTuple(WORDS, 3),
        WORDS,
    )
)
def learn_combined(
    rows: Any,
    order: Any,
    places: Any,
    how: Any,
    clock: Any,
    own: Any,
    slots: Any,
    tiers: Any,
    place: Any,
    control: Any,
    tally: Any,
) -> Any:
    """Visits the rows at some places of an order; returns the sum of their losses.

    Args:
        places: where the worker's part begins, where to go on, and where to end.
        clock: steps that all workers did before this part, the step of the last fold, and steps in
            which training becomes calm.
        control: the steps of each worker in this part, which of them are at work, and the stop.
        tally: rows between two moments (0: none are taken), the place after which they are late,
            how many were early and late, the nanoseconds that exchanging took; then the rows that
            passed since the last exchange of each tier.
    """
    part, begin, end = places
    weights, _, _, _ = own
    slot, hot_slot = slots
    hot, ends, _, _ = tiers
    steps, at_work, stop = control
    done, since, calming = clock
    _, _, rate_plan = how
    schedule, eta0, l2, _ = rate_plan
    mine, workers = place
    lists = U(ends.size)
    gap, late_from = tally[GAP], tally[LATE_FROM]
    last = U(weights.size) - U(1)
    total = 0.0
    at = begin
    while at < end and stop[0] == 0:
        now, stride = done, 0.0
        for worker in range(U(0), workers):
            now += np.float64(steps[worker * SLOT])
            stride += np.float64(at_work[worker * SLOT])
        rate = rate_of(schedule, max(1.0, now), eta0, l2)
        calm = min(1.0, now / calming)
        size = min(U(min(MOST, rows_until(U(0), rate, calm, tiers))), end - at)
        if gap > 0:
            size = min(size, U(gap) - (at - part) % U(gap))
        met, moved = visit(
            rows,
            order,
            (at, at + size),
            weights,
            weights,
            (weights[last], np.float32(1)),
            how,
            (now, since, max(1.0, stride)),
        )
        total += met
        weights[last] += moved
        at += size
        steps[mine * SLOT] = np.int64(at - part)

        began = nanoseconds()
        first = U(0)
        for tier in range(U(0), lists + U(1)):
            passed = U(TIER) + tier
            tally[passed] += np.int64(size)
            if np.float64(tally[passed]) >= rows_until(tier, rate, calm, tiers):
                tally[passed] = 0
                if tier < lists:
                    exchange_hot(own, hot_slot, hot, place, first, U(ends[tier]))
                else:
                    exchange_hot(own, hot_slot, hot, place, U(0), U(hot.size))
                    exchange_all(own, slot, hot, hot_slot, place)
            if tier < lists:
                first = U(ends[tier])
        tally[SPENT] += nanoseconds() - began
        if gap > 0 and (at - part) % U(gap) == 0:
            late = U(np.int64(at) > late_from)
            count = U(EARLY) + late
            now = done + np.float64(steps[mine * SLOT]) * np.float64(workers)
            left = left_of(schedule, now, since, eta0, l2)
            add_moment(own, tiers, workers, left, late, tally[count] == 0)
            tally[count] += 1
    return total


@kernel(types.void(OWN, SLOTS, readonly(types.uint32), PLACE))
def hand_in(own: Any, slots: Any, hot: Any, place: Any) -> None:
    """Writes the changes of all columns to the slots, and takes none: the copy is done with."""
    weights, seen, hot_seen, _ = own
    slot, hot_slot = slots
    mine, workers = place
    offset = mine * (U(hot_slot.size) // workers)
    for p in range(U(0), U(hot.size)):
        column = U(hot[p])
        hot_slot[offset + p] = weights[column] - hot_seen[p]
        seen[column] = weights[column]  # so that 0 is what others find in their other slots
    offset = mine * (U(slot.size) // workers)
    for column in range(U(0), U(weights.size)):
        slot[offset + column] = weights[column] - seen[column]


@kernel(
    types.void(
        readonly(types.float32), types.uintp, types.uintp, types.UniTuple(types.uintp, 2), FLOATS
    )
)
def add_up(slots: Any, parts: Any, offset: Any, share: Any, out: Any) -> None:
    """out[k] is the sum of the numbers offset + k of so many equal parts of the slots."""
    begin, end = share
    stride = U(slots.size) // parts
    for first in range(begin, end, PIECE):
        stop = min(first + PIECE, end)
        for k in range(first, stop):
            out[k] = slots[offset + k]
        for part in range(U(1), parts):
            for k in range(first, stop):
                out[k] += slots[part * stride + offset + k]


@kernel(
    types.void(
        readonly(types.float32),
        types.uintp,
        readonly(types.uint32),
        types.UniTuple(types.uintp, 2),
        FLOATS,
    )
)
def add_up_hot(slots: Any, parts: Any, hot: Any, share: Any, out: Any) -> None:
    """The same for the hot columns' slots, as far as these columns are in the share."""
    begin, end = share
    stride = U(slots.size) // parts
    for p in range(U(0), U(hot.size)):
        if U(hot[p]) >= begin and U(hot[p]) < end:
            total = np.float32(0)
            for part in range(U(0), parts):
                total += slots[part * stride + p]
            out[U(hot[p])] = total
