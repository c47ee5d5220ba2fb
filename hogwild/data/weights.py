"""Weights of rows, from a file of text: a number a line."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from hogwild.data.files import opened
from hogwild.errors import DataError
from hogwild.paths import PathLike


def load_weights(path: PathLike) -> npt.NDArray[np.float64]:
    """Reads a number from each line; the file may be `.gz` or `.bz2`.

    Raises:
        DataError: says which line is not a number of 0 or more.
    """
    with opened(Path(path)) as file:
        lines = file.read().splitlines()
    weights = np.empty(len(lines))
    for place, line in enumerate(lines):
        try:
            weights[place] = float(line)
        except ValueError:
            weights[place] = np.nan
        if not 0 <= weights[place] < np.inf:
            shown = line[:40].decode("utf-8", "replace")
            raise DataError(
                f"{path}: line {place + 1}: {shown!r} is not a weight; expected a number of 0 or "
                "more on each line, one for each row"
            )
    return weights
