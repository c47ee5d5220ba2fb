"""A step does what the reference does, whatever the loss and the schedule."""

import mmap
import sys

import numpy as np
import pytest

from hogwild.kernels.evaluate import evaluator, scores
from hogwild.kernels.views import RowView, Span, view
from hogwild.learn.losses import CLASSES, LOSSES
from hogwild.learn.schedules import SCHEDULES
from hogwild.steps.sgd import sgd
from tests import reference
from tests.combinations import each, pairs
from tests.examples import (
    default_of,
    learn,
    learn_in_python,
    plan_of,
    random_order,
    random_rows,
    random_weights,
)

LONG = 600  # rows: more than two exchanges of the intercept
COMPILED = ["hinge", "logistic", "huber"]


def check(learned, loss, schedule, done, since, pace, share):
    """Learns from all rows, and compares with the reference."""
    kind, parameter = LOSSES[loss].kinds[0], default_of(loss)
    rows, X = random_rows(LONG, kind)
    order = random_order(LONG)
    eta0, l2 = 0.05, 1e-2
    w, b = random_weights().astype(float), -0.125
    scale = SCHEDULES[schedule].scale
    plan = plan_of(eta0, l2, since, share, parameter)
    stored = np.append(w / scale(plan, float(done)), b).astype(np.float32)
    total = learned(
        sgd(loss, schedule, False), rows, order, plan, stored, (0, LONG), clock=(done, pace)
    )
    times = done + pace * np.arange(LONG + 1.0)
    expected = reference.Plan(loss, schedule, eta0, l2, *plan[3:])
    w, b, losses = reference.learn(X, rows.targets.astype(float), order, expected, w, b, times)
    np.testing.assert_allclose(stored[:-1] * scale(plan, times[-1]), w, 2e-4, 2e-5)
    assert stored[-1] == pytest.approx(b, rel=2e-4, abs=2e-5)
    assert total == pytest.approx(losses, rel=1e-5)


# done, since, pace, share
TIMES = {
    "from the start": (0, 0, 1, 0.3),
    "later, without intercept": (700, 650, 1, 0.0),
    "one of three workers": (700, 650, 3, 1.0),
}


@pairs(loss=COMPILED, schedule=SCHEDULES, times=TIMES)
def test_learning_is_what_the_reference_does(loss, schedule, times):
    check(learn, loss, schedule, *TIMES[times])


@each(loss=[name for name in LOSSES if LOSSES[name].kinds != (CLASSES,)], times=TIMES)
def test_so_it_is_with_any_loss_in_python(loss, times):
    check(learn_in_python, loss, "inverse", *TIMES[times])


def test_a_weight_of_a_row_multiplies_its_step_and_its_loss():
    rows, _ = random_rows(4)
    order, found = np.array([2], np.uint32), []
    for weight in (1, 3):
        pairs = np.column_stack([rows.targets, np.full(4, weight)]).astype(np.float32)
        stored = np.zeros(21, np.float32)
        given = rows._replace(targets=pairs.ravel()), order, plan_of(), stored, (0, 1)
        total = learn_in_python(sgd("logistic", "inverse", True), *given)
        found.append([*stored, total])
    np.testing.assert_allclose(found[1], 3 * np.array(found[0]), 1e-6)
    assert found[0][-1] > 0


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
    columns, values = huge(nonzeros, np.uint32), huge(nonzeros, np.float32)
    starts = np.array([0, 3, nonzeros - 3, nonzeros], np.uint64)
    for begin, some in [(0, [0, 2, 4]), (nonzeros - 3, [1, 2, 5])]:
        columns[begin : begin + 3] = some
        values[begin : begin + 3] = [1, 2, 3]
    values[[3, (nonzeros - 3) % 2**31, nonzeros - 4]] = np.nan
    rows = view(RowView, starts[:-1], starts[1:], columns, values, np.array([1, 1, -1], np.float32))
    stored = np.zeros(7, np.float32)
    order, plan = np.array([2, 0], np.uint32), plan_of(0.5, 0.0, share=0.0)
    total = learn(sgd("hinge", "constant", False), rows, order, plan, stored, (0, 2))
    # the last row makes the weights -1/2 (0, 1, 2, 0, 0, 3): the first row's score is -2
    assert total == 1 + 3
    assert np.array_equal(stored, [0.5, -0.5, 0, 0, 1.5, -1.5, 0])
    look = evaluator("hinge", "signs", False)
    assert look(rows, view(Span, 2, 3), stored, 0.0) == (0, 0, 0)
    out = np.zeros(1, np.float32)
    scores(starts[2:-1], starts[3:], columns, values, stored[:-1], np.float32(0), out)
    assert out[0] == -5
    scores(starts[:-1], starts[1:], columns, values, stored[:-1], np.float32(0), out)
    assert out[0] == 5
