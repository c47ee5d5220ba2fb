"""Sums of weights over snapshots, and means of them: against numpy."""

import numpy as np
import pytest

from hogwild.kernels.averages import add_scaled, finish
from hogwild.kernels.views import Span, view
from tests.examples import random_weights

SIZE, SCALED = 23, 20  # numbers, of which the first are scaled


@pytest.fixture(params=["compiled", "python"])
def kind(request):
    """A kernel as it is called, or its source."""
    return (lambda kernel: kernel) if request.param == "compiled" else lambda k: k.function


@pytest.mark.parametrize(("scale", "keep"), [(0.5, 1.0), (2.0, 0.25), (1.0, 0.0)])
def test_adding_against_numpy(kind, scale, keep):
    weights, sums = random_weights(SIZE), random_weights(SIZE, seed=3)
    found = sums.copy()
    kind(add_scaled)(weights, np.float32(scale), np.float32(keep), np.uintp(SCALED), found)
    factors = np.where(np.arange(SIZE) < SCALED, scale, 1)
    np.testing.assert_allclose(found, keep * sums + factors * weights, 1e-6, 1e-7)


def test_adding_that_keeps_nothing_forgets_even_nan_and_infinity(kind):
    sums = np.array([np.nan, np.inf, -np.inf] * 7, np.float32)
    weights = np.arange(21, dtype=np.float32)
    kind(add_scaled)(weights, np.float32(2), np.float32(0), np.uintp(21), sums)
    assert np.array_equal(sums, 2 * np.arange(21))


@pytest.mark.parametrize(("early", "late"), [(3, 2), (0, 2), (3, 0), (0, 0)])
def test_finishing_in_shares_against_numpy(kind, early, late):
    weights, tails, wholes = (random_weights(SIZE, seed=seed) for seed in range(3))
    scale, each = 0.5, 1 / (early + max(1, late))
    expected = np.where(np.arange(SIZE) < SCALED, scale, 1) * weights
    total = tails if late else expected
    means = expected, total / max(1, late), each * total + (each * wholes if early else 0)
    arrays = weights, tails, wholes
    factors = tuple(np.float32([late, each if early else 0, each]))
    squares = np.zeros(3)
    for begin, end in [(0, 9), (9, 21), (21, SIZE)]:
        share = view(Span, begin, end)
        squares += kind(finish)(arrays, np.float32(scale), factors, np.uintp(SCALED), share)
    for found, mean in zip(arrays, means, strict=True):
        np.testing.assert_allclose(found, mean, 1e-6, 1e-7)
    np.testing.assert_allclose(squares, [(mean[:SCALED] ** 2).sum() for mean in means], 1e-5)
