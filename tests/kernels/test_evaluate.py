"""Looking at weights: losses, errors, scores and norms against numpy."""

import math

import numpy as np
import pytest

from hogwild.kernels.evaluate import comparer, evaluator, scores, squared_norm
from hogwild.kernels.views import Span, view
from hogwild.learn.losses import CLASSES, LOSSES
from tests import reference
from tests.examples import COLUMNS, default_of, random_rows, random_weights

LONG = 600
SPANS = [(0, LONG), (100, 450), (5, 5)]
INTERCEPT = np.float32(0.25)
WEIGHTS = np.append(random_weights(), INTERCEPT)


def score_of(X, stored=WEIGHTS):
    return X @ stored[:-1].astype(float) + float(stored[-1])


def check_sums(look, loss, kind):
    """The sums of losses and errors over some rows are numpy's."""
    rows, X = random_rows(LONG, kind)
    parameter = default_of(loss)
    for begin, end in SPANS:
        y, score = rows.targets[begin:end].astype(float), score_of(X[begin:end])
        with np.errstate(all="ignore"):
            total, first, second = look(rows, view(Span, begin, end), WEIGHTS, parameter)
        assert total == pytest.approx(reference.value(loss, score, y, parameter).sum(), rel=1e-5)
        wrong = np.count_nonzero((score > 0) != (y > 0)), 0
        mean = LOSSES[loss].mean
        error = (score if mean is None else mean(score)) - y
        sizes = (error**2).sum(), np.abs(error).sum()
        assert (first, second) == pytest.approx(wrong if kind == "signs" else sizes, rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "kind"), [("hinge", "signs"), ("logistic", "signs"), ("huber", "numbers")]
)
def test_sums_over_rows_against_numpy(loss, kind):
    check_sums(evaluator(loss, kind, False), loss, kind)


@pytest.mark.parametrize("loss", [name for name in LOSSES if LOSSES[name].kinds != (CLASSES,)])
def test_so_they_are_with_any_loss_and_kind_in_python(loss):
    for kind in LOSSES[loss].kinds:
        check_sums(evaluator(loss, kind, False).function, loss, kind)


def test_weights_of_rows_multiply_what_they_add_to_the_sums():
    rows, _ = random_rows(LONG)
    weights = np.arange(LONG) % 3
    pairs = np.column_stack([rows.targets, weights]).astype(np.float32).ravel()
    with np.errstate(all="ignore"):
        found = evaluator("logistic", "signs", True).function(
            rows._replace(targets=pairs), view(Span, 0, LONG), WEIGHTS, 0.0
        )
        alone = evaluator("logistic", "signs", False).function
        each = [alone(rows, view(Span, row, row + 1), WEIGHTS, 0.0) for row in range(LONG)]
    np.testing.assert_allclose(found, weights @ np.array(each), 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "quantile"])
def test_losses_of_rows_against_numpy(loss):
    rows, X = random_rows(LONG, LOSSES[loss].kinds[0])
    parameter = default_of(loss)
    begin, end = 5, LONG - 7
    points = [np.append(random_weights(seed=seed), INTERCEPT * seed) for seed in range(3)]
    points = tuple(point.astype(np.float32) for point in points)
    found = np.full((3, end - begin), np.nan)
    compare = comparer(loss, False)
    # the third is not looked at
    compare(rows, view(Span, begin, end), points, np.uintp(2), parameter, found.reshape(-1))
    for number, stored in enumerate(points):
        score, y = score_of(X[begin:end], stored), rows.targets[begin:end]
        expected = reference.value(loss, score, y, parameter) if number < 2 else np.nan
        np.testing.assert_allclose(found[number], expected, 1e-5, 1e-6)


def test_a_score_of_zero_counts_as_negative():
    rows, _ = random_rows(LONG)
    zeros = np.zeros(COLUMNS + 1, np.float32)
    _, wrong, _ = evaluator("hinge", "signs", False)(rows, view(Span, 0, LONG), zeros, 0.0)
    assert wrong == np.count_nonzero(rows.targets > 0) != np.count_nonzero(rows.targets < 0)


def test_scores_against_numpy_with_columns_that_the_model_lacks():
    rows, X = random_rows(LONG)
    for known in (COLUMNS, 7, 0):
        out = np.full(LONG, np.nan, np.float32)
        weights = random_weights()[:known]
        scores(
            rows.begins,
            rows.ends,
            rows.columns,
            rows.values,
            weights,
            np.float32(-0.5),
            out,
        )
        np.testing.assert_allclose(out, X[:, :known] @ weights.astype(float) - 0.5, 1e-5, 1e-6)


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
def test_squared_norm_is_summed_in_double_precision(size):
    weights = random_weights(size) + np.float32(1000)
    expected = math.fsum(float(w) ** 2 for w in weights)
    assert squared_norm(weights) == pytest.approx(expected, rel=1e-13, abs=0)


def test_squared_norm_does_not_overflow_float32():
    assert squared_norm(np.full(4, 1e30, np.float32)) == pytest.approx(4e60)
