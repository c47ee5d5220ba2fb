"""Losses, errors and scores of rows for K heads. Nothing here changes weights."""

import math
from functools import cache
from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.compile import Kernel, inline
from hogwild.kernels.evaluate import POINTS, WEIGHTS
from hogwild.kernels.heads import scorer
from hogwild.kernels.primitives import U
from hogwild.kernels.targets import class_of, mark_class, mark_labels, weight_of
from hogwild.kernels.views import DOUBLES, FLOAT, FLOATS, UINT, Own, RowView, Shape, Span, type_of
from hogwild.learn.losses import CLASSES, LOSSES


@cache
def _scoring(register: int) -> Any:
    """(rows, row, weights, shape, own): scores with intercepts, for all heads."""
    score = scorer(register)

    @inline
    def score_heads(rows, row, weights, shape, own):
        score(rows, row, weights, shape, own.scores)
        intercepts = U(weights.size) - shape.width
        for head in range(U(0), shape.width):
            own.scores[head] += weights[intercepts + head]

    return score_heads


@inline
def _cross_entropy(rows, row, shape, own, parameter):
    top = own.scores[U(0)]
    for head in range(U(1), shape.end):
        top = max(top, own.scores[head])
    odds = 0.0
    for head in range(U(0), shape.end):
        odds += math.exp(np.float64(own.scores[head] - top))
    return math.log(odds) + np.float64(top - own.scores[class_of(rows, row, shape)])


COUPLED = {"cross_entropy": _cross_entropy}  # losses of all heads together


@cache
def _loss_of(loss: str) -> Any:
    """(rows, row, shape, own, parameter) -> the loss, given the scores; the signs are marked."""
    if loss in COUPLED:
        return COUPLED[loss]
    value, _ = LOSSES[loss].of_heads

    @inline
    def against_the_rest(rows, row, shape, own, parameter):
        total = 0.0
        for head in range(U(0), shape.width):
            y = np.float64(own.signs[head])  # 0 beyond the last head
            total += abs(y) * value(np.float64(own.scores[head]), y, parameter)
        return total

    return against_the_rest


@inline
def _class_errors(rows, row, shape, own):
    """Whether another class has the highest score; and 0."""
    best = U(0)
    for head in range(U(1), shape.end):
        if own.scores[head] > own.scores[best]:
            best = head
    return 1.0 if best != class_of(rows, row, shape) else 0.0, 0.0


@inline
def _label_errors(rows, row, shape, own):
    """The share of the labels that are wrong, and whether any is."""
    wrong = 0.0
    for head in range(U(0), shape.end):
        wrong += 1.0 if (own.scores[head] > 0) != (own.signs[head] > 0) else 0.0
    return wrong / np.float64(shape.end), 1.0 if wrong > 0.0 else 0.0


def _suffix(loss: str, kind: str, weighted: bool, register: int) -> str:
    return f"{loss}-{kind}-{register}{'-weighted' * weighted}"


@cache
def heads_evaluator(loss: str, kind: str, weighted: bool, register: int) -> Kernel:
    """The kernel (rows, span, weights, parameter, shape, own) -> weighted sums over rows.

    The sums of the losses of all heads, of wrong classes or shares of wrong labels, and of rows
    with any wrong label.
    """
    score, loss_of, row_weight = _scoring(register), _loss_of(loss), weight_of(weighted)
    mark = mark_class if kind == CLASSES else mark_labels
    errors = _class_errors if kind == CLASSES else _label_errors

    def evaluate(rows, span, weights, parameter, shape, own):
        total, first, second = 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            score(rows, row, weights, shape, own)
            weight = row_weight(rows, row, shape)
            mark(rows, row, shape, np.float32(1), own.signs)
            total += weight * loss_of(rows, row, shape, own, parameter)
            one, other = errors(rows, row, shape, own)
            mark(rows, row, shape, np.float32(-1), own.signs)
            first += weight * one
            second += weight * other
        return total, first, second

    kinds = type_of(RowView), type_of(Span), WEIGHTS, FLOAT, type_of(Shape), type_of(Own)
    name = f"evaluate-heads-{_suffix(loss, kind, weighted, register)}"
    return Kernel(evaluate, types.UniTuple(FLOAT, 3)(*kinds), name=name)


@cache
def heads_comparer(loss: str, kind: str, weighted: bool, register: int) -> Kernel:
    """The kernel that writes the losses of rows with the first weights, then the second, ...

    A loss is summed over the heads, times the row's weight. Only the first `points` weights count.
    """
    score, loss_of, row_weight = _scoring(register), _loss_of(loss), weight_of(weighted)
    mark = mark_class if kind == CLASSES else mark_labels

    def compare(rows, span, weights, points, parameter, shape, own, out):
        begin, end = span
        for row in range(begin, end):
            weight = row_weight(rows, row, shape)
            mark(rows, row, shape, np.float32(1), own.signs)
            for n in range(points):
                score(rows, row, weights[n], shape, own)
                place = n * (end - begin) + row - begin
                out[place] = weight * loss_of(rows, row, shape, own, parameter)
            mark(rows, row, shape, np.float32(-1), own.signs)

    arrays = types.UniTuple(WEIGHTS, POINTS)
    kinds = type_of(RowView), type_of(Span), arrays, UINT, FLOAT, type_of(Shape), type_of(Own)
    name = f"compare-heads-{_suffix(loss, kind, weighted, register)}"
    return Kernel(compare, types.void(*kinds, DOUBLES), name=name)


@cache
def heads_scores(register: int) -> Kernel:
    """The kernel that writes the scores of rows, `shape.end` of them for each."""
    score = _scoring(register)

    def write_scores(rows, span, weights, shape, own, out):
        for row in range(span.begin, span.end):
            score(rows, row, weights, shape, own)
            for head in range(U(0), shape.end):
                out[shape.end * (row - span.begin) + head] = own.scores[head]

    kinds = type_of(RowView), type_of(Span), WEIGHTS, type_of(Shape), type_of(Own), FLOATS
    return Kernel(write_scores, types.void(*kinds), name=f"scores-heads-{register}")
