"""Dual forms of losses, against plain minimizations."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from hogwild.learn.duals import DUALS, margin_after, sigmoid_of_minus
from hogwild.learn.losses import LOSSES, SIGNS
from tests import reference
from tests.combinations import each

FAR = 30.0
PARAMETERS = {"huber": 0.7, "epsilon_insensitive": 0.3, "quantile": 0.2}


def targets_of(loss):
    return (-1.0, 1.0) if SIGNS in LOSSES[loss].kinds else (-1.3, 0.4, 2.0)


def range_of(loss, target):
    """The bounds of a dual variable, which may be infinite, as numbers."""
    least, most = DUALS[loss].bounds(target, PARAMETERS.get(loss, 0.0))
    return max(least, -FAR), min(most, FAR)


def cost_of(loss, score, target, a, k, new):
    value = DUALS[loss].value(new, target, PARAMETERS.get(loss, 0.0))
    return score * (new - a) + k / 2 * (new - a) ** 2 - value


@each(loss=DUALS, k=[1e-3, 0.3, 5.0, 2000.0], at=[0.0, 0.25, 0.9, 1.0])
def test_the_best_dual_variable_is_the_best_of_all(loss, k, at):
    known, parameter = DUALS[loss], PARAMETERS.get(loss, 0.0)
    for target in targets_of(loss):
        least, most = range_of(loss, target)
        a = min(most, max(least, (2 * at - 1) if least < 0 < most else target * at))
        for score in (-3.0, -0.4, 0.0, 0.7, 1.0, 6.0):
            cost = partial(cost_of, loss, score, target, a, k)
            found = known.best(score, target, a, k, parameter)
            assert least - 1e-12 <= found <= most + 1e-12
            best = minimize_scalar(cost, bounds=(least, most), options={"xatol": 1e-12})
            tried = min([best.fun, cost(least), cost(most), cost(a)])
            # A logistic step is a few rounds of Newton's method: nearly as good
            share = 0.01 if loss == "logistic" else 1e-9
            assert cost(found) <= tried + share * abs(tried - cost(a)) + 1e-9


@pytest.mark.parametrize("loss", DUALS)
def test_the_value_is_the_least_of_loss_and_line(loss):
    parameter = PARAMETERS.get(loss, 0.0)
    for target in targets_of(loss):
        least, most = range_of(loss, target)
        for a in np.linspace(least, most, 7)[1:-1] if loss == "logistic" else [least, most / 3]:
            scores = np.linspace(-60, 60, 120_001)
            costs = reference.value(loss, scores, target, parameter) + a * scores
            found = DUALS[loss].value(a, target, parameter)
            assert found <= costs.min() + 1e-6  # a lower bound of the optimum depends on it
            assert found >= costs.min() - 1e-3


@pytest.mark.parametrize("loss", DUALS)
def test_outside_its_bounds_a_dual_variable_has_no_value(loss):
    for target in targets_of(loss):
        for bound, outwards in zip(
            DUALS[loss].bounds(target, PARAMETERS.get(loss, 0.0)), (-1, 1), strict=True
        ):
            if np.isfinite(bound):
                score = -1e6 * outwards
                a = bound + 0.01 * outwards
                cost = reference.value(loss, score, target, PARAMETERS.get(loss, 0.0)) + a * score
                assert cost < -1000


@pytest.mark.parametrize("loss", DUALS)
def test_a_row_at_its_optimum_adds_nothing_to_the_gap(loss):
    known, parameter = DUALS[loss], PARAMETERS.get(loss, 0.0)
    for target in targets_of(loss):
        for score in (-2.0, -0.2, 0.3, 0.97, 4.0):
            a = -float(reference.slope(loss, score, target, parameter))
            assert abs(known.excess(score, target, a, parameter)) < 1e-12
            if loss != "logistic":  # whose excess is an estimate
                other = 0.5 * sum(range_of(loss, target))
                exact = reference.value(loss, score, target, parameter) + other * score
                exact = float(exact) - known.value(other, target, parameter)
                assert known.excess(score, target, other, parameter) == pytest.approx(exact)


def test_long_logistic_steps_end_at_the_root():
    random = np.random.default_rng(0)
    for _ in range(2000):
        margin, k = random.normal(0, 5), 10 ** random.uniform(-3, 6)
        t = random.choice([0.0, 1.0, random.uniform(), 10 ** random.uniform(-30, 0)])
        found = margin_after(margin, t, k)
        share = sigmoid_of_minus(found)
        slope = 1 + k * share * (1 - share)
        assert abs((found - margin - k * (share - t)) / slope) < 0.05
