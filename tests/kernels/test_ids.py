"""Hash tables in which all hashes are the same: only the ids themselves tell them apart."""

import numpy as np
import pytest

from hogwild.data.ids import UNKNOWN
from hogwild.kernels import ids as kernels
from hogwild.kernels.ids import EMPTY
from hogwild.kernels.primitives import scramble

WORDS = ["a", "ab", "b", "abcdefgh", "abcdefgi", "abcdefghi", "abcdefghj", "xbcdefgh", "abcdefg"]
WORDS += [word + "0123456" for word in WORDS]
MASK = 2**64 - 1


def texts_of(words: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ends = np.cumsum([0, *map(len, words)], dtype=np.uint64)
    return np.frombuffer("".join(words).encode() + bytes(16), np.uint8), ends[:-1], ends[1:]


@pytest.mark.parametrize("hashed", [0, 2**64 - 1, 2**32 - 1])
def test_texts_with_the_same_hash(hashed: int) -> None:
    known, unknown = WORDS[::2], WORDS[1::2]
    slots = np.full(64, EMPTY)
    blob, ends = np.zeros(1000, np.uint8), np.zeros(33, np.uint64)
    codes = np.empty(2 * len(known), np.uint32)
    hashes = np.full(2 * len(known), hashed, np.uint64)
    done, count = kernels.add_texts(
        *texts_of(known * 2), hashes, 0, slots, blob, ends, 0, 32, codes
    )
    assert (done, count) == (2 * len(known), len(known))
    assert codes.tolist() == list(range(len(known))) * 2
    found = np.empty(len(WORDS), np.uint32)
    hashes = np.full(len(WORDS), hashed, np.uint64)
    kernels.find_texts(*texts_of(known + unknown), hashes, slots, blob, ends, found)
    assert found.tolist() == [*range(len(known)), *[UNKNOWN] * len(unknown)]


def unscramble(word: int) -> int:
    """The number whose hash this is: `scramble` step by step backwards."""
    word = unshift(word, 31)
    word = unshift(word * pow(0x94D049BB133111EB, -1, 2**64) & MASK, 27)
    return unshift(word * pow(0xBF58476D1CE4E5B9, -1, 2**64) & MASK, 30)


def unshift(word: int, shift: int) -> int:
    """The x of which x ^ (x >> shift) is this word."""
    result = word
    for _ in range(64 // shift):
        result = word ^ (result >> shift)
    return result


def test_numbers_with_hashes_that_look_the_same() -> None:
    # the same upper half, and the same lowest bits, which choose the slot
    given = np.array([unscramble((7 << 32) | (k << 12) | 5) for k in range(20)], np.uint64)
    assert np.all(scramble(given) & np.uint64(0xFFF) == 5)
    numbers = np.concatenate([given[:10], given[:10]]).view(np.int64)
    slots, stored = np.full(64, EMPTY), np.empty(32, np.int64)
    codes, found = np.empty(20, np.uint32), np.empty(20, np.uint32)
    direct = np.zeros(0, np.uint32)
    kernels.add_numbers(numbers, 0, direct, slots, stored, 0, 32, codes)
    assert codes.tolist() == [*range(10)] * 2
    kernels.find_numbers(given.view(np.int64), slots, stored, found)
    assert found.tolist() == [*range(10), *[UNKNOWN] * 10]


def test_tables_of_ids_that_are_known() -> None:
    hashes = np.array([5, 5 + 64, 5, 62, 63, 63, 6], np.uint64)
    slots = np.full(64, EMPTY)
    kernels.fill_slots(hashes, slots)
    places = {int(slot): place for place, slot in enumerate(slots) if slot != EMPTY}
    assert places == {0: 5, 1: 6, 2: 7, 3: 62, 4: 63, 5: 0, 6: 8}
