"""One pass over data that came from outside, before any kernel trusts it."""

import numpy as np
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, readonly, writable

BLOCK = 4096
LANES = 64  # words whose fingerprints are made side by side; a divisor of BLOCK
FACTOR = np.uint32(0x9E3779B1)  # odd, so a word that differs makes a lane differ


@kernel(types.uintp(readonly(types.uint32), types.uint32, types.uint64, writable(types.uint32)))
def survey(words, mask, limit, lanes):
    """Where the first word stands that is >= limit behind the mask, or the array's length.

    The words are dealt out to the lanes in turn. Each lane becomes a polynomial in its words:
    together, a fingerprint of all of them.
    """
    size = U(words.size)
    whole = size // U(LANES) * U(LANES)
    bad = size
    for begin in range(U(0), whole, U(BLOCK)):
        end = min(begin + U(BLOCK), whole)
        largest = np.uint32(0)
        for first in range(begin, end, U(LANES)):
            for lane in range(U(0), U(LANES)):
                word = words[first + lane]
                largest = max(largest, word & mask)
                lanes[lane] = lanes[lane] * FACTOR + word
        if largest >= limit and bad == size:
            for k in range(begin, end):
                if words[k] & mask >= limit:
                    bad = min(bad, U(k))
    for k in range(whole, size):
        lanes[k - whole] = lanes[k - whole] * FACTOR + words[k]
        if words[k] & mask >= limit:
            bad = min(bad, U(k))
    return bad


@kernel(types.uintp(readonly(types.float32)))
def first_bad_value(values):
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
