"""What bounds scaling in the data: its size, and how often workers touch the same weights."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from hogwild.data import rating_statistics
from hogwild.data import statistics as row_statistics
from hogwild.data.ratings import Ratings
from hogwild.data.rows import Rows
from hogwild.data.statistics import percent

NONZERO_BYTES = 8  # a column and a value
RATING_BYTES = 12  # a user, an item and a value
WEIGHT_BYTES = 4


@dataclass(frozen=True)
class Look:
    name: str
    shape: str
    sharing: str  # a sentence: how often workers touch the same weights
    meaning: str  # a few sentences: what that means for several workers
    work_bytes: int  # read in an epoch
    weights_bytes: int  # of a copy; 0 where workers have no copies
    record: dict[str, Any]


def look(data: Rows | Ratings) -> Look:
    if isinstance(data, Ratings):
        counted = rating_statistics.rating_statistics(data)
        return Look(
            data.name,
            f"{len(data):,} ratings of {counted.items:,} items by {counted.users:,} users",
            f"Two ratings share a user or an item {percent(counted.chance)} of the time.",
            rating_statistics.meaning(counted),
            RATING_BYTES * len(data),
            0,
            dataclasses.asdict(counted),
        )
    found = row_statistics.statistics(data)
    reason = found.sharing.reason
    return Look(
        data.name,
        f"{len(data):,} rows, {data.columns:,} columns, {data.nonzeros:,} non-zeros",
        f"{reason[0].upper()}{reason[1:]}.",
        row_statistics.meaning(found),
        NONZERO_BYTES * data.nonzeros,
        WEIGHT_BYTES * data.columns,
        dataclasses.asdict(found),
    )
