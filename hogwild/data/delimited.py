"""Delimited text of ratings: a rating a line, `user,item,value`, and more fields that are ignored.

A compiled kernel finds the fields, another gives codes to ids. A line that the first of them does
not understand is looked at here once more: it has a number that is hard to round, or quotes within
quotes, or a mistake, which gets its message here.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild.data.columns import Layout, Unclear, checked_columns, layout_of, rating_of
from hogwild.data.ids import BadIdError, Coder, Codes, Ids
from hogwild.data.pieces import start_of_text
from hogwild.data.ratings import Ratings
from hogwild.data.svmlight import blocks_of
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
from hogwild.kernels.text import PADDING

LINES = 1 << 13  # parsed at a time: what is known of them stays in the cache
SAMPLE = 20  # lines that are looked at to find out what separates the fields
NO_PLACE = 2**64 - 1
WAYS = {b"::": DOUBLE, b" ": BLANKS}


Coding = Callable[[Texts, Codes], None]  # writes the codes of the ids in a column


class Parsed:
    """The ratings that were read so far. The arrays are longer."""

    def __init__(self, name: str, layout: Layout, columns: tuple[Coding, Coding]) -> None:
        self.name = name
        self.layout = layout
        self.columns = columns
        self.line = self.count = 0
        self.users = np.empty(0, np.uint32)
        self.items = np.empty(0, np.uint32)
        self.values = np.empty(0, np.float32)
        self._found = tuple(np.empty(LINES, np.uint64) for _ in range(4))

    def take(self, text: bytearray, begin: int, size: int) -> None:
        """Adds the ratings in a block of whole lines, from a place on."""
        refuse_zero_bytes(self.name, text, begin, size, self.line)
        array = np.frombuffer(text, np.uint8)
        at = begin
        while at < size:
            at, full = self._take_lines(text, array, at, size)
            if at < size and not full:
                end = text.index(b"\n", at)
                self._take_line(bytes(text[at:end]))
                at = end + 1

    def arrays(self) -> tuple[Codes, Codes, npt.NDArray[np.float32] | None]:
        """The codes of users and items and the values, in arrays of just the right length."""
        for array in (self.users, self.items, self.values):
            array.resize(min(self.count, len(array)), refcheck=False)
        return self.users, self.items, self.values if self._valued else None

    @property
    def _valued(self) -> bool:
        return len(self.layout.places) == 3

    def _take_lines(
        self, text: bytearray, array: npt.NDArray[np.uint8], begin: int, size: int
    ) -> tuple[int, bool]:
        """Adds the lines that the kernel understands; where it stopped, and if for want of room."""
        self._make_room(LINES)
        separator, places, _ = self.layout
        how = separator[0], WAYS.get(separator, SINGLE), (*places, NO_PLACE)[:3]
        values = self.values[self.count :]
        stop, count, lines = split_lines(array, begin, size, *how, self._found, values)
        try:
            self._add_ids(array, int(count))
        except BadIdError as bad:
            place = int(self._found[0][bad.at])
            self._fail(self.line + 1 + text.count(b"\n", begin, place), bad)
        self.line += lines
        return int(stop), count == LINES

    def _take_line(self, text: bytes) -> None:
        """Adds a line that the kernel left over, or raises what is wrong with it."""
        self._make_room(1)
        try:
            user, item, value = rating_of(text, self.layout)
            if self._valued:
                self.values[self.count] = value
            ends = 0, len(user), len(user), len(user + item)
            for places, place in zip(self._found, ends, strict=True):
                places[0] = place
            self._add_ids(np.frombuffer(user + item + bytes(PADDING), np.uint8), 1)
        except (Unclear, BadIdError) as problem:
            self._fail(self.line + 1, problem)
        self.line += 1

    def _add_ids(self, text: npt.NDArray[np.uint8], count: int) -> None:
        """Adds the ids that were found in a text."""
        end = self.count + count
        found = [places[:count] for places in self._found]
        self.columns[0](Texts(text, *found[:2]), self.users[self.count : end])
        self.columns[1](Texts(text, *found[2:]), self.items[self.count : end])
        self.count = end

    def _make_room(self, more: int) -> None:
        needed = self.count + more
        if len(self.users) < needed:
            for array in (self.users, self.items, self.values)[: 2 + self._valued]:
                array.resize(needed + needed // 8, refcheck=False)

    def _fail(self, line: int, problem: Exception) -> None:
        raise DataError(f"{self.name}: line {line}: {problem}") from None


def read(path: Path, file: BinaryIO, *, columns: Any, values: bool) -> Ratings:
    """Reads a file; the layout is found in its first lines."""
    wanted = checked_columns(columns, values)
    name = str(path)
    users, items = Coder(), Coder()
    parsed: Parsed | None = None
    blank = 0
    for text, size in blocks_of(file):
        begin = 0
        if parsed is None and not blank:
            begin = start_of_text(text, f"{name}: is not delimited text")
        if parsed is None:
            sample = list(islice(_lines(text, begin, size), SAMPLE))
            if not sample:
                blank += text.count(b"\n", 0, size)
                continue
            refuse_zero_bytes(name, text, begin, size, blank)
            first = blank + text.count(b"\n", 0, sample[0][0]) + 1
            lines = [bytes(text[at : end - 1]) for at, end in sample]
            layout = layout_of(path, lines, wanted, values, first)
            parsed = Parsed(name, layout, (users.add, items.add))
            parsed.line = first - 1 + layout.header
            begin = sample[0][layout.header]
        parsed.take(text, begin, size)
    if parsed is None or parsed.count == 0:
        raise DataError(f"{name}: has no ratings in it; expected lines like 17,42,3.5")
    user_codes, item_codes, given = parsed.arrays()
    ids = users.ids(user_codes), items.ids(item_codes)
    return Ratings.from_codes(user_codes, item_codes, given, *ids, name=name)


def refuse_zero_bytes(name: str, text: bytearray, begin: int, size: int, lines: int) -> None:
    """Refuses a block of bytes that cannot be text; so many lines came before."""
    zero = text.find(b"\0", begin, size)
    if zero >= 0:
        line = lines + 1 + text.count(b"\n", begin, zero)
        raise DataError(f"{name}: is not text but binary (line {line} has a zero byte)")


def _lines(text: bytearray, begin: int, size: int) -> Iterator[tuple[int, int]]:
    """Where the lines that are not blank begin, and where the next ones do."""
    while begin < size:
        end = text.index(b"\n", begin) + 1
        if text[begin:end].strip():
            yield begin, end
        begin = end


WRITTEN = 1 << 16  # ratings at a time
BUFFER = 1 << 26  # bytes for them, if one of them takes no more
SPECIAL = b',;\t"\r'  # what may end a field, or begin one that is quoted
UNWRITABLE = {b"\n": "the end of a line", b"\0": "a zero byte"}


def write(ratings: Ratings, file: BinaryIO, *, separator: bytes) -> None:
    """Writes ratings, every value with the fewest digits that are read back to the same bits.

    Text that looks like a whole number becomes one when it is read back, if all ids do.
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
