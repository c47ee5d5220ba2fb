"""FTRL-proximal: an L1 penalty with weights that are exactly zero, in every loop.

    w_j = 0 where |z_j| <= l1 h_j, else -(z_j - sign(z_j) l1 h_j) / (beta / alpha + s_j + l2 h_j)
    g_j = slope(score, target) x_j,   sigma_j = g_j^2 / (2 r_j + |g_j|) / alpha
    z_j <- z_j + g_j - sigma_j w_j,   s_j <- s_j + sigma_j,   r_j = beta + alpha s_j
    c_j <- c_j + 1,   h_j = rows before this epoch + c_j d_j,   one row in d_j holds the column j

The penalties of all rows so far apply (McMahan, "Follow-the-regularized-leader and mirror descent",
2011). h_j is their number: it grows by d_j with each row that holds the column, and is exact at the
end of an epoch. The rate of a weight is alpha / r_j, where r_j is about sqrt(beta^2 + sum of g_j^2)
as in McMahan et al., "Ad click prediction", 2013; sigma_j is 0.79 to 1
times theirs, without a root.

They store that sum of squares, and the number of rows is h. But copies that learn in parallel add
more sigma w to z than a common sum of squares stands for: weights get too large. And z lacks the
rows that other copies have not merged yet, while all rows count: weights get too small. Here, the
numbers that a copy reads for a column always belong together.

The intercept is a column with the value `intercept`, without penalty.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types

from hogwild.kernels.compile import always_inline, inline, kernel
from hogwild.kernels.primitives import U, writable
from hogwild.kernels.targets import target_of
from hogwild.kernels.views import FLOATS, RowView, Span, type_of
from hogwild.learn.losses import LOSSES, adder
from hogwild.steps.step import Step

Z, S, C, D = (U(lane) for lane in range(4))  # places of what is stored for a column
WIDTH = 4


class Plan(NamedTuple):
    """The numbers of an epoch."""

    alpha: float
    beta: float
    l2: float  # and what else `Penalty` has, in its order
    l1: float
    since: float  # rows before this epoch
    growth: float  # of r^2 in a step, for a column that many rows share
    intercept: float  # the value of its column; 0: there is none
    parameter: float  # of the loss


@inline
def rate_at(plan, t):
    """The rate, at step t, of the weight of a column that many rows share."""
    return plan.alpha / math.sqrt(plan.beta * plan.beta + plan.growth * t)


@inline
def unscaled(plan, t):
    """Stored numbers are never scaled."""
    return 1.0


@inline
def weight_of(stored, place, plan, h):
    """The weight for the numbers stored at a place, after the penalties of h rows."""
    z, threshold = np.float64(stored[place + Z]), plan.l1 * h
    s = plan.beta / plan.alpha + np.float64(stored[place + S])
    return (max(-threshold, min(z, threshold)) - z) / (s + plan.l2 * h)


@inline
def rows_of(stored, place, plan):
    """The number of rows whose penalties apply to a weight."""
    return plan.since + np.float64(stored[place + C]) * np.float64(stored[place + D])


@inline
def add(gradient, weight, read, write, place, plan):
    """Adds a gradient to the numbers stored at a place."""
    before = read[place + S]
    r = plan.beta + plan.alpha * np.float64(before)
    # As far as single precision keeps it: z must hold the same sum of sigmas as s
    more = gradient * gradient / (plan.alpha * (r + r + abs(gradient)))
    sigma = np.float32(before + more) - before
    write[place + Z] += np.float32(gradient - np.float64(sigma) * weight)  # races where shared
    write[place + S] += sigma


@cache
def ftrl(loss: str, weighted: bool) -> Step:
    """The step for a loss, with or without weights of the rows."""
    slope_of, add_of = LOSSES[loss].slope, adder(loss, weighted)
    target_and_weight = target_of(weighted)

    @always_inline
    def look(task, row, stored, t, sums):
        rows, plan = task.rows, task.plan
        target, weight = target_and_weight(rows, row)
        score = plan.intercept * weight_of(stored.bias, U(0), plan, 0.0)
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            place = U(WIDTH) * U(rows.columns[k])
            if place >= U(stored.read.size):  # never true; without it LLVM uses gathers, which wait
                break  # for all writes of the previous row and take three times as long
            now = weight_of(stored.read, place, plan, rows_of(stored.read, place, plan))
            score += now * np.float64(rows.values[k])
        task.own.slopes[0] = weight * slope_of(score, target, plan.parameter)
        return add_of(sums, weight, score, target, plan.parameter)

    @always_inline
    def write(task, row, stored, t):
        rows, plan, slope = task.rows, task.plan, task.own.slopes[0]
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            place = U(WIDTH) * U(rows.columns[k])
            if slope != 0.0:
                h = rows_of(stored.read, place, plan)
                weight = weight_of(stored.read, place, plan, h)
                gradient = slope * np.float64(rows.values[k])
                add(gradient, weight, stored.read, stored.write, place, plan)
            stored.write[place + C] += np.float32(1)
        if slope != 0.0:
            weight = weight_of(stored.bias, U(0), plan, 0.0)
            add(slope * plan.intercept, weight, stored.bias, stored.moved, U(0), plan)

    name = f"ftrl-{loss}" + ("-weighted" if weighted else "")
    return Step(name, look, write, rate_at, unscaled, Plan, WIDTH, targets=1 + weighted)


@kernel(types.void(FLOATS, type_of(Plan), type_of(Span), FLOATS))
def finish(stored, plan, span, weights):
    """The weights of some columns after an epoch; the last is the intercept.

    The rows of the epoch now count as earlier ones.
    """
    last = U(weights.size) - U(1)
    for column in range(span.begin, span.end):
        place = U(WIDTH) * column
        stored[place + C] = np.float32(0)
        h = 0.0 if column == last else plan.since
        weight = weight_of(stored, place, plan, h)
        weights[column] = np.float32(weight * plan.intercept if column == last else weight)


@kernel(types.void(type_of(RowView), type_of(Span), writable(types.uint32)))
def count(rows, span, counts):
    """Counts the rows that hold each column."""
    for row in range(span.begin, span.end):
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            counts[U(rows.columns[k])] += np.uint32(1)
