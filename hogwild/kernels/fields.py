"""Where the fields of rows stand in text: documents with labels, and tables.

As in `text.py`: text ends with a newline and has `PADDING` behind it. What the fields become is
said in `hashing.py`.
"""

import numpy as np
from numba.types import UniTuple, uint8, uint32, uint64

from hogwild.kernels.compile import always_inline, kernel
from hogwild.kernels.delimited import NEWLINES, ONES, QUOTE, QUOTES, next_of
from hogwild.kernels.hashing import Fields
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.kernels.text import (
    NEWLINE,
    RETURN,
    SPACE,
    TAB,
    TEXT,
    address_of,
    byte_at,
    put_byte,
    word_at,
)
from hogwild.kernels.views import type_of

# How a line tells its label: not at all, a tab behind it, the first word, fastText's prefix
UNLABELLED, TABBED, FIRST_WORD, PREFIXED = range(4)
PREFIX = b"__label__"
PREFIX_WORD = int.from_bytes(PREFIX[:8], "little")
LABEL_GROUP, TEXT_GROUP = 0, 1  # of documents
NO_GROUP = np.uint32(2**32 - 1)
# Why finding fields ended, and where the state says that
NOTHING, NO_LABEL, NO_ROOM, BAD_QUOTE, BAD_COUNT = range(5)
WRONG, WRONG_AT = range(2)
STATE = 2


@always_inline
def skip_blanks(at, end):
    while at < end and (byte_at(at) == SPACE or byte_at(at) == TAB):
        at += U(1)
    return at


@always_inline
def word_end(at, end):
    while at < end and byte_at(at) != SPACE and byte_at(at) != TAB:
        at += U(1)
    return at


@always_inline
def has_prefix(at):
    return word_at(at) == U(PREFIX_WORD) and byte_at(at + U(8)) == PREFIX[8]


@always_inline
def put_field(fields, count, begin, end, group):
    fields.begins[count] = begin
    fields.ends[count] = end
    fields.groups[count] = group


@kernel(
    UniTuple(uint64, 2)(TEXT, uint64, uint64, uint64, type_of(Fields), writable(uint64)), fast=False
)
def split_documents(text, begin, end, style, fields, state):
    """Finds the label and the text of each line in text[begin:end], until the fields are full.

    Where lines have labels, blank ones are skipped. Returns where it stopped, and how many rows
    there are. The state says why.
    """
    start = address_of(text)
    line = start + begin
    rows = fields_found = U(0)
    state[WRONG] = U(NOTHING)
    while line < start + end:
        if rows >= U(fields.row_ends.size) or fields_found + U(2) > U(fields.begins.size):
            state[WRONG] = U(NO_ROOM)
            break
        stop = next_of(line, NEWLINES, NEWLINES, NEWLINES)
        last = stop - U(1) if stop > line and byte_at(stop - U(1)) == RETURN else stop
        at = line
        field = fields_found
        if style != U(UNLABELLED):
            at = skip_blanks(at, last)
            if at == last:
                line = stop + U(1)
                continue
            if style == U(PREFIXED):
                while has_prefix(at) and field + U(2) <= U(fields.begins.size):
                    behind = word_end(at, last)
                    put_field(fields, field, at + U(9) - start, behind - start, U(LABEL_GROUP))
                    field += U(1)
                    at = skip_blanks(behind, last)
                if field + U(2) > U(fields.begins.size):
                    state[WRONG] = U(NO_ROOM)
                    break
            else:
                behind = word_end(at, last)
                if style == U(TABBED):
                    while behind < last and byte_at(behind) != TAB:
                        behind += U(1)
                    if behind == last:
                        state[WRONG] = U(NO_LABEL)
                        break
                put_field(fields, field, at - start, behind - start, U(LABEL_GROUP))
                field += U(1)
                at = behind
        put_field(fields, field, at - start, last - start, U(TEXT_GROUP))
        fields_found = field + U(1)
        fields.row_ends[rows] = fields_found
        rows += U(1)
        line = stop + U(1)
    return line - start, rows


@always_inline
def closing_quote(at, end):
    """The quote that closes what begins at an address, and whether there are quotes within."""
    simple = True
    while True:
        at = next_of(at, QUOTES, QUOTES, QUOTES)
        if at + U(1) >= end or byte_at(at + U(1)) != QUOTE:
            return at, simple
        at += U(2)
        simple = False


@always_inline
def unquoted(begin, end):
    """Writes a text with quotes within once more, with one of two quotes; where that ends."""
    at = out = begin
    while at < end:
        put_byte(out, byte_at(at))
        at += U(1) + U(byte_at(at) == QUOTE)
        out += U(1)
    for k in range(out, end):
        put_byte(k, SPACE)  # no line end is there twice
    return out


@always_inline
def cell(begin, end, separators):
    """Where the text of a field begins and ends, and where the field does; 0: a quote is wrong."""
    begin = skip_spaces(begin)
    if byte_at(begin) == QUOTE:
        begin += U(1)
        last, simple = closing_quote(begin, end)
        stop = skip_spaces(last + U(1))
        stop += U(byte_at(stop) == RETURN and byte_at(stop + U(1)) == NEWLINE)
        ends = byte_at(stop) == NEWLINE or U(byte_at(stop)) == separators & U(0xFF)
        if last >= end or not ends:
            return begin, begin, U(0)
        return begin, last if simple else unquoted(begin, last), stop
    stop = next_of(begin, separators, NEWLINES, NEWLINES)
    last = stop
    if last > begin and byte_at(last) == NEWLINE and byte_at(last - U(1)) == RETURN:
        last -= U(1)
    while last > begin and byte_at(last - U(1)) == SPACE:
        last -= U(1)
    return begin, last, stop


@always_inline
def skip_spaces(at):
    while byte_at(at) == SPACE:
        at += U(1)
    return at


@kernel(
    UniTuple(uint64, 2)(
        TEXT, uint64, uint64, uint8, readonly(uint32), type_of(Fields), writable(uint64)
    ),
    fast=False,
)
def split_table(text, begin, end, separator, groups, fields, state):
    """Finds the fields of each line in text[begin:end], until there is no room for them.

    `groups` has the group of each column, or NO_GROUP. Fields in quotes may have line ends. Quotes
    in them are written once in place of twice, into the text. Blank lines are skipped. Returns
    where it stopped, and how many rows there are. The state says why, and what is wrong where.
    """
    start = address_of(text)
    stop_at = start + end
    put_byte(stop_at, QUOTE)  # that ends the search for one; it has padding behind it
    separators = U(separator) * ONES
    line = start + begin
    rows = found = U(0)
    state[WRONG] = U(NOTHING)
    while line < stop_at and state[WRONG] == U(NOTHING):
        if rows >= U(fields.row_ends.size) or found + U(groups.size) > U(fields.begins.size):
            state[WRONG] = U(NO_ROOM)
            break
        first = skip_spaces(line)
        if byte_at(first) == NEWLINE or (
            byte_at(first) == RETURN and byte_at(first + U(1)) == NEWLINE
        ):
            line = next_of(first, NEWLINES, NEWLINES, NEWLINES) + U(1)
            continue
        at = line
        field = found
        column = U(0)
        while True:
            cell_begin, cell_end, stop = cell(at, stop_at, separators)
            if stop == U(0):
                state[WRONG] = U(BAD_QUOTE)
                state[WRONG_AT] = cell_begin - U(1) - start
                break
            group = groups[column] if column < U(groups.size) else NO_GROUP
            if group != NO_GROUP:
                put_field(fields, field, cell_begin - start, cell_end - start, group)
                field += U(1)
            column += U(1)
            at = stop + U(1)
            if byte_at(stop) == NEWLINE:
                break
        if state[WRONG] == U(NOTHING) and column != U(groups.size):
            state[WRONG] = U(BAD_COUNT)
            state[WRONG_AT] = column
        if state[WRONG] != U(NOTHING):
            break
        found = field
        fields.row_ends[rows] = found
        rows += U(1)
        line = at
    return line - start, rows


@kernel(uint64(TEXT, uint64, uint8), fast=False)
def last_record(text, end, separator):
    """Where the last whole line of text[:end] ends, but for line ends in quotes; 0: nowhere."""
    start = address_of(text)
    stop = start + end
    kept = byte_at(stop)
    put_byte(stop, QUOTE)
    last = start
    at = start
    while at < stop:
        quote = next_of(at, QUOTES, QUOTES, QUOTES)
        begin = quote
        while begin > start and byte_at(begin - U(1)) == SPACE:
            begin -= U(1)
        opens = begin == start or (
            byte_at(begin - U(1)) == separator or byte_at(begin - U(1)) == NEWLINE
        )
        if opens or quote >= stop:
            back = quote
            while back > at and byte_at(back - U(1)) != NEWLINE:
                back -= U(1)
            if back > at:
                last = back
        if quote >= stop:
            break
        at = quote + U(1)
        if opens:
            closed, _ = closing_quote(at, stop)
            if closed >= stop:
                break
            at = closed + U(1)
    put_byte(stop, kept)
    return last - start
