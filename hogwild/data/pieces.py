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
- A pipe or a compressed file is read and unpacked by one thread at a time while the others parse.
  Helpers unpack later files before their turn (`hogwild.data.early`).
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.data.early import Turns
from hogwild.data.opening import Progress, explained, is_packed, reading, size_of
from hogwild.data.sources import LONG, Buffer, Piece, Read, Source, source_of, text_size
from hogwild.errors import DataError
from hogwild.kernels.compile import Kernel, ready
from hogwild.machine import available_memory, usable_cores
from hogwild.threads import lock_and_condition, side_by_side

SMALL = 1 << 22  # bytes of text that one thread reads sooner than several
SAMPLES, SAMPLE = 16, 1 << 16  # places in the files, and bytes there, to see how dense text is
PAGE, TOUCHED = 1 << 12, 1 << 23  # bytes of the smallest pages, and of pages at a time
UNPACKED = 4  # bytes of text in a byte of a packed file, about
RESERVE = 1 << 26  # bytes of memory that reading leaves to others
MAPPED = 1 << 26  # bytes; so much malloc always maps by itself, and can move without copying

T = TypeVar("T")


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
            source_of(path, progress, lambda: self._ended, turns.file_of(path)) for path in paths
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
        buffer = Buffer()
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

    def _next(self, buffer: Buffer) -> tuple[int, Source | None, Read] | None:
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

    def _look(self, buffer: Buffer) -> Read | None:
        while not self._open or (read := self._open[-1].next(buffer)) is None:
            source = next(self._sources, None)
            if source is None:
                return None
            with self._guard:
                self._open.append(source)
        return read

    def _parsed(self, source: Source | None, read: Read, buffer: Buffer) -> _Done:
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


def _raise(error: DataError, _: Buffer) -> None:
    raise error


def _nothing() -> None:
    pass
