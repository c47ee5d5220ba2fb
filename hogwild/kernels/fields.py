"""Where the fields of rows stand in text: documents with labels, tables, and the
lines of Vowpal Wabbit.

As in `text.py`, text ends with a newline and has `PADDING` behind it. `hashing.py` turns the
fields into features.
"""

import numpy as np
from numba.types import UniTuple, uint8, uint32, uint64

from hogwild.kernels.compile import always_inline, kernel
from hogwild.kernels.delimited import NEWLINES, ONES, QUOTE, QUOTES, next_of
from hogwild.kernels.hashing import Fields, murmur
from hogwild.kernels.primitives import U, readonly, writable
from hogwild.kernels.text import (
    COLON,
    FLOAT32_LIMIT,
    NEWLINE,
    RETURN,
    SPACE,
    TAB,
    TEXT,
    address_of,
    byte_at,
    number,
    put_byte,
    word_at,
)
from hogwild.kernels.views import type_of

# How a line marks its label: no label, a tab after it, the first word, fastText's prefix
UNLABELLED, TABBED, FIRST_WORD, PREFIXED = range(4)
PREFIX = b"__label__"
PREFIX_WORD = int.from_bytes(PREFIX[:8], "little")
LABEL_GROUP, TEXT_GROUP = 0, 1  # of documents
WEIGHT_GROUP = 1  # of lines of Vowpal Wabbit; behind it come its namespaces
BAR, APOSTROPHE = b"|'"
NO_GROUP = np.uint32(2**32 - 1)
# Why finding fields ended, and where the state says that
NOTHING, NO_LABEL, NO_ROOM, BAD_QUOTE, BAD_COUNT = range(5)
NEW_GROUP, BAD_HEAD, NO_BAR, BAD_VALUE = range(5, 9)
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


@always_inline
def group_of(h, known, last):
    """The place of a namespace's hash among those that are known, or how many there are.

    Lines have their namespaces in the same order, mostly: the one after the last is tried first.
    """
    size = U(known.size)
    following = last + U(1) if last + U(1) < size else U(0)
    if size > U(0) and known[following] == h:
        return following
    place = U(0)
    while place < size and known[place] != h:
        place += U(1)
    return place


@always_inline
def number_until(at, end, stops):
    """A number, and where it ends; 0 unless that is the end, a blank or one more byte."""
    value, behind = number(at)
    good = behind <= end and behind > at and abs(value) < FLOAT32_LIMIT
    if not good or (behind < end and byte_at(behind) > SPACE and byte_at(behind) != stops):
        behind = U(0)
    return value, behind


@always_inline
def split_head(line, end, start, fields, field, state):
    """Finds label and importance before the first bar; the next field, and where the bar is."""
    bar = line
    while bar < end and byte_at(bar) != BAR:
        bar += U(1)
    at = skip_blanks(line, bar)
    group = U(LABEL_GROUP)
    while at < bar and byte_at(at) != APOSTROPHE:
        behind = word_end(at, bar)
        if behind == bar:  # a tag, which nothing separates from the bar
            break
        if group > U(WEIGHT_GROUP):
            state[WRONG], state[WRONG_AT] = U(BAD_HEAD), at - start
            break
        put_field(fields, field, at - start, behind - start, group)
        field += U(1)
        group += U(1)
        at = skip_blanks(behind, bar)
    if bar == end:
        state[WRONG], state[WRONG_AT] = U(NO_BAR), line - start
    return field, bar


@always_inline
def split_features(at, end, start, group, weight, fields, field, state):
    """Finds the features of a namespace, which the end of the line or a bar ends."""
    while True:
        while at < end and byte_at(at) <= SPACE:
            at += U(1)
        if at >= end or byte_at(at) == BAR:
            break
        name = at
        colon = U(0)
        while at < end and byte_at(at) > SPACE and byte_at(at) != BAR:
            if byte_at(at) == COLON:
                colon = at
            at += U(1)
        value, last = 1.0, at
        if colon != U(0):
            value, behind = number_until(colon + U(1), at, SPACE)
            last = colon
            if behind != at:
                state[WRONG], state[WRONG_AT] = U(BAD_VALUE), name - start
        if field >= U(fields.begins.size):
            state[WRONG] = U(NO_ROOM)
        if state[WRONG] != U(NOTHING):
            break
        if value != 0.0:
            put_field(fields, field, name - start, last - start, group)
            fields.values[field] = np.float32(value * weight)
            field += U(1)
    return field, at


@kernel(
    UniTuple(uint64, 2)(TEXT, uint64, uint64, readonly(uint32), type_of(Fields), writable(uint64)),
    fast=False,
)
def split_namespaces(text, begin, end, known, fields, state):
    """Finds the fields of lines as Vowpal Wabbit has them, until there is no room for them.

    `known` are the hashes of the namespaces that have a group; it stops before a line with another
    one. Returns where it stopped, and how many rows there are. The state says why, and where that
    is.
    """
    start = address_of(text)
    line = start + begin
    rows = found = U(0)
    last = U(0)
    state[WRONG] = U(NOTHING)
    while line < start + end:
        stop = next_of(line, NEWLINES, NEWLINES, NEWLINES)
        behind = stop - U(1) if stop > line and byte_at(stop - U(1)) == RETURN else stop
        if skip_blanks(line, behind) == behind:
            line = stop + U(1)
            continue
        if rows >= U(fields.row_ends.size) or found + U(2) > U(fields.begins.size):
            state[WRONG] = U(NO_ROOM)
            break
        field, at = split_head(line, behind, start, fields, found, state)
        while at < behind and state[WRONG] == U(NOTHING):
            name = at + U(1)
            at = name
            while at < behind and byte_at(at) > SPACE and byte_at(at) != COLON:
                at += U(1)
            place = group_of(murmur(name, at, np.uint32(0)), known, last)
            if place == U(known.size):
                state[WRONG], state[WRONG_AT] = U(NEW_GROUP), name - start
                break
            last = place
            weight = 1.0
            if byte_at(at) == COLON and at < behind:
                weight, after = number_until(at + U(1), behind, SPACE)
                if after == U(0):
                    state[WRONG], state[WRONG_AT] = U(BAD_VALUE), name - start
                    break
                at = after
            group = U(WEIGHT_GROUP) + U(1) + place
            field, at = split_features(at, behind, start, group, weight, fields, field, state)
        if state[WRONG] != U(NOTHING):
            break
        found = field
        fields.row_ends[rows] = found
        rows += U(1)
        line = stop + U(1)
    return line - start, rows
