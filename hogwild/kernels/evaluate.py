"""Evaluation of weights: losses and errors of rows, scores, norms. Nothing here changes weights."""

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import Kernel, inline, kernel
from hogwild.kernels.primitives import U, readonly
from hogwild.kernels.rows import dot_with, dots_with
from hogwild.kernels.targets import target_of
from hogwild.kernels.views import DOUBLES, FLOAT, FLOATS, UINT, RowView, Span, type_of
from hogwild.learn.losses import LOSSES, SIGNS, adder

POINTS = 3  # weights, at most, that are compared
WEIGHTS = readonly(types.float32)
BOUNDS = readonly(types.uint64)


@inline
def _sign_errors(score, target):
    """Whether the row is on the wrong side; nothing besides."""
    return 1.0 if (score > 0.0) != (target > 0.0) else 0.0, 0.0


@inline
def _number_errors(score, target):
    """The square and the size of the error."""
    error = score - target
    return error * error, abs(error)


def errors_of(kind: str) -> Any:
    """(score, target) -> the two errors of a row, for a kind of targets."""
    return _sign_errors if kind == SIGNS else _number_errors


@cache
def evaluator(loss: str, kind: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, weights, parameter) -> sums over rows, each times the row's weight.

    The first sum is the loss. For classes, the others are the number of errors and 0; for numbers,
    the squared and the absolute errors. The intercept is the last of the weights.
    """
    add, target_and_weight = adder(loss, weighted), target_of(weighted)
    errors = errors_of(kind)
    is_exponential = LOSSES[loss].mean is not None

    def evaluate(rows, span, weights, parameter):
        intercept = weights[U(weights.size) - U(1)]
        sums = 0.0, 1.0
        first, second = 0.0, 0.0
        for row in range(span.begin, span.end):
            score = np.float64(intercept + dot_with(rows, row, weights))
            target, weight = target_and_weight(rows, row)
            sums = add(sums, weight, score, target, parameter)
            one, other = errors(math.exp(score) if is_exponential else score, target)
            first += weight * one
            second += weight * other
        total, product = sums
        return total + math.log(product), first, second

    signature = types.UniTuple(FLOAT, 3)(type_of(RowView), type_of(Span), WEIGHTS, FLOAT)
    return Kernel(evaluate, signature, name=f"evaluate-{loss}-{kind}{'-weighted' * weighted}")


@cache
def comparer(loss: str, weighted: bool) -> Kernel:
    """The kernel that writes the losses of rows with the first weights, then the second, ...

    Each is times the row's weight. Only those with the first few `points` are written.
    """
    value, target_and_weight = LOSSES[loss].value, target_of(weighted)

    def compare(rows, span, weights, points, parameter, out):
        begin, end = span
        for row in range(begin, end):
            target, weight = target_and_weight(rows, row)
            dots = dots_with(rows, row, weights)
            for n in range(points):
                intercept = weights[n][U(weights[n].size) - U(1)]
                score = np.float64(intercept + dots[n])
                place = n * (end - begin) + row - begin
                out[place] = weight * value(score, target, parameter)

    arrays = types.UniTuple(WEIGHTS, POINTS)
    signature = types.void(type_of(RowView), type_of(Span), arrays, UINT, FLOAT, DOUBLES)
    return Kernel(compare, signature, name=f"compare-{loss}{'-weighted' * weighted}")


@kernel(types.void(BOUNDS, BOUNDS, readonly(types.uint32), WEIGHTS, WEIGHTS, types.float32, FLOATS))
def scores(begins, ends, columns, values, weights, intercept, out):
    """The score of every row; columns that the weights do not have count as zero."""
    known = U(weights.size)
    for row in range(U(0), U(out.size)):
        dot = intercept
        for k in range(U(begins[row]), U(ends[row])):
            if columns[k] < known:
                dot += weights[columns[k]] * values[k]
        out[row] = dot


@kernel(FLOAT(WEIGHTS))
def squared_norm(weights):
    """The sum of the squares, in double precision."""
    total = 0.0
    for k in range(U(0), U(weights.size)):
        total += np.float64(weights[k]) * np.float64(weights[k])
    return total


@kernel(FLOAT(WEIGHTS))
def absolute_sum(weights):
    """The sum of the sizes, in double precision."""
    total = 0.0
    for k in range(U(0), U(weights.size)):
        total += abs(np.float64(weights[k]))
    return total
