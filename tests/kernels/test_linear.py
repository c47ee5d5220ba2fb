"""The compiled kernels do what the naive twin does, and take nothing but what they say."""

import math
import mmap
import sys
from itertools import pairwise
from threading import Thread
from time import sleep

import numpy as np
import pytest
from scipy.stats import chi2

from hogwild.kernels import linear as kernels
from hogwild.kernels.compile import Kernel
from hogwild.problems import losses, schedules
from hogwild.seeds import seed_of
from tests import reference

SHARE = 0.3  # of the intercept's rate
FETCHING = 8, 1, 2  # rows ahead, lines of each, and rows ahead whose weights are
LONG = 600  # rows: more than two exchanges of the intercept


def random_rows(rows, columns=20, seed=0):
    """Sparse rows, some empty: the CSR arrays with targets, and the same as a matrix."""
    random = np.random.default_rng(seed)
    dense = random.normal(size=(rows, columns)) * (random.random((rows, columns)) < 0.25)
    X = dense.astype(np.float32)
    X[:: rows // 4] = 0
    y = np.sign(X @ random.normal(size=columns) + 0.5 * random.normal(size=rows) + 0.3)
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(X, axis=1))]).astype(np.uint64)
    columns_of = np.nonzero(X)[1].astype(np.uint32)
    return (indptr, columns_of, X[X != 0], y.astype(np.float32)), X.astype(np.float64)


def random_order(rows, seed=1):
    return np.random.default_rng(seed).permutation(rows).astype(np.uint32)


def random_weights(columns=20, seed=2):
    return (np.random.default_rng(seed).normal(size=columns) / 4).astype(np.float32)


def clock(done, since, stride):
    return float(done), float(since), float(stride)


@pytest.mark.parametrize("schedule", schedules.SCHEDULES)
@pytest.mark.parametrize("loss", losses.LOSSES)
@pytest.mark.parametrize(
    ("done", "since", "stride", "share"),
    [(0, 0, 1, SHARE), (700, 650, 1, 0.0), (700, 650, 3, 1.0)],
    ids=["from the start", "later, without intercept", "one of three workers"],
)
def test_learning_is_what_the_reference_does(loss, schedule, done, since, stride, share):
    rows, X = random_rows(LONG)
    order = random_order(LONG)
    eta0, l2 = 0.05, 1e-2
    w, b = random_weights().astype(float), np.float32(-0.125)
    left = schedules.SCHEDULES[schedule].left
    stored = (w / left(done, since, eta0, l2)).astype(np.float32)
    intercept = np.array([b])
    total = kernels.learn(
        rows,
        order,
        0,
        LONG,
        FETCHING,
        stored,
        intercept,
        losses.code(loss),
        (schedules.code(schedule), eta0, l2, share),
        clock(done, since, stride),
    )
    times = done + stride * np.arange(LONG + 1.0)
    plan = loss, schedule, eta0, l2, share
    w, b, expected_total = reference.learn(X, rows[3].astype(float), order, plan, w, b, times)
    np.testing.assert_allclose(stored * left(times[-1], since, eta0, l2), w, 2e-4, 2e-5)
    np.testing.assert_allclose(intercept, b, 2e-4, 2e-5)
    assert total == pytest.approx(expected_total, rel=1e-5)


def test_learning_in_pieces_is_learning_at_once():
    rows, _ = random_rows(LONG)
    order = random_order(LONG)
    found = []
    for cuts in [(0, LONG), (0, 1, 255, 256, 257, 511, LONG, LONG)]:
        weights, intercept, total = random_weights(), np.zeros(1, np.float32), 0.0
        for begin, end in pairwise(cuts):
            plan, now = (0, 0.05, 1e-2, SHARE), clock(begin, 0, 1)
            total += kernels.learn(
                rows, order, begin, end, FETCHING, weights, intercept, 2, plan, now
            )
        found.append([*weights, *intercept, total])
    np.testing.assert_allclose(found[0], found[1], 1e-5, 1e-6)


def test_learning_visits_the_rows_between_begin_and_end_only_and_each_once():
    """Hinge and one column to each row: every visit adds exactly the rate."""
    size = 50
    rows = (
        np.arange(size + 1, dtype=np.uint64),
        np.arange(size, dtype=np.uint32),
        np.ones(size, np.float32),
        np.ones(size, np.float32),
    )
    order = random_order(size)
    weights = np.zeros(size, np.float32)
    plan = schedules.code("constant"), 0.125, 0.0, 0.0
    args = weights, np.zeros(1, np.float32), losses.code("hinge"), plan, clock(0, 0, 1)
    assert kernels.learn(rows, order, 10, 30, FETCHING, *args) == 20
    expected = np.zeros(size)
    expected[order[10:30]] = 0.125
    assert np.array_equal(weights, expected)
    assert kernels.learn(rows, order, 7, 7, FETCHING, *args) == 0
    assert np.array_equal(weights, expected)


@pytest.mark.parametrize(
    "fetching", [(0, 0, 0), (1, 0, 0), (1, 1, 1), (20, 6, 6), (10_000, 100, 5_000)]
)
def test_fetching_ahead_changes_nothing(fetching):
    rows, _ = random_rows(LONG)
    found = []
    for ahead in (FETCHING, fetching):
        weights, intercept = random_weights(), np.zeros(1, np.float32)
        args = weights, intercept, 0, (0, 0.05, 1e-2, SHARE), clock(0, 0, 1)
        kernels.learn(rows, random_order(LONG), 0, LONG, ahead, *args)
        found.append(weights.tobytes() + intercept.tobytes())
    assert found[0] == found[1]


def test_what_another_worker_does_to_the_intercept_meanwhile_is_kept():
    """It is exchanged by differences. One write among thousands may be lost: that is Hogwild!."""
    nothing = np.zeros(0, np.float32)
    rows = np.zeros(2, np.uint64), nothing.astype(np.uint32), nothing, np.ones(1, np.float32)
    order = np.zeros(20_000_000, np.uint32)  # one empty row, for a tenth of a second
    intercept = np.full(1, 5, np.float32)  # no slope: the margin is far beyond 1
    args = nothing, intercept, 0, (1, 1.0, 0.0, 1.0), clock(0, 0, 1)
    worker = Thread(target=kernels.learn, args=(rows, order, 0, len(order), FETCHING, *args))
    worker.start()
    meanwhile = 0
    while worker.is_alive():
        intercept[0] += 1
        meanwhile += worker.is_alive()
        sleep(1e-4)
    worker.join()
    assert meanwhile > 5
    assert 0.9 * meanwhile <= intercept[0] - 5 <= meanwhile + 1


@pytest.mark.parametrize("loss", losses.LOSSES)
def test_evaluate_against_numpy(loss):
    rows, X = random_rows(LONG)
    weights, intercept = random_weights(), np.float32(0.25)
    for begin, end in [(0, LONG), (100, 450), (5, 5)]:
        y = rows[3][begin:end].astype(float)
        score = X[begin:end] @ weights.astype(float) + float(intercept)
        total, wrong = kernels.evaluate(rows, begin, end, weights, intercept, losses.code(loss))
        assert total == pytest.approx(reference.value(loss, score, y).sum(), rel=1e-5)
        assert wrong == np.count_nonzero((score > 0) != (y > 0))


@pytest.mark.parametrize("loss", losses.LOSSES)
def test_losses_of_rows_against_numpy(loss):
    rows, X = random_rows(LONG)
    begin, end = 5, LONG - 7
    weights = tuple(random_weights(seed=seed) for seed in range(3))
    intercepts, found = np.float32([0.25, -0.5, 0]), np.full((3, end - begin), np.nan)
    points = weights, tuple(intercepts), 2  # the third is not looked at
    kernels.losses_of(rows, begin, end, *points, losses.code(loss), found.reshape(-1))
    for number, (w, b) in enumerate(zip(weights, intercepts, strict=True)):
        score = X[begin:end] @ w.astype(float) + b
        expected = reference.value(loss, score, rows[3][begin:end])
        np.testing.assert_allclose(found[number], expected if number < 2 else np.nan, 1e-5, 1e-6)


def test_a_score_of_zero_counts_as_negative():
    rows, _ = random_rows(LONG)
    _, wrong = kernels.evaluate(rows, 0, LONG, np.zeros(20, np.float32), np.float32(0), 0)
    assert wrong == np.count_nonzero(rows[3] > 0) != np.count_nonzero(rows[3] < 0)


def test_scores_against_numpy_with_columns_that_the_model_lacks():
    (indptr, indices, values, _), X = random_rows(LONG)
    for known in (20, 7, 0):
        out = np.full(LONG, np.nan, np.float32)
        weights = random_weights()[:known]
        kernels.scores(indptr, indices, values, weights, np.float32(-0.5), out)
        np.testing.assert_allclose(out, X[:, :known] @ weights.astype(float) - 0.5, 1e-5, 1e-6)


@pytest.mark.parametrize("size", [0, 1, 7, 1000])
def test_squared_norm_is_summed_in_double_precision(size):
    weights = random_weights(size) + np.float32(1000)
    expected = math.fsum(float(w) ** 2 for w in weights)
    assert kernels.squared_norm(weights) == pytest.approx(expected, rel=1e-13, abs=0)


def test_squared_norm_does_not_overflow_float32():
    assert kernels.squared_norm(np.full(4, 1e30, np.float32)) == pytest.approx(4e60)


def test_add_scaled_against_numpy():
    weights, sums = random_weights(), random_weights(seed=3)
    for factor, keep in [(0.5, 1.0), (2.0, 0.25), (1.0, 0.0)]:
        found = sums.copy()
        kernels.add_scaled(weights, factor, keep, found)
        np.testing.assert_allclose(found, keep * sums + factor * weights, 1e-6, 1e-7)


def test_add_scaled_that_keeps_nothing_forgets_even_nan_and_infinity():
    sums = np.array([np.nan, np.inf, -np.inf] * 7, np.float32)
    kernels.add_scaled(np.arange(21, dtype=np.float32), 2.0, 0.0, sums)
    assert np.array_equal(sums, 2 * np.arange(21))


# Python and compiled


def call(function):
    """Every kernel of the module on small data: all that they write and return."""
    rows, _ = random_rows(60)
    order = np.zeros(60, np.uint32)
    function(kernels.shuffle)(order, 0, np.uint64(5))
    weights, intercept = random_weights(), np.zeros(1, np.float32)
    plan = 0, 0.05, 1e-2, SHARE
    total = function(kernels.learn)(
        rows, order, 3, 60, FETCHING, weights, intercept, 2, plan, clock(10, 4, 2)
    )
    sums, out = random_weights(seed=3), np.zeros(60, np.float32)
    function(kernels.add_scaled)(weights, np.float32(0.5), np.float32(0.25), sums)
    function(kernels.scores)(*rows[:3], weights[:15], np.float32(0.5), out)
    evaluated = function(kernels.evaluate)(rows, 5, 50, weights, np.float32(0.5), 2)
    each = np.zeros(180)
    points = (weights, sums, weights), (np.float32(0.5),) * 3, 3
    function(kernels.losses_of)(rows, 0, 60, *points, 2, each)
    norm = function(kernels.squared_norm)(weights)
    return order, weights, intercept, total, sums, out, evaluated, each, norm


def test_compiled_kernels_do_what_their_python_source_does(monkeypatch):
    compiled = call(lambda kernel: kernel)
    for name in ("prefetch", "prefetch_once", "fetch_stretch"):
        monkeypatch.setattr(kernels, name, lambda *_: None)
    with np.errstate(over="ignore"):  # random numbers are made by overflow
        python = call(lambda kernel: kernel.function)
    assert np.array_equal(compiled[0], python[0])
    for mine, theirs in zip(compiled[1:], python[1:], strict=True):
        np.testing.assert_allclose(mine, theirs, 1e-5, 1e-6)


# The order of the rows


def shuffled(size, seed, first=0):
    order = np.full(size, 0xDEADBEEF, np.uint32)
    kernels.shuffle(order, first, np.uint64(seed))
    return order


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000])
@pytest.mark.parametrize("first", [0, 17, 2**32 - 1000])
def test_shuffle_is_a_permutation_from_the_first_row_on(size, first):
    assert np.array_equal(np.sort(shuffled(size, 7, first)), first + np.arange(size))


def test_order_is_a_function_of_the_seed_only():
    found = shuffled(500, 3)
    assert np.array_equal(found, shuffled(500, 3))
    assert np.array_equal(found + 90, shuffled(500, 3, first=90))
    order = np.arange(500, dtype=np.uint32)[::-1].copy()
    kernels.shuffle(order, 0, np.uint64(3))  # whatever stood there before
    assert np.array_equal(found, order)


def test_seeds_give_different_orders():
    orders = {shuffled(100, seed).tobytes() for seed in [*range(500), 2**63, 2**64 - 1]}
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


@pytest.mark.parametrize("seeds", ["in a row", "as workers have them"])
def test_all_orders_are_equally_likely(seeds):
    each = 240 * 40
    used = range(each) if seeds == "in a row" else (seed_of(0, e, 1) for e in range(each))
    places = np.array([shuffled(4, seed) for seed in used])
    numbers = places @ np.array([64, 16, 4, 1])
    found, counts = np.unique(numbers, return_counts=True)
    assert len(found) == math.factorial(4)
    assert uniform(counts)


def test_any_row_is_equally_likely_in_any_place():
    size = 9
    counts = np.zeros((size, size))
    for seed in range(9000):
        counts[np.arange(size), shuffled(size, seed)] += 1
    assert all(uniform(place) for place in counts)


# Types

KERNELS = [name for name, value in vars(kernels).items() if isinstance(value, Kernel)]
NORM = (np.ones(4, np.float32),)


def test_all_kernels_of_the_module_are_looked_at():
    assert {"learn", "evaluate", "scores", "shuffle", "add_scaled", "squared_norm"} <= set(KERNELS)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_has_one_signature_and_other_types_are_refused(name):
    kernel = getattr(kernels, name)
    before = kernel.compiled.signatures
    assert len(before) == 1
    wide = np.ones(4)  # float64
    count = len(kernel.signature.args)
    for arguments in [(wide,) * count, (None,) * count, (NORM,) * count]:
        with pytest.raises(TypeError):
            kernel(*arguments)
    assert kernel.compiled.signatures == before


def test_so_it_is_where_no_folder_for_compiled_kernels_can_be_had(monkeypatch):
    monkeypatch.setattr("hogwild.kernels.compile.cache_folder", lambda: None)
    norm = kernels.squared_norm
    kernel = Kernel(norm.function, norm.signature, norm.fast)
    assert kernel(np.ones(9, np.float32)) == 9
    with pytest.raises(TypeError):
        kernel(np.ones(9))


def test_arrays_of_another_type_order_or_without_leave_to_write_are_refused():
    with pytest.raises(TypeError):
        kernels.squared_norm(np.ones(8, np.float64))
    with pytest.raises(TypeError):
        kernels.squared_norm(np.ones(8, np.float32)[::2])
    frozen = np.ones(8, np.float32)
    frozen.flags.writeable = False
    assert kernels.squared_norm(frozen) == 8
    with pytest.raises(TypeError):
        kernels.add_scaled(frozen, 1.0, 1.0, frozen)
    with pytest.raises(TypeError):
        kernels.shuffle(np.zeros(3, np.int64), 0, 1)


# Sizes that no 32-bit number holds

NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # Python 3.11 has no name for it


def huge(length, dtype):
    """Zeros that take no memory until they are touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        block = mmap.mmap(-1, length * np.dtype(dtype).itemsize, flags=flags)
    except (OSError, ValueError) as problem:
        pytest.skip(f"no address space to be had for {length:,} numbers: {problem}")
    return np.frombuffer(block, dtype)


@pytest.mark.parametrize("nonzeros", [2**31 + 64, 2**32 + 64])
def test_more_nonzeros_than_32_bits_can_count(nonzeros):
    """Three rows: two of three values each, and between them one that must not be visited."""
    indices, values = huge(nonzeros, np.uint32), huge(nonzeros, np.float32)
    indptr = np.array([0, 3, nonzeros - 3, nonzeros], np.uint64)
    for begin, columns in [(0, [0, 2, 4]), (nonzeros - 3, [1, 2, 5])]:
        indices[begin : begin + 3] = columns
        values[begin : begin + 3] = [1, 2, 3]
    values[[3, (nonzeros - 3) % 2**31, nonzeros - 4]] = np.nan
    targets = np.array([1, 1, -1], np.float32)
    rows = indptr, indices, values, targets
    weights, intercept = np.zeros(6, np.float32), np.zeros(1, np.float32)
    order = np.array([2, 0], np.uint32)
    plan = schedules.code("constant"), 0.5, 0.0, 0.0
    total = kernels.learn(rows, order, 0, 2, FETCHING, weights, intercept, 0, plan, clock(0, 0, 1))
    # the last row makes the weights -1/2 (0, 1, 2, 0, 0, 3): the first row's score is -2
    assert total == 1 + 3
    assert np.array_equal(weights, [0.5, -0.5, 0, 0, 1.5, -1.5])
    assert kernels.evaluate(rows, 2, 3, weights, np.float32(0), 0) == (0, 0)
    out = np.zeros(1, np.float32)
    kernels.scores(indptr[2:], indices, values, weights, np.float32(0), out)
    assert out[0] == -5
    kernels.scores(indptr, indices, values, weights, np.float32(0), out)
    assert out[0] == 5
