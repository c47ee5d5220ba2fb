"""Matrix Market files: a sparse matrix of users by items as text, with places instead of ids.

The ids are the numbers of rows and columns from 0 on, as in scipy; the text counts from 1. Read are
coordinates with real, integer or pattern values (of which each is 1), general and not symmetric.
"""

from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hogwild.data.columns import Layout
from hogwild.data.delimited import Parsed, write_lines
from hogwild.data.ids import BadIdError, Codes, Ids
from hogwild.data.ratings import Ratings
from hogwild.data.svmlight import blocks_of
from hogwild.data.texts import Texts, written
from hogwild.errors import DataError, OptionError

FIELDS = ("real", "double", "integer", "pattern")
LONGEST = 1 << 20  # bytes of a line above the entries
FIRST_LINE = "%%MatrixMarket matrix coordinate real general"


def _add_places(role: str, limit: int, given: Texts, codes: Codes) -> None:
    """Writes the codes of places from 1 to a limit, which are one less; refuses other places."""
    numbers, whole = given.numbers()
    good = whole & (numbers >= 1) & (numbers <= limit)
    if not good.all():
        at = int(np.argmin(good))
        raise BadIdError(
            at,
            f"the {role} {given.part(at, at + 1).tolist()[0]!r} is not a whole number from 1 to "
            f"{limit}, as the size at the top says",
        )
    np.subtract(numbers, 1, out=codes, casting="unsafe")


def read(path: Path, file: BinaryIO, *, columns: Any, values: bool) -> Ratings:
    """Reads a file; pairs without values if it is asked to."""
    name = str(path)
    if columns is not None:
        raise OptionError(f"{name}: columns is for delimited text; a matrix's have their places")
    words = file.readline(LONGEST).decode("utf-8", "replace").lower().split()
    valued = values and _has_values(name, words)
    *shape, entries, line = _size(name, file)
    layout = Layout(b" ", (0, 1, 2)[: 2 + valued], False)
    coding = partial(_add_places, "row", shape[0]), partial(_add_places, "column", shape[1])
    parsed = Parsed(name, layout, coding)
    parsed.line = line
    for text, size in blocks_of(file):
        parsed.take(text, 0, size)
    if parsed.count != entries:
        raise DataError(
            f"{name}: has {parsed.count:,} entries, but {entries:,} are announced at the "
            "top; get it anew"
        )
    users, items, given = parsed.arrays()
    if values and given is None:
        given = np.ones(len(users), np.float32)
    return Ratings.from_codes(users, items, given, *map(Ids.numbered, shape), name=name)


def _size(name: str, file: BinaryIO) -> tuple[int, int, int, int]:
    """Rows, columns, entries, and the number of the line that says so, below comments."""
    line, words = 1, ["%"]
    while not words or words[0].startswith("%"):
        text = file.readline(LONGEST)
        if not text:
            raise DataError(f"{name}: ends before the size of the matrix: rows, columns, entries")
        line, words = line + 1, text.decode("utf-8", "replace").split()
    if len(words) != 3 or not all(word.isascii() and word.isdecimal() for word in words):
        raise DataError(
            f"{name}: line {line}: {' '.join(words)[:40]!r} is not a size; expected "
            "the numbers of rows, columns and entries"
        )
    rows, columns, entries = map(int, words)
    return rows, columns, entries, line


def _has_values(name: str, words: list[str]) -> bool:
    """Whether a matrix of the kind that the first line names has values."""
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise DataError(
            f"{name}: is not a Matrix Market file; expected a first line like {FIRST_LINE}"
        )
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
