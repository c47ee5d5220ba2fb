"""Blocks of rows as a `.rows` file has them: packed, and opened into arrays for other kernels.

A block has the lengths of its rows (uint32), then their columns, then their values (float32) unless
all are 1. Each of the three begins on a cache line of the file. Columns take two bytes (uint16),
three (uint16, and behind them the upper bytes) or four (uint32), the same number in a block.

Even in a damaged file, nothing is read beyond the end and no column is too large for the weights.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, readonly, scramble, writable
from hogwild.kernels.views import FloatsRead, Order, Places, type_of

LINE = U(64)  # bytes
LANES = 64  # words whose sums are made side by side
FACTOR = np.uint32(0x9E3779B1)  # odd, so that a word that differs makes a lane differ
# The kind of a block: bytes per column, whether all values are 1, and whether its columns count
# from 1 in a file whose columns count from 0
WIDTH, ONES, SHIFTED = np.uint8(7), np.uint8(8), np.uint8(16)

Bytes = Annotated[npt.NDArray[np.uint8], readonly(types.uint8)]
Halves = Annotated[npt.NDArray[np.uint16], readonly(types.uint16)]


class Blocks(NamedTuple):
    """A file: all its bytes in four types, and for each block where it begins in bytes and in
    non-zeros (and the last ends), its checksum and its kind; rows, rows of a block, columns."""

    bytes: Bytes
    halves: Halves
    words: Order
    floats: FloatsRead
    offsets: Places
    firsts: Places
    checks: Places
    kinds: Bytes
    rows: int
    each: int
    columns: int


@inline
def lined(size):
    """A number of bytes, rounded up to whole cache lines."""
    return (size + LINE - U(1)) // LINE * LINE


@inline
def check_of(words, begin, end, lanes):
    """The checksum of some words: 64 polynomials, put together. One changed word changes it."""
    size = end - begin
    whole = begin + size // U(LANES) * U(LANES)
    for lane in range(U(0), U(LANES)):
        lanes[lane] = np.uint32(lane + U(1))
    for first in range(begin, whole, U(LANES)):
        for lane in range(U(0), U(LANES)):
            lanes[lane] = lanes[lane] * FACTOR + words[first + lane]
    for k in range(whole, end):
        lanes[k - whole] = lanes[k - whole] * FACTOR + words[k]
    found = np.uint64(size)
    for lane in range(U(0), U(LANES)):
        found = scramble(found ^ np.uint64(lanes[lane]))
    return found


@kernel(types.uint64(readonly(types.uint32), writable(types.uint32)))
def checksum(words, lanes):
    """The checksum of all words; `lanes` is scratch."""
    return check_of(words, U(0), U(words.size), lanes)


_CSR = readonly(types.uint64), readonly(types.uint32), readonly(types.float32)
_OUT = tuple(writable(kind) for kind in (types.uint16, types.uint32, types.float32, types.uint8))


@kernel(
    types.void(
        types.Tuple(_CSR),
        types.uintp,
        types.uintp,
        readonly(types.uint64),
        readonly(types.uint8),
        types.Tuple(_OUT),
        writable(types.uint64),
        writable(types.uint32),
    )
)
def pack_blocks(rows, first, each, offsets, kinds, out, checks, lanes):
    """Writes blocks of `each` rows, from row `first` on, to where they begin in the zeroed `out`.

    `out` is the same memory in four types. Their checksums go to `checks`.
    """
    indptr, columns, values = rows
    halves, words, floats, small = out
    last = U(indptr.size) - U(1)
    for block in range(U(0), U(kinds.size)):
        begin, end = first + block * each, min(first + (block + U(1)) * each, last)
        at, width = U(offsets[block]), kinds[block] & WIDTH
        for row in range(begin, end):
            words[at // U(4) + row - begin] = np.uint32(indptr[row + U(1)] - indptr[row])
        at += lined(U(4) * (end - begin))
        start, stop = U(indptr[begin]), U(indptr[end])
        if width == np.uint8(4):
            for k in range(start, stop):
                words[at // U(4) + k - start] = columns[k]
        else:
            upper = at + U(2) * (stop - start)
            for k in range(start, stop):
                halves[at // U(2) + k - start] = np.uint16(columns[k])
            if width == np.uint8(3):
                for k in range(start, stop):
                    small[upper + k - start] = np.uint8(columns[k] >> np.uint32(16))
        at += lined(U(width) * (stop - start))
        if kinds[block] & ONES == np.uint8(0):
            for k in range(start, stop):
                floats[at // U(4) + k - start] = values[k]
        checks[block] = check_of(
            words, U(offsets[block]) // U(4), U(offsets[block + U(1)]) // U(4), lanes
        )


@inline
def open_columns(file, at, size, kind, columns, place):
    """Writes a block's columns from `place` on; the largest of them."""
    largest, shift = np.uint32(0), np.uint32(kind & SHIFTED != np.uint8(0))
    width = kind & WIDTH
    if width == np.uint8(2):
        for k in range(U(0), size):
            column = np.uint32(file.halves[at // U(2) + k]) + shift
            columns[place + k] = column
            largest = max(largest, column)
    elif width == np.uint8(3):
        upper = at + U(2) * size
        for k in range(U(0), size):
            high = np.uint32(file.bytes[upper + k]) << np.uint32(16)
            column = (np.uint32(file.halves[at // U(2) + k]) | high) + shift
            columns[place + k] = column
            largest = max(largest, column)
    else:
        for k in range(U(0), size):
            column = file.words[at // U(4) + k] + shift
            columns[place + k] = column
            largest = max(largest, column)
    return largest


@kernel(
    types.uintp(
        type_of(Blocks),
        readonly(types.uint64),
        readonly(types.uint64),
        writable(types.uint8),
        writable(types.uint32),
        writable(types.uint64),
        writable(types.uint64),
        writable(types.uint32),
        writable(types.float32),
    )
)
def open_blocks(file, chosen, places, known, lanes, begins, ends, columns, values):
    """Writes the rows of the chosen blocks; of each block, the first non-zero to its place.

    Where rows begin and end is written by the rows' numbers in the file. A block is checked unless
    it is `known`. Returns how many blocks are sound before the first damaged one.
    """
    for i in range(U(0), U(chosen.size)):
        block, place = U(chosen[i]), U(places[i])
        kind, at, end = file.kinds[block], U(file.offsets[block]), U(file.offsets[block + U(1)])
        is_new = known[block] == np.uint8(0)
        if is_new and check_of(file.words, at // U(4), end // U(4), lanes) != file.checks[block]:
            return i
        first = block * file.each
        count = min(file.each, file.rows - first)
        size, stop = U(file.firsts[block + U(1)] - file.firsts[block]), place
        for row in range(U(0), count):
            begins[first + row] = stop
            stop += U(file.words[at // U(4) + row])
            ends[first + row] = stop
        if stop - place != size:
            return i
        at += lined(U(4) * count)
        largest = open_columns(file, at, size, kind, columns, place)
        if size > U(0) and U(largest) >= file.columns:
            return i
        at += lined(U(kind & WIDTH) * size)
        if kind & ONES != np.uint8(0):
            for k in range(place, place + size):
                values[k] = np.float32(1)
        else:
            zero = np.float32(0)  # x * 0 is 0 for a finite x and NaN otherwise
            for k in range(U(0), size):
                value = file.floats[at // U(4) + k]
                values[place + k] = value
                zero += value * np.float32(0)
            if zero != np.float32(0):
                return i
        known[block] = np.uint8(1)
    return U(chosen.size)


def block_bytes(rows: Any, nonzeros: Any, kinds: Any) -> Any:
    """The size of blocks in the file, by their rows, non-zeros and kinds: arrays of int64."""
    widths, has_values = kinds & WIDTH, (kinds & ONES) == 0
    sections = 4 * rows, widths * nonzeros, 4 * nonzeros * has_values
    return sum(-(-size // int(LINE)) * int(LINE) for size in sections)
