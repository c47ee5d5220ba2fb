"""Parsing of delimited text: the places of ids, and the values. Also writing of such text.

As in `text.py`, all text ends with a newline and has `PADDING` behind it, and `at` is an address.
"""

import numpy as np
from numba.types import Tuple, UniTuple, float32, uint8, uint32, uint64

from hogwild.kernels.compile import always_inline, kernel
from hogwild.kernels.primitives import U, readonly, trailing_zeros, writable
from hogwild.kernels.text import (
    FLOAT32_LIMIT,
    NEWLINE,
    RETURN,
    SPACE,
    TAB,
    TEXT,
    TEXTS,
    address_of,
    byte_at,
    number,
    put_byte,
    put_text,
    put_value,
    word_at,
)

QUOTE = ord('"')
ONES = np.uint64(0x0101010101010101)
TOPS = np.uint64(0x8080808080808080)
NEWLINES = np.uint64(NEWLINE) * ONES
QUOTES = np.uint64(QUOTE) * ONES
VALUE_WIDTH = len("-1.17549435e-38")

# What separates fields: one byte, the same byte twice, blanks
SINGLE, DOUBLE, BLANKS = 0, 1, 2


@always_inline
def zero_bytes(word):
    """The top bit of each byte that is zero; above the first of them there may be wrong ones."""
    return (word - ONES) & ~word & TOPS


@always_inline
def next_of(at, a, b, c):
    """The next byte that is one of three, each given as a word full of it."""
    found = np.uint64(0)
    while True:
        word = word_at(at)
        found = zero_bytes(word ^ a) | zero_bytes(word ^ b) | zero_bytes(word ^ c)
        if found != np.uint64(0):
            return at + (trailing_zeros(found) >> np.uint64(3))
        at += U(8)


@always_inline
def after_spaces(at, way):
    while byte_at(at) == SPACE or (way == BLANKS and byte_at(at) == TAB):
        at += U(1)
    return at


@always_inline
def ends_line(at):
    return byte_at(at) == NEWLINE or (byte_at(at) == RETURN and byte_at(at + U(1)) == NEWLINE)


@always_inline
def quoted_field(begin, separators):
    """Where the text that follows a quote ends, what is behind it, and if it has no quotes in it.

    What is behind is 0 if the quote is not closed on the line, or not at the end of the field.
    """
    end = next_of(begin, QUOTES, QUOTES, NEWLINES)
    simple = True
    while byte_at(end) == QUOTE and byte_at(end + U(1)) == QUOTE:
        end = next_of(end + U(2), QUOTES, QUOTES, NEWLINES)
        simple = False
    stop = after_spaces(end + U(1), SINGLE)
    if byte_at(end) == NEWLINE:
        stop = U(0)
    elif ends_line(stop):
        stop += U(byte_at(stop) == RETURN)
    elif np.uint64(byte_at(stop)) != separators & np.uint64(0xFF):
        stop = U(0)
    return end, stop, simple


@always_inline
def plain_field(begin, separators, others, way):
    """Where the text of a field ends, without blanks behind it, and where the field does."""
    stop = next_of(begin, separators, others, NEWLINES)
    if way == DOUBLE:
        while byte_at(stop) != NEWLINE and byte_at(stop) != byte_at(stop + U(1)):
            stop = next_of(stop + U(1), separators, others, NEWLINES)
    end = stop
    if end > begin and byte_at(end) == NEWLINE and byte_at(end - U(1)) == RETURN:
        end -= U(1)
    while end > begin and byte_at(end - U(1)) == SPACE:
        end -= U(1)
    return end, stop


@always_inline
def a_field(begin, separators, others, way):
    """Where a field's text begins and ends, where the field does, and if the text is as it stands.

    Where the field ends is 0 if it is wrong.
    """
    begin = after_spaces(begin, way)
    simple = True
    if way == SINGLE and byte_at(begin) == QUOTE:
        begin += U(1)
        end, stop, simple = quoted_field(begin, separators)
    else:
        end, stop = plain_field(begin, separators, others, way)
    return begin, end, stop, simple


@always_inline
def line_end(at, separators, others, way):
    """The end of the line, from the end of a field; 0 if there are fields that are wrong."""
    if way != SINGLE:
        return next_of(at, NEWLINES, NEWLINES, NEWLINES)
    end = next_of(at, NEWLINES, QUOTES, QUOTES)
    if byte_at(end) == NEWLINE:
        return end
    while at != U(0) and byte_at(at) != NEWLINE:
        _, _, at, _ = a_field(at + U(1), separators, others, way)
    return at


PLACES = UniTuple(writable(uint64), 4)  # where users begin and end, and items
RATINGS = Tuple((readonly(uint32), readonly(uint32), readonly(float32)))


@kernel(
    UniTuple(uint64, 3)(
        TEXT, uint64, uint64, uint8, uint8, UniTuple(uint64, 3), PLACES, writable(float32)
    ),
    fast=False,
)
def split_lines(text, begin, end, separator, way, places, ids, values):
    """Finds the ids and values in the lines text[begin:end], until the arrays are full.

    `places` are those of the user, the item and the value among a line's fields, from 0 on; no
    value is read where its place is after all fields that there can be (2^64 - 1). Fills in where
    the users begin and end in the text, the same for the items, and the values. Stops before a line
    that is wrong or not simple. Returns where it stopped, how many ratings it found and how many
    lines it passed.
    """
    user_begins, user_ends, item_begins, item_ends = ids
    user_place, item_place, value_place = places
    valued = value_place != np.uint64(0xFFFFFFFFFFFFFFFF)
    last = max(user_place, item_place)
    if valued:
        last = max(last, value_place)
    separators = np.uint64(separator) * ONES
    others = np.uint64(TAB) * ONES if way == BLANKS else separators
    width = U(2) if way == DOUBLE else U(1)
    start = address_of(text)
    line = start + begin
    count = U(0)
    lines = U(0)
    while line < start + end and count < U(user_begins.size):
        at = after_spaces(line, way)
        if ends_line(at):
            line = at + U(1) + U(byte_at(at) == RETURN)
            lines += U(1)
            continue
        place = np.uint64(0)
        while True:
            first, behind, stop, simple = a_field(at, separators, others, way)
            good = stop != U(0)
            if place == user_place:
                user_begins[count] = first - start
                user_ends[count] = behind - start
                good &= simple and behind > first
            elif place == item_place:
                item_begins[count] = first - start
                item_ends[count] = behind - start
                good &= simple and behind > first
            elif place == value_place:
                value, number_end = number(first)
                good &= number_end == behind and abs(value) < FLOAT32_LIMIT
                values[count] = value
            good = good and (place == last or byte_at(stop) != NEWLINE)
            if not good or place == last:
                break
            at = stop + width
            place += np.uint64(1)
        stop = line_end(stop, separators, others, way) if good else U(0)
        if stop == U(0):
            break
        line = stop + U(1)
        lines += U(1)
        count += U(1)
    return line - start, count, lines


@kernel(uint64(writable(uint8), RATINGS, TEXTS, TEXTS, uint8), fast=False)
def format_ratings(out, ratings, user_texts, item_texts, separator):
    """Writes ratings as lines (pairs where there are no values); the length of what was written."""
    users, items, values = ratings
    user_blob, user_begins, user_ends = user_texts
    item_blob, item_begins, item_ends = item_texts
    start = address_of(out)
    at = start
    for k in range(U(0), U(users.size)):
        user, item = U(users[k]), U(items[k])
        at = put_text(at, user_blob, user_begins[user], user_ends[user])
        put_byte(at, separator)
        at = put_text(at + U(1), item_blob, item_begins[item], item_ends[item])
        if values.size > 0:
            put_byte(at, separator)
            at = put_value(at + U(1), values[k])
        put_byte(at, NEWLINE)
        at += U(1)
    return at - start
