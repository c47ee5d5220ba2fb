"""Where the fields of JSON objects stand in text with one object per line. See `fields.py`."""

import numpy as np
from numba.types import UniTuple, boolean, uint32, uint64

from hogwild.kernels.compile import always_inline, inline, kernel
from hogwild.kernels.delimited import NEWLINES, QUOTE, next_of
from hogwild.kernels.fields import NO_GROUP, NO_ROOM, NOTHING, WRONG, WRONG_AT, put_field
from hogwild.kernels.hashing import Fields, murmur
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.kernels.text import COLON, COMMA, SPACE, TEXT, address_of, byte_at, put_byte
from hogwild.kernels.views import type_of

# Why finding fields ended, besides what `fields.py` has
NOT_JSON, NESTED, NEW_KEY, TWICE = range(20, 24)
OPEN, CLOSE, LIST, END, BACKSLASH, SMALL_U = b"{}[]\\u"
# The characters that may follow a backslash, and what each pair means
ESCAPES = np.zeros(256, np.uint8)
for letter, byte in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    ESCAPES[letter] = byte
DIGITS = np.full(256, 255, np.uint8)
for letter in b"0123456789abcdefABCDEF":
    DIGITS[letter] = int(chr(letter), 16)


@always_inline
def skip(at, end):
    """Past what may stand between the parts of an object."""
    while at < end and byte_at(at) <= SPACE:
        at += U(1)
    return at


@inline
def string_end(at, end):
    """Where a string ends whose quote is behind us, and whether it has a backslash; 0: nowhere."""
    plain = True
    while at < end and byte_at(at) != QUOTE:
        if byte_at(at) == BACKSLASH:
            plain = False
            at += U(1)
        at += U(1)
    return (at if at < end else U(0)), plain


@always_inline
def code_at(at, end):
    """The number of four hexadecimal digits; 2^32 - 1 if they are none."""
    code = np.uint32(0)
    if at + U(4) > end:
        return NO_GROUP
    for k in range(U(0), U(4)):
        digit = DIGITS[byte_at(at + k)]
        if digit > np.uint8(15):
            return NO_GROUP
        code = np.uint32((code << np.uint32(4)) | np.uint32(digit))
    return code


@always_inline
def put_code(out, code):
    """Writes a character as UTF-8; where it ends. Half a pair becomes U+FFFD."""
    if np.uint32(0xD800) <= code < np.uint32(0xE000):
        code = np.uint32(0xFFFD)
    if code < np.uint32(0x80):
        put_byte(out, np.uint8(code))
        return out + U(1)
    width = U(2) + U(code >= np.uint32(0x800)) + U(code >= np.uint32(0x10000))
    lead = np.uint32(0xF00) >> np.uint32(width)
    for k in range(width - U(1), U(0), -1):
        put_byte(out + U(k), np.uint8(np.uint32(0x80) | (code & np.uint32(0x3F))))
        code >>= np.uint32(6)
    put_byte(out, np.uint8((lead & np.uint32(0xFF)) | code))
    return out + width


@inline
def unescaped(at, end):
    """Writes a string once more without its backslashes; where it ends, or 0 if one is wrong."""
    out = at
    while at < end:
        byte = byte_at(at)
        if byte != BACKSLASH:
            put_byte(out, byte)
            out += U(1)
            at += U(1)
            continue
        letter = byte_at(at + U(1))
        at += U(2)
        if letter == SMALL_U:
            code = code_at(at, end)
            if code == NO_GROUP:
                return U(0)
            at += U(4)
            paired = np.uint32(0xD800) <= code < np.uint32(0xDC00) and at + U(6) <= end
            if paired and byte_at(at) == BACKSLASH and byte_at(at + U(1)) == SMALL_U:
                low = code_at(at + U(2), end)
                if np.uint32(0xDC00) <= low < np.uint32(0xE000):
                    code = np.uint32(0x10000) + ((code & np.uint32(0x3FF)) << np.uint32(10))
                    code = np.uint32(code | (low & np.uint32(0x3FF)))
                    at += U(6)
            out = put_code(out, code)
        elif ESCAPES[letter] != np.uint8(0):
            put_byte(out, ESCAPES[letter])
            out += U(1)
        else:
            return U(0)
    return out


@inline
def value_at(at, end):
    """Where the text of a value begins and ends, and what is behind it; 0: it is none.

    The text of null is empty.
    """
    begin = at
    if byte_at(at) == QUOTE:
        begin = at + U(1)
        last, plain = string_end(begin, end)
        behind = last + U(1)
        if last == U(0):
            return begin, begin, U(0)
        if not plain:
            last = unescaped(begin, last)
        return begin, last, (behind if last != U(0) else U(0))
    while at < end and byte_at(at) > SPACE and byte_at(at) != COMMA:
        if byte_at(at) in (CLOSE, END, QUOTE, OPEN, LIST, COLON):
            break
        at += U(1)
    size = at - begin
    null = size == U(4) and byte_at(begin) == ord("n") and byte_at(begin + U(1)) == ord("u")
    return begin, (begin if null else at), (at if size > U(0) else U(0))


@always_inline
def put_value(at, end, start, group, fields, field, state):
    """Puts a value, or each of a list of values; the next field, and what is behind."""
    several = byte_at(at) == LIST
    if several:
        at = skip(at + U(1), end)
    while not (several and byte_at(at) == END and at < end):
        if at < end and (byte_at(at) == OPEN or byte_at(at) == LIST):
            state[WRONG], state[WRONG_AT] = U(NESTED), at - start
            break
        begin, last, behind = value_at(at, end)
        if behind == U(0) or at >= end:
            state[WRONG], state[WRONG_AT] = U(NOT_JSON), at - start
            break
        if group != NO_GROUP:
            put_field(fields, field, begin - start, last - start, group)
            field += U(1)
        if not several:
            return field, behind
        at = skip(behind, end)
        if byte_at(at) == COMMA:
            at = skip(at + U(1), end)
            if byte_at(at) == END:
                state[WRONG], state[WRONG_AT] = U(NOT_JSON), at - start
                break
        elif byte_at(at) != END:
            state[WRONG], state[WRONG_AT] = U(NOT_JSON), at - start
            break
    return field, at + U(1)


@inline
def most_values(at, end):
    """How many values a line may have at the most."""
    count = U(1)
    while at < end:
        count += U(byte_at(at) == COMMA)
        at += U(1)
    return count


@always_inline
def place_of(h, keys, guess):
    """The place of a key's hash among those that are known, or how many there are."""
    size = U(keys.size)
    if guess < size and keys[guess] == h:
        return guess
    place = U(0)
    while place < size and keys[place] != h:
        place += U(1)
    return place


@inline
def put_object(at, end, start, known, row, fields, field, state):
    """Finds the fields of an object; the next field."""
    keys, groups, seen, new = known
    at = skip(at, end)
    if at >= end or byte_at(at) != OPEN:
        state[WRONG], state[WRONG_AT] = U(NOT_JSON), at - start
        return field
    at = skip(at + U(1), end)
    guess = U(0)
    while state[WRONG] == U(NOTHING) and not (byte_at(at) == CLOSE and guess == U(0)):
        name = at + U(1)
        last, _ = string_end(name, end)
        behind = skip(last + U(1), end) if last != U(0) else at
        if at >= end or byte_at(at) != QUOTE or byte_at(behind) != COLON:
            state[WRONG], state[WRONG_AT] = U(NOT_JSON), at - start
            break
        place = place_of(murmur(name, last, np.uint32(0)), keys, guess)
        guess = place + U(1)
        group = NO_GROUP
        if place < U(keys.size):
            group = groups[place]
            if seen[place] == row:
                state[WRONG], state[WRONG_AT] = U(TWICE), at - start
                break
            seen[place] = row
        elif new:
            state[WRONG], state[WRONG_AT] = U(NEW_KEY), at - start
            break
        at = skip(behind + U(1), end)
        field, at = put_value(at, end, start, group, fields, field, state)
        if state[WRONG] != U(NOTHING):
            break
        at = skip(at, end)
        if at < end and byte_at(at) == CLOSE:
            break
        if at >= end or byte_at(at) != COMMA:
            state[WRONG], state[WRONG_AT] = U(NOT_JSON), at - start
            break
        at = skip(at + U(1), end)
    if state[WRONG] == U(NOTHING) and skip(at + U(1), end) < end:
        state[WRONG], state[WRONG_AT] = U(NOT_JSON), at + U(1) - start
    return field


@kernel(
    UniTuple(uint64, 2)(
        TEXT,
        uint64,
        uint64,
        readonly(uint32),
        readonly(uint32),
        readonly(uint32),
        writable(uint64),
        boolean,
        type_of(Fields),
        writable(uint64),
    ),
    fast=False,
)
def split_objects(text, begin, end, keys, groups, needed, seen, new, fields, state):
    """Finds the fields of the objects in text[begin:end], until there is no room for them.

    `keys` are the hashes of keys, `groups` their groups; `needed` are the places of those whose
    value is missing where they are not there. `seen` is scratch for each. With `new`, other keys
    are refused. Returns where it stopped, and how many rows there are. The state says why.
    """
    start = address_of(text)
    line = start + begin
    rows = found = U(0)
    state[WRONG] = U(NOTHING)
    for k in range(U(0), U(seen.size)):
        seen[k] = np.uint64(0)
    while line < start + end:
        stop = next_of(line, NEWLINES, NEWLINES, NEWLINES)
        if skip(line, stop) >= stop:
            line = stop + U(1)
            continue
        # This must come before any part of the line is rewritten without backslashes
        room = U(fields.begins.size) - found
        full = (stop - line) // U(2) + U(needed.size) > room
        if full:
            full = most_values(line, stop) + U(needed.size) > room
        if full or rows >= U(fields.row_ends.size):
            state[WRONG] = U(NO_ROOM)
            break
        known = keys, groups, seen, new
        row = np.uint64(rows + U(1))
        field = put_object(line, stop, start, known, row, fields, found, state)
        if state[WRONG] != U(NOTHING):
            break
        for k in range(U(0), U(needed.size)):
            place = U(needed[k])
            if seen[place] != row:
                put_field(fields, field, stop - start, stop - start, groups[place])
                field += U(1)
        found = field
        fields.row_ends[rows] = found
        rows += U(1)
        line = stop + U(1)
    return line - start, rows
