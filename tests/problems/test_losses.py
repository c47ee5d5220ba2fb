"""Losses: slopes are derivatives, values are convex, nothing overflows, odds are odds."""

import numpy as np
import pytest
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.problems.losses import (
    FACTOR_LOSSES,
    FAINTEST,
    LOSSES,
    add_of,
    code,
    factor_code,
    factor_slope_of,
    factor_value_of,
    slope_of,
    value_of,
)
from tests import reference, reference_factors

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


@kernel(types.UniTuple(types.float64, 2)(types.int64, *[types.float64] * 4))
def compiled_add(loss, total, product, score, target):
    return add_of(loss, total, product, score, target)


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


@pytest.mark.parametrize("add", [compiled_add, compiled_add.function], ids=["compiled", "python"])
def test_values_add_up(name, target, add):
    """Also so many that the product of their factors would overflow."""
    scores = np.tile(np.r_[SMOOTH_SCORES, -60.0, 60.0], 30)
    total, product = 0.0, 1.0
    for score in scores:
        total, product = add(code(name), total, product, float(score), target)
    expected = at(LOSSES[name].value, scores, target).sum()
    assert total + np.log(product) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("margin", [18.0, 30.0, 36.0, 38.0, 60.0])
def test_tiny_values_are_added_up_to_rounding(name, target, margin):
    total, product, rows = 0.0, 1.0, 1000
    for _ in range(rows):
        total, product = compiled_add(code(name), total, product, target * margin, target)
    expected = rows * LOSSES[name].value(target * margin, target)
    assert total + np.log(product) == pytest.approx(expected, rel=1e-12, abs=rows * 2e-16)


@pytest.mark.parametrize("score", [np.inf, -np.inf, np.nan])
def test_a_sum_shows_what_is_no_number(name, target, score):
    with np.errstate(invalid="ignore"):
        value = compiled_value(code(name), score, target)
        total, product = compiled_add(code(name), 1.0, 1.5, score, target)
    found = total + np.log(product)
    assert np.isfinite(found) if np.isfinite(value) else found == value or np.isnan(found)


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


# Losses of factorization: of a score and a value


@kernel(types.float64(types.int64, types.float64, types.float64))
def compiled_factor_value(loss, score, target):
    return factor_value_of(loss, score, target)


@kernel(types.float64(types.int64, types.float64, types.float64))
def compiled_factor_slope(loss, score, target):
    return factor_slope_of(loss, score, target)


# Targets that a loss takes; those of the divergence around where its tangent begins, too
GIVEN = {"squared": (-3.0, 0.0, 4.5), "absolute": (-3.0, 0.0, 4.5), "logistic": (-1.0, 1.0)}
GIVEN["kl"] = (0.0, FAINTEST / 20, FAINTEST, 10 * FAINTEST, 0.5, 4.5, 1e6)
PAIRS = [(name, target) for name, targets in GIVEN.items() for target in targets]
FACTOR_SCORES = np.concatenate(
    [np.linspace(-6.013, 6.017, 61), FAINTEST * np.array([-1.0, 0.013, 0.3, 0.97, 1.02, 3.0])]
)


def test_every_loss_of_factorization_is_tested_here():
    assert GIVEN.keys() == FACTOR_LOSSES.keys() == reference_factors.LOSSES.keys()


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_the_slope_of_a_factor_loss_is_its_derivative(name, target):
    value, slope = FACTOR_LOSSES[name].value, FACTOR_LOSSES[name].slope
    for score in FACTOR_SCORES:
        h = 1e-6 * max(1e-4, abs(score))
        rise = value(score + h, target) - value(score - h, target)
        rounding = 1e-15 * max(1, abs(value(score, target))) / h
        expected = slope(float(score), target)
        assert rise / (2 * h) == pytest.approx(expected, rel=1e-4, abs=1e-6 + rounding), score


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_a_factor_loss_is_the_naive_one_and_compiled_the_same(name, target):
    for number, compiled in enumerate((compiled_factor_value, compiled_factor_slope)):
        function = (FACTOR_LOSSES[name].value, FACTOR_LOSSES[name].slope)[number]
        expected = reference_factors.LOSSES[name][number](FACTOR_SCORES, target)
        found = at(function, FACTOR_SCORES, target)
        np.testing.assert_allclose(found, expected, 1e-9, 1e-9 * abs(target) + 1e-15)
        for score in FACTOR_SCORES:
            mine = compiled(factor_code(name), float(score), target)
            assert mine == pytest.approx(function(float(score), target), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_a_factor_loss_is_convex_and_least_at_its_target(name, target):
    value, slope = FACTOR_LOSSES[name].value, FACTOR_LOSSES[name].slope
    scores = np.sort(np.append(FACTOR_SCORES, target))
    values, slopes = at(value, scores, target), at(slope, scores, target)
    tangents = values[:, None] + slopes[:, None] * (scores[None, :] - scores[:, None])
    rounding = 1e-12 * (1 + np.abs(tangents) + np.abs(values[:, None]))
    assert np.all(values[None, :] >= tangents - rounding)
    if name == "logistic":  # never satisfied
        assert np.all(slopes * target < 0)
        return
    allowed = scores >= 0 if name == "kl" else np.full(len(scores), True)  # as kl's scores are
    assert value(target, target) == 0
    assert np.all(values[allowed] >= -1e-12 * abs(target))
    assert np.all(slopes[allowed & (scores < target)] < 0)
    assert np.all(slopes[scores > target] > 0)


@pytest.mark.parametrize(("name", "target"), PAIRS)
@pytest.mark.parametrize("score", EXTREMES)
@pytest.mark.filterwarnings("error")
def test_extreme_scores_of_factors_neither_overflow_nor_warn(name, target, score):
    with np.errstate(all="raise"):
        for function in (FACTOR_LOSSES[name].value, FACTOR_LOSSES[name].slope):
            assert np.isfinite(function(score, target))


@pytest.mark.parametrize("target", [0.5, 4.5, 1e6])
def test_the_divergence_is_kullbacks_where_scores_are_not_faint(target):
    for score in (0.1 * target, 0.5 * target, target, 3 * target):
        expected = target * np.log(target / score) - target + score
        assert FACTOR_LOSSES["kl"].value(score, target) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("target", [1e-3, 1.0, 1e3])
def test_a_divergences_slope_is_bounded_however_faint_the_score(target):
    slopes = at(FACTOR_LOSSES["kl"].slope, [0.0, -1.0, 1e-30], target)
    assert len(set(slopes)) == 1
    assert slopes[0] == pytest.approx(1 - 1 / FAINTEST)
