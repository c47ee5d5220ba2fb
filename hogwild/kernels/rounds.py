"""Learning in rounds over a fixed number of shards: the same outcome whoever does which shard.

In a round, some rows of every shard are learned from, each on the shard's own copy of the weights;
then the changes of all shards are added up, in the order of the shards, and every copy becomes the
sum. Between the two, workers wait for each other. The hottest columns are merged in every round,
others the less often the colder they are (see `kernels/combine.py`), all at points that depend on
the rows done alone. Of the hot columns, changes are passed on as lists that lie together.

In a round with `from_zero` (a batch), nobody learns before it ends: the copies hold changes only.
"""

from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.atomic import LOOKS, SLOT, add_to, look_until
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.combine import MOST, PIECE, TIERS, WORDS, rows_until
from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.linear import FLOATS, HOW, ROWS, visit
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.problems.schedules import left_of, rate_of

# The state: rows done of each shard, rows of this round, the stage, how often workers have met,
# which half of the lists is written to, how many of the hot columns are merged in this round,
# whether all columns are, moments taken early and late, nanoseconds of merging and of waiting; then
# the rows since each tier was merged
DONE, SIZE, STAGE, MET, HALF, UPTO, WHOLE, EARLY, LATE, MERGING, WAITING, TIER = range(12)
LEARNING, MERGING_HOT, ENDING = range(3)
FEWEST_ROWS = 4  # of a shard in a round


@inline
def plan_round(state: Any, plan: Any, shards: Any, tiers: Any, pace: Any) -> None:
    """Decides how many rows a round has, and which columns are merged at its end."""
    _, ends, _, _ = tiers
    longest, batch, gap, _ = plan
    rate, calm = pace
    at = state[DONE]
    count = U(ends.size)
    each = min(MOST, rows_until(U(0), rate, calm, tiers)) / np.float64(shards)
    size = batch if batch > 0 else max(np.int64(FEWEST_ROWS), np.int64(each))
    whole = batch > 0
    if gap > 0 and size >= gap - at % gap:
        size, whole = gap - at % gap, True
    if size >= longest - at:
        size, whole = longest - at, True
    passed = size * np.int64(shards)
    if np.float64(state[U(TIER) + count] + passed) >= rows_until(count, rate, calm, tiers):
        whole = True
    due = U(0)
    for tier in range(U(0), count + U(1)):
        state[U(TIER) + tier] += passed
        if whole or np.float64(state[U(TIER) + tier]) >= rows_until(tier, rate, calm, tiers):
            due = tier
    for tier in range(U(0), due + U(1)):
        state[U(TIER) + tier] = 0
    state[SIZE] = size
    state[WHOLE] = np.int64(whole)
    state[UPTO] = np.int64(ends[min(due, count - U(1))])


@inline
def pass_on_hot(copy: Any, hot: Any, hot_base: Any, upto: Any, lists: Any, out: Any) -> None:
    """Writes the changes of the hottest columns of a copy to a list."""
    for p in range(U(0), upto):
        lists[out + p] = copy[U(hot[p])] - hot_base[p]


@inline
def merge_hot(lists: Any, half: Any, shards: Any, upto: Any, hot_base: Any) -> None:
    """Adds all shards' changes of the hottest columns to what they were, in the shards' order."""
    width = U(hot_base.size)
    for shard in range(U(0), shards):
        for p in range(U(0), upto):
            hot_base[p] += lists[half + shard * width + p]


@inline
def merge_all(base: Any, copies: Any, scratch: Any, share: Any, from_zero: Any) -> None:
    """Adds the changes of all copies to the base, for a share of the columns."""
    begin, end = share
    size = U(base.size)
    shards = U(copies.size) // size
    for first in range(begin, end, PIECE):
        stop = min(first + PIECE, end)
        for k in range(first, stop):
            scratch[k - first] = base[k]
        for shard in range(U(0), shards):
            for k in range(first, stop):
                before = np.float32(0) if from_zero else base[k]
                scratch[k - first] += copies[shard * size + k] - before
        for k in range(first, stop):
            base[k] = scratch[k - first]
        for shard in range(U(0), shards):
            for k in range(first, stop):
                copies[shard * size + k] = np.float32(0) if from_zero else scratch[k - first]


@inline
def set_hot(base: Any, copies: Any, hot: Any, hot_base: Any, share: Any) -> None:
    """Makes good what `merge_all` made of the hot columns, which have been merged already."""
    begin, end = share
    size = U(base.size)
    for p in range(U(0), U(hot.size)):
        column = U(hot[p])
        if column >= begin and column < end:
            base[column] = hot_base[p]
            for shard in range(U(0), U(copies.size) // size):
                copies[shard * size + column] = hot_base[p]


@inline
def add_moment_of(base: Any, sums: Any, share: Any, late: Any, first: Any, left: Any) -> None:
    """Adds a share of the weights, made whole, to a sum; the first begins it."""
    begin, end = share
    size = U(base.size)
    offset = U(late) * size
    for k in range(begin, end):
        before = np.float32(0) if first else sums[offset + k]
        factor = np.float32(1) if k == size - U(1) else np.float32(left)
        sums[offset + k] = before + factor * base[k]


@kernel(
    types.boolean(
        ROWS,
        readonly(types.uint32),
        types.UniTuple(readonly(types.uint64), 2),
        types.UniTuple(types.uintp, 3),
        HOW,
        types.UniTuple(types.float64, 3),
        types.UniTuple(FLOATS, 6),
        TIERS,
        types.UniTuple(types.uintp, 4),
        types.UniTuple(types.int64, 4),
        types.UniTuple(WORDS, 4),
        writable(types.float64),
    )
)
def learn_in_rounds(  # noqa: PLR0915
    rows: Any,
    order: Any,
    parts: Any,
    mine: Any,
    how: Any,
    clock: Any,
    arrays: Any,
    tiers: Any,
    place: Any,
    plan: Any,
    words: Any,
    losses: Any,
) -> Any:
    """Goes through rounds until all rows are done or it should stop (True), or waits too long.

    Args:
        order: the rows of this worker's shards, one shard after the other.
        parts: where to begin and where to end in the order, for each of its shards.
        mine: the first of its shards, the shard after the last, and how many there are in all.
        clock: steps done before this part, the step of the last fold, steps to become calm.
        arrays: the base (shared, the intercept last), all shards' copies (shared), scratch, the hot
            columns' weights, lists of their changes (shared), sums over moments (shared).
        place: where this worker's columns begin and end, its number, and the number of workers.
        plan: rows of the longest shard to do in this part, rows of a shard in a batch (0: there are
            none), rows between two moments (0: none are taken), and the row after which they are
            late.
        words: the state, the counter that workers meet at, the stop, and all workers' steps.
        losses: the sum of the losses of each shard.
    """
    base, copies, scratch, hot_base, lists, sums = arrays
    begins, stops = parts
    hot, _, _, _ = tiers
    done, since, calming = clock
    first_shard, end_shard, shards = mine
    begin, end, rank, workers = place
    share = begin, end
    longest, batch, gap, late_from = plan
    state, barrier, stop, steps = words
    _, _, rate_plan = how
    schedule, eta0, l2, _ = rate_plan
    size = U(base.size)
    last = size - U(1)
    from_zero = batch > 0
    moving = np.float32(0) if from_zero else np.float32(1)
    while True:
        at = state[DONE]
        now = done + np.float64(at) * np.float64(shards)
        half = U(state[HALF]) * shards * U(hot.size)
        if state[STAGE] == LEARNING:
            if at >= longest or stop[0] != 0:
                return True
            pace = rate_of(schedule, max(1.0, now), eta0, l2), min(1.0, now / calming)
            plan_round(state, plan, shards, tiers, pace)
            upto = U(0) if from_zero else U(state[UPTO])
            merging = np.int64(0)
            for shard in range(first_shard, end_shard):
                limit = np.int64(stops[shard - first_shard])
                first = np.int64(begins[shard - first_shard]) + at
                places = U(min(first, limit)), U(min(first + state[SIZE], limit))
                copy = copies[shard * size : (shard + U(1)) * size]
                weights = base if from_zero else copy
                times = now, since, np.float64(shards)
                met, moved = visit(
                    rows, order, places, weights, copy, (weights[last], moving), how, times
                )
                losses[shard] += met
                copy[last] += moved
                began = nanoseconds()
                pass_on_hot(copy, hot, hot_base, upto, lists, half + shard * U(hot.size))
                merging += nanoseconds() - began
            steps[rank * SLOT] = (at + state[SIZE]) * np.int64(end_shard - first_shard)
            state[MERGING] += merging
            state[STAGE] = MERGING_HOT
            state[MET] += 1
            add_to(barrier, U(0), np.int64(1))

        began = nanoseconds()
        there = look_until(barrier, U(0), state[MET] * np.int64(workers), LOOKS)
        met_at = nanoseconds()
        state[WAITING] += met_at - began
        if not there:
            return stop[0] != 0
        if state[STAGE] == ENDING or state[WHOLE] == 0:
            if not from_zero and state[STAGE] == MERGING_HOT:
                upto = U(state[UPTO])
                merge_hot(lists, half, shards, upto, hot_base)
                for shard in range(first_shard, end_shard):
                    for p in range(U(0), upto):
                        copies[shard * size + U(hot[p])] = hot_base[p]
            state[HALF] = 1 - state[HALF]
            state[DONE] += state[SIZE]
            state[STAGE] = LEARNING
        else:
            merge_all(base, copies, scratch, share, from_zero)
            if not from_zero:
                merge_hot(lists, half, shards, U(hot.size), hot_base)
                set_hot(base, copies, hot, hot_base, share)
            after = at + state[SIZE]
            if gap > 0 and after % gap == 0:
                late = after > late_from
                which = U(LATE) if late else U(EARLY)
                left = left_of(
                    schedule, done + np.float64(after * np.int64(shards)), since, eta0, l2
                )
                add_moment_of(base, sums, share, late, state[which] == 0, left)
                state[which] += 1
            state[STAGE] = ENDING
            state[MET] += 1
            add_to(barrier, U(0), np.int64(1))
        state[MERGING] += nanoseconds() - met_at
