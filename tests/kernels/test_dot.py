"""A row and dense numbers, in the compiled form: against their meaning in Python."""

import numpy as np
import pytest
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.dot import add_planes, add_row, dots
from hogwild.kernels.primitives import readonly, writable

KINDS = {np.float32: types.float32, np.float64: types.float64}
ROW = readonly(types.uint32), readonly(types.float32), types.uintp, types.uintp
COLUMNS = 6  # so few that a row has some of them twice
BEGIN = 2


def a_row(length):
    """A row that begins at a place, with numbers of other rows around it."""
    random = np.random.default_rng(length)
    size = BEGIN + length + 3
    columns = random.integers(0, COLUMNS, size).astype(np.uint32)
    return columns, random.normal(size=size).astype(np.float32), BEGIN, BEGIN + length


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def compiled(request):
    """A type of numbers, and the kernels for it."""
    number = KINDS[request.param]

    @kernel(number(*ROW, writable(number)))
    def dot(columns, values, begin, end, weights):
        return dots(columns, values, begin, end, (weights,))[0]

    @kernel(types.void(*ROW, number, writable(number)))
    def add(columns, values, begin, end, factor, out):
        add_row(columns, values, begin, end, factor, out)

    return request.param, dot, add


@pytest.mark.parametrize("length", [*range(10), 77])
def test_rows_of_all_lengths_are_multiplied_and_added(compiled, length):
    kind, dot, add = compiled
    near = {"rtol": 1e-12, "atol": 1e-12} if kind is np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    weights, row = np.linspace(-1, 2, COLUMNS).astype(kind), a_row(length)
    np.testing.assert_allclose(dot(*row, weights), dot.function(*row, weights), **near)
    found, expected = weights.copy(), weights.copy()
    add(*row, kind(1.5), found)
    add.function(*row, kind(1.5), expected)
    np.testing.assert_allclose(found, expected, **near)


@pytest.mark.parametrize("length", [0, 1, 5])
def test_planes_get_slopes_and_second_derivatives(length):
    double = types.float64

    @kernel(types.void(*ROW, double, double, writable(double)))
    def add(columns, values, begin, end, slope, second, out):
        add_planes(columns, values, begin, end, slope, second, out)

    found, expected = np.ones((2, 4 * COLUMNS))
    add(*a_row(length), 1.5, 0.3, found)
    add.function(*a_row(length), 1.5, 0.3, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
