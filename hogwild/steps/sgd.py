"""Stochastic gradient descent with an L2 penalty, one weight for each column.

    w <- (1 - rate l2) w;  score = <w, x> + b
    w <- w - rate slope(score, target) x;  b <- b - (rate of b) slope

To decay every weight at each step would be dense work. So weights are stored divided by a scale,
which is the share that the penalty has left of them (see learn/schedules.py).

For a loss as steep as exp, these steps would overshoot at any useful learning rate. The steps of
such a loss are implicit (Toulis and Airoldi 2017): they take the slope at the score after the step.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hogwild.kernels.compile import inline
from hogwild.kernels.rows import add_to_columns, dot_with, squared_length
from hogwild.kernels.targets import target_of
from hogwild.learn.losses import LOSSES, adder
from hogwild.learn.schedules import SCHEDULES
from hogwild.steps.step import Step

LEAST_PULL = 1e-12  # of a step on its row's score, which is divided by it


class Plan(NamedTuple):
    """The numbers of an epoch."""

    eta0: float
    l2: float
    since: float  # the step at which the weights were last stored whole
    intercept: float  # the intercept's rate over that of the weights; 0: there is none
    parameter: float  # of the loss
    end: float  # the step at which the epoch ends
    rows: float  # of an epoch


@cache
def sgd(loss: str, schedule: str, weighted: bool) -> Step:
    """The step for a loss and a schedule, with or without weights of the rows."""
    slope_of, add_of = _slope_in_step(loss, schedule), adder(loss, weighted)
    known = SCHEDULES[schedule]
    scale_of, stored_rate_of = known.scale, known.stored_rate
    intercept_rate_of = known.intercept_rate
    target_and_weight = target_of(weighted)

    @inline
    def look(task, row, stored, t, sums):
        rows, plan, own = task.rows, task.plan, task.own
        target, weight = target_and_weight(rows, row)
        dot = np.float32(scale_of(plan, t)) * dot_with(rows, row, stored.read)
        score = np.float64(dot + stored.bias[0])
        own.slopes[0] = weight * slope_of(task, row, t, score, target, weight)
        return add_of(sums, weight, score, target, plan.parameter)

    @inline
    def write(task, row, stored, t):
        plan, slope = task.plan, task.own.slopes[0]
        if slope != 0.0:
            step = np.float32(-slope * stored_rate_of(plan, t))
            add_to_columns(task.rows, row, step, stored.write)
            stored.moved[0] -= np.float32(slope * intercept_rate_of(plan, t))

    name = f"sgd-{loss}-{schedule}" + ("-weighted" if weighted else "")
    return Step(name, look, write, known.rate, scale_of, Plan, targets=1 + weighted)


def _slope_in_step(loss: str, schedule: str) -> Any:
    """(task, row, t, score, target, weight) -> the slope that the step of a row takes."""
    slope, after = LOSSES[loss].slope, LOSSES[loss].after
    rate_of, intercept_rate_of = SCHEDULES[schedule].rate, SCHEDULES[schedule].intercept_rate
    if after is None:

        @inline
        def explicit(task, row, t, score, target, weight):
            return slope(score, target, task.plan.parameter)

        return explicit

    @inline
    def implicit(task, row, t, score, target, weight):
        of_weights = rate_of(task.plan, t) * np.float64(squared_length(task.rows, row))
        pull = max(LEAST_PULL, weight * (of_weights + intercept_rate_of(task.plan, t)))
        return (score - after(score, target, pull)) / pull

    return implicit
