"""Encodes ids: each distinct text or whole number gets a code, in the order of first appearance.

Texts use a hash table with open addressing. The number of its `slots` is a power of two, and at
least twice the number of ids. A slot holds the upper half of an id's hash, and below it the id's
code. Texts lie one after the other in `blob`, and `ends` says where each begins and ends. They have
`PADDING` behind them, as all text here (see `text.py`). In this table a number is a text of eight
bytes, without padding. Numbers that lie close together use another table, `direct`: the entry at
(number - lowest number) is the number's code plus one, or 0 if there is none.
"""

import numpy as np
from numba.types import Tuple, UniTuple, boolean, int64, uint8, uint32, uint64, void

from hogwild.kernels.compile import always_inline, inline, kernel
from hogwild.kernels.primitives import U, prefetch, readonly, scramble, writable
from hogwild.kernels.text import (
    DIGITS,
    MINUS,
    TEXTS,
    WHOLE_TEN,
    ZERO,
    address_of,
    byte_at,
    digit_count,
    digits_of,
    digits_value,
    put_byte,
    put_whole,
    word_at,
)

UNKNOWN = 0xFFFFFFFF
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
NUMBER_WIDTH = len("-9223372036854775808")
MOST_DIGITS = 19
LIMIT = 1 << 63  # of what a minus may stand before; a number without one is less
AHEAD = 16  # ids between asking for a slot and looking at it

LOW_HALF = np.uint64(0xFFFFFFFF)
HIGH_HALF = np.uint64(0xFFFFFFFF00000000)


@always_inline
def text_hash(at, end):
    """A hash of the bytes from one address up to another."""
    word = np.uint64(end - at)
    while at + U(8) <= end:
        word = scramble(word ^ word_at(at))
        at += U(8)
    if at < end:
        word = scramble(word ^ first_bytes(at, end - at))
    return word


@always_inline
def first_bytes(at, count):
    """The first 1 to 7 bytes of a word."""
    return word_at(at) & ((np.uint64(1) << (np.uint64(count) << np.uint64(3))) - np.uint64(1))


@always_inline
def same_bytes(a, b, count):
    while count >= U(8):
        if word_at(a) != word_at(b):
            return False
        a += U(8)
        b += U(8)
        count -= U(8)
    return count == U(0) or first_bytes(a, count) == first_bytes(b, count)


@always_inline
def slot_of_text(at, end, word, slots, blob, ends):
    """The slot of a text with the hash `word`, or the empty one where it belongs."""
    mask = U(slots.size) - U(1)
    place = U(word) & mask
    while slots[place] != EMPTY:
        if (slots[place] ^ word) & HIGH_HALF == np.uint64(0):
            code = U(slots[place] & LOW_HALF)
            begin = ends[code]
            size = ends[code + U(1)] - begin
            if size == end - at and same_bytes(blob + begin, at, size):
                break
        place = (place + U(1)) & mask
    return place


# slots, blob, ends
TABLE = Tuple((writable(uint64), writable(uint8), writable(uint64)))
READ_TABLE = Tuple((readonly(uint64), readonly(uint8), readonly(uint64)))


@kernel(void(TEXTS, writable(uint64)), fast=False)
def hash_texts(texts, hashes):
    """The hashes of texts."""
    text, begins, ends = texts
    start = address_of(text)
    for i in range(U(0), U(begins.size)):
        hashes[i] = text_hash(start + begins[i], start + ends[i])


@kernel(void(readonly(uint64), writable(uint64)), fast=False)
def fill_slots(hashes, slots):
    """Gives a slot to every code from 0 on, by the hashes of ids that are known to differ."""
    mask = U(slots.size) - U(1)
    size = U(hashes.size)
    for code in range(U(0), size):
        prefetch(slots, U(hashes[min(code + U(AHEAD), size - U(1))]) & mask)
        place = U(hashes[code]) & mask
        while slots[place] != EMPTY:
            place = (place + U(1)) & mask
        slots[place] = (hashes[code] & HIGH_HALF) | np.uint64(code)


@kernel(
    UniTuple(uint64, 2)(TEXTS, readonly(uint64), uint64, TABLE, uint64, uint64, writable(uint32)),
    fast=False,
)
def add_texts(texts, hashes, first, table, known, most, codes):
    """The codes of texts from number `first` on; new ones are appended to the table's blob.

    Stops before there would be more than `most`. Returns where it stopped and how many are known.
    """
    text, begins, ends = texts
    slots, blob, blob_ends = table
    start = address_of(text)
    store = address_of(blob)
    mask = U(slots.size) - U(1)
    size = U(begins.size)
    count = U(known)
    for i in range(U(first), size):
        prefetch(slots, U(hashes[min(i + U(AHEAD), size - U(1))]) & mask)
        at = start + begins[i]
        end = start + ends[i]
        place = slot_of_text(at, end, hashes[i], slots, store, blob_ends)
        if slots[place] == EMPTY:
            if count >= U(most):
                return i, count
            to = blob_ends[count]
            for k in range(U(0), U(end - at)):
                blob[to + k] = byte_at(at + k)
            slots[place] = (hashes[i] & HIGH_HALF) | np.uint64(count)
            count += U(1)
            blob_ends[count] = to + U(end - at)
        codes[i] = np.uint32(slots[place] & LOW_HALF)
    return size, count


@kernel(void(TEXTS, readonly(uint64), READ_TABLE, writable(uint32)), fast=False)
def find_texts(texts, hashes, table, codes):
    """The codes of texts, `UNKNOWN` for those that are not in the table (all ones, as `EMPTY`)."""
    text, begins, ends = texts
    slots, blob, blob_ends = table
    start = address_of(text)
    store = address_of(blob)
    mask = U(slots.size) - U(1)
    size = U(begins.size)
    for i in range(U(0), size):
        prefetch(slots, U(hashes[min(i + U(AHEAD), size - U(1))]) & mask)
        at = start + begins[i]
        place = slot_of_text(at, start + ends[i], hashes[i], slots, store, blob_ends)
        codes[i] = np.uint32(slots[place] & LOW_HALF)


@kernel(uint64(readonly(int64), writable(uint32), uint64, writable(uint32)), fast=False)
def add_direct(given, direct, known, codes):
    """The codes of numbers that `direct` has places for; returns how many are known now."""
    count = U(known)
    for i in range(U(0), U(given.size)):
        place = U(given[i])
        if direct[place] == np.uint32(0):
            count += U(1)
            direct[place] = np.uint32(count)
        codes[i] = direct[place] - np.uint32(1)
    return count


@kernel(void(readonly(int64), int64, writable(uint32)), fast=False)
def mark_numbers(given, low, direct):
    """Marks the numbers that occur; all of them must be in the table's range."""
    for i in range(U(0), U(given.size)):
        direct[U(given[i] - low)] = np.uint32(1)


@kernel(void(readonly(int64), int64, readonly(uint32), writable(uint32)), fast=False)
def find_direct(given, low, direct, codes):
    """The codes of whole numbers, `UNKNOWN` for those that are not in the table."""
    for i in range(U(0), U(given.size)):
        place = np.uint64(given[i]) - np.uint64(low)
        code = np.uint32(0)
        if place < np.uint64(direct.size):
            code = direct[U(place)]
        codes[i] = code - np.uint32(1)  # 0 becomes UNKNOWN


@inline
def long_number(at, end):
    """As `whole_number`, of any length and with a minus."""
    negative = byte_at(at) == MINUS
    at += U(negative)
    digits = end - at
    if digits - U(1) >= U(MOST_DIGITS) or (byte_at(at) == ZERO and (negative or digits > U(1))):
        return np.int64(0), False
    w = np.uint64(0)
    while at < end:
        word = word_at(at) ^ DIGITS
        count = min(end - at, U(8))
        if digit_count(word) < count:
            return np.int64(0), False
        w = w * WHOLE_TEN[count] + digits_value(word, count)
        at += count
    if w > np.uint64(LIMIT) or (w == np.uint64(LIMIT) and not negative):
        return np.int64(0), False
    return np.int64(np.uint64(0) - w) if negative else np.int64(w), True


@always_inline
def whole_number(at, end):
    """The number that a text is, and whether it is one of 64 bits, written in the usual way."""
    size = end - at
    if size <= U(8):
        word = word_at(at) ^ DIGITS
        usual = size > U(0) and (byte_at(at) != ZERO or size == U(1))
        if usual and digit_count(word) >= size:
            return np.int64(digits_value(word, size)), True
    return long_number(at, end)


@kernel(void(TEXTS, writable(int64), writable(boolean)), fast=False)
def read_numbers(texts, numbers, whole):
    """The numbers that texts are, and which of them are such as `str` would write again."""
    text, begins, ends = texts
    start = address_of(text)
    for i in range(U(0), U(begins.size)):
        numbers[i], whole[i] = whole_number(start + begins[i], start + ends[i])


@kernel(void(readonly(int64), writable(uint8), writable(uint64)), fast=False)
def write_numbers(numbers, blob, ends):
    """Writes numbers one after the other: `NUMBER_WIDTH` bytes for each are always enough."""
    start = address_of(blob)
    at = start
    ends[0] = U(0)
    for i in range(U(0), U(numbers.size)):
        size = np.uint64(numbers[i])
        if numbers[i] < 0:
            put_byte(at, MINUS)
            at += U(1)
            size = np.uint64(0) - size
        at = put_whole(at, size, digits_of(size))
        ends[i + U(1)] = at - start


@kernel(UniTuple(uint64, 2)(TEXTS, writable(uint8), writable(uint32)), fast=False)
def small_numbers(texts, seen, numbers):
    """The numbers that texts are, and marks of those that were seen.

    Stops at a text that is no number that `seen` has a place for. Returns where, and one more than
    the largest number. Several threads may mark at the same time: all of them write 1.
    """
    text, begins, ends = texts
    start = address_of(text)
    size = U(begins.size)
    reach = U(0)
    for i in range(U(0), size):
        number, whole = whole_number(start + begins[i], start + ends[i])
        place = U(number)
        if not whole or place >= U(seen.size):
            return i, reach
        reach = max(reach, place + U(1))
        if seen[place] == np.uint8(0):  # a write takes the line from all other cores
            seen[place] = np.uint8(1)
        numbers[i] = np.uint32(place)
    return size, reach


@kernel(void(readonly(uint32), readonly(uint32), writable(uint32)), fast=False)
def recode(codes, table, new):
    """Other codes for codes; both may be the same array."""
    for i in range(U(0), U(codes.size)):
        new[i] = table[codes[i]]
