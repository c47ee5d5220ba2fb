"""Matrix Market files: a sparse matrix of users by items as text, with places instead of ids.

The ids are the numbers of rows and columns from 0 on, as in scipy; the text counts from 1. Only
general matrices in coordinate form are read, with real, integer or pattern values; a pattern value
is 1.
"""

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hogwild.data.columns import Layout
from hogwild.data.delimited import Reader, write_lines
from hogwild.data.ids import UNKNOWN, BadIdError, Codes, Ids
from hogwild.data.pieces import read_pieces
from hogwild.data.ratings import Ratings
from hogwild.data.sets import name_of
from hogwild.data.sources import Piece
from hogwild.data.texts import Texts, written
from hogwild.errors import DataError, OptionError

DIGITS = 18  # of a number, at most, that 64 bits hold in any case
FIELDS = ("real", "double", "integer", "pattern")
FIRST_LINE = "%%MatrixMarket matrix coordinate real general"
NO_MATRIX = f"is not a Matrix Market file; expected a first line like {FIRST_LINE}"


class _Places:
    """A column of places from 1 to a limit, whose codes are one less; others are refused.

    Each piece of text has a copy, which knows where to write the codes.
    """

    def __init__(self, role: str) -> None:
        self.role = role
        self.limit = 0
        self._codes: Codes = np.empty(0, np.uint32)

    def begin(self, codes: Codes) -> "_Places":
        """For the places in one more piece, and room for their codes."""
        piece = copy(self)
        piece._codes = codes
        return piece

    def add(self, given: Texts) -> None:
        """Adds places as they stand in the text."""
        numbers, whole = given.numbers()
        good = whole & (numbers >= 1) & (numbers <= self.limit)
        if not good.all():
            at = int(np.argmin(good))
            raise BadIdError(
                at,
                f"the {self.role} {given.shown(at)!r} is not a whole number "
                f"from 1 to {self.limit}, as the size at the top says",
            )
        np.subtract(numbers, 1, out=self._codes[: len(given)], casting="unsafe")
        self._codes = self._codes[len(given) :]

    def needs_codes(self, piece: "_Places") -> bool:
        """Never: places are codes."""
        return False

    def take(self, piece: "_Places") -> None:
        """Nothing is to be put for the codes of a piece."""


class _Matrix(Reader):
    """The entries of a matrix, and what stands above them."""

    def __init__(self, path: Path, values: bool) -> None:
        self.places = _Places("row"), _Places("column")
        super().__init__([path], self.places)
        self.valued = values
        self.entries = 0
        self.line = 0

    def head(self, piece: Piece) -> tuple[int, Layout | None]:
        """Reads on until the size of the matrix is known, below comments."""
        at = piece.begin
        while self.layout is None and at < piece.end:
            end = piece.text.index(b"\n", at) + 1
            self.line += 1
            self._take_head(piece.name, bytes(piece.text[at:end]).decode("utf-8", "replace"))
            at = end
        return at, self.layout

    def _take_head(self, name: str, text: str) -> None:
        words = text.split()
        if self.line == 1:
            self.valued &= _has_values(name, text.lower().split())
        elif words and not words[0].startswith("%"):
            self.places[0].limit, self.places[1].limit, self.entries = _size(name, self.line, words)
            self.layout = Layout(b" ", (0, 1, 2)[: 2 + self.valued], False)


def read(paths: Sequence[Path], *, columns: Any, values: bool, threads: int | None) -> Ratings:
    """Reads a file; pairs without values if it is asked to."""
    name = name_of(paths)
    if columns is not None:
        raise OptionError(f"{name}: columns is for delimited text; a matrix's have their places")
    if len(paths) > 1:
        raise DataError(f"{name}: several matrices are not one data set; text may be several files")
    matrix = _Matrix(paths[0], values)
    read_pieces(paths, matrix, threads)
    if matrix.layout is None:
        what = "ends before the size of the matrix: rows, columns, entries"
        raise DataError(f"{name}: {what if matrix.line else NO_MATRIX}")
    users, items, given = matrix.arrays.cut()
    if len(users) != matrix.entries:
        raise DataError(
            f"{name}: has {len(users):,} entries, but {matrix.entries:,} are announced at the "
            "top; get it anew"
        )
    if values and not matrix.valued:
        given = np.ones(len(users), np.float32)
    numbered = (Ids.numbered(places.limit) for places in matrix.places)
    return Ratings.from_codes(users, items, given if values else None, *numbered, name=name)


def _size(name: str, line: int, words: list[str]) -> tuple[int, int, int]:
    """Rows, columns and entries."""
    if len(words) != 3 or not all(word.isascii() and word.isdecimal() for word in words):
        raise DataError(
            f"{name}: line {line}: {' '.join(words)[:40]!r} is not a size; expected "
            "the numbers of rows, columns and entries"
        )
    if max(map(len, words)) > DIGITS:
        raise DataError(f"{name}: line {line}: the size {max(words, key=len)[:40]} is too large")
    rows, columns, entries = map(int, words)
    for count, what in ((rows, "rows"), (columns, "columns")):
        if count > UNKNOWN:
            raise DataError(f"{name}: line {line}: {count:,} {what}; at most 2^32 - 1 can be held")
    return rows, columns, entries


def _has_values(name: str, words: list[str]) -> bool:
    """Whether a matrix of the kind that the first line names has values."""
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise DataError(f"{name}: {NO_MATRIX}")
    form, field, symmetry = words[2:]
    if form != "coordinate" or field not in FIELDS or symmetry != "general":
        raise DataError(
            f"{name}: line 1: a matrix that is {form}, {field}, {symmetry}; expected "
            f"coordinate, one of {', '.join(FIELDS)}, and general"
        )
    return field != "pattern"


def write(ratings: Ratings, file: BinaryIO) -> None:
    """Writes ratings of users and items that are numbered from 0 on."""
    for ids, what in ((ratings.user_ids, "users"), (ratings.item_ids, "items")):
        if ids != Ids.numbered(len(ids)):
            raise DataError(
                f"{ratings.name}: a matrix holds no ids, and those of the {what} are not 0, 1, "
                "2 ...; save it as .csv or .npz"
            )
    field = "pattern" if ratings.values is None else "real"
    size = f"{ratings.shape[0]} {ratings.shape[1]} {len(ratings)}\n"
    file.write(f"{FIRST_LINE.replace('real', field)}\n{size}".encode())
    rows, columns = (written(np.arange(1, count + 1)) for count in ratings.shape)
    write_lines(ratings, rows, columns, b" ", file)
