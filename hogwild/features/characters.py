"""Maps characters before words are hashed: to lowercase, or to 0 where they separate words."""

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

from hogwild.kernels.hashing import Tables
from hogwild.kernels.views import view

LOGS = 256  # counts whose logarithm is looked up
CHARACTERS = 1 << 16  # of which the tables know; what is above is a word's, as it is
OF_WORDS = "LNM"  # Unicode's categories of characters in words: letters, digits, marks


@cache
def characters(lowercase: bool) -> npt.NDArray[np.uint16]:
    """For each character its lowercase letter, or itself; 0 where it separates words.

    Words have letters, digits, marks and `_`. Lowercase is used only if it takes the same number of
    bytes in UTF-8.
    """
    table = np.zeros(CHARACTERS, np.uint16)
    for code in range(1, CHARACTERS):
        character = chr(code)
        if unicodedata.category(character)[0] not in OF_WORDS and character != "_":
            continue
        small = character.lower() if lowercase else character
        same_size = len(small) == 1 and _bytes_of(ord(small)) == _bytes_of(code)
        table[code] = ord(small) if same_size else code
    table.flags.writeable = False
    return table


def _bytes_of(code: int) -> int:
    return 1 + (code >= 0x80) + (code >= 0x800)


def tables_of(lowercase: bool, stop_hashes: npt.NDArray[np.uint32]) -> Tables:
    """The tables of the kernels."""
    known = characters(lowercase)
    logs = np.zeros(LOGS, np.float32)
    logs[1:] = 1 + np.log(np.arange(1, LOGS))
    return view(Tables, known, logs, _slots(stop_hashes))


def _slots(hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    """A hash table with open addressing, of hashes plus 1."""
    if not len(hashes):
        return np.empty(0, np.uint64)
    slots = np.zeros(4 << len(hashes).bit_length(), np.uint64)
    for one in hashes.tolist():
        place = one % len(slots)
        while slots[place]:
            place = (place + 1) % len(slots)
        slots[place] = one + 1
    return slots
