"""Smoothed losses: where the slope of the loss would jump, it rises over a width instead.

    smooth(score) = max over a of e(a) - a * score - width / 2 * (a - center)^2

Each row has a center, between the bounds of its dual variable. See `learn/duals.py` for e(a).
"""

from functools import cache
from typing import Any

from numba import types

from hogwild.kernels.compile import Kernel, inline
from hogwild.kernels.passes import READ, ROWS, SPAN, add_to_planes
from hogwild.kernels.targets import target_of
from hogwild.kernels.views import DOUBLES, FLOAT
from hogwild.learn.duals import DUALS
from hogwild.learn.losses import LOSSES


def point_of(loss: str) -> Any:
    """(score, target, center, width, parameter) -> a, the smooth loss and its curvature."""
    known = DUALS[loss]
    best, value, bounds, flat = known.best, known.value, known.bounds, known.flat

    @inline
    def point(score, target, center, width, parameter):
        least, most = bounds(target, parameter)
        a = best(score, target, center, width, parameter)
        smooth = value(a, target, parameter) - a * score - 0.5 * width * (a - center) ** 2
        moves = least < a < most and not (flat and a == 0.0)
        return a, smooth, 1.0 / width if moves else 0.0

    return point


@cache
def gradient(loss: str, weighted: bool) -> Kernel:
    """The kernel (rows, span, scores, bias, centers, width, parameter, duals, seconds, out).

    The kernel returns weighted sums over rows: of the smooth losses, of the losses, of e(a), of
    slope * score, of the slopes and of the second derivatives. The kernel writes a and the second
    derivative of each row. As `hogwild.kernels.passes.gradient`, it adds to the planes of columns.
    """
    loss_of, point, target_and_weight = LOSSES[loss].value, point_of(loss), target_of(weighted)
    value = DUALS[loss].value

    def add(rows, span, scores, bias, centers, width, parameter, duals, seconds, out):
        smooths, losses, values, products, slopes, curvature = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            score = scores[row] + bias
            a, smooth, second = point(score, target, centers[row], width, parameter)
            duals[row] = a
            second *= weight
            slope = -weight * a
            seconds[row] = second
            smooths += weight * smooth
            losses += weight * loss_of(score, target, parameter)
            values += weight * value(a, target, parameter)
            products += slope * score
            slopes += slope
            curvature += second
        for row in range(span.begin, span.end):
            _, weight = target_and_weight(rows, row)
            slope = -weight * duals[row]
            if slope != 0.0 or seconds[row] != 0.0:
                add_to_planes(rows, row, slope, seconds[row], out)
        return smooths, losses, values, products, slopes, curvature

    signature = types.UniTuple(FLOAT, 6)(
        ROWS, SPAN, READ, FLOAT, READ, FLOAT, FLOAT, DOUBLES, DOUBLES, DOUBLES
    )
    return Kernel(add, signature, name=f"smooth-gradient-{loss}{'-weighted' * weighted}")


@cache
def along(loss: str, weighted: bool) -> Kernel:
    """The kernel `hogwild.kernels.passes.along` of the smooth loss, with (centers, width) given."""
    point, target_and_weight = point_of(loss), target_of(weighted)

    def sums(rows, span, scores, changes, step, bias, share, turn, centers, width, parameter):
        losses, first, second = 0.0, 0.0, 0.0
        for row in range(span.begin, span.end):
            target, weight = target_and_weight(rows, row)
            score = scores[row] + step * changes[row] + bias
            change = share * changes[row] + turn
            a, smooth, curvature = point(score, target, centers[row], width, parameter)
            losses += weight * smooth
            first -= weight * a * change
            second += weight * curvature * change * change
        return losses, first, second

    signature = types.UniTuple(FLOAT, 3)(ROWS, SPAN, READ, READ, *[FLOAT] * 4, READ, FLOAT, FLOAT)
    return Kernel(sums, signature, name=f"smooth-along-{loss}{'-weighted' * weighted}")
