"""The order of the rows: every row once, by the seed alone, neighbors near each other."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from hogwild.kernels.order import CHUNK, OPEN, permute, shuffle
from hogwild.seeds import seed_of

KERNELS = pytest.mark.parametrize("kernel", [shuffle, permute], ids=["shuffle", "permute"])
WINDOW = int(CHUNK) * int(OPEN)


def made(kernel, size, seed, first=0):
    order = np.full(size, 0xDEADBEEF, np.uint32)
    with np.errstate(over="ignore"):  # random numbers are made by overflow
        kernel(order, np.uintp(first), np.uint64(seed))
    return order


@KERNELS
@pytest.mark.parametrize("size", [0, 1, 2, 3, 63, 64, 65, 1000, WINDOW - 1, WINDOW, 3 * WINDOW + 5])
@pytest.mark.parametrize("first", [0, 17, 2**32 - 4 * WINDOW])
def test_every_row_from_the_first_on_comes_once(kernel, size, first):
    assert np.array_equal(np.sort(made(kernel, size, 7, first)), first + np.arange(size))


@KERNELS
@pytest.mark.parametrize("size", [1, 65, 1000])
def test_compiled_is_what_python_makes(kernel, size):
    assert np.array_equal(made(kernel, size, 7), made(kernel.function, size, 7))


@KERNELS
def test_order_is_a_function_of_the_seed_only(kernel):
    found = made(kernel, 5000, 3)
    assert np.array_equal(found, made(kernel, 5000, 3))
    assert np.array_equal(found + 90, made(kernel, 5000, 3, first=90))
    order = np.arange(5000, dtype=np.uint32)[::-1].copy()
    kernel(order, 0, np.uint64(3))  # whatever stood there before
    assert np.array_equal(found, order)


@KERNELS
def test_seeds_give_different_orders(kernel):
    orders = {made(kernel, 100, seed).tobytes() for seed in [*range(500), 2**63, 2**64 - 1]}
    assert len(orders) == 502


def test_workers_and_epochs_and_seeds_have_seeds_of_their_own():
    seeds = {seed_of(s, epoch, rank) for s in range(9) for epoch in range(9) for rank in range(9)}
    assert len(seeds) == 9**3
    assert seed_of(2**63 - 1, 10**6, 1023) == seed_of(2**63 - 1, 10**6, 1023) < 2**64


def uniform(counts):
    """Pearson's test, with odds of one in a million for an error."""
    expected = counts.sum() / counts.size
    statistic = np.sum((counts - expected) ** 2) / expected
    return statistic < chi2.isf(1e-6, counts.size - 1)


@KERNELS
@pytest.mark.parametrize("seeds", ["in a row", "as workers have them"])
def test_all_orders_of_a_few_rows_are_equally_likely(kernel, seeds):
    each = 240 * 40
    used = range(each) if seeds == "in a row" else (seed_of(0, e, 1) for e in range(each))
    places = np.array([made(kernel, 4, seed) for seed in used])
    numbers = places @ np.array([64, 16, 4, 1])
    found, counts = np.unique(numbers, return_counts=True)
    assert len(found) == math.factorial(4)
    assert uniform(counts)


@KERNELS
def test_any_row_is_equally_likely_in_any_place(kernel):
    size = 9
    counts = np.zeros((size, size))
    for seed in range(9000):
        counts[np.arange(size), made(kernel, size, seed)] += 1
    assert all(uniform(place) for place in counts)


SEVERAL = 5 * WINDOW + 7 * int(CHUNK) + 11  # rows, in six windows


def test_chunks_stay_within_a_window_each():
    """But for the one that a window's edge cuts, since the last chunk is not full."""
    order = made(shuffle, SEVERAL, 1)
    windows = [set(order[k : k + WINDOW] // int(CHUNK)) for k in range(0, SEVERAL, WINDOW)]
    for window in windows[:-1]:
        assert len(window) in (int(OPEN), int(OPEN) + 1)
    twice = sum(map(len, windows)) - len(set.union(*windows))
    assert twice <= len(windows) - 1


def test_each_window_is_shuffled_and_takes_chunks_from_everywhere():
    order = made(shuffle, SEVERAL, 2).astype(float)
    for begin in range(0, 5 * WINDOW, WINDOW):
        window = order[begin : begin + WINDOW]
        assert abs(window.mean() / SEVERAL - 0.5) < 0.2
        neighbors = np.corrcoef(window[:-1], window[1:])[0, 1]
        assert abs(neighbors) < 0.1  # standard deviation 0.016


def test_a_permutation_has_no_windows():
    order = made(permute, SEVERAL, 1)
    chunks = len(set(order[:WINDOW] // int(CHUNK)))
    assert chunks > 4 * int(OPEN)
