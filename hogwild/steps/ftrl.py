"""FTRL-proximal: a learning rate for each weight; with an L1 penalty, many weights are zero.

    w_j = 0 where |z_j| <= l1 h_j, else -(z_j - sign(z_j) l1 h_j) / (beta / alpha + s_j + l2 h_j)
    g_j = slope(score, target) x_j,   sigma_j = g_j^2 / (2 r_j + |g_j|) / alpha
    z_j <- z_j + g_j - sigma_j w_j,   s_j <- s_j + sigma_j,   r_j = beta + alpha s_j
    c_j <- c_j + 1,   h_j = rows before this epoch + c_j d_j,   one row in d_j holds the column j

The penalties of all rows so far apply (McMahan, "Follow-the-regularized-leader and mirror descent",
2011). h_j is the number of these rows. It grows by d_j with each row that holds the column, and is
exact at the end of an epoch. The rate of a weight is alpha / r_j. Here r_j is about
sqrt(beta^2 + sum of g_j^2), as in McMahan et al., "Ad click prediction", 2013. sigma_j is 0.79 to 1
times theirs, and needs no root.

McMahan et al. store the sum of squares, and their h is the number of rows. That fails for copies
that learn in parallel. The copies add more sigma w to z than the common sum of squares accounts
for, so weights get too large. Also, z lacks the rows that other copies have not merged yet while h
counts all rows, so weights get too small. Here, the numbers that a copy reads for a column are
always consistent.

The intercept is a column with the value `intercept`, without penalty.

The normalized variant takes the steps of columns that were divided by their typical size a_j (after
Ross, Mineiro and Langford, "Normalized online learning", 2013): alpha / a_j replaces alpha, and
beta a_j replaces beta. Penalties and weights remain those of the original columns.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types

from hogwild.kernels.compile import Kernel, always_inline, inline, kernel
from hogwild.kernels.primitives import U, writable
from hogwild.kernels.targets import target_of
from hogwild.kernels.views import DOUBLES, FLOATS, RowView, Span, type_of
from hogwild.learn.losses import LOSSES, adder
from hogwild.steps.step import Step

# Places of the numbers stored for a column; the size of its values only if steps are normalized
Z, S, C, D, SIZE = (U(lane) for lane in range(5))


class Plan(NamedTuple):
    """The numbers of an epoch."""

    alpha: float
    beta: float
    l2: float  # and what else `Penalty` has, in its order
    l1: float
    since: float  # rows before this epoch
    growth: float  # of r^2 in a step, for a column that many rows share
    square: float  # of a typical value; 1 unless normalized
    intercept: float  # the value of its column; 0: there is none
    parameter: float  # of the loss


@inline
def rate_at(plan, t):
    """The rate, at step t, of the weight of a column that many rows share."""
    return plan.alpha / (plan.square * math.sqrt(plan.beta * plan.beta + plan.growth * t))


@inline
def unscaled(plan, t):
    """Stored numbers are never scaled."""
    return 1.0


@inline
def same_rates(stored, place, plan):
    """alpha and beta, of any column."""
    return plan.alpha, plan.beta


@inline
def rates_by_size(stored, place, plan):
    """alpha and beta of the column at a place, by the size of its values."""
    size = np.float64(stored[place + SIZE])
    return plan.alpha / size, plan.beta * size


@inline
def weight_of(stored, place, plan, rates, h):
    """The weight for the numbers stored at a place, after the penalties of h rows."""
    alpha, beta = rates
    z, threshold = np.float64(stored[place + Z]), plan.l1 * h
    s = beta / alpha + np.float64(stored[place + S])
    return (max(-threshold, min(z, threshold)) - z) / (s + plan.l2 * h)


@inline
def rows_of(stored, place, plan):
    """The number of rows whose penalties apply to a weight."""
    return plan.since + np.float64(stored[place + C]) * np.float64(stored[place + D])


@inline
def add(gradient, weight, read, write, place, rates):
    """Adds a gradient to the numbers stored at a place."""
    alpha, beta = rates
    before = read[place + S]
    r = beta + alpha * np.float64(before)
    # Rounded as s is in single precision: z must hold the same sum of sigmas as s
    more = gradient * gradient / (alpha * (r + r + abs(gradient)))
    sigma = np.float32(before + more) - before
    write[place + Z] += np.float32(gradient - np.float64(sigma) * weight)  # races where shared
    write[place + S] += sigma


def width_of(normalized: bool) -> int:
    """Numbers stored for a column."""
    return 5 if normalized else 4


@cache
def ftrl(loss: str, weighted: bool, normalized: bool) -> Step:
    """The step for a loss, with or without weights of the rows."""
    rates_of = rates_by_size if normalized else same_rates
    width = U(width_of(normalized))
    slope_of, add_of = LOSSES[loss].slope, adder(loss, weighted)
    target_and_weight = target_of(weighted)

    @always_inline
    def look(task, row, stored, t, sums):
        rows, plan = task.rows, task.plan
        target, weight = target_and_weight(rows, row)
        rates = rates_of(stored.bias, U(0), plan)
        score = plan.intercept * weight_of(stored.bias, U(0), plan, rates, 0.0)
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            place = width * U(rows.columns[k])
            if place >= U(stored.read.size):  # never true; without it LLVM uses gathers, which wait
                break  # for all writes of the previous row and take three times as long
            h, rates = rows_of(stored.read, place, plan), rates_of(stored.read, place, plan)
            now = weight_of(stored.read, place, plan, rates, h)
            score += now * np.float64(rows.values[k])
        task.own.slopes[0] = weight * slope_of(score, target, plan.parameter)
        return add_of(sums, weight, score, target, plan.parameter)

    @always_inline
    def write(task, row, stored, t):
        rows, plan, slope = task.rows, task.plan, task.own.slopes[0]
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            place = width * U(rows.columns[k])
            if slope != 0.0:
                h, rates = rows_of(stored.read, place, plan), rates_of(stored.read, place, plan)
                weight = weight_of(stored.read, place, plan, rates, h)
                gradient = slope * np.float64(rows.values[k])
                add(gradient, weight, stored.read, stored.write, place, rates)
            stored.write[place + C] += np.float32(1)
        if slope != 0.0:
            rates = rates_of(stored.bias, U(0), plan)
            weight = weight_of(stored.bias, U(0), plan, rates, 0.0)
            add(slope * plan.intercept, weight, stored.bias, stored.moved, U(0), rates)

    name = f"ftrl-{loss}" + "-weighted" * weighted + "-normalized" * normalized
    return Step(name, look, write, rate_at, unscaled, Plan, int(width), targets=1 + weighted)


@cache
def finisher(normalized: bool) -> Kernel:
    """The kernel for the weights of some columns after an epoch; the last is the intercept.

    The rows of the epoch now count as earlier ones.
    """
    rates_of = rates_by_size if normalized else same_rates
    width = U(width_of(normalized))

    def finish(stored, plan, span, weights):
        last = U(weights.size) - U(1)
        for column in range(span.begin, span.end):
            place = width * column
            stored[place + C] = np.float32(0)
            h = 0.0 if column == last else plan.since
            weight = weight_of(stored, place, plan, rates_of(stored, place, plan), h)
            weights[column] = np.float32(weight * plan.intercept if column == last else weight)

    signature = types.void(FLOATS, type_of(Plan), type_of(Span), FLOATS)
    return Kernel(finish, signature, name="finish-ftrl" + "-normalized" * normalized)


@kernel(types.void(type_of(RowView), type_of(Span), writable(types.uint32), DOUBLES))
def count(rows, span, counts, squares):
    """Counts the rows that hold each column, and adds up the squares of its values."""
    for row in range(span.begin, span.end):
        for k in range(U(rows.begins[row]), U(rows.ends[row])):
            column, value = U(rows.columns[k]), np.float64(rows.values[k])
            counts[column] += np.uint32(1)
            squares[column] += value * value
