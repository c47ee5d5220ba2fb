"""Statistics of rows, and what they mean for several workers on one set of weights.

omega, delta and rho are the letters of the Hogwild! paper (Niu, Recht, Re, Wright 2011) for the
hypergraph whose nodes are the columns and whose edges are the rows.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.labels import LabelSets
from hogwild.data.rows import Rows
from hogwild.kernels.primitives import random_below, random_word
from hogwild.kernels.statistics import count_collisions, count_holders, sum_by_row
from hogwild.remembered import Remembered

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
MOST_FREQUENT = (512, 4_096, 65_536)
MOST_LABELS = 10

# Collisions are counted for all rows if that takes no more operations on 64-bit masks than this
# (within a second), else for some random rows and some that look like the worst.
AFFORDABLE = 1_000_000_000
RANDOM_ROWS = 256
WORST_ROWS = 64
GROUP = 64  # rows whose collisions are counted at once: the bits of a mask

# A core's private cache of 1 MiB holds so many cache lines of so many weights.
PRIVATE_LINES = 16_384
LINE = 16
# If the lines that a core could keep for itself get more than this share of accesses, sharing is
# slow.
MOST_SHARED = 0.10
SAMPLED_ROWS = 2_000
MOST_SAMPLED = 2**18

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Sharing:
    """Whether several workers gain by writing to one array of weights, without locks.

    Attributes:
        share: share of the non-zeros whose weights lie in the 16,384 most used cache lines (1 MiB,
            a core's private cache).
        pays: whether that is little enough for several workers to be faster than one.
        reason: one sentence that says why.
    """

    share: float
    pays: bool
    reason: str


class Frequency(NamedTuple):
    """Columns, the most frequent first; means over rows of their values' sizes and squares."""

    columns: npt.NDArray[np.uint32]
    means: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Statistics:
    """The shape of the data. A column that stands in a row twice is held once by that row.

    Attributes:
        rows, columns, nonzeros: as stored; columns_used: columns that some row holds.
        row_lengths: the quantiles 0, 5, 25, 50, 75, 95 and 100 % of the rows' non-zeros.
        empty_rows: rows without non-zeros.
        value_range: the least and the greatest stored value (zeros where none is stored).
        labels: the most frequent labels and how many rows have each; label_kinds: how many
            different ones there are.
        omega: the most non-zeros in a row.
        delta: share of the rows that hold the most frequent column.
        rho: the largest share of the rows that one row shares a column with, itself included.
        rho_exact: False where rho is of a sample of rows, and the true one may be larger.
        rho_sample: how many rows' collisions were counted (none where delta is 1, so rho is, too).
        frequency: the share of the non-zeros in the 512, 4,096 and 65,536 most frequent columns.
        sharing: whether several workers gain by sharing one array of weights.
    """

    rows: int
    columns: int
    nonzeros: int
    columns_used: int
    row_lengths: tuple[int, ...]
    empty_rows: int
    value_range: tuple[float, float]
    labels: tuple[tuple[Any, int], ...]
    label_kinds: int
    omega: int
    delta: float
    rho: float
    rho_exact: bool
    rho_sample: int
    frequency: tuple[tuple[int, float], ...]
    sharing: Sharing


def statistics(rows: Rows, seed: int = 0) -> Statistics:
    """Counts everything in a few passes over the data; `seed` picks rows where rho is sampled."""
    lengths = np.diff(rows.indptr)
    values = rows.values if rows.nonzeros else np.zeros(1)
    holders = np.zeros(rows.columns, np.uint32)
    count_holders(rows.indptr, rows.indices, np.zeros(rows.columns, np.uint32), holders)
    most = int(holders.max(initial=0))
    rho, exact, sample = _collisions(rows, holders, int(np.count_nonzero(lengths)), seed)
    labels, kinds = _labels(rows.y)
    row_lengths = quantiles(lengths)
    return Statistics(
        rows=len(rows),
        columns=rows.columns,
        nonzeros=rows.nonzeros,
        columns_used=int(np.count_nonzero(holders)),
        row_lengths=row_lengths,
        empty_rows=int(np.count_nonzero(lengths == 0)),
        value_range=(float(values.min()), float(values.max())),
        labels=labels,
        label_kinds=kinds,
        omega=row_lengths[-1],
        delta=most / max(len(rows), 1),
        rho=rho,
        rho_exact=exact,
        rho_sample=sample,
        frequency=_shares(holders),
        sharing=sharing(rows),
    )


def meaning(statistics: Statistics) -> str:
    """What the numbers mean for several workers on this data, in two sentences."""
    source = "" if statistics.rho_exact else f" (found among {statistics.rho_sample:,} rows)"
    overlap = (
        f"The most frequent column is in {percent(statistics.delta)} of the rows, and one row "
        f"shares a column with {percent(statistics.rho)} of the rows{source}. "
    )
    if statistics.sharing.pays:
        return overlap + (
            "The weights are many and evenly used, so workers seldom write to the same cache line: "
            "expect a gain from more workers, also with the hogwild strategy."
        )
    return overlap + (
        "Workers that share one array of weights would pass its cache lines back and forth: "
        "expect no gain from more workers with the hogwild strategy. Strategies that give each "
        "worker a private copy do not have this problem."
    )


def sharing(rows: Rows) -> Sharing:
    """Judges from up to 2,000 rows whether workers without locks gain on one array of weights.

    They gain if at most a tenth of the non-zeros falls on the cache lines of weights that a core
    could keep in its private cache. All other lines come from the shared cache or memory in any
    case.
    """
    lines = -(-rows.columns // LINE)
    if lines <= PRIVATE_LINES:
        reason = (
            f"all {rows.columns:,} weights fit into a core's private cache, and every write of "
            "another worker would evict them from there"
        )
        return Sharing(1.0, False, reason)
    picked = _sampled_rows(rows)
    seen, others = (rows.gather(half.copy())[1] // LINE for half in (picked[::2], picked[1::2]))
    share = _private_share(seen, others, lines)
    pays = share <= MOST_SHARED
    so = (
        "most weights come from far away anyway, and workers can fetch them in parallel"
        if pays
        else "a core would keep these in its private cache if other workers did not write there"
    )
    reason = (
        f"{percent(share)} of the non-zeros fall on the {PRIVATE_LINES:,} most used cache "
        f"lines of weights: {so}"
    )
    return Sharing(share, pays, reason)


def frequency(rows: Rows) -> Frequency:
    """The columns that up to 2,000 rows hold, the most frequent first; counted once."""
    known = _FREQUENCIES.get(rows)
    if known is not None:
        return known
    picked, columns, sizes = _sample(rows)
    touches = np.bincount(columns, minlength=1)
    held = np.flatnonzero(touches)
    order = held[np.argsort(-touches[held], kind="stable")]
    means, squares = (
        np.bincount(columns, sizes**power, minlength=1)[order] / max(1, len(picked))
        for power in (1, 2)
    )
    return _FREQUENCIES.put(rows, Frequency(order.astype(np.uint32), means, squares))


_FREQUENCIES = Remembered[Frequency]()


def largest_columns(rows: Rows, most: int) -> list[tuple[int, float]]:
    """The columns with the largest values in a few rows, and the mean sizes of these values."""
    _, held, sizes = _sample(rows)
    columns, where = np.unique(held, return_inverse=True)
    means = np.bincount(where, sizes, len(columns)) / np.bincount(where, minlength=len(columns))
    order = np.argsort(-means, kind="stable")[:most]
    return [(int(columns[place]), float(means[place])) for place in order]


def _collisions(
    rows: Rows, holders: npt.NDArray[np.uint32], not_empty: int, seed: int
) -> tuple[float, bool, int]:
    """rho, whether it is exact, and from how many rows."""
    most = int(holders.max(initial=0))
    if most in (0, len(rows)):  # no column, or one in every row
        return float(most > 0), True, 0
    every = rows.nonzeros * -(-len(rows) // GROUP) <= AFFORDABLE
    chosen = np.arange(len(rows), dtype=np.uint64) if every else _likely(rows, holders, seed)
    most = int(collisions(rows, chosen).max())
    return most / len(rows), every or most == not_empty, len(chosen)


def _likely(rows: Rows, holders: npt.NDArray[np.uint32], seed: int) -> Words:
    """Random rows, and those that would collide most if their columns were independent.

    -log(1 - share) adds up over a row's columns to -log of the chance to miss a random row.
    """
    hit = -np.log1p(holders / -len(rows)).astype(np.float32)
    sums = np.empty(len(rows), np.float32)
    sum_by_row(rows.indptr, rows.indices, hit, sums)
    others = max(len(rows) - WORST_ROWS, 0)
    worst = np.argpartition(sums, min(others, len(rows) - 1))[others:].astype(np.uint64)
    words = random_word(seed, np.arange(RANDOM_ROWS, dtype=np.uint64))
    return np.unique(np.concatenate([worst, random_below(words, len(rows))]))


def collisions(rows: Rows, chosen: Words) -> Words:
    """How many rows share a column with each of these; itself, too, if it is not empty."""
    counts = np.zeros(len(chosen), np.uint64)
    masks = np.zeros(rows.columns, np.uint64)
    for first in range(0, len(chosen), GROUP):
        group = chosen[first : first + GROUP]
        bits = np.uint64(1) << np.arange(len(group), dtype=np.uint64)
        held = rows.indices[_places(rows, group)]
        lengths = (rows.ends[group] - rows.begins[group]).astype(np.int64)
        np.bitwise_or.at(masks, held, np.repeat(bits, lengths))
        count_collisions(rows.indptr, rows.indices, masks, counts[first:])
        masks[held] = 0
    return counts


def quantiles(lengths: Words) -> tuple[int, ...]:
    if len(lengths) == 0:
        return (0,) * len(QUANTILES)
    found = np.quantile(lengths.astype(np.int64), QUANTILES, method="inverted_cdf")
    return tuple(int(length) for length in found)


def _labels(y: Any) -> tuple[tuple[tuple[Any, int], ...], int]:
    """The most frequent labels with their counts, and how many different ones there are."""
    if y is None:
        return (), 0
    if isinstance(y, LabelSets):
        found, counts = y.names, y.counts()
    else:
        found, counts = np.unique(y, return_counts=True)
    first = np.argsort(-counts, kind="stable")[:MOST_LABELS]
    return tuple((found[i].item(), int(counts[i])) for i in first), len(found)


def _shares(holders: npt.NDArray[np.uint32]) -> tuple[tuple[int, float], ...]:
    """The shares of the non-zeros in the most frequent columns."""
    frequencies = np.sort(holders)[::-1].astype(np.uint64)
    total = max(int(frequencies.sum()), 1)
    return tuple((count, int(frequencies[:count].sum()) / total) for count in MOST_FREQUENT)


def _sample(rows: Rows) -> tuple[Words, npt.NDArray[np.uint32], npt.NDArray[np.float64]]:
    """Some rows, and the column and the size of each of their values."""
    picked = _sampled_rows(rows)
    _, columns, values = rows.gather(picked)
    return picked, columns, np.abs(values.astype(np.float64))


def _sampled_rows(rows: Rows) -> Words:
    """Up to 2,000 random rows, in order, with at most MOST_SAMPLED non-zeros but 2 at least."""
    count = min(SAMPLED_ROWS, len(rows))
    words = random_word(0, np.arange(count, dtype=np.uint64))
    few = len(rows) <= SAMPLED_ROWS
    picked = np.argsort(words) if few else random_below(words, len(rows)).astype(np.int64)
    fitting = int(np.searchsorted(np.cumsum(rows.lengths(picked)), MOST_SAMPLED, side="right"))
    return np.unique(picked[: max(fitting, 2)]).astype(np.uint64)


def _places(rows: Rows, picked: Words) -> Words:
    """Where the non-zeros of the picked rows stand."""
    begin = rows.begins[picked]
    lengths = rows.ends[picked] - begin
    before = np.cumsum(lengths) - lengths
    at = np.repeat(begin - before, lengths.astype(np.int64))
    return np.asarray(at + np.arange(len(at), dtype=np.uint64))


def _private_share(
    seen: npt.NDArray[np.uint32], other: npt.NDArray[np.uint32], lines: int
) -> float:
    """The share of accesses to the most used lines, which one half of a sample selects.

    The share is measured on the other half: on the first, chance would make any line look much
    used. Lines that the first half has not seen fill the room left, with equal parts of the rest.
    """
    if len(other) == 0:
        return 1.0
    used, touches = np.unique(seen, return_counts=True)
    if len(used) > PRIVATE_LINES:
        used = used[np.argpartition(touches, len(used) - PRIVATE_LINES)[-PRIVATE_LINES:]]
    known = float(np.isin(other, used).mean())
    room = (PRIVATE_LINES - len(used)) / (lines - len(used))
    return known + (1.0 - known) * room


def percent(share: float) -> str:
    if 0.9995 <= share < 1.0:
        return "over 99.9 %"
    return f"{100.0 * share:.3g} %"
