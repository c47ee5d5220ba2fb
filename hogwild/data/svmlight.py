"""svmlight text: a row a line, `label index:value index:value ... # comment`.

In a file of several labels a row they have commas between them, as LIBSVM writes them; a row
without any begins with a blank.

A compiled kernel parses blocks of lines. What it does not understand is parsed here once more, by
regular expressions: a number that is hard to round, or a mistake, which gets its message here.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.labels import LabelSets, as_written
from hogwild.data.rows import Rows
from hogwild.errors import DataError
from hogwild.kernels.text import FEATURE_WIDTH, FLOAT32_LIMIT, PADDING, format_lines, parse_lines

BLOCK = 1 << 20  # bytes parsed at a time
VALUES = 1 << 16  # written at a time
MAPPED = 1 << 26  # bytes; so much malloc always maps by itself, and can move without copying
MOST_INDEX = 2**32 - 1

# Written as the first line where the columns count from 0 but the first one is empty.
FROM_ZERO = b"# index_base 0"

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BINARY = {
    b"\x1f\x8b": "gzip; let its name end in .gz",
    b"BZh": "bzip2; let its name end in .bz2",
    b"\xfd7zXZ": "xz; unpack it first",
    b"\x28\xb5\x2f\xfd": "zstd; unpack it first",
    b"PK\x03\x04": "zip; let its name end in .npz if it was saved by numpy or scipy",
    b"\x93NUMPY": "a numpy array; give it to hogwild.Rows, or hogwild.Ratings",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}

TOKEN = re.compile(rb"[^ \t]+")
NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|1\.#)", re.IGNORECASE)
INDEX = re.compile(rb"[0-9]+")


def read(path: Path, file: BinaryIO, *, index_base: str | int, labels: bool) -> Rows:
    """Reads a file. Without labels, `y` is None, and every line with anything in it is a row."""
    lines = _Lines(str(path), index_base, labels)
    for text, size in blocks_of(file):
        lines.take(text, size)
    return lines.as_rows()


def pieces(
    path: Path, file: BinaryIO, *, index_base: str | int, labels: bool, nonzeros: int = 1 << 20
) -> Iterator[Rows]:
    """Reads a file, about so many non-zeros at a time: rows whose columns are those so far.

    Where the first column turns out to be number 0, the `index_base` of what follows is 0.
    """
    lines = _Lines(str(path), index_base, labels)
    for text, size in blocks_of(file):
        lines.take(text, size)
        if lines.nonzeros + lines.rows >= nonzeros:
            yield lines.taken()
    if lines.rows or not lines.began:
        yield lines.taken()


def blocks_of(file: Any) -> Iterator[tuple[bytearray, int]]:
    """Whole lines, a block at a time: a buffer (always the same one) and how many bytes count."""
    text = bytearray(BLOCK + PADDING)
    kept = 0
    while got := file.readinto(memoryview(text)[kept : len(text) - PADDING]):
        end = kept + got
        size = text.rfind(b"\n", kept, end) + 1
        if size:
            yield text, size
            text[: end - size] = text[size:end]
        kept = end - size
        if kept == len(text) - PADDING:  # a line that is longer than the buffer
            text = text + bytes(kept)
    if kept:
        text[kept] = ord("\n")
        yield text, kept + 1


def start_of_text(text: bytearray, complaint: str) -> int:
    """Where the first line of a file begins, once it is clear that this is text."""
    for magic, kind in BINARY.items():
        if text.startswith(magic):
            raise DataError(f"{complaint} but {kind}")
    return len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0


class _Lines:
    """The rows that were read so far. The arrays are longer: pages not yet written cost nothing."""

    def __init__(self, name: str, index_base: str | int, labels: bool) -> None:
        self.name = name
        self.auto = index_base == "auto"
        self.base = 0 if index_base == 0 else 1
        self.needs_labels = labels
        self.labelled = True
        self.several = False  # labels in some row, as a comma or a leading blank says
        self.unlabelled: DataError | None = None  # an error, unless rows may have several labels
        self.began = False  # whether rows were taken away
        self.line = self.rows = self.nonzeros = self.labels = self.columns = 0
        self.indptr = np.zeros(1, np.uint64)
        self.label_ends = np.zeros(1, np.uint64)
        self.y = np.empty(0, np.float64)
        self.indices = np.empty(0, np.uint32)
        self.values = np.empty(0, np.float32)

    def take(self, text: bytearray, size: int) -> None:
        """Adds the rows of a block of whole lines."""
        at = 0
        if self.line == 0:
            at = start_of_text(text, f"{self.name}: is not svmlight text")
            if self.auto and text[: text.index(b"\n")].rstrip() == FROM_ZERO:
                self.base = 0
        self._make_room(size)
        array = np.frombuffer(text, np.uint8)
        arrays = self.indptr, self.indices, self.values, self.label_ends, self.y
        while at < size:
            known = self.rows, self.nonzeros, self.labels
            stop, self.rows, self.nonzeros, self.labels, lines, columns = parse_lines(
                array, at, size, self.base, self.labelled, self.several, arrays, known
            )
            self.line += lines
            self.columns = max(self.columns, columns)
            at = int(stop)
            if at < size:  # a line that the kernel does not understand
                end = text.index(b"\n", at)
                self._take_line(_Line(self.name, self.line + 1, bytes(text[at:end])))
                at = end + 1

    def as_rows(self) -> Rows:
        """What was read, in arrays of just the right length."""
        if self.rows == 0:
            raise DataError(f"{self.name}: there are no rows in it; expected lines like 1 3:0.5")
        if self.unlabelled and not self.several:
            raise self.unlabelled
        for array in (self.indptr, self.label_ends):
            array.resize(self.rows + 1, refcheck=False)
        self.y.resize(self.labels, refcheck=False)
        self.indices.resize(self.nonzeros, refcheck=False)
        self.values.resize(self.nonzeros, refcheck=False)
        y: Any = self.y
        if not self.labelled or (self.labels == 0 and not self.needs_labels):
            y = None
        elif self.several:
            names, numbers = np.unique(self.y, return_inverse=True)
            y = LabelSets(self.label_ends, numbers, names)
        arrays = self.indptr, self.indices, self.values
        return Rows.from_arrays(*arrays, self.columns, y, index_base=self.base, name=self.name)

    def taken(self) -> Rows:
        """The rows so far, which are taken away: copies."""
        # Of all rows, as if a label were missing in those that are to come
        if self.rows == 0 or (self.unlabelled and not self.several):
            return self.as_rows()
        ends = self.rows + 1, self.rows + 1, self.labels, self.nonzeros, self.nonzeros
        names = "indptr", "label_ends", "y", "indices", "values"
        whole = {name: getattr(self, name) for name in names}
        for name, end in zip(names, ends, strict=True):
            setattr(self, name, whole[name][:end].copy())
        rows = self.as_rows()
        for name, array in whole.items():
            setattr(self, name, array)
        self.began, self.rows, self.nonzeros, self.labels = True, 0, 0, 0
        return rows

    def _make_room(self, size: int) -> None:
        """Makes the arrays hold a block's worth more, at the least: `1` and `1:1` are shortest."""
        self.indptr = self._room(self.indptr, self.rows + 1, size // 2)
        self.label_ends = self._room(self.label_ends, self.rows + 1, size // 2)
        self.y = self._room(self.y, self.labels, size // 2)
        self.indices = self._room(self.indices, self.nonzeros, size // 4)
        self.values = self._room(self.values, self.nonzeros, size // 4)

    def _room(self, array: npt.NDArray[Any], used: int, more: int) -> npt.NDArray[Any]:
        needed = used + more + 1
        if len(array) >= needed:
            return array
        if array.nbytes >= MAPPED:
            # Moves pages instead of bytes, but fills the rest with zeros: therefore small steps.
            array.resize(needed + used // 16, refcheck=False)
            return array
        longer = np.empty(max(needed, MAPPED // array.itemsize if self.line else 0), array.dtype)
        longer[:used] = array[:used]
        return longer

    def _take_line(self, line: "_Line") -> None:
        """Adds a row that the kernel left over, or raises what is wrong with it."""
        if b"\0" in line.text:
            raise DataError(
                f"{self.name}: is not svmlight text but binary (line {line.number} has a zero byte)"
            )
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
        self.line += 1
        self._add(labels, indices, values)

    def _check_labels(self, line: "_Line", labels: list[float]) -> None:
        """One label; or any number of them, if some line has several."""
        self.several |= len(labels) > 1 or (not labels and line.text[:1] in b" \t")
        problem: tuple[str, str] | None = None
        if not labels and self.needs_labels:
            problem = (
                "is a feature, but a label must come first",
                "label index:value ...; data without labels can be read to predict (labels=False)",
            )
        elif (self.rows or self.began) and self.labelled != bool(labels):
            problem = (
                "begins a line without a label" if self.labelled else "is a label",
                "labels in all lines, as in those above, or in none",
            )
        if self.rows == 0 and not self.began:
            self.labelled = bool(labels) or self.several or self.needs_labels
        if problem and not self.labelled:
            raise line.error(line.tokens()[0], *problem)
        if problem and not self.unlabelled:
            self.unlabelled = line.error(line.tokens()[0], *problem)

    def _found_zero(self, line: "_Line", token: "_Token") -> None:
        """The index 0 where columns have counted from 1 so far."""
        if not self.auto:
            raise line.error(
                token,
                "has the index 0",
                "indices from 1 on, as index_base or the training data has them",
            )
        self.indices[: self.nonzeros] += np.uint32(1)
        self.columns += self.columns > 0
        self.base = 0

    def _add(self, labels: list[float], indices: list[int], values: list[float]) -> None:
        end = self.nonzeros + len(indices)
        self.indices[self.nonzeros : end] = np.array(indices, np.int64) - self.base
        self.values[self.nonzeros : end] = values
        self.y[self.labels : self.labels + len(labels)] = labels
        self.labels += len(labels)
        if indices:
            self.columns = max(self.columns, indices[-1] - self.base + 1)
        self.rows += 1
        self.nonzeros = end
        self.indptr[self.rows] = end
        self.label_ends[self.rows] = self.labels


_Token = tuple[bytes, int]


class _Line(NamedTuple):
    """A line without its newline, and where it stands."""

    name: str
    number: int
    text: bytes

    def tokens(self) -> list[_Token]:
        """The tokens and where each of them begins, without the comment."""
        found = [(m.group(), m.start()) for m in TOKEN.finditer(self.text.removesuffix(b"\r"))]
        comments = [number for number, (token, _) in enumerate(found) if token.startswith(b"#")]
        return found[: comments[0]] if comments else found

    def error(self, token: _Token, reason: str, expected: str) -> DataError:
        """What is wrong with a token."""
        text, at = token
        column = len(self.text[:at].decode("utf-8", "replace")) + 1
        shown = ascii(text[:40].decode("utf-8", "replace")) + ("..." if len(text) > 40 else "")
        return DataError(
            f"{self.name}: line {self.number}, column {column}: {shown} {reason}; "
            f"expected {expected}"
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
