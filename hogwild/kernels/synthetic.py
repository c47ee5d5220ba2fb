"""Drawing the rows of synthetic text. A row is a function of its number alone: no state, no order.

`fast` is always off: the order of every sum is fixed, so the same source gives the same bytes.
"""

import numpy as np
from numba.types import Tuple, UniTuple, float32, float64, int8, uint8, uint32, uint64, void

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import (
    TWO32,
    U,
    random_below,
    random_share,
    random_word,
    readonly,
    scramble,
    trailing_zeros,
    writable,
)

MOST_REPEATS = 255
ONE = np.uint64(1)
LOW6 = np.uint64(63)


@inline
def normal(word):
    """A standard normal number from one random word (Box and Muller 1958)."""
    radius = np.sqrt(-2.0 * np.log((np.float64(word >> np.uint64(32)) + 0.5) / TWO32))
    turn = np.float64(word & np.uint64(0xFFFFFFFF)) / TWO32
    return radius * np.cos(2.0 * np.pi * turn)


@inline
def alias_entry(share, other):
    """Upper half: the share of a slot that is its own, in 2^-32; lower half: whose the rest is."""
    own = np.uint64(min(max(share * TWO32, 0.0), TWO32 - 1.0))
    return (own << np.uint64(32)) | np.uint64(other)


@kernel(void(readonly(float64), readonly(uint32), writable(uint64)), fast=False)
def fill_alias_table(odds, column_of, table):
    """Walker's table (1977): a slot for each column, filled up to 1 by a column that has more.

    `odds`, by falling rank, have the mean 1. The richest gives to the poorest until it has less
    than 1 itself; then the next richest fills it up.
    """
    giver = U(0)
    poorest = U(odds.size) - U(1)
    left = odds[giver]
    while giver < poorest:
        if left >= 1.0:
            table[column_of[poorest]] = alias_entry(odds[poorest], column_of[giver])
            left -= 1.0 - odds[poorest]
            poorest -= U(1)
        else:
            table[column_of[giver]] = alias_entry(left, column_of[giver + U(1)])
            left += odds[giver + U(1)] - 1.0
            giver += U(1)
    table[column_of[giver]] = alias_entry(1.0, column_of[giver])


@inline
def draw_column(word, table):
    """A column from the upper half of a random word, or the one that shares its slot."""
    slot = random_below(word, table.size)
    entry = table[slot]
    own = (word & np.uint64(0xFFFFFFFF)) < (entry >> np.uint64(32))
    return slot if own else entry & np.uint64(0xFFFFFFFF)


@kernel(void(uint64, uint64, UniTuple(float64, 3), writable(uint64)), fast=False)
def draw_lengths(key, first_row, shape, lengths):
    """length = median exp(sigma z), rounded, at least 1 and at most `longest`."""
    median, sigma, longest = shape
    for i in range(U(0), U(lengths.size)):
        z = normal(random_word(key, first_row + np.uint64(i)))
        length = np.floor(median * np.exp(sigma * z) + 0.5)
        lengths[i] = np.uint64(min(max(length, 1.0), longest))


@inline
def put_in_bag(bits, words, column):
    """Sets the bit of a column, and that of its 64 bits; whether it was not there yet."""
    where, bit = column >> np.uint64(6), ONE << (column & LOW6)
    new = (bits[where] & bit) == np.uint64(0)
    bits[where] |= bit
    words[column >> np.uint64(12)] |= ONE << (where & LOW6)
    return new


@inline
def list_bag(bits, words, indices, at):
    """Takes all columns out of a bag, and writes them in rising order; returns where they end."""
    for block in range(U(0), U(words.size)):
        outer = words[block]
        words[block] = np.uint64(0)
        while outer != np.uint64(0):
            where = (np.uint64(block) << np.uint64(6)) + trailing_zeros(outer)
            outer &= outer - ONE
            inner = bits[where]
            bits[where] = np.uint64(0)
            while inner != np.uint64(0):
                indices[at] = np.uint32((where << np.uint64(6)) + trailing_zeros(inner))
                inner &= inner - ONE
                at += U(1)
    return at


@inline
def draw_bag(key, lean, length, tables, bag):
    """Draws columns until `length` different ones are in the bag.

    A drawn column stands there once, twice, three times, ... with odds that halve. Its opposite
    takes its place where that fits better with what the row leans to.
    """
    repeats, bits, words = bag
    table, opposite, weights = tables
    found = U(0)
    counter = np.uint64(0)
    while found < length:
        word = random_word(key, counter)
        counter += ONE
        column = np.uint64(draw_column(word, table))
        against = np.float64(weights[column]) * lean < 0.0
        if against and random_share(scramble(word)) < abs(lean):
            column = np.uint64(opposite[column])
        before = U(repeats[column])
        found += U(before == U(0))
        repeats[column] = min(before + U(1) + U(trailing_zeros(word)), U(MOST_REPEATS))
        put_in_bag(bits, words, column)


@inline
def empty_bag(bag, begin, of_column, indices, values):
    """Writes the bag's columns in rising order, scales the row to norm 1, returns its score.

    value = log(1 + repeats) * rarity / norm;  score = sum of value * weight
    """
    repeats, bits, words = bag
    rarity, weights, logs = of_column
    at = list_bag(bits, words, indices, begin)
    squares = 0.0
    score = 0.0
    for k in range(begin, at):
        column = U(indices[k])
        value = logs[repeats[column]] * rarity[column]
        repeats[column] = np.uint8(0)
        values[k] = value
        squares += np.float64(value) * np.float64(value)
        score += np.float64(value) * np.float64(weights[column])
    scale = 1.0 / np.sqrt(squares)
    for k in range(begin, at):
        values[k] *= np.float32(scale)
    return score * scale


@kernel(
    void(
        UniTuple(uint64, 4),
        UniTuple(float64, 2),
        Tuple((readonly(uint64), readonly(uint32), UniTuple(readonly(float32), 3))),
        Tuple((writable(uint8), writable(uint64), writable(uint64))),
        Tuple((readonly(uint64), writable(uint32), writable(float32), writable(int8))),
    ),
    fast=False,
)
def draw_rows(source, degrees, tables, bag, rows):
    """Fills the rows' indices and values, and label = sign(score + noise z).

    A row leans to one class or the other, by up to `leaning`.
    """
    column_key, lean_key, label_key, first_row = source
    leaning, noise = degrees
    alias_table, opposite, of_column = tables
    drawing = alias_table, opposite, of_column[1]
    indptr, indices, values, y = rows
    for i in range(U(0), U(y.size)):
        row = first_row + np.uint64(i)
        begin = U(indptr[i])
        lean = leaning * (np.float64(random_word(lean_key, row) >> np.uint64(31)) / TWO32 - 1.0)
        draw_bag(random_word(column_key, row), lean, U(indptr[i + U(1)]) - begin, drawing, bag)
        score = empty_bag(bag, begin, of_column, indices, values)
        score += noise * normal(random_word(label_key, row))
        y[i] = np.int8(1) if score >= 0.0 else np.int8(-1)
