"""Dual variables of rows: the sums that a proof needs, and the weights that they stand for.

See `steps/dual.py` for what is kept of a row.
"""

from functools import cache

import numpy as np
from numba import types

from hogwild.kernels.compile import Kernel, kernel
from hogwild.kernels.evaluate import errors_of
from hogwild.kernels.order import CHUNK, shuffle_part, shuffle_rows
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.kernels.rows import dots_with, squared_length
from hogwild.kernels.targets import target_of
from hogwild.kernels.views import DOUBLES, FLOAT, FLOATS, RowView, Span, type_of
from hogwild.learn.duals import DUALS
from hogwild.learn.losses import LOSSES
from hogwild.steps.dual import PULL, STATE, A, Q

READ = readonly(types.float32)
ROWS, SPAN = type_of(RowView), type_of(Span)
WINDOW = U(4096)  # places of an order that are shuffled among each other when it is repeated


@cache
def scorer(points: int) -> Kernel:
    """The kernel (rows, span, weights, out): products of rows with some weights, intercepts apart.

    `out` has those of all rows with the first weights, then those with the second, ...
    """

    def score(rows, span, weights, out):
        size = U(rows.begins.size)
        for row in range(span.begin, span.end):
            found = dots_with(rows, row, weights)
            for n in range(points):
                out[U(n) * size + row] = found[n]

    signature = types.void(ROWS, SPAN, types.UniTuple(READ, points), FLOATS)
    return Kernel(score, signature, name=f"score-{points}")


@cache
def primal(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, scale, bias, parameter) -> weighted sums over rows.

    The sums are those of the losses at scale * score + bias, of their slopes, and of slope * score.
    """
    (value, slope_of), target_and_weight = LOSSES[loss].of_heads, target_of(weighted)

    def sums(rows, span, scores, scale, bias, parameter):
        total, slopes, products = 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            dot = np.float64(scores[row])
            score = scale * dot + bias
            slope = weight * slope_of(score, target, parameter)
            total += weight * value(score, target, parameter)
            slopes += slope
            products += slope * dot
        return total, slopes, products

    signature = types.UniTuple(FLOAT, 3)(ROWS, SPAN, READ, FLOAT, FLOAT, FLOAT)
    return Kernel(sums, signature, name=f"primal-{loss}{'-weighted' * weighted}")


@cache
def errors(kind: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, scale, bias) -> the sums of the two errors of rows."""
    target_and_weight, errors_at = target_of(weighted), errors_of(kind)

    def sums(rows, span, scores, scale, bias):
        first, second = 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            one, other = errors_at(scale * np.float64(scores[row]) + bias, target)
            first += weight * one
            second += weight * other
        return first, second

    signature = types.UniTuple(FLOAT, 2)(ROWS, SPAN, READ, FLOAT, FLOAT)
    return Kernel(sums, signature, name=f"errors-{kind}{'-weighted' * weighted}")


@cache
def dual_value(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, state, parameter) -> the sum of e(a) over rows, by their weights."""
    value, target_and_weight = DUALS[loss].value, target_of(weighted)

    def total(rows, span, state, parameter):
        found = 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            found += weight * value(np.float64(state[U(STATE) * row + A]), target, parameter)
        return found

    signature = FLOAT(ROWS, SPAN, READ, FLOAT)
    return Kernel(total, signature, name=f"dual-value-{loss}{'-weighted' * weighted}")


@kernel(FLOAT(ROWS))
def longest(rows):
    """The largest squared length of a row."""
    found = np.float32(0.0)
    for row in range(U(0), U(rows.begins.size)):
        found = max(found, squared_length(rows, row))
    return np.float64(found)


@cache
def standing(weighted: bool) -> Kernel:
    """The kernel (rows, span, state) -> what a pass came to.

    The sum of a, the largest distance of a row from its optimum, and the rows not put aside.
    """
    target_and_weight = target_of(weighted)

    def found(rows, span, state):
        balance, largest, active = 0.0, np.float32(0.0), U(0)
        for row in range(span.begin, span.end):
            place = U(STATE) * row
            _, weight = target_and_weight(rows, row)
            balance += weight * np.float64(state[place + A])
            here = state[place + Q] >= np.float32(0.0)
            active += U(here)
            pull = state[place + PULL] if here else np.float32(0.0)
            largest = max(largest, pull)
        return balance, np.float64(largest), np.float64(active)

    signature = types.UniTuple(FLOAT, 3)(ROWS, SPAN, READ)
    return Kernel(found, signature, name="standing" + "-weighted" * weighted)


@cache
def collector(weighted: bool) -> Kernel:
    """The kernel (rows, span, state, c, out) that adds c * weight * a * row for rows to `out`."""
    target_and_weight = target_of(weighted)

    def collect(rows, span, state, c, out):
        for row in range(span.begin, span.end):
            _, weight = target_and_weight(rows, row)
            factor = c * weight * np.float64(state[U(STATE) * row + A])
            if factor != 0.0:
                for k in range(U(rows.begins[row]), U(rows.ends[row])):
                    out[U(rows.columns[k])] += factor * np.float64(rows.values[k])

    signature = types.void(ROWS, SPAN, READ, FLOAT, DOUBLES)
    return Kernel(collect, signature, name="collect" + "-weighted" * weighted)


@cache
def room(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, state, parameter, share, all) -> how far dual variables can move.

    The kernel moves each variable by a share of its room, upwards if the share is positive. With
    `all`, the room is the distance to the bound on that side. Otherwise, it is the distance to the
    nearer bound, so variables at a bound stay there. Returns the room upwards, and downwards.
    """
    bounds, target_and_weight = DUALS[loss].bounds, target_of(weighted)

    def move(rows, span, state, parameter, share, everything):
        up, down = 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            a = np.float64(state[U(STATE) * row + A])
            least, most = bounds(target, parameter)
            above, below = min(most - a, 1.0), min(a - least, 1.0)
            if everything == 0.0:
                above = below = min(above, below)
            up += weight * above
            down += weight * below
            moved = a + share * (above if share > 0.0 else below)
            state[U(STATE) * row + A] = np.float32(min(most, max(least, moved)))
        return up, down

    signature = types.UniTuple(FLOAT, 2)(ROWS, SPAN, FLOATS, FLOAT, FLOAT, FLOAT)
    return Kernel(move, signature, name=f"room-{loss}{'-weighted' * weighted}")


@cache
def adopter(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, scores, bias, parameter, known, state): dual variables to start from.

    If they are `known`, the present variables are kept; else they are minus the slopes of the
    loss. Either way they stay within their bounds. All rows become active, and squared lengths
    are computed anew.
    """
    bounds, slope_of = DUALS[loss].bounds, LOSSES[loss].slope
    target_and_weight = target_of(weighted)

    def adopt(rows, scores, bias, parameter, known, state):
        for row in range(U(0), U(rows.begins.size)):
            target, _ = target_and_weight(rows, row)
            least, most = bounds(target, parameter)
            place = U(STATE) * row
            a = np.float64(state[place + A])
            if known == 0.0:
                a = -slope_of(np.float64(scores[row]) + bias, target, parameter)
            state[place + A] = np.float32(min(most, max(least, a)))
            state[place + Q] = state[place + PULL] = np.float32(0.0)

    signature = types.void(ROWS, READ, FLOAT, FLOAT, FLOAT, FLOATS)
    return Kernel(adopt, signature, name=f"adopt-{loss}{'-weighted' * weighted}")


@cache
def reviewer(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, bias, c, parameter, state) that takes rows back in.

    It takes back rows that were put aside but whose variables would move now. Returns how many.
    """
    best, target_and_weight = DUALS[loss].best, target_of(weighted)

    def review(rows, span, scores, bias, c, parameter, state):
        found = U(0)
        for row in range(span.begin, span.end):
            place = U(STATE) * row
            q = -np.float64(state[place + Q])
            target, weight = target_and_weight(rows, row)
            if q > 0.0 and weight > 0.0:
                a, score = np.float64(state[place + A]), np.float64(scores[row]) + bias
                new = best(score, target, a, max(1e-30, c * weight * q), parameter)
                if np.float32(new) != state[place + A]:
                    state[place + Q] = np.float32(q)
                    found += U(1)
        return found

    signature = types.uintp(ROWS, SPAN, READ, FLOAT, FLOAT, FLOAT, FLOATS)
    return Kernel(review, signature, name=f"review-{loss}{'-weighted' * weighted}")


@kernel(types.void(writable(types.uint32), types.uintp, types.uint64, READ))
def arrange(order, first, seed, state):
    """Writes the active rows from `first` on into `order`, in a random order.

    Where some are put aside, the others are repeated: each time they are shuffled anew, and the
    last time the order may end before all have come.
    """
    shuffle_rows(order, first, seed, CHUNK)
    size, active = U(order.size), U(0)
    for i in range(U(0), size):
        row = order[i]
        order[active] = row  # without a branch, which would be mispredicted
        active += U(state[U(STATE) * U(row) + Q] >= np.float32(0.0))
    if active == U(0):
        shuffle_rows(order, first, seed, CHUNK)
        return
    for begin in range(active, size, active):
        end = min(begin + active, size)
        for i in range(begin, end):
            order[i] = order[i - active]
        for part in range(begin, end, WINDOW):
            shuffle_part(order, part, min(part + WINDOW, end), seed + np.uint64(begin))
