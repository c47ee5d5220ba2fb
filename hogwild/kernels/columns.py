"""Columns of the data: rows turned into columns, and coordinate descent on a quadratic model.

The model replaces the losses near the present scores s of the rows. If the weights move by d, the
slope of row i in the model is

    q_i = weight_i (loss'(s_i) + loss''(s_i) <x_i, d>)

Penalties here belong to the sum of the losses: they are n times the penalties of the mean loss.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types

from hogwild.kernels.compile import Kernel, inline, kernel
from hogwild.kernels.order import shuffle_part
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.kernels.targets import target_of
from hogwild.kernels.views import (
    DOUBLES,
    FLOAT,
    ORDER,
    UINT,
    Doubles,
    DoublesRead,
    FloatsRead,
    Order,
    Places,
    RowView,
    Span,
    type_of,
)
from hogwild.learn.duals import DUALS
from hogwild.learn.losses import LOSSES

READ = readonly(types.float64)
ROWS, SPAN = type_of(RowView), type_of(Span)
NOT_KNOWN = -1.0  # a second derivative that has not been computed yet
LEAST = 1e-12  # a second derivative


class Columns(NamedTuple):
    """Sparse columns: column j has the values from bounds[j] to bounds[j + 1], and their rows."""

    bounds: Places
    rows: Order
    values: FloatsRead


class Model(NamedTuple):
    """The quadratic model: slopes that follow the weights, second derivatives, and the penalty.

    Column number `free` has no penalty.
    """

    slopes: Doubles
    bends: DoublesRead
    l1: float
    l2: float
    free: int


COLUMNS, MODEL = type_of(Columns), type_of(Model)


# Rows into columns


@kernel(types.void(ROWS, SPAN, writable(types.uint64)))
def count_values(rows, span, counts):
    """Adds to `counts` how many values each column has in some rows."""
    for row in range(span.begin, span.end):
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            counts[U(rows.columns[k])] += np.uint64(1)


@kernel(
    types.void(ROWS, SPAN, writable(types.uint64), writable(types.uint32), writable(types.float32))
)
def put_into_columns(rows, span, places, out_rows, out_values):
    """Writes the values of some rows to their columns; `places`: where the next of each goes."""
    for row in range(span.begin, span.end):
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            column = U(rows.columns[k])
            place = U(places[column])
            places[column] = np.uint64(place + U(1))
            out_rows[place] = np.uint32(row)
            out_values[place] = rows.values[k]


# Products


@inline
def product(columns, column, numbers):
    """The inner product of a column and a number for each row."""
    total = 0.0
    for k in range(U(columns.bounds[column]), U(columns.bounds[column + U(1)])):
        total += np.float64(columns.values[k]) * numbers[U(columns.rows[k])]
    return total


@inline
def add_column(columns, column, factor, numbers):
    """numbers <- numbers + factor * column."""
    for k in range(U(columns.bounds[column]), U(columns.bounds[column + U(1)])):
        numbers[U(columns.rows[k])] += factor * np.float64(columns.values[k])


@kernel(types.void(COLUMNS, ORDER, READ, DOUBLES))
def add_columns(columns, chosen, factors, out):
    """Adds factor * column to a number for each row, for the chosen columns."""
    for n in range(U(0), U(chosen.size)):
        if factors[n] != 0.0:
            add_column(columns, U(chosen[n]), factors[n], out)


@kernel(types.void(COLUMNS, ORDER, READ, DOUBLES))
def products_of(columns, chosen, numbers, out):
    """Writes the inner product of each chosen column and a number for each row."""
    for n in range(U(0), U(chosen.size)):
        out[n] = product(columns, U(chosen[n]), numbers)


@kernel(types.void(COLUMNS, ORDER, MODEL, READ, DOUBLES, DOUBLES, DOUBLES))
def curve_along(columns, chosen, model, direction, moves, pulls, out):
    """Writes the Hessian of the model, of the chosen columns, times a direction.

    And for each row how far its score moves, and how far its slope.
    """
    for row in range(U(0), U(moves.size)):
        moves[row] = 0.0
    for n in range(U(0), U(chosen.size)):
        add_column(columns, U(chosen[n]), direction[n], moves)
    for row in range(U(0), U(moves.size)):
        pulls[row] = model.bends[row] * moves[row]
    for n in range(U(0), U(chosen.size)):
        column = U(chosen[n])
        l2 = 0.0 if column == model.free else model.l2
        out[n] = product(columns, column, pulls) + l2 * direction[n]


# Losses of rows


@cache
def modeler(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, parameter, slopes, bends) that makes a model around scores.

    It writes weight * slope and weight * second derivative for each row. It returns the sums of the
    losses, of the slopes, of their sizes, and of the second derivatives.
    """
    (value, slope_of), second_of = LOSSES[loss].of_heads, LOSSES[loss].second
    target_and_weight = target_of(weighted)
    assert second_of is not None

    def make(rows, span, scores, parameter, slopes, bends):
        total, slope_total, sizes, bend_total = 0.0, 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            slope = weight * slope_of(scores[row], target, parameter)
            bend = weight * second_of(scores[row], target, parameter)
            slopes[row], bends[row] = slope, bend
            total += weight * value(scores[row], target, parameter)
            slope_total += slope
            sizes += abs(slope)
            bend_total += bend
        return total, slope_total, sizes, bend_total

    signature = types.UniTuple(FLOAT, 4)(ROWS, SPAN, READ, FLOAT, DOUBLES, DOUBLES)
    return Kernel(make, signature, name=f"model-{loss}{'-weighted' * weighted}")


@cache
def dual_along(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, slopes, share, parameter) -> the dual value of -share * slopes."""
    value, target_and_weight = DUALS[loss].value, target_of(weighted)

    def total_dual(rows, span, slopes, share, parameter):
        total = 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            if weight > 0.0:
                total += weight * value(-share * slopes[row] / weight, target, parameter)
        return total

    signature = FLOAT(ROWS, SPAN, READ, FLOAT, FLOAT)
    return Kernel(total_dual, signature, name=f"dual-along-{loss}{'-weighted' * weighted}")


# Weights


@inline
def distance(slope, weight, l1):
    """How far the derivative by a weight is from that of a minimum; below 0 at a safe zero."""
    if weight == 0.0:
        return abs(slope) - l1
    return abs(slope + l1 if weight > 0.0 else slope - l1)


@kernel(types.UniTuple(FLOAT, 2)(COLUMNS, SPAN, MODEL, READ, DOUBLES))
def differentiate(columns, span, model, weights, out):
    """Writes the inner products of some columns with the slopes.

    It returns the largest, of columns with a penalty, and the sum of the distances from a minimum.
    """
    largest, total = 0.0, 0.0
    for column in range(span.begin, span.end):
        found = product(columns, column, model.slopes)
        out[column] = found
        if column == model.free:
            total += abs(found)
        else:
            largest = max(largest, abs(found))
            weight = weights[column]
            total += max(0.0, distance(found + model.l2 * weight, weight, model.l1))
    return largest, total


@kernel(UINT(READ, READ, MODEL, FLOAT, writable(types.uint32)))
def choose(derivatives, weights, model, near, out):
    """Writes the columns that are not zero or might not stay zero; returns how many.

    A zero might not if the derivative of the losses is larger than `near`.
    """
    count = U(0)
    for column in range(U(0), U(derivatives.size)):
        out[count] = np.uint32(column)
        taken = weights[column] != 0.0 or abs(derivatives[column]) > near or column == model.free
        count += U(taken)
    return count


@kernel(FLOAT(READ, MODEL, FLOAT))
def excess(derivatives, model, share):
    """The sum of the squares by which share * derivatives exceed l1."""
    total = 0.0
    for column in range(U(0), U(derivatives.size)):
        if column != model.free:
            total += max(0.0, share * abs(derivatives[column]) - model.l1) ** 2
    return total


@kernel(
    types.Tuple((FLOAT, FLOAT, UINT, UINT))(
        COLUMNS, MODEL, writable(types.uint32), UINT, FLOAT, types.uint64, DOUBLES, DOUBLES
    )
)
def descend(columns, model, chosen, active, limit, seed, weights, curves):
    """Sets each weight of the `active` first of the chosen columns to where the model is least.

    A zero whose derivative is more than `limit` away from moving it is put behind them. `curves`
    has the model's second derivatives by single weights, as far as they were needed. It returns
    the largest distance from a minimum and the sum of distances, each before its weight is set,
    how many signs changed, and how many columns are active now.
    """
    shuffle_part(chosen, U(0), active, seed)
    largest, total, changed, n = 0.0, 0.0, U(0), U(0)
    while n < active:
        column = U(chosen[n])
        is_free = column == model.free
        l1, l2 = 0.0 if is_free else model.l1, 0.0 if is_free else model.l2
        weight = weights[column]
        slope = product(columns, column, model.slopes) + l2 * weight
        away = distance(slope, weight, l1)
        if weight == 0.0 and away <= 0.0:
            if away < -limit:
                active -= U(1)
                chosen[n], chosen[active] = chosen[active], chosen[n]
            else:
                n += U(1)
            continue
        n += U(1)
        largest = max(largest, away)
        total += away
        begin, end = U(columns.bounds[column]), U(columns.bounds[column + U(1)])
        curve = curves[column]
        if curve == NOT_KNOWN:
            curve = l2 + LEAST
            for k in range(begin, end):
                value = np.float64(columns.values[k])
                curve += value * value * model.bends[U(columns.rows[k])]
            curves[column] = curve
        aim = curve * weight - slope
        new = (aim - l1 if aim > l1 else aim + l1 if aim < -l1 else 0.0) / curve
        weights[column] = new
        changed += U((new > 0.0) != (weight > 0.0) or (new < 0.0) != (weight < 0.0))
        step = new - weight
        for k in range(begin, end):
            row = U(columns.rows[k])
            model.slopes[row] += model.bends[row] * (step * np.float64(columns.values[k]))
    return largest, total, changed, active


# Few columns: the Hessian of the model as a matrix


@kernel(types.void(ROWS, READ, ORDER, UINT, UINT, writable(types.uint32), DOUBLES, DOUBLES))
def add_hessian(rows, bends, places, count, free, found, values, out):
    """Adds to `out` the Hessian of the model for `count` columns, half of each pair of numbers.

    `places` has their places from 1 on, and 0 for other columns; that of a column of ones is
    `free`, or 0. `found` and `values` are scratch for each of the columns.
    """
    for row in range(U(0), U(rows.begins.size)):
        bend = bends[row]
        if bend != 0.0:
            size = U(0)
            for k in range(U(rows.begins[row]), U(rows.ends[row])):
                place = places[U(rows.columns[k])]
                found[size] = place
                values[size] = np.float64(rows.values[k])
                size += U(place != np.uint32(0))
            if free != U(0):
                found[size], values[size] = np.uint32(free), 1.0
                size += U(1)
            for a in range(U(0), size):
                line, pull = (U(found[a]) - U(1)) * count - U(1), bend * values[a]
                for b in range(U(0), a + U(1)):
                    out[line + U(found[b])] += pull * values[b]


@kernel(FLOAT(READ, READ, READ, FLOAT, UINT, DOUBLES, DOUBLES))
def descend_densely(hessian, l1, l2, wanted, most, slopes, weights):
    """Sets each weight to where the model is least, until the sum of distances is as wanted.

    The model is known by its Hessian and its slopes by the weights, without the penalty; l1 and l2
    are those of each weight. It makes at most `most` passes, and returns the sum of the last one.
    """
    count, total = U(weights.size), 0.0
    for _ in range(U(0), most):
        total = 0.0
        for a in range(U(0), count):
            weight = weights[a]
            slope = slopes[a] + l2[a] * weight
            away = distance(slope, weight, l1[a])
            if away <= 0.0:
                continue
            total += away
            curve = hessian[a * count + a] + l2[a] + LEAST
            aim = curve * weight - slope
            new = (aim - l1[a] if aim > l1[a] else aim + l1[a] if aim < -l1[a] else 0.0) / curve
            weights[a] = new
            step = new - weight
            for b in range(U(0), count):
                slopes[b] += step * hessian[a * count + b]
        if total <= wanted:
            break
    return total
