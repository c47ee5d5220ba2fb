"""Passes over all ratings: grouped by user or by item, pairs that repeat, a share held out."""

import numpy as np
from numba.types import UniTuple, boolean, float32, float64, uint32, uint64, void

from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, random_word, readonly, writable

CODES = readonly(uint32)
NUMBERS = writable(uint32)


@kernel(void(CODES, writable(uint64)), fast=False)
def count_codes(codes, starts):
    """Where each code's entries begin if they are put in order; `starts` has one place more."""
    for k in range(U(0), U(codes.size)):
        starts[U(codes[k]) + U(1)] += np.uint64(1)
    for code in range(U(1), U(starts.size)):
        starts[code] += starts[code - U(1)]


@kernel(void(CODES, CODES, writable(uint64), NUMBERS), fast=False)
def group_by(codes, others, starts, grouped):
    """What stands beside each code, code by code, each code's in their order.

    `starts` is where each code's entries begin, and then where they end.
    """
    for k in range(U(0), U(codes.size)):
        code = U(codes[k])
        grouped[starts[code]] = others[k]
        starts[code] += np.uint64(1)


@kernel(uint64(CODES, CODES, CODES, NUMBERS, NUMBERS, NUMBERS), fast=False)
def first_of_pairs(order, users, items, seen_by, seen_at, first):
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


@kernel(UniTuple(uint64, 3)(readonly(uint64), CODES, readonly(uint64), writable(uint32)))
def count_overlaps(ends, grouped, others, repeats):
    """How many ratings repeat a pair, the most ratings that overlap with one, and the sum over all.

    A rating of user u and item i overlaps with n_u + n_i - n_ui ratings, itself included. `grouped`
    has the items of each user's ratings, others[i] is n_i, `repeats` are zeros, before and after.
    """
    again = most = total = np.uint64(0)
    begin = U(0)
    for user in range(U(0), U(ends.size)):
        end = U(ends[user])
        for k in range(begin, end):
            item = U(grouped[k])
            again += np.uint64(repeats[item] != np.uint32(0))
            repeats[item] += np.uint32(1)
        for k in range(begin, end):
            item = U(grouped[k])
            overlap = np.uint64(end - begin) + others[item] - np.uint64(repeats[item])
            most = max(most, overlap)
            total += overlap
        for k in range(begin, end):
            repeats[U(grouped[k])] = np.uint32(0)
        begin = end
    return again, most, total


@kernel(UniTuple(float64, 2)(readonly(float32), float64))
def sum_and_squares(values, centre):
    """The sum of the values, and that of their squared distances from a number."""
    total, squares = 0.0, 0.0
    for k in range(U(0), U(values.size)):
        value = np.float64(values[k])
        total += value
        squares += (value - centre) ** 2
    return total, squares


@kernel(void(uint64, uint64, writable(boolean)), fast=False)
def draw_share(seed, below, drawn):
    """Marks the places whose random words are below a limit."""
    for k in range(U(0), U(drawn.size)):
        drawn[k] = random_word(seed, k + U(1)) < below  # the word of 0 and 0 is 0
