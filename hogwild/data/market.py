"""Matrix Market files: a sparse matrix of users by items as text, with places instead of ids.

The ids are the numbers of rows and columns from 0 on, as in scipy; the text counts from 1. Read are
coordinates with real, integer or pattern values (of which each is 1), general and not symmetric.
"""

from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from hogwild.data.columns import Layout
from hogwild.data.delimited import Parsed, write_lines
from hogwild.data.ids import BadIdError, Codes, Ids
from hogwild.data.ratings import Ratings
from hogwild.data.svmlight import blocks_of
from hogwild.data.texts import Texts, written
from hogwild.errors import DataError, OptionError

if TYPE_CHECKING:
    from hogwild.data.files import Source

FIELDS = ("real", "double", "integer", "pattern")
FIRST_LINE = "%%MatrixMarket matrix coordinate real general"


class PlaceColumn:
    """Places from 1 to a limit; their codes are one less."""

    def __init__(self, role: str, limit: int) -> None:
        self.role = role
        self.limit = limit

    def add(self, given: Texts, codes: Codes) -> None:
        """Writes the codes; refuses what is out of range."""
        numbers, whole = given.numbers()
        good = whole & (numbers >= 1) & (numbers <= self.limit)
        if not good.all():
            at = int(np.argmin(good))
            raise BadIdError(
                at,
                f"the {self.role} {given.part(at, at + 1).tolist()[0]!r} is not a whole number "
                f"from 1 to {self.limit}, as the size at the top says",
            )
        np.subtract(numbers, 1, out=codes, casting="unsafe")


def read(source: "Source", *, columns: Any, values: bool) -> Ratings:
    """Reads a file; pairs without values if it is asked to."""
    name = str(source.path)
    if columns is not None:
        raise OptionError(f"{name}: columns is for delimited text; a matrix's have their places")
    head = _Head(name)
    parsed: Parsed | None = None
    for text, size in blocks_of(source.file):
        begin = 0 if parsed else head.take(text, size)
        if parsed is None and head.complete:
            layout = Layout(b" ", (0, 1, 2)[: 2 + (values and head.valued)], False)
            places = PlaceColumn("row", head.shape[0]), PlaceColumn("column", head.shape[1])
            parsed = Parsed(name, layout, places)
            parsed.line = head.line
        if parsed:
            parsed.take(text, begin, size)
    if parsed is None:
        raise DataError(f"{name}: ends before the size of the matrix: rows, columns, entries")
    if parsed.count != head.entries:
        raise DataError(
            f"{name}: has {parsed.count:,} entries, but {head.entries:,} are announced at the "
            "top; get it anew"
        )
    users, items, given = parsed.arrays()
    if values and given is None:
        given = np.ones(len(users), np.float32)
    ids = Ids.numbered(head.shape[0]), Ids.numbered(head.shape[1])
    return Ratings.from_codes(users, items, given, *ids, name=name)


class _Head:
    """What stands above the entries: the kind of matrix, comments, and the size."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.line = 0
        self.shape = (0, 0)
        self.entries = 0
        self.complete = False
        self.valued = True

    def take(self, text: bytearray, size: int) -> int:
        """Reads on to the size; where it stopped."""
        at = 0
        while at < size and not self.complete:
            end = text.index(b"\n", at)
            self.line += 1
            line = bytes(text[at:end]).decode("utf-8", "replace").strip()
            at = end + 1
            if self.line == 1:
                self._take_kind(line.lower().split())
            elif line and not line.startswith("%"):
                self._take_size(line.split())
        return at

    def _take_kind(self, words: list[str]) -> None:
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise DataError(
                f"{self.name}: is not a Matrix Market file; expected a first line like {FIRST_LINE}"
            )
        form, field, symmetry = words[2:]
        if form != "coordinate" or field not in FIELDS or symmetry != "general":
            raise DataError(
                f"{self.name}: line 1: a matrix that is {form}, {field}, {symmetry}; expected "
                f"coordinate, one of {', '.join(FIELDS)}, and general"
            )
        self.valued = field != "pattern"

    def _take_size(self, words: list[str]) -> None:
        if len(words) != 3 or not all(word.isascii() and word.isdecimal() for word in words):
            raise DataError(
                f"{self.name}: line {self.line}: {' '.join(words)[:40]!r} is not a size; expected "
                "the numbers of rows, columns and entries"
            )
        rows, columns, self.entries = map(int, words)
        self.shape = rows, columns
        self.complete = True


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
