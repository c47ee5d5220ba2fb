"""K heads in one pass do what the reference does one after the other; nothing else is written."""

import math

import numpy as np
import pytest
from numba import types

from hogwild.kernels.compile import kernel
from hogwild.kernels.exponential import exp, log1p
from hogwild.kernels.heads import register_of, width_of
from hogwild.kernels.views import (
    Clock,
    Fetching,
    RowView,
    Span,
    Stored,
    task_of,
    view,
)
from hogwild.learn.heads import heads_of, zeros_on_a_line
from hogwild.learn.schedules import SCHEDULES
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from tests import reference
from tests.combinations import each
from tests.examples import plan_of

ROWS, COLUMNS, SHARE = 600, 20, 0.3


def sparse(seed=0):
    random = np.random.default_rng(seed)
    dense = random.normal(size=(ROWS, COLUMNS)) * (random.random((ROWS, COLUMNS)) < 0.25)
    X = dense.astype(np.float32)
    X[:: ROWS // 4] = 0
    return X


def csr(X):
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(X, axis=1))]).astype(np.uint64)
    return starts, np.nonzero(X)[1].astype(np.uint32), X[X != 0]


def targets_of(kind, heads, seed=1):
    """Targets as kernels take them, and signs, rows x heads."""
    random = np.random.default_rng(seed)
    if kind == "classes":
        classes = random.integers(0, heads, ROWS)
        return classes[:, None].astype(np.float32), 2.0 * (classes[:, None] == range(heads)) - 1
    has = random.random((ROWS, heads)) < 0.3
    bits = np.zeros((ROWS, -(-heads // 32) * 32), bool)
    bits[:, :heads] = has
    words = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    return words.view(np.float32), 2.0 * has - 1


def learned(heads, kind, loss, groups=None, weighted=False, schedule="inverse", eta0=0.1, l2=1e-2):
    """The weights (columns and the intercept) after an epoch by the kernel, and the losses."""
    X, (targets, signs) = sparse(), targets_of(kind, heads)
    if weighted:
        targets = np.column_stack([targets, np.full(ROWS, 2, np.float32)])
    some = heads_of(loss, kind, heads)
    shape = some.shape(weighted, groups)
    ahead, width = int(shape.first), int(shape.width)  # numbers before those of the first head
    weights = zeros_on_a_line(ahead + (COLUMNS + 1) * width)
    bias = np.zeros(some.width, np.float32)
    starts, columns, values = csr(X)
    targets = np.ascontiguousarray(targets, np.float32).reshape(-1)
    rows = view(RowView, starts[:-1], starts[1:], columns, values, targets)
    order = np.random.default_rng(2).permutation(ROWS).astype(np.uint32)
    plan = plan_of(eta0, l2, share=SHARE)
    fetching = view(Fetching, 8, 1, 2)
    task = task_of(rows, order, some.scratch(), shape, plan, fetching)
    stored = view(Stored, weights, weights, bias.copy(), bias.copy(), weights[:0])
    stored = stored._replace(moved=stored.bias)
    loop, span = shared_loop(some.step(schedule, weighted)), view(Span, 0, ROWS)
    total = loop(task, span, stored, view(Clock, 0, 1), NO_SNAPSHOTS)
    assert not weights[:ahead].any()
    whole = weights[ahead:].reshape(COLUMNS + 1, width).copy()
    whole[:-1] *= SCHEDULES[schedule].scale(plan, float(ROWS))
    return whole, total, (X.astype(float), signs, order)


@each(
    heads=[2, 3, 5, 8, 9, 16, 20, 50, 101],
    kind=["hinge of classes", "logistic of labels", "cross_entropy of classes"],
)
def test_all_heads_learn_what_the_reference_does(heads, kind):
    loss, kind = kind.split(" of ")
    found, total, (X, signs, order) = learned(heads, kind, loss)
    start = np.zeros((heads, COLUMNS)), np.zeros(heads)
    plan = reference.Plan(loss, "inverse", 0.1, 1e-2, *plan_of(share=SHARE)[3:])
    W, b, expected = reference.learn_heads(X, signs, order, plan, *start, np.arange(ROWS + 1.0))
    np.testing.assert_allclose(found[:-1, :heads].T, W, 2e-4, 2e-5)
    np.testing.assert_allclose(found[-1, :heads], b, 2e-4, 2e-5)
    assert total == pytest.approx(expected, rel=1e-5)
    assert not found[:, heads:].any()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_is_that_of_the_reference(schedule):
    found, _, (X, signs, order) = learned(5, "classes", "squared_hinge", schedule=schedule)
    plan = reference.Plan("squared_hinge", schedule, 0.1, 1e-2, *plan_of(share=SHARE)[3:])
    start = np.zeros((5, COLUMNS)), 0.0
    W, b, _ = reference.learn_heads(X, signs, order, plan, *start, np.arange(ROWS + 1.0))
    np.testing.assert_allclose(found[:-1, :5].T, W, 2e-4, 2e-5)
    np.testing.assert_allclose(found[-1, :5], b, 2e-4, 2e-5)


@each(groups=[(0, 1), (1, 3), (3, 4)], kind=["labels", "classes"])
def test_some_heads_in_an_array_of_their_own_are_learned_to_the_byte(groups, kind):
    whole, *_ = learned(50, kind, "logistic")
    part, *_ = learned(50, kind, "logistic", groups=groups)
    assert np.array_equal(part, whole[:, 16 * groups[0] : 16 * groups[1]])


@pytest.mark.parametrize(("kind", "loss"), [("labels", "logistic"), ("classes", "cross_entropy")])
def test_rows_of_weight_two_make_twice_the_step(kind, loss):
    once, losses, _ = learned(20, kind, loss, eta0=0.1, l2=0.0)
    twice, more, _ = learned(20, kind, loss, weighted=True, eta0=0.05, l2=0.0)
    np.testing.assert_allclose(once, twice, 1e-5, 1e-6)
    assert more == pytest.approx(2 * losses)


def test_widths_are_whole_registers():
    for heads in range(1, 300):
        width = width_of(heads)
        assert width >= max(2, heads)
        assert width % register_of(width) == 0
        assert heads <= 8 or width - heads < 16


@kernel(types.float64(types.float64))
def compiled_exp(x):
    return exp(x)


@kernel(types.float64(types.float64))
def compiled_log1p(x):
    return log1p(x)


@pytest.mark.parametrize("our_exp", [compiled_exp, exp], ids=["compiled", "python"])
def test_exp_is_exp(our_exp):
    for x in np.linspace(-700, 700, 997):
        assert our_exp(float(x)) == pytest.approx(math.exp(x), rel=1e-12)
    assert our_exp(-1e9) < 1e-300
    assert 1e300 < our_exp(1e9) < math.inf


@pytest.mark.parametrize("our_log", [compiled_log1p, log1p], ids=["compiled", "python"])
def test_log1p_is_log1p(our_log):
    for x in [0.0, 1e-300, 1e-20, 1e-9, *np.linspace(1e-6, 1, 97)]:
        assert our_log(float(x)) == pytest.approx(math.log1p(x), rel=1e-10)
