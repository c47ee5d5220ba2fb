"""Rows in shapes that ask different things of several workers, from text to dense tables.

Every generator takes (rows, seed) and gives the same rows for the same arguments. Values are
float32, every row has the norm 1, and no column stands in a row twice. A label is the sign of the
row's product with planted weights; NOISE of the labels are then flipped. Row i depends on i and
the seed only, never on how many rows there are.

    rcv1     text, as `hogwild.data.synthetic.rcv1` draws it: 47,236 columns, 77 non-zeros a row
    wide     hashed text: 1,048,576 columns by Zipf's law, 100 non-zeros in each row; a common
             column is in a third of the rows, most are in few
    uniform  65,536 columns, all used alike, 30 in each row: the weights fit into a cache
    sparse   4,194,304 columns, all used alike, 30 in each row: the weights fit into none
    dense    200 columns, 50 of them in each row: every two rows meet
    onehot   39 fields, one value of each in each row, hashed to 1,048,576 columns; by Zipf's law
             within a field. Fields have from 4 values to 266,000: a few columns are in a third of
             the rows

`table` draws a table of numbers, whose columns have very different sizes. `ratings` draws
MovieLens-shaped ratings.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from hogwild import Ratings, Rows
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import (
    U,
    random_below,
    random_share,
    random_word,
    readonly,
    scramble,
    writable,
)
from hogwild.kernels.synthetic import list_bag, normal, put_in_bag

NOISE = 0.06  # share of the labels that are flipped
ONE = np.uint64(1)

DEFAULT_RATINGS = 1_000_000
# As in MovieLens: ratings of a user, and items, which grow as the root of the ratings
PER_USER = 165
ITEMS, ITEMS_AT = 3_706, 1_000_209


class Shape(NamedTuple):
    """What rows look like.

    Attributes:
        columns: how many there are; a power of two, where they are hashed.
        nonzeros: of each row.
        shift: of Zipf's law by Mandelbrot: a column of rank r (from 0) is drawn with odds of
            about 1 / (shift + r + 1/2); 0: all columns are drawn alike.
        fields: into how many disjoint sets columns fall, of which a row has one each; their sizes
            grow from SMALLEST by the same factor.
        values: what they are before a row is scaled: "ones", "spread" from 1/2 to 3/2 or "normal".
    """

    columns: int
    nonzeros: int
    shift: float = 0.0
    fields: int = 1
    values: str = "spread"


SMALLEST = 4.0
VALUES = ("ones", "spread", "normal")

GENERATED = {
    "wide": Shape(1 << 20, 100, shift=20.0),
    "uniform": Shape(1 << 16, 30),
    "sparse": Shape(1 << 22, 30),
    "dense": Shape(200, 50, values="normal"),
    "onehot": Shape(1 << 20, 39, shift=1.0, fields=39, values="ones"),
}


@inline
def fill_bag(row_key: Any, sizes: Any, law: Any, starts: Any, bag: Any) -> None:
    """Puts so many different columns into a bag of a bit for each."""
    columns, nonzeros = sizes
    shift, odd, offset = law
    bits, words = bag
    fields = U(starts.size) - U(1)
    counter = np.uint64(0)
    found = U(0)
    while found < nonzeros:
        word = random_word(row_key, counter)
        counter += ONE
        column = random_below(word, columns)
        if shift > 0.0:
            begin, end = starts[found % fields], starts[found % fields + U(1)]
            # Whose logarithm is uniform: Zipf's law
            grown = shift * np.exp(random_share(word) * np.log((shift + end - begin) / shift))
            rank = begin + min(np.floor(grown - shift), end - begin - 1.0)
            column = (np.uint64(rank) * odd + offset) & (columns - ONE)
        found += U(put_in_bag(bits, words, column))


@inline
def drawn_value(row_key: Any, column: Any, kind: Any) -> Any:
    """A value before its row is scaled; `kind` is a place in VALUES."""
    if kind == np.uint64(0):
        return 1.0
    word = scramble(row_key ^ (column + ONE))
    return 0.5 + random_share(word) if kind == ONE else normal(word)


@inline
def empty_bag(row_key: Any, kind: Any, weights: Any, bag: Any, at: Any, row: Any) -> Any:
    """Writes the bag's columns in rising order, with values of norm 1; returns the score's sign."""
    bits, words = bag
    indices, values = row
    begin = at
    at = list_bag(bits, words, indices, begin)
    squares = score = 0.0
    for k in range(begin, at):
        column = np.uint64(indices[k])
        value = drawn_value(row_key, column, kind)
        values[k] = np.float32(value)
        squares += value * value
        score += value * np.float64(weights[column])
    scale = 1.0 / np.sqrt(squares)
    for k in range(begin, at):
        values[k] = np.float32(np.float64(values[k]) * scale)
    return score >= 0.0


@kernel(
    types.void(
        types.uint64,
        types.Tuple((types.uint64, types.uint64, types.uint64)),
        types.Tuple((types.float64, types.uint64, types.uint64)),
        types.Tuple((readonly(types.float64), readonly(types.float32))),
        types.Tuple((writable(types.uint64), writable(types.uint64))),
        types.Tuple((writable(types.uint32), writable(types.float32), writable(types.int8))),
    ),
    fast=False,
)
def draw(key: Any, shape: Any, law: Any, tables: Any, bag: Any, rows: Any) -> None:
    """Fills indices, values and labels of rows that all have as many non-zeros."""
    columns, nonzeros, kind = shape
    starts, weights = tables
    indices, values, y = rows
    for i in range(U(0), U(y.size)):
        row_key = random_word(key, i)
        fill_bag(row_key, (columns, nonzeros), law, starts, bag)
        at = i * U(nonzeros)
        positive = empty_bag(row_key, kind, weights, bag, at, (indices, values))
        flipped = random_share(scramble(row_key)) < NOISE
        y[i] = np.int8(1) if positive != flipped else np.int8(-1)


def generate(name: str, shape: Shape, rows: int, seed: int) -> Rows:
    """Draws so many rows of a shape."""
    keys = random_word(seed, np.arange(1, 5, dtype=np.uint64))
    odd, offset = int(keys[1]) | 1, int(keys[2])
    starts = _field_starts(shape)
    indptr = np.arange(rows + 1, dtype=np.uint64) * np.uint64(shape.nonzeros)
    arrays = (
        np.empty(rows * shape.nonzeros, np.uint32),
        np.empty(rows * shape.nonzeros, np.float32),
        np.empty(rows, np.int8),
    )
    bag = np.zeros(shape.columns // 64 + 1, np.uint64), np.zeros(shape.columns // 4096 + 1, "u8")
    draw(
        int(keys[0]),
        (shape.columns, shape.nonzeros, VALUES.index(shape.values)),
        (shape.shift, odd, offset),
        (starts, _planted_weights(int(keys[3]), shape, odd, offset)),
        bag,
        arrays,
    )
    indices, values, y = arrays
    called = f"synthetic {name} (seed {seed})"
    return Rows.from_arrays(indptr, indices, values, shape.columns, y, name=called)


def _field_starts(shape: Shape) -> npt.NDArray[np.float64]:
    """Where in the ranks each field begins, and where the last ends."""
    if shape.fields == 1:
        return np.array([0.0, shape.columns])
    low, high = 1.0, 2.0
    powers = np.arange(shape.fields)
    for _ in range(64):
        middle = (low + high) / 2
        fits = (SMALLEST * middle**powers).sum() <= shape.columns
        low, high = (middle, high) if fits else (low, middle)
    ends = np.floor(np.cumsum(SMALLEST * low**powers))
    return np.concatenate([[0.0], ends])


def _planted_weights(key: int, shape: Shape, odd: int, offset: int) -> npt.NDArray[np.float32]:
    """Normal, in pairs of w and -w for neighbors in frequency, which balances the classes."""
    ranks = np.arange(shape.columns, dtype=np.uint64)
    drawn = normal(random_word(key, ranks >> ONE))
    column = ranks
    if shape.shift:  # as the kernel hashes
        column = (ranks * np.uint64(odd) + np.uint64(offset)) & np.uint64(shape.columns - 1)
    weights = np.empty(shape.columns, np.float32)
    weights[column] = np.where(ranks % 2 == 0, drawn, -drawn)
    return weights


def _rcv1(rows: int, seed: int) -> Rows:
    return rcv1(rows, seed=seed)[0]


SHAPES: dict[str, Callable[[int, int], Rows]] = {
    "rcv1": _rcv1,
    **{name: partial(generate, name, shape) for name, shape in GENERATED.items()},
}
DEFAULT_ROWS = {name: 781_265 if name == "rcv1" else 1_000_000 for name in SHAPES}


def ratings(count: int, seed: int) -> Ratings:
    """So many ratings in MovieLens's shape; with 1,000,000 about as many users and items as 1M."""
    users = max(1, count // PER_USER)
    items = max(2, round(ITEMS * (count / ITEMS_AT) ** 0.5))
    return movielens(users, items, count, seed)[0]


def table(rows: int, columns: int, seed: int) -> Rows:
    """Dense rows; a column's standard deviation is exp(2 z), its mean z, with z from N(0, 1).

    A label is the sign of a planted score with noise of half its size, from its median.
    """
    random = np.random.default_rng(seed)
    sizes, means = np.exp(2 * random.normal(size=columns)), random.normal(size=columns)
    X = random.normal(size=(rows, columns)) * sizes + means
    scores = X @ (random.normal(size=columns) / sizes / np.sqrt(columns))
    scores += 0.5 * random.normal(size=rows)
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    return Rows(X.astype(np.float32), y, name=f"table (seed {seed})")
