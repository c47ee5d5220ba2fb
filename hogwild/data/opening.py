"""Opens files, packed or not. Errors of the system become a `DataError`."""

import bz2
import gzip
import importlib
import io
import lzma
import stat
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from hogwild import status
from hogwild.errors import DataError
from hogwild.extras import library
from hogwild.paths import writing

BLOCK = 1 << 18  # bytes of a packed file to read at a time
ZSTD_BLOCK = 1 << 14  # the same where the library cannot limit what comes of them
XZ_PADDING = 4  # zeros between streams and behind them come in multiples of this
WITH_HEADER = 31  # zlib's code for gzip, and for the largest window
ZSTD_LEVEL = 3
LIBRARY_ERRORS = "ZstdError", "IsalError"  # of libraries that may not be installed
PYTHONS_ZSTD = "compression.zstd"  # from 3.14 on


class Packing(NamedTuple):
    """A way to compress files: its name, what unpacks an open file, and what packs into one."""

    name: str
    reader: Callable[[BinaryIO], "Streams"]
    writer: Callable[[BinaryIO], Any]


def _gzip_reader(raw: BinaryIO) -> "Streams":
    return Streams(raw, _GzipStream, padding=1)  # any number of zeros is, as for gzip(1)


def _gzip_writer(raw: BinaryIO) -> Any:
    return gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0)


def _bzip2_reader(raw: BinaryIO) -> "Streams":
    return Streams(raw, bz2.BZ2Decompressor)


def _xz_reader(raw: BinaryIO) -> "Streams":
    def stream() -> Any:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ)

    return Streams(raw, stream, padding=XZ_PADDING)


def _zstd_reader(raw: BinaryIO) -> "Streams":
    zstd = _zstd()
    if zstd.__name__ == PYTHONS_ZSTD:
        return Streams(raw, zstd.ZstdDecompressor)

    def stream() -> _OfLibrary:
        return _OfLibrary(zstd.ZstdDecompressor().decompressobj())

    return Streams(raw, stream, ZSTD_BLOCK)


def _zstd_writer(raw: BinaryIO) -> Any:
    zstd = _zstd()
    if zstd.__name__ == PYTHONS_ZSTD:
        options = {
            zstd.CompressionParameter.compression_level: ZSTD_LEVEL,
            zstd.CompressionParameter.checksum_flag: 1,
        }
        return zstd.ZstdFile(raw, "wb", options=options)
    packer = zstd.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True)
    return packer.stream_writer(raw, closefd=False)


def _zstd() -> Any:
    name = PYTHONS_ZSTD if sys.version_info >= (3, 14) else "zstandard"
    return library(name, "hogwild[zstd]", "a .zst file")


def _bzip2_writer(raw: BinaryIO) -> Any:
    return bz2.BZ2File(raw, "wb")


def _xz_writer(raw: BinaryIO) -> Any:
    return lzma.LZMAFile(raw, "wb")


PACKINGS = {
    ".gz": Packing("gzip", _gzip_reader, _gzip_writer),
    ".bz2": Packing("bzip2", _bzip2_reader, _bzip2_writer),
    ".xz": Packing("xz", _xz_reader, _xz_writer),
    ".zst": Packing("zstd", _zstd_reader, _zstd_writer),
}


class Streams(io.RawIOBase):
    """The contents of packed streams one after the other, with nothing between and behind them.

    Python's own readers take bytes that are no stream for garbage behind the last stream, and leave
    out the rest of the file. But a stream with a flipped bit looks just like garbage. Zeros are
    refused, too, unless the format has them as padding.

    Attributes:
        waiting: how many unpacked bytes were not read yet.
        ended: whether all is unpacked.
    """

    def __init__(
        self, packed: BinaryIO, stream: Callable[[], Any], block: int = BLOCK, padding: int = 0
    ) -> None:
        self._packed = packed
        self._new_stream = stream
        self._stream = stream()
        self._block = block
        self._padding = padding
        self._ready: deque[memoryview] = deque()
        self._error: Exception | None = None
        self.waiting = 0
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills some of the buffer; 0 after the last stream. Raises what `prepare` raises."""
        if not self._ready:
            self.prepare(len(buffer))
        if self.ended and not self._ready:
            return 0
        first = self._ready.popleft()
        count = min(len(buffer), len(first))
        buffer[:count] = first[:count]
        if count < len(first):
            self._ready.appendleft(first[count:])
        self.waiting -= count
        return count

    def prepare(self, most: int) -> None:
        """Unpacks at most `most` more bytes, or somewhat more, which then wait to be read.

        Raises:
            OSError, or an error of the library: what is there is not packed in this way.
            EOFError: the file ends within a stream.
        """
        if self._error is not None:  # a stream that failed may now raise another error
            raise self._error
        try:
            text = b"" if self.ended else self._next(most)
        except Exception as error:
            self._error = error
            raise
        self.ended = not text
        self.waiting += len(text)
        if text:
            self._ready.append(memoryview(text))

    def _next(self, most: int) -> bytes:
        """The next bytes; none after the last stream."""
        text = b""
        while not text:
            packed = b""
            if self._stream.eof or self._stream.needs_input:
                packed = self._stream.unused_data or self._packed.read(self._block)
                if self._stream.eof:
                    packed = self._after_padding(packed)
                if not packed and not self._stream.eof:
                    raise EOFError("the file ends within a stream")
                if not packed:
                    break
            if self._stream.eof:
                self._stream = self._new_stream()
            text = bytes(self._stream.decompress(packed, most))
        return text

    def _after_padding(self, packed: bytes) -> bytes:
        """What follows the zeros behind a stream."""
        zeros = 0
        while self._padding and packed:
            rest = packed.lstrip(b"\0")
            zeros += len(packed) - len(rest)
            packed = rest
            if packed:
                break
            packed = self._packed.read(self._block)
        if zeros and zeros % self._padding:
            raise OSError(f"{zeros} zeros behind a stream, not a multiple of {self._padding}")
        return packed


class _OfLibrary:
    """A decompressor of some library, with the methods of Python's own ones."""

    needs_input = True

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._stream.unused_data)

    def decompress(self, packed: bytes, most: int) -> bytes:
        """Returns all that these bytes unpack to: the library knows no limit."""
        return bytes(self._stream.decompress(packed))


class _GzipStream(_OfLibrary):
    """A decompressor of gzip.

    The library `isal` unpacks twice as fast as Python's zlib, which does it where that is missing.
    """

    def __init__(self) -> None:
        super().__init__((_isal() or zlib).decompressobj(WITH_HEADER))

    def decompress(self, packed: bytes, most: int) -> bytes:
        """Returns at most `most` bytes; later calls return the rest."""
        text = bytes(self._stream.decompress(self._stream.unconsumed_tail + packed, most))
        self.needs_input = len(text) < most and not self._stream.unconsumed_tail
        return text


@cache
def _isal() -> Any:
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return None


def is_packed(path: Path) -> bool:
    """Whether a file's name says that it is compressed."""
    return path.suffix.lower() in PACKINGS


def suffix_of(path: Path) -> str:
    """The suffix that tells the format, in small letters: that before `.gz`, `.bz2` ..."""
    return Path(path.stem if is_packed(path) else path.name).suffix.lower()


def unpacked(path: Path, raw: Any, mode: str) -> AbstractContextManager[Any]:
    """The contents of a file as its suffix says; the same bytes for the same contents."""
    packing = PACKINGS.get(path.suffix.lower())
    if packing is None:
        return nullcontext(raw)
    if mode == "rb":
        return io.BufferedReader(packing.reader(raw), BLOCK)
    made: AbstractContextManager[Any] = packing.writer(raw)
    return made


class Progress:
    """Shows how much of some files was read; their size is 0 where that is not known."""

    def __init__(self, now: status.Doing, size: int) -> None:
        self._now, self._size = now, size
        self._got = self._reads = 0

    def add(self, got: int) -> None:
        """So many more bytes were read."""
        self._got += got
        self._reads += 1
        if self._reads == 2:  # after the first one, a kernel may have been compiled
            self._now.began = time.monotonic()
        if not self._size or self._reads < 2:  # a pipe, or too early to say
            return
        rate = self._got / 1e6 / max(1e-3, time.monotonic() - self._now.began)
        done = min(self._got, self._size)
        self._now.counted(done, self._size, f"{rate:,.0f} MB/s")


class Watched(io.FileIO):
    """A file to read that says how far it was read."""

    def __init__(self, path: Path, progress: Progress) -> None:
        super().__init__(path)
        self._progress = progress

    def readinto(self, buffer: Any) -> int:
        got = super().readinto(buffer)
        self._progress.add(got)
        return got

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        self._progress.add(len(data))
        return data


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to read; errors of the system, now or later, become a DataError."""
    with reading([path]) as progress, text_of(path, progress) as file:
        yield file


@contextmanager
def reading(paths: Sequence[Path]) -> Iterator[Progress]:
    """Reports that files are read, within a block that reads them all."""
    named = paths[0].name if len(paths) == 1 else f"{len(paths):,} files"
    with status.doing(f"reading {named}") as now:
        yield Progress(now, sum(size_of(path) for path in paths))


@contextmanager
def text_of(path: Path, progress: Progress, early: BinaryIO | None = None) -> Iterator[BinaryIO]:
    """As `opened`, for one of several files; `early` is its text if it may be unpacked already."""
    with explained(path), early or _text_of(path, progress) as file:
        try:
            yield file
        except DataError:
            # To the checksum: a damaged file may give wrong text before that complains
            if is_packed(path):
                exhaust(file)
            raise


@contextmanager
def _text_of(path: Path, progress: Progress) -> Iterator[BinaryIO]:
    with Watched(path, progress) as raw, unpacked(path, raw, "rb") as file:
        yield file


def size_of(path: Path) -> int:
    """The size of a regular file, else 0."""
    try:
        known = path.stat()
    except OSError:
        return 0
    return known.st_size if stat.S_ISREG(known.st_mode) else 0


@contextmanager
def created(path: Path) -> Iterator[tuple[BinaryIO, status.Doing]]:
    """A file that replaces `path` once it is written, packed if it is named so, and its status."""
    with (
        status.doing(f"writing {path.name}") as now,
        writing(path) as raw,
        unpacked(path, raw, "wb") as file,
    ):
        yield file, now


def exhaust(file: BinaryIO) -> None:
    """Reads what is left of a file."""
    while file.read(1 << 20):
        pass


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """A context in which errors of a file become a DataError that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file") from None
    except PermissionError:
        raise DataError(f"{path}: you are not permitted to read it") from None
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise DataError(f"{path}: {_reason(error, path)}") from error
    except Exception as error:
        if type(error).__name__ not in LIBRARY_ERRORS:
            raise
        raise DataError(f"{path}: {_reason(error, path)}") from error


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read: {error.strerror}"
    kind = PACKINGS[path.suffix.lower()].name if is_packed(path) else "compressed"
    return f"cut off, damaged, or not a {kind} file in spite of its name ({error}); get it anew"
