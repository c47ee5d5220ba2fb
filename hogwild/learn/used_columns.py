"""The columns that weights are learned for: all, or those that rows use; and the way back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.rows import Rows
from hogwild.data.used_columns import bytes_of_places, renumbered
from hogwild.errors import DataError
from hogwild.fingerprints import digest_of
from hogwild.machine import available_memory

Arrays = dict[str, npt.NDArray[Any]]
Places = npt.NDArray[np.int64]  # of columns, and the intercept's, which is behind all of them
Change = Callable[[npt.NDArray[Any], Places], npt.NDArray[Any]]

BY_COLUMN = ("stored", "weights", "mean", "best")  # arrays with numbers for each column
USED = "used"  # in a state: the places that those are for, if not for all


class UsedColumns:
    """The columns, in the order that they were given in.

    Attributes:
        total: how many columns there are.
        places: those that are used; None if all are.
    """

    def __init__(self, rows: Rows, threads: int, are_all: bool) -> None:
        """`are_all`: whether weights are learned for all columns, whichever are used."""
        self.total, self._name, self._threads = rows.columns, rows.name, threads
        self.places: Places | None = None
        # Where memory is short, weights of all columns are learned: the same but for last bits
        more = 0 if are_all else bytes_of_places(rows.columns, rows.nonzeros)
        found = renumbered(rows, threads) if more and more <= available_memory() else None
        if found is not None:
            self._given, (self._numbering, self._indices) = rows.indices, found
            self.places = np.append(self._numbering.columns.astype(np.int64), self.total)

    def narrowed(self, rows: Rows) -> Rows:
        """These rows, or others, with the used columns. Values in others are left out."""
        if self.places is None or rows.indices is self._indices:  # these have them already
            return rows
        if rows.indices is self._given:
            return rows.renumbered(self._indices, len(self._numbering.columns))
        return self._numbering.narrowed(rows, self._threads)

    def widened(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A copy of numbers for the used columns, with zeros for the others."""
        return weights.copy() if self.places is None else _widened(weights, self.places)

    def given(self, column: int) -> int:
        """The number that a column was given."""
        return column if self.places is None else int(self.places[column])

    def fingerprint(self) -> str:
        """A digest of the used columns, beside that of the rows; empty if all are."""
        return "" if self.places is None else digest_of([self.places])

    def marked(self, state: Arrays) -> Arrays:
        """A state that says which columns it is for."""
        return state if self.places is None else state | {USED: self.places}

    def suited(self, state: Arrays) -> Arrays:
        """A state with numbers for the columns that are used here.

        Raises:
            DataError: the state's columns are those of no training on such rows.
        """
        theirs = state.get(USED)
        numbers = {name: array for name, array in state.items() if name != USED}
        if theirs is not None and self.places is not None and np.array_equal(theirs, self.places):
            return numbers
        if theirs is not None:
            self._check(theirs, numbers)
            numbers = _each(_widened, numbers, theirs)
        return numbers if self.places is None else _each(_taken, numbers, self.places)

    def _check(self, theirs: npt.NDArray[Any], numbers: Arrays) -> None:
        lengths = [len(numbers[name]) for name in BY_COLUMN if name in numbers]
        sound = theirs.dtype == np.int64 and len(theirs) > 0 and theirs[0] >= 0
        if not (sound and np.all(theirs[1:] > theirs[:-1])) or any(
            length % len(theirs) for length in lengths
        ):
            raise DataError("start: its columns are damaged; give the state of a result as it is")
        if theirs[-1] != self.total:
            raise DataError(
                f"{self._name} needs {self.total:,} weights, and what to go on from has "
                f"{theirs[-1]:,}"
            )


def _widened(weights: npt.NDArray[Any], places: Places) -> npt.NDArray[Any]:
    by_column = weights.reshape(len(places), -1)
    wide = np.zeros((int(places[-1]) + 1, by_column.shape[1]), weights.dtype)
    wide[places] = by_column
    return wide.reshape(-1)


def _taken(weights: npt.NDArray[Any], places: Places) -> npt.NDArray[Any]:
    by_column = weights.reshape(int(places[-1]) + 1, -1)
    return np.take(by_column, places, axis=0).reshape(-1)


def _each(change: Change, numbers: Arrays, places: Places) -> Arrays:
    return {
        name: change(array, places) if name in BY_COLUMN else array
        for name, array in numbers.items()
    }
