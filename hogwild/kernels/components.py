"""Connected components of columns: two columns of the same row are connected."""

import numpy as np
from numba import types

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, readonly, writable

NUMBERS = writable(types.uint32)
BOUNDS = readonly(types.uint64)


@inline
def root_of(parents, column):
    """The column that represents a column's component; paths to it are halved."""
    while U(parents[column]) != column:
        parents[column] = parents[U(parents[column])]
        column = U(parents[column])
    return column


@kernel(types.void(BOUNDS, BOUNDS, readonly(types.uint32), NUMBERS, NUMBERS))
def connect(begins, ends, indices, parents, roots):
    """Joins the columns of each row; then roots[r] represents the component of row r.

    The smallest column represents a component; column 0, for rows without columns.
    """
    for column in range(U(0), U(parents.size)):
        parents[column] = column
    for row in range(U(0), U(roots.size)):
        begin, end = U(begins[row]), U(ends[row])
        for k in range(begin + U(1), end):
            one = root_of(parents, U(indices[begin]))
            other = root_of(parents, U(indices[k]))
            parents[max(one, other)] = min(one, other)
    for row in range(U(0), U(roots.size)):
        begin = U(begins[row])
        roots[row] = np.uint32(0)
        if begin < U(ends[row]):
            roots[row] = np.uint32(root_of(parents, U(indices[begin])))
