"""Synthetic ratings: their number, their shape, and that the values are what was planted."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from hogwild.data import synthetic_ratings as module
from hogwild.data.ratings import Ratings
from hogwild.data.synthetic_ratings import Planted, movielens
from hogwild.errors import DataError, OptionError

ONE_MILLION = (6_040, 3_706, 1_000_209)
SMALL = (300, 200, 9_000)


def digest(ratings: Ratings, planted: Planted) -> str:
    arrays = (ratings.users, ratings.items, ratings.values, *planted.arrays())
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


def pairs(ratings: Ratings) -> np.ndarray:
    return ratings.users.astype(np.uint64) * np.uint64(ratings.shape[1]) + ratings.items


def by_pair(ratings: Ratings) -> dict[int, float]:
    return dict(zip(pairs(ratings).tolist(), ratings.values.tolist(), strict=True))


def per_user(ratings: Ratings) -> np.ndarray:
    return np.bincount(ratings.users, minlength=ratings.shape[0])


def per_item(ratings: Ratings) -> np.ndarray:
    return np.bincount(ratings.items, minlength=ratings.shape[1])


def naive_scores(planted: Planted, ratings: Ratings, rank: int | None = None) -> np.ndarray:
    p = planted.user_factors[ratings.users, :rank].astype(float)
    q = planted.item_factors[ratings.items, :rank].astype(float)
    biases = planted.user_biases[ratings.users].astype(float) + planted.item_biases[ratings.items]
    return planted.mean + biases + (p * q).sum(axis=1)


def rmse(ratings: Ratings, scores: np.ndarray) -> float:
    return float(np.sqrt(np.mean((ratings.values - np.clip(scores, 0.5, 5)) ** 2)))


@pytest.fixture(scope="module")
def million():
    return movielens(*ONE_MILLION)


@pytest.fixture(scope="module")
def exact():
    return movielens(2_000, 1_000, 100_000, 3, rank=5, noise=0, half_stars=False)


@pytest.mark.parametrize(
    "shape",
    [
        (1, 2, 1),
        (2, 2, 2),
        (3, 3, 4),
        (5, 5, 12),
        (7, 2, 7),
        (1, 100, 50),
        (50, 60, 50),
        (50, 65, 1_625),
        (10, 20_000, 100_000),
        (1_000, 10, 5_000),
        (1_000, 100_000, 3_000),
        SMALL,
    ],
)
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_exactly_as_many_ratings_and_no_pair_twice(shape, seed):
    users, items, count = shape
    ratings, planted = movielens(*shape, seed, rank=3)
    assert ratings.shape == (users, items)
    assert len(ratings) == len(np.unique(pairs(ratings))) == count
    assert per_user(ratings).min() >= 1
    assert [a.shape for a in planted[1:5]] == [(users,), (items,), (users, 3), (items, 3)]
    assert all(a.dtype == np.float32 and np.all(np.isfinite(a)) for a in planted[1:5])
    assert set(ratings.values.tolist()) <= set(np.arange(0.5, 5.5, 0.5).tolist())


def test_the_same_arguments_give_the_same_bytes_anywhere():
    code = (
        "from test_synthetic_ratings import digest, movielens, SMALL; print(digest(*movielens("
        "*SMALL, 11)))"
    )
    environment = {"PYTHONPATH": ":".join([*sys.path, __file__.rpartition("/")[0]])}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == digest(*movielens(*SMALL, 11))


def test_another_seed_gives_other_pairs_factors_and_heat():
    (a, p), (b, q) = movielens(*SMALL, 1), movielens(*SMALL, 2)
    assert np.mean(np.isin(pairs(a), pairs(b))) < 0.5
    for x, y in zip(p[1:5], q[1:5], strict=True):
        assert np.mean(x == y) < 0.01
    hot_a, hot_b = (set(np.argsort(-per_item(r))[:20]) for r in (a, b))
    assert len(hot_a & hot_b) < 10
    assert abs(np.corrcoef(per_user(a), per_user(b))[0, 1]) < 0.3


def test_what_is_rated_depends_on_no_value():
    usual, planted = movielens(*SMALL, 4)
    for options in ({"noise": 0.1}, {"half_stars": False}, {"rank": 2}):
        other, changed = movielens(*SMALL, 4, **options)
        assert np.array_equal(pairs(usual), pairs(other))
        assert np.array_equal(planted.user_biases, changed.user_biases)
        assert np.array_equal(planted.item_biases, changed.item_biases)
    quiet, loud = (movielens(*SMALL, 4, noise=s, half_stars=False)[0].values for s in (0.5, 1.0))
    exact = planted.scores(usual.users, usual.items)
    assert np.allclose(2 * (quiet - exact), loud - exact, atol=1e-5)


def test_without_noise_and_rounding_the_values_are_the_planted_scores(exact):
    ratings, planted = exact
    assert planted.noise == 0
    assert np.array_equal(ratings.values, planted.scores(ratings.users, ratings.items))
    assert np.allclose(ratings.values, naive_scores(planted, ratings), rtol=1e-6)


def test_half_stars_are_the_nearest_and_end_at_half_and_five(exact):
    scores = exact[0].values.astype(float)
    rounded = movielens(2_000, 1_000, 100_000, 3, rank=5, noise=0)[0].values
    clear = np.abs(2 * scores % 1 - 0.5) > 1e-6
    expected = np.clip(np.round(2 * scores) / 2, 0.5, 5)
    assert np.array_equal(rounded[clear], expected[clear])
    assert scores.min() < 0.5
    assert scores.max() > 5


def test_the_planted_parts_have_the_stated_sizes():
    ratings, planted = movielens(20_000, 20_000, 400_000, 1)
    assert planted.user_biases.std() == pytest.approx(module.USER_BIASES, rel=0.02)
    assert planted.item_biases.std() == pytest.approx(module.ITEM_BIASES, rel=0.02)
    assert abs(planted.user_biases.mean()) < 0.02
    rng = np.random.default_rng(0)
    any_users, any_items = rng.integers(0, 20_000, (2, 100_000))
    p, q = planted.user_factors[any_users], planted.item_factors[any_items]
    of_each = (p * q).var(axis=0)
    assert of_each.sum() == pytest.approx(module.FACTORS**2, rel=0.05)
    assert of_each * np.arange(1, 17) == pytest.approx(of_each[0], rel=0.1)
    held = per_item(ratings)
    common = held >= np.quantile(held, 0.9)
    gain = planted.item_biases[common].mean() - planted.item_biases[~common].mean()
    assert 0.2 < gain < 0.6, "common items are liked a little better"


def test_noise_is_normal_and_another_for_each_pair():
    noise = 0.8
    ratings, planted = movielens(2_000, 1_000, 200_000, 5, noise=noise, half_stars=False)
    z = (ratings.values - naive_scores(planted, ratings)) / noise
    assert abs(z.mean()) < 0.01
    assert z.std() == pytest.approx(1, abs=0.01)
    assert np.quantile(z, [0.025, 0.25, 0.75, 0.975]) == pytest.approx(
        [-1.96, -0.674, 0.674, 1.96], abs=0.03
    )
    for codes, held in ((ratings.users, per_user(ratings)), (ratings.items, per_item(ratings))):
        sums = np.bincount(codes, z, minlength=len(held))[held > 0]
        squares = sums**2 / held[held > 0]
        assert squares.mean() == pytest.approx(1, abs=6 * np.sqrt(2 / len(squares)))


def test_users_of_one_rating_draw_items_by_zipfs_law():
    users, items = 200_000, 50
    held = np.sort(per_item(movielens(users, items, users, 3)[0]))[::-1]
    odds = module._odds(items, 1.0)
    assert odds.sum() == pytest.approx(1)
    assert np.all(np.abs(held - users * odds) < 6 * np.sqrt(users * odds))


@pytest.mark.parametrize("mean", [3.0, 20.0, 144.4, 600.0])
def test_a_mean_user_draws_the_commonest_item_as_often_as_stated(mean):
    odds = module._odds(5_000, mean)
    assert mean * odds[0] == pytest.approx(module.MOST_DRAWN, rel=0.05)
    assert np.all(np.diff(odds) < 0)


def test_the_shape_is_that_of_movielens(million):
    ratings, _ = million
    active, held = per_user(ratings), per_item(ratings)
    assert active.min() == 20
    assert 60 < np.median(active) < 100
    assert 2_000 < active.max() <= 3 * 3_706 // 4
    assert 0.4 < held.max() / 6_040 < 0.6
    assert 50 < np.median(held) < 150
    assert 3.45 < ratings.values.mean() < 3.6
    assert 1.0 < ratings.values.std() < 1.1
    for counts, size in ((active, 6_040), (held, 3_706)):
        busiest = np.argsort(-counts)[:500]
        assert busiest.mean() == pytest.approx(size / 2, rel=0.1), "busy ones lie anywhere"


def test_activity_and_popularity_of_twenty_millions():
    active = module._activity(np.uint64(5), 138_493, 26_744, 20_000_000)
    assert active.sum() == 20_000_000
    assert (active.min(), active.max()) == (20, 64 * 145)
    assert 65 < np.median(active) < 71


def test_how_well_the_planted_parts_predict(million):
    ratings, planted = million
    best = rmse(ratings, planted.scores(ratings.users, ratings.items))
    some = rmse(ratings, naive_scores(planted, ratings, 4))
    biases = rmse(ratings, naive_scores(planted, ratings, 0))
    assert 0.74 < best < 0.77
    assert 0.86 < biases < 0.89
    assert best + 0.02 < some < biases - 0.05, "a low rank helps"


@pytest.mark.parametrize("size", [64, 2**14])
def test_the_order_is_random(size, monkeypatch):
    monkeypatch.setattr(module, "BIN", size)
    ratings, _ = movielens(500, 2_000, 50_000, 2)
    chance = np.sum((per_user(ratings) / len(ratings)) ** 2)
    together = np.mean(ratings.users[1:] == ratings.users[:-1])
    assert together == pytest.approx(chance, rel=0.25)
    centre, spread = ratings.users.mean(), ratings.users.std()
    for tenth in np.split(ratings.users, 10):
        assert abs(tenth.mean() - centre) < 5 * spread / np.sqrt(len(tenth))
    place = np.arange(len(ratings))
    assert abs(np.corrcoef(place % size, ratings.users)[0, 1]) < 0.025


def test_all_bad_arguments_are_listed_at_once():
    with pytest.raises(OptionError) as error:
        movielens(0, 1, 10.5, -1, rank=True, noise=-0.1, half_stars="no")
    for name in ("users", "items", "ratings", "seed", "rank", "noise", "half_stars"):
        assert f"{name} is" in str(error.value)
    with pytest.raises(OptionError) as error:
        movielens(10, 10, 9, noise=float("nan"))
    assert "ratings is 9; 10 users need one each" in str(error.value)
    assert "noise is nan" in str(error.value)


@pytest.mark.parametrize("noise", ["1", None, float("inf"), float("nan"), True])
def test_noise_must_be_a_finite_number(noise):
    with pytest.raises(OptionError, match="noise is"):
        movielens(*SMALL, noise=noise)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((100, 100, 99), "set ratings to 100 or more .or users to 99 or less"),
        ((100, 100, 5_001), "half of the 100 x 100 pairs.* set ratings to 5,000 or less"),
        ((3, 3, 5), "set ratings to 4 or less"),
        ((100, 100, 2**32 + 1), "ratings is 4294967297; .* to 4,294,967,296"),
    ],
)
def test_too_few_or_too_many_ratings(shape, message):
    with pytest.raises(OptionError, match=message):
        movielens(*shape)


def test_numbers_of_numpys_small_types_do_not_overflow():
    small = [np.int16(number) for number in SMALL]
    with np.errstate(over="raise"):
        assert digest(*movielens(*small, np.uint8(3))) == digest(*movielens(*SMALL, 3))


def test_scores_of_codes_that_are_not_there():
    _, planted = movielens(*SMALL)
    users, items = np.array([299, 300], np.uint32), np.array([199, 0], np.uint32)
    with pytest.raises(DataError, match="pair 2 has the user 300; there are 300, numbered from 0"):
        planted.scores(users, items)
    with pytest.raises(DataError, match="pair 2 has the item 200"):
        planted.scores(users[[0, 0]], items + np.array([0, 200], np.uint32))
    with pytest.raises(DataError, match="2 users and 1 items"):
        planted.scores(users, items[:1])
    assert len(planted.scores(users[:0], items[:0])) == 0
