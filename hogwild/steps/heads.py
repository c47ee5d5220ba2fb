"""Stochastic gradient descent for K heads at once: one against the rest, or softmax.

    w_h <- (1 - rate l2) w_h;  s_h = <w_h, x> + b_h                       for each head h
    w_h <- w_h - rate g_h x;   b_h <- b_h - (rate of b) g_h

One against the rest: g_h = slope(s_h, 1 if the row belongs to h, else -1), for any loss of two
classes. Softmax with cross-entropy: g_h = p_h - [h is the row's class], p_h = exp(s_h) / sum of
exp(s_k). Weights are stored as in steps/sgd.py.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from hogwild.kernels.compile import always_inline
from hogwild.kernels.exponential import exp
from hogwild.kernels.heads import head_adder, scorer
from hogwild.kernels.primitives import U
from hogwild.kernels.targets import class_of, mark_class, mark_labels, weight_of
from hogwild.learn.losses import CLASSES, LOSSES
from hogwild.learn.schedules import SCHEDULES
from hogwild.steps.sgd import Plan
from hogwild.steps.step import Step

FARTHEST = 600.0  # above the score of the row's class: K exponentials of it do not overflow


@cache
def heads(loss: str, kind: str, schedule: str, weighted: bool, register: int) -> Step:
    """The step for a loss, a kind of targets and a schedule, with or without row weights."""
    learned, known = SCHEDULES[schedule], (weighted, register)
    rate, scale = learned.rate, learned.scale
    look = COUPLED[loss](scale, *known) if loss in COUPLED else _against(loss, kind, scale, *known)
    name = f"heads-{loss}-{kind}-{schedule}-{register}{'-weighted' * weighted}"
    write = _writing(learned.stored_rate, learned.intercept_rate, register)
    return Step(name, look, write, rate, scale, Plan, width=0, targets=0)


def _against(loss: str, kind: str, scale_of: Any, weighted: bool, register: int) -> Any:
    """The `look` of a step with each head against the rest.

    Losses are also summed by register, so the sums do not depend on how workers share the heads.
    """
    value, slope = LOSSES[loss].of_heads
    score, row_weight = scorer(register), weight_of(weighted)
    mark = mark_class if kind == CLASSES else mark_labels

    @always_inline
    def look(task, row, stored, t, sums):
        rows, own, shape, parameter = task.rows, task.own, task.shape, task.plan.parameter
        scores, signs = own.scores, own.signs
        scale = np.float32(scale_of(task.plan, t))
        score(rows, row, stored.read, shape, scores)
        weight = row_weight(rows, row, shape)
        mark(rows, row, shape, np.float32(1), signs)
        total, product = sums
        for first in range(shape.first, shape.end, U(register)):
            of_register = 0.0
            for head in range(first, first + U(register)):
                z = np.float64(scale * scores[head] + stored.bias[head])
                y = np.float64(signs[head])  # 0 beyond the last head: neither loss nor slope
                of_register += abs(y) * value(z, y, parameter)
                scores[head] = np.float32(weight * slope(z, y, parameter))
            own.slopes[first // U(register)] += weight * of_register
            total += weight * of_register
        mark(rows, row, shape, np.float32(-1), signs)
        return total, product

    return look


def _softmax(scale_of: Any, weighted: bool, register: int) -> Any:
    """The `look` of a step with all heads together. Scores are relative to the true class's."""
    score, row_weight = scorer(register), weight_of(weighted)

    @always_inline
    def look(task, row, stored, t, sums):
        rows, own, shape = task.rows, task.own, task.shape
        scores, odds, signs = own.scores, own.slopes, own.signs
        scale = np.float32(scale_of(task.plan, t))
        score(rows, row, stored.read, shape, scores)
        weight = row_weight(rows, row, shape)
        true = class_of(rows, row, shape)
        of_true = scale * scores[true] + stored.bias[true]
        all_odds = 0.0
        for head in range(U(0), shape.width):
            z = np.float64(scale * scores[head] + stored.bias[head] - of_true)
            odds[head] = np.float64(abs(signs[head])) * exp(min(z, FARTHEST))
            all_odds += odds[head]
        factor = weight / all_odds
        for head in range(U(0), shape.width):
            scores[head] = np.float32(factor * odds[head])
        scores[true] -= np.float32(weight)
        total, product = sums
        return total + weight * math.log(all_odds), product

    return look


# The `look` of each loss of all heads together
COUPLED = {"cross_entropy": _softmax}


def _writing(stored_rate_of: Any, intercept_rate_of: Any, register: int) -> Any:
    add = head_adder(register)

    @always_inline
    def write(task, row, stored, t):
        plan, shape, slopes = task.plan, task.shape, task.own.scores
        step, of_bias = np.float32(-stored_rate_of(plan, t)), np.float32(intercept_rate_of(plan, t))
        for first in range(shape.first, shape.end, U(register)):
            for head in range(first, first + U(register)):
                stored.moved[head] -= slopes[head] * of_bias
                slopes[head] *= step
        add(task.rows, row, stored.write, shape, slopes)

    return write
