"""Synthetic data in the shape of a well-known set, with the weights that made the labels.

The shape is that of RCV1 (Lewis, Yang, Rose, Li 2004): news articles as tf-idf vectors.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.rows import Rows
from hogwild.errors import OptionError
from hogwild.kernels.primitives import random_word
from hogwild.kernels.synthetic import (
    MOST_REPEATS,
    draw_lengths,
    draw_rows,
    fill_alias_table,
    normal,
)

# Zipf's law with Mandelbrot's shift: odds of rank r ~ 1 / (SHIFT + r). With 47,236 columns and
# 77 non-zeros a row the commonest column is in 36 % of the rows.
SHIFT = 20
# Planted weights go down as 1 / (TEACHING + r): with 781,265 rows to learn from the test error is
# 7 %, as on RCV1, where the labels' noise allows 6 %; with 20,000 it is 13 %.
TEACHING = 100.0
# Spread of the row lengths: the longest of 781,265 rows has some 1,200 non-zeros, as in RCV1.
SIGMA = 0.6

# The whole-number options: the least and the most.
WHOLE = {
    "rows": (1, 2**32),
    "columns": (4, 2**32 - 1),
    "seed": (0, 2**64 - 1),
    "nonzeros": (1, 2**30),
    "first_row": (0, 2**63),
}

Floats = npt.NDArray[np.float32]


def rcv1(
    rows: int = 200_000,
    columns: int = 47_236,
    seed: int = 0,
    *,
    nonzeros: int = 77,
    noise: float = 0.06,
    first_row: int = 0,
) -> tuple[Rows, Floats]:
    """Draws RCV1-shaped rows with labels -1 and +1, and returns them with the planted weights.

    Columns follow Zipf's law and are numbered at random, so hot ones lie anywhere. A row has
    log-normally many different columns (`nonzeros` on average, 1 at least, half of the columns at
    most) with values log(1 + tf) * log(1 + rows / df), scaled to norm 1; df is the expected one.

    The planted weights are normal, smaller for rarer columns (as 1 / (100 + rank): what few rows
    hold, few rows could teach), in pairs of w and -w for neighbours in heat, which balances the
    classes. A label is the sign of score + s z, where score = row . weights has a
    standard deviation of about 1, z is standard normal and s = tan(pi * noise): so about a share
    `noise` of the labels differs from the sign of the score, mostly where the score is small.
    No model can do better than that (`noise` is the Bayes error, less exactly so where rows have
    but a few non-zeros or there are but a few hundred columns).

    Row i depends on i, `seed`, `columns`, `nonzeros` and `noise` only, never on `rows`, and no
    weight depends on a row. So rows to test on are those beyond the training rows:
    ``rcv1(1_000, first_row=200_000)``.
    """
    _check(
        {
            "rows": rows,
            "columns": columns,
            "seed": seed,
            "nonzeros": nonzeros,
            "noise": noise,
            "first_row": first_row,
        }
    )
    keys = random_word(seed, np.arange(1, 6, dtype=np.uint64))
    heat_key, weight_key, length_key, column_key, label_key = keys
    column_of = _columns_by_heat(heat_key, columns)
    odds = _odds(columns)
    rarity = _rarity(odds, nonzeros, column_of)
    weights = _planted_weights(weight_key, column_of)
    weights /= _typical_score(weights, odds, rarity, column_of)

    indptr = _row_pointers(length_key, first_row, rows, nonzeros, columns // 2)
    indices = np.empty(int(indptr[-1]), np.uint32)
    values = np.empty(len(indices), np.float32)
    y = np.empty(rows, np.int8)
    draw_rows(
        (column_key, label_key, np.uint64(first_row)),
        float(np.tan(np.pi * noise)),
        (_alias_table(odds, column_of), (rarity, weights, _logs())),
        _bag(columns),
        (indptr, indices, values, y),
    )
    name = f"synthetic RCV1 (seed {seed})"
    return Rows.from_arrays(indptr, indices, values, columns, y, name=name), weights


def _check(options: dict[str, Any]) -> None:
    """Refuses what cannot be drawn, all of it at once."""
    problems = [
        f"{name} is {options[name]!r}; it must be a whole number from {least:,} to {most:,}"
        for name, (least, most) in WHOLE.items()
        if not _is_whole(options[name]) or not least <= options[name] <= most
    ]
    columns, nonzeros, noise = options["columns"], options["nonzeros"], options["noise"]
    if not problems and columns < 4 * nonzeros:
        problems.append(
            f"columns is {columns:,}; rows of {nonzeros:,} non-zeros need at least four times as "
            f"many columns: {4 * nonzeros:,} (or set nonzeros to {columns // 4:,} or less)"
        )
    if not isinstance(noise, int | float | np.floating) or not 0 <= noise < 0.5:
        problems.append(
            f"noise is {noise!r}; it must be at least 0 and below 0.5 (a share of the labels)"
        )
    if problems:
        raise OptionError("\n".join(problems))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _columns_by_heat(key: Any, columns: int) -> npt.NDArray[np.uint32]:
    """The column numbers, the hottest first: a random permutation."""
    order = np.argsort(random_word(key, np.arange(columns, dtype=np.uint64)), kind="stable")
    return order.astype(np.uint32)


def _row_pointers(
    key: Any, first_row: int, rows: int, nonzeros: int, longest: int
) -> npt.NDArray[np.uint64]:
    lengths = np.empty(rows, np.uint64)
    median = nonzeros * np.exp(-0.5 * SIGMA**2)  # so that the mean is `nonzeros`
    draw_lengths(key, first_row, (median, SIGMA, float(longest)), lengths)
    indptr = np.zeros(rows + 1, np.uint64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def _odds(columns: int) -> npt.NDArray[np.float64]:
    """The odds of each rank to be drawn; they sum to 1."""
    odds = 1.0 / (SHIFT + np.arange(1.0, columns + 1.0))
    return np.asarray(odds / odds.sum())


def _planted_weights(key: Any, column_of: npt.NDArray[np.uint32]) -> Floats:
    rank = np.arange(len(column_of), dtype=np.uint64)
    drawn = normal(random_word(key, rank >> np.uint64(1)))
    weights = np.empty(len(column_of), np.float32)
    weights[column_of] = np.where(rank % 2 == 0, drawn, -drawn) / (TEACHING + rank)
    return weights


def _typical_score(
    weights: Floats,
    odds: npt.NDArray[np.float64],
    rarity: Floats,
    column_of: npt.NDArray[np.uint32],
) -> np.float32:
    """About the standard deviation of the scores that these weights give to rows of norm 1."""
    energy = odds * rarity[column_of].astype(np.float64) ** 2
    mean_square = np.sum(energy * weights[column_of].astype(np.float64) ** 2) / np.sum(energy)
    return np.float32(np.sqrt(mean_square))


def _rarity(
    odds: npt.NDArray[np.float64], nonzeros: int, column_of: npt.NDArray[np.uint32]
) -> Floats:
    """log(1 + rows / df) by column; df / rows = 1 - exp(-nonzeros * odds), as expected."""
    rarity = np.empty(len(odds), np.float32)
    rarity[column_of] = np.log1p(-1.0 / np.expm1(-nonzeros * odds))
    return rarity


def _logs() -> Floats:
    """log(1 + tf) for every tf that a row can have."""
    return np.log1p(np.arange(MOST_REPEATS + 1)).astype(np.float32)


def _alias_table(
    odds: npt.NDArray[np.float64], column_of: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint64]:
    table = np.empty(len(odds), np.uint64)
    fill_alias_table(odds * len(odds), column_of, table)
    return table


def _bag(columns: int) -> tuple[npt.NDArray[Any], ...]:
    """An empty bag: the repeats of each column, a bit per column, a bit per word of bits."""
    return (
        np.zeros(columns, np.uint8),
        np.zeros(columns // 64 + 1, np.uint64),
        np.zeros(columns // 4096 + 1, np.uint64),
    )
