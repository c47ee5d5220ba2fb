"""Columns that rows use. Where there are many more, training numbers the used ones anew.

Hashed data has a few of millions of columns. The weights of the others are zero, and yet each pass
over the weights, each copy and each vector of a solver has them, too; and the used weights are far
from each other in memory. experiments/speed_columns.py measures what that costs.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hogwild.data.rows import PAGE, Rows
from hogwild.fingerprints import fingerprint
from hogwild.kernels.rows import WORD, count_marked, list_marked, mark, renumber, take_marked
from hogwild.remembered import Remembered
from hogwild.threads import in_shares, share_of

FEWEST = 1 << 16  # columns; fewer are not worth a look
# Non-zeros to an unused column, at most. 400,000 rows of RCV1's shape (77 non-zeros each) train in
# 0.5 of the time if they come from 2^20 columns (31 to an unused one), 0.9 from 2^18 (143)
WORTH = 32
ALONE = 1 << 18  # non-zeros that one thread looks at

KERNELS = [mark, list_marked, renumber]

Columns = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Numbering:
    """Columns and their places among those that occur, in the same order.

    Attributes:
        columns: the columns that occur.
        total: how many columns there are.
    """

    columns: Columns
    total: int
    _bits: npt.NDArray[np.uint64]
    _before: Columns

    @classmethod
    def of(
        cls, indices: Columns, total: int, most: int | None = None, threads: int = 1
    ) -> "Numbering | None":
        """The numbering of the columns that occur among these; None if there are more than `most`.

        `total`: how many columns there are.
        """
        most = total if most is None else most
        bits = np.zeros((threads, -(-total // int(WORD))), np.uint64)

        def look(rank: int, _: int) -> int:
            begin, end = share_of(len(indices), threads, rank)
            return int(mark(indices[begin:end], bits[rank], most))

        if max(in_shares(look, threads, threads)) > most:
            return None
        found = np.bitwise_or.reduce(bits) if threads > 1 else bits[0]
        count = int(np.bitwise_count(found).sum())
        if count > most:
            return None
        columns, before = np.empty(count, np.uint32), np.empty(len(found), np.uint32)
        list_marked(found, before, columns)
        return cls(columns, total, found, before)

    def places(self, indices: Columns, threads: int = 1) -> Columns:
        """The places of columns, all of which occur."""
        places = np.empty(len(indices), np.uint32)
        if threads > 1:
            places[::PAGE] = 0  # as in `Rows.gather`

        def look(begin: int, end: int) -> None:
            renumber(indices[begin:end], self._bits, self._before, places[begin:end])

        in_shares(look, len(indices), threads)
        return places

    def narrowed(self, rows: Rows, threads: int = 1) -> Rows:
        """A copy of rows without the values in other columns."""
        starts = np.zeros(len(rows) + 1, np.uint64)

        def count(begin: int, end: int) -> None:
            chosen = rows.begins[begin:end], rows.ends[begin:end]
            count_marked(*chosen, rows.indices, self._bits, starts[begin + 1 : end + 1])

        in_shares(count, len(rows), threads)
        np.cumsum(starts, out=starts)
        places, values = np.empty(starts[-1], np.uint32), np.empty(starts[-1], np.float32)

        def take(begin: int, end: int) -> None:
            chosen = rows.begins[begin:end], rows.ends[begin:end], rows.indices, rows.values
            take_marked(*chosen, self._bits, self._before, starts[begin:end], places, values)

        in_shares(take, len(rows), threads)
        return rows.holding((starts, places, values), len(self.columns))


Found = tuple[Numbering, Columns] | None
# By the array of columns and their total; a tuple, since None is a result, too
_known = Remembered[tuple[Found]]()


def renumbered(rows: Rows, threads: int = 1) -> Found:
    """The columns that rows use, and the places of theirs among them; None where not worth it.

    Rows that share their array of columns, as parts of the same rows do, get the same numbering.
    """
    indices, total = rows.indices, rows.columns
    if not bytes_of_places(total, len(indices)):
        return None
    known = _known.get(indices, total)
    if known is not None:
        fingerprint(indices)  # refuses an array that has changed
        return known[0]
    if len(indices) <= ALONE:
        threads = 1
    # Each thread has a bit for each column: all of them at most a byte for each non-zero
    found = _found(indices, total, min(threads, max(1, 8 * len(indices) // total)))
    return _known.put(indices, (found,), total)[0]


def bytes_of_places(total: int, nonzeros: int) -> int:
    """The size of the array of places that numbering makes; 0 where columns are not numbered."""
    return 4 * nonzeros if total >= FEWEST and total * WORTH > nonzeros else 0


def _found(indices: Columns, total: int, threads: int) -> Found:
    numbering = Numbering.of(indices, total, total - max(1, len(indices) // WORTH), threads)
    if numbering is None:
        return None
    places = numbering.places(indices, threads)
    places.flags.writeable = False
    return numbering, places
