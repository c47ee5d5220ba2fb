"""Many texts in one array, as UTF-8: no Python object for each of them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels import ids as kernels
from hogwild.kernels.ids import NUMBER_WIDTH
from hogwild.kernels.text import PADDING

Numbers = npt.NDArray[np.int64]


class Texts(NamedTuple):
    """Texts as UTF-8 in one array, with `PADDING` bytes behind, and where each begins and ends."""

    blob: npt.NDArray[np.uint8]
    begins: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.begins)

    def part(self, begin: int, end: int) -> "Texts":
        """Some of the texts."""
        return Texts(self.blob, self.begins[begin:end], self.ends[begin:end])

    def hashes(self) -> npt.NDArray[np.uint64]:
        """A hash of each."""
        hashes = np.empty(len(self), np.uint64)
        kernels.hash_texts(tuple(self), hashes)
        return hashes

    def numbers(self) -> tuple[Numbers, npt.NDArray[np.bool_]]:
        """The numbers that texts are, and which of them are numbers written as `str` does."""
        numbers, whole = np.empty(len(self), np.int64), np.empty(len(self), np.bool_)
        kernels.read_numbers(tuple(self), numbers, whole)
        return numbers, whole

    def shown(self, number: int) -> str:
        """One of the texts for a message: what is not UTF-8 is replaced."""
        begin, end = int(self.begins[number]), int(self.ends[number])
        return str(self.blob.data[begin:end], "utf-8", "replace")

    def tolist(self) -> list[str]:
        """As Python's text."""
        # Python cuts its own bytes twice as quickly, but that is a copy of all
        few = len(self) < len(self.blob) // 1000
        data = self.blob.data if few else self.blob.tobytes()
        places = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        return [str(data[begin:end], "utf-8") for begin, end in places]


def written(numbers: Numbers) -> Texts:
    """Numbers as texts."""
    blob = np.empty(NUMBER_WIDTH * len(numbers) + PADDING, np.uint8)
    ends = np.zeros(len(numbers) + 1, np.uint64)
    kernels.write_numbers(np.ascontiguousarray(numbers), blob, ends)
    blob.resize(int(ends[-1]) + PADDING, refcheck=False)
    return Texts(blob, ends[:-1], ends[1:])


def as_bytes(numbers: Numbers) -> Texts:
    """Numbers as texts of their eight bytes, without padding: not to be read, but to be found."""
    ends = 8 * np.arange(len(numbers) + 1, dtype=np.uint64)
    return Texts(np.ascontiguousarray(numbers).view(np.uint8), ends[:-1], ends[1:])


def first_invalid(texts: Texts, first: int) -> int | None:
    """The first text from number `first` on that is not UTF-8, if there is one.

    The texts lie one behind the other.
    """
    if first == len(texts):
        return None
    new = texts.part(first, len(texts))
    if np.bitwise_or.reduce(new.blob[new.begins[0] : new.ends[-1]]) < 0x80:
        return None
    for code, (begin, end) in enumerate(zip(new.begins.tolist(), new.ends.tolist(), strict=True)):
        try:
            str(new.blob.data[begin:end], "utf-8")
        except UnicodeDecodeError:
            return first + code
    return None
