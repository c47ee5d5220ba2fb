"""What the data looks like to the cores: how much there is, and how often workers meet in it."""

from dataclasses import dataclass, field
from typing import Any

from hogwild.data.ratings import Ratings
from hogwild.data.rows import Rows

NONZERO_BYTES = 8  # a column and a value
RATING_BYTES = 12  # a user, an item and a value


@dataclass(frozen=True)
class Look:
    """Data, as the study sees it.

    Attributes:
        name: where it comes from; shape: how large it is, in a line.
        work: what an epoch goes through; work_name: what that is.
        work_bytes: bytes of that.
        weights_bytes: of one copy of the weights, where workers may have copies.
        numbers: label and text of each number, for people.
        heat: a sentence: how much of the work falls on how few weights.
        hot_share: the share in it.
        meaning: what the numbers mean, in a few sentences.
        record: the shape, for the record.
    """

    name: str
    shape: str
    work: int
    work_name: str
    work_bytes: int
    weights_bytes: int
    numbers: list[tuple[str, str]]
    heat: str
    hot_share: float
    meaning: str
    record: dict[str, Any] = field(default_factory=dict)


def look(data: Rows | Ratings) -> Look:
    """Counts everything once."""
    return _at_ratings(data) if isinstance(data, Ratings) else _at_rows(data)


def _at_rows(rows: Rows) -> Look:
    from hogwild.data.statistics import meaning, percent, statistics

    found = statistics(rows)
    entries = [entry for entry in found.heat if entry[0] < found.columns_used]
    hottest = entries or [(found.columns_used, 1.0)]
    columns, share = hottest[0]
    rho = percent(found.rho)
    if not found.rho_exact and not rho.startswith("over"):
        rho = f"at least {rho}"
    each = found.nonzeros / max(1, found.rows)
    return Look(
        name=rows.name,
        shape=f"{len(rows):,} rows, {rows.columns:,} columns, {rows.nonzeros:,} non-zeros",
        work=found.nonzeros,
        work_name="non-zeros",
        work_bytes=found.nonzeros * NONZERO_BYTES,
        weights_bytes=4 * rows.columns,
        numbers=[
            ("rows", f"{found.rows:,}, with {each:,.4g} non-zeros on average"),
            ("columns", f"{found.columns:,}, {found.columns_used:,} of them used"),
            ("non-zeros", f"{found.nonzeros:,}, {rows.nbytes / 1e6:,.4g} MB in memory"),
            *(
                (f"in the {count:,} hottest columns", f"{percent(part)} of the non-zeros")
                for count, part in hottest
            ),
            ("Omega", f"{found.omega:,} non-zeros in the longest row"),
            ("Delta", f"{percent(found.delta)} of the rows hold the commonest column"),
            ("rho", f"{rho} of the rows share a column with one row"),
        ],
        heat=f"{percent(share)} of the non-zeros fall on the {columns:,} hottest columns",
        hot_share=share,
        meaning=meaning(found),
        record={
            "rows": found.rows,
            "columns": found.columns,
            "nonzeros": found.nonzeros,
            "heat": [list(entry) for entry in found.heat],
            "omega": found.omega,
            "delta": found.delta,
            "rho": found.rho,
            "rho_exact": found.rho_exact,
            "sharing": found.sharing.share,
        },
    )


def _at_ratings(ratings: Ratings) -> Look:
    from hogwild.data.rating_statistics import meaning, rating_statistics
    from hogwild.data.statistics import percent

    found = rating_statistics(ratings)
    every = max(1, found.ratings)
    user, item = found.user_ratings[-1] / every, found.item_ratings[-1] / every
    return Look(
        name=ratings.name,
        shape=f"{found.ratings:,} ratings of {found.items:,} items by {found.users:,} users",
        work=found.ratings,
        work_name="ratings",
        work_bytes=found.ratings * RATING_BYTES,
        weights_bytes=0,
        numbers=[
            ("users", f"{found.users:,}"),
            ("items", f"{found.items:,}"),
            ("ratings", f"{found.ratings:,}, {ratings.nbytes / 1e6:,.4g} MB in memory"),
            ("of the busiest user", f"{percent(user)} of the ratings"),
            ("of the commonest item", f"{percent(item)} of the ratings"),
            ("Omega", f"{found.omega} rows of factors are touched by a rating"),
            ("Delta", f"{percent(found.delta)} of the ratings have one user or item in common"),
            ("rho", f"{percent(found.rho)} of the ratings share a user or an item with one rating"),
            ("chance", f"{percent(found.chance)} that two ratings share a user or an item"),
        ],
        heat=(
            f"{percent(item)} of the ratings are of the commonest item, {percent(user)} of the "
            "busiest user"
        ),
        hot_share=max(user, item),
        meaning=meaning(found),
        record={
            "users": found.users,
            "items": found.items,
            "ratings": found.ratings,
            "busiest_user": user,
            "commonest_item": item,
            "omega": found.omega,
            "delta": found.delta,
            "rho": found.rho,
            "chance": found.chance,
        },
    )
