"""Sparse rows, copied, and renumbered to the columns that occur."""

from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import (
    U,
    fetch_stretch,
    ones_in,
    readonly,
    trailing_zeros,
    writable,
)

AHEAD = U(8)  # rows, that are fetched into the cache
WORD = U(64)  # columns to a word of bits


@kernel(
    types.void(
        readonly(types.uint64),
        readonly(types.uint32),
        readonly(types.float32),
        readonly(types.uint64),
        readonly(types.uint64),
        writable(types.uint32),
        writable(types.float32),
    )
)
def gather_rows(
    indptr: Any,
    indices: Any,
    values: Any,
    chosen: Any,
    out_indptr: Any,
    out_indices: Any,
    out_values: Any,
) -> None:
    """Copies the chosen rows, one after the other; row i goes to where out_indptr[i] says."""
    last = U(chosen.size) - U(1)
    for i in range(U(0), U(chosen.size)):
        coming = U(chosen[min(i + AHEAD, last)])
        fetch_stretch(indices, values, U(indptr[coming]), U(indptr[coming + U(1)]), U(0))
        begin, end = U(indptr[U(chosen[i])]), U(indptr[U(chosen[i]) + U(1)])
        place = U(out_indptr[i])
        for k in range(begin, end):
            out_indices[place + k - begin] = indices[k]
            out_values[place + k - begin] = values[k]


@kernel(
    types.uintp(
        writable(types.uint32),
        writable(types.uint64),
        writable(types.uint32),
        writable(types.uint32),
    )
)
def renumber(indices: Any, bits: Any, before: Any, used: Any) -> Any:
    """Replaces columns by their places among those that occur, in order; returns how many do.

    Args:
        bits: a bit for each column, all zero.
        before: for each word of bits, room for how many columns occur before it.
        used: room for the columns that occur.
    """
    one = np.uint64(1)
    for k in range(U(0), U(indices.size)):
        column = U(indices[k])
        bits[column // WORD] |= one << np.uint64(column % WORD)
    count = U(0)
    for w in range(U(0), U(bits.size)):
        before[w] = count
        word = bits[w]
        while word != np.uint64(0):
            used[count] = w * WORD + U(trailing_zeros(word))
            word &= word - one
            count += U(1)
    for k in range(U(0), U(indices.size)):
        column = U(indices[k])
        w = column // WORD
        lower = bits[w] & ((one << np.uint64(column % WORD)) - one)
        indices[k] = before[w] + U(ones_in(lower))
    return count
