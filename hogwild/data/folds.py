"""Rows held out of training, and folds of a cross-validation.

Where a row falls depends on the seed, on its place and on its class only. Classes are spread
evenly: the shares of a class in two folds differ by one row at most.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import DataError, OptionError
from hogwild.seeds import seed_of

Numbers = npt.NDArray[np.int64]
Split = tuple[Numbers, Numbers]  # the numbers of the rows to learn from, and of those held out

HELD_OUT, FOLDS = 11, 12  # what a seed is for


def held_out(
    size: int, share: float, seed: int, y: npt.NDArray[Any] | None = None, name: str = "the data"
) -> Split:
    """A random share of the rows of each class of `y`; the only row of a class stays in training.

    Raises:
        DataError: the share is less than a row.
    """
    order, firsts, _ = _by_class(size, seed_of(seed, HELD_OUT), y)
    free = np.delete(order, firsts)
    count = min(round(share * size), len(free))
    if not count:
        raise DataError(
            f"{name}: of {size:,} rows none was held out; give a larger early_stopping, or leave "
            "it out"
        )
    places = (np.arange(count) + 0.5) * (len(free) / count)
    return _split(size, free[places.astype(np.intp)])


def folds(
    size: int, count: int, seed: int, y: npt.NDArray[Any] | None = None, name: str = "the data"
) -> tuple[list[Split], list[str]]:
    """The folds, each held out of its own training, and notes about them.

    Raises:
        OptionError: fewer than two folds, or more than rows.
        DataError: some class has a single row: without it, the class could not be learned.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= size:
        raise OptionError(
            f"folds: {count!r} is not a whole number from 2 to {size}, the number of rows"
        )
    order, firsts, labels = _by_class(size, seed_of(seed, FOLDS), y)
    sizes = np.diff(np.append(firsts, size))
    notes = []
    for label, rows in zip(labels, sizes, strict=True):
        if rows == 1:
            raise DataError(
                f"{name}: only one row has the label {label}; folds need two or more: leave that "
                "row out, or take validate or early_stopping instead"
            )
        if rows < count:
            notes.append(
                f"{name}: {rows} rows have the label {label}, fewer than there are folds: "
                f"{count - rows} of the {count} folds are judged without it"
            )
    return [_split(size, order[fold::count]) for fold in range(count)], notes


def _by_class(
    size: int, seed: int, y: npt.NDArray[Any] | None
) -> tuple[Numbers, Numbers, npt.NDArray[Any]]:
    """The rows in a random order, but class by class; where each class begins, and the classes."""
    order = np.random.default_rng(seed).permutation(size)
    if y is None:
        return order, np.zeros(0, np.int64), np.zeros(0)
    labels, codes = np.unique(y, return_inverse=True)
    small = codes.astype(np.min_scalar_type(len(labels)))  # sorted by radix, if 16 bits will do
    order = order[np.argsort(small[order], kind="stable")]
    sizes = np.bincount(codes, minlength=len(labels))
    return order, np.cumsum(sizes) - sizes, labels


def _split(size: int, chosen: Numbers) -> Split:
    is_held = np.zeros(size, np.bool_)
    is_held[chosen] = True
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)
