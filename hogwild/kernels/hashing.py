"""Hashed features: from the fields of rows to the columns of a sparse matrix.

A feature is some bytes and a seed. With h = MurmurHash3 (Appleby, x86, 32 bits) of them as a signed
number, its column is |h| mod 2^bits, and what it adds there has the sign of h (Weinberger et al.
2009, "Feature Hashing for Large Scale Multitask Learning"). scikit-learn's hashers do the same.

Fields are spans of a text, found by the kernels of a format. Each field belongs to a group. The
group has the kind of the field (`LABEL`, `NUMBER` ...) and the seed of its features. Every text has
`PADDING` bytes behind it.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic
from numba.types import UniTuple, boolean, float32, float64, uint8, uint16, uint32, uint64, void

from hogwild.kernels.compile import always_inline, inline, kernel, seldom
from hogwild.kernels.ids import first_bytes
from hogwild.kernels.primitives import U, bits_of, readonly, trailing_zeros, writable
from hogwild.kernels.text import (
    AHEAD,
    DIGITS,
    FLOAT32_LIMIT,
    RUN,
    SPACE,
    TEXT,
    address_of,
    byte_at,
    digit_count,
    digits_value,
    number,
    put_byte,
    put_run,
    quad_at,
    word_at,
    word_bytes,
)
from hogwild.kernels.views import (
    Doubles,
    Floats,
    FloatsRead,
    Order,
    Places,
    type_of,
)

Bytes = Annotated[npt.NDArray[np.uint8], writable(uint8)]
BytesRead = Annotated[npt.NDArray[np.uint8], readonly(uint8)]
Codes = Annotated[npt.NDArray[np.uint32], writable(uint32)]
Ends = Annotated[npt.NDArray[np.uint64], writable(uint64)]
Characters = Annotated[npt.NDArray[np.uint16], readonly(uint16)]

# The kind of a group of fields
IGNORED, LABEL, NUMBER, CATEGORY, WORDS, WEIGHT, VALUED = range(7)
# Why rows stopped being hashed
DONE, OUT_FULL, ROW_FULL, NAMES_FULL, DAMAGED, NO_NUMBER, HARD_NUMBER, LARGE_NUMBER = range(8)
NO_LABEL = 8
# Places in the state of hashing; all of them begin at 0
ROW, PLACE, LABELS, LABEL_BYTES, PROBLEM, WHERE, REPLACED, NAMES, NAME_BYTES, FEATURES = range(10)
STATE = 10

COUNTS, LOGS, BINARY = 0, 1, 2  # the value of repeated words

NONE, ONE = U(0), U(1)
FIRST, SECOND = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
AGAIN = np.uint32(0x9E3779B9)  # added between two hashes of a feature that has several
LOW = np.uint64(0xFFFFFFFF)
MOST_WORDS = U(8)  # that an n-gram may have, a power of two
LANES = U(16)  # words that are hashed at a time
FEW = U(64)  # keys that are sorted by comparing all with all
BLOCK = U(16)  # keys that are compared at a time
DIGIT = U(7)  # bits of a column that others are sorted by at a time
SIZE = ONE << DIGIT
MOST_OF_NAME = U(256)  # bytes of a name's parts that are kept
NOBODY = U(2**64 - 1)  # no group
COLON = ord(":")
CHARACTERS = np.uint32(int.from_bytes(b"char", "little"))
SMALL = np.uint64(0x2020202020202020)
# Fields of a number that is missing, in small letters; and the empty one
MISSING = tuple(
    np.uint64(int.from_bytes(word, "little"))
    for word in (b"na", b"nan", b"null", b"none", b"n/a", b"?")
)


class Plan(NamedTuple):
    """The settings of hashing, as whole numbers."""

    mask: int  # 2^bits - 1
    hashes: int  # of a feature
    reserved: int  # columns before those that are hashed: of numbers, and whether they are missing
    numbers: int  # columns of numbers
    ngrams: int  # most words in an n-gram; 0: no words
    least: int  # fewest characters in a run
    most: int  # most characters in a run; 0: no runs
    counting: int  # COUNTS, LOGS or BINARY
    strict: int  # 1: damaged UTF-8 is refused
    digits: int  # of the columns' numbers, DIGIT bits each
    norm: int  # 1: rows are scaled to norm 1
    naming: int  # 1: names of features are kept


@always_inline
def _mixed(word):
    word = np.uint32(word * FIRST)
    word = np.uint32((word << np.uint32(15)) | (word >> np.uint32(17)))
    return np.uint32(word * SECOND)


@always_inline
def finished(h):
    """The last step of MurmurHash3."""
    h = np.uint32(h)
    h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(h ^ (h >> np.uint32(16)))


@always_inline
def _taken(h, word):
    h = np.uint32(h ^ _mixed(word))
    h = np.uint32((h << np.uint32(13)) | (h >> np.uint32(19)))
    return np.uint32(np.uint32(h * np.uint32(5)) + np.uint32(0xE6546B64))


@inline
def murmur(begin, end, seed):
    """MurmurHash3 of the bytes from one address up to another."""
    h, at = np.uint32(seed), begin
    while at + U(4) <= end:
        h = _taken(h, quad_at(at))
        at += U(4)
    below = np.uint32((np.uint32(1) << np.uint32((end - at) << U(3))) - np.uint32(1))
    h = np.uint32(h ^ _mixed(np.uint32(quad_at(at) & below)))
    return finished(np.uint32(h ^ np.uint32(end - begin)))


def _rotated(builder: Any, numbers: Any, bits: int) -> Any:
    kind = numbers.type
    left = builder.shl(numbers, kind([bits] * kind.count))
    return builder.or_(left, builder.lshr(numbers, kind([32 - bits] * kind.count)))


def _finished(builder: Any, h: Any) -> Any:
    kind = h.type
    for shift, factor in (16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1):
        h = builder.xor(h, builder.lshr(h, kind([shift] * kind.count)))
        h = builder.mul(h, kind([factor] * kind.count))
    return h


@intrinsic
def hash_runs(typing_context, begins, ends, seed, hashes):
    """MurmurHash3 of LANES runs of words at a time, which gives the same as `murmur`.

    A run ends one before the address in `ends`, where a blank is. Bytes behind a run are read, as
    many as the longest one has.
    """

    def emit(context, builder, signature, arguments):
        begins, ends, seed, hashes = arguments
        lanes = int(LANES)
        word, quad = ir.IntType(64), ir.IntType(32)
        wide, kind = ir.VectorType(word, lanes), ir.VectorType(quad, lanes)

        def all_of(number: int) -> Any:
            return kind([number] * lanes)

        def mixed(quads: Any) -> Any:
            quads = builder.mul(quads, all_of(int(FIRST)))
            return builder.mul(_rotated(builder, quads, 15), all_of(int(SECOND)))

        def spread(number: Any) -> Any:
            one = builder.insert_element(kind(ir.Undefined), number, quad(0))
            return builder.shuffle_vector(one, kind(ir.Undefined), all_of(0))

        first = builder.inttoptr(begins, word.as_pointer())
        begin = builder.load(builder.inttoptr(begins, wide.as_pointer()), align=8)
        end = builder.load(builder.inttoptr(ends, wide.as_pointer()), align=8)
        size = builder.sub(builder.trunc(builder.sub(end, begin), kind), all_of(1))
        whole = builder.ashr(size, all_of(2))  # groups of four bytes; -1 of a run that is not there
        most = ir.FunctionType(quad, [kind])
        name = f"llvm.vector.reduce.smax.v{lanes}i32"
        function = cgutils.get_or_insert_function(builder.module, most, name)
        rounds = builder.add(builder.call(function, [whole]), quad(1))
        h = cgutils.alloca_once_value(builder, spread(seed))
        rest = cgutils.alloca_once_value(builder, all_of(0))
        with cgutils.for_range(builder, rounds) as loop:
            ahead = builder.shl(builder.zext(loop.index, word), word(2))
            quads = kind(ir.Undefined)
            for k in range(lanes):
                at = builder.add(builder.load(builder.gep(first, [word(k)])), ahead)
                found = builder.load(builder.inttoptr(at, quad.as_pointer()), align=1)
                quads = builder.insert_element(quads, found, quad(k))
            number = spread(loop.index)
            before = builder.load(h)
            after = _rotated(builder, builder.xor(before, mixed(quads)), 13)
            after = builder.add(builder.mul(after, all_of(5)), all_of(0xE6546B64))
            goes_on = builder.icmp_signed(">", whole, number)
            builder.store(builder.select(goes_on, after, before), h)
            ends_here = builder.icmp_signed("==", whole, number)
            builder.store(builder.select(ends_here, quads, builder.load(rest)), rest)
        bits = builder.shl(builder.and_(size, all_of(3)), all_of(3))
        below = builder.sub(builder.shl(all_of(1), bits), all_of(1))
        last = builder.xor(builder.load(h), mixed(builder.and_(builder.load(rest), below)))
        last = _finished(builder, builder.xor(last, size))
        builder.store(last, builder.inttoptr(hashes, kind.as_pointer()), align=4)
        return context.get_dummy_value()

    return void(uint64, uint64, uint32, uint64), emit


@always_inline
def murmur_of_hash(h, seed):
    """MurmurHash3 of the four bytes of a hash: that of an interaction, seeded with the other."""
    return finished(np.uint32(_taken(np.uint32(seed), np.uint32(h)) ^ np.uint32(4)))


SPANS = readonly(uint64), readonly(uint64)


@kernel(void(TEXT, *SPANS, readonly(uint32), writable(uint32)), fast=False)
def hash_spans(text, begins, ends, seeds, hashes):
    """The hash of each span of a text."""
    start = address_of(text)
    for i in range(NONE, U(begins.size)):
        hashes[i] = murmur(start + begins[i], start + ends[i], seeds[i])


class Scratch(NamedTuple):
    """What a worker needs for a row.

    `words` are those of the row, as they are hashed. A key is column << 32 | the bits of a float32;
    `spare` and `counts` help to sort keys. Features that interact have a hash, a value, a group,
    and a begin and an end of the name. `sorted` are their places by group; the groups end at
    `bounds`. `starts` is where words begin, from place MOST_WORDS on, and then where another word
    would begin. `runs` are hashes of LANES words, and then of the n-grams that end with them.
    """

    words: Bytes
    keys: Ends
    spare: Ends
    counts: Codes
    hashes: Codes
    values: Floats
    owners: Codes
    name_begins: Ends
    name_ends: Ends
    sorted: Codes
    bounds: Codes
    starts: Ends
    runs: Codes


class Names(NamedTuple):
    """Names of features: the prefix of each group, the columns that have a name, and the names.

    A name's column is stored twice as large, plus 1 where the feature's sign is negative.
    """

    prefixes: BytesRead
    prefix_ends: Places
    known: Bytes
    text: Bytes
    ends: Ends
    columns: Codes


class Groups(NamedTuple):
    """For each group: its kind, its seed, the column of its number, whether it interacts.

    `pairs` are the pairs of groups that interact.
    """

    kinds: BytesRead
    seeds: Order
    slots: Order
    interact: BytesRead
    pairs: Order


class Fields(NamedTuple):
    """Where fields begin and end, their groups and values, and the last field of each row.

    Only a field that is `VALUED` has a value there, and a number whose end is 0.
    """

    begins: Ends
    ends: Ends
    groups: Codes
    values: Floats
    row_ends: Ends


class Found(NamedTuple):
    """Rows in compressed form, their labels, as text and as numbers (or NaN), and their weights."""

    row_ends: Ends
    indices: Codes
    values: Floats
    labels: Bytes
    label_ends: Ends
    label_numbers: Doubles
    row_labels: Ends
    weights: Floats


class Tables(NamedTuple):
    """What characters become, or 0 where they separate words; log(1 + n); stop words.

    Stop words are a hash table of their hashes, plus 1.
    """

    characters: Characters
    logs: FloatsRead
    stops: Places


@always_inline
def is_more(byte):
    """Whether a byte continues a character."""
    return byte & np.uint8(0xC0) == np.uint8(0x80)


@inline
def character_at(at, first):
    """The character of more than one byte that begins at an address, and its bytes; 0: damaged.

    Longer forms than needed, surrogates and what is above U+10FFFF are damaged, as in RFC 3629.
    """
    code, width = np.uint32(0), NONE
    second = byte_at(at + ONE)
    if not is_more(second):
        return code, width
    more = np.uint32(second & np.uint8(0x3F))
    if first < np.uint8(0xE0):
        if first >= np.uint8(0xC2):
            code, width = (np.uint32(first & np.uint8(0x1F)) << np.uint32(6)) | more, U(2)
        return code, width
    third = byte_at(at + U(2))
    if not is_more(third):
        return code, width
    more = (more << np.uint32(6)) | np.uint32(third & np.uint8(0x3F))
    if first < np.uint8(0xF0):
        found = (np.uint32(first & np.uint8(0x0F)) << np.uint32(12)) | more
        if found >= np.uint32(0x800) and (found >> np.uint32(11)) != np.uint32(0x1B):
            code, width = np.uint32(found), U(3)
        return code, width
    fourth = byte_at(at + U(3))
    if is_more(fourth) and first < np.uint8(0xF5):
        found = (np.uint32(first & np.uint8(0x07)) << np.uint32(18)) | (more << np.uint32(6))
        found |= np.uint32(fourth & np.uint8(0x3F))
        if np.uint32(0x10000) <= found < np.uint32(0x110000):
            code, width = np.uint32(found), U(4)
    return code, width


@always_inline
def put_character(at, code, width):
    """Writes a character of two or three bytes."""
    if width == U(2):
        put_byte(at, np.uint8(np.uint32(0xC0) | (code >> np.uint32(6))))
    else:
        put_byte(at, np.uint8(np.uint32(0xE0) | (code >> np.uint32(12))))
        middle = (code >> np.uint32(6)) & np.uint32(0x3F)
        put_byte(at + ONE, np.uint8(np.uint32(0x80) | middle))
    put_byte(at + width - ONE, np.uint8(np.uint32(0x80) | (code & np.uint32(0x3F))))


@always_inline
def after_character(at):
    at += ONE
    while is_more(byte_at(at)):
        at += ONE
    return at


@always_inline
def column_of(key):
    return key >> np.uint64(32)


@intrinsic
def count_below(typing_context, at, blocks, key):
    """How many of some blocks of keys, from an address on, are below a key."""

    def emit(context, builder, signature, arguments):
        at, blocks, key = arguments
        word, lanes = ir.IntType(64), int(BLOCK)
        kind, bits = ir.VectorType(word, lanes), ir.IntType(lanes)
        one = builder.insert_element(kind(ir.Undefined), key, ir.IntType(32)(0))
        order = ir.VectorType(ir.IntType(32), lanes)([0] * lanes)
        keys = builder.shuffle_vector(one, kind(ir.Undefined), order)
        total = cgutils.alloca_once_value(builder, word(0))
        with cgutils.for_range(builder, blocks) as loop:
            place = builder.add(at, builder.mul(loop.index, word(8 * lanes)))
            others = builder.load(builder.inttoptr(place, kind.as_pointer()), align=8)
            below = builder.bitcast(builder.icmp_unsigned("<", others, keys), bits)
            count = builder.zext(builder.ctpop(below), word)
            builder.store(builder.add(builder.load(total), count), total)
        return builder.load(total)

    return uint64(uint64, uint64, uint64), emit


@always_inline
def sort_few(keys, spare, counts, begin, size):
    """Sorts some keys by counting, for each, those that come before it: no branch to guess."""
    blocks = (size + BLOCK - ONE) // BLOCK
    for i in range(NONE, size):
        spare[i] = (keys[begin + i] & ~LOW) | np.uint64(i)  # equal columns keep their order
    for i in range(size, blocks * BLOCK):
        spare[i] = ~np.uint64(0)
    for i in range(NONE, size):
        counts[i] = np.uint32(count_below(address_of(spare), blocks, spare[i]))
    for i in range(NONE, size):
        spare[i] = keys[begin + i]
    for i in range(NONE, size):
        keys[begin + U(counts[i])] = spare[i]


@always_inline
def place_digits(keys, begin, end, counts, digits):
    """For each digit and each of its values, where keys with it begin."""
    below = np.uint64(SIZE) - np.uint64(1)
    for k in range(NONE, digits * SIZE):
        counts[k] = np.uint32(0)
    for i in range(begin, end):
        column = column_of(keys[i])
        for digit in range(NONE, digits):
            counts[digit * SIZE + U(column & below)] += np.uint32(1)
            column >>= np.uint64(DIGIT)
    for digit in range(NONE, digits):
        place = np.uint32(0)
        for k in range(digit * SIZE, (digit + ONE) * SIZE):
            count = counts[k]
            counts[k] = place
            place += count


@always_inline
def move_keys(keys, begin, size, counts, digit, out, out_begin):
    """Copies keys in the order of a digit."""
    shift = np.uint64(32) + np.uint64(digit * DIGIT)
    below = np.uint64(SIZE) - np.uint64(1)
    for i in range(begin, begin + size):
        key = keys[i]
        k = digit * SIZE + U((key >> shift) & below)
        out[out_begin + U(counts[k])] = key
        counts[k] += np.uint32(1)


@inline
def sort_digits(keys, spare, counts, begin, end, digits):
    """Sorts keys[begin:end] digit by digit."""
    size = end - begin
    place_digits(keys, begin, end, counts, digits)
    for digit in range(NONE, digits):
        if digit & ONE == NONE:
            move_keys(keys, begin, size, counts, digit, spare, NONE)
        else:
            move_keys(spare, NONE, size, counts, digit, keys, begin)
    if digits & ONE == ONE:
        for i in range(NONE, size):
            keys[begin + i] = spare[i]


@inline
def sort_keys(keys, spare, counts, begin, end, digits):
    """Sorts keys[begin:end] by column."""
    size = end - begin
    if size <= FEW:
        sort_few(keys, spare, counts, begin, size)
    else:
        sort_digits(keys, spare, counts, begin, end, digits)


@always_inline
def value_of(key):
    return np.uint32(key & LOW).view(np.float32)


@always_inline
def key_of(column, value):
    return (np.uint64(column) << np.uint64(32)) | np.uint64(bits_of(np.float32(value)))


@always_inline
def counted(total, counting, logs):
    """What a sum of signs counts."""
    if counting == COUNTS or total == np.float32(0):
        return total
    size = abs(total)
    if counting == BINARY:
        size = np.float32(1)
    elif size < np.float32(logs.size):
        size = logs[U(size)]
    else:
        size = np.float32(1.0 + np.log(size))
    return np.float32(np.copysign(size, total))


@always_inline
def sum_repeated(keys, first, end, counting, logs):
    """The sum of the values of keys with the same column, and where the next column begins."""
    column = column_of(keys[first])
    total = value_of(keys[first])
    i = first + ONE
    while i < end and column_of(keys[i]) == column:
        total += value_of(keys[i])
        i += ONE
    if i > first + ONE:
        total = counted(total, counting, logs)
    return total, i


@inline
def add_repeated(keys, begin, end, reserved, counting, logs):
    """Adds the values of the same column in sorted keys, in place; the new end.

    Hashed columns whose values add to 0 are left out.
    """
    kept = i = begin
    while i < end:
        column = column_of(keys[i])
        total, i = sum_repeated(keys, i, end, counting, logs)
        if total != np.float32(0) or column < reserved:
            keys[kept] = key_of(column, total)
            kept += ONE
    return kept


@inline
def put_row(keys, end, place, counting, plan, logs, found):
    """Writes sorted keys as columns and values, those of the same column added; the new place."""
    indices, values = found.indices, found.values
    first = place
    i = NONE
    squares = np.float32(0)
    while i < end:
        column = column_of(keys[i])
        total, i = sum_repeated(keys, i, end, counting, logs)
        if total != np.float32(0) or column < U(plan.reserved):
            indices[place] = np.uint32(column)
            values[place] = total
            squares += total * total
            place += ONE
    if plan.norm > NONE and squares > np.float32(0):
        factor = np.float32(1.0 / np.sqrt(np.float64(squares)))
        for k in range(first, place):
            values[k] *= factor
    return place


@always_inline
def key_of_hash(h, value, plan):
    negative = h >> np.uint32(31)
    size = np.uint32((h ^ np.uint32(NONE - U(negative))) + negative)
    column = U(plan.reserved) + (U(size) & U(plan.mask))
    bits = bits_of(np.float32(value)) ^ np.uint32(negative << np.uint32(31))
    return (np.uint64(column) << np.uint64(32)) | np.uint64(bits)


@always_inline
def put_feature(keys, count, h, value, plan):
    """Adds a feature to a row's keys, by each of its hashes; how many keys there are then."""
    again = np.uint32(h)
    for number_of in range(NONE, U(plan.hashes)):
        if number_of > NONE:
            again = finished(np.uint32(again + AGAIN))
        keys[count] = key_of_hash(again, value, plan)
        count += ONE
    return count


@inline
def put_name(column, negative, name, names, state):
    """Keeps a feature's name; False if there is no room.

    A name is one or two times group, beginning and end; of a second group that is none, once.
    """
    if U(state[NAMES]) >= U(names.columns.size):
        return False
    out = U(state[NAME_BYTES])
    if out + U(4) * MOST_OF_NAME + U(2) > U(names.text.size):
        return False
    for part in range(U(0), U(2)):
        group, at, end = name[0] if part == NONE else name[1]
        if group == NOBODY:
            break
        if part == ONE:
            names.text[out] = np.uint8(COLON)
            out += ONE
        first = NONE if group == NONE else U(names.prefix_ends[group - ONE])
        for k in range(first, min(U(names.prefix_ends[group]), first + MOST_OF_NAME)):
            names.text[out] = names.prefixes[k]
            out += ONE
        for k in range(at, min(end, at + MOST_OF_NAME)):
            names.text[out] = byte_at(k)
            out += ONE
    names.columns[U(state[NAMES])] = np.uint32(column << ONE) | np.uint32(negative)
    names.ends[U(state[NAMES])] = np.uint64(out)
    names.known[column] = np.uint8(1)
    state[NAMES] += np.uint64(1)
    state[NAME_BYTES] = np.uint64(out)
    return True


@seldom
def name_keys(keys, begin, end, flipped, name, names, state):
    """Names the columns of these keys, which are of one feature, where they have no name.

    `flipped` is 1 where its value is negative: a name has the sign of the hash alone.
    """
    for k in range(begin, end):
        column = U(keys[k] >> np.uint64(32))
        if names.known[column] == np.uint8(0):
            negative = U((keys[k] >> np.uint64(31)) & np.uint64(1)) ^ flipped
            if not put_name(column, negative, name, names, state):
                state[PROBLEM] = np.uint64(NAMES_FULL)


@always_inline
def add_feature(count, h, value, span, plan, scratch, names, groups, state):
    """Adds a feature of a group, whose bytes are a span; how many keys there are then."""
    group, at, end = span
    if count + U(plan.hashes) > U(scratch.keys.size):
        state[PROBLEM] = np.uint64(ROW_FULL)
        return count
    behind = put_feature(scratch.keys, count, h, value, plan)
    if plan.naming > NONE:
        flipped = U(value < np.float32(0))
        name = (group, at, end), (NOBODY, NONE, NONE)
        name_keys(scratch.keys, count, behind, flipped, name, names, state)
    if groups.interact[group] > np.uint8(0):
        place = U(state[FEATURES])
        if place >= U(scratch.hashes.size):
            state[PROBLEM] = np.uint64(ROW_FULL)
            return count
        scratch.hashes[place] = h
        scratch.values[place] = value
        scratch.owners[place] = np.uint32(group)
        scratch.name_begins[place] = np.uint64(at)
        scratch.name_ends[place] = np.uint64(end)
        state[FEATURES] += np.uint64(1)
    return behind


@inline
def add_characters(word, end, seed, count, group, plan, scratch, names, groups, state):
    """Adds runs of characters of a word, with the blanks before and behind it."""
    size = U(plan.least)
    while size <= U(plan.most):
        begin = word
        behind = word
        for _ in range(NONE, size):
            if behind < end:
                behind = after_character(behind)
        first = True
        while True:
            h = murmur(begin, behind, seed)
            span = group, begin, behind
            count = add_feature(count, h, np.float32(1), span, plan, scratch, names, groups, state)
            if behind >= end:
                break
            begin, behind = after_character(begin), after_character(behind)
            first = False
        if first:  # the whole word; more characters it does not have
            break
        size += ONE
    return count


@always_inline
def is_stop_word(h, stops):
    """Whether a hash is that of a stop word."""
    if stops.size == 0:
        return False
    mask = U(stops.size) - ONE
    place = U(h) & mask
    while stops[place] != np.uint64(0):
        if stops[place] == np.uint64(h) + np.uint64(1):
            return True
        place = (place + ONE) & mask
    return False


@always_inline
def put_wide(at, byte, out, tables, state):
    """Writes the character that begins at an address, as it is in words.

    Returns how many bytes it has, and how many were written: none of one that separates words.
    """
    code, width = character_at(at, byte)
    if width == NONE:
        if state[REPLACED] == np.uint64(0):
            state[WHERE] = np.uint64(at)
        state[REPLACED] += np.uint64(1)
        return ONE, NONE
    if width == U(4):  # beyond the tables: letters of old scripts, and pictures
        for k in range(NONE, width):
            put_byte(out + k, byte_at(at + k))
        return width, width
    becomes = tables.characters[code]
    if becomes == np.uint16(0):
        return width, NONE
    put_character(out, np.uint32(becomes), width)
    return width, width


@always_inline
def add_word(word, count, group, plan, scratch, names, groups, state):
    """Adds a word, the n-grams that it ends and its characters; how many keys there are then."""
    starts = scratch.starts
    end = U(starts[MOST_WORDS + word + ONE]) - ONE
    for less in range(NONE, min(U(plan.ngrams), word + ONE)):
        h = scratch.runs[less * LANES + word % LANES]
        span = group, U(starts[MOST_WORDS + word - less]), end
        count = add_feature(count, h, np.float32(1), span, plan, scratch, names, groups, state)
    if plan.most > NONE:
        seed = murmur_of_hash(CHARACTERS, groups.seeds[group])
        begin = U(starts[MOST_WORDS + word]) - ONE
        count = add_characters(
            begin, end + ONE, seed, count, group, plan, scratch, names, groups, state
        )
    return count


@always_inline
def add_runs(first, words, count, plan, scratch, state):
    """Adds LANES words from the first on, and the n-grams that they end; nothing else of them."""
    keys, runs = scratch.keys, scratch.runs
    if count + U(plan.ngrams) * LANES > U(keys.size):
        state[PROBLEM] = np.uint64(ROW_FULL)
        return count
    there = min(LANES, words - first)
    for less in range(NONE, U(plan.ngrams)):
        begin = less - min(less, first)  # before it there are too few words
        for lane in range(NONE, LANES):
            h = runs[less * LANES + lane]
            keys[count + lane] = key_of_hash(h, np.float32(1), plan)
        if begin > NONE:
            for lane in range(begin, there):
                keys[count + lane - begin] = keys[count + lane]
        count += there - min(begin, there)
    return count


@always_inline
def fill_starts(starts, words, out):
    """Words that are not there, before and behind: LANES of them are hashed at a time."""
    for k in range(NONE, MOST_WORDS):
        starts[k] = np.uint64(out)
    for k in range(MOST_WORDS + words, MOST_WORDS + words + LANES + ONE):
        starts[k] = np.uint64(out)


@inline
def find_words(at, end, out, tables, scratch, state):
    """Writes the words of a text to an address, with blanks before, between and behind them.

    AHEAD bytes are looked at a time: where a word begins is known soon after the one before.

    Returns how many there are, and where they end.
    """
    put_byte(out, SPACE)
    out += ONE
    word = out
    words = NONE
    folding = SPACE if tables.characters[U(65)] != np.uint16(65) else 0
    seen = at
    others = ~word_bytes(at)  # than letters, digits and underscores, from `seen` on
    while True:
        if at - seen >= AHEAD:
            seen = at
            others = ~word_bytes(at)
        left = min(seen + AHEAD, end) - at
        run = min(trailing_zeros(others >> (at - seen)), left)
        for k in range(NONE, run, RUN):
            put_run(at + k, out + k, np.uint8(folding))
        at += run
        out += run
        if at - seen == AHEAD and at < end:
            continue
        width = ONE
        if at < end and byte_at(at) >= np.uint8(0x80):
            width, written = put_wide(at, byte_at(at), out, tables, state)
            if written > NONE:
                at += width
                out += width
                continue
        if out > word:
            stops = tables.stops
            if stops.size > 0 and is_stop_word(murmur(word, out, np.uint32(0)), stops):
                out = word
            else:
                if words >= U(scratch.keys.size):
                    state[PROBLEM] = np.uint64(ROW_FULL)
                    break
                scratch.starts[MOST_WORDS + words] = np.uint64(word)
                words += ONE
                put_byte(out, SPACE)
                out += ONE
                word = out
        if at >= end:
            break
        at += width
    fill_starts(scratch.starts, words, out)
    put_byte(out, np.uint8(0))  # what an earlier row left may go on a character
    return words, out


@inline
def add_words(at, end, out, count, group, plan, tables, scratch, names, groups, state):
    """Adds the words of a text, their n-grams and runs of characters.

    All words are found before one is hashed: a processor waits if it reads bytes that it wrote in
    two steps just before. Returns how many keys there are then, and where the words end.
    """
    words, out = find_words(at, end, out, tables, scratch, state)
    starts, runs = address_of(scratch.starts), address_of(scratch.runs)
    alone = plan.hashes == 1 and plan.naming == 0 and plan.most == 0
    alone = alone and groups.interact[group] == np.uint8(0)
    for first in range(NONE, words, LANES):
        ends = starts + U(8) * (MOST_WORDS + first + ONE)
        for less in range(NONE, U(plan.ngrams)):
            begins, hashes = ends - U(8) * (less + ONE), runs + U(4) * LANES * less
            hash_runs(begins, ends, groups.seeds[group], hashes)
        if alone:
            count = add_runs(first, words, count, plan, scratch, state)
        else:
            for word in range(first, min(first + LANES, words)):
                count = add_word(word, count, group, plan, scratch, names, groups, state)
    return count, out


@always_inline
def group_features(features, scratch):
    """Lists the features that interact group by group, and where each group's end."""
    for group in range(NONE, U(scratch.bounds.size)):
        scratch.bounds[group] = np.uint32(0)
    for k in range(NONE, features):
        scratch.bounds[U(scratch.owners[k])] += np.uint32(1)
    place = np.uint32(0)
    for group in range(NONE, U(scratch.bounds.size)):
        size = scratch.bounds[group]
        scratch.bounds[group] = place
        place += size
    for k in range(NONE, features):
        group = U(scratch.owners[k])
        scratch.sorted[U(scratch.bounds[group])] = np.uint32(k)
        scratch.bounds[group] += np.uint32(1)


@always_inline
def add_pair(a, b, count, plan, scratch, names, state):
    """Adds the product of two features."""
    h = murmur_of_hash(scratch.hashes[b], scratch.hashes[a])
    value = scratch.values[a] * scratch.values[b]
    behind = put_feature(scratch.keys, count, h, value, plan)
    if plan.naming > NONE:
        name = (
            (U(scratch.owners[a]), U(scratch.name_begins[a]), U(scratch.name_ends[a])),
            (U(scratch.owners[b]), U(scratch.name_begins[b]), U(scratch.name_ends[b])),
        )
        flipped = U(value < np.float32(0))
        name_keys(scratch.keys, count, behind, flipped, name, names, state)
    return behind


@inline
def add_pairs(count, plan, scratch, names, groups, state):
    """Adds the products of the features of groups that interact."""
    group_features(U(state[FEATURES]), scratch)
    bounds = scratch.bounds
    for p in range(NONE, U(groups.pairs.size), U(2)):
        one, other = U(groups.pairs[p]), U(groups.pairs[p + ONE])
        begin = U(bounds[one - ONE]) if one > NONE else NONE
        first = U(bounds[other - ONE]) if other > NONE else NONE
        needed = (U(bounds[one]) - begin) * (U(bounds[other]) - first) * U(plan.hashes)
        if count + needed > U(scratch.keys.size):
            state[PROBLEM] = np.uint64(ROW_FULL)
            return count
        for i in range(begin, U(bounds[one])):
            for j in range(first, U(bounds[other])):
                a, b = U(scratch.sorted[i]), U(scratch.sorted[j])
                count = add_pair(a, b, count, plan, scratch, names, state)
    return count


@always_inline
def is_missing(at, end):
    """Whether a field of a number says that there is none."""
    if end - at > U(4):
        return False
    if at == end:
        return True
    word = first_bytes(at, end - at) | (SMALL >> ((U(8) - (end - at)) << U(3)))
    found = False
    for other in MISSING:
        found |= word == other
    return found


@seldom
def key_of_number(at, end, given, slot, numbers, state):
    """The key of a number with a point or a sign, of one that is missing, or of a given one."""
    value, behind = np.float64(given), end
    if end != NONE:
        if is_missing(at, end):
            return key_of(numbers + slot, np.float32(1))
        value, behind = number(at)
    if behind != end or (behind == NONE and end != NONE):
        state[PROBLEM] = np.uint64(NO_NUMBER)
    elif np.isnan(value):
        state[PROBLEM] = np.uint64(HARD_NUMBER)
    elif not abs(value) < FLOAT32_LIMIT:
        state[PROBLEM] = np.uint64(LARGE_NUMBER)
    return key_of(slot, np.float32(value))


@always_inline
def add_number(at, end, given, slot, count, plan, scratch, state):
    """Adds a number in a column of its own, or that it is missing in another one."""
    if count >= U(scratch.keys.size):
        state[PROBLEM] = np.uint64(ROW_FULL)
        return count
    numbers, size = U(plan.numbers), end - at
    short = False
    if end != NONE and size <= U(8):
        digits = word_at(at) ^ DIGITS
        short = digit_count(digits) >= size
    if short:
        # A short whole number, or nothing. No branch, since nobody can guess which
        empty = U(size == NONE)
        value = np.float32(digits_value(digits, size) + empty)
        scratch.keys[count] = key_of(slot + empty * numbers, value)
    else:
        scratch.keys[count] = key_of_number(at, end, given, slot, numbers, state)
    return count + ONE


@always_inline
def put_label(at, end, label, size, found):
    """Puts a label behind others, as text and as a number; how many bytes they all have."""
    value, behind = number(at)
    known = behind == end and abs(value) < np.inf
    found.label_numbers[label] = value if known else np.nan
    for k in range(at, end):
        found.labels[size] = byte_at(k)
        size += ONE
    found.label_ends[label] = np.uint64(size)
    return size


@always_inline
def weight_at(at, end, state):
    """A row's weight."""
    value, behind = number(at)
    if behind != end or not (0.0 <= value < FLOAT32_LIMIT):
        state[PROBLEM] = np.uint64(NO_NUMBER)
    return np.float32(value)


@always_inline
def sort_row(begin, end, plan, scratch):
    sort_keys(scratch.keys, scratch.spare, scratch.counts, begin, end, U(plan.digits))


@kernel(
    void(
        TEXT,
        type_of(Fields),
        uint64,
        type_of(Groups),
        type_of(Plan),
        type_of(Tables),
        type_of(Scratch),
        type_of(Names),
        type_of(Found),
        writable(uint64),
    ),
    fast=False,
)
def hash_rows(  # noqa: PLR0912, PLR0915
    text, fields, rows, groups, plan, tables, scratch, names, found, state
):
    """Hashes the rows that are left of some, until something is full or wrong.

    The state says which row is next, how many entries, labels and names there are, and why it
    stopped; where something is wrong, the number of the field, or a place in the text.
    """
    start = address_of(text)
    row = U(state[ROW])
    place = U(state[PLACE])
    state[PROBLEM] = np.uint64(DONE)
    while row < U(rows):
        first = U(fields.row_ends[row - ONE]) if row > NONE else NONE
        out = address_of(scratch.words)
        count = NONE
        counting = U(COUNTS)  # of what is not counted by itself
        labels, label_bytes = U(state[LABELS]), U(state[LABEL_BYTES])
        replaced = state[REPLACED]
        state[FEATURES] = np.uint64(0)
        weight = np.float32(1)
        for field in range(first, U(fields.row_ends[row])):
            group = U(fields.groups[field])
            kind = groups.kinds[group]
            end = U(fields.ends[field])
            at, behind = start + U(fields.begins[field]), start + end
            if kind == WORDS:
                before = count
                count, out = add_words(
                    at, behind, out, count, group, plan, tables, scratch, names, groups, state
                )
                if before == NONE and field + ONE == U(fields.row_ends[row]):
                    counting = U(plan.counting)
                if counting == U(COUNTS) or state[FEATURES] > np.uint64(0):
                    sort_row(before, count, plan, scratch)
                    count = add_repeated(
                        scratch.keys, before, count, U(plan.reserved), plan.counting, tables.logs
                    )
                    counting = U(COUNTS)
            elif kind == NUMBER:
                behind = NONE if end == NONE else behind
                given, slot = fields.values[field], U(groups.slots[group])
                count = add_number(at, behind, given, slot, count, plan, scratch, state)
            elif kind == LABEL:
                label_bytes = put_label(at, behind, labels, label_bytes, found)
                labels += ONE
                if at == behind:
                    state[PROBLEM] = np.uint64(NO_LABEL)
            elif kind == WEIGHT:
                weight = weight_at(at, behind, state)
            elif kind != IGNORED:
                value = fields.values[field] if kind == VALUED else np.float32(1)
                h, span = murmur(at, behind, groups.seeds[group]), (group, at, behind)
                count = add_feature(count, h, value, span, plan, scratch, names, groups, state)
            if state[PROBLEM] != np.uint64(DONE):
                state[WHERE] = np.uint64(field)
                break
        if state[PROBLEM] == np.uint64(DONE) and state[FEATURES] > np.uint64(0):
            count = add_pairs(count, plan, scratch, names, groups, state)
        if state[PROBLEM] != np.uint64(DONE):
            state[REPLACED] = replaced
            break
        if plan.strict > NONE and state[REPLACED] > replaced:
            state[PROBLEM] = np.uint64(DAMAGED)
            state[WHERE] -= np.uint64(start)
            break
        if place + count > U(found.indices.size):
            state[PROBLEM] = np.uint64(OUT_FULL)
            state[WHERE] = np.uint64(count)
            state[REPLACED] = replaced
            break
        sort_row(NONE, count, plan, scratch)
        place = put_row(scratch.keys, count, place, counting, plan, tables.logs, found)
        found.row_ends[row] = np.uint64(place)
        found.row_labels[row] = np.uint64(labels)
        found.weights[row] = weight
        state[LABELS] = np.uint64(labels)
        state[LABEL_BYTES] = np.uint64(label_bytes)
        row += ONE
        state[ROW] = np.uint64(row)
        state[PLACE] = np.uint64(place)


# Sums over rows in compressed form, for column weights that depend on all rows
ENTRIES = readonly(uint32), readonly(float32)


@kernel(void(readonly(uint32), writable(uint32)), fast=False)
def count_columns(indices, counts):
    """Adds to how many rows have each column."""
    for k in range(NONE, U(indices.size)):
        counts[U(indices[k])] += np.uint32(1)


@kernel(void(*ENTRIES, readonly(float64), *[writable(float64)] * 2, writable(uint64)), fast=False)
def sum_numbers(indices, values, means, sums, squares, counts):
    """Adds to sums and squares of what is above the means, in the first columns, and counts."""
    for k in range(NONE, U(indices.size)):
        column = U(indices[k])
        if column < U(means.size):
            above = np.float64(values[k]) - means[column]
            sums[column] += above
            squares[column] += above * above
            counts[column] += np.uint64(1)


@kernel(
    void(
        readonly(uint64),
        uint64,
        uint64,
        readonly(uint32),
        writable(float32),
        UniTuple(readonly(float64), 2),
        readonly(float32),
        boolean,
    ),
    fast=False,
)
def weigh_rows(indptr, begin, end, indices, values, numbers, idf, norm):
    """Scales the numbers in the first columns, multiplies by the idf, scales rows to norm 1.

    value <- (value - mean) * scale, or value * idf;  row <- row / |row|
    """
    means, scales = numbers
    for row in range(U(begin), U(end)):
        total = 0.0
        for k in range(U(indptr[row]), U(indptr[row + ONE])):
            column = U(indices[k])
            value = np.float64(values[k])
            if column < U(means.size):
                value = (value - means[column]) * scales[column]
            elif idf.size > 0:
                value *= np.float64(idf[column])
            values[k] = np.float32(value)
            total += value * value
        if norm and total > 0.0:
            factor = 1.0 / np.sqrt(total)
            for k in range(U(indptr[row]), U(indptr[row + ONE])):
                values[k] = np.float32(np.float64(values[k]) * factor)
