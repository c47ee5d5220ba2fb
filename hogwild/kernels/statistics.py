"""Counting: how many rows hold each column, and how many rows a row shares a column with."""

from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, ones_in, readonly, writable

# Rows whose collisions are looked up at once: a cache line has a bit for each of them.
GROUP = 512
WORDS = GROUP // 64
# After so many columns of a row it is asked whether any row of the group is left to be met.
STRETCH = 64

INDPTR = readonly(types.uint64)
INDICES = readonly(types.uint32)


@kernel(types.void(INDPTR, INDICES, writable(types.uint32), writable(types.uint32)))
def count_holders(indptr: Any, indices: Any, last: Any, holders: Any) -> None:
    """holders[c] = rows that hold column c, however often. `last` and `holders` begin as zeros."""
    for row in range(U(0), U(indptr.size) - U(1)):
        this = np.uint32(row + U(1))
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            column = U(indices[k])
            holders[column] += np.uint32(last[column] != this)
            last[column] = this


@kernel(types.void(INDPTR, INDICES, readonly(types.float32), writable(types.float32)))
def sum_by_row(indptr: Any, indices: Any, of_column: Any, sums: Any) -> None:
    """sums[r] = the sum of of_column[c] over the entries of row r."""
    for row in range(U(0), U(sums.size)):
        total = np.float32(0)
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            total += of_column[U(indices[k])]
        sums[row] = total


@inline
def mark_group(indptr: Any, indices: Any, begin: Any, end: Any, group: Any) -> Any:
    """Gives each column of rows begin..end a slot with a bit for every row that holds it.

    Slot 0 stays empty: it is that of all other columns. Returns how many slots there are, and how
    many rows are not empty.
    """
    slot_of, column_of, masks = group
    slots = U(1)
    not_empty = np.uint64(0)
    for row in range(begin, end):
        word = (row - begin) >> U(6)
        not_empty += np.uint64(indptr[row + U(1)] != indptr[row])
        bit = np.uint64(1) << np.uint64((row - begin) & U(63))
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            column = U(indices[k])
            slot = U(slot_of[column])
            if slot == U(0):
                slot = slots
                slots += U(1)
                slot_of[column] = np.uint32(slot)
                column_of[slot] = np.uint32(column)
                for w in range(U(0), U(WORDS)):
                    masks[slot * U(WORDS) + w] = np.uint64(0)
            masks[slot * U(WORDS) + word] |= bit
    return slots, not_empty


@inline
def count_marked(indices: Any, begin: Any, end: Any, group: Any, most: Any) -> Any:
    """How many rows of the group, `most` at most, hold one of the columns indices[begin..end]."""
    slot_of, _, masks = group
    # eight names and not an array: these stay in registers
    a = b = c = d = e = f = g = h = np.uint64(0)
    found = np.uint64(0)
    while begin < end and found < most:
        stop = min(begin + U(STRETCH), end)
        for k in range(begin, stop):
            at = U(slot_of[U(indices[k])]) * U(WORDS)
            a |= masks[at]
            b |= masks[at + U(1)]
            c |= masks[at + U(2)]
            d |= masks[at + U(3)]
            e |= masks[at + U(4)]
            f |= masks[at + U(5)]
            g |= masks[at + U(6)]
            h |= masks[at + U(7)]
        found = ones_in(a) + ones_in(b) + ones_in(c) + ones_in(d)
        found += ones_in(e) + ones_in(f) + ones_in(g) + ones_in(h)
        begin = stop
    return found


@kernel(
    types.void(
        INDPTR,
        INDICES,
        readonly(types.uint64),
        types.Tuple((writable(types.uint32), writable(types.uint32), writable(types.uint64))),
        writable(types.uint64),
    )
)
def count_collisions(indptr: Any, indices: Any, chosen: Any, group: Any, counts: Any) -> None:
    """counts[i] += the rows that share a column with row chosen[i]; itself, too, if not empty."""
    slot_of, column_of, _ = group
    rows = U(indptr.size) - U(1)
    for begin in range(U(0), rows, U(GROUP)):
        slots, most = mark_group(indptr, indices, begin, min(begin + U(GROUP), rows), group)
        for i in range(U(0), U(chosen.size)):
            row = U(chosen[i])
            begin_row, end_row = U(indptr[row]), U(indptr[row + U(1)])
            counts[i] += count_marked(indices, begin_row, end_row, group, most)
        for slot in range(U(1), slots):
            slot_of[column_of[slot]] = np.uint32(0)
