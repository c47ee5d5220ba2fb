"""Sums over a user's ratings, and the least point of a quadratic function with an L1 penalty.

min over x of x'Hx/2 - g'x + sum_j l1_j |x_j|

The sums are small. On busy cores the threads of a library for large ones would wait for each other,
ten times as long as the work takes.
"""

from typing import Any

from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, readonly, writable

FLOATS = readonly(types.float64)
OUT = writable(types.float64)


@kernel(types.void(FLOATS, FLOATS, OUT))
def add_products(A: Any, weights: Any, H: Any) -> None:
    """Adds A'WA to H, where W has the weights of A's rows on its diagonal."""
    n = U(A.size) // max(U(weights.size), U(1))
    for row in range(U(0), U(weights.size)):
        for j in range(U(0), n):
            weighted = weights[row] * A[row * n + j]
            for k in range(U(0), n):
                H[j * n + k] += weighted * A[row * n + k]


@kernel(types.void(FLOATS, FLOATS, FLOATS, types.float64, types.uint64, OUT))
def descend(H: Any, g: Any, l1: Any, tolerance: Any, sweeps: Any, x: Any) -> None:
    """Minimises over one x_j after the other, until none of them moves by more than a tolerance."""
    n = U(x.size)
    for _ in range(sweeps):
        largest, moved = 0.0, 0.0
        for j in range(U(0), n):
            steepness = H[j * n + j]
            if steepness <= 0.0:
                continue
            pull = g[j] + steepness * x[j]
            for k in range(U(0), n):
                pull -= H[j * n + k] * x[k]
            shrunk = max(abs(pull) - l1[j], 0.0) / steepness
            new = shrunk if pull > 0.0 else -shrunk
            moved = max(moved, abs(new - x[j]))
            largest = max(largest, abs(new))
            x[j] = new
        if moved <= tolerance * largest:
            return
