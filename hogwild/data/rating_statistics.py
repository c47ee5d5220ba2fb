"""What ratings look like, and what that means for several workers on shared factors.

omega, delta and rho are the letters of the Hogwild! paper (Niu, Recht, Re, Wright 2011) for the
hypergraph of matrix completion: its nodes are the rows of both factor matrices (a user's and an
item's factors each), and its edges are the ratings.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.ratings import Ratings
from hogwild.data.statistics import percent, quantiles
from hogwild.kernels.rating_statistics import (
    count_codes,
    count_meetings,
    count_values,
    group_by,
    squares_around,
    sum_and_range,
)

OMEGA = 2  # the rows of factors that a rating touches: its user's and its item's
MOST_KINDS = 128  # different values that are counted one by one
ROOM = 4  # places in the table of values for each of them

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class RatingStatistics:
    """The shape of ratings.

    Attributes:
        users, items, ratings: how many there are.
        density: the ratings' share of all pairs of a user and an item.
        duplicates: ratings whose pair of user and item has come before.
        user_ratings, item_ratings: the quantiles 0, 5, 25, 50, 75, 95 and 100 % of the ratings
            that a user, or an item, has.
        empty_users, empty_items: those without a rating.
        single_users, single_items: those with just one.
        mean, deviation: mean and standard deviation of the values.
        least, most: the least and the greatest value.
        values: every different value and how many ratings have it, in rising order; empty where
            there are more than 128.
        value_kinds: how many different values there are, or None where there are more than 128.
        omega: the rows of factors that a rating touches: 2.
        delta: the largest share of the ratings that one user or one item takes part in.
        rho: the largest share of the ratings that one rating shares its user or its item with,
            itself included.
        chance: the same share for a rating taken at random: how often two workers, each at a random
            rating, have the same user or the same item.

    Of pairs without values, what is about values is None or empty, and there are 0 kinds.
    """

    users: int
    items: int
    ratings: int
    density: float
    duplicates: int
    user_ratings: tuple[int, ...]
    item_ratings: tuple[int, ...]
    empty_users: int
    empty_items: int
    single_users: int
    single_items: int
    mean: float | None
    deviation: float | None
    least: float | None
    most: float | None
    values: tuple[tuple[float, int], ...]
    value_kinds: int | None
    omega: int
    delta: float
    rho: float
    chance: float


class _Spread(NamedTuple):
    mean: float | None
    deviation: float | None
    least: float | None
    most: float | None


def rating_statistics(ratings: Ratings) -> RatingStatistics:
    """Counts everything in a few passes over the ratings."""
    users, items = ratings.shape
    by_user, by_item = _counts(ratings.users, users), _counts(ratings.items, items)
    again, most, total = _meetings(ratings, by_user, by_item)
    every = max(len(ratings), 1)
    busiest = max(int(by_user.max(initial=0)), int(by_item.max(initial=0)))
    spread = _spread(ratings.values)
    values, kinds = _kinds(ratings.values)
    return RatingStatistics(
        users=users,
        items=items,
        ratings=len(ratings),
        density=len(ratings) / max(users * items, 1),
        duplicates=again,
        user_ratings=quantiles(by_user),
        item_ratings=quantiles(by_item),
        empty_users=int(np.count_nonzero(by_user == 0)),
        empty_items=int(np.count_nonzero(by_item == 0)),
        single_users=int(np.count_nonzero(by_user == 1)),
        single_items=int(np.count_nonzero(by_item == 1)),
        mean=spread.mean,
        deviation=spread.deviation,
        least=spread.least,
        most=spread.most,
        values=values,
        value_kinds=kinds,
        omega=OMEGA,
        delta=busiest / every,
        rho=most / every,
        chance=total / every / every,
    )


def meaning(statistics: RatingStatistics) -> str:
    """What the numbers mean for several workers on these ratings, in a few sentences."""
    if statistics.ratings == 0:
        return "There are no ratings."
    user, item = (
        percent(counts[-1] / statistics.ratings)
        for counts in (statistics.user_ratings, statistics.item_ratings)
    )
    return (
        f"The busiest user has {user} of the ratings, the commonest item {item}, and one rating "
        f"shares its user or its item with {percent(statistics.rho)} of them. Two workers that "
        "write to shared factors without order, each at a random rating, have the same user or "
        f"the same item {percent(statistics.chance)} of the time: so often may an update of one "
        "be lost to the other. With the strata strategy it never happens, whatever these numbers "
        "are: at any time each worker has users and items of its own."
    )


def _counts(codes: npt.NDArray[np.uint32], size: int) -> Words:
    counts = np.zeros(size, np.uint64)
    count_codes(codes, counts)
    return counts


def _spread(values: Floats | None) -> _Spread:
    if values is None or len(values) == 0:
        return _Spread(None, None, None, None)
    total, least, most = sum_and_range(values)
    mean = total / len(values)
    deviation = math.sqrt(squares_around(values, mean) / len(values))
    return _Spread(mean, deviation, least, most)


def _kinds(values: Floats | None) -> tuple[tuple[tuple[float, int], ...], int | None]:
    """The different values with their counts, and how many there are, up to MOST_KINDS."""
    if values is None:
        return (), 0
    found = np.empty(ROOM * MOST_KINDS, np.float32)
    counts = np.zeros(len(found), np.uint64)
    kinds = int(count_values(values, MOST_KINDS, found, counts))
    if kinds > MOST_KINDS:
        return (), None
    used = np.flatnonzero(counts)
    rising = used[np.argsort(found[used])]
    return tuple((float(found[i]), int(counts[i])) for i in rising), kinds


def _meetings(ratings: Ratings, by_user: Words, by_item: Words) -> tuple[int, int, int]:
    """Ratings that repeat a pair, the most ratings that one meets, and the sum over all."""
    ends = np.cumsum(by_user)
    grouped = np.empty(len(ratings), np.uint32)
    group_by(ratings.users, ratings.items, ends - by_user, grouped)
    repeats = np.zeros(len(by_item), np.uint32)
    again, most, total = count_meetings(ends, grouped, by_item, repeats)
    return int(again), int(most), int(total)
