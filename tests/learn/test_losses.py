"""Losses: slopes are derivatives, values are convex, nothing overflows, odds are odds."""

from functools import cache

import numpy as np
import pytest
from numba import types

from hogwild.kernels.compile import Kernel
from hogwild.learn import losses
from hogwild.learn.losses import (
    CLASSES,
    COUNTS,
    FACTOR_LOSSES,
    FAINTEST,
    NUMBERS,
    SIGNS,
    adder,
    names_for,
)
from tests import reference, reference_factors
from tests.examples import default_of

# Those of one score
LOSSES = {name: loss for name, loss in losses.LOSSES.items() if loss.kinds != (CLASSES,)}
TARGETS = {SIGNS: (-1.0, 1.0), NUMBERS: (-2.5, 0.0, 3.75), COUNTS: (0.0, 1.0, 12.0)}
CASES = [
    (name, target)
    for name, loss in LOSSES.items()
    for target in sorted({target for kind in loss.kinds for target in TARGETS[kind]})
]
LARGEST = float(np.finfo(np.float32).max)
EXTREMES = [0.0, -0.0, 1e30, -1e30, LARGEST, -LARGEST, 100.0, -100.0, 1e-30, -1e-30]
WIDE = np.linspace(-60.03, 60.01, 61)
SMOOTH_SCORES = np.linspace(-3.987, 3.991, 131)  # further than 1e-3 from every kink
FLOAT = types.float64


def parameters(name):
    """Values of the loss's parameter: its default, and two more; 0 where it has none."""
    found = LOSSES[name].parameter
    if found is None:
        return [0.0]
    return [found.default, 0.3, 0.9]


def kinks(name, target):
    """Scores where the loss, or its slope, may have a kink."""
    around = [target + sign * p for p in parameters(name) for sign in (-1, 0, 1)]
    return np.array([-50.0, -30.0, -1.0, 0.0, 1.0, 30.0, 50.0, *around])


def scores(name, target):
    return np.sort(np.concatenate([kinks(name, target), WIDE, EXTREMES[-2:]]))


def at(function, scores, *more):
    return np.array([function(float(score), *more) for score in scores])


@cache
def compiled(loss):
    """Value and slope, and the sum with another value: (total, product, score, target, p)."""
    value, slope, add = LOSSES[loss].value, LOSSES[loss].slope, adder(loss, False)

    def look(total, product, score, target, parameter):
        sums = add((total, product), 1.0, score, target, parameter)
        return value(score, target, parameter), slope(score, target, parameter), *sums

    return Kernel(look, types.UniTuple(FLOAT, 4)(*[FLOAT] * 5), name=f"look-{loss}")


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]} {case[1]:g}")
def case(request):
    """The name of a loss, and a target that it is for."""
    return request.param


def test_every_loss_has_a_kind_of_targets_and_every_kind_a_loss():
    assert {name for kind in TARGETS for name in names_for(kind)} == LOSSES.keys()
    assert all(names_for(kind) for kind in TARGETS)


def test_every_loss_has_a_textbook_formula():
    assert reference.FORMULAS.keys() == LOSSES.keys()


def test_slope_is_the_derivative(case):
    name, target = case
    h = 1e-6
    value, slope = LOSSES[name].value, LOSSES[name].slope
    apart = np.abs(SMOOTH_SCORES[:, None] - kinks(name, target))
    smooth = SMOOTH_SCORES[apart.min(axis=1) > 1e-3]
    assert len(smooth) > 100
    for p in parameters(name):
        rise = at(value, smooth + h, target, p) - at(value, smooth - h, target, p)
        np.testing.assert_allclose(rise / (2 * h), at(slope, smooth, target, p), 1e-6, 1e-7)


def test_value_and_slope_are_those_of_the_textbook(case):
    name, target = case
    for some in (scores(name, target), SMOOTH_SCORES, np.array(EXTREMES)):
        for p in parameters(name):
            with np.errstate(over="ignore"):
                values = reference.value(name, some, target, p)
                slopes = reference.slope(name, some, target, p)
            # where formulas differ in their order, differences of scores and targets are rounded
            rounding = 1e-15 * max(1, abs(target))
            found = at(LOSSES[name].value, some, target, p)
            np.testing.assert_allclose(found, values, 1e-12, rounding)
            found = at(LOSSES[name].slope, some, target, p)
            np.testing.assert_allclose(found, slopes, 1e-12, 1e-40)


def test_compiled_is_the_same_as_python(case):
    name, target = case
    look, value, slope = compiled(name), LOSSES[name].value, LOSSES[name].slope
    for p in parameters(name):
        for score in [*EXTREMES, *scores(name, target), *SMOOTH_SCORES]:
            expected = value(float(score), target, p), slope(float(score), target, p)
            found = look(0.0, 1.0, float(score), target, p)[:2]
            assert found == pytest.approx(expected, rel=1e-13, abs=1e-15 * max(1, abs(target)))


@pytest.mark.parametrize("how", ["compiled", "python"])
def test_values_add_up(case, how):
    """Also so many that the product of their factors would overflow."""
    name, target = case
    add = compiled(name) if how == "compiled" else compiled(name).function
    many = np.tile(np.r_[SMOOTH_SCORES, -60.0, 60.0], 30)
    p = default_of(name)
    total, product = 0.0, 1.0
    for score in many:
        *_, total, product = add(total, product, float(score), target, p)
    expected = at(LOSSES[name].value, many, target, p).sum()
    assert total + np.log(product) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("margin", [18.0, 30.0, 36.0, 38.0, 60.0])
@pytest.mark.parametrize("name", names_for(SIGNS))
def test_tiny_values_are_added_up_to_rounding(name, margin):
    total, product, rows = 0.0, 1.0, 1000
    for _ in range(rows):
        *_, total, product = compiled(name)(total, product, -margin, -1.0, 0.0)
    expected = rows * LOSSES[name].value(-margin, -1.0, 0.0)
    assert total + np.log(product) == pytest.approx(expected, rel=1e-12, abs=rows * 2e-16)


@pytest.mark.parametrize("score", [np.inf, -np.inf, np.nan])
def test_a_sum_shows_what_is_no_number(case, score):
    name, target = case
    with np.errstate(invalid="ignore"):
        value, _, total, product = compiled(name)(1.0, 1.5, score, target, default_of(name))
    found = total + np.log(product)
    assert np.isfinite(found) if np.isfinite(value) else found == value or np.isnan(found)


def test_slope_is_a_subgradient_everywhere(case):
    """So the loss is convex too: it lies above each of its tangents, also those at the kinks."""
    name, target = case
    some = scores(name, target)
    for p in parameters(name):
        values, slopes = (at(f, some, target, p) for f in (LOSSES[name].value, LOSSES[name].slope))
        tangents = values[:, None] + slopes[:, None] * (some[None, :] - some[:, None])
        rounding = 1e-12 * (1 + np.abs(tangents) + np.abs(values[:, None]))
        assert np.all(values[None, :] >= tangents - rounding)


def test_convex_at_midpoints(case):
    name, target = case
    value, p, some = LOSSES[name].value, default_of(name), scores(name, target)
    a, b = (part.ravel() for part in np.meshgrid(some, some))
    between = at(value, (a + b) / 2, target, p)
    mean = (at(value, a, target, p) + at(value, b, target, p)) / 2
    assert np.all(between <= mean + 1e-12 * np.abs(mean) + 1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_the_slope_changes_by_the_curvature_at_most(name):
    """Where it jumps, by twice as much; of the losses that are as steep as exp, near zero."""
    loss = LOSSES[name]
    steep = name in ("exponential", "poisson")
    most = 0.0
    for target in sorted({target for kind in loss.kinds for target in TARGETS[kind]}):
        for p in parameters(name):
            below, above = (
                at(loss.slope, np.linspace(-4, 4, 1601) + side, target, p) for side in (-0.5, 0.5)
            )
            changes = np.abs(above - below)
            most = max(most, changes[800] if steep else changes.max())
    jumps = name in ("hinge", "perceptron", "absolute", "epsilon_insensitive", "quantile")
    expected = loss.curvature * (2 if jumps else 1)
    # of a smooth one, over a distance of one: the steepest place may be steeper a little
    assert most == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("target", TARGETS[SIGNS])
@pytest.mark.parametrize("name", names_for(SIGNS))
def test_a_loss_of_classes_is_not_negative_and_a_wrong_score_costs(name, target):
    value, slope = LOSSES[name].value, LOSSES[name].slope
    assert np.all(at(value, scores(name, target), target, 0.0) >= 0)
    assert value(-2.0 * target, target, 0.0) > value(target, target, 0.0)
    assert slope(-2.0 * target, target, 0.0) * target < 0  # the score is to go towards the target
    assert slope(0.0, target, 0.0) * target < 0  # and so it does from where all scores start


@pytest.mark.parametrize("target", TARGETS[NUMBERS])
@pytest.mark.parametrize("name", names_for(NUMBERS))
def test_a_loss_of_numbers_is_least_at_the_target(name, target):
    value, slope = LOSSES[name].value, LOSSES[name].slope
    for p in parameters(name):
        assert value(target, target, p) == 0
        assert np.all(at(value, scores(name, target), target, p) >= 0)
        assert slope(target - 2.0, target, p) < 0 < slope(target + 2.0, target, p)


@pytest.mark.parametrize("target", [1.0, 12.0])
def test_a_loss_of_counts_is_least_where_its_mean_is_the_target(target):
    for name in names_for(COUNTS):
        loss = LOSSES[name]
        best = np.log(target) if loss.mean else target
        assert (loss.mean(best) if loss.mean else best) == pytest.approx(target)
        assert loss.slope(best, target, default_of(name)) == pytest.approx(0, abs=1e-12)


def test_the_quantile_loss_is_least_at_the_quantile():
    random, share = np.random.default_rng(0), 0.3
    values = random.normal(size=501)
    totals = [
        sum(LOSSES["quantile"].value(score, value, share) for value in values) for score in values
    ]
    assert values[np.argmin(totals)] == pytest.approx(np.quantile(values, share), abs=0.02)


@pytest.mark.parametrize("score", EXTREMES)
@pytest.mark.filterwarnings("error")
def test_extreme_scores_neither_overflow_nor_warn(case, score):
    name, target = case
    with np.errstate(all="raise"):
        for function in (LOSSES[name].value, LOSSES[name].slope):
            for p in parameters(name):
                assert np.isfinite(function(score, target, p))
                assert np.isfinite(function(float(np.float32(score)), target, p))


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.for_many])
@pytest.mark.parametrize("target", [-1.0, 1.0])
def test_functions_for_many_scores_say_the_same(name, target):
    some = scores(name, target)
    for one, other in zip(
        (LOSSES[name].value, LOSSES[name].slope), LOSSES[name].for_many, strict=True
    ):
        np.testing.assert_allclose(at(other, some, target, 0.0), at(one, some, target, 0.0), 1e-9)


WITH_ODDS = [name for name, loss in LOSSES.items() if loss.probability]


def test_the_losses_that_are_said_to_give_odds_do():
    assert {"logistic", "modified_huber"} <= set(WITH_ODDS)


@pytest.mark.parametrize("name", WITH_ODDS)
@pytest.mark.filterwarnings("error")
def test_odds_lie_between_0_and_1_and_rise_with_the_score(name):
    some = np.sort(np.concatenate([WIDE, SMOOTH_SCORES, EXTREMES]))
    for typed in (some, some.astype(np.float32)):
        odds = LOSSES[name].probability(typed)
        assert np.all((odds >= 0) & (odds <= 1))
        assert np.all(np.diff(odds) >= 0)
        assert (odds[0], odds[-1]) == (0, 1)
    both = LOSSES[name].probability(some) + LOSSES[name].probability(-some)
    np.testing.assert_allclose(both, 1)


@pytest.mark.parametrize("name", WITH_ODDS)
def test_odds_are_those_at_which_the_score_is_the_best(name):
    """A score s is best where p slope(s, +1) + (1 - p) slope(s, -1) = 0."""
    p = LOSSES[name].probability(SMOOTH_SCORES)
    up, down = (at(LOSSES[name].slope, SMOOTH_SCORES, y, 0.0) for y in (1.0, -1.0))
    inside = (p > 0) & (p < 1)
    assert inside.any()
    np.testing.assert_allclose((p * up + (1 - p) * down)[inside], 0, atol=1e-12)


# Losses of factorization: of a score and a value


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
        rise = value(score + h, target, 0.0) - value(score - h, target, 0.0)
        rounding = 1e-15 * max(1, abs(value(score, target, 0.0))) / h
        expected = slope(float(score), target, 0.0)
        assert rise / (2 * h) == pytest.approx(expected, rel=1e-4, abs=1e-6 + rounding), score


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_a_factor_loss_is_the_naive_one_and_compiled_the_same(name, target):
    for number, function in enumerate((FACTOR_LOSSES[name].value, FACTOR_LOSSES[name].slope)):
        compiled = Kernel(function, FLOAT(FLOAT, FLOAT, FLOAT))
        expected = reference_factors.LOSSES[name][number](FACTOR_SCORES, target)
        found = at(function, FACTOR_SCORES, target, 0.0)
        np.testing.assert_allclose(found, expected, 1e-9, 1e-9 * abs(target) + 1e-15)
        for score in FACTOR_SCORES:
            mine = compiled(float(score), target, 0.0)
            assert mine == pytest.approx(function(float(score), target, 0.0), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("name", "target"), PAIRS)
def test_a_factor_loss_is_convex_and_least_at_its_target(name, target):
    value, slope = FACTOR_LOSSES[name].value, FACTOR_LOSSES[name].slope
    scores = np.sort(np.append(FACTOR_SCORES, target))
    values, slopes = at(value, scores, target, 0.0), at(slope, scores, target, 0.0)
    tangents = values[:, None] + slopes[:, None] * (scores[None, :] - scores[:, None])
    rounding = 1e-12 * (1 + np.abs(tangents) + np.abs(values[:, None]))
    assert np.all(values[None, :] >= tangents - rounding)
    if name == "logistic":  # never satisfied
        assert np.all(slopes * target < 0)
        return
    allowed = scores >= 0 if name == "kl" else np.full(len(scores), True)  # as kl's scores are
    assert value(target, target, 0.0) == 0
    assert np.all(values[allowed] >= -1e-12 * abs(target))
    assert np.all(slopes[allowed & (scores < target)] < 0)
    assert np.all(slopes[scores > target] > 0)


@pytest.mark.parametrize(("name", "target"), PAIRS)
@pytest.mark.parametrize("score", EXTREMES)
@pytest.mark.filterwarnings("error")
def test_extreme_scores_of_factors_neither_overflow_nor_warn(name, target, score):
    with np.errstate(all="raise"):
        for function in (FACTOR_LOSSES[name].value, FACTOR_LOSSES[name].slope):
            assert np.isfinite(function(score, target, 0.0))


@pytest.mark.parametrize("target", [0.5, 4.5, 1e6])
def test_the_divergence_is_kullbacks_where_scores_are_not_faint(target):
    for score in (0.1 * target, 0.5 * target, target, 3 * target):
        expected = target * np.log(target / score) - target + score
        assert FACTOR_LOSSES["kl"].value(score, target, 0.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("target", [1e-3, 1.0, 1e3])
def test_a_divergences_slope_is_bounded_however_faint_the_score(target):
    slopes = at(FACTOR_LOSSES["kl"].slope, [0.0, -1.0, 1e-30], target, 0.0)
    assert len(set(slopes)) == 1
    assert slopes[0] == pytest.approx(1 - 1 / FAINTEST)
