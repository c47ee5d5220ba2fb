"""svmlight text: a row a line, `label index:value index:value ... # comment`.

Several labels of a row are separated by commas, as LIBSVM writes them; a row without any label
begins with a blank.

A compiled kernel parses blocks of lines. A line that it cannot read is parsed again here, by
regular expressions: it has a number that is hard to round, or a mistake. The messages for mistakes
are made here.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.labels import LabelSets, as_written
from hogwild.data.pieces import Growing, Parser, Pool, get_ready, read_pieces
from hogwild.data.rows import Rows
from hogwild.data.sets import name_of
from hogwild.data.sources import PIECE, Piece
from hogwild.errors import DataError
from hogwild.kernels.text import FEATURE_WIDTH, FLOAT32_LIMIT, format_lines, parse_lines

VALUES = 1 << 16  # written at a time
MAPPED = 1 << 26  # bytes; so much malloc always maps by itself, and can move without copying
MOST_INDEX = 2**32 - 1

# Written as the first line where the columns count from 0 but the first one is empty.
FROM_ZERO = b"# index_base 0"

TOKEN = re.compile(rb"[^ \t]+")
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|1\.#)", re.IGNORECASE)
INDEX = re.compile(rb"[0-9]+")


def read(
    paths: Sequence[Path], *, index_base: str | int, labels: bool, threads: int | None
) -> Rows:
    """Reads files as one. Without labels, `y` is None, and lines with anything in them are rows."""
    reader = _Reader(paths, index_base, labels)
    get_ready([parse_lines], reader.arrays, paths, _counts)
    reader.begin()
    read_pieces(paths, reader, threads)
    return reader.as_rows(name_of(paths))


def hand_on(
    paths: Sequence[Path], use: Callable[[Rows], None], *, index_base: str | int, labels: bool
) -> None:
    """Reads files as one, and keeps nothing: `use` gets the rows of each piece in turn.

    The rows have the columns seen so far. Once the first column turns out to be number 0, the
    `index_base` of the following rows is 0.
    """
    reader = Handing(name_of(paths), index_base, labels, use)
    read_pieces(paths, reader)
    reader.end()


def no_rows(name: str) -> DataError:
    """The error for text without a row."""
    return DataError(f"{name}: there are no rows in it; expected lines like 1 3:0.5")


# Row pointers, columns, values, where labels end, labels: their types, and the fewest bytes for one
KINDS = np.uint64, np.uint32, np.float32, np.uint64, np.float64
FEWEST = 2, 4, 4, 2, 2
Scratch = tuple[npt.NDArray[Any], ...]


def _counts(text: bytes) -> tuple[int, ...]:
    """How many numbers of each kind come of some text, about."""
    rows, nonzeros = text.count(b"\n"), text.count(b":")
    return rows, nonzeros, nonzeros, rows, rows


def _scratch(size: int) -> Scratch:
    """Room for all that can be in so many bytes."""
    shares = zip(KINDS, FEWEST, strict=True)
    arrays = tuple(np.empty(size // fewest + 2, kind) for kind, fewest in shares)
    arrays[0][0] = arrays[3][0] = 0
    return arrays


class _Found:
    """The rows of a piece of text."""

    def __init__(self, piece: Piece, reader: "_Reader") -> None:
        self._piece = piece
        self._auto = reader.auto
        self._needs_labels = reader.needs_labels
        self._note_unlabelled = reader.unlabelled is None
        self.base = reader.base
        self.labelled = reader.labelled
        self.several = reader.several
        self.unlabelled: DataError | None = None
        self.rows = self.nonzeros = self.labels = self.columns = 0
        self.size = piece.end - piece.begin
        self.scratch = reader.pool.get()
        if len(self.scratch[0]) < self.size // FEWEST[0] + 2:
            self.scratch = _scratch(self.size)
        self._read()

    def _read(self) -> None:
        piece = self._piece
        at = piece.start_of_text("svmlight text")
        if self._auto and piece.first and _first_line(piece) == FROM_ZERO:
            self.base = 0
        while at < piece.end:
            known = self.rows, self.nonzeros, self.labels
            how = self.base, self.labelled is not False, self.several
            stop, self.rows, self.nonzeros, self.labels, _, columns = parse_lines(
                piece.array, at, piece.end, *how, self.scratch, known
            )
            if self.labelled is None and self.rows:
                self.labelled = True
            self.columns = max(self.columns, columns)
            at = int(stop)
            if at < piece.end:  # a line that the kernel does not understand
                end = piece.text.index(b"\n", at)
                self._take_line(_Line(piece, at, bytes(piece.text[at:end])))
                at = end + 1

    def move(self) -> None:
        """Counts columns from 0 on."""
        self.columns += self.columns > 0
        self.base = 0

    def _take_line(self, line: "_Line") -> None:
        """Adds a row that the kernel left over, or raises what is wrong with it."""
        if b"\0" in line.text:
            where = f"line {line.piece.line_of(line.begin)} has a zero byte"
            raise DataError(f"{line.piece.name}: is not svmlight text but binary ({where})")
        tokens = line.tokens()
        labels = line.labels(tokens.pop(0)) if tokens and b":" not in tokens[0][0] else []
        self._check_labels(line, labels)
        indices: list[int] = []
        values: list[float] = []
        for token in tokens:
            index, value = line.feature(token)
            if index == 0 and self.base == 1:
                self._found_zero(line, token)
            if indices and index == indices[-1]:
                raise line.error(
                    token, f"repeats the index {index}", "every index only once in a row"
                )
            if indices and index < indices[-1]:
                reason = f"comes after the index {indices[-1]}"
                raise line.error(token, reason, "indices that ascend within a row")
            indices.append(index)
            values.append(value)
        self._add(labels, indices, values)

    def _check_labels(self, line: "_Line", labels: list[float]) -> None:
        """One label; or any number of them, if some line has several."""
        self.several |= len(labels) > 1 or (not labels and line.text[:1] in b" \t")
        problem: tuple[str, str] | None = None
        if not labels and self._needs_labels:
            problem = (
                "is a feature, but a label must come first",
                "label index:value ...; data without labels can be read to predict (labels=False)",
            )
        elif self.labelled is not None and self.labelled != bool(labels):
            problem = (
                "begins a line without a label" if self.labelled else "is a label",
                "labels in all lines, as in those above, or in none",
            )
        if self.labelled is None:
            self.labelled = bool(labels) or self.several or self._needs_labels
        if problem and not self.labelled:
            raise line.error(line.tokens()[0], *problem)
        if problem and self._note_unlabelled and not self.unlabelled:
            self.unlabelled = line.error(line.tokens()[0], *problem)

    def _found_zero(self, line: "_Line", token: "_Token") -> None:
        """The index 0 where columns have counted from 1 so far."""
        if not self._auto:
            raise line.error(
                token,
                "has the index 0",
                "indices from 1 on, as index_base or the training data has them",
            )
        self.scratch[1][: self.nonzeros] += np.uint32(1)
        self.move()

    def _add(self, labels: list[float], indices: list[int], values: list[float]) -> None:
        indptr, all_indices, all_values, label_ends, y = self.scratch
        end = self.nonzeros + len(indices)
        all_indices[self.nonzeros : end] = np.array(indices, np.int64) - self.base
        all_values[self.nonzeros : end] = values
        y[self.labels : self.labels + len(labels)] = labels
        self.labels += len(labels)
        if indices:
            self.columns = max(self.columns, indices[-1] - self.base + 1)
        self.rows += 1
        self.nonzeros = end
        indptr[self.rows] = end
        label_ends[self.rows] = self.labels


def _first_line(piece: Piece) -> bytes:
    return bytes(piece.text[piece.begin : piece.text.index(b"\n", piece.begin)]).rstrip()


class _Reader(Parser[_Found]):
    """All rows so far. Whether rows have labels is unknown until the first row is there."""

    def __init__(self, paths: Sequence[Path], index_base: str | int, labels: bool) -> None:
        self.alone = True
        self.auto = index_base == "auto"
        self.base = 0 if index_base == 0 else 1
        self.needs_labels = labels
        self.labelled: bool | None = None
        self.several = False  # labels in some row, as a comma or a leading blank says
        self.unlabelled: DataError | None = None  # an error, unless rows may have several labels
        self.pool = Pool(lambda: _scratch(2 * PIECE))
        self.arrays = Growing(KINDS, paths)
        self._columns = 0
        self._moved = 0  # so many non-zeros were taken as if columns counted from 1

    def begin(self) -> None:
        """Puts the zeros in front of what says where rows and their labels end."""
        self.arrays.add((1, 0, 0, 1, 0), 0)
        with self.arrays.filling() as arrays:
            arrays[0][0] = arrays[3][0] = 0

    def parse(self, piece: Piece) -> _Found:
        return _Found(piece, self)

    def take(self, found: _Found) -> Callable[[], None] | None:
        """Says where the rows of the next piece belong; copying them there is left to do."""
        late = self._note(found)
        counts = found.rows, found.nonzeros, found.nonzeros, found.rows, found.labels
        places = self.arrays.add(counts, found.size)
        return partial(self._copy, found, places, late)

    def _note(self, found: _Found) -> bool:
        """What the next piece says of the others; whether it counts columns from 1, and not 0."""
        self.alone = self.alone and not found.rows
        self.labelled = found.labelled
        self.several |= found.several
        self.unlabelled = self.unlabelled or found.unlabelled
        late = found.base > self.base  # it was begun before anyone had seen a column 0
        if found.base < self.base:
            self._moved, self.base = self.arrays.used[1], 0
            self._columns += self._columns > 0
        elif late:
            found.move()
        self._columns = max(self._columns, found.columns)
        return late

    def _copy(self, found: _Found, places: list[int], late: bool) -> None:
        given = found.scratch
        row, nonzero, _, _, label = places
        rows, nonzeros, labels = found.rows, found.nonzeros, found.labels
        with self.arrays.filling() as (indptr, indices, values, label_ends, y):
            np.add(given[0][1 : rows + 1], nonzero, out=indptr[row : row + rows])
            np.add(given[1][:nonzeros], np.uint32(late), out=indices[nonzero : nonzero + nonzeros])
            values[nonzero : nonzero + nonzeros] = given[2][:nonzeros]
            np.add(given[3][1 : rows + 1], label, out=label_ends[row : row + rows])
            y[label : label + labels] = given[4][:labels]
        self.pool.put(given)

    def as_rows(self, name: str) -> Rows:
        """All rows, in arrays of just the right length."""
        if self.alone:
            raise no_rows(name)
        if self.unlabelled and not self.several:
            raise self.unlabelled
        indptr, indices, values, label_ends, labels = self.arrays.cut()
        indices[: self._moved] += np.uint32(1)
        y: Any = labels
        if not self.labelled or (len(labels) == 0 and not self.needs_labels):
            y = None
        elif self.several:
            names, numbers = np.unique(labels, return_inverse=True)
            y = LabelSets(label_ends, numbers, names)
        arrays = indptr, indices, values, self._columns
        return Rows.from_arrays(*arrays, y, index_base=self.base, name=name)


class Handing(_Reader):
    """Hands rows on, piece by piece."""

    def __init__(
        self, name: str, index_base: str | int, labels: bool, use: Callable[[Rows], None]
    ) -> None:
        super().__init__([], index_base, labels)
        self._name, self._use = name, use

    def take(self, found: _Found) -> None:
        """Makes rows of a piece, and hands them on."""
        late = self._note(found)
        if self.unlabelled and not self.several:
            raise self.unlabelled
        if found.rows:
            self._use(self._rows_of(found, late))
        self.pool.put(found.scratch)

    def _rows_of(self, found: _Found, late: bool) -> Rows:
        indptr, indices, values, label_ends, labels = found.scratch
        y: Any = labels[: found.labels].copy()
        if not self.labelled:
            y = None
        elif self.several:
            names, numbers = np.unique(y, return_inverse=True)
            y = LabelSets(label_ends[: found.rows + 1].copy(), numbers, names)
        return Rows.from_arrays(
            indptr[: found.rows + 1].copy(),
            indices[: found.nonzeros] + np.uint32(late),
            values[: found.nonzeros].copy(),
            self._columns,
            y,
            index_base=self.base,
            name=self._name,
        )

    def end(self) -> None:
        """Refuses text without a row."""
        if self.alone:
            raise no_rows(self._name)


_Token = tuple[bytes, int]


class _Line(NamedTuple):
    """A line without its newline, and where it begins in a piece."""

    piece: Piece
    begin: int
    text: bytes

    def tokens(self) -> list[_Token]:
        """The tokens and where each of them begins, without the comment."""
        found = [(m.group(), m.start()) for m in TOKEN.finditer(self.text.removesuffix(b"\r"))]
        comments = [number for number, (token, _) in enumerate(found) if token.startswith(b"#")]
        return found[: comments[0]] if comments else found

    def error(self, token: _Token, reason: str, expected: str) -> DataError:
        """What is wrong with a token."""
        text, at = token
        shown = ascii(text[:40].decode("utf-8", "replace")) + ("..." if len(text) > 40 else "")
        return DataError(
            f"{self.piece.place(self.begin + at)}: {shown} {reason}; expected {expected}"
        )

    def labels(self, token: _Token) -> list[float]:
        """The labels that a token is, with commas between them."""
        text, at = token
        found = []
        for part in text.split(b","):
            found.append(self._number((part, at), "a label", np.inf, "1.8e308"))
            at += len(part) + 1
        return found

    def feature(self, token: _Token) -> tuple[int, float]:
        """The index and the value that a token holds."""
        text, at = token
        index, colon, value = text.partition(b":")
        if index == b"qid":
            raise self.error(
                token, "is for ranking, which is not supported", "the data without qid"
            )
        if not colon:
            raise self.error(token, "has no colon", "index:value, such as 7:0.5")
        if not INDEX.fullmatch(index):
            reason = "has a negative index" if index.startswith(b"-") else "has no proper index"
            raise self.error(
                token, reason, f"a whole number from 0 or 1 to {MOST_INDEX} before the colon"
            )
        if len(index.lstrip(b"0")) > 10 or int(index) > MOST_INDEX:
            raise self.error(token, "has too large an index", f"{MOST_INDEX} or less")
        if not value:
            raise self.error(token, "has no value", "index:value, without a blank, such as 7:0.5")
        place = at + len(index) + 1
        return int(index), self._number((value, place), "a value", FLOAT32_LIMIT, "3.4e38")

    def _number(self, token: _Token, role: str, limit: float, most: str) -> float:
        text, _ = token
        if NOT_FINITE.match(text):
            raise self.error(token, "is not finite", f"{role} that is a number")
        if not NUMBER.fullmatch(text):
            hint = " (and a blank before a comment)" if b"#" in text else ""
            if role == "a label":
                hint += "; to read raw text or a table, name its format, such as text or csv"
            raise self.error(token, "is not a number", f"{role} such as 1, -0.5 or 2e-3{hint}")
        number = float(text)
        if not abs(number) < limit:
            raise self.error(token, "is too large", f"{role} of {most} at the most")
        return number


def write(rows: Rows, file: BinaryIO, *, index_base: int | None) -> None:
    """Writes rows, every value with the fewest digits that are read back to the same bits."""
    if index_base == 0 and rows.nonzeros and rows.indices.min() > 0:
        file.write(FROM_ZERO + b"\n")
    begin = 0
    while begin < len(rows):
        # Rows with not many values together, one row at the least
        values = rows.indptr[begin] + np.uint64(VALUES)
        end = int(np.searchsorted(rows.indptr, values, side="right")) - 1
        end = min(max(end, begin + 1), begin + VALUES, len(rows))
        file.write(_lines_of(rows, begin, end, 1 if index_base is None else index_base))
        begin = end


def _lines_of(rows: Rows, begin: int, end: int, index_base: int) -> memoryview:
    _check_not_blank(rows, begin, end)
    labels = _label_texts(rows, begin, end)
    longest_label = int(np.diff(labels[1]).max(initial=0))
    values = int(rows.indptr[end] - rows.indptr[begin])
    out = np.empty(values * FEATURE_WIDTH + (end - begin) * (longest_label + 1), np.uint8)
    arrays = rows.indptr, rows.indices, rows.values
    size, stopped = format_lines(out, arrays, begin, end, index_base, labels)
    if stopped < end:
        raise DataError(
            f"{rows.name}: the columns of row {stopped + 1} do not ascend, as svmlight demands; "
            "call sum_duplicates() on the scipy matrix first"
        )
    return out[:size].data


def _check_not_blank(rows: Rows, begin: int, end: int) -> None:
    """Refuses rows that would be blank lines, which readers skip."""
    several = isinstance(rows.y, LabelSets)
    if rows.y is not None and not several:
        return
    empty = rows.indptr[begin + 1 : end + 1] == rows.indptr[begin:end]
    if several:
        empty &= rows.y.starts[begin + 1 : end + 1] == rows.y.starts[begin:end]
    if np.any(empty):
        row = begin + int(np.argmax(empty)) + 1
        raise DataError(
            f"{rows.name}: row {row} has neither a label nor values, which svmlight text cannot "
            "hold; give labels, or save as .npz"
        )


def _label_texts(
    rows: Rows, begin: int, end: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The texts of the rows' labels one after the other, their ends, and which row has which."""
    if rows.y is None:
        return np.empty(0, np.uint8), np.zeros(1, np.uint64), np.empty(0, np.uint64)
    sets = rows.y if isinstance(rows.y, LabelSets) else None
    kind = (rows.y if sets is None else sets.names).dtype
    if kind.kind not in "fiub":
        raise DataError(
            f"{rows.name}: labels of the type {kind} cannot be written as svmlight text; "
            "replace them by numbers, or save as .npz"
        )
    if sets is not None:
        names = np.array([_label_text(label) for label in sets.names.tolist()], object)
        places = pairwise(sets.starts[begin : end + 1].tolist())
        texts = [b",".join(names[sets.numbers[first:last]]) for first, last in places]
        which = np.arange(len(texts))
    else:
        different, which = np.unique(rows.y[begin:end], return_inverse=True)
        texts = [_label_text(label.item()) for label in different]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.uint64)
    return np.frombuffer(b"".join(texts), np.uint8), ends, which.astype(np.uint64)


def _label_text(label: float) -> bytes:
    return repr(int(label) if isinstance(label, bool) else as_written(label)).encode()
