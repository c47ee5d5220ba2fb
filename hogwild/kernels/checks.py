"""One pass over data that came from outside, before any kernel trusts it."""

from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, readonly

BLOCK = 4096


@kernel(types.uintp(readonly(types.uint32), types.uint64))
def first_bad_index(indices: Any, columns: Any) -> Any:
    """Where the first index >= columns stands, or the array's length."""
    size = U(indices.size)
    for begin in range(U(0), size, U(BLOCK)):
        end = min(begin + U(BLOCK), size)
        largest = np.uint32(0)
        for k in range(begin, end):
            largest = max(largest, indices[k])
        if largest >= columns:
            for k in range(begin, end):
                if indices[k] >= columns:
                    return k
    return size


@kernel(types.uintp(readonly(types.float32)))
def first_bad_value(values: Any) -> Any:
    """Where the first NaN or infinity stands, or the array's length."""
    size = U(values.size)
    for begin in range(U(0), size, U(BLOCK)):
        end = min(begin + U(BLOCK), size)
        # x * 0 is 0 for a finite x and NaN otherwise, and NaN survives the sum
        zero = np.float32(0)
        for k in range(begin, end):
            zero += values[k] * np.float32(0)
        if zero != np.float32(0):
            for k in range(begin, end):
                if not np.isfinite(values[k]):
                    return k
    return size
