"""Exchanging changes between the workers' copies of the weights.

Each worker has a slot for every weight in shared memory. The slot holds the sum of the worker's
changes, and no other worker writes to it. A weight is the sum of its slots, so no change is ever
lost. Worker 0 holds the initial weights in its slots. A worker's copy of a weight is its own slot
plus what it has seen of the other slots.

Frequent columns are exchanged more often. Columns are grouped into tiers. The first tiers are lists
of the most frequent columns, which have slots of their own in one place. The last tier is all
columns; there, the slots of the frequent columns stay 0. The intercept is the first of the frequent
columns. `width` is the number of values stored for a column.

After HOGWILD++ (Zhang, Hsieh, Akella 2016) and HogBatch (Sallinen, Satish, Smelyanskiy, Sury, Re
2016).
"""

from typing import NamedTuple

import numpy as np
from numba import types

from hogwild.kernels.compile import always_inline, inline, kernel
from hogwild.kernels.primitives import U
from hogwild.kernels.views import (
    FLOATS,
    ORDER,
    UINT,
    DoublesRead,
    Floats,
    Order,
    Places,
    Span,
    type_of,
)

FEWEST = 32.0  # least rows between two exchanges, and most rows between two looks at the others
MOST = 16384.0
PIECE = U(1024)  # weights; all numbers that belong to them fit into the nearest cache


class Copy(NamedTuple):
    """A worker's copy of the weights, and the changes of others that it has seen.

    `sums` are sums of the weights over early and over late snapshots.
    """

    weights: Floats
    others: Floats
    frequent_others: Floats
    sums: Floats


class Slots(NamedTuple):
    """Slots of all columns, and of the frequent ones: those of worker 0, of worker 1, ..."""

    all: Floats
    frequent: Floats


class Tiers(NamedTuple):
    """The frequent columns, the most frequent first, and where each tier ends among them.

    For each tier, and for all columns as the last one: at a learning rate r, 1 / (r * coupling)
    rows may pass between two exchanges. After the warm-up, at least `fewest_rows` must pass.
    """

    columns: Order
    ends: Places
    coupling: DoublesRead
    fewest_rows: DoublesRead


class Place(NamedTuple):
    """A worker's number, and how many workers there are."""

    rank: int
    workers: int


@always_inline
def exchange_frequent(copy, slots, columns, width, place, begin, end):
    """Exchanges the changes of the frequent columns number begin, ..., end - 1."""
    stride = slots.size // place.workers
    for p in range(begin, end):
        for k in range(U(0), width):
            at, listed = width * U(columns[p]) + k, width * p + k
            change = copy.weights[at] - copy.frequent_others[listed]
            slots[place.rank * stride + listed] = change
            others = np.float32(0)
            for worker in range(U(0), place.workers):
                if worker != place.rank:
                    others += slots[worker * stride + listed]
            copy.frequent_others[listed] = others
            copy.weights[at] = change + others


@inline
def exchange_all(copy, slots, columns, width, place):
    """Exchanges the changes of all columns; the frequent ones have just been exchanged."""
    weights, others = copy.weights, copy.others
    for p in range(U(0), U(columns.size)):
        for k in range(U(0), width):
            weights[width * U(columns[p]) + k] = np.float32(0)
    stride = slots.all.size // place.workers
    for first in range(U(0), U(weights.size), PIECE):
        end = min(first + PIECE, U(weights.size))
        for at in range(first, end):
            change = weights[at] - others[at]
            slots.all[place.rank * stride + at] = change
            weights[at] = change
            others[at] = np.float32(0)
        for worker in range(U(0), place.workers):
            if worker != place.rank:
                for at in range(first, end):
                    others[at] += slots.all[worker * stride + at]
        for at in range(first, end):
            weights[at] += others[at]
    mine = place.rank * (slots.frequent.size // place.workers)
    for p in range(U(0), U(columns.size)):
        for k in range(U(0), width):
            listed = width * p + k
            whole = slots.frequent[mine + listed] + copy.frequent_others[listed]
            weights[width * U(columns[p]) + k] = whole


@inline
def rows_until(tier, rate, warmth, tiers):
    """How many rows may pass between two exchanges of a tier.

    As many as change slopes by little; but not so few that exchanging takes much of the time, once
    training has warmed up (1; from 0 at the start).
    """
    wanted = 1.0 / max(1e-30, rate * tiers.coupling[tier])
    return max(FEWEST, wanted, warmth * tiers.fewest_rows[tier])


@inline
def add_snapshot(copy, tiers, width, workers, scale, late, first):
    """Adds this worker's part of the weights, made whole, to a sum; the first begins it.

    The parts of all workers add up to the weights, of which no copy has all. Of the most frequent
    columns each copy knows nearly all, so its part is an equal share of what it knows: their own
    changes drift apart, and workers take a snapshot at slightly different times.
    """
    weights, others, sums = copy.weights, copy.others, copy.sums
    size = U(weights.size)
    offset = late * size
    factor = np.float32(scale)
    for at in range(U(0), size):
        before = np.float32(0) if first else sums[offset + at]
        sums[offset + at] = before + factor * (weights[at] - others[at])
    share = np.float32(1) / np.float32(workers)
    shared = U(tiers.ends[min(U(1), U(tiers.ends.size) - U(1))])
    for p in range(U(0), U(tiers.columns.size)):
        for k in range(U(0), width):
            at = width * U(tiers.columns[p]) + k
            own = weights[at] - copy.frequent_others[width * p + k]
            part = share * weights[at] if p < shared else own
            sums[offset + at] += factor * (part - (weights[at] - others[at]))
    for at in range(size - width, size):  # the intercept is stored whole
        sums[offset + at] += (np.float32(1) - factor) * share * weights[at]


@kernel(types.void(type_of(Copy), type_of(Slots), ORDER, UINT, type_of(Place)))
def hand_in(copy, slots, columns, width, place):
    """Writes the changes of all columns to the slots, and takes none: the copy is done with."""
    offset = place.rank * (U(slots.frequent.size) // place.workers)
    for p in range(U(0), U(columns.size)):
        for k in range(U(0), width):
            at, listed = width * U(columns[p]) + k, width * p + k
            slots.frequent[offset + listed] = copy.weights[at] - copy.frequent_others[listed]
            copy.others[at] = copy.weights[at]  # so that others find 0 in the other slot
    offset = place.rank * (U(slots.all.size) // place.workers)
    for at in range(U(0), U(copy.weights.size)):
        slots.all[offset + at] = copy.weights[at] - copy.others[at]


@kernel(types.void(FLOATS, UINT, UINT, type_of(Span), FLOATS))
def add_up(slots, parts, offset, share, out):
    """out[k] is the sum over equal parts of the slots of their number offset + k."""
    begin, end = share
    stride = U(slots.size) // parts
    for first in range(begin, end, PIECE):
        stop = min(first + PIECE, end)
        for k in range(first, stop):
            out[k] = slots[offset + k]
        for part in range(U(1), parts):
            for k in range(first, stop):
                out[k] += slots[part * stride + offset + k]


@kernel(types.void(FLOATS, UINT, ORDER, UINT, type_of(Span), FLOATS))
def add_up_frequent(slots, parts, columns, width, share, out):
    """The same for the frequent columns' slots, as far as these weights are in the share."""
    begin, end = share
    stride = U(slots.size) // parts
    for p in range(U(0), U(columns.size)):
        for k in range(U(0), width):
            at = width * U(columns[p]) + k
            if at >= begin and at < end:
                total = np.float32(0)
                for part in range(U(0), parts):
                    total += slots[part * stride + width * p + k]
                out[at] = total
