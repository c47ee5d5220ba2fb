"""Fingerprints tell arrays apart, and the pass that makes them finds what kernels must not meet."""

import numpy as np
import pytest

from hogwild.errors import DataError
from hogwild.fingerprints import PROBES, fingerprint, first_bad_index, first_bad_value

SIZES = [0, 1, 63, 64, 65, 4_095, 4_096, 4_097, 10_000]


def frozen(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("size", SIZES)
def test_the_first_bad_one_is_found_wherever_it_is(size: int) -> None:
    indices, values = np.arange(size, dtype=np.uint32) % 7, np.ones(size, np.float32)
    assert first_bad_index(frozen(indices), 7) == size
    assert first_bad_value(frozen(values)) == size
    for at in {0, size // 2, size - 1} if size else ():
        wrong = indices.copy()
        wrong[at:] = 7
        assert first_bad_index(frozen(wrong), 7) == at
        for bad in (np.nan, np.inf, -np.inf):
            wrong = values.copy()
            wrong[[at, -1]] = bad
            assert first_bad_value(frozen(wrong)) == at


def test_the_largest_numbers_are_not_bad() -> None:
    ends = np.finfo(np.float32)
    values = np.array([ends.max, ends.min, ends.tiny, -0.0, 0.0], np.float32)
    assert first_bad_value(frozen(values)) == 5
    assert first_bad_index(frozen(np.array([2**32 - 1], np.uint32)), 2**32) == 1


@pytest.mark.parametrize("size", SIZES[1:])
def test_any_one_number_that_differs_makes_another_fingerprint(size: int) -> None:
    array = np.random.default_rng(size).integers(0, 2**32, size, np.uint32)
    found = {fingerprint(array)}
    for at in range(0, size, max(1, size // 50)):
        other = array.copy()
        other[at] ^= np.uint32(1 << (at % 32))
        found.add(fingerprint(other))
    assert len(found) == 1 + len(range(0, size, max(1, size // 50)))
    assert fingerprint(array.copy()) == fingerprint(array)


def test_order_type_and_length_count() -> None:
    array = np.arange(1_000, dtype=np.uint32)
    zeros = np.zeros(1_000, np.uint32)
    others = (array[::-1].copy(), array.view(np.float32), array[:-1].copy(), zeros, zeros[:-1])
    assert len({fingerprint(some) for some in (array, *others)}) == 6


def test_what_may_be_written_to_is_looked_at_anew() -> None:
    array = np.zeros(100, np.float32)
    before = fingerprint(array)
    array[7] = 1
    assert fingerprint(array) != before


def test_what_was_frozen_and_is_changed_is_refused() -> None:
    array = np.zeros(PROBES // 2, np.float32)
    view = frozen(array)
    assert fingerprint(view) == fingerprint(view)
    array[9] = 1
    with pytest.raises(DataError, match="changed after"):
        fingerprint(view)
