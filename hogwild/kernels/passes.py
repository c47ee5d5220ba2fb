"""Passes over rows in the order in which they are stored: sums, gradients and Hessian products.

Scores are kept for each row in double precision. Nothing here changes weights.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import Kernel, inline, kernel
from hogwild.kernels.dot import add_planes, add_row
from hogwild.kernels.evaluate import errors_of
from hogwild.kernels.primitives import U, readonly
from hogwild.kernels.rows import dot_with
from hogwild.kernels.targets import target_of
from hogwild.kernels.views import DOUBLES, FLOAT, RowView, Span, type_of
from hogwild.learn.losses import LOSSES

READ = readonly(types.float64)
ROWS, SPAN = type_of(RowView), type_of(Span)
# Numbers that a gradient has for each column: the gradient, the product of the Hessian and the
# intercept's column, the Hessian's diagonal, and a 0, so that one instruction adds to all
PLANES = 4
PACKED = U(8)  # rows that are added to a matrix at a time, where most columns are in each row


@kernel(types.void(ROWS, SPAN, READ, DOUBLES))
def scores_of(rows, span, weights, out):
    """The products of rows with weights in double precision."""
    for row in range(span.begin, span.end):
        out[row] = dot_with(rows, row, weights)


@inline
def add_to_planes(rows, row, slope, second, out):
    """Adds a row to the planes of its columns."""
    begin, end = U(rows.begins[row]), U(rows.ends[row])
    add_planes(rows.columns, rows.values, begin, end, slope, second, out)


@kernel(types.void(ROWS, SPAN, READ, READ, DOUBLES))
def spread(rows, span, slopes, seconds, out):
    """Adds rows with given slopes and second derivatives to the planes of their columns."""
    for row in range(span.begin, span.end):
        add_to_planes(rows, row, slopes[row], seconds[row], out)


@inline
def _straight(score, target, parameter):
    return 0.0


def derivatives_of(loss: str) -> tuple[Any, Any, Any]:
    """The value, the slope and the second derivative of a loss; 0 where the slope jumps."""
    return (*LOSSES[loss].of_heads, LOSSES[loss].second or _straight)


@cache
def gradient(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, bias, parameter, slopes, seconds, out) -> weighted sums.

    The sums are those of the losses, of slope * score, of the slopes and of the second
    derivatives. The kernel writes the slopes and second derivatives of the rows, and adds to
    `PLANES` numbers of each column.
    """
    value, slope_of, second_of = derivatives_of(loss)
    target_and_weight = target_of(weighted)

    def add(rows, span, scores, bias, parameter, slopes, seconds, out):
        losses, products, total, curvature = 0.0, 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            score = scores[row] + bias
            slope = weight * slope_of(score, target, parameter)
            second = weight * second_of(score, target, parameter)
            slopes[row], seconds[row] = slope, second
            losses += weight * value(score, target, parameter)
            products += slope * score
            total += slope
            curvature += second
        # In a loop of its own, as LLVM makes vectors of the one above
        for row in range(span.begin, span.end):
            if slopes[row] != 0.0 or seconds[row] != 0.0:
                add_to_planes(rows, row, slopes[row], seconds[row], out)
        return losses, products, total, curvature

    signature = types.UniTuple(FLOAT, 4)(ROWS, SPAN, READ, FLOAT, FLOAT, *[DOUBLES] * 3)
    return Kernel(add, signature, name=f"gradient-{loss}{'-weighted' * weighted}")


@cache
def slopes(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, bias, parameter, out) -> weighted sums over rows.

    The sums are those of the losses, of slope * score and of the slopes. The kernel writes the
    slopes, times the weights.
    """
    value, slope_of, _ = derivatives_of(loss)
    target_and_weight = target_of(weighted)

    def write(rows, span, scores, bias, parameter, out):
        losses, products, total = 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            score = scores[row] + bias
            slope = weight * slope_of(score, target, parameter)
            out[row] = slope
            losses += weight * value(score, target, parameter)
            products += slope * score
            total += slope
        return losses, products, total

    signature = types.UniTuple(FLOAT, 3)(ROWS, SPAN, READ, FLOAT, FLOAT, DOUBLES)
    return Kernel(write, signature, name=f"slopes-{loss}{'-weighted' * weighted}")


@kernel(types.void(ROWS, SPAN, READ, READ, DOUBLES, DOUBLES))
def hessian_product(rows, span, vector, seconds, dots, out):
    """Adds the sum of second * <row, vector> * row to `out`, and writes the products of rows."""
    for row in range(span.begin, span.end):
        dot = dot_with(rows, row, vector)
        dots[row] = dot
        factor = seconds[row] * dot
        if factor != 0.0:
            begin, end = U(rows.begins[row]), U(rows.ends[row])
            add_row(rows.columns, rows.values, begin, end, factor, out)


@kernel(types.void(ROWS, SPAN, READ, DOUBLES))
def add_products(rows, span, seconds, out):
    """Adds half of second * z z' for rows z, whose last value, the intercept's, is 1.

    The half, with what is mirrored, is the whole.
    """
    columns = U(np.sqrt(np.float64(out.size)) + 0.5)
    last = columns - U(1)
    for row in range(span.begin, span.end):
        end, second = U(rows.ends[row]), seconds[row]
        if second == 0.0:
            continue
        for k in range(U(rows.begins[row]), end):
            first = columns * U(rows.columns[k])
            factor = second * np.float64(rows.values[k])
            out[first + U(rows.columns[k])] += 0.5 * factor * np.float64(rows.values[k])
            for other in range(k + U(1), end):
                out[first + U(rows.columns[other])] += factor * np.float64(rows.values[other])
            out[first + last] += factor
        out[columns * last + last] += 0.5 * second


@inline
def _pack(rows, row, out):
    """Writes a row with its zeros, and the intercept's 1."""
    out[:] = 0.0
    for k in range(U(rows.begins[row]), U(rows.ends[row])):
        out[rows.columns[k]] += np.float64(rows.values[k])
    out[out.size - 1] = 1.0


@inline
def _add_packed(z, factors, out):
    """Adds factor * z z' for eight packed rows, from the diagonal on.

    Beside one row at a time, numbers of the matrix are loaded and stored an eighth as often. Two
    lines of it at a time load the rows half as often.
    """
    z0, z1, z2, z3, z4, z5, z6, z7 = z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7]
    f = factors
    columns = U(z0.size)
    for i in range(U(0), columns, U(2)):
        k = min(i + U(1), columns - U(1))
        a0, a1, a2, a3 = f[0] * z0[i], f[1] * z1[i], f[2] * z2[i], f[3] * z3[i]
        a4, a5, a6, a7 = f[4] * z4[i], f[5] * z5[i], f[6] * z6[i], f[7] * z7[i]
        b0, b1, b2, b3 = f[0] * z0[k], f[1] * z1[k], f[2] * z2[k], f[3] * z3[k]
        b4, b5, b6, b7 = f[4] * z4[k], f[5] * z5[k], f[6] * z6[k], f[7] * z7[k]
        one, other = out[i], out[k]
        if k == i:  # the last of an odd number
            for n in range(PACKED):
                one[i] += f[n] * z[n, i] * z[n, i]
            continue
        for j in range(i, columns):
            y0, y1, y2, y3 = z0[j], z1[j], z2[j], z3[j]
            y4, y5, y6, y7 = z4[j], z5[j], z6[j], z7[j]
            a_sum = a0 * y0 + a1 * y1 + a2 * y2 + a3 * y3
            b_sum = b0 * y0 + b1 * y1 + b2 * y2 + b3 * y3
            one[j] += a_sum + a4 * y4 + a5 * y5 + a6 * y6 + a7 * y7
            other[j] += b_sum + b4 * y4 + b5 * y5 + b6 * y6 + b7 * y7


@kernel(types.void(ROWS, SPAN, READ, DOUBLES, DOUBLES, DOUBLES))
def add_packed_products(rows, span, seconds, packed, factors, out):
    """As `add_products`, to a matrix of zeros, for rows that have most columns: 13 times as fast.

    `packed` has room for `PACKED` rows with their zeros, `factors` for a number for each of them.
    """
    columns = U(np.sqrt(np.float64(out.size)) + 0.5)
    z, matrix = packed.reshape(PACKED, columns), out.reshape(columns, columns)
    count = U(0)
    for row in range(span.begin, span.end):
        if seconds[row] != 0.0:
            _pack(rows, row, z[count])
            factors[count] = seconds[row]
            count += U(1)
        if count == PACKED or row + 1 == span.end:
            factors[count:] = 0.0
            z[count:] = 0.0
            _add_packed(z, factors, matrix)
            count = U(0)
    for i in range(U(0), columns, U(2)):  # where numbers stand on both sides of the diagonal
        end = min(i + U(2), columns)
        for k in range(i, end):
            for j in range(i, end):
                matrix[k, j] *= 0.5


@cache
def along(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, changes, step, bias, share, turn, parameter) -> sums.

    Rows are looked at with the scores + step * changes + bias. The sums, times the rows' weights,
    are of the losses, and of first and second derivatives in the direction share * changes + turn.
    """
    value, slope_of, second_of = derivatives_of(loss)
    target_and_weight = target_of(weighted)

    def sums(rows, span, scores, changes, step, bias, share, turn, parameter):
        losses, first, second = 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            score = scores[row] + step * changes[row] + bias
            change = share * changes[row] + turn
            losses += weight * value(score, target, parameter)
            first += weight * slope_of(score, target, parameter) * change
            second += weight * second_of(score, target, parameter) * change * change
        return losses, first, second

    signature = types.UniTuple(FLOAT, 3)(ROWS, SPAN, READ, READ, *[FLOAT] * 5)
    return Kernel(sums, signature, name=f"along-{loss}{'-weighted' * weighted}")


@cache
def losses(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, bias, parameter) -> the sum of the losses of rows."""
    value, target_and_weight = LOSSES[loss].value, target_of(weighted)

    def total(rows, span, scores, bias, parameter):
        found = 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            found += weight * value(scores[row] + bias, target, parameter)
        return found

    signature = FLOAT(ROWS, SPAN, READ, FLOAT, FLOAT)
    return Kernel(total, signature, name=f"losses-of-doubles-{loss}{'-weighted' * weighted}")


@cache
def errors(loss: str, kind: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, bias) -> the sums of the two errors of rows."""
    target_and_weight, errors_at = target_of(weighted), errors_of(kind)
    is_exponential = LOSSES[loss].mean is not None

    def sums(rows, span, scores, bias):
        first, second = 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            score = scores[row] + bias
            one, other = errors_at(math.exp(score) if is_exponential else score, target)
            first += weight * one
            second += weight * other
        return first, second

    signature = types.UniTuple(FLOAT, 2)(ROWS, SPAN, READ, FLOAT)
    name = f"errors-of-doubles-{kind}{'-exp' * is_exponential}{'-weighted' * weighted}"
    return Kernel(sums, signature, name=name)


@kernel(types.UniTuple(FLOAT, 2)(FLOAT, *[READ] * 4, *[DOUBLES] * 3))
def advance(step, search, image, preconditioner, dots, changes, direction, residual):
    """A step of conjugate gradients; residual' M^-1 residual after it, and residual' residual."""
    for row in range(U(0), U(dots.size)):
        changes[row] += step * dots[row]
    size, square = 0.0, 0.0
    for k in range(U(0), U(search.size)):
        direction[k] += step * search[k]
        left = residual[k] - step * image[k]
        residual[k] = left
        size += left * left / preconditioner[k]
        square += left * left
    return size, square


@kernel(types.void(FLOAT, READ, READ, DOUBLES))
def turn(share, residual, preconditioner, search):
    """The next direction of a search: search <- M^-1 residual + share * search."""
    for k in range(U(0), U(search.size)):
        search[k] = residual[k] / preconditioner[k] + share * search[k]


@kernel(FLOAT(READ, READ))
def inner(one, other):
    """The inner product, always summed in the same order by one thread, unlike numpy's."""
    total = 0.0
    for k in range(U(0), U(one.size)):
        total += one[k] * other[k]
    return total
