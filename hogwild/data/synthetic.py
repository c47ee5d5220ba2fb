"""Synthetic data in the shape of a well-known set, with the weights that made the labels.

The shape is that of RCV1 (Lewis, Yang, Rose, Li 2004): news articles as tf-idf vectors.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, pdtrik

from hogwild.data.rows import Rows
from hogwild.errors import OptionError
from hogwild.kernels.primitives import random_share, random_word
from hogwild.kernels.synthetic import (
    MOST_REPEATS,
    draw_lengths,
    draw_rows,
    fill_alias_table,
    normal,
)

# Zipf's law with Mandelbrot's shift: odds of rank r ~ 1 / (SHIFT + r). With 47,236 columns and
# 77 non-zeros a row the most frequent column is in 36 % of the rows.
SHIFT = 20
# Planted weights go down as 1 / (TEACHING + r), and rows lean to a class by up to LEANING. With
# these a linear SVM at l2 = 1e-4 errs on 7 % of the rows that it has not seen and has an objective
# of 0.29; on RCV1 (CCAT) Bottou's svmsgd has 6 % and 0.23.
TEACHING = 1000.0
LEANING = 0.9
# With several classes, rows do not lean; the words that tell have a normal number above this
TELLING, TOPIC_TEACHING = 2.0, 30.0
PILOT = 4096  # rows that the scores are calibrated on
BISECTIONS = 60
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
Columns = npt.NDArray[np.uint32]
LOGS = np.log1p(np.arange(MOST_REPEATS + 1)).astype(np.float32)  # log(1 + tf)


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

    Columns follow Zipf's law and are numbered at random, so frequent ones lie anywhere. A row has
    log-normally many different columns (`nonzeros` on average, 1 at least, half of the columns at
    most) with values log(1 + tf) * log(1 + rows / df), scaled to norm 1; df is the expected one.

    The planted weights are normal, smaller for rarer columns (as 1 / (100 + rank): what few rows
    hold, few rows could teach), in pairs of w and -w for neighbors in frequency, which balances the
    classes. Rows lean to one class or the other, as articles have a subject: a drawn column gives
    way to its opposite, with odds of up to LEANING, where that fits better. A label is the sign of
    score + s z, where score = row . weights has a standard deviation of 1, z is standard normal
    and s is such that a share `noise` of the labels differs from the sign of the score, mostly
    where the score is small. No model can do better: `noise` is the Bayes error.

    Row i depends on i, `seed`, `columns`, `nonzeros` and `noise` only, never on `rows`, and no
    weight depends on a row. So rows to test on are those beyond the training rows:
    ``rcv1(1_000, first_row=200_000)``.
    """
    given = {"rows": rows, "columns": columns, "seed": seed, "nonzeros": nonzeros}
    _check(given | {"noise": noise, "first_row": first_row})
    text = _Text(columns, seed, nonzeros)
    indptr, indices, values, y = text.draw(first_row, rows, text.spread(noise))
    name = f"synthetic RCV1 (seed {seed})"
    return Rows.from_arrays(indptr, indices, values, columns, y, name=name), text.weights


def rcv1_classes(
    rows: int = 200_000,
    columns: int = 47_236,
    seed: int = 0,
    *,
    classes: int,
    labels_per_row: float | None = None,
    noise: float = 0.06,
    first_row: int = 0,
    nonzeros: int = 77,
) -> tuple[Rows, Floats]:
    """Draws the rows of `rcv1` with one of several classes, or with several labels each.

    Each class has weights on a twentieth of the columns, and a row's score for it has a mean of 0
    and a standard deviation of 1, about; `noise` is that of what is added to it. The class of a row
    is the one with the highest sum. With `labels_per_row` a row has every label whose sum is high
    enough, and that many labels on average.

    Returns:
        The rows, and the planted weights, classes x columns. (The mean score is left out of them.)
    """
    problems = whole_number_problems({"classes": classes}, {"classes": (2, 1 << 20)})
    if labels_per_row is not None and not 0 < labels_per_row < classes:
        problems.append(f"labels is {labels_per_row!r}; it must be above 0 and below {classes:,}")
    if problems:
        raise OptionError("\n".join(problems))
    given, _ = rcv1(rows, columns, seed, nonzeros=nonzeros, first_row=first_row)
    pilot, _ = rcv1(PILOT, columns, seed, nonzeros=nonzeros)
    matrix, few = given.to_scipy(), pilot.to_scipy()
    order_key, classes_key = random_word(seed, np.array([1, 7], np.uint64))
    column_of = columns_by_frequency(order_key, columns)
    weights = np.empty((classes, columns), np.float32)
    sums = np.empty((rows, classes), np.float32)
    places = np.arange(first_row, first_row + rows, dtype=np.uint64)
    for number, key in enumerate(random_word(classes_key, np.arange(classes, dtype=np.uint64))):
        planted = _topic_weights(key, column_of)
        of_few = few @ planted
        spread = max(float(of_few.std()), float(np.finfo(np.float32).tiny))
        weights[number] = planted / spread
        added = noise * normal(random_word(key ^ np.uint64(1), places))
        sums[:, number] = matrix @ weights[number] - of_few.mean() / spread + added
    y: Any = sums.argmax(axis=1)
    if labels_per_row is not None:
        y = sums > ndtri(1 - labels_per_row / classes)
    return given.labelled(y), weights


def rcv1_numbers(
    rows: int = 200_000,
    columns: int = 47_236,
    seed: int = 0,
    *,
    counts: bool = False,
    noise: float = 0.5,
    first_row: int = 0,
    nonzeros: int = 77,
) -> tuple[Rows, Floats]:
    """Draws the rows of `rcv1` with numbers in place of labels, or with counts.

    Scores, row . weights, have a standard deviation of 1. A number is the score plus a normal one
    times `noise`, which is the least RMSE there can be. A count comes from Poisson's distribution
    with mean exp(score).

    Returns:
        The rows, and the planted weights.
    """
    if not 0 <= noise < np.inf:
        raise OptionError(f"noise is {noise!r}; it must be a number of at least 0")
    given, weights = rcv1(rows, columns, seed, noise=0.0, nonzeros=nonzeros, first_row=first_row)
    scores = given.to_scipy() @ weights.astype(np.float64)
    (key,) = random_word(seed, np.array([8], np.uint64))
    drawn = random_word(key, np.arange(first_row, first_row + rows, dtype=np.uint64))
    if counts:
        share, mean = random_share(drawn), np.exp(scores)
        quantiles = np.ceil(pdtrik(share, mean))
        return given.labelled(np.where(share <= np.exp(-mean), 0, quantiles)), weights
    return given.labelled(scores + noise * normal(drawn)), weights


class _Text:
    """What all rows of an endless set have in common."""

    def __init__(self, columns: int, seed: int, nonzeros: int) -> None:
        self._keys = random_word(seed, np.arange(1, 7, dtype=np.uint64))
        order_key, weight_key = self._keys[:2]
        self._nonzeros = nonzeros
        column_of = columns_by_frequency(order_key, columns)
        odds = _odds(columns)
        self._table = alias_table(odds, column_of)
        # For each column, the one with the opposite weight; of an odd number the last has none
        other = np.minimum(np.arange(columns) ^ 1, columns - 1)
        self._opposite = _by_column(column_of[other], column_of, np.uint32)
        # log(1 + rows / df), where df / rows = 1 - exp(-nonzeros * odds) as expected
        self._rarity = _by_column(np.log1p(-1.0 / np.expm1(-nonzeros * odds)), column_of)
        # An empty bag: the repeats of each column, a bit per column, a bit per word of bits
        self._bag = (
            np.zeros(columns, np.uint8),
            np.zeros(columns // 64 + 1, np.uint64),
            np.zeros(columns // 4096 + 1, np.uint64),
        )
        self.weights = _planted_weights(weight_key, column_of)
        # The scores of the first rows, whatever rows are asked for
        indptr, indices, values, _ = self.draw(0, PILOT, 0.0)
        terms = values.astype(np.float64) * self.weights[indices]
        self._pilot = np.add.reduceat(terms, indptr[:-1].astype(np.int64))
        typical = self._pilot.std()
        self.weights /= np.float32(typical)
        self._pilot /= typical

    def _row_pointers(self, first_row: int, rows: int) -> npt.NDArray[np.uint64]:
        """Where each of these rows begins."""
        lengths = np.empty(rows, np.uint64)
        median = self._nonzeros * np.exp(-0.5 * SIGMA**2)  # so that the mean is `nonzeros`
        longest = float(len(self.weights) // 2)
        draw_lengths(self._keys[2], first_row, (median, SIGMA, longest), lengths)
        indptr = np.zeros(rows + 1, np.uint64)
        np.cumsum(lengths, out=indptr[1:])
        return indptr

    def draw(self, first_row: int, rows: int, noise: float) -> tuple[npt.NDArray[Any], ...]:
        """Pointers, indices, values and labels of rows."""
        indptr = self._row_pointers(first_row, rows)
        indices = np.empty(int(indptr[-1]), np.uint32)
        values, y = np.empty(len(indices), np.float32), np.empty(rows, np.int8)
        source = (*self._keys[3:6], np.uint64(first_row))
        of_column = (self._rarity, self.weights, LOGS)
        tables = (self._table, self._opposite, of_column)
        draw_rows(source, (LEANING, noise), tables, self._bag, (indptr, indices, values, y))
        return indptr, indices, values, y

    def spread(self, noise: float) -> float:
        """The standard deviation of what is added to scores, so that `noise` of the labels err."""
        low, high = 0.0, 1e3
        for _ in range(BISECTIONS if noise else 0):
            middle = (low + high) / 2
            erring = float(np.mean(ndtr(-np.abs(self._pilot) / middle)))
            low, high = (middle, high) if erring < noise else (low, middle)
        return low


def _check(options: dict[str, Any]) -> None:
    """Refuses what cannot be drawn, all of it at once."""
    problems = whole_number_problems(options, WHOLE)
    columns, nonzeros, noise = options["columns"], options["nonzeros"], options["noise"]
    if not problems and columns < 4 * nonzeros:
        problems.append(
            f"columns is {columns:,}; rows of {nonzeros:,} non-zeros need at least four times as "
            f"many columns: give {4 * nonzeros:,} or more"
        )
    if not isinstance(noise, int | float | np.floating) or not 0 <= noise < 0.5:
        problems.append(
            f"noise is {noise!r}; it must be at least 0 and below 0.5 (a share of the labels)"
        )
    if problems:
        raise OptionError("\n".join(problems))


def whole_number_problems(options: dict[str, Any], limits: dict[str, tuple[int, int]]) -> list[str]:
    """A sentence for each option that is no whole number from its least to its most."""
    return [
        f"{name} is {options[name]!r}; it must be a whole number from {least:,} to {most:,}"
        for name, (least, most) in limits.items()
        if not isinstance(options[name], int | np.integer)
        or isinstance(options[name], bool)
        or not least <= options[name] <= most
    ]


def columns_by_frequency(key: Any, columns: int) -> Columns:
    """The column numbers, the most frequent first: a random permutation."""
    order = np.argsort(random_word(key, np.arange(columns, dtype=np.uint64)), kind="stable")
    return order.astype(np.uint32)


def _odds(columns: int) -> npt.NDArray[np.float64]:
    """The odds of each rank to be drawn; they sum to 1."""
    odds = 1.0 / (SHIFT + np.arange(1.0, columns + 1.0))
    return np.asarray(odds / odds.sum())


def _by_column(of_rank: npt.NDArray[Any], column_of: Columns, kind: Any = np.float32) -> Any:
    """What is given for each rank, for each column."""
    found = np.empty(len(column_of), kind)
    found[column_of] = of_rank
    return found


def _planted_weights(key: Any, column_of: Columns) -> Any:
    rank = np.arange(len(column_of), dtype=np.uint64)
    drawn = normal(random_word(key, rank >> np.uint64(1)))
    return _by_column(np.where(rank % 2 == 0, drawn, -drawn) / (TEACHING + rank), column_of)


def _topic_weights(key: Any, column_of: Columns) -> Any:
    """Weights of one of several classes: few words tell of a topic."""
    rank = np.arange(len(column_of), dtype=np.uint64)
    drawn = normal(random_word(key, rank))
    weights = np.where(np.abs(drawn) > TELLING, drawn, 0) / (TOPIC_TEACHING + rank)
    return _by_column(weights, column_of)


def alias_table(odds: npt.NDArray[np.float64], column_of: Columns) -> npt.NDArray[np.uint64]:
    table = np.empty(len(odds), np.uint64)
    fill_alias_table(odds * len(odds), column_of, table)
    return table
