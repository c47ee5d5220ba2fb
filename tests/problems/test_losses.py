"""Losses: slopes are derivatives, values are convex, nothing overflows, odds are odds."""

import numpy as np
import pytest
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.problems.losses import LOSSES, code, slope_of, value_of
from tests import reference

TARGETS = (-1.0, 1.0)
KINKS = np.array([-50.0, -1.0, 0.0, 1.0])  # where some loss or other has one
LARGEST = float(np.finfo(np.float32).max)
EXTREMES = [0.0, -0.0, 1e30, -1e30, LARGEST, -LARGEST, 100.0, -100.0, 1e-30, -1e-30]
SCORES = np.sort(np.concatenate([KINKS, -KINKS, np.linspace(-60.03, 60.01, 61), EXTREMES[-2:]]))
SMOOTH_SCORES = np.linspace(-3.987, 3.991, 131)  # further than 1e-3 from every kink


@kernel(types.float64(types.int64, types.float64, types.float64))
def compiled_value(loss, score, target):
    return value_of(loss, score, target)


@kernel(types.float64(types.int64, types.float64, types.float64))
def compiled_slope(loss, score, target):
    return slope_of(loss, score, target)


def at(function, scores, target):
    return np.array([function(float(score), target) for score in scores])


@pytest.fixture(params=LOSSES)
def name(request):
    return request.param


@pytest.fixture(params=TARGETS)
def target(request):
    return request.param


def test_slope_is_the_derivative(name, target):
    assert np.min(np.abs(SMOOTH_SCORES[:, None] - np.r_[KINKS, -KINKS])) > 1e-3
    h = 1e-6
    value, slope = LOSSES[name].value, LOSSES[name].slope
    rise = at(value, SMOOTH_SCORES + h, target) - at(value, SMOOTH_SCORES - h, target)
    np.testing.assert_allclose(rise / (2 * h), at(slope, SMOOTH_SCORES, target), 1e-6, 1e-7)


@pytest.mark.parametrize("formula", reference.MARGIN_LOSSES)
def test_value_and_slope_are_those_of_the_textbook(formula, target):
    for scores in (SCORES, SMOOTH_SCORES, np.array(EXTREMES)):
        for mine, theirs in (
            (LOSSES[formula].value, reference.value),
            (LOSSES[formula].slope, reference.slope),
        ):
            with np.errstate(over="ignore"):
                expected = theirs(formula, scores, target)
            np.testing.assert_allclose(at(mine, scores, target), expected, 1e-12, 1e-40)


def test_slope_is_a_subgradient_everywhere(name, target):
    """So the loss is convex too: it lies above each of its tangents, also those at the kinks."""
    values, slopes = (at(f, SCORES, target) for f in (LOSSES[name].value, LOSSES[name].slope))
    tangents = values[:, None] + slopes[:, None] * (SCORES[None, :] - SCORES[:, None])
    rounding = 1e-12 * (1 + np.abs(tangents) + np.abs(values[:, None]))
    assert np.all(values[None, :] >= tangents - rounding)


def test_convex_at_midpoints(name, target):
    value = LOSSES[name].value
    a, b = (part.ravel() for part in np.meshgrid(SCORES, SCORES))
    between, mean = (
        at(value, (a + b) / 2, target),
        (at(value, a, target) + at(value, b, target)) / 2,
    )
    assert np.all(between <= mean * (1 + 1e-12) + 1e-12)


def test_a_loss_is_not_negative_and_a_wrong_score_costs(name, target):
    value, slope = LOSSES[name].value, LOSSES[name].slope
    assert np.all(at(value, SCORES, target) >= 0)
    assert value(-2.0 * target, target) > value(target, target)
    assert slope(-2.0 * target, target) * target < 0  # the score is to go towards the target
    assert slope(0.0, target) * target < 0  # and so it does from where all scores start


@pytest.mark.parametrize("score", EXTREMES)
@pytest.mark.filterwarnings("error")
def test_extreme_scores_neither_overflow_nor_warn(name, target, score):
    with np.errstate(all="raise"):
        for function in (LOSSES[name].value, LOSSES[name].slope):
            assert np.isfinite(function(score, target))
            assert np.isfinite(function(float(np.float32(score)), target))


def test_compiled_is_the_same_as_python_by_the_code_of_its_name(name, target):
    for score in [*EXTREMES, *SCORES, *SMOOTH_SCORES]:
        for compiled, function in (
            (compiled_value, LOSSES[name].value),
            (compiled_slope, LOSSES[name].slope),
        ):
            found = compiled(code(name), float(score), target)
            assert found == pytest.approx(function(float(score), target), rel=1e-13, abs=1e-40)


WITH_ODDS = [name for name, loss in LOSSES.items() if loss.probability]


def test_the_losses_that_are_said_to_give_odds_do():
    assert {"logistic", "modified_huber"} <= set(WITH_ODDS)


@pytest.mark.parametrize("name", WITH_ODDS)
@pytest.mark.filterwarnings("error")
def test_odds_lie_between_0_and_1_and_rise_with_the_score(name):
    scores = np.sort(np.concatenate([SCORES, SMOOTH_SCORES, EXTREMES]))
    for typed in (scores, scores.astype(np.float32)):
        odds = LOSSES[name].probability(typed)
        assert np.all((odds >= 0) & (odds <= 1))
        assert np.all(np.diff(odds) >= 0)
        assert (odds[0], odds[-1]) == (0, 1)
    np.testing.assert_allclose(
        LOSSES[name].probability(scores) + LOSSES[name].probability(-scores), 1
    )


@pytest.mark.parametrize("name", WITH_ODDS)
def test_odds_are_those_at_which_the_score_is_the_best(name):
    """A score s is best where p slope(s, +1) + (1 - p) slope(s, -1) = 0."""
    p = LOSSES[name].probability(SMOOTH_SCORES)
    up, down = (at(LOSSES[name].slope, SMOOTH_SCORES, y) for y in (1.0, -1.0))
    inside = (p > 0) & (p < 1)
    assert inside.any()
    np.testing.assert_allclose((p * up + (1 - p) * down)[inside], 0, atol=1e-12)
