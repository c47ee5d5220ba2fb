"""Vectors do, place by place, what numpy does."""

import operator

import numpy as np
import pytest
from numba import types

from hogwild.kernels import vectors
from hogwild.kernels.compile import kernel
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.kernels.vectors import (
    alternate,
    greater,
    half,
    joined,
    lane,
    lesser,
    load,
    odd_lanes,
    spread,
    store,
    total,
)

WIDTHS = [2, 4, 16, 48, 64, 128]
IN, OUT = readonly(types.float32), writable(types.float32)
NAN = np.float32("nan")


def aligned(numbers):
    raw = np.zeros(4 * len(numbers) + 64, np.uint8)
    room = raw[-raw.ctypes.data % 64 :][: 4 * len(numbers)].view(np.float32)
    room[:] = numbers
    return room


def some(width, seed=0):
    """More than is looked at: vectors lie in the middle."""
    return aligned(np.random.default_rng(seed).normal(size=3 * width).astype(np.float32))


def applied(operation, width, result=None):
    """The operation on the second vectors of two arrays, written as the second of another."""
    size = result or width

    @kernel(types.void(IN, IN, OUT))
    def run(a, b, out):
        x, y = load(a, U(width), width), load(b, U(width), width)
        store(out, U(size), operation(x, y))

    a, b = some(width, 1), some(width, 2)
    out = aligned(np.full(3 * size, 7, np.float32))
    run(a, b, out)
    assert (out[:size] == 7).all()
    assert (out[2 * size :] == 7).all()
    return a[width : 2 * width], b[width : 2 * width], out[size : 2 * size]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul])
def test_arithmetic(operation, width):
    a, b, found = applied(operation, width)
    np.testing.assert_array_equal(found, operation(a, b))


@pytest.mark.parametrize("width", [4, 48])
def test_the_greater_and_the_lesser(width):
    a, b, found = applied(greater, width)
    np.testing.assert_array_equal(found, np.maximum(a, b))
    a, b, found = applied(lesser, width)
    np.testing.assert_array_equal(found, np.minimum(a, b))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (greater, [2, -1, 5, np.inf, 3]),
        (lesser, [1, -2, 5, 0, -np.inf]),
    ],
)
def test_of_what_is_no_number_the_other_is_taken(operation, expected):
    @kernel(types.void(IN, IN, OUT))
    def run(a, b, out):
        store(out, U(0), operation(load(a, U(0), 8), load(b, U(0), 8)))

    a, b = [1, -1, NAN, np.inf, -np.inf], [2, -2, 5, 0, 3]
    out = aligned([0] * 8)
    run(aligned([*a, 0, 0, 0]), aligned([*b, 0, 0, 0]), out)
    np.testing.assert_array_equal(out[:5], expected)


@pytest.mark.parametrize("operation", [operator.sub, operator.mul, greater])
@pytest.mark.parametrize("width", [4, 64])
def test_a_vector_and_a_number_in_either_order(operation, width):
    @kernel(types.void(IN, types.float32, OUT, OUT))
    def run(a, number, left, right):
        store(left, U(0), operation(load(a, U(0), width), number))
        store(right, U(0), operation(number, load(a, U(0), width)))

    a, number = some(width), np.float32(0.3)
    left, right = aligned(np.zeros(width)), aligned(np.zeros(width))
    run(a, number, left, right)
    as_numpy = np.maximum if operation is greater else operation
    np.testing.assert_array_equal(left, as_numpy(a[:width], number))
    np.testing.assert_array_equal(right, as_numpy(number, a[:width]))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_total_is_the_sum_and_always_the_same(width):
    @kernel(types.float32(IN, types.uintp))
    def run(a, place):
        return total(load(a, place, width))

    a = some(width)
    for place in (0, width, 2 * width):
        expected = a[place : place + width].astype(float).sum()
        assert run(a, place) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert len({run(aligned(a), 0) for _ in range(5)}) == 1
    assert np.signbit(run(aligned(np.full(width, -0.0)), 0))


def test_places_go_where_they_should():
    @kernel(types.void(IN, OUT))
    def run(given, out):
        a, b = load(given, U(0), 4), load(given, U(4), 4)
        store(out, U(0), joined(a, b))
        store(out, U(8), half(joined(a, b), 0))
        store(out, U(12), half(joined(a, b), 1))
        store(out, U(16), odd_lanes(a))
        store(out, U(20), alternate(a, b))
        store(out, U(24), spread(lane(a, 2), 4))
        store(out, U(28), spread(lane(b, 3), 4))

    out = aligned(np.zeros(32))
    run(aligned([0, 1, 2, 3, 4, 5, 6, 7]), out)
    expected = [
        *([0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3], [4, 5, 6, 7]),
        *([1, 1, 3, 3], [0, 5, 2, 7], [2] * 4, [7] * 4),
    ]
    np.testing.assert_array_equal(out, np.concatenate(expected))


@pytest.mark.parametrize("width", [2, 4, 8, 16, 32, 48, 64, 192, 256])
def test_rows_lie_as_it_is_said(width):
    """In an array that begins on a line of 64 bytes, every row is at such a multiple."""
    alignment = vectors._alignment(width)
    assert all(4 * width * row % alignment == 0 for row in range(100))
    assert alignment == max(a for a in (4, 8, 16, 32, 64) if 4 * width % a == 0)


def test_from_python_there_are_none():
    with pytest.raises(NotImplementedError):
        greater(1, 2)
    with pytest.raises(NotImplementedError):
        lesser(1, 2)
