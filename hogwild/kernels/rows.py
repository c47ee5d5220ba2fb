"""Sparse rows: the arithmetic of one of them, fetching them into the cache, and copies of some."""

import numpy as np
from numba.types import float32, uint32, uint64, uintp, void

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.dot import dots, dots_and_square
from hogwild.kernels.primitives import (
    LINE,
    U,
    ones_in,
    prefetch,
    readonly,
    trailing_zeros,
    writable,
)

AHEAD = U(8)  # rows that are fetched into the cache ahead of their use
WORD = U(64)  # columns to a word of bits
CHECKED = U(4096)  # columns that are marked between two looks at how many there are

BOUNDS = readonly(uint64)
ROWS = BOUNDS, BOUNDS, readonly(uint32), readonly(float32)  # begins, ends, columns, values


@inline
def dots_with(rows, row, weights):
    """The inner products of a row and of each of some weights, one for each column."""
    return dots(rows.columns, rows.values, U(rows.begins[row]), U(rows.ends[row]), weights)


@inline
def dot_with(rows, row, weights):
    """The inner product of a row and some weights."""
    return dots_with(rows, row, (weights,))[0]


@inline
def dot_and_square_with(rows, row, weights):
    """The inner product of a row and some weights, and the row's squared length."""
    begin, end = U(rows.begins[row]), U(rows.ends[row])
    return dots_and_square(rows.columns, rows.values, begin, end, (weights,))


@inline
def squared_length(rows, row):
    """The sum of a row's squared values."""
    total = np.float32(0)
    for k in range(U(rows.begins[row]), U(rows.ends[row])):
        total += rows.values[k] * rows.values[k]
    return total


@inline
def add_to_columns(rows, row, factor, weights):
    """weights <- weights + factor * row."""
    for k in range(U(rows.begins[row]), U(rows.ends[row])):
        weights[rows.columns[k]] += factor * rows.values[k]  # races where shared: may get lost


@inline
def fetch_row(columns, values, begin, lines):
    """Asks for a number of cache lines: those of a row, and maybe some of the next ones.

    As many for each row: where rows differ in length, the processor would mispredict the end of a
    loop that goes as far as the row.
    """
    for k in range(begin, begin + LINE * lines, LINE):
        prefetch(columns, k)
        prefetch(values, k)


@inline
def fetch_ahead(rows, order, i, fetching, targets):
    """Asks for the row that comes `fetching.ahead` places after order[i], and for later bounds.

    `targets` is how many numbers `rows.targets` has for each row.
    """
    last = U(order.size) - U(1)
    prefetch(rows.begins, U(order[min(i + U(2) * fetching.ahead, last)]))
    row = U(order[min(i + fetching.ahead, last)])
    prefetch(rows.targets, targets * row)
    fetch_row(rows.columns, rows.values, U(rows.begins[row]), fetching.lines)


@inline
def fetch_weights(rows, row, weights, width, first, end):
    """Asks for the numbers from `first` to `end` that are stored for each of a row's columns."""
    for k in range(U(rows.begins[row]), U(rows.ends[row])):
        for place in range(first, end, LINE):
            prefetch(weights, width * U(rows.columns[k]) + place)


@kernel(void(*ROWS, BOUNDS, BOUNDS, writable(uint32), writable(float32)))
def gather_rows(begins, ends, indices, values, chosen, out_indptr, out_indices, out_values):
    """Copies the chosen rows, one after the other; row i goes to where out_indptr[i] says."""
    last = U(chosen.size) - U(1)
    for i in range(U(0), U(chosen.size)):
        coming = U(chosen[min(i + AHEAD, last)])
        begin, end = U(begins[coming]), U(ends[coming])
        fetch_row(indices, values, begin, (end - begin) // LINE + U(1))
        begin, end = U(begins[U(chosen[i])]), U(ends[U(chosen[i])])
        place = U(out_indptr[i])
        for k in range(begin, end):
            out_indices[place + k - begin] = indices[k]
            out_values[place + k - begin] = values[k]


@kernel(uintp(readonly(uint32), writable(uint64), uintp))
def mark(indices, bits, most):
    """Sets the bits of the columns that occur; returns how many do.

    Bits are all zero before. It stops soon after there are more columns than `most`.
    """
    one, count = np.uint64(1), U(0)
    for begin in range(U(0), U(indices.size), CHECKED):
        for k in range(begin, min(begin + CHECKED, U(indices.size))):
            column = U(indices[k])
            old, bit = bits[column // WORD], one << np.uint64(column % WORD)
            bits[column // WORD] = old | bit
            count += U((old & bit) == np.uint64(0))
        if count > most:
            break
    return count


@kernel(void(readonly(uint64), writable(uint32), writable(uint32)))
def list_marked(bits, before, marked):
    """The columns whose bits are set; and for each word of bits, how many of them are before it."""
    count = U(0)
    for w in range(U(0), U(bits.size)):
        before[w] = count
        word = bits[w]
        while word != np.uint64(0):
            marked[count] = w * WORD + U(trailing_zeros(word))
            word &= word - np.uint64(1)
            count += U(1)


@kernel(void(readonly(uint32), readonly(uint64), readonly(uint32), writable(uint32)))
def renumber(indices, bits, before, places):
    """The places of columns among those whose bits are set; `before` is from `list_marked`."""
    one = np.uint64(1)
    for k in range(U(0), U(indices.size)):
        column = U(indices[k])
        lower = bits[column // WORD] & ((one << np.uint64(column % WORD)) - one)
        places[k] = before[column // WORD] + U(ones_in(lower))


@kernel(void(BOUNDS, BOUNDS, readonly(uint32), readonly(uint64), writable(uint64)))
def count_marked(begins, ends, indices, bits, counts):
    """How many values of each row are in columns whose bits are set."""
    for row in range(U(0), U(begins.size)):
        count = np.uint64(0)
        for k in range(U(begins[row]), U(ends[row])):
            column = U(indices[k])
            count += (bits[column // WORD] >> np.uint64(column % WORD)) & np.uint64(1)
        counts[row] = count


@kernel(
    void(*ROWS, readonly(uint64), readonly(uint32), BOUNDS, writable(uint32), writable(float32))
)
def take_marked(begins, ends, indices, values, bits, before, starts, out_places, out_values):
    """Copies these values of each row to where it starts, with their places for columns."""
    one = np.uint64(1)
    for row in range(U(0), U(begins.size)):
        at = U(starts[row])
        for k in range(U(begins[row]), U(ends[row])):
            column = U(indices[k])
            word, bit = bits[column // WORD], one << np.uint64(column % WORD)
            if word & bit:
                out_places[at] = before[column // WORD] + U(ones_in(word & (bit - one)))
                out_values[at] = values[k]
                at += U(1)
