"""Linear models: one pass of stochastic gradient descent over sparse rows, and scoring them.

score = left * <weights, x> + intercept          w = left * weights (see problems/schedules.py)
weights <- weights - (rate / left) * slope(score, target) * x
intercept <- intercept - rate * slope(score, target)
"""

import math
from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import (
    U,
    fetch_stretch,
    prefetch,
    prefetch_once,
    random_below,
    random_word,
    readonly,
    writable,
)
from hogwild.problems.losses import add_of, slope_of, value_of
from hogwild.problems.schedules import left_of, rate_of

ROWS = types.Tuple(
    (
        readonly(types.uint64),  # indptr
        readonly(types.uint32),  # indices
        readonly(types.float32),  # values
        readonly(types.float32),  # targets
    )
)
FLOATS = writable(types.float32)
# schedule's code, eta0, l2, rate of the intercept over the rate of the weights (0: no intercept)
RATE = types.Tuple((types.int64, types.float64, types.float64, types.float64))
# how many rows ahead are fetched into the cache, how many lines of each in any case, and how many
# rows ahead their weights are (0: never)
FETCHING = types.UniTuple(types.uintp, 3)
# the loss's number, what is fetched, and the rate
HOW = types.Tuple((types.int64, FETCHING, RATE))
# steps that all workers did before, step of the last fold, steps that one of ours stands for
CLOCK = types.Tuple((types.float64, types.float64, types.float64))

BLOCK = U(256)  # rows between two exchanges of the intercept
POINTS = 3  # weights, at most, that are compared


@kernel(types.void(writable(types.uint32), types.uintp, types.uint64))
def shuffle(order: Any, first: Any, seed: Any) -> None:
    """Writes first, first + 1, ... into `order` in a random order (Fisher and Yates)."""
    size = U(order.size)
    for i in range(U(0), size):
        order[i] = first + i
    for i in range(U(0), size):
        other = i + U(random_below(random_word(seed, i), size - i))
        order[i], order[other] = order[other], order[i]


@inline
def dot_with(rows: Any, row: Any, weights: Any) -> Any:
    """The inner product of a row and some weights."""
    indptr, indices, values, _ = rows
    dot = np.float32(0)
    for k in range(U(indptr[row]), U(indptr[row + U(1)])):
        dot += weights[indices[k]] * values[k]
    return dot


@inline
def take_off(rows: Any, row: Any, factor: Any, weights: Any) -> None:
    """weights <- weights - factor * row."""
    indptr, indices, values, _ = rows
    for k in range(U(indptr[row]), U(indptr[row + U(1)])):
        weights[indices[k]] -= factor * values[k]  # races where shared: an update may be lost


@inline
def add_times(weights: Any, factor: Any, keep: Any, sums: Any) -> None:
    """What `add_scaled` does, for other kernels."""
    for k in range(U(0), U(sums.size)):
        before = keep * sums[k] if keep > np.float32(0) else np.float32(0)
        sums[k] = before + factor * weights[k]


@inline
def fetch_ahead(rows: Any, order: Any, i: Any, ahead: Any, lines: Any) -> None:
    """Asks for the row so many places after order[i], and for where a yet later one begins."""
    indptr, indices, values, targets = rows
    last = U(order.size) - U(1)
    prefetch_once(indptr, U(order[min(i + U(2) * ahead, last)]))
    row = U(order[min(i + ahead, last)])
    prefetch_once(targets, row)
    fetch_stretch(indices, values, U(indptr[row]), U(indptr[row + U(1)]), lines)


@inline
def fetch_weights(rows: Any, row: Any, weights: Any) -> None:
    """Asks for the weights of a row's columns."""
    indptr, indices, _, _ = rows
    for k in range(U(indptr[row]), U(indptr[row + U(1)])):
        prefetch(weights, U(indices[k]))


@inline
def visit(
    rows: Any,
    order: Any,
    places: Any,
    weights: Any,
    changed: Any,
    intercept: Any,
    how: Any,
    clock: Any,
) -> Any:
    """Visits the rows at some places of an order: learns from `weights`, and writes to `changed`.

    These two may be one. `intercept` is its value, and 1 if its changes count at once or 0 if they
    are only summed up. Rows that come later are fetched into the cache meanwhile: a random order
    costs little. Returns the sum of the losses just before each update, and by how much the
    intercept moved.
    """
    _, _, _, targets = rows
    begin, end = places
    bias, moving = intercept
    loss, (ahead, lines, near), rate_plan = how
    schedule, eta0, l2, intercept_share = rate_plan
    done, since, stride = clock
    last = U(order.size) - U(1)
    total, product = 0.0, 1.0
    left = left_of(schedule, done, since, eta0, l2)
    moved = np.float32(0)
    for i in range(begin, end):
        if near > U(0):  # before the rows, which come from farther away: a third faster than after
            fetch_weights(rows, U(order[min(i + near, last)]), weights)
        fetch_ahead(rows, order, i, ahead, lines)

        row = U(order[i])
        dot = dot_with(rows, row, weights)
        target = np.float64(targets[row])
        score = np.float64(np.float32(left) * dot + (bias + moving * moved))
        total, product = add_of(loss, total, product, score, target)
        slope = slope_of(loss, score, target)
        t = done + stride * np.float64(i - begin + U(1))
        left = left_of(schedule, t, since, eta0, l2)
        step = rate_of(schedule, t, eta0, l2)
        whole_step = step / left  # need not wait for the slope, and the next row waits for that
        if slope != 0.0:
            take_off(rows, row, np.float32(slope * whole_step), changed)
            moved -= np.float32(slope * step * intercept_share)
    return total + math.log(product), moved


@inline
def go_through(
    rows: Any, order: Any, places: Any, weights: Any, intercept: Any, how: Any, clock: Any
) -> Any:
    """Visits the rows at some places of an order, and exchanges the intercept now and then."""
    begin, end = places
    done, since, stride = clock
    total = 0.0
    for first in range(begin, end, BLOCK):
        now = done + stride * np.float64(first - begin), since, stride
        block = first, min(first + BLOCK, end)
        met, moved = visit(
            rows, order, block, weights, weights, (intercept[0], np.float32(1)), how, now
        )
        intercept[0] += moved  # races, as the weights
        total += met
    return total


@kernel(
    types.float64(
        ROWS,
        readonly(types.uint32),
        types.uintp,
        types.uintp,
        FETCHING,
        FLOATS,
        FLOATS,
        types.int64,
        RATE,
        CLOCK,
    )
)
def learn(
    rows: Any,
    order: Any,
    begin: Any,
    end: Any,
    fetching: Any,
    weights: Any,
    intercept: Any,
    loss: Any,
    rate_plan: Any,
    clock: Any,
) -> Any:
    """Visits the rows order[begin:end]; returns the sum of their losses just before each update.

    `weights` and `intercept` are shared by all workers and nobody locks them: that is Hogwild!.
    """
    how = loss, fetching, rate_plan
    return go_through(rows, order, (begin, end), weights, intercept, how, clock)


@kernel(
    types.void(ROWS, readonly(types.uint32), HOW, types.uintp, types.UniTuple(FLOATS, 4)),
)
def try_out(rows: Any, order: Any, how: Any, pieces: Any, arrays: Any) -> None:
    """Learns from rows in pieces, and adds up what is there after those of the later half.

    The arrays are weights and an intercept, all zero, and the means that are made of these.
    """
    weights, intercept, mean, mean_intercept = arrays
    _, _, (schedule, eta0, l2, _) = how
    size = U(order.size)
    left = 1.0
    for piece in range(U(0), pieces):
        begin, end = size * piece // pieces, size * (piece + U(1)) // pieces
        now = np.float64(begin), 0.0, 1.0
        go_through(rows, order, (begin, end), weights, intercept, how, now)
        left = left_of(schedule, np.float64(end), 0.0, eta0, l2)
        if U(2) * piece >= pieces:
            share = 2.0 / np.float64(pieces)
            add_times(weights, np.float32(share * left), np.float32(1), mean)
            add_times(intercept, np.float32(share), np.float32(1), mean_intercept)
    for k in range(U(0), U(weights.size)):
        weights[k] *= np.float32(left)


@kernel(
    types.UniTuple(types.float64, 2)(
        ROWS, types.uintp, types.uintp, readonly(types.float32), types.float32, types.int64
    )
)
def evaluate(rows: Any, begin: Any, end: Any, weights: Any, intercept: Any, loss: Any) -> Any:
    """Sum of the losses of rows begin..end, and how many of them are on the wrong side."""
    _, _, _, targets = rows
    total, product = 0.0, 1.0
    wrong = 0.0
    for row in range(begin, end):
        dot = intercept + dot_with(rows, row, weights)
        target = np.float64(targets[row])
        total, product = add_of(loss, total, product, np.float64(dot), target)
        if (dot > np.float32(0)) != (target > 0.0):
            wrong += 1.0
    return total + math.log(product), wrong


@kernel(
    types.void(
        ROWS,
        types.uintp,
        types.uintp,
        types.UniTuple(readonly(types.float32), POINTS),
        types.UniTuple(types.float32, POINTS),
        types.uintp,
        types.int64,
        writable(types.float64),
    )
)
def losses_of(
    rows: Any,
    begin: Any,
    end: Any,
    weights: Any,
    intercepts: Any,
    points: Any,
    loss: Any,
    out: Any,
) -> None:
    """The losses of the rows begin..end: those with the first weights, then the second, ...

    Of the weights and intercepts, only the first few `points` are looked at.
    """
    _, _, _, targets = rows
    for row in range(begin, end):
        for n in range(points):
            score = np.float64(intercepts[n] + dot_with(rows, row, weights[n]))
            loss_of = value_of(loss, score, np.float64(targets[row]))
            out[n * (end - begin) + row - begin] = loss_of


@kernel(
    types.void(
        readonly(types.uint64),
        readonly(types.uint32),
        readonly(types.float32),
        readonly(types.float32),
        types.float32,
        FLOATS,
    )
)
def scores(indptr: Any, indices: Any, values: Any, weights: Any, intercept: Any, out: Any) -> None:
    """The score of every row; columns that the weights do not have count as zero."""
    known = U(weights.size)
    for row in range(U(0), U(out.size)):
        dot = intercept
        for k in range(U(indptr[row]), U(indptr[row + U(1)])):
            if indices[k] < known:
                dot += weights[indices[k]] * values[k]
        out[row] = dot


@kernel(types.void(readonly(types.float32), types.float32, types.float32, FLOATS))
def add_scaled(weights: Any, factor: Any, keep: Any, sums: Any) -> None:
    """sums <- keep * sums + factor * weights; for keep = 0 whatever was in `sums` is forgotten."""
    add_times(weights, factor, keep, sums)


@kernel(
    types.UniTuple(types.float64, 3)(
        types.UniTuple(FLOATS, 3),
        types.float32,
        types.UniTuple(types.float32, 3),
        types.UniTuple(types.uintp, 2),
    )
)
def settle(arrays: Any, left: Any, factors: Any, share: Any) -> Any:
    """Makes weights whole, and means of sums of them, for a share of the columns.

    weights <- left * weights
    last <- last, or weights if there were no late moments
    whole <- keep * whole + each * last;  last <- last / late
    The arrays are weights, last (a sum over late moments) and whole (one over early ones); the
    factors are how many late ones there were, keep and each. Returns
    the sums of the squares of all three.
    """
    weights, last, whole = arrays
    late, keep, each = factors
    begin, end = share
    scale = np.float32(1) / max(late, np.float32(1))
    of_weights, of_last, of_whole = 0.0, 0.0, 0.0
    for k in range(begin, end):
        weight = left * weights[k]
        total = last[k] if late > np.float32(0) else weight
        before = keep * whole[k] if keep > np.float32(0) else np.float32(0)
        mean, tail = before + each * total, scale * total
        weights[k], last[k], whole[k] = weight, tail, mean
        of_weights += np.float64(weight) * np.float64(weight)
        of_last += np.float64(tail) * np.float64(tail)
        of_whole += np.float64(mean) * np.float64(mean)
    return of_weights, of_last, of_whole


@kernel(types.float64(readonly(types.float32)))
def squared_norm(weights: Any) -> Any:
    """The sum of the squares, in double precision."""
    total = 0.0
    for k in range(U(0), U(weights.size)):
        total += np.float64(weights[k]) * np.float64(weights[k])
    return total
