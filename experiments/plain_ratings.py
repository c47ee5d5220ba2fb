"""A plain pass over ratings, which the speed of factorization is measured beside.

It asks the same of a machine: reading all ratings, and arithmetic on rows of factors in a cache.
"""

from typing import Any

import numpy as np
from numba import types

from experiments.measure import timed
from hogwild import Ratings
from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, readonly

BAND = U(512)  # rows of factors on either side; those of rank 128 fit into a core's own cache
CODES, FLOATS = readonly(types.uint32), readonly(types.float32)


@kernel(types.float64(CODES, CODES, FLOATS, FLOATS, FLOATS, types.uintp))
def squared_errors(users: Any, items: Any, values: Any, p: Any, q: Any, rank: Any) -> Any:
    """The sum of (value - <p, q>)^2 over all ratings, one after another."""
    total = 0.0
    for i in range(U(0), U(users.size)):
        user, item = (U(users[i]) % BAND) * rank, (U(items[i]) % BAND) * rank
        product = np.float32(0.0)
        for k in range(U(0), rank):
            product += p[user + k] * q[item + k]
        error = values[i] - product
        total += np.float64(error * error)
    return total


def pass_seconds(ratings: Ratings, rank: int) -> float:
    """Seconds of one core to read all ratings, with a product of two rows of factors for each."""
    factors = np.full(int(BAND) * rank, 0.1, np.float32)
    factors.flags.writeable = False
    given = ratings.users, ratings.items, ratings.values, factors, factors, np.uintp(rank)
    squared_errors.compiled  # noqa: B018
    return timed(lambda: squared_errors(*given))
