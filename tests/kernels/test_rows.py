"""Rows that are copied and renumbered: against numpy."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hogwild.kernels.rows import WORD, gather_rows, renumber
from tests.examples import random_rows


@pytest.mark.parametrize(
    ("call", "columns"),
    [(renumber, columns) for columns in (1, 63, 64, 65, 5_000, 2**32)]
    + [(renumber.function, columns) for columns in (1, 63, 64, 65, 5_000)],
)
@pytest.mark.parametrize("size", [0, 1, 700])
def test_columns_get_the_places_that_numpy_gives_them(call, columns, size):
    random = np.random.default_rng(columns + size)
    indices = random.choice(random.integers(0, columns, 300), size).astype(np.uint32)
    if size:
        indices[-1] = columns - 1
    used, expected = np.unique(indices, return_inverse=True)
    words = -(-columns // int(WORD))
    room = np.zeros(min(columns, size), np.uint32)
    found = indices.copy()
    count = call(found, np.zeros(words, np.uint64), np.empty(words, np.uint32), room)
    assert np.array_equal(room[:count], used)
    assert np.array_equal(found, expected)


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
