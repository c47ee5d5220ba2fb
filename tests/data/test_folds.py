"""Who is held out: every class alike, whatever its place; and what folds cannot be made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hogwild
from hogwild.data.folds import folds, held_out


@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=5), st.integers(2, 6), st.integers(0, 2**40)
)
def test_folds_part_the_rows_and_every_class(sizes: list[int], count: int, seed: int) -> None:
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    if count > len(y):
        return
    splits, notes = folds(len(y), count, seed, y)
    assert sorted(np.concatenate([held for _, held in splits]).tolist()) == list(range(len(y)))
    for learned, held in splits:
        assert sorted([*learned, *held]) == list(range(len(y)))
    for label, size in enumerate(sizes):
        shares = [int((y[held] == label).sum()) for _, held in splits]
        assert max(shares) - min(shares) <= 1
        assert any(f"have the label {label}," in note for note in notes) == (size < count)


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=5),
    st.floats(0.01, 0.5),
    st.integers(0, 2**40),
)
def test_a_share_of_every_class_is_held_out(sizes: list[int], share: float, seed: int) -> None:
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    if round(share * len(y)) == 0 or len(y) == len(sizes):
        return
    learned, held = held_out(len(y), share, seed, y)
    assert sorted([*learned, *held]) == list(range(len(y)))
    assert len(held) == min(round(share * len(y)), len(y) - len(sizes))
    assert set(y[learned]) == set(range(len(sizes)))
    rate = len(held) / (len(y) - len(sizes))
    for label, size in enumerate(sizes):
        assert abs((y[held] == label).sum() - rate * (size - 1)) <= 1


def test_the_seed_alone_says_who() -> None:
    y = np.arange(1000) % 2
    one, same, other = (held_out(1000, 0.2, seed, y)[1] for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert len(np.intersect1d(one, other)) < 100  # 40 by chance
    assert 0 < len(np.intersect1d(one, one + 1)) < 100  # neighbors, too


@pytest.mark.parametrize("count", [1, 0, -3, 7, 2.0, True])
def test_folds_that_cannot_be(count: object) -> None:
    with pytest.raises(hogwild.OptionError, match="from 2 to 6, the number of rows"):
        folds(6, count, 0)  # type: ignore[arg-type]


def test_a_class_of_one_row_cannot_be_in_folds() -> None:
    with pytest.raises(hogwild.DataError, match="only one row has the label rare"):
        folds(6, 2, 0, np.array(["rare", *["usual"] * 5]))


def test_nothing_to_hold_out() -> None:
    with pytest.raises(hogwild.DataError, match="of 6 rows none was held out"):
        held_out(6, 0.05, 0)
