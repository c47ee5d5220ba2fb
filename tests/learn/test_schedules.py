"""Schedules: the rate never rises, and the scale of the weights is exactly what it implies."""

import numpy as np
import pytest
from scipy.integrate import quad

import hogwild
from hogwild.config import BETA, Config
from hogwild.learn.schedules import SCHEDULES
from hogwild.results import State
from hogwild.steps.sgd import Plan

TIMES = np.unique(np.geomspace(1, 1e9, 60).round())
# the rate as the documentation has it
RATES = {
    "inverse": lambda t, eta0, l2: 1 / (1 / eta0 + l2 * t),
    "constant": lambda t, eta0, l2: eta0,
    "sqrt": lambda t, eta0, l2: eta0 * t**-0.5,
    "backoff": lambda t, eta0, l2: eta0,
}


def rate(name, t, plan):
    """The rate of a schedule, given eta0 and l2."""
    return SCHEDULES[name].rate(Plan(*plan, 0.0, 0.0, 0.0, 1.0, 1.0), t)


def scale(name, t, since, plan):
    """The scale of weights that were stored whole at a step."""
    return SCHEDULES[name].scale(Plan(*plan, since, 0.0, 0.0, 1.0, 1.0), t)


@pytest.fixture(params=SCHEDULES)
def name(request):
    return request.param


@pytest.fixture(params=[(1.0, 1e-4), (50.0, 1e-6), (0.01, 1e-2), (2.0, 0.0)], ids=str)
def plan(request):
    return request.param


@pytest.mark.parametrize("known", RATES)
def test_rate_is_the_documented_one(known, plan):
    found = [rate(known, t, plan) for t in TIMES]
    np.testing.assert_allclose(found, [RATES[known](t, *plan) for t in TIMES], 1e-12)


def test_rate_is_positive_and_never_rises(name, plan):
    rates = np.array([rate(name, t, plan) for t in TIMES])
    assert np.all(rates > 0)
    assert np.all(np.diff(rates) <= 0)
    assert rates[0] <= plan[0]


def test_scale_is_multiplicative(name, plan):
    for s, u, t in [(0.0, 1.0, 2.0), (0.0, 17.0, 40.0), (5.0, 5.0, 900.0), (100.0, 800.0, 801.0)]:
        product = scale(name, t, u, plan) * scale(name, u, s, plan)
        assert scale(name, t, s, plan) == pytest.approx(product, rel=1e-12)
        assert scale(name, t, t, plan) == 1.0
        assert 0 < scale(name, t, s, plan) <= 1.0


def test_the_penaltys_decay_is_exact(name, plan):
    """-d/dt log scale = l2 * rate: no first-order approximation, whatever the rate."""
    _, l2 = plan
    for t in (1.0, 3.0, 100.0, 12_345.0):
        h = 1e-4 * t
        fall = np.log(scale(name, t - h, 0.5, plan)) - np.log(scale(name, t + h, 0.5, plan))
        assert fall / (2 * h) == pytest.approx(l2 * rate(name, t, plan), rel=1e-5, abs=1e-12)


def test_scale_is_the_exponential_of_all_rates_so_far(name, plan):
    _, l2 = plan
    for since, t in [(1.0, 2.0), (1.0, 300.0), (250.0, 4_000.0)]:
        rates, _ = quad(lambda u: rate(name, u, plan), since, t)
        found = scale(name, t, since, plan)
        assert found == pytest.approx(np.exp(-l2 * rates), rel=1e-8)


@pytest.mark.parametrize("since", [0.0, 1.0, 800.0])
def test_the_stored_rate_is_the_rate_over_the_scale(name, plan, since):
    for t in since + np.array([1.0, 2.0, 17.0, 3_000.0]):
        expected = rate(name, t, plan) / scale(name, t, since, plan)
        stored = SCHEDULES[name].stored_rate(Plan(*plan, since, 0.0, 0.0, 1.0, 1.0), t)
        assert stored == pytest.approx(expected, rel=1e-13)


def test_the_intercept_comes_to_rest_as_an_epoch_ends_where_rates_go_down_by_the_penalty(
    name, plan
):
    share, begun, rows = 0.1, 500.0, 1000.0
    numbers = Plan(*plan, begun, share, 0.0, begun + rows, rows)
    for done, factor in [(1, 1), (500, 1), (750, 0.5), (990, 0.02), (1000, 0.02), (1200, 0.02)]:
        t = begun + done
        expected = share * rate(name, t, plan) * (factor if name == "inverse" else 1)
        assert SCHEDULES[name].intercept_rate(numbers, t) == pytest.approx(expected, rel=1e-12)


def test_without_penalty_all_is_left(name):
    assert scale(name, 1e9, 0.0, (3.0, 0.0)) == 1.0


def test_backing_off_multiplies_the_rate_after_each_epoch(name):
    factors = [Config(schedule=name).backoff(epoch) for epoch in (1, 2, 3, 4)]
    expected = [1.0, BETA, BETA**2, BETA**3] if SCHEDULES[name].backs_off else [1.0] * 4
    assert factors == pytest.approx(expected)
    if SCHEDULES[name].backs_off:
        assert Config(schedule=name, beta=0.5).backoff(3) == 0.25


# Rows of the identity whose margins are far beyond 1, so the hinge has no slope: only the penalty
# changes the weights
ROWS = 40
FAR = np.linspace(1e14, 2e14, ROWS).astype(np.float32) * np.where(np.arange(ROWS) % 2, 1, -1)


def satisfied_rows():
    return hogwild.Rows(np.eye(ROWS, dtype=np.float32), np.sign(FAR))


@pytest.mark.parametrize("least_scale", [1e-12, 1e-2], ids=["whole epochs", "epochs in parts"])
@pytest.mark.parametrize("l2", [1e-3, 0.2], ids=["little", "much"])
@pytest.mark.parametrize("workers", [1, 3])
def test_training_on_rows_without_slope_leaves_exactly_what_the_schedule_says(
    name, l2, workers, least_scale, monkeypatch
):
    monkeypatch.setattr("hogwild.coordinator.LEAST_SCALE", least_scale)
    start = State({"stored": np.append(FAR, np.float32(0))}, 0, 0, 1.0)
    options = {"schedule": name, "eta0": 1.0, "l2": l2, "epochs": 2, "workers": workers}
    result = hogwild.train(
        satisfied_rows(), start=start, average=False, backend="thread", tol=0, **options
    )
    left = 1.0
    for epoch in (1, 2):
        plan = Config(schedule=name).backoff(epoch), l2
        left *= scale(name, ROWS * epoch, ROWS * (epoch - 1), plan)
    assert left < 1
    np.testing.assert_allclose(result.model.weights, FAR * left, 1e-5)
    np.testing.assert_allclose(result.state.weights["stored"], np.append(FAR * left, 0), 1e-5)
    assert result.model.intercept == 0
