"""Counting ratings: by user and by item, their values, and which of them meet."""

from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, random_word, readonly, writable

CODES = readonly(types.uint32)
VALUES = readonly(types.float32)


@kernel(types.void(CODES, writable(types.uint64)))
def count_codes(codes: Any, counts: Any) -> None:
    """counts[c] += how often code c occurs."""
    for k in range(U(0), U(codes.size)):
        counts[U(codes[k])] += np.uint64(1)


@kernel(types.UniTuple(types.float64, 3)(VALUES))
def sum_and_range(values: Any) -> Any:
    """The sum, the least and the most of at least one value."""
    total = 0.0
    least = most = values[0]
    for k in range(U(0), U(values.size)):
        total += np.float64(values[k])
        least = min(least, values[k])
        most = max(most, values[k])
    return total, np.float64(least), np.float64(most)


@kernel(types.float64(VALUES, types.float64))
def squares_around(values: Any, mean: Any) -> Any:
    """The sum of (value - mean)^2."""
    total = 0.0
    for k in range(U(0), U(values.size)):
        away = np.float64(values[k]) - mean
        total += away * away
    return total


# `fast` would leave out the addition that makes 0 of -0
@kernel(
    types.uintp(VALUES, types.uintp, writable(types.float32), writable(types.uint64)), fast=False
)
def count_values(values: Any, most: Any, found: Any, counts: Any) -> Any:
    """Counts the different values; returns how many there are, or most + 1 where there are more.

    `found` and `counts` are a table with more than `most` places, in which a value stands where a
    hash of its bits points or in a place behind; a count of 0 is an empty place.
    """
    size = U(found.size)
    kinds = U(0)
    for k in range(U(0), U(values.size)):
        value = values[k] + np.float32(0.0)
        bits = np.uint64(np.float32(value).view(np.uint32))
        at = U(random_word(np.uint64(0), bits)) % size
        while counts[at] != np.uint64(0) and found[at] != value:
            at = at + U(1) if at + U(1) < size else U(0)
        if counts[at] == np.uint64(0):
            kinds += U(1)
            if kinds > most:
                break
            found[at] = value
        counts[at] += np.uint64(1)
    return kinds


@kernel(types.void(CODES, CODES, writable(types.uint64), writable(types.uint32)))
def group_by(codes: Any, others: Any, next_place: Any, grouped: Any) -> None:
    """Writes each rating's other code into the next place of its code's group."""
    for k in range(U(0), U(codes.size)):
        at = U(next_place[U(codes[k])])
        next_place[U(codes[k])] += np.uint64(1)
        grouped[at] = others[k]


@inline
def count_group(group: Any, begin: Any, end: Any, repeats: Any) -> Any:
    """Counts each code of a group; returns how many of them had come before."""
    again = np.uint64(0)
    for k in range(begin, end):
        code = U(group[k])
        again += np.uint64(repeats[code] != np.uint32(0))
        repeats[code] += np.uint32(1)
    return again


@kernel(
    types.UniTuple(types.uint64, 3)(
        readonly(types.uint64), CODES, readonly(types.uint64), writable(types.uint32)
    )
)
def count_meetings(ends: Any, grouped: Any, others: Any, repeats: Any) -> Any:
    """How many ratings repeat a pair, the most ratings that one meets, and the sum over all.

    A rating of user u and item i meets n_u + n_i - n_ui ratings, itself included. `grouped` has
    the items of each user's ratings, others[i] is n_i, and `repeats` are zeros, before and after.
    """
    again = most = total = np.uint64(0)
    begin = U(0)
    for user in range(U(0), U(ends.size)):
        end = U(ends[user])
        again += count_group(grouped, begin, end, repeats)
        for k in range(begin, end):
            item = U(grouped[k])
            met = np.uint64(end - begin) + others[item] - np.uint64(repeats[item])
            most = max(most, met)
            total += met
        for k in range(begin, end):
            repeats[U(grouped[k])] = np.uint32(0)
        begin = end
    return again, most, total
