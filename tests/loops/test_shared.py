"""The loop on shared weights: the rows that it visits, and what it shares with others."""

from itertools import pairwise
from threading import Thread
from time import sleep

import numpy as np
import pytest

from hogwild.kernels.views import RowView, view
from hogwild.steps.sgd import sgd
from tests.examples import FETCHING, learn, plan_of, random_order, random_rows, random_weights

LONG = 600  # rows: more than two exchanges of the intercept
CONSTANT = sgd("hinge", "constant", False)
HINGE, LOGISTIC = sgd("hinge", "inverse", False), sgd("logistic", "inverse", False)


def test_learning_in_pieces_is_learning_at_once():
    rows, _ = random_rows(LONG)
    order = random_order(LONG)
    found = []
    for cuts in [(0, LONG), (0, 1, 255, 256, 257, 511, LONG, LONG)]:
        stored, total = np.append(random_weights(), np.float32(0)), 0.0
        for span in pairwise(cuts):
            total += learn(LOGISTIC, rows, order, plan_of(), stored, span, clock=(span[0], 1))
        found.append([*stored, total])
    np.testing.assert_allclose(found[0], found[1], 1e-5, 1e-6)


def test_learning_visits_the_rows_between_begin_and_end_only_and_each_once():
    """Hinge and one column to each row: every visit adds exactly the rate."""
    size = 50
    starts, columns = np.arange(size + 1, dtype=np.uint64), np.arange(size, dtype=np.uint32)
    ones = np.ones(size, np.float32)
    given = view(RowView, starts[:-1], starts[1:], columns, ones, ones), random_order(size)
    stored, plan = np.zeros(size + 1, np.float32), plan_of(0.125, 0.0, share=0.0)
    assert learn(CONSTANT, *given, plan, stored, (10, 30)) == 20
    expected = np.zeros(size + 1)
    expected[given[1][10:30]] = 0.125
    assert np.array_equal(stored, expected)
    assert learn(CONSTANT, *given, plan, stored, (7, 7)) == 0
    assert np.array_equal(stored, expected)


@pytest.mark.parametrize(
    "fetching", [(0, 0, 0), (1, 0, 0), (1, 1, 1), (20, 6, 6), (10_000, 100, 5_000)]
)
def test_fetching_ahead_changes_nothing(fetching):
    rows, _ = random_rows(LONG)
    found = []
    for ahead in (FETCHING, fetching):
        stored = np.append(random_weights(), np.float32(0))
        learn(HINGE, rows, random_order(LONG), plan_of(), stored, (0, LONG), fetching=ahead)
        found.append(stored.tobytes())
    assert found[0] == found[1]


def test_what_another_worker_does_to_the_intercept_meanwhile_is_kept():
    """It is exchanged by differences. One write among thousands may be lost: that is Hogwild!."""
    starts, nothing = np.zeros(2, np.uint64), np.zeros(0, np.float32)
    rows = view(
        RowView, starts[:-1], starts[1:], nothing.astype(np.uint32), nothing, np.ones(1, np.float32)
    )
    order = np.zeros(20_000_000, np.uint32)  # one empty row, for a tenth of a second
    stored = np.full(1, 5, np.float32)  # no slope: the margin is far beyond 1
    plan = plan_of(1.0, 0.0, share=1.0)
    given = CONSTANT, rows, order, plan, stored, (0, len(order))
    worker = Thread(target=learn, args=given)
    worker.start()
    meanwhile = 0
    while worker.is_alive():
        stored[0] += 1
        meanwhile += worker.is_alive()
        sleep(1e-4)
    worker.join()
    assert meanwhile > 5
    assert 0.9 * meanwhile <= stored[0] - 5 <= meanwhile + 1


def test_rows_without_slope_leave_every_bit_of_the_weights():
    """They are stored divided by what the penalty has left of them."""
    rows, _ = random_rows(40)
    far = np.append(1e14 * (1 + np.arange(40)) * rows.targets, 0).astype(np.float32)
    starts, columns = np.arange(41, dtype=np.uint64), np.arange(40, dtype=np.uint32)
    apart = view(RowView, starts[:-1], starts[1:], columns, np.ones(40, np.float32), rows.targets)
    for schedule in ("inverse", "constant", "sqrt"):
        stored = far.copy()
        plan = plan_of(1.0, 0.01, share=1.0)
        step = sgd("hinge", schedule, False)
        assert learn(step, apart, random_order(40), plan, stored, (0, 40)) == 0
        assert stored.tobytes() == far.tobytes()
