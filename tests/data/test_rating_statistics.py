"""Statistics of ratings against a naive count."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.data import rating_statistics as module
from hogwild.data.ids import Ids
from hogwild.data.rating_statistics import meaning, rating_statistics
from hogwild.data.ratings import Ratings
from hogwild.data.statistics import QUANTILES
from hogwild.data.synthetic_ratings import movielens


def make(users, items, values, shape) -> Ratings:
    return Ratings.from_codes(
        np.array(users, np.uint32),
        np.array(items, np.uint32),
        None if values is None else np.array(values, np.float32),
        Ids.numbered(shape[0]),
        Ids.numbered(shape[1]),
        name="a test",
    )


def met(users, items) -> list[int]:
    """With how many ratings each one shares its user or its item."""
    return [int(np.sum((users == u) | (items == i))) for u, i in zip(users, items, strict=True)]


def quantiles(counts) -> tuple[int, ...]:
    ranks = [max(int(np.ceil(q * len(counts))) - 1, 0) for q in QUANTILES]
    return tuple(int(np.sort(counts)[rank]) for rank in ranks) if len(counts) else (0,) * 7


def check(users, items, values, shape) -> None:
    users, items = np.array(users, np.uint32), np.array(items, np.uint32)
    found = rating_statistics(make(users, items, values, shape))
    n = len(users)
    by_user, by_item = (
        np.array([np.sum(codes == c) for c in range(size)], int)
        for codes, size in zip((users, items), shape, strict=True)
    )
    collisions = met(users, items)
    assert (found.users, found.items, found.ratings) == (*shape, n)
    assert found.density == (n / (shape[0] * shape[1]) if n else 0)
    assert found.duplicates == n - len(set(zip(users.tolist(), items.tolist(), strict=True)))
    assert found.user_ratings == quantiles(by_user)
    assert found.item_ratings == quantiles(by_item)
    assert found.empty_users == np.sum(by_user == 0)
    assert found.empty_items == np.sum(by_item == 0)
    assert found.single_users == np.sum(by_user == 1)
    assert found.single_items == np.sum(by_item == 1)
    assert found.omega == 2
    assert found.delta == max([*by_user, *by_item, 0]) / max(n, 1)
    assert found.rho == max(collisions, default=0) / max(n, 1)
    assert found.chance == pytest.approx(sum(collisions) / max(n, 1) ** 2)
    check_values(found, [] if values is None else np.array(values, np.float32).tolist())
    assert json.loads(json.dumps(asdict(found)))["rho"] == found.rho
    assert meaning(found)


def check_values(found, values) -> None:
    if not values:
        assert (found.mean, found.deviation, found.least, found.most) == (None,) * 4
    else:
        assert found.mean == pytest.approx(np.mean(values), rel=1e-12, abs=1e-12)
        assert found.deviation == pytest.approx(np.std(values), rel=1e-9, abs=1e-12)
        assert (found.least, found.most) == (min(values), max(values))
    kinds, counts = np.unique(values, return_counts=True)
    if len(kinds) > 128:
        assert (found.values, found.value_kinds) == ((), None)
    else:
        assert found.values == tuple(zip(kinds.tolist(), counts.tolist(), strict=True))
        assert found.value_kinds == len(kinds)


@st.composite
def some_ratings(draw):
    shape = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    rating = st.tuples(
        st.integers(0, shape[0] - 1),
        st.integers(0, shape[1] - 1),
        st.floats(-1e6, 1e6, width=32),
    )
    users, items, values = zip(*draw(st.lists(rating, min_size=1, max_size=40)), strict=True)
    return users, items, values, shape


@settings(max_examples=200, deadline=None)
@given(some_ratings())
def test_equal_to_a_naive_count(ratings):
    check(*ratings)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("count", "shape"), [(1_500, (400, 90)), (1_500, (9, 2_000))])
def test_many_ratings_with_repeated_pairs_of_busy_ones(count, shape, seed):
    rng = np.random.default_rng(seed)
    users, items = ((size * rng.random(count) ** 3).astype(int) for size in shape)
    check(users, items, rng.integers(1, 11, count) / 2, shape)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 4)])
@pytest.mark.parametrize("values", [None, []])
def test_no_ratings(shape, values):
    check([], [], values, shape)


def test_pairs_without_values():
    check([0, 0, 2], [1, 3, 3], None, (4, 5))


@pytest.mark.parametrize("kinds", [127, 128, 129, 1_000])
def test_more_than_128_different_values_are_not_counted(kinds):
    values = np.random.default_rng(kinds).permutation(np.repeat(np.arange(kinds), 3)) / 7 - 5
    check(np.arange(len(values)) % 10, np.arange(len(values)) % 11, values, (10, 11))


def test_a_negative_zero_is_a_zero():
    found = rating_statistics(make([0, 1, 2], [0, 1, 2], [-0.0, 0.0, 1.0], (3, 3)))
    assert found.values == ((0.0, 2), (1.0, 1))
    assert str(found.values[0][0]) == "0.0"


def test_values_far_from_zero_keep_their_deviation():
    values = 1e6 + np.tile([0.0, 0.5], 5_000)
    found = rating_statistics(make(np.arange(10_000), [0] * 10_000, values, (10_000, 1)))
    assert found.deviation == pytest.approx(0.25, rel=1e-12)


def test_a_repeated_pair_is_met_once_by_each_of_its_ratings():
    found = rating_statistics(make([0, 0, 0, 1], [0, 0, 1, 2], None, (2, 3)))
    assert found.duplicates == 1
    assert found.rho == 3 / 4
    assert found.chance == (3 + 3 + 3 + 1) / 16
    assert rating_statistics(make([0] * 5, [0] * 5, None, (1, 1))).rho == 1


def test_what_the_synthetic_set_looks_like():
    ratings, _ = movielens(2_000, 1_000, 100_000)
    found = rating_statistics(ratings)
    by_user, by_item = np.bincount(ratings.users), np.bincount(ratings.items)
    meetings = by_user[ratings.users] + by_item[ratings.items] - 1
    assert found.duplicates == 0
    assert found.rho == meetings.max() / 100_000
    assert found.chance == pytest.approx(meetings.mean() / 100_000)
    assert [v for v, _ in found.values] == np.arange(0.5, 5.5, 0.5).tolist()


def test_the_meaning_in_words():
    users, items = [0, 0, 0, 1, 2], [0, 1, 2, 0, 3]
    found = rating_statistics(make(users, items, None, (3, 4)))
    words = meaning(found)
    assert "busiest user has 60 % of the ratings, the busiest item 40 %" in words
    assert "shares its user or its item with 80 % of them" in words
    assert "the same user or the same item 52 % of the time" in words
    assert "The strata strategy loses none" in words
    assert "over 99.9 %" in meaning(replace(found, rho=0.99999))
    assert meaning(rating_statistics(make([], [], None, (2, 2)))) == "There are no ratings."


def test_nothing_is_left_from_one_user_to_the_next():
    size = 50
    users, items = np.repeat(np.arange(size), size), np.tile(np.arange(size), size)
    by_user = np.full(size, size, np.uint64)
    repeats = np.zeros(size, np.uint32)
    counted = module.count_overlaps(np.cumsum(by_user), items.astype(np.uint32), by_user, repeats)
    assert counted == (0, 2 * size - 1, len(users) * (2 * size - 1))
    assert not repeats.any()
