"""Text in pieces of whole lines, parsed by several threads and put together in its order.

All formats of text are read through `read_pieces`. A format gives it a `Parser`:

    class Words(Parser[Found]):
        def parse(self, piece: Piece) -> Found:
            # In any thread, several at once: kernel(piece.array, piece.begin, piece.end, ...)
            raise DataError(f"{piece.place(at)}: what is wrong; expected what")

        def take(self, found: Found) -> Callable[[], None] | None:
            # One at a time, in the order of the text, so it must be short: how many there are
            # and where they belong. What it returns is called in any thread, several at once:
            # copying them there
            ...

    read_pieces(paths, Words())

- Files are read one after the other as if they were one text, but a piece never crosses files.
  `piece.first` says that a file begins; `piece.start_of_text` skips its byte-order mark and refuses
  what is no text.
- A piece ends with a newline, even if the file does not, and has `PADDING` bytes more behind it.
  Its buffer is used again once `parse` has returned.
- The result does not depend on the number of threads, and must not depend on the cuts: `HEAD`
  bytes are in a file's first piece (and its last line), `PIECE` bytes in each other one.
- While `parser.alone` is true, a piece is parsed after the one before it was taken: the first lines
  may decide how all others are to be read.
- Of all errors, the first one in the order of the text is raised, whichever thread found it.
- Memory is bounded: at most twice as many pieces as threads are parsed and not yet taken. Their
  results may use arrays of a `Pool` again and again, and be copied from there into arrays that
  are `Growing`.
- A pipe or a compressed file is read and unpacked by one thread at a time while the others parse,
  and unpack later files before their turn.

A regular file is read by the parsing threads into a buffer that stays in their caches. That takes
as long as parsing a memory-mapped file, and a mapped file that becomes shorter would end the
program. A file that changes while it is read is refused.
"""

import os
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.data.early import Early, Turns
from hogwild.data.opening import (
    Progress,
    Watched,
    exhaust,
    explained,
    is_packed,
    reading,
    size_of,
    unpacked,
)
from hogwild.errors import DataError
from hogwild.kernels.compile import Kernel, ready
from hogwild.kernels.text import PADDING
from hogwild.machine import available_memory, usable_cores
from hogwild.threads import lock_and_condition, side_by_side

HEAD = 1 << 16  # bytes of a file that are in its first piece, at the least
PIECE = 1 << 20  # bytes of text parsed at a time; with what comes of them they fit into a cache
BEHIND = 1 << 13  # bytes that are read beyond a piece at first, for the rest of its last line
SMALL = 1 << 22  # bytes of text that one thread reads sooner than several
SAMPLES, SAMPLE = 16, 1 << 16  # places in the files, and bytes there, to see how dense text is
PAGE, TOUCHED = 1 << 12, 1 << 23  # bytes of the smallest pages, and of pages at a time
UNPACKED = 4  # bytes of text in a byte of a packed file, about
PACKED = 500  # more text than this for each packed byte is refused, from some size on
SUSPECT = 1 << 30  # bytes of text: that size
LONG = 1 << 26  # bytes of a line, before which nobody asks whether it fits into memory
PER_BYTE = 8  # bytes of memory that parsing takes for each byte of a long line, about
RESERVE = 1 << 26  # bytes of memory that reading leaves to others
MAPPED = 1 << 26  # bytes; so much malloc always maps by itself, and can move without copying

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

T = TypeVar("T")
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


class Parser(Generic[T]):
    """What a format does with pieces of text: see the module's first lines."""

    alone = False

    def parse(self, piece: Piece) -> T:
        """What is in a piece."""
        raise NotImplementedError

    def take(self, found: T) -> Callable[[], None] | None:
        """Adds the result of the next piece, except for the work that can be done in parallel."""
        raise NotImplementedError


class Pool(Generic[T]):
    """Objects that are reused: as many as are in use at the same time."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._free: list[T] = []

    def get(self) -> T:
        """One that nobody uses."""
        with suppress(IndexError):
            return self._free.pop()
        return self._make()

    def put(self, thing: T) -> None:
        """Gives it back."""
        self._free.append(thing)


class Growing:
    """Arrays that are filled from several threads, and get longer in between.

    `add` belongs into `Parser.take`, and `filling` into what that returns. `used` says how many
    numbers each array has so far.
    """

    def __init__(self, kinds: Sequence[Any], paths: Sequence[Path]) -> None:
        self._arrays = [np.empty(0, kind) for kind in kinds]
        self.used = [0] * len(kinds)
        sizes = [text_size(path) for path in paths]
        self._size = sum(sizes) if all(sizes) else 0  # bytes of all text; 0: unknown
        self._read = 0
        self._name = f"{paths[0]}{' and others' * (len(paths) > 1)}" if paths else "the stream"
        self._to_fill = 0
        self._guard, self._filled = lock_and_condition()  # of what is still to be filled

    def add(self, counts: Sequence[int], size: int) -> list[int]:
        """The places of more numbers in each array; they came from `size` bytes of text.

        One `filling` must follow.
        """
        places = self.used
        self.used = [used + count for used, count in zip(places, counts, strict=True)]
        self._read += size
        if self._read > LONG and available_memory() < RESERVE:
            raise DataError(
                f"{self._name}: does not fit into memory; {self._read:,} bytes of text did. Use a "
                "machine with more, or fewer rows"
            )
        pairs = list(zip(self._arrays, self.used, strict=True))
        if any(len(array) < used for array, used in pairs):
            self._wait()
            self._arrays = [self._longer(array, used) for array, used in pairs]
        with self._guard:
            self._to_fill += 1
        return places

    @contextmanager
    def filling(self) -> Iterator[list[npt.NDArray[Any]]]:
        """The arrays, which stay where they are until this ends."""
        try:
            yield self._arrays
        finally:
            with self._guard:
                self._to_fill -= 1
                self._filled.notify_all()

    def settled(self) -> list[npt.NDArray[Any]]:
        """All that was added so far, once it is there; to be called where `add` is."""
        self._wait()
        return [array[:used] for array, used in zip(self._arrays, self.used, strict=True)]

    def _wait(self) -> None:
        with self._guard:
            self._filled.wait_for(lambda: not self._to_fill)

    def expect(self, counts: Sequence[int]) -> list[npt.NDArray[Any]]:
        """Makes arrays of about the length that they will have; nothing must be in them yet."""
        self._arrays = [
            np.empty(count, array.dtype) for array, count in zip(self._arrays, counts, strict=True)
        ]
        return self._arrays

    def cut(self) -> list[npt.NDArray[Any]]:
        """The arrays, with just the right length."""
        for array, used in zip(self._arrays, self.used, strict=True):
            array.resize(used, refcheck=False)
        return self._arrays

    def _longer(self, array: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
        """The array with room for what is used, and for as much more as is expected."""
        if len(array) >= used:
            return array
        ahead = 1.02 * self._size / self._read if self._read else 1.0
        wanted = 1 + int(used * max(1 + 1 / 16, ahead))
        if array.nbytes >= MAPPED:
            # Moves pages instead of bytes, but fills the rest with zeros
            array.resize(wanted, refcheck=False)
            return array
        if not self._size:
            wanted = max(wanted, MAPPED // array.itemsize)
        longer = np.empty(wanted, array.dtype)
        longer[: len(array)] = array
        return longer


def read_pieces(paths: Sequence[Path], parser: Parser[Any], threads: int | None = None) -> None:
    """Reads files with a parser.

    Args:
        paths: the files, in their order.
        parser: what parses their pieces, and takes what was found.
        threads: how many threads parse; None: as many as `threads_for` says.

    Raises:
        DataError: a file cannot be read, or what the parser raises.
    """
    count = threads_for(paths) if threads is None else threads
    with reading(paths) as progress, Turns(paths, progress, count) as turns:
        _Reading(paths, parser, count, progress, turns).run()


def get_ready(
    kernels: Sequence[Kernel],
    arrays: Growing,
    paths: Sequence[Path],
    counts: Callable[[bytes], Sequence[int]],
) -> None:
    """Loads kernels. Meanwhile, another core asks the system for the memory of the arrays.

    The first kernel of a process takes 0.2 s to load, and half a gigabyte of new pages about as
    long. `counts` says how many numbers of each array come of some text; samples from all over the
    files tell how many there will be.
    """
    sizes = [text_size(path) for path in paths]
    if all(kernel.is_ready for kernel in kernels) or not all(sizes) or threads_for(paths) == 1:
        ready(*kernels)
        return
    sample = _sample(paths, sizes)
    share = 1.02 * sum(sizes) / max(1, len(sample))
    made = arrays.expect([1 + int(share * count) for count in counts(sample)])
    done = threading.Event()
    toucher = threading.Thread(target=_touch, args=(made, done))
    toucher.start()
    try:
        ready(*kernels)
    finally:
        done.set()
        toucher.join()


def _sample(paths: Sequence[Path], sizes: Sequence[int]) -> bytes:
    """Text from all over the files."""
    parts, begin, step = [], 0, max(1, sum(sizes) // SAMPLES)
    for path, size in zip(paths, sizes, strict=True):
        with explained(path), path.open("rb", buffering=0) as file:
            for at in range(-begin % step, size, step):
                file.seek(at)
                parts.append(file.read(SAMPLE))
        begin += size
    return b"".join(parts)


def _touch(arrays: Sequence[npt.NDArray[Any]], done: threading.Event) -> None:
    """Writes to pages of the arrays until it is done."""
    for array in arrays:
        content = array.view(np.uint8)
        for begin in range(0, len(content), TOUCHED):
            if done.is_set():
                return
            content[begin : begin + TOUCHED : PAGE] = 0


def threads_for(paths: Sequence[Path]) -> int:
    """How many threads read these files: one for each core, but one alone where there is little."""
    sizes = [size_of(path) * (UNPACKED if is_packed(path) else 1) for path in paths]
    return 1 if all(sizes) and sum(sizes) < SMALL else usable_cores()


def text_size(path: Path) -> int:
    """Bytes of text in a file; 0 where nobody knows: in a pipe, or before it is unpacked."""
    return 0 if is_packed(path) else size_of(path)


class _Buffer:
    """Bytes for a piece."""

    def __init__(self, size: int) -> None:
        self._make(size)

    def _make(self, size: int) -> None:
        self.size = size
        self.text = bytearray(size + PADDING)
        self.array: Bytes = np.frombuffer(self.text, np.uint8)

    def grow(self, size: int, used: int) -> None:
        """Makes room for so many bytes, of which some are in use."""
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


Read = Callable[[_Buffer], Piece | None]  # a piece, or None where no line begins in it


class _Regular:
    """A file whose pieces any thread reads."""

    def __init__(self, path: Path, progress: Progress) -> None:
        self._name = str(path)
        self._file = path.open("rb", buffering=0)
        self._known = os.fstat(self._file.fileno())
        self._progress = progress
        self._next = 0

    def next(self, _: _Buffer) -> Read | None:
        """What reads the next piece."""
        begin, size = self._next, self._known.st_size
        if begin >= size:
            return None
        end = self._next = min(size, begin + (PIECE if begin else HEAD))
        self._progress.add(end - begin)
        return partial(self._read, begin, end)

    def _read(self, first: int, last: int, buffer: _Buffer) -> Piece | None:
        """The lines that begin in this range of bytes."""
        start = max(0, first - 1)  # a line may begin behind the byte before
        have = self._fill(start, min(self._known.st_size, last + BEHIND), buffer, 0)
        begin = first and buffer.text.find(b"\n", 0, last - 1 - start) + 1
        if first and not begin:
            return None
        end = self._end_of_line(start, last - 1 - start, have, buffer)
        before = partial(self._lines, start + begin)
        return Piece(self._name, buffer.text, buffer.array, begin, end, first == 0, before)

    def _end_of_line(self, start: int, at: int, have: int, buffer: _Buffer) -> int:
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

    def _fill(self, start: int, end: int, buffer: _Buffer, have: int) -> int:
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


class _Pipe(Watched):
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


class _Stream:
    """A file that is packed, or a pipe: one thread at a time reads on."""

    def __init__(
        self,
        path: Path,
        progress: Progress,
        stopped: Callable[[], bool],
        early: Early | None,
    ) -> None:
        self._path, self._early = path, early
        self._raw = early or _Pipe(path, progress, stopped)
        self._file: Any = early or unpacked(path, self._raw, "rb").__enter__()
        self._kept = b""
        self._lines = self._unpacked = 0
        self._begun = self._ended = False

    def next(self, buffer: _Buffer) -> Read | None:
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

    def _fill(self, buffer: _Buffer) -> tuple[int, int]:
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


Source = _Regular | _Stream


def _source(
    path: Path, progress: Progress, stopped: Callable[[], bool], early: Early | None
) -> Source:
    with explained(path):
        if text_size(path):
            return _Regular(path, progress)
        return _Stream(path, progress, stopped, early)


class _Done(NamedTuple):
    """The result of a piece (if a line begins in it), or an error."""

    source: Source | None
    found: Any = None
    empty: bool = False
    error: DataError | None = None


class _Reading:
    """What the threads share."""

    def __init__(
        self,
        paths: Sequence[Path],
        parser: Parser[Any],
        threads: int,
        progress: Progress,
        turns: Turns,
    ) -> None:
        self._parser = parser
        self._threads = threads
        self._sources = (
            _source(path, progress, lambda: self._ended, turns.file_of(path)) for path in paths
        )
        self._looking = threading.Lock()  # held by who looks for the next piece
        self._guard, self._changed = lock_and_condition()  # of all that follows
        self._open: list[Source] = []  # the last one is read from
        self._begun = self._taken = 0  # pieces
        self._ended = False  # no other piece is begun
        self._ready: dict[int, _Done] = {}
        self._failed: _Done | None = None

    def run(self) -> None:
        """Reads all files, with several threads of which this is one."""
        try:
            side_by_side([self._work] * self._threads, self._threads)
            if self._failed is not None:
                if self._failed.source is not None:
                    self._failed.source.check()
                assert self._failed.error is not None
                raise self._failed.error
            self._close_before(None)
        finally:
            for source in self._open:
                source.close()

    def _work(self) -> None:
        buffer = _Buffer(PIECE + BEHIND + 1)
        try:
            while (given := self._next(buffer)) is not None:
                number, source, read = given
                done = self._parsed(source, read, buffer)
                with self._guard:
                    self._ready[number] = done
                while (rest := self._take()) is not None:
                    rest()
        except BaseException:
            with self._guard:
                self._end()
            raise

    def _next(self, buffer: _Buffer) -> tuple[int, Source | None, Read] | None:
        """The number of the next piece, its file, and what reads it."""
        with self._looking:
            with self._guard:
                self._changed.wait_for(lambda: self._ended or self._has_room())
                if self._ended:
                    return None
            problem: DataError | None = None
            try:
                read = self._look(buffer)
            except DataError as error:
                read, problem = partial(_raise, error), error
            with self._guard:
                if read is None or problem:
                    self._end()
                if read is None:
                    return None
                self._begun += 1
                return self._begun - 1, self._open[-1] if self._open else None, read

    def _has_room(self) -> bool:
        limit = 1 if self._parser.alone else 2 * self._threads
        return self._begun - self._taken < limit

    def _look(self, buffer: _Buffer) -> Read | None:
        while not self._open or (read := self._open[-1].next(buffer)) is None:
            source = next(self._sources, None)
            if source is None:
                return None
            with self._guard:
                self._open.append(source)
        return read

    def _parsed(self, source: Source | None, read: Read, buffer: _Buffer) -> _Done:
        piece = None
        try:
            piece = read(buffer)
            if piece is None:
                return _Done(source, empty=True)
            return _Done(source, self._parser.parse(piece))
        except DataError as error:
            return _Done(source, error=error)
        except MemoryError as error:
            what = piece.name if piece is not None else "the text"
            problem = f"{what}: does not fit into memory ({error}); use a machine with more"
            return _Done(source, error=DataError(problem))

    def _take(self) -> Callable[[], None] | None:
        """Takes the next result, if it is ready; returns the work that is left to do with it."""
        with self._guard:
            done = self._ready.pop(self._taken, None)
            if done is None or self._failed:
                return None
            rest = None
            try:
                self._close_before(done.source)
                if done.error:
                    raise done.error
                if not done.empty:
                    rest = self._parser.take(done.found)
            except DataError as error:
                self._failed = done._replace(error=error)
                self._end()
                return None
            self._taken += 1
            self._changed.notify_all()
            return rest or _nothing

    def _close_before(self, source: Source | None) -> None:
        """Closes the files before this one, or all."""
        while self._open and self._open[0] is not source:
            self._open[0].check()
            self._open.pop(0).close()

    def _end(self) -> None:
        self._ended = True
        self._changed.notify_all()


def _raise(error: DataError, _: _Buffer) -> None:
    raise error


def _nothing() -> None:
    pass
