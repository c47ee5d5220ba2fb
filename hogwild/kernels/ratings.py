"""Passes over all ratings: the same pair more than once, and a share that is held out."""

from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, random_word, readonly, writable

BLOCK = U(256)  # values whose sums single precision bears


@kernel(types.void(readonly(types.uint32), writable(types.uint64)), fast=False)
def count_codes(codes: Any, starts: Any) -> None:
    """Where each code's entries begin if they are put in order; `starts` has one place more."""
    for k in range(U(0), U(codes.size)):
        starts[U(codes[k]) + U(1)] += np.uint64(1)
    for code in range(U(1), U(starts.size)):
        starts[code] += starts[code - U(1)]


@kernel(
    types.void(readonly(types.uint32), writable(types.uint64), writable(types.uint32)), fast=False
)
def order_by_code(codes: Any, starts: Any, order: Any) -> None:
    """The places of the entries, code by code, each code's in their order; `starts` is used up."""
    for k in range(U(0), U(codes.size)):
        code = U(codes[k])
        order[starts[code]] = np.uint32(k)
        starts[code] += np.uint64(1)


@kernel(
    types.uint64(
        readonly(types.uint32),
        readonly(types.uint32),
        readonly(types.uint32),
        writable(types.uint32),
        writable(types.uint32),
        writable(types.uint32),
    ),
    fast=False,
)
def first_of_pairs(
    order: Any, users: Any, items: Any, seen_by: Any, seen_at: Any, first: Any
) -> Any:
    """Where each rating's pair occurs for the first time, by ratings in order of their users.

    `seen_by` holds an item's last user plus one, `seen_at` where that pair came first. Returns how
    many ratings repeat a pair.
    """
    repeated = np.uint64(0)
    for k in range(U(0), U(order.size)):
        place = U(order[k])
        item = U(items[place])
        user = users[place] + np.uint32(1)
        if seen_by[item] == user:
            repeated += np.uint64(1)
        else:
            seen_by[item] = user
            seen_at[item] = order[k]
        first[place] = seen_at[item]
    return repeated


@kernel(types.UniTuple(types.float64, 2)(readonly(types.float32), types.float32))
def distances(values: Any, centre: Any) -> Any:
    """The sum of the values' distances from a number, and that of their squares."""
    total, squares = 0.0, 0.0
    for begin in range(U(0), U(values.size), BLOCK):
        some, some_squares = np.float32(0), np.float32(0)
        for k in range(begin, min(begin + BLOCK, U(values.size))):
            distance = values[k] - centre
            some += distance
            some_squares += distance * distance
        total += np.float64(some)
        squares += np.float64(some_squares)
    return total, squares


@kernel(types.void(types.uint64, types.uint64, writable(types.boolean)), fast=False)
def draw_share(seed: Any, below: Any, drawn: Any) -> None:
    """Marks the places whose random words are below a limit."""
    for k in range(U(0), U(drawn.size)):
        drawn[k] = random_word(seed, k + U(1)) < below  # the word of 0 and 0 is 0
