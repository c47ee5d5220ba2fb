"""How long rows are, and whether a few values are far larger than all others."""

from typing import Any

import numpy as np
import numpy.typing as npt

LOOKED_AT, VALUES = 256, 64  # rows, about, and values of each that tell how long rows are
OUTLYING = 1e4  # of the squared length of a typical row


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
