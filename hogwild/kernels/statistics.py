"""Counting: how many rows hold each column, and how many rows a row shares a column with."""

import numpy as np
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, readonly, trailing_zeros, writable

INDPTR = readonly(types.uint64)
INDICES = readonly(types.uint32)


@kernel(types.void(INDPTR, INDICES, writable(types.uint32), writable(types.uint32)))
def count_holders(indptr, indices, last, holders):
    """holders[c] = rows that hold column c, however often. `last` and `holders` begin as zeros."""
    for row in range(U(0), U(indptr.size) - U(1)):
        this = np.uint32(row + U(1))
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            column = U(indices[k])
            holders[column] += np.uint32(last[column] != this)
            last[column] = this


@kernel(types.void(INDPTR, INDICES, readonly(types.float32), writable(types.float32)))
def sum_by_row(indptr, indices, of_column, sums):
    """sums[r] = the sum of of_column[c] over the entries of row r."""
    for row in range(U(0), U(sums.size)):
        total = np.float32(0)
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            total += of_column[U(indices[k])]
        sums[row] = total


@kernel(types.void(INDPTR, INDICES, readonly(types.uint64), writable(types.uint64)))
def count_collisions(indptr, indices, masks, counts):
    """counts[i] += the rows that hold a column with bit i in its mask."""
    for row in range(U(0), U(indptr.size) - U(1)):
        word = np.uint64(0)
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            word |= masks[U(indices[k])]
        while word != np.uint64(0):
            counts[U(trailing_zeros(word))] += np.uint64(1)
            word &= word - np.uint64(1)
