"""Ratings in memory: what is refused, pairs that occur twice, parts, and other ids."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from hogwild import DataError, OptionError
from hogwild.data.ids import UNKNOWN, Ids
from hogwild.data.ratings import Ratings

quick = settings(deadline=None, max_examples=100)
triples = st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.integers(0, 9)))


def ratings_of(rated: list[tuple[Any, Any, Any]], **options: Any) -> Ratings:
    users, items, values = ([entry[k] for entry in rated] for k in range(3))
    return Ratings(users, items, values, **options)


def triples_of(ratings: Ratings) -> list[tuple[Any, Any, Any]]:
    users = [ratings.user_ids[code] for code in ratings.users]
    items = [ratings.item_ids[code] for code in ratings.items]
    return list(zip(users, items, ratings.values.tolist(), strict=True))


@quick
@given(triples)
def test_ratings_are_those_that_were_given(rated: list[tuple[int, str, int]]) -> None:
    ratings = ratings_of(rated)
    assert triples_of(ratings) == rated
    assert len(ratings) == len(rated)
    assert ratings.shape == (len({user for user, _, _ in rated}), len({i for _, i, _ in rated}))
    assert ratings.nbytes == 12 * len(rated)


@quick
@given(triples, st.sampled_from(["mean", "last"]))
def test_a_pair_is_merged_where_it_was_first(rated: list[tuple[int, str, int]], how: str) -> None:
    merged: dict[tuple[int, str], list[int]] = {}
    for user, item, value in rated:
        merged.setdefault((user, item), []).append(value)
    wanted = [
        (*pair, float(np.float32(sum(values) / len(values))) if how == "mean" else values[-1])
        for pair, values in merged.items()
    ]
    assert triples_of(ratings_of(rated).deduplicated(how)) == wanted
    assert triples_of(ratings_of(rated, duplicates=how)) == wanted
    pairs = Ratings([u for u, _, _ in rated], [i for _, i, _ in rated], duplicates=how)
    assert pairs.values is None
    assert len(pairs) == len(merged)


@quick
@given(triples)
def test_the_first_repetition_is_named(rated: list[tuple[int, str, int]]) -> None:
    pairs = [(user, item) for user, item, _ in rated]
    repeated = [k for k in range(len(pairs)) if pairs[k] in pairs[:k]]
    if not repeated:
        assert triples_of(ratings_of(rated, duplicates="error")) == rated
        return
    user, item = pairs[repeated[0]]
    first = pairs.index((user, item)) + 1
    message = f"user {user} and item '{item}' .* in the ratings {first} and {repeated[0] + 1};"
    with pytest.raises(DataError, match=message):
        ratings_of(rated, duplicates="error")
    with pytest.raises(DataError, match=message):
        ratings_of(rated).to_scipy()


def test_keep_keeps_all() -> None:
    ratings = ratings_of([(1, "a", 2), (1, "a", 3)])
    assert ratings.deduplicated("keep") is ratings
    once = ratings_of([(1, "a", 2), (2, "a", 3)])
    assert once.deduplicated("mean") is once
    for wrong in ("first", None, "Mean"):
        with pytest.raises(OptionError, match="keep, mean, last, error"):
            ratings.deduplicated(wrong)
        with pytest.raises(OptionError, match="keep, mean, last, error"):
            Ratings([1], [2], [3], duplicates=wrong)


def test_a_matrix_holds_ratings_of_numbered_users_and_items() -> None:
    matrix = sparse.csr_matrix(
        (np.array([0.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 1, 1, 3])), shape=(3, 5)
    )
    for form in ("csr", "csc", "coo", "lil", "dok"):
        ratings = Ratings(matrix.asformat(form))
        assert ratings.shape == (3, 5)
        assert set(triples_of(ratings)) >= {(2, 0, 2.0), (2, 1, 3.0)}
        if form in ("csr", "csc", "coo"):
            assert (0, 2, 0.0) in triples_of(ratings)  # a zero that is stored is a rating
    twice = sparse.coo_array(([1.0, 2.0], ([1, 1], [0, 0])), shape=(2, 2))
    assert triples_of(Ratings(twice)) == [(1, 0, 1.0), (1, 0, 2.0)]


@quick
@given(triples)
def test_to_scipy_and_back(rated: list[tuple[int, str, int]]) -> None:
    ratings = ratings_of(rated, duplicates="last")
    matrix = ratings.to_scipy()
    assert matrix.shape == ratings.shape
    assert matrix.dtype == np.float32
    wanted = zip(ratings.users, ratings.items, ratings.values, strict=True)
    assert sorted(triples_of(Ratings(matrix))) == sorted(wanted)
    pairs = Ratings.from_codes(ratings.users, ratings.items, None, *ids_of(ratings)).to_scipy()
    assert np.all(pairs.data == 1)
    assert pairs.nnz == len(ratings)


def ids_of(ratings: Ratings) -> tuple[Ids, Ids]:
    return ratings.user_ids, ratings.item_ids


def test_codes_are_used_where_they_lie() -> None:
    users, items = np.array([0, 1], np.uint32), np.array([1, 0], np.uint32)
    values = np.array([1, 2], np.float32)
    ratings = Ratings.from_codes(users, items, values, Ids.numbered(2), Ids.numbered(2))
    for mine, given_array in zip(
        (ratings.users, ratings.items, ratings.values), (users, items, values), strict=True
    ):
        assert np.shares_memory(mine, given_array)
        assert not mine.flags.writeable
    assert users.flags.writeable


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_a_split_depends_on_the_seed_and_the_places_only(seed: int) -> None:
    rng = np.random.default_rng(1)
    users, items = rng.integers(0, 50, 4000), rng.integers(0, 70, 4000)
    ratings = Ratings(users, items, np.arange(4000))
    train, test = ratings.split(0.2, seed)
    assert abs(len(test) - 800) < 5 * np.sqrt(4000 * 0.2 * 0.8)
    together = np.concatenate([train.values, test.values])
    assert sorted(together.tolist()) == list(range(4000))
    for part in (train, test):
        assert part.user_ids is ratings.user_ids
        assert part.item_ids is ratings.item_ids
        chosen = part.values.astype(int)
        assert np.all(np.diff(chosen) > 0)
        np.testing.assert_array_equal(part.users, ratings.users[chosen])
        np.testing.assert_array_equal(part.items, ratings.items[chosen])
    fewer = Ratings(items[:1000], users[:1000], np.arange(1000)).split(0.2, seed)[1]
    assert fewer.values.tolist() == [value for value in test.values.tolist() if value < 1000]
    larger = ratings.split(0.5, seed)[1]
    assert set(test.values.tolist()) < set(larger.values.tolist())
    assert ratings.split(0.2, seed ^ 1)[1].values.tolist() != test.values.tolist()


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan")])
def test_a_share_is_a_part(share: float) -> None:
    with pytest.raises(OptionError, match=r"share is .*; it must lie between 0 and 1"):
        Ratings([1], [2]).split(share, 0)


@pytest.mark.parametrize("seed", [-1, 0.5, True, 2**64, None])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(OptionError, match=r"seed is .* whole number"):
        Ratings([1], [2]).split(0.5, seed)


@quick
@given(triples, triples)
def test_codes_in_other_ids(
    mine: list[tuple[int, str, int]], other: list[tuple[int, str, int]]
) -> None:
    ratings, known = ratings_of(mine), ratings_of(other)
    users, items = ratings.recoded(*ids_of(known))
    knows = {user for user, _, _ in other}, {item for _, item, _ in other}
    for k, (user, item, _) in enumerate(mine):
        assert (users[k] != UNKNOWN) == (user in knows[0])
        assert (items[k] != UNKNOWN) == (item in knows[1])
        assert users[k] == UNKNOWN or known.user_ids[users[k]] == user
        assert items[k] == UNKNOWN or known.item_ids[items[k]] == item
    same = ratings.recoded(*ids_of(ratings))
    assert same[0] is ratings.users
    assert same[1] is ratings.items


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1]), "2 users, 1 items; every rating needs one of each"),
        (([1], [1], [1, 2]), "1 users, 1 items and 2 values"),
        (([1], ["b"], [np.nan]), "value nan in the rating 1, of item 'b' by user 1, is not finite"),
        (([1, 2], ["b", "c"], [0, -np.inf]), "value -inf in the rating 2, of item 'c'"),
        (([1], [1], [1e39]), "1e\\+39 .* is too large for float32"),
        (([1], [1], ["3"]), "values are of the type <U1"),
        (([1], [1], [None]), "values are of the type object"),
        (([1], [1], [[3.0]]), "in 2 dimension"),
        (([1.5], [1]), "the users are of the type|the users: number 1 is 1.5"),
        (([1], [None]), "the items: number 1 is missing"),
        ((np.eye(2),), "or a scipy sparse matrix .* alone, not ndarray"),
        (([1],), "not list"),
        ((sparse.eye(2), None, [1]), "not dia_matrix"),
    ],
)
def test_what_makes_no_ratings_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"mine: .*({message})"):
        Ratings(*arguments, name="mine")


def test_codes_out_of_range_are_refused() -> None:
    def make(users: Any, items: Any, values: Any = None) -> Ratings:
        return Ratings.from_codes(users, items, values, Ids.numbered(3), Ids.numbered(2))

    good = np.array([0, 1], np.uint32)
    assert len(make(good, good)) == 2
    with pytest.raises(DataError, match="item 2 in the rating 2; items go from 0 to 1"):
        make(good, np.array([0, 2], np.uint32))
    with pytest.raises(DataError, match="user 4294967295 in the rating 1; users go from 0 to 2"):
        make(np.array([UNKNOWN, 0], np.uint32), good)
    with pytest.raises(DataError, match="the array of users is an array of float64"):
        make(good.astype(float), good)
    with pytest.raises(DataError, match="the value inf"):
        make(good, good, np.array([0, np.inf], np.float32))


@pytest.mark.parametrize("form", ["csr", "coo"])
def test_a_damaged_matrix_is_refused(form: str) -> None:
    matrix = sparse.csr_matrix(np.eye(3)).asformat(form)
    if form == "csr":
        matrix.indices[1] = 3
        with pytest.raises(DataError, match="item 3 in the rating 2; items go from 0 to 2"):
            Ratings(matrix)
        matrix.indptr[1] = 5
        with pytest.raises(DataError, match="damaged CSR arrays"):
            Ratings(matrix)
    else:
        matrix.row[1] = -1
        with pytest.raises(DataError, match=r"user .* in the rating 2; users go from 0 to 2"):
            Ratings(matrix)


def test_nothing_at_all_is_no_rating() -> None:
    ratings = Ratings([], [], [])
    assert (len(ratings), ratings.shape) == (0, (0, 0))
    assert repr(Ratings([1, 2], ["x", "x"])) == "<Ratings: 2 pairs of 1 items by 2 users>"
