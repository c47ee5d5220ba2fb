"""Hash tables in which all hashes are the same: only the ids themselves tell them apart."""

import numpy as np
import pytest

from hogwild.data.ids import UNKNOWN
from hogwild.data.texts import as_bytes
from hogwild.kernels import ids as kernels
from hogwild.kernels.ids import EMPTY

WORDS = ["a", "ab", "b", "abcdefgh", "abcdefgi", "abcdefghi", "abcdefghj", "xbcdefgh", "abcdefg"]
WORDS += [word + "0123456" for word in WORDS]


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
        texts_of(known * 2), hashes, 0, (slots, blob, ends), 0, 32, codes
    )
    assert (done, count) == (2 * len(known), len(known))
    assert codes.tolist() == list(range(len(known))) * 2
    found = np.empty(len(WORDS), np.uint32)
    hashes = np.full(len(WORDS), hashed, np.uint64)
    kernels.find_texts(texts_of(known + unknown), hashes, (slots, blob, ends), found)
    assert found.tolist() == [*range(len(known)), *[UNKNOWN] * len(unknown)]


def test_numbers_are_texts_of_eight_bytes() -> None:
    numbers = np.array([0, 1, -1, 2**63 - 1, -(2**63), 1 << 40, 7 << 56])
    slots, blob, ends = np.full(64, EMPTY), np.zeros(1000, np.uint8), np.zeros(33, np.uint64)
    codes, hashes = np.empty(14, np.uint32), np.zeros(14, np.uint64)
    given = as_bytes(np.concatenate([numbers, numbers]))
    kernels.add_texts(tuple(given), hashes, 0, (slots, blob, ends), 0, 32, codes)
    assert codes.tolist() == [*range(7)] * 2
    assert blob[:56].view(np.int64).tolist() == numbers.tolist()


def test_numbers_with_a_place_of_their_own() -> None:
    direct, codes = np.zeros(6, np.uint32), np.empty(5, np.uint32)
    assert kernels.add_direct(np.array([5, 0, 5, 3, 0]), direct, 0, codes) == 3
    assert codes.tolist() == [0, 1, 0, 2, 1]
    assert kernels.add_direct(np.array([4, 3, 5, 0, 4]), direct, 3, codes) == 4
    assert codes.tolist() == [3, 2, 0, 1, 3]
    kernels.find_direct(np.array([8, 7, 11, 13, 16]), 8, direct, codes)
    assert codes.tolist() == [1, UNKNOWN, 2, 0, UNKNOWN]


def test_tables_of_ids_that_are_known() -> None:
    hashes = np.array([5, 5 + 64, 5, 62, 63, 63, 6], np.uint64)
    slots = np.full(64, EMPTY)
    kernels.fill_slots(hashes, slots)
    places = {int(slot): place for place, slot in enumerate(slots) if slot != EMPTY}
    assert places == {0: 5, 1: 6, 2: 7, 3: 62, 4: 63, 5: 0, 6: 8}
