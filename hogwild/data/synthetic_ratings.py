"""Synthetic ratings in the shape of a well-known set, with the biases and factors behind them.

The shape is that of MovieLens 20M (Harper and Konstan 2015): movies rated by half stars.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hogwild.data.ids import Ids
from hogwild.data.ratings import Ratings
from hogwild.data.synthetic import alias_table, columns_by_frequency, whole_number_problems
from hogwild.errors import DataError, OptionError
from hogwild.fingerprints import first_bad_index
from hogwild.kernels.primitives import random_word
from hogwild.kernels.synthetic_ratings import (
    count_by_bin,
    draw_ratings,
    fill_normals,
    planted_scores,
    shuffle_bins,
)

# Odds of the item of rank r to be drawn ~ (shift + r)^-2.5, with a shift such that a mean user
# draws the most frequent item MOST_DRAWN times: half of the users have it, as in MovieLens 20M.
MOST_DRAWN = 1.0
# A user has LEAST + lognormal(SIGMA) ratings, at most MOST_TIMES the mean: 20 to 9,280 with a
# median of 68 where the mean is 144.4, as in MovieLens 20M.
LEAST = 20
SIGMA = 1.38
MOST_TIMES = 64
BISECTIONS = 64

# With these the planted scores have an RMSE of 0.754 and the planted biases alone one of 0.870.
MEAN = 3.6  # rounded and clipped, values have a mean of 3.51, as in MovieLens 20M
USER_BIASES = 0.45
ITEM_BIASES = 0.5
LIKED = 0.4  # correlation of an item's bias with its popularity
FACTORS = 0.48
NOISE = 0.8

BIN = 2**14  # ratings that are shuffled at once: they fit into a core's private cache

# The whole-number options: the least and the most.
WHOLE = {
    "users": (1, 2**32 - 1),
    "items": (2, 2**32 - 1),
    "ratings": (1, 2**32),
    "seed": (0, 2**64 - 1),
    "rank": (1, 2**16),
}

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]


class Planted(NamedTuple):
    """What the values were made from: value = mean + b_u + b_i + <p_u, q_i> + noise z.

    Attributes:
        mean: the same for all ratings.
        user_biases, item_biases: b, by code.
        user_factors, item_factors: p and q, a row for each code.
        noise: the standard deviation of what no model can know (before rounding to half stars).
    """

    mean: float
    user_biases: Floats
    item_biases: Floats
    user_factors: Floats
    item_factors: Floats
    noise: float

    def scores(self, users: npt.NDArray[np.uint32], items: npt.NDArray[np.uint32]) -> Floats:
        """The values without noise, neither rounded nor clipped, of pairs of codes."""
        if len(users) != len(items):
            raise DataError(f"{len(users):,} users and {len(items):,} items; give one of each")
        _check_codes(users, len(self.user_biases), "user")
        _check_codes(items, len(self.item_biases), "item")
        scores = np.empty(len(users), np.float32)
        planted_scores(self.mean, self.arrays(), users, items, scores)
        return scores

    def arrays(self) -> tuple[Floats, ...]:
        """Biases and factors as kernels take them."""
        factors = self.user_factors.reshape(-1), self.item_factors.reshape(-1)
        return self.user_biases, self.item_biases, *factors


def _check_codes(codes: npt.NDArray[np.uint32], size: int, what: str) -> None:
    bad = first_bad_index(codes, size)
    if bad < len(codes):
        raise DataError(
            f"pair {bad + 1:,} has the {what} {codes[bad]}; there are {size:,}, numbered from 0 on"
        )


def movielens(
    users: int = 138_493,
    items: int = 26_744,
    ratings: int = 20_000_000,
    seed: int = 0,
    *,
    rank: int = 16,
    noise: float = NOISE,
    half_stars: bool = True,
) -> tuple[Ratings, Planted]:
    """Draws MovieLens-shaped ratings, and returns them with what was planted.

    There are exactly `ratings` of them, in random order, and no pair of user and item twice. The
    defaults are MovieLens 20M's numbers; 6_040, 3_706 and 1_000_209 are those of 1M. A user has
    log-normally many ratings, 20 at least (a quarter of the mean where that is less). An item's
    popularity follows Zipf's law with Mandelbrot's shift: the most frequent has about half of the
    users, most have few, and some have none. Users and items are numbered at random, so busy and
    common ones lie anywhere.

    A value is mean + b_u + b_i + <p_u, q_i> + noise z, with z standard normal, rounded to half
    stars from 0.5 to 5; with ``half_stars=False`` neither rounded nor clipped. Biases are normal,
    and common items are liked a little better. The factors are normal, the k-th of them scaled so
    that its share of the variance goes down as 1 / k: a rank below `rank` explains much.

    A user's ratings depend on the user's number, `seed` and the numbers of users, items and
    ratings; the items that a user rates depend on no factor, bias or noise.
    """
    given = {"users": users, "items": items, "ratings": ratings, "seed": seed, "rank": rank}
    _check(given, noise, half_stars)
    users, items, ratings = int(users), int(items), int(ratings)  # numpy's would overflow
    keys = random_word(seed, np.arange(1, 11, dtype=np.uint64))
    odds = _odds(items, ratings / users)
    item_of = columns_by_frequency(keys[0], items)
    indptr = np.zeros(users + 1, np.uint64)
    np.cumsum(_activity(keys[1], users, items, ratings), out=indptr[1:])
    planted = _planted(keys[2:6], users, rank, float(noise), ratings / users, odds, item_of)
    table = alias_table(odds, item_of)
    rated_by, rated, values = _draw(keys[6:], indptr, table, planted, half_stars)
    ids = Ids.numbered(users), Ids.numbered(items)
    name = f"synthetic MovieLens (seed {seed})"
    return Ratings.from_codes(rated_by, rated, values, *ids, name=name), planted


def _check(whole: dict[str, Any], noise: Any, half_stars: Any) -> None:
    """Refuses what cannot be drawn, all of it at once."""
    problems = whole_number_problems(whole, WHOLE)
    users, items, ratings = whole["users"], whole["items"], whole["ratings"]
    if not problems and ratings < users:
        problems.append(
            f"ratings is {ratings:,}; {users:,} users need one each: set ratings to {users:,} or "
            f"more (or users to {ratings:,} or less)"
        )
    elif not problems and ratings > (half := int(users) * int(items) // 2):
        problems.append(
            f"ratings is {ratings:,}; at most half of the {users:,} x {items:,} pairs can be "
            f"rated: set ratings to {half:,} or less (or take more users or items)"
        )
    number = isinstance(noise, int | float | np.number) and not isinstance(noise, bool)
    if not number or not 0 <= noise < math.inf:
        problems.append(f"noise is {noise!r}; it must be a finite number and at least 0")
    if not isinstance(half_stars, bool | np.bool_):
        problems.append(f"half_stars is {half_stars!r}; it must be True or False")
    if problems:
        raise OptionError("\n".join(problems))


def _odds(items: int, mean: float) -> Doubles:
    """The odds of each rank to be drawn; they sum to 1. `mean` is that of ratings per user.

    x^-2.5 as x * x * sqrt(x), which is the same on every machine.
    """

    def draws(shift: float) -> float:
        """About how many draws a mean user makes, with MOST_DRAWN of the most frequent item."""
        first, last, top = shift + 0.5, shift + items + 0.5, shift + 1.0
        area = (1.0 / (first * math.sqrt(first)) - 1.0 / (last * math.sqrt(last))) / 1.5
        return MOST_DRAWN * area * top * top * math.sqrt(top)

    low, high = 0.0, 1e3 * items
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if draws(middle) < mean else (low, middle)
    shifted = low + np.arange(1.0, items + 1.0)
    odds = 1.0 / (shifted * shifted * np.sqrt(shifted))
    return np.asarray(odds / odds.sum())


def _normals(key: Any, count: int) -> Doubles:
    drawn = np.empty(count)
    fill_normals(key, drawn)
    return drawn


def _activity(key: Any, users: int, items: int, ratings: int) -> Words:
    """How many ratings each user has: count = least + scale exp(SIGMA z), up to `most`.

    The scale is such that the sum is `ratings`; the greatest fractions are rounded up.
    """
    mean = ratings / users
    least = max(1.0, min(LEAST, mean // 4))
    most = float(min(3 * items // 4, MOST_TIMES * math.ceil(mean)))
    activity = np.exp(SIGMA * _normals(key, users))
    low, high = 0.0, most / float(activity.min())
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        total = np.minimum(least + middle * activity, most).sum()
        low, high = (middle, high) if total <= ratings else (low, middle)
    exact = np.minimum(least + low * activity, most)
    counts = np.floor(exact)
    left = ratings - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:left]] += 1.0
    return counts.astype(np.uint64)


def _planted(
    keys: Words,
    users: int,
    rank: int,
    noise: float,
    mean: float,
    odds: Doubles,
    item_of: npt.NDArray[np.uint32],
) -> Planted:
    items = len(odds)
    user_biases = (USER_BIASES * _normals(keys[0], users)).astype(np.float32)
    popularity = ndtri(1.0 - (np.arange(items) + 0.5) / items)
    biases = ITEM_BIASES * (
        LIKED * popularity + math.sqrt(1.0 - LIKED**2) * _normals(keys[1], items)
    )
    # the share of the users that have an item, about: so that the mean of the values is MEAN
    held = 1.0 - 1.0 / (1.0 + mean * odds)
    item_biases = np.empty(items, np.float32)
    item_biases[item_of] = biases - (biases * held).sum() / held.sum()
    shares = 1.0 / np.arange(1.0, rank + 1.0)
    scales = np.sqrt(FACTORS * np.sqrt(shares / shares.sum()))
    user_factors, item_factors = (
        (scales * _normals(key, count * rank).reshape(count, rank)).astype(np.float32)
        for key, count in zip(keys[2:], (users, items), strict=True)
    )
    return Planted(MEAN, user_biases, item_biases, user_factors, item_factors, noise)


def _draw(
    keys: Words, indptr: Words, table: Words, planted: Planted, half_stars: bool
) -> tuple[npt.NDArray[Any], ...]:
    """Users, items and values in random order."""
    item_key, noise_key, bin_key, shuffle_key = keys
    ratings = int(indptr[-1])
    counts = np.zeros(ratings // BIN + 1, np.uint64)
    count_by_bin(bin_key, ratings, counts)
    ends = np.cumsum(counts)
    scratch = (
        np.empty(int(np.diff(indptr).max()) + 1, np.uint32),
        np.zeros(len(table) // 64 + 1, np.uint64),
        ends - counts,
    )
    arrays = tuple(np.empty(ratings, kind) for kind in (np.uint32, np.uint32, np.float32))
    numbers = planted.mean, planted.noise, bool(half_stars)
    drawing = item_key, noise_key, bin_key
    draw_ratings(drawing, numbers, (indptr, table), planted.arrays(), scratch, arrays)
    shuffle_bins(shuffle_key, ends, arrays)
    return arrays
