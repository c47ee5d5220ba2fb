"""Schedules: how long step t is, and the share of the weights that the L2 penalty leaves.

A step at rate r leaves exp(-r * l2) of every weight. Doing that to all weights at each step would
be dense work. So weights are stored divided by ``scale``, a function of the step count that every
worker computes for itself (after Shalev-Shwartz et al., "Pegasos", 2007, and Bottou's svmsgd, who
keep it in a variable). Steps count from 1. At the step `since`, the scale was last set to 1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hogwild.kernels.compile import inline

COMES_TO_REST = 0.5  # the part of an epoch, at its end, in which the intercept does
LEAST_LEFT = 0.01  # of the epoch, for the intercept's last steps
Rate = Callable[[Any, float], float]  # of a plan, at step t


@dataclass(frozen=True)
class Schedule:
    """A schedule: its formula, its rate, the scale of the weights, and whether epochs change it.

    `stored_rate` is rate / scale, by which stored weights change, in closed form: every step would
    wait for the division. `intercept_rate` is the rate of the intercept.
    """

    formula: str
    rate: Rate
    scale: Rate
    stored_rate: Rate
    intercept_rate: Rate
    backs_off: bool = False

    def __post_init__(self) -> None:
        for function in (self.rate, self.scale, self.stored_rate, self.intercept_rate):
            inline(function)


def _constant(formula: str, backs_off: bool = False) -> Schedule:
    return Schedule(
        formula,
        lambda plan, t: plan.eta0,
        lambda plan, t: math.exp(-plan.l2 * plan.eta0 * (t - plan.since)),
        lambda plan, t: plan.eta0 * math.exp(plan.l2 * plan.eta0 * (t - plan.since)),
        lambda plan, t: plan.eta0 * plan.intercept,
        backs_off,
    )


def _root_stored_rate(plan: Any, t: float) -> float:
    root = math.sqrt(t)
    return plan.eta0 / root * math.exp(2.0 * plan.l2 * plan.eta0 * (root - math.sqrt(plan.since)))


def _inverse_intercept_rate(plan: Any, t: float) -> float:
    # Every row moves the intercept, and no penalty holds it: it comes to rest as the epoch ends
    left = max(LEAST_LEFT, (plan.end - t) / plan.rows)
    rate = plan.eta0 / (1.0 + plan.l2 * plan.eta0 * t)
    return plan.intercept * rate * min(1.0, left / COMES_TO_REST)


SCHEDULES: dict[str, Schedule] = {
    "inverse": Schedule(
        "eta0 / (1 + l2 * eta0 * t)",
        lambda plan, t: plan.eta0 / (1.0 + plan.l2 * plan.eta0 * t),
        lambda plan, t: (1.0 + plan.l2 * plan.eta0 * plan.since) / (1.0 + plan.l2 * plan.eta0 * t),
        lambda plan, t: plan.eta0 / (1.0 + plan.l2 * plan.eta0 * plan.since),
        _inverse_intercept_rate,
    ),
    "constant": _constant("eta0"),
    "sqrt": Schedule(
        "eta0 / sqrt(t)",
        lambda plan, t: plan.eta0 / math.sqrt(t),
        lambda plan, t: math.exp(
            -2.0 * plan.l2 * plan.eta0 * (math.sqrt(t) - math.sqrt(plan.since))
        ),
        _root_stored_rate,
        lambda plan, t: plan.eta0 * plan.intercept / math.sqrt(t),
    ),
    "backoff": _constant("eta0 * beta^(epochs done)", backs_off=True),
}


@dataclass(frozen=True)
class EpochSchedule:
    """A schedule of factorization: its formula, the factor of eta0 in an epoch (counted from 1),
    and whether each row also has a rate that decreases with its steps."""

    formula: str
    factor: Callable[[int, float], float]
    adapts: bool = False


EPOCH_SCHEDULES: dict[str, EpochSchedule] = {
    "adaptive": EpochSchedule(
        "eta0 * beta^(epochs done) / sqrt(1 + sum of the row's squared slopes, scaled)",
        lambda epoch, beta: beta ** (epoch - 1),
        adapts=True,
    ),
    "constant": EpochSchedule("eta0", lambda epoch, beta: 1.0),
    "inverse": EpochSchedule("eta0 / epoch", lambda epoch, beta: 1.0 / epoch),
    "sqrt": EpochSchedule("eta0 / sqrt(epoch)", lambda epoch, beta: epoch**-0.5),
    "backoff": EpochSchedule("eta0 * beta^(epochs done)", lambda epoch, beta: beta ** (epoch - 1)),
}
