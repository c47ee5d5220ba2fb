"""A column of ids whose pieces come from several threads; the codes are those of a single thread.

Small numbers are kept as they are until all ids are known: then their codes are their places in
ascending order. All other ids first get codes within their piece, in parallel. These codes are
replaced when the piece is taken. As pieces are taken in the order of the text, codes follow the
order of first appearance.
"""

import numpy as np
import numpy.typing as npt

from hogwild.data import ids
from hogwild.data.ids import Coder, Codes, Ids, numbers_as_ids
from hogwild.data.texts import Texts
from hogwild.kernels import ids as kernels
from hogwild.threads import in_shares


class PieceOfIds:
    """The ids of a column in a piece of text: the numbers themselves, or codes of its own."""

    def __init__(self, seen: npt.NDArray[np.uint8] | None, codes: Codes) -> None:
        self._seen = seen
        self.codes = codes
        self.count = 0
        self.reach = 0  # one more than the largest number
        self.coder: Coder | None = None if seen is not None else Coder(0)

    def add(self, given: Texts) -> None:
        """Adds ids as they stand in the text; refuses what is not UTF-8."""
        codes = self.codes[self.count : self.count + len(given)]
        if self.coder is None:
            done, reach = kernels.small_numbers(tuple(given), self._seen, codes)
            self.reach = max(self.reach, int(reach))
            if done < len(given):
                self.give_codes()
        if self.coder is not None:
            self.coder.add(given, codes)
        self.count += len(given)

    def give_codes(self) -> None:
        """Replaces numbers by codes."""
        self.coder = Coder(0)
        known = self.codes[: self.count]
        self.coder.add_numbers(known.astype(np.int64), known)


class IdColumn:
    """All ids of a column."""

    def __init__(self) -> None:
        self._seen: npt.NDArray[np.uint8] | None = np.zeros(ids.DIRECT, np.uint8)
        self._reach = 0
        self._coder: Coder | None = None

    def begin(self, codes: Codes) -> PieceOfIds:
        """For the ids of one more piece, and room for their codes."""
        return PieceOfIds(self._seen if self._coder is None else None, codes)

    def needs_codes(self, piece: PieceOfIds) -> bool:
        """Whether the numbers so far must get codes, since this piece has other ids."""
        return self._coder is None and piece.coder is not None

    def give_codes(self, numbers: Codes) -> None:
        """Replaces the numbers of all pieces so far by codes."""
        self._coder = Coder()
        for begin in range(0, len(numbers), ids.BLOCK):
            block = numbers[begin : begin + ids.BLOCK]
            self._coder.add_numbers(block.astype(np.int64), block)

    def take(self, piece: PieceOfIds) -> Codes | None:
        """Adds the ids of the next piece; returns the new codes, if its codes change."""
        self._reach = max(self._reach, piece.reach)
        if self._coder is None:
            return None
        if piece.coder is None:  # it was begun before there were other ids
            piece.give_codes()
        assert piece.coder is not None
        return self._coder.add_coder(piece.coder)

    def ids(self, codes: Codes, threads: int) -> Ids:
        """All ids. Puts numbers in order, and changes codes accordingly."""
        if self._coder is not None:
            return self._coder.ids(codes)
        assert self._seen is not None
        numbers = np.flatnonzero(self._seen[: self._reach])
        places = np.zeros(self._reach, np.uint32)
        places[numbers] = np.arange(len(numbers), dtype=np.uint32)

        def recode(begin: int, end: int) -> None:
            kernels.recode(codes[begin:end], places, codes[begin:end])

        in_shares(recode, len(codes), threads)
        return numbers_as_ids(numbers)
