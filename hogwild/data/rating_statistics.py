"""Statistics of ratings, and what they mean for several workers on shared factors.

omega, delta and rho are the letters of the Hogwild! paper (Niu, Recht, Re, Wright 2011) for the
hypergraph of matrix completion: its nodes are the rows of both factor matrices (a user's and an
item's factors each), and its edges are the ratings.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hogwild.data.ratings import Ratings, counts_of, grouped, mean_and_deviation
from hogwild.data.statistics import percent, quantiles
from hogwild.kernels.ratings import count_overlaps

OMEGA = 2  # the rows of factors that a rating touches: its user's and its item's
MOST_KINDS = 128  # different values that are counted one by one
SAMPLE = 1 << 12  # values that show, most often, when there are more

Floats = npt.NDArray[np.float32]


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

    For pairs without values, the attributes about values are None or empty, and there are 0 kinds.
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


def rating_statistics(ratings: Ratings) -> RatingStatistics:
    """Counts everything in a few passes over the ratings."""
    users, items = ratings.shape
    by_user, by_item = counts_of(ratings.users, users), counts_of(ratings.items, items)
    grouped_items, _ = grouped(ratings.users, ratings.items, users)
    again, most, total = count_overlaps(
        np.cumsum(by_user), grouped_items, by_item, np.zeros(items, np.uint32)
    )
    every = max(len(ratings), 1)
    busiest = max(int(by_user.max(initial=0)), int(by_item.max(initial=0)))
    valued = ratings.values if ratings.values is not None and len(ratings) else None
    mean, deviation = (None, None) if valued is None else mean_and_deviation(valued)
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
        mean=mean,
        deviation=deviation,
        least=None if valued is None else float(valued.min()),
        most=None if valued is None else float(valued.max()),
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
        f"The busiest user has {user} of the ratings, the busiest item {item}, and one rating "
        f"shares its user or its item with {percent(statistics.rho)} of them. Two workers that "
        "write to shared factors without order, each at a random rating, have the same user or "
        f"the same item {percent(statistics.chance)} of the time, and one may then lose an update "
        "of the other. The strata strategy loses none: at any time, each worker has its own users "
        "and items."
    )


def _kinds(values: Floats | None) -> tuple[tuple[tuple[float, int], ...], int | None]:
    """The different values with their counts, and how many there are, up to MOST_KINDS."""
    if values is None:
        return (), 0
    if len(np.unique(values[:SAMPLE])) > MOST_KINDS:  # which need not be sorted, all of them
        return (), None
    found, counts = np.unique(values, return_counts=True)
    if len(found) > MOST_KINDS:
        return (), None
    found += np.float32(0)  # of -0 it makes 0
    return tuple(zip(found.tolist(), counts.tolist(), strict=True)), len(found)
