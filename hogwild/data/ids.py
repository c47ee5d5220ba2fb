"""The ids of users or of items, numbers or text, and the codes 0, 1, 2 ... that stand for them.

The number 5 and the text "5" are the same id. A column with a single text id is text as a whole,
and its ids must still match the numbers in another file.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.computed import cached_property
from hogwild.data.given_arrays import INTEGERS
from hogwild.data.given_ids import as_ids, number_blocks, text_blocks
from hogwild.data.texts import Numbers, Texts, as_bytes, first_invalid, written
from hogwild.errors import DataError
from hogwild.kernels import ids as kernels
from hogwild.kernels.ids import EMPTY
from hogwild.kernels.text import PADDING

UNKNOWN = kernels.UNKNOWN  # the code of an id that is not among those that are known

BLOCK = 1 << 16  # ids that are looked at together
DIRECT = 1 << 24  # numbers below have a table of their own while ids come in
FEW = 1 << 10  # ids there is room for at first

Codes = npt.NDArray[np.uint32]


class BadIdError(Exception):
    """An id that cannot be used: its number among those given, and why."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at = at


class Ids:
    """Distinct ids of users or of items: all of them whole numbers, or all of them text.

    An id's code is its place among them. `Ids.numbered` and `Ids.of` make them.
    """

    def __init__(
        self,
        count: int,
        numbers: Numbers | None = None,
        blob: npt.NDArray[np.uint8] | None = None,
        ends: npt.NDArray[np.uint64] | None = None,
    ) -> None:
        self._count = count
        self._numbers = numbers
        self._blob = blob
        self._ends = ends

    @classmethod
    def numbered(cls, n: int) -> "Ids":
        """The numbers from 0 to n - 1; nothing is stored for them."""
        return cls(n)

    @classmethod
    def of(cls, array: Any, name: str = "the ids") -> tuple["Ids", Codes]:
        """The distinct ids in an array or list, and the code of each entry.

        Whole numbers are put in ascending order; text is left in order of first appearance.
        """
        given = as_ids(array, name)
        codes = np.empty(len(given), np.uint32)
        if isinstance(given, np.ndarray):
            return _of_numbers(given, codes), codes
        table = _Table()
        for begin, block in text_blocks(given, name):
            empty = block.begins == block.ends
            if empty.any():
                at = begin + int(np.argmax(empty)) + 1
                raise DataError(f"{name}: number {at} is empty; leave out what has no id")
            table.add(block, codes[begin : begin + len(block)])
        return table.ids(), codes

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, code: Any) -> Any:
        if not isinstance(code, int | np.integer):  # a slice, or an array of codes or of flags
            return self.take(np.arange(self._count)[code])
        one = self.take([code])[0]
        return one if self.are_text else int(one)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ids):
            return NotImplemented
        if self is other:
            return True
        mine, theirs = self.arrays(), other.arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[key], theirs[key]) for key in mine
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [repr(self[code]) for code in range(min(3, self._count))]
        return f"<{self._count:,} Ids: {', '.join(shown)}{', ...' if self._count > 3 else ''}>"

    @property
    def are_text(self) -> bool:
        """Whether they are text; else they are whole numbers."""
        return self._blob is not None

    @property
    def nbytes(self) -> int:
        """Bytes of the ids themselves, without what helps to find them."""
        return sum(array.nbytes for array in self.arrays().values())

    @property
    def texts(self) -> Texts:
        """The ids as text; numbers are written down for it."""
        if self._blob is not None and self._ends is not None:
            return Texts(self._blob, self._ends[:-1], self._ends[1:])
        return written(self.numbers)

    @property
    def numbers(self) -> Numbers:
        """The ids that are numbers, in the order of their codes."""
        return np.arange(self._count) if self._numbers is None else self._numbers

    def tolist(self) -> list[int] | list[str]:
        """All ids, in the order of their codes."""
        return self.texts.tolist() if self.are_text else self.numbers.tolist()

    def take(self, codes: Any) -> Numbers | list[str]:
        """The ids with these codes: an array of numbers, or a list of text."""
        chosen = np.asarray(codes, np.int64)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < self._count):
            raise IndexError(f"codes go from 0 to {self._count - 1}")
        if not self.are_text:
            return chosen if self._numbers is None else self._numbers[chosen]
        blob, begins, ends = self.texts
        return Texts(blob, begins[chosen], ends[chosen]).tolist()

    def codes_of(self, ids: Any) -> Codes:
        """The codes of ids, `UNKNOWN` where they are not among these.

        Args:
            ids: an array, a list, other `Ids`, or a single number or text.
        """
        if ids is self:
            return np.arange(len(self), dtype=np.uint32)
        if isinstance(ids, Ids):
            return self._find_texts(ids.texts) if ids.are_text else self._find_numbers(ids.numbers)
        given = as_ids([ids] if isinstance(ids, int | str | np.integer) else ids, "the ids")
        codes = np.empty(len(given), np.uint32)
        if isinstance(given, np.ndarray):
            for begin, numbers in number_blocks(given):
                codes[begin : begin + len(numbers)] = self._find_numbers(numbers)
        else:
            for begin, texts in text_blocks(given, "the ids"):
                codes[begin : begin + len(texts)] = self._find_texts(texts)
        return codes

    def joined(self, other: "Ids") -> "Ids":
        """These ids in their order, and behind them those of `other` that are new."""
        if other is self:
            return self
        new = np.flatnonzero(self.codes_of(other) == UNKNOWN)
        if len(new) == 0:
            return self
        if not (self.are_text or other.are_text):
            return numbers_as_ids(np.concatenate([self.numbers, other.numbers[new]]))
        mine, (blob, begins, ends) = self.texts, other.texts
        return _Table(mine, Texts(blob, begins[new], ends[new])).ids()

    def arrays(self, prefix: str = "") -> dict[str, npt.NDArray[Any]]:
        """The arrays for a file, under names with a prefix; `from_arrays` reads them again."""
        if self._blob is not None and self._ends is not None:
            return {prefix + "text": self._blob[: int(self._ends[-1])], prefix + "ends": self._ends}
        if self._numbers is not None:
            return {prefix + "numbers": self._numbers}
        return {prefix + "count": np.array([self._count])}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, npt.NDArray[Any]], name: str = "the ids", prefix: str = ""
    ) -> "Ids":
        """The ids in the arrays whose names begin with a prefix, checked."""
        held = {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)}
        match held:
            case {"count": count} if len(held) == 1 and _is_a_count(count):
                return cls.numbered(int(count[0]))
            case {"numbers": numbers} if len(held) == 1 and numbers.dtype == np.int64:
                return cls(len(numbers), np.ascontiguousarray(numbers))
            case {"text": text, "ends": ends} if len(held) == 2:
                return _checked_texts(text, ends, name)
        raise DataError(f"{name}: damaged: the arrays {', '.join(held) or '(none)'} are no ids")

    def _find_numbers(self, given: Numbers) -> Codes:
        if self.are_text:
            return self._find_texts(written(given))
        if self._numbers is None:
            known = (given >= 0) & (given < self._count)
            return np.where(known, given, UNKNOWN).astype(np.uint32)
        if self._direct is None:
            return self._looked_up(as_bytes(given))
        codes = np.empty(len(given), np.uint32)
        kernels.find_direct(given, *self._direct, codes)
        return codes

    def _find_texts(self, given: Texts) -> Codes:
        if self.are_text:
            return self._looked_up(given)
        numbers, whole = given.numbers()
        return np.where(whole, self._find_numbers(numbers), np.uint32(UNKNOWN))

    def _looked_up(self, given: Texts) -> Codes:
        codes = np.empty(len(given), np.uint32)
        kernels.find_texts(tuple(given), given.hashes(), self._table, codes)
        return codes

    @cached_property
    def _direct(self) -> tuple[int, Codes] | None:
        """The least number and a table from there on, where the numbers lie close together."""
        numbers = self.numbers
        if not len(numbers):
            return None
        low, high = int(numbers.min()), int(numbers.max())
        if not _lie_close(low, high, len(numbers)):
            return None
        table = np.zeros(high - low + 1, np.uint32)
        table[numbers - low] = np.arange(1, len(numbers) + 1, dtype=np.uint32)
        return low, table

    @cached_property
    def _table(self) -> tuple[npt.NDArray[Any], ...]:
        """The hash table of all ids, the ids in it, and where each begins and ends."""
        known = self.texts if self.are_text else as_bytes(self.numbers)
        slots = _empty_slots(self._count)
        kernels.fill_slots(known.hashes(), slots)
        ends = np.append(known.begins, known.ends[-1:]) if self._ends is None else self._ends
        return slots, known.blob, ends


class _Table:
    """Distinct texts, with codes in the order in which they came."""

    def __init__(self, *parts: Texts) -> None:
        self.count = 0
        self._slots = _empty_slots(FEW)
        self._blob = np.empty(FEW, np.uint8)
        self._ends = np.zeros(FEW + 1, np.uint64)
        for texts in parts:
            self.add(texts, np.empty(len(texts), np.uint32))

    @property
    def texts(self) -> Texts:
        """All the texts that came."""
        return Texts(self._blob, self._ends[: self.count], self._ends[1 : self.count + 1])

    def add(self, given: Texts, codes: Codes) -> None:
        """Writes the codes of texts."""
        hashes = given.hashes()
        used = int(self._ends[self.count])
        size = int(given.ends[-1] - given.begins[0]) if len(given) else 0
        if len(self._blob) < used + size + PADDING:
            self._blob.resize(used + used // 4 + size + PADDING, refcheck=False)
        done = 0
        while True:
            most = min(len(self._slots) // 2, len(self._ends) - 1)
            table = self._slots, self._blob, self._ends
            done, self.count = kernels.add_texts(
                tuple(given), hashes, done, table, self.count, most, codes
            )
            if done == len(given):
                return
            self._grow()

    def ids(self) -> Ids:
        """All the texts that came, as ids; nothing can be added any more."""
        self._ends.resize(self.count + 1, refcheck=False)
        self._blob.resize(int(self._ends[-1]) + PADDING, refcheck=False)
        return Ids(self.count, None, self._blob, self._ends)

    def _grow(self) -> None:
        """Room for twice as many texts."""
        most = 2 * self.count
        del self._slots  # before there is another one: it is large
        self._slots = _empty_slots(most)
        self._ends.resize(most + 1, refcheck=False)
        kernels.fill_slots(self.texts.hashes(), self._slots)


def coded(texts: Texts) -> tuple[list[str], Codes]:
    """The distinct texts in order of first appearance, and the code of each text."""
    table, codes = _Table(), np.empty(len(texts), np.uint32)
    table.add(texts, codes)
    return table.texts.tolist(), codes


class Coder:
    """Gives codes to ids as they come: to numbers as long as all are numbers, else to texts.

    As long as all are numbers from 0 on and below a limit, they have a direct table, and then a
    hash table: at first of the numbers' bytes, and once there is text, of texts.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.numeric = True
        self._direct = np.zeros(DIRECT if limit is None else limit, np.uint32)
        self._direct_count = self._reach = 0
        self._table: _Table | None = None

    def add(self, given: Texts, codes: Codes) -> None:
        """Writes the codes of ids as they stand in a text; refuses what is not UTF-8."""
        if self.numeric:
            numbers, whole = given.numbers()
            if whole.all():
                self.add_numbers(numbers, codes)
                return
            self._table = _Table(written(self._numbers()))
            self.numeric = False
        assert self._table
        before = self._table.count
        self._table.add(given, codes)
        invalid = first_invalid(self._table.texts, before)
        if invalid is not None:
            at = int(np.argmax(codes == invalid))
            raise BadIdError(at, "an id is not UTF-8; convert the file to it")

    def add_numbers(self, given: Numbers, codes: Codes) -> None:
        """Writes the codes of ids that are numbers; no text must have come yet."""
        if self._table is None:
            reach = int(given.view(np.uint64).max(initial=0)) + 1
            if reach <= len(self._direct):
                self._reach = max(self._reach, reach)
                known = kernels.add_direct(given, self._direct, self._direct_count, codes)
                self._direct_count = int(known)
                return
            self._table = _Table(as_bytes(self._numbers()))
        self._table.add(as_bytes(given), codes)

    def add_coder(self, other: "Coder") -> Codes:
        """Adds the ids of another coder in its order; the new code for each of its codes."""
        given = other._numbers() if other._table is None or other.numeric else other._table.texts
        codes = np.empty(len(given), np.uint32)
        if isinstance(given, Texts):
            self.add(given, codes)
        elif self.numeric:
            self.add_numbers(given, codes)
        else:
            self.add(written(given), codes)
        return codes

    def ids(self, codes: Codes) -> Ids:
        """All the ids that came. Puts numbers in order, and changes `codes` accordingly."""
        if self.numeric or self._table is None:
            return _in_order(self._numbers(), codes)
        return self._table.ids()

    def _numbers(self) -> Numbers:
        """The numbers so far, while all ids are numbers."""
        if self._table is not None:
            return self._table.texts.blob[: 8 * self._table.count].view(np.int64)
        places = np.flatnonzero(self._direct[: self._reach])
        numbers = np.empty(len(places), np.int64)
        numbers[self._direct[places] - 1] = places
        return numbers


def _of_numbers(given: npt.NDArray[Any], codes: Codes) -> Ids:
    """The distinct numbers in ascending order; writes the code of each."""
    if not len(given):
        return Ids.numbered(0)
    low, high = int(given.min()), int(given.max())
    if not _lie_close(low, high, len(given)):
        coder = Coder()
        for begin, block in number_blocks(given):
            coder.add_numbers(block, codes[begin : begin + len(block)])
        return coder.ids(codes)
    direct = np.zeros(high - low + 1, np.uint32)
    for _, block in number_blocks(given):
        kernels.mark_numbers(block, low, direct)
    used = np.flatnonzero(direct)
    direct[used] = np.arange(1, len(used) + 1)
    for begin, block in number_blocks(given):
        kernels.find_direct(block, low, direct, codes[begin : begin + len(block)])
    return numbers_as_ids(used + low)


def _lie_close(low: int, high: int, count: int) -> bool:
    """Whether this many numbers are close enough together for a direct table."""
    return high - low < 2 * count + FEW


def _in_order(numbers: Numbers, codes: Codes) -> Ids:
    """Ids of distinct numbers in ascending order; updates the codes given before."""
    order = np.argsort(numbers)
    new = np.empty(len(numbers), np.uint32)
    new[order] = np.arange(len(numbers), dtype=np.uint32)
    kernels.recode(codes, new, codes)
    return numbers_as_ids(numbers[order])


def numbers_as_ids(numbers: Numbers) -> Ids:
    """Ids of distinct numbers, in their order; those that are 0, 1, 2 ... are not stored."""
    count = len(numbers)
    if count == 0 or (numbers[0] == 0 and np.array_equal(numbers, np.arange(count))):
        return Ids.numbered(count)
    return Ids(count, numbers)


def _is_a_count(array: npt.NDArray[Any]) -> bool:
    """Whether an array of a file holds a number of ids, and not more than there are codes."""
    return array.dtype.kind in INTEGERS and array.shape == (1,) and 0 <= int(array[0]) <= UNKNOWN


def _checked_texts(text: npt.NDArray[Any], ends: npt.NDArray[Any], name: str) -> Ids:
    """Ids of texts from a file, which may be damaged."""
    if text.dtype != np.uint8 or ends.dtype != np.uint64 or ends.ndim != 1 or len(ends) == 0:
        raise DataError(f"{name}: damaged: the arrays of text are of other types than expected")
    if ends[0] != 0 or ends[-1] != len(text) or np.any(ends[1:] < ends[:-1]):
        raise DataError(f"{name}: damaged: texts must lie one behind the other")
    blob = np.concatenate([text, np.zeros(PADDING, np.uint8)])
    if first_invalid(Texts(blob, ends[:-1], ends[1:]), 0) is not None:
        raise DataError(f"{name}: damaged: a text is not UTF-8")
    return Ids(len(ends) - 1, None, blob, np.ascontiguousarray(ends))


def _empty_slots(ids: int) -> npt.NDArray[np.uint64]:
    """A hash table for so many ids."""
    return np.full(2 << max(ids - 1, 1).bit_length(), EMPTY, np.uint64)
