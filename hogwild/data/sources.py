"""Files and pipes that give their text in pieces of whole lines.

A regular file is read by the parsing threads into a buffer that stays in their caches. That takes
as long as parsing a memory-mapped file, and a mapped file that becomes shorter would end the
program. A file that changes while it is read is refused.
"""

import os
import select
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.early import Early
from hogwild.data.opening import (
    Progress,
    Watched,
    exhaust,
    explained,
    is_packed,
    size_of,
    unpacked,
)
from hogwild.errors import DataError
from hogwild.kernels.text import PADDING
from hogwild.machine import available_memory

HEAD = 1 << 16  # bytes of a file that are in its first piece, at the least
PIECE = 1 << 20  # bytes of text parsed at a time; with what comes of them they fit into a cache
BEHIND = 1 << 13  # bytes that are read beyond a piece at first, for the rest of its last line
PACKED = 500  # more text than this for each packed byte is refused, from some size on
SUSPECT = 1 << 30  # bytes of text: that size
LONG = 1 << 26  # bytes of a line, before which nobody asks whether it fits into memory
PER_BYTE = 8  # bytes of memory that parsing takes for each byte of a long line, about
PATIENCE = 0.1  # seconds to wait for a pipe before asking whether anyone still wants it

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BINARY = {
    b"\x1f\x8b": "gzip; let its name end in .gz",
    b"BZh": "bzip2; let its name end in .bz2",
    b"\xfd7zXZ": "xz; let its name end in .xz",
    b"\x28\xb5\x2f\xfd": "zstd; let its name end in .zst",
    b"PK\x03\x04": "zip; let its name end in .npz if it was saved by numpy or scipy",
    b"\x93NUMPY": "a numpy array; give it to hogwild.Rows, or hogwild.Ratings",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}

Bytes = npt.NDArray[np.uint8]


class Piece(NamedTuple):
    """Whole lines of a file: text[begin:end].

    Attributes:
        name: the file's, for messages.
        text, array: the same bytes, for Python and for kernels. There may be more in front.
        begin, end: where the lines begin and end in it. The last byte is a newline.
        first: whether the file begins here.
        lines_before: how many lines of the file come before; counted when it is asked for.
    """

    name: str
    text: bytearray
    array: Bytes
    begin: int
    end: int
    first: bool
    lines_before: Callable[[], int]

    def line_of(self, at: int) -> int:
        """The number, from 1 on, of the line of the file that text[at] is in."""
        return self.lines_before() + self.text.count(b"\n", self.begin, at) + 1

    def place(self, at: int) -> str:
        """Where text[at] stands, for a message: file, line and column (in characters)."""
        line = self.text.rfind(b"\n", self.begin, at) + 1 or self.begin
        if self.first and self.text.startswith(BYTE_ORDER_MARK, line):
            line += len(BYTE_ORDER_MARK)
        column = len(self.text[line:at].decode("utf-8", "replace")) + 1
        return f"{self.name}: line {self.line_of(at)}, column {column}"

    def start_of_text(self, kind: str) -> int:
        """Where the first line begins, once it is clear that this is text."""
        if not self.first:
            return self.begin
        return start_of_text(self.text, f"{self.name}: is not {kind}")


def start_of_text(text: bytearray, complaint: str) -> int:
    """Where the first line of a file begins, once it is clear that this is text."""
    for magic, kind in BINARY.items():
        if text.startswith(magic):
            raise DataError(f"{complaint} but {kind}")
    return len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0


def text_size(path: Path) -> int:
    """Bytes of text in a file; 0 where nobody knows: in a pipe, or before it is unpacked."""
    return 0 if is_packed(path) else size_of(path)


class Buffer:
    """Bytes for a piece."""

    def __init__(self) -> None:
        self._make(PIECE + BEHIND + 1)

    def _make(self, size: int) -> None:
        self.size = size
        self.text = bytearray(size + PADDING)
        self.array: Bytes = np.frombuffer(self.text, np.uint8)

    def grow(self, size: int, used: int) -> None:
        """Grows to at least `size` bytes; the first `used` ones are kept."""
        if self.size < size:
            old = self.text
            self._make(max(size, 2 * self.size))
            self.text[:used] = memoryview(old)[:used]


def _check_line(name: str | Path, size: int) -> None:
    """Refuses a line of this many bytes or more if it does not fit into memory."""
    if size > LONG and PER_BYTE * size > available_memory():
        raise DataError(
            f"{name}: a line has more than {size // 2:,} bytes and does not fit into memory; see "
            "whether the file is what it should be"
        )


Read = Callable[[Buffer], Piece | None]  # a piece, or None where no line begins in it


class Regular:
    """A file whose pieces any thread reads."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self._name = str(path)
        self._file = path.open("rb", buffering=0)
        self._known = os.fstat(self._file.fileno())
        self._progress = progress
        self._next = 0

    def next(self, _: Buffer) -> Read | None:
        """What reads the next piece."""
        begin, size = self._next, self._known.st_size
        if begin >= size:
            return None
        end = self._next = min(size, begin + (PIECE if begin else HEAD))
        self._progress.add(end - begin)
        return partial(self._read, begin, end)

    def _read(self, first: int, last: int, buffer: Buffer) -> Piece | None:
        """The lines that begin in this range of bytes."""
        start = max(0, first - 1)  # a line may begin behind the byte before
        have = self._fill(start, min(self._known.st_size, last + BEHIND), buffer, 0)
        begin = first and buffer.text.find(b"\n", 0, last - 1 - start) + 1
        if first and not begin:
            return None
        end = self._end_of_line(start, last - 1 - start, have, buffer)
        before = partial(self._lines, start + begin)
        return Piece(self._name, buffer.text, buffer.array, begin, end, first == 0, before)

    def _end_of_line(self, start: int, at: int, have: int, buffer: Buffer) -> int:
        """Where the line that text[at] is in ends; reads on up to there."""
        while not (end := buffer.text.find(b"\n", at, have) + 1):
            if start + have == self._known.st_size:
                buffer.text[have] = ord("\n")
                return have + 1
            at, have = (
                have,
                self._fill(start, min(self._known.st_size, start + 2 * have), buffer, have),
            )
        return end

    def _fill(self, start: int, end: int, buffer: Buffer, have: int) -> int:
        """Reads from `start` on up to `end`, where `have` bytes are there; how many are now."""
        _check_line(self._name, end - start)
        buffer.grow(end - start + 1, have)
        wanted, view = end - start, memoryview(buffer.text)
        with explained(Path(self._name)):
            while have < wanted:
                got = os.preadv(self._file.fileno(), [view[have:wanted]], start + have)
                if not got:
                    raise self._changed()
                have += got
        return have

    def _lines(self, end: int) -> int:
        """How many lines there are in the first bytes."""
        buffer, count = np.empty(PIECE, np.uint8), 0
        for at in range(0, end, len(buffer)):
            part = buffer[: end - at]
            got = os.preadv(self._file.fileno(), [part.data], at)
            count += int(np.count_nonzero(part[:got] == ord("\n")))
        return count

    def check(self) -> None:
        """Refuses the file if it has changed since reading began."""
        known = os.fstat(self._file.fileno())
        if (known.st_size, known.st_mtime_ns) != (self._known.st_size, self._known.st_mtime_ns):
            raise self._changed()

    def close(self) -> None:
        self._file.close()

    def _changed(self) -> DataError:
        return DataError(
            f"{self._name}: has changed while it was read; read it again when nothing writes to it"
        )


class Pipe(Watched):
    """A pipe, which may give nothing for a long time: a waiting thread can be stopped."""

    def __init__(self, path: Path, progress: Progress, stopped: Callable[[], bool]) -> None:
        super().__init__(path, progress)
        self._stopped = stopped

    def readinto(self, buffer: Any) -> int:
        return super().readinto(buffer) if self._has_more() else 0

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size) if self._has_more() else b""

    def _has_more(self) -> bool:
        while not select.select([self], [], [], PATIENCE)[0]:
            if self._stopped():
                return False
        return True


class Stream:
    """A file that is packed, or a pipe: one thread at a time reads on."""

    def __init__(
        self,
        path: Path,
        progress: Progress,
        stopped: Callable[[], bool],
        early: Early | None,
    ) -> None:
        self._path, self._early = path, early
        self._raw = early or Pipe(path, progress, stopped)
        self._file: Any = early or unpacked(path, self._raw, "rb").__enter__()
        self._kept = b""
        self._lines = self._unpacked = 0
        self._begun = self._ended = False

    def next(self, buffer: Buffer) -> Read | None:
        """What gives the next piece, which is in the buffer now."""
        with explained(self._path):
            have, cut = self._fill(buffer)
        if not have:
            return None
        self._kept = bytes(buffer.text[cut:have])
        if buffer.text[cut - 1] != ord("\n"):
            buffer.text[cut] = ord("\n")
            cut += 1
        before, first = self._lines, not self._begun
        self._lines += int(np.count_nonzero(buffer.array[:cut] == ord("\n")))
        self._begun = True
        piece = Piece(str(self._path), buffer.text, buffer.array, 0, cut, first, lambda: before)
        return lambda _: piece

    def _fill(self, buffer: Buffer) -> tuple[int, int]:
        """Reads a piece; how many bytes there are, and how many of them are whole lines."""
        have, cut = len(self._kept), 0
        wanted = PIECE if self._begun else HEAD
        buffer.grow(max(wanted, have) + 1, 0)
        buffer.text[:have] = self._kept
        while not (cut or self._ended):
            wanted = max(wanted, 2 * have)
            _check_line(self._path, wanted)
            buffer.grow(wanted + 1, have)
            looked_at, view = have, memoryview(buffer.text)
            while have < wanted and not self._ended:
                got = self._file.readinto(view[have:wanted])
                self._ended = not got
                have += got
                self._check_ratio(got)
            cut = buffer.text.rfind(b"\n", looked_at, have) + 1
        return have, have if self._ended else cut

    def _check_ratio(self, more: int) -> None:
        """Refuses a small file that unpacks to far more than data does."""
        self._unpacked += more
        if self._early is None or self._unpacked < SUSPECT:
            return
        if self._unpacked > PACKED * self._early.packed:
            raise DataError(
                f"{self._path}: unpacks to more than {PACKED} times its size and is refused; if "
                "it holds real data, unpack it first"
            )

    def check(self) -> None:
        """Refuses a packed file that is damaged further on: what came of it may be wrong."""
        if is_packed(self._path):
            with explained(self._path):
                exhaust(self._file)

    def close(self) -> None:
        self._raw.close()


Source = Regular | Stream


def source_of(
    path: Path, progress: Progress, stopped: Callable[[], bool], early: Early | None
) -> Source:
    with explained(path):
        if text_size(path):
            return Regular(path, progress)
        return Stream(path, progress, stopped, early)
