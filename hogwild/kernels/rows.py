"""Sparse rows, copied."""

from typing import Any

from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, fetch_stretch, readonly, writable

AHEAD = U(8)  # rows, that are fetched into the cache


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
