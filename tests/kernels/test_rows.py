"""Rows that are copied and renumbered: against numpy."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hogwild.kernels.rows import WORD, gather_rows, list_marked, mark, renumber
from tests.examples import random_rows

COMPILED = mark, list_marked, renumber
PYTHON = tuple(kernel.function for kernel in COMPILED)


@pytest.mark.parametrize(
    ("calls", "columns"),
    [(COMPILED, columns) for columns in (1, 63, 64, 65, 5_000, 2**32)]
    + [(PYTHON, columns) for columns in (1, 63, 64, 65, 5_000)],
)
@pytest.mark.parametrize("size", [0, 1, 700])
def test_columns_get_the_places_that_numpy_gives_them(calls, columns, size):
    random = np.random.default_rng(columns + size)
    indices = random.choice(random.integers(0, columns, 300), size).astype(np.uint32)
    if size:
        indices[-1] = columns - 1
    used, expected = np.unique(indices, return_inverse=True)
    words = -(-columns // int(WORD))
    bits, before = np.zeros(words, np.uint64), np.empty(words, np.uint32)
    marked, places = np.empty(len(used), np.uint32), np.empty(size, np.uint32)
    count_them, list_them, place_them = calls
    assert count_them(indices, bits, columns) == len(used)
    list_them(bits, before, marked)
    place_them(indices, bits, before, places)
    assert np.array_equal(marked, used)
    assert np.array_equal(places, expected)


def test_marking_ends_soon_after_there_are_too_many_columns():
    indices, bits = np.arange(100_000, dtype=np.uint32), np.zeros(2_000, np.uint64)
    assert mark(indices, bits, 10) < 10_000
    assert mark(indices, np.zeros(2_000, np.uint64), 100_000) == 100_000


@pytest.mark.parametrize("call", [gather_rows, gather_rows.function], ids=["compiled", "python"])
def test_chosen_rows_are_copied_in_their_order(call):
    rows, X = random_rows(100)
    chosen = np.random.default_rng(1).integers(0, 100, 30).astype(np.uint64)
    starts = np.append(0, np.cumsum((rows.ends - rows.begins).astype(int)[chosen])).astype(
        np.uint64
    )
    columns, values = np.empty(starts[-1], np.uint32), np.empty(starts[-1], np.float32)
    call(rows.begins, rows.ends, rows.columns, rows.values, chosen, starts, columns, values)
    copied = csr_matrix((values, columns, starts), shape=(30, X.shape[1]))
    assert np.array_equal(copied.toarray(), X[chosen])
