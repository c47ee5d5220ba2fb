"""Delimited text of ratings: a rating a line, `user,item,value`, and more fields that are ignored.

A compiled kernel finds the fields, and another one gives codes to ids. A line that the first kernel
cannot read is read again here: it has a number that is hard to round, quotes within quotes, or a
mistake. The messages for mistakes are made here.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild.data.coding import IdColumn
from hogwild.data.columns import (
    Columns,
    Layout,
    Unclear,
    checked_columns,
    layout_like,
    layout_of,
    rating_of,
)
from hogwild.data.ids import BadIdError, Codes, Ids
from hogwild.data.pieces import Growing, Parser, Pool, get_ready, read_pieces, threads_for
from hogwild.data.ratings import Ratings
from hogwild.data.sets import name_of
from hogwild.data.sources import PIECE, Piece
from hogwild.data.texts import Texts
from hogwild.errors import DataError
from hogwild.kernels.delimited import (
    BLANKS,
    DOUBLE,
    SINGLE,
    VALUE_WIDTH,
    format_ratings,
    split_lines,
)
from hogwild.kernels.ids import recode, small_numbers
from hogwild.kernels.text import PADDING

LINES = 1 << 13  # parsed at a time: what is known of them stays in the cache
SAMPLE = 20  # lines that are looked at to find out what separates the fields
NO_PLACE = 2**64 - 1
WAYS = {b"::": DOUBLE, b" ": BLANKS}


KINDS = np.uint32, np.uint32, np.float32  # users, items, values
FEWEST = len("1,2\n")  # bytes for a rating

Scratch = tuple[Any, Any, Any, tuple[npt.NDArray[np.uint64], ...]]


def _counts(values: bool, text: bytes) -> tuple[int, int, int]:
    """How many users, items and values come of some text, about."""
    lines = text.count(b"\n")
    return lines, lines, lines * values


def _scratch(size: int) -> Scratch:
    """Room for the ratings in `size` bytes of text, and for the places of ids in some lines."""
    users, items, values = (np.empty(size // FEWEST + 2, kind) for kind in KINDS)
    return users, items, values, tuple(np.empty(LINES, np.uint64) for _ in range(4))


class _Found:
    """The ratings in a piece of text."""

    def __init__(self, piece: Piece, begin: int, layout: Layout, reader: "Reader") -> None:
        self._piece = piece
        self.layout = layout
        self.size = piece.end - begin
        self.count = 0
        self.scratch = reader.pool.get()
        if len(self.scratch[0]) < self.size // FEWEST + 2:
            self.scratch = _scratch(self.size)
        users, items, self.values, self._places = self.scratch
        self.columns = reader.columns[0].begin(users), reader.columns[1].begin(items)
        refuse_zero_bytes(piece, begin)
        at = begin
        while at < piece.end:
            at, full = self._take_lines(at)
            if at < piece.end and not full:
                end = piece.text.index(b"\n", at)
                self._take_line(at, bytes(piece.text[at:end]))
                at = end + 1

    def _take_lines(self, begin: int) -> tuple[int, bool]:
        """Adds the lines that the kernel can read; where it stopped, and whether room ran out."""
        array = self._piece.array
        separator, places, _ = self.layout
        how = separator[0], WAYS.get(separator, SINGLE), (*places, NO_PLACE)[:3]
        values = self.values[self.count :]
        given = array, begin, self._piece.end, *how, self._places, values
        stop, count, _ = split_lines(*given)
        try:
            self._add_ids(array, int(count))
        except BadIdError as bad:
            self._fail(int(self._places[0][bad.at]), bad)
        return int(stop), count == len(self._places[0])

    def _take_line(self, at: int, text: bytes) -> None:
        """Adds a line that the kernel left over, or raises what is wrong with it."""
        try:
            user, item, value = rating_of(text, self.layout)
            if len(self.layout.places) == 3:
                self.values[self.count] = value
            ends = 0, len(user), len(user), len(user + item)
            for places, place in zip(self._places, ends, strict=True):
                places[0] = place
            self._add_ids(np.frombuffer(user + item + bytes(PADDING), np.uint8), 1)
        except (Unclear, BadIdError) as problem:
            self._fail(at, problem)

    def _add_ids(self, text: npt.NDArray[np.uint8], count: int) -> None:
        """Adds the ids that were found in a text."""
        found = [places[:count] for places in self._places]
        bad: list[BadIdError] = []
        for column, ends in zip(self.columns, (found[:2], found[2:]), strict=True):
            try:
                column.add(Texts(text, *ends))
            except BadIdError as error:
                bad.append(error)
        if bad:
            raise min(bad, key=lambda error: error.at)
        self.count += count

    def _fail(self, at: int, problem: Exception) -> None:
        raise DataError(f"{self._piece.name}: line {self._piece.line_of(at)}: {problem}") from None


class Reader(Parser[_Found | None]):
    """All ratings so far. Until the layout of lines is known, pieces are parsed one by one."""

    def __init__(self, paths: Sequence[Path], columns: tuple[Any, Any]) -> None:
        self.alone = True
        self.layout: Layout | None = None
        self.columns = columns
        self.pool = Pool(lambda: _scratch(2 * PIECE))
        self.arrays = Growing(KINDS, paths)

    def head(self, piece: Piece) -> tuple[int, Layout | None]:
        """Where the ratings of a piece begin, and the layout of its lines, if that is known."""
        raise NotImplementedError

    def parse(self, piece: Piece) -> _Found | None:
        """The ratings in a piece; None where the layout is unknown."""
        begin, layout = self.head(piece)
        return None if layout is None else _Found(piece, begin, layout, self)

    def take(self, found: _Found | None) -> Callable[[], None] | None:
        """Says where the ratings of the next piece belong, and which codes its ids have."""
        if found is None:
            return None
        self.layout, self.alone = found.layout, False
        for place, (column, some) in enumerate(zip(self.columns, found.columns, strict=True)):
            if column.needs_codes(some):
                column.give_codes(self.arrays.settled()[place])
        codes = [
            column.take(some) for column, some in zip(self.columns, found.columns, strict=True)
        ]
        values = found.count if len(found.layout.places) == 3 else 0
        places = self.arrays.add((found.count, found.count, values), found.size)
        return partial(self._copy, found, places, codes)

    def _copy(self, found: _Found, places: list[int], codes: list[Codes | None]) -> None:
        with self.arrays.filling() as arrays:
            for array, place, given, new in zip(
                arrays[:2], places[:2], found.scratch[:2], codes, strict=True
            ):
                to = array[place : place + found.count]
                if new is None:
                    to[:] = given[: found.count]
                else:
                    recode(given[: found.count], new, to)
            values = arrays[2][places[2] : places[2] + found.count]
            values[:] = found.values[: len(values)]
        self.pool.put(found.scratch)


class _TextReader(Reader):
    """Ratings of text whose layout is found in its first lines."""

    def __init__(self, paths: Sequence[Path], columns: Columns | None, values: bool) -> None:
        super().__init__(paths, (IdColumn(), IdColumn()))
        self._wanted, self._valued = columns, values
        self._first = ""

    def head(self, piece: Piece) -> tuple[int, Layout | None]:
        """Looks at the first lines of a file: all files must have the layout of the first one."""
        if self.layout is not None and not piece.first:
            return piece.begin, self.layout
        begin = piece.start_of_text("delimited text")
        sample = list(islice(_lines(piece, begin), SAMPLE))
        if not sample:
            return begin, self.layout
        refuse_zero_bytes(piece, begin)
        lines = [bytes(piece.text[at : end - 1]) for at, end in sample]
        line, how = piece.line_of(sample[0][0]), (self._wanted, self._valued)
        if self.layout is None:
            layout = layout_of(Path(piece.name), lines, *how, line)
            self._first = piece.name
        else:
            layout = layout_like(self.layout, self._first, piece.name, lines, *how, line)
        return sample[0][layout.header], layout


def read(paths: Sequence[Path], *, columns: Any, values: bool, threads: int | None) -> Ratings:
    """Reads files as one; the layout is found in the first lines."""
    reader = _TextReader(paths, checked_columns(columns, values), values)
    get_ready([split_lines, small_numbers, recode], reader.arrays, paths, partial(_counts, values))
    read_pieces(paths, reader, threads)
    name = name_of(paths)
    users, items, given = reader.arrays.cut()
    if not len(users) or reader.layout is None:
        raise DataError(f"{name}: has no ratings in it; expected lines like 17,42,3.5")
    count = threads_for(paths) if threads is None else threads
    pairs = zip(reader.columns, (users, items), strict=True)
    ids = [column.ids(codes, count) for column, codes in pairs]
    return Ratings.from_codes(users, items, given if values else None, *ids, name=name)


def refuse_zero_bytes(piece: Piece, begin: int) -> None:
    """Refuses bytes that cannot be text."""
    zero = piece.text.find(b"\0", begin, piece.end)
    if zero >= 0:
        where = f"line {piece.line_of(zero)} has a zero byte"
        raise DataError(f"{piece.name}: is not text but binary ({where})")


def _lines(piece: Piece, begin: int) -> Iterator[tuple[int, int]]:
    """Where the lines that are not blank begin, and where the next ones do."""
    while begin < piece.end:
        end = piece.text.index(b"\n", begin) + 1
        if piece.text[begin:end].strip():
            yield begin, end
        begin = end


WRITTEN = 1 << 16  # ratings at a time
BUFFER = 1 << 26  # bytes for them, if one of them takes no more
SPECIAL = b',;\t"\r'  # what may end a field, or begin one that is quoted
UNWRITABLE = {b"\n": "the end of a line", b"\0": "a zero byte"}


def write(ratings: Ratings, file: BinaryIO, *, separator: bytes) -> None:
    """Writes ratings, every value with the fewest digits that are read back to the same bits.

    If all ids look like whole numbers, they become numbers when they are read back.
    """
    header = [b"user", b"item", b"rating"][: 2 + (ratings.values is not None)]
    file.write(separator.join(header) + b"\n")
    texts = [_writable(ids, ratings.name) for ids in (ratings.user_ids, ratings.item_ids)]
    write_lines(ratings, texts[0], texts[1], separator, file)


def write_lines(
    ratings: Ratings, users: Texts, items: Texts, separator: bytes, file: BinaryIO
) -> None:
    """Writes ratings with these texts for their users and items."""
    longest = sum(int((texts.ends - texts.begins).max(initial=0)) for texts in (users, items))
    width = longest + VALUE_WIDTH + 3
    step = max(1, min(WRITTEN, BUFFER // width))
    out = np.empty(step * width, np.uint8)
    values = np.empty(0, np.float32) if ratings.values is None else ratings.values
    for begin in range(0, len(ratings), step):
        part = slice(begin, begin + step)
        parts = ratings.users[part], ratings.items[part], values[part]
        size = format_ratings(out, parts, tuple(users), tuple(items), separator[0])
        file.write(out[:size].data)


def _writable(ids: Ids, name: str) -> Texts:
    """The ids' texts, in quotes where that is needed."""
    texts = ids.texts
    if not ids.are_text:
        return texts
    blob = texts.blob[: len(texts.blob) - PADDING].tobytes()
    for byte, what in UNWRITABLE.items():
        if byte in blob:
            raise DataError(f"{name}: an id holds {what}, which text cannot; save it as .npz")
    if not any(bytes([byte]) in blob for byte in SPECIAL + b" "):
        return texts
    quoted = [
        b'"' + text.replace(b'"', b'""') + b'"'
        if any(byte in text for byte in SPECIAL) or text != text.strip(b" ")
        else text
        for text in map(str.encode, texts.tolist())
    ]
    ends = np.cumsum([0, *map(len, quoted)], dtype=np.uint64)
    return Texts(np.frombuffer(b"".join(quoted), np.uint8), ends[:-1], ends[1:])
