"""The ids of users or of items, numbers or text, and the codes 0, 1, 2 ... that stand for them.

The number 5 and the text "5" are the same id: a column with one id of another kind in it is
text as a whole, and must still be found by the numbers of another file.
"""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.given_ids import as_ids, number_blocks, refuse_empty, text_blocks
from hogwild.data.texts import Numbers, Texts, first_invalid, written
from hogwild.errors import DataError
from hogwild.kernels import ids as kernels
from hogwild.kernels.ids import EMPTY
from hogwild.kernels.text import PADDING

UNKNOWN = kernels.UNKNOWN  # the code of an id that is not among those that are known

BLOCK = 1 << 16  # ids that are looked at together
DIRECT = 1 << 22  # numbers below have a table of their own while ids come in
FEW = 1 << 10  # ids there is room for at first

Codes = npt.NDArray[np.uint32]


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
        coder = Coder(numeric=False)
        for begin, block in text_blocks(given, name):
            refuse_empty(block, begin, name)
            coder.add(block, codes[begin : begin + len(block)])
        return coder.ids(codes), codes

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, code: Any) -> Any:
        if not isinstance(code, int | np.integer):  # a slice, or an array of codes or of flags
            return self.take(np.arange(self._count)[code])
        if not 0 <= code < self._count:
            raise IndexError(f"there is no code {code}; codes go from 0 to {self._count - 1}")
        if self.are_text:
            return self.texts.part(int(code), int(code) + 1).tolist()[0]
        return int(code) if self._numbers is None else int(self._numbers[code])

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
        if isinstance(ids, Ids):
            return self._codes_of_ids(ids)
        given = as_ids([ids] if isinstance(ids, int | str | np.integer) else ids, "the ids")
        codes = np.empty(len(given), np.uint32)
        if isinstance(given, np.ndarray):
            for begin, block in number_blocks(given):
                codes[begin : begin + len(block)] = self._find_numbers(block)
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
            return _numbers_as_ids(np.concatenate([self.numbers, other.numbers[new]]))
        mine, (blob, begins, ends) = self.texts, other.texts
        return _joined_texts(mine, Texts(blob, begins[new], ends[new]))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What a file needs to hold; `from_arrays` makes ids of it again."""
        if self._blob is not None and self._ends is not None:
            return {"text": self._blob[: int(self._ends[-1])], "ends": self._ends}
        if self._numbers is not None:
            return {"numbers": self._numbers}
        return {"count": np.array([self._count])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]], name: str = "the ids") -> "Ids":
        """The ids that `arrays` told of, checked."""
        if arrays.keys() == {"count"} and arrays["count"].shape == (1,) and arrays["count"][0] >= 0:
            return cls.numbered(int(arrays["count"][0]))
        if arrays.keys() == {"numbers"} and arrays["numbers"].dtype == np.int64:
            return cls(len(arrays["numbers"]), np.ascontiguousarray(arrays["numbers"]))
        if arrays.keys() == {"text", "ends"}:
            return _checked_texts(arrays["text"], arrays["ends"], name)
        raise DataError(f"{name}: damaged: the arrays {', '.join(arrays) or '(none)'} are no ids")

    def _codes_of_ids(self, other: "Ids") -> Codes:
        if other is self:
            return np.arange(len(self), dtype=np.uint32)
        codes = np.empty(len(other), np.uint32)
        if other.are_text:
            for begin in range(0, len(other), BLOCK):
                part = other.texts.part(begin, begin + BLOCK)
                codes[begin : begin + len(part)] = self._find_texts(part)
        else:
            for begin, block in number_blocks(other.numbers):
                codes[begin : begin + len(block)] = self._find_numbers(block)
        return codes

    def _find_numbers(self, given: Numbers) -> Codes:
        if self.are_text:
            return self._find_texts(written(given))
        codes = np.empty(len(given), np.uint32)
        if self._numbers is None:
            known = (given >= 0) & (given < self._count)
            return np.where(known, given, UNKNOWN).astype(np.uint32)
        if self._direct is not None:
            kernels.find_direct(given, *self._direct, codes)
        else:
            kernels.find_numbers(given, self._slots, self._numbers, codes)
        return codes

    def _find_texts(self, given: Texts) -> Codes:
        if not self.are_text:
            numbers, whole = given.numbers()
            return np.where(whole, self._find_numbers(numbers), np.uint32(UNKNOWN))
        codes = np.empty(len(given), np.uint32)
        kernels.find_texts(*given, given.hashes(), self._slots, self._blob, self._ends, codes)
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
    def _slots(self) -> npt.NDArray[np.uint64]:
        """The hash table of all ids."""
        slots = _empty_slots(self._count)
        if self.are_text:
            kernels.fill_slots(self.texts.hashes(), slots)
        else:
            kernels.fill_slots(_number_hashes(self.numbers), slots)
        return slots


class Coder:
    """Gives codes to ids as they come: to numbers as long as all are numbers, else to texts."""

    def __init__(self, numeric: bool = True) -> None:
        self.numeric = numeric
        self.count = 0
        self._slots = _empty_slots(FEW)
        self._direct = np.zeros(DIRECT if numeric else 0, np.uint32)
        self._numbers = np.empty(FEW if numeric else 0, np.int64)
        self._blob = np.empty(0 if numeric else FEW, np.uint8)
        self._ends = np.zeros(0 if numeric else FEW + 1, np.uint64)

    def add(self, given: Texts, codes: Codes) -> None:
        """Writes the codes of ids as they stand in a text."""
        if self.numeric:
            numbers, whole = given.numbers()
            if whole.all():
                self.add_numbers(numbers, codes)
                return
            self._become_text()
        hashes = given.hashes()
        sizes = int((given.ends - given.begins).sum())
        self._make_room_for_text(sizes)
        done = 0
        while True:
            most = min(len(self._slots) // 2, len(self._ends) - 1)
            done, self.count = kernels.add_texts(
                *given,
                hashes,
                done,
                self._slots,
                self._blob,
                self._ends,
                self.count,
                most,
                codes,
            )
            if done == len(given):
                return
            self._grow()

    def add_numbers(self, given: Numbers, codes: Codes) -> None:
        """Writes the codes of ids that are numbers; no text must have come yet."""
        done = 0
        while True:
            most = min(len(self._slots) // 2, len(self._numbers))
            done, self.count = kernels.add_numbers(
                given,
                done,
                self._direct,
                self._slots,
                self._numbers,
                self.count,
                most,
                codes,
            )
            if done == len(given):
                return
            self._grow()

    def invalid(self, first: int) -> int | None:
        """The code of the first id from code `first` on that is not UTF-8, if there is one."""
        return (
            None if self.numeric else first_invalid(self._blob, self._ends[: self.count + 1], first)
        )

    def ids(self, codes: Codes) -> Ids:
        """All the ids that came. Puts numbers in order, and changes `codes` accordingly."""
        if self.numeric:
            return _in_order(self._numbers[: self.count], codes)
        self._ends.resize(self.count + 1, refcheck=False)
        self._blob.resize(int(self._ends[-1]) + PADDING, refcheck=False)
        return Ids(self.count, None, self._blob, self._ends)

    def _grow(self) -> None:
        """Room for twice as many ids."""
        most = 2 * self.count
        del self._slots  # before there is another one: it is large
        self._slots = _empty_slots(most)
        if self.numeric:
            self._numbers.resize(most, refcheck=False)
            hashes = _number_hashes(self._numbers[: self.count])
            # What has its place in the direct table must not take a slot, but may: it is never met
        else:
            self._ends.resize(most + 1, refcheck=False)
            blob, ends = self._blob, self._ends[: self.count + 1]
            hashes = Texts(blob, ends[:-1], ends[1:]).hashes()
        kernels.fill_slots(hashes, self._slots)

    def _make_room_for_text(self, size: int) -> None:
        used = int(self._ends[self.count])
        if len(self._blob) < used + size + PADDING:
            self._blob.resize(used + used // 4 + size + PADDING, refcheck=False)

    def _become_text(self) -> None:
        """Turns the numbers so far into texts; their codes stay."""
        texts = written(self._numbers[: self.count])
        self.numeric = False
        self._blob = texts.blob
        self._ends = np.zeros(max(FEW, 2 * self.count) + 1, np.uint64)
        self._ends[1 : self.count + 1] = texts.ends
        self._numbers = np.empty(0, np.int64)
        self._direct = np.empty(0, np.uint32)
        self._slots = _empty_slots(max(FEW, 2 * self.count))
        kernels.fill_slots(texts.hashes(), self._slots)


def _of_numbers(given: npt.NDArray[Any], codes: Codes) -> Ids:
    """The distinct numbers in ascending order; writes the code of each."""
    if not len(given):
        return Ids.numbered(0)
    low, high = int(given.min()), int(given.max())
    if _lie_close(low, high, len(given)):
        direct = np.zeros(high - low + 1, np.uint32)
        for _, block in number_blocks(given):
            kernels.mark_numbers(block, low, direct)
        numbers = np.empty(min(len(direct), len(given)), np.int64)
        count = kernels.number_marked(direct, low, numbers)
        for begin, block in number_blocks(given):
            kernels.find_direct(block, low, direct, codes[begin : begin + len(block)])
        return _numbers_as_ids(numbers[:count].copy())
    coder = Coder()
    for begin, block in number_blocks(given):
        coder.add_numbers(block, codes[begin : begin + len(block)])
    return coder.ids(codes)


def _lie_close(low: int, high: int, count: int) -> bool:
    """Whether so many numbers lie close enough together for a table of all that may be there."""
    return high - low < 2 * count + FEW


def _in_order(numbers: Numbers, codes: Codes) -> Ids:
    """Ids of distinct numbers in ascending order; changes codes that were given to them before."""
    order = np.argsort(numbers)
    new = np.empty(len(numbers), np.uint32)
    new[order] = np.arange(len(numbers), dtype=np.uint32)
    for begin in range(0, len(codes), BLOCK):
        codes[begin : begin + BLOCK] = new[codes[begin : begin + BLOCK]]
    return _numbers_as_ids(numbers[order])


def _numbers_as_ids(numbers: Numbers) -> Ids:
    """Ids of distinct numbers, in their order; those that are 0, 1, 2 ... are not stored."""
    count = len(numbers)
    if count == 0 or (
        numbers[0] == 0 and numbers[-1] == count - 1 and np.all(np.diff(numbers) == 1)
    ):
        return Ids.numbered(count)
    return Ids(count, numbers)


def _joined_texts(first: Texts, second: Texts) -> Ids:
    coder = Coder(numeric=False)
    for texts in (first, second):
        for begin in range(0, len(texts), BLOCK):
            part = texts.part(begin, begin + BLOCK)
            coder.add(part, np.empty(len(part), np.uint32))
    return coder.ids(np.empty(0, np.uint32))


def _checked_texts(text: npt.NDArray[Any], ends: npt.NDArray[Any], name: str) -> Ids:
    """Ids of texts from a file, which may be damaged."""
    if text.dtype != np.uint8 or ends.dtype != np.uint64 or ends.ndim != 1 or len(ends) == 0:
        raise DataError(f"{name}: damaged: the arrays of text are of other types than expected")
    if ends[0] != 0 or ends[-1] != len(text) or np.any(ends[1:] < ends[:-1]):
        raise DataError(f"{name}: damaged: texts must lie one behind the other")
    blob = np.concatenate([text, np.zeros(PADDING, np.uint8)])
    if first_invalid(blob, ends, 0) is not None:
        raise DataError(f"{name}: damaged: a text is not UTF-8")
    return Ids(len(ends) - 1, None, blob, np.ascontiguousarray(ends))


def _number_hashes(numbers: Numbers) -> npt.NDArray[np.uint64]:
    hashes = np.empty(len(numbers), np.uint64)
    kernels.hash_numbers(numbers, hashes)
    return hashes


def _empty_slots(ids: int) -> npt.NDArray[np.uint64]:
    """A hash table for so many ids."""
    return np.full(2 << max(ids - 1, 1).bit_length(), EMPTY, np.uint64)
