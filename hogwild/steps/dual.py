"""Dual coordinate ascent: a step sets the dual variable of a row to its best value.

    w = c * sum of weight_i a_i x_i,   c = 1 / (l2 n)
    score = <w, x> + b;   new = best(score, a, k = c weight |x|^2);   w <- w + c weight (new - a) x

Workers on copies make similar changes, and together may overshoot. If they did, each worker moves
its own copy farther than the change that it merges, by a factor of up to the number of copies. That
shortens its steps (Ma et al., "Adding vs. averaging in distributed primal-dual optimization",
2015). The intercept, which all rows share, always moves in this way.

The intercept is a column with the value B, whose weight starts from a multiplier: b = multiplier +
c B^2 * sum of weight_i a_i (the method of multipliers on sum of weight_i a_i = 0).

In the first pass c grows: after t rows it is 1 / (l2 t). The step is then that of stochastic
gradient descent (Shalev-Shwartz and Zhang, "Stochastic dual coordinate ascent methods for
regularized loss minimization", 2013). The stored weights are always the sum with the final c.

A row is put aside if its variable stays at a bound and is farther from moving than any row was from
its optimum in the pass before. Its squared length is then stored with a minus sign. Rows of weight
0 are put aside for good.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compile import inline
from hogwild.kernels.primitives import U
from hogwild.kernels.rows import add_to_columns, dot_and_square_with, dot_with
from hogwild.kernels.targets import target_of
from hogwild.learn.duals import DUALS
from hogwild.steps.step import Step

# The state of a row: its dual variable; its squared length (0 until the first visit, below 0 while
# the row is put aside); and how far the variable was from its optimum
A, Q, PULL = (U(place) for place in range(3))
STATE = 3
# In the scratch of a worker: how the weights change, the new dual variable, and the factors by
# which the weights, and the intercept, move farther on its own copy
CHANGE, NEW, AHEAD, INTERCEPT_AHEAD = (U(place) for place in range(4))
LEAST = 1e-30  # a squared length, times c: an empty row has no other


class Plan(NamedTuple):
    """The numbers of a pass."""

    c: float
    growing: float  # the rows over which c grows; 0: it does not
    limit: float  # rows that are farther than this from moving are put aside
    lengthened: float  # factor of squared lengths, so that workers do not overshoot together
    typical: float  # squared length
    intercept: float  # B^2; 0: there is none
    parameter: float  # of the loss


@inline
def grown(plan, t):
    """How much larger c is now than at the end of the first pass."""
    return plan.growing / t if t < plan.growing else 1.0


@inline
def reach(plan, t):
    """The longest step, over the slope of a loss of curvature 1."""
    c = plan.c * grown(plan, t)
    return c / (1.0 + plan.typical * c)


@inline
def whole(plan, t):
    """What is stored are the weights."""
    return 1.0


@cache
def dual(loss: str, weighted: bool) -> Step:
    """The step for a loss, with or without weights of the rows."""
    known = DUALS[loss]
    best, excess = known.best, known.excess
    target_and_weight, put_aside = target_of(weighted), putting_aside(loss)

    @inline
    def look(task, row, stored, t, sums):
        rows, plan, state, place = task.rows, task.plan, stored.state, U(STATE) * row
        task.own.slopes[CHANGE] = 0.0
        q = np.float64(state[place + Q])
        if q < 0.0:
            return sums
        if q == 0.0:
            dot, square = dot_and_square_with(rows, row, stored.read)
            q = np.float64(square) + LEAST
            state[place + Q] = np.float32(q)
        else:
            dot = dot_with(rows, row, stored.read)
        target, weight = target_and_weight(rows, row)
        if weight == 0.0:
            state[place + Q] = np.float32(-q)
            return sums
        more = grown(plan, t)
        score = more * np.float64(dot + stored.bias[0])
        a = np.float64(state[place])
        q = q * plan.lengthened + plan.intercept * task.own.slopes[INTERCEPT_AHEAD]
        k = max(LEAST, plan.c * weight * q * more)
        new = np.float64(np.float32(best(score, target, a, k, plan.parameter)))
        put_aside(plan, state, place, score, target, new == a)
        task.own.slopes[CHANGE] = plan.c * weight * (new - a)
        task.own.slopes[NEW] = new
        total, product = sums
        return total + weight * excess(score, target, a, plan.parameter), product

    @inline
    def write(task, row, stored, t):
        change = task.own.slopes[CHANGE]
        if change != 0.0:
            ahead, intercept_ahead = task.own.slopes[AHEAD], task.own.slopes[INTERCEPT_AHEAD]
            add_to_columns(task.rows, row, np.float32(change * ahead), stored.write)
            stored.moved[0] += np.float32(change * intercept_ahead * task.plan.intercept)
            stored.state[U(STATE) * row] = np.float32(task.own.slopes[NEW])

    name = f"dual-{loss}" + ("-weighted" if weighted else "")
    targets = 1 + weighted
    return Step(name, look, write, reach, whole, Plan, 1, targets, STATE, exact=True)


def putting_aside(loss: str) -> Any:
    """(plan, state, place, score, target, stays) notes how far a row is from its optimum.

    It puts the row aside if the variable keeps its value and is far from moving.
    """
    pull_of = DUALS[loss].pull
    if pull_of is None:

        @inline
        def nothing(plan, state, place, score, target, stays):
            pass

        return nothing

    @inline
    def put_aside(plan, state, place, score, target, stays):
        pull = pull_of(score, target, np.float64(state[place]), plan.parameter)
        if stays and pull > plan.limit:
            state[place + Q] = -state[place + Q]
            pull = 0.0
        state[place + PULL] = np.float32(0.0 if stays else pull)

    return put_aside


NO_LIMIT = math.inf
