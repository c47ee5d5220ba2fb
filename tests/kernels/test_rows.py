"""Rows that are renumbered: against numpy."""

import numpy as np
import pytest

from hogwild.kernels.rows import WORD, renumber


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 5_000, 2**32])
@pytest.mark.parametrize("size", [0, 1, 700])
def test_columns_get_the_places_that_numpy_gives_them(columns, size):
    random = np.random.default_rng(columns + size)
    indices = random.choice(random.integers(0, columns, 300), size).astype(np.uint32)
    if size:
        indices[-1] = columns - 1
    used, expected = np.unique(indices, return_inverse=True)
    words = -(-columns // int(WORD))
    room = np.zeros(min(columns, size), np.uint32)
    found = indices.copy()
    count = renumber(found, np.zeros(words, np.uint64), np.empty(words, np.uint32), room)
    assert np.array_equal(room[:count], used)
    assert np.array_equal(found, expected)
