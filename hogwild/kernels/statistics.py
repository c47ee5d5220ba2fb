"""Counting: how many rows hold each column, and how many rows a row shares a column with."""

import numpy as np
from numba.types import float32, uint32, uint64, void

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, readonly, trailing_zeros, writable

INDPTR = readonly(uint64)
INDICES = readonly(uint32)


@kernel(void(INDPTR, INDICES, writable(uint32), writable(uint32)))
def count_holders(indptr, indices, last, holders):
    """holders[c] = rows that hold column c, however often. `last` and `holders` begin as zeros."""
    for row in range(U(0), U(indptr.size) - U(1)):
        this = np.uint32(row + U(1))
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            column = U(indices[k])
            holders[column] += np.uint32(last[column] != this)
            last[column] = this


@kernel(void(INDPTR, INDICES, readonly(float32), writable(float32)))
def sum_by_row(indptr, indices, of_column, sums):
    """sums[r] = the sum of of_column[c] over the entries of row r."""
    for row in range(U(0), U(sums.size)):
        total = np.float32(0)
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            total += of_column[U(indices[k])]
        sums[row] = total


@kernel(void(INDPTR, INDICES, readonly(uint64), writable(uint64)))
def count_collisions(indptr, indices, masks, counts):
    """counts[i] += the rows that hold a column with bit i in its mask."""
    for row in range(U(0), U(indptr.size) - U(1)):
        word = np.uint64(0)
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            word |= masks[U(indices[k])]
        while word != np.uint64(0):
            counts[U(trailing_zeros(word))] += np.uint64(1)
            word &= word - np.uint64(1)
