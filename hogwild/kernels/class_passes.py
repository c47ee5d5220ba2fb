"""Passes over rows whose K scores depend on each other: softmax with cross-entropy.

    p = exp(s) / sum of exp(s_k),   loss = log(sum of exp(s_k)) - s of the row's class y
    slopes p - y;   the Hessian by the scores times v: p * (v - <p, v>)

Scores (K numbers for each row) and gradients are in double precision. Slopes and products with the
Hessian are in single precision.
"""

import math
from functools import cache

import numpy as np
from numba import types

from hogwild.kernels.compile import Kernel, always_inline, inline, kernel
from hogwild.kernels.exponential import exp
from hogwild.kernels.heads import head_adder, scorer
from hogwild.kernels.passes import READ, ROWS, SPAN
from hogwild.kernels.primitives import LINE, U, prefetch
from hogwild.kernels.targets import class_of, weight_of
from hogwild.kernels.views import DOUBLES, FLOAT, FLOATS, Own, Shape, type_of

SHAPE, OWN = type_of(Shape), type_of(Own)
PAIR = types.UniTuple(FLOAT, 2)


@inline
def _odds(scores, changes, step, bias, row, heads, out):
    """Writes exp(s - top) for the scores s of a row; their sum, and top, the largest."""
    first = heads * row
    top = -np.inf
    for head in range(U(0), heads):
        score = scores[first + head] + step * changes[first + head] + bias[head]
        out[head] = score
        top = max(top, score)
    total = 0.0
    for head in range(U(0), heads):
        out[head] = exp(out[head] - top)
        total += out[head]
    return total, top


@cache
def scores(register: int) -> Kernel:
    """The kernel (rows, span, weights, shape, own, out) that writes the products of rows."""
    score = scorer(register)

    def write(rows, span, weights, shape, own, out):
        for row in range(span.begin, span.end):
            score(rows, row, weights, shape, own.scores)
            for head in range(U(0), shape.end):
                out[shape.end * row + head] = np.float64(own.scores[head])

    signature = types.void(ROWS, SPAN, FLOATS, SHAPE, OWN, DOUBLES)
    return Kernel(write, signature, name=f"class-scores-{register}")


@cache
def moments(weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, bias, shape, own, slopes, out) -> sums over rows.

    The sums are those of the losses and of slopes * scores, times the rows' weights. The kernel
    writes the slopes. It adds K sums of slopes and K x K sums of products of probabilities to
    `out`.
    """
    row_weight = weight_of(weighted)

    def add(rows, span, scores, bias, shape, own, slopes, out):
        heads, odds = shape.end, own.slopes
        losses, products = 0.0, 0.0
        for row in range(span.begin, span.end):
            weight, true = row_weight(rows, row, shape), class_of(rows, row, shape)
            total, top = _odds(scores, scores, 0.0, bias, row, heads, odds)
            first = heads * row
            of_true = scores[first + true] + bias[true]
            product, others = 0.0, 0.0
            for head in range(U(0), heads):
                odds[head] /= total
                slopes[first + head] = np.float32(odds[head])
                out[head] += weight * odds[head]
                product += odds[head] * (scores[first + head] + bias[head] - of_true)
                others += odds[head] if head != true else 0.0
            slopes[first + true] = -np.float32(others)  # p - 1 would be all rounding near 0
            out[true] -= weight
            losses += weight * (math.log(total) + top - of_true)
            products += weight * product
            for one in range(U(0), heads):
                factor = weight * odds[one]
                place = heads * (one + U(1))
                for other in range(U(0), heads):
                    out[place + other] += factor * odds[other]
        return losses, products

    signature = PAIR(ROWS, SPAN, READ, READ, SHAPE, OWN, FLOATS, DOUBLES)
    return Kernel(add, signature, name=f"class-moments{'-weighted' * weighted}")


@always_inline
def _fetch_next(rows, row, span, width, line, out):
    """Fetches the numbers of the next row's columns: without it, adding takes 1.3 times as long."""
    if row + U(1) < span.end:
        for k in range(U(rows.begins[row + U(1)]), U(rows.ends[row + U(1)])):
            for lane in range(U(0), width, line):
                prefetch(out, width * U(rows.columns[k]) + lane)


@cache
def gradient(weighted: bool) -> Kernel:
    """The kernel (rows, span, slopes, shape, own, out) that adds slopes * rows to columns.

    Sums are in double precision: if rows are sorted by class, sums grow large before they cancel.
    """
    row_weight = weight_of(weighted)

    def add(rows, span, slopes, shape, own, out):
        heads = shape.end
        for row in range(span.begin, span.end):
            weight, first = row_weight(rows, row, shape), heads * row
            for head in range(U(0), heads):
                own.slopes[head] = weight * np.float64(slopes[first + head])
            _fetch_next(rows, row, span, heads, LINE // U(2), out)
            for k in range(U(rows.begins[row]), U(rows.ends[row])):
                x, place = np.float64(rows.values[k]), heads * U(rows.columns[k])
                for head in range(U(0), heads):
                    out[place + head] += x * own.slopes[head]

    signature = types.void(ROWS, SPAN, FLOATS, SHAPE, OWN, DOUBLES)
    return Kernel(add, signature, name=f"class-gradient{'-weighted' * weighted}")


@inline
def _slope_changes(slopes, changes, turn, first, true, heads, weight, out):
    """Writes how much the slopes of a row change, times its weight.

    With the changes v of scores beside that of the row's class, nothing is a small difference.
    """
    of_true = changes[first + true] + turn[true]
    mean = 0.0
    for head in range(U(0), heads):
        change = changes[first + head] + turn[head] - of_true  # 0 for the row's class
        out[head] = change
        mean += np.float64(slopes[first + head]) * change
    for head in range(U(0), heads):
        out[head] = weight * np.float64(slopes[first + head]) * (out[head] - mean)
    out[true] -= weight * mean


@cache
def product(weighted: bool, register: int) -> Kernel:
    """The kernel (rows, span, slopes, changes, turn, shape, own, out).

    Scores change by changes + turn. The kernel adds the change of each slope, times the row, to
    the columns. Single precision is exact enough here, and takes a quarter of the time.
    """
    row_weight, spread = weight_of(weighted), head_adder(register)

    def add(rows, span, slopes, changes, turn, shape, own, out):
        heads = shape.end
        for row in range(span.begin, span.end):
            weight, true = row_weight(rows, row, shape), class_of(rows, row, shape)
            given = slopes, changes, turn
            _slope_changes(*given, heads * row, true, heads, weight, own.slopes)
            for head in range(U(0), heads):
                own.scores[head] = np.float32(own.slopes[head])
            _fetch_next(rows, row, span, shape.width, LINE, out)
            spread(rows, row, out, shape, own.scores)

    signature = types.void(ROWS, SPAN, FLOATS, READ, READ, SHAPE, OWN, FLOATS)
    return Kernel(add, signature, name=f"class-product-{register}{'-weighted' * weighted}")


@cache
def pulls(weighted: bool) -> Kernel:
    """The kernel (rows, span, slopes, changes, turn, shape, own, out).

    As `product`, and it also adds the changes of the slopes to K sums.
    """
    row_weight = weight_of(weighted)

    def add(rows, span, slopes, changes, turn, shape, own, out):
        heads = shape.end
        for row in range(span.begin, span.end):
            weight, true = row_weight(rows, row, shape), class_of(rows, row, shape)
            given = slopes, changes, turn
            _slope_changes(*given, heads * row, true, heads, weight, own.slopes)
            for head in range(U(0), heads):
                out[head] += own.slopes[head]

    signature = types.void(ROWS, SPAN, FLOATS, READ, READ, SHAPE, OWN, DOUBLES)
    return Kernel(add, signature, name=f"class-pulls{'-weighted' * weighted}")


@cache
def along(weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, changes, step, bias, share, turn, shape, own) -> sums.

    Rows are looked at with the scores + step * changes + bias. The sums, times the rows' weights,
    are of the losses, and of first and second derivatives in the direction share * changes + turn.
    """
    row_weight = weight_of(weighted)

    def sums(rows, span, scores, changes, step, bias, share, turn, shape, own):
        heads, odds = shape.end, own.slopes
        losses, first_sum, second_sum = 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            weight, true = row_weight(rows, row, shape), class_of(rows, row, shape)
            total, top = _odds(scores, changes, step, bias, row, heads, odds)
            first = heads * row
            mean, square = 0.0, 0.0
            for head in range(U(0), heads):
                change = share * changes[first + head] + turn[head]
                mean += odds[head] * change
                square += odds[head] * change * change
            mean /= total
            of_true = scores[first + true] + step * changes[first + true] + bias[true]
            losses += weight * (math.log(total) + top - of_true)
            first_sum += weight * (mean - share * changes[first + true] - turn[true])
            second_sum += weight * (square / total - mean * mean)
        return losses, first_sum, second_sum

    kinds = ROWS, SPAN, READ, READ, FLOAT, READ, FLOAT, READ, SHAPE, OWN
    signature = types.UniTuple(FLOAT, 3)(*kinds)
    return Kernel(sums, signature, name=f"class-along{'-weighted' * weighted}")


@cache
def errors(weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, bias, shape) -> the weight of rows of another class."""
    row_weight = weight_of(weighted)

    def wrong(rows, span, scores, bias, shape):
        total = 0.0
        for row in range(span.begin, span.end):
            first, best = shape.end * row, U(0)
            for head in range(U(1), shape.end):
                if scores[first + head] + bias[head] > scores[first + best] + bias[best]:
                    best = head
            if best != class_of(rows, row, shape):
                total += row_weight(rows, row, shape)
        return total

    signature = FLOAT(ROWS, SPAN, READ, READ, SHAPE)
    return Kernel(wrong, signature, name=f"class-errors{'-weighted' * weighted}")


@kernel(types.void(SPAN, FLOATS, FLOAT, SHAPE, DOUBLES))
def add_up(columns, sums, factor, shape, out):
    """Adds up what shards added to the numbers of columns, times a factor."""
    size = shape.end * (U(sums.size) // shape.width)  # of all shards
    shards = size // U(out.size)
    padded = U(sums.size) // shards
    for column in range(columns.begin, columns.end):
        for head in range(U(0), shape.end):
            total = 0.0
            for shard in range(U(0), shards):
                total += np.float64(sums[padded * shard + shape.width * column + head])
            out[shape.end * column + head] = factor * total


@kernel(types.void(SPAN, READ, SHAPE, FLOATS))
def pad(columns, numbers, shape, out):
    """Writes the numbers of columns in single precision, `shape.width` for each."""
    for column in range(columns.begin, columns.end):
        for head in range(U(0), shape.end):
            out[shape.width * column + head] = np.float32(numbers[shape.end * column + head])


@kernel(types.void(ROWS, SPAN, DOUBLES))
def add_squares(rows, span, out):
    """Adds the squares of the values of rows to their columns."""
    for row in range(span.begin, span.end):
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            x = np.float64(rows.values[k])
            out[U(rows.columns[k])] += x * x
