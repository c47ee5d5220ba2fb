"""Refuses scores that overflow single precision: their values would mean nothing."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import DataError


def finite(scores: npt.NDArray[Any], name: str, what: str) -> npt.NDArray[Any]:
    """The scores, a line for each row or pair, if all are finite.

    Raises:
        DataError: a score overflowed. Even its sign may be wrong: terms added later are lost.
    """
    good = np.isfinite(scores)
    if not good.all():
        line = int(np.argmin(good.reshape(len(scores), -1).all(axis=1)))
        raise DataError(
            f"{name}: the score of {what} {line + 1:,} is too large for single precision; scale "
            "the values down, and train on values that are scaled alike"
        )
    return scores
