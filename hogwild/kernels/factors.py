"""Factorization: stochastic gradient descent over blocks of ratings, and their losses.

score = mean + b_u + b_i + <p_u, q_i>             g = slope(score, value)
p_u <- p_u - rate r_u (g q_i + l2 w_u p_u)        and the same with p and q, u and i exchanged
b_u <- b_u - rate share r_u (g + bias_l2 w_u b_u)
r_u <- r_u - growth g^2 r_u^3

r is the rate of a row and begins at 1. Each update is a step of the differential equation whose
solution is r = 1 / sqrt(1 + 2 growth * sum of g^2). This is AdaGrad's schedule (Duchi, Hazan,
Singer 2011) with one sum per row (as in LIBMF: Chin, Zhuang, Juan, Lin 2015), but needs no root and
no division. w is 1 where a row's penalty counts once per rating, else 1 / (number of its ratings).

A row of factors has `width` numbers; its bias and rate are in another array (`sides`). For blocks
see learn/blocks.py. A rating takes 8 bytes; its rows are counted from the first row of its block.
"""

from functools import cache

import numpy as np
from numba.types import Tuple, UniTuple, float32, float64, uint16, uint32, uint64, uintp, void

from hogwild.kernels.compile import Kernel, kernel
from hogwild.kernels.primitives import U, prefetch, random_share, random_word, readonly, writable
from hogwild.kernels.vectors import (
    LINE,
    alternate,
    greater,
    half,
    joined,
    lane,
    lesser,
    load,
    odd_lanes,
    spread,
    store,
    total,
)
from hogwild.learn.losses import FACTOR_LOSSES, rating_error

MOST_AT_ONCE = 128  # numbers of a row in registers at once
PART = 64  # numbers at once of a longer row
FETCHED = 2048  # numbers of each side's rows that are prefetched
HALF = np.float32(0.5)
ONE = np.float32(1)
ZERO = np.float32(0)

FLOATS = readonly(float32)
OUT = writable(float32)
RATINGS = Tuple(
    (
        readonly(uint16),  # four per rating: its user's row, its item's row, two of the value
        FLOATS,  # the same memory: the value is the second of two
        readonly(uint64),  # where each block begins, and the last ends
        readonly(uint32),  # the blocks to visit, in order
    )
)
# blocks for each strip of users, rows of a strip of users, rows of a strip of items
GRID = UniTuple(uintp, 3)
# users' factors and sides, items' factors and sides
FACTORS = UniTuple(OUT, 4)
# w of the users and of the items; empty where all are 1
SHARES = UniTuple(FLOATS, 2)
# mean, rate, rate of the biases over that of the factors, l2, bias_l2, growth, l1, least factor
PLAN = UniTuple(float32, 8)


def width_of(rank: int) -> int:
    """The numbers of a row: whole cache lines. Those beyond the rank stay 0."""
    unit = LINE if rank <= MOST_AT_ONCE else PART
    return -(-rank // unit) * unit


@cache
def learner(width: int, loss: str, weighted: bool, bounded: bool) -> Kernel:
    """A kernel that makes a step on each rating of some blocks: the sum of their losses, and 0.

    Args:
        width: numbers in a row of factors.
        loss: the name of the loss.
        weighted: whether all shares are 1.
        bounded: whether there is an L1 penalty or a least factor.
    """
    return _visitor(width, loss, weighted, bounded, True)


@cache
def evaluator(width: int, loss: str) -> Kernel:
    """A kernel that sums up the losses and the squared errors of the ratings of some blocks."""
    return _visitor(width, loss, True, False, False)


def _visitor(width: int, loss: str, weighted: bool, bounded: bool, learns: bool) -> Kernel:  # noqa: PLR0915
    at_once = width if width <= MOST_AT_ONCE else PART
    ahead = U(max(4, FETCHED // width))
    value_of, slope_of = FACTOR_LOSSES[loss].value, FACTOR_LOSSES[loss].slope
    is_logistic = loss == "logistic"

    def visit(ratings, grid, factors, shares, plan):  # noqa: PLR0915
        pairs, values, starts, blocks = ratings
        columns, user_height, item_height = grid
        users, user_sides, items, item_sides = factors
        user_shares, item_shares = shares
        mean, rate, bias_share, l2, bias_l2, growth, l1, least = plan
        bias_rate = rate * bias_share
        zeros = spread(ZERO, 4)
        bias_decay = spread(bias_rate * bias_l2, 4)
        losses, squares = 0.0, 0.0
        for block in blocks:
            first_user = U(block) // columns * user_height
            first_item = U(block) % columns * item_height
            begin, end = U(starts[U(block)]), U(starts[U(block) + U(1)])
            if begin == end:
                continue
            dot, next_dot = ZERO, ZERO
            # Dot products have a long latency: those of the next two ratings start before this
            # rating's update. That is a third faster, and a step seldom misses an update
            for k in range(begin, end + U(2)):
                coming = U(4) * (k + ahead)
                user = U(width) * (first_user + U(pairs[coming]))
                item = U(width) * (first_item + U(pairs[coming + U(1)]))
                for line in range(U(0), U(width), U(LINE)):
                    prefetch(users, user + line)
                    prefetch(items, item + line)

                coming = U(4) * k
                user = U(width) * (first_user + U(pairs[coming]))
                item = U(width) * (first_item + U(pairs[coming + U(1)]))
                this_dot, dot, next_dot = dot, next_dot, ZERO
                for part in range(U(0), U(width), U(at_once)):
                    next_dot += total(
                        load(users, user + part, at_once) * load(items, item + part, at_once)
                    )
                if k < begin + U(2):
                    continue

                this = U(4) * (k - U(2))
                user = first_user + U(pairs[this])
                item = first_item + U(pairs[this + U(1)])
                value = values[this // U(2) + U(1)]
                score = this_dot + (user_sides[U(2) * user] + item_sides[U(2) * item] + mean)
                losses += value_of(score, value, 0.0)
                if not learns:
                    error = rating_error(is_logistic, score, value)
                    squares += error * error
                    continue
                # The four numbers are: bias and rate of the user, bias and rate of the item
                side = joined(load(user_sides, U(2) * user, 2), load(item_sides, U(2) * item, 2))
                slope = np.float32(slope_of(score, value, 0.0))
                rates = odd_lanes(side)
                slower = min(growth * slope * slope, HALF)
                if weighted:
                    decay = bias_decay
                    keep = ONE - (rate * l2) * rates
                else:
                    counted = joined(spread(user_shares[user], 2), spread(item_shares[item], 2))
                    decay = bias_decay * counted
                    keep = ONE - (rate * l2) * (rates * counted)
                go = rates * (rate * slope)
                steps = alternate(spread(bias_rate * slope, 4), zeros)
                side = side - rates * (steps + alternate(decay, slower * rates) * side)
                for part in range(U(0), U(width), U(at_once)):
                    p_place, q_place = U(width) * user + part, U(width) * item + part
                    p, q = load(users, p_place, at_once), load(items, q_place, at_once)
                    new_p = lane(keep, 0) * p - lane(go, 0) * q
                    new_q = lane(keep, 2) * q - lane(go, 2) * p
                    if bounded:
                        shrink = (rate * l1) * rates
                        if not weighted:
                            shrink = shrink * counted
                        t, s = lane(shrink, 0), lane(shrink, 2)
                        new_p = greater(new_p - lesser(greater(new_p, -t), t), least)
                        new_q = greater(new_q - lesser(greater(new_q, -s), s), least)
                    store(users, p_place, new_p)
                    store(items, q_place, new_q)
                store(user_sides, U(2) * user, half(side, 0))
                store(item_sides, U(2) * item, half(side, 1))
        return losses, squares

    sums = UniTuple(float64, 2)
    name = "learn-ratings" if learns else "evaluate-ratings"
    return Kernel(visit, sums(RATINGS, GRID, FACTORS, SHARES, PLAN), name=name)


@kernel(void(OUT, UniTuple(uintp, 2), UniTuple(float32, 2), uint64, readonly(uint32), uintp, uintp))
def initialise(factors, shape, limits, seed, rows, begin, end):
    """Draws the factors of the ids begin, ..., end - 1, uniformly between two limits.

    They depend only on the seed and the id. `shape` is the width of a row and its rank.
    """
    width, rank = shape
    least, greatest = limits
    for id in range(begin, end):
        key = random_word(seed, id)
        first = U(width) * U(rows[id])
        for place in range(U(0), rank):
            share = np.float32(random_share(random_word(key, place)))
            factors[first + place] = least + (greatest - least) * share


@kernel(UniTuple(float64, 2)(FLOATS, uintp, FLOATS))
def weighted_norms(factors, width, weights):
    """Sums over the rows of a row's weight times its squared length, and times its L1 norm."""
    squares, sizes = 0.0, 0.0
    for row in range(U(0), U(weights.size)):
        square, size = ZERO, ZERO
        for place in range(U(width) * row, U(width) * (row + U(1))):
            square += factors[place] * factors[place]
            size += abs(factors[place])
        squares += np.float64(square) * np.float64(weights[row])
        sizes += np.float64(size) * np.float64(weights[row])
    return squares, sizes
