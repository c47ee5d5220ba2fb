"""Merging the changes of a fixed number of shards in a round, in the order of the shards.

Every shard has a copy of the weights. The most frequent columns are merged in every round, from
lists of their changes; rarer columns are merged less often (see `kernels/exchange.py`). `width` is
the number of numbers stored for a column.
"""

from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compile import inline
from hogwild.kernels.exchange import MOST, PIECE, rows_until
from hogwild.kernels.primitives import U
from hogwild.kernels.views import Doubles, Floats, Places, Signed, Words

# Places in the state: rows done per shard, rows of this round, the stage, barriers passed, the half
# of the lists that is written, the number of frequent columns that this round merges, whether it
# merges all columns, early and late snapshots, nanoseconds of merging and of waiting; then the rows
# since each tier was merged
DONE, SIZE, STAGE, MET, HALF, UPTO, WHOLE, EARLY, AFTER, MERGING, WAITING, TIER = range(12)
STATE = 32  # words
LEARNING, MERGING_FREQUENT, ENDING = range(3)
FEWEST_ROWS = 4  # of a shard in a round


class Rounds(NamedTuple):
    """The numbers of a share of an epoch, for one worker.

    `first` to `end`: its shards, of `shards`; `begin` to `stop`: its share of the weights. Rows of
    the longest shard, rows per shard in a batch (0: no batches), rows between two snapshots (0: no
    snapshots), and the row after which snapshots are late.
    """

    first: int
    end: int
    shards: int
    begin: int
    stop: int
    rank: int
    workers: int
    longest: Signed
    batch: Signed
    gap: Signed
    late_from: Signed


class Merged(NamedTuple):
    """The arrays of one worker; those marked are shared.

    The base (shared) and all shards' copies (shared), scratch, the frequent columns' weights, lists
    of their changes (shared), sums over snapshots (shared); sums of losses by shard, where this
    worker's shards begin and stop in the order; the state of the rounds, the barrier's counter
    (shared), the stop and all workers' steps (shared).
    """

    base: Floats
    copies: Floats
    scratch: Floats
    frequent: Floats
    lists: Floats
    sums: Floats
    losses: Doubles
    begins: Places
    stops: Places
    state: Words
    barrier: Words
    stop: Words
    steps: Words


@inline
def plan_round(state, rounds, tiers, rate, warmth):
    """Decides how many rows a round has, and which columns are merged at its end."""
    at = state[DONE]
    batch, gap = rounds.batch, rounds.gap
    count = U(tiers.ends.size)
    each = min(MOST, rows_until(U(0), rate, warmth, tiers)) / np.float64(rounds.shards)
    size = batch if batch > 0 else max(np.int64(FEWEST_ROWS), np.int64(each))
    whole = batch > 0
    if gap > 0 and size >= gap - at % gap:
        size, whole = gap - at % gap, True
    if size >= rounds.longest - at:
        size, whole = rounds.longest - at, True
    passed = size * np.int64(rounds.shards)
    rows = np.float64(state[U(TIER) + count] + passed)
    if rows >= rows_until(count, rate, warmth, tiers):
        whole = True
    due: Any = U(0)
    for tier in range(U(0), count + U(1)):
        state[U(TIER) + tier] += passed
        rows = np.float64(state[U(TIER) + tier])
        if whole or rows >= rows_until(tier, rate, warmth, tiers):
            due = tier
    for tier in range(U(0), due + U(1)):
        state[U(TIER) + tier] = 0
    state[SIZE] = size
    state[WHOLE] = np.int64(whole)
    state[UPTO] = np.int64(tiers.ends[min(due, count - U(1))])


@inline
def first_list(rounds, merged):
    """The start of this round's lists of changes; the last round's may still be read."""
    return U(merged.state[HALF]) * rounds.shards * U(merged.frequent.size)


@inline
def pass_on(copy, columns, width, known, upto, changes):
    """Writes the changes of the most frequent columns of a copy to a list."""
    for p in range(U(0), upto):
        for k in range(U(0), width):
            changes[width * p + k] = copy[width * U(columns[p]) + k] - known[width * p + k]


@inline
def add_lists(rounds, merged, upto):
    """Adds all shards' changes of the first `upto` weights to them, in the order of the shards."""
    first, stride = first_list(rounds, merged), U(merged.frequent.size)
    for shard in range(U(0), rounds.shards):
        for p in range(U(0), upto):
            merged.frequent[p] += merged.lists[first + shard * stride + p]


@inline
def merge_frequent(rounds, merged, columns, width):
    """Merges the most frequent columns alone, into this worker's shards."""
    upto, size = U(merged.state[UPTO]), U(merged.base.size)
    add_lists(rounds, merged, width * upto)
    for shard in range(rounds.first, rounds.end):
        for p in range(U(0), upto):
            for k in range(U(0), width):
                at = shard * size + width * U(columns[p]) + k
                merged.copies[at] = merged.frequent[width * p + k]


@inline
def merge_all(rounds, merged):
    """Adds the changes of all copies to the base, for this worker's share of the weights."""
    base, copies, scratch = merged.base, merged.copies, merged.scratch
    from_zero, size = rounds.batch > 0, U(merged.base.size)
    for first in range(rounds.begin, rounds.stop, PIECE):
        stop = min(first + PIECE, rounds.stop)
        for k in range(first, stop):
            scratch[k - first] = base[k]
        for shard in range(U(0), rounds.shards):
            for k in range(first, stop):
                before = np.float32(0) if from_zero else base[k]
                scratch[k - first] += copies[shard * size + k] - before
        for k in range(first, stop):
            base[k] = scratch[k - first]
        for shard in range(U(0), rounds.shards):
            for k in range(first, stop):
                copies[shard * size + k] = np.float32(0) if from_zero else scratch[k - first]


@inline
def set_frequent(rounds, merged, columns, width):
    """Merges all frequent columns from the lists, and corrects what `merge_all` made of them."""
    base, size = merged.base, U(merged.base.size)
    add_lists(rounds, merged, U(merged.frequent.size))
    for p in range(U(0), U(columns.size)):
        for k in range(U(0), width):
            at = width * U(columns[p]) + k
            if at >= rounds.begin and at < rounds.stop:
                base[at] = merged.frequent[width * p + k]
                for shard in range(U(0), rounds.shards):
                    merged.copies[shard * size + at] = base[at]


@inline
def add_snapshot_of(rounds, merged, width, late, scale):
    """Adds a share of the weights, scaled, to a sum; the first snapshot begins it."""
    which = U(AFTER) if late else U(EARLY)
    size = U(merged.base.size)
    offset = U(late) * size
    for k in range(rounds.begin, rounds.stop):
        before = np.float32(0) if merged.state[which] == 0 else merged.sums[offset + k]
        factor = np.float32(1) if k >= size - width else np.float32(scale)
        merged.sums[offset + k] = before + factor * merged.base[k]
    merged.state[which] += 1
