"""How long rows are, whether some values are far larger than others, and how far numbers differ."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.rows import some_places

LOOKED_AT, VALUES = 256, 64  # rows, about, and values of each that tell how long rows are
OUTLYING = 1e4  # of the squared length of a typical row
MOST_NUMBERS = 100_000  # whose median is taken
UNEQUAL = 100.0  # mean square of values over that of a typical one: columns of very different sizes


def typical(squares: npt.NDArray[np.float64]) -> float:
    """The squared length of a typical row, by those of some: a few may be far longer."""
    squares = squares[squares > 0.0]
    return float(np.median(squares)) if len(squares) else 0.0


def some_squares(rows: Any) -> npt.NDArray[np.float64]:
    """The squared lengths of some rows in memory; those of long ones, by their first values."""
    if not len(rows.values):
        return np.zeros(0)
    some = slice(None, None, max(1, len(rows.begins) // LOOKED_AT))
    begins, ends = rows.begins[some], rows.ends[some]
    places = begins[:, None] + np.arange(VALUES, dtype=np.uint64)
    inside = places < ends[:, None]
    seen = rows.values[np.minimum(places, len(rows.values) - 1)].astype(np.float64) * inside
    means = np.sum(seen**2, axis=1) / np.maximum(1, inside.sum(axis=1))
    found: npt.NDArray[np.float64] = means * (ends - begins)
    return found


def has_outliers(rows: Any) -> bool:
    """Whether some value is far larger than a whole typical row; for rows in memory."""
    values = rows.values
    largest = max(float(values.max()), -float(values.min())) if len(values) else 0.0
    return largest**2 > OUTLYING * typical(some_squares(rows))


def are_unequal(rows: Any) -> bool:
    """Whether values are of very different sizes, as in unscaled columns; for rows in memory."""
    values = rows.values
    return len(values) > 0 and inequality(values[some_places(len(values))]) > UNEQUAL


def inequality(values: npt.NDArray[np.float32]) -> float:
    """The mean square of values over the square of a typical one."""
    sizes = np.abs(values[values != 0.0].astype(np.float64))
    if not len(sizes):
        return 1.0
    return float(np.sum(sizes**2)) / len(values) / float(np.median(sizes)) ** 2


def median_and_deviation(numbers: npt.NDArray[Any]) -> tuple[float, float]:
    """The median of numbers and their median absolute deviation, or the mean one if that is 0.

    At most `MOST_NUMBERS` of them are looked at, evenly spaced.
    """
    if not len(numbers):
        return 0.0, 0.0
    some = numbers[:: 1 + len(numbers) // MOST_NUMBERS].astype(np.float64)
    median = float(np.median(some))
    deviations = np.abs(some - median)
    return median, float(np.median(deviations)) or float(np.mean(deviations))
