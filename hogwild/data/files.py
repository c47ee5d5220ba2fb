"""Opening files, and which format is read by which module.

A format is a function that reads from an open file, and one that writes into one. To add a format,
write a module with both, and name its suffix in `FORMATS`.
"""

import bz2
import gzip
import io
import os
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild import status
from hogwild.data import npz, rows_file, svmlight
from hogwild.data.rows import Rows
from hogwild.errors import DataError, OptionError
from hogwild.paths import PathLike, writing

INDEX_BASES = ("auto", 0, 1)

COMPRESSED = {".gz": "gzip", ".bz2": "bzip2"}

BLOCK = 1 << 16  # bytes of bzip2 to read at a time

PACKED = (".npz", rows_file.SUFFIX)  # formats that do their own packing

Format = tuple[Callable[..., Any], Callable[..., None]]  # what reads, and what writes

FORMATS: dict[str, Format] = {
    ".npz": (npz.read, npz.write),
    rows_file.SUFFIX: (rows_file.read, rows_file.write),
}
OTHERWISE: Format = svmlight.read, svmlight.write


def load(path: PathLike, *, index_base: str | int = "auto", labels: bool = True) -> Rows:
    """Reads rows from a file: `.rows`, a scipy `.npz`, or else svmlight text, plain or packed.

    A `.rows` file is only opened: its rows are read when they are first used. Text may be packed as
    `.gz` or `.bz2`.

    Args:
        path: the file.
        index_base: the number that the file gives to the first column. "auto" takes 0 if the
            index 0 occurs anywhere, else 1.
        labels: False accepts data without labels, to predict.

    Raises:
        DataError: the file cannot be used; the text says where, and what is expected there.
    """
    check_index_base(index_base)
    path = Path(path)
    read, _ = format_of(path, FORMATS, OTHERWISE)
    with opened(path) as file:
        rows: Rows = read(path, file, index_base=index_base, labels=labels)
    return rows


def check_index_base(index_base: str | int) -> None:
    """Refuses what is no index base."""
    if index_base not in INDEX_BASES or isinstance(index_base, bool):
        raise OptionError(f'index_base must be "auto", 0 or 1, not {index_base!r}')


def save(rows: Rows, path: PathLike, *, index_base: int | None = None) -> None:
    """Writes rows to a file that `load` reads back bit for bit, in the format of its suffix.

    Args:
        rows: the data.
        path: the file. It is replaced once all is written, and untouched if anything fails.
        index_base: the number to give to the first column, 0 or 1; None keeps `rows.index_base`, or
            in text takes 1 where there is none.

    Raises:
        HogwildError: the file cannot be written, or the format cannot hold the data.
    """
    if not isinstance(rows, Rows):
        raise DataError(
            f"save takes hogwild.Rows, not a {type(rows).__name__}; for ratings: save_ratings"
        )
    if index_base is None:
        index_base = rows.index_base
    if index_base not in (0, 1, None) or isinstance(index_base, bool):
        raise OptionError(f"index_base must be 0, 1 or None, not {index_base!r}")
    path = Path(path)
    _, write = format_of(path, FORMATS, OTHERWISE)
    with writing(path) as raw, unpacked(path, raw, "wb") as file:
        write(rows, file, index_base=index_base)


def load_weights(path: PathLike) -> npt.NDArray[np.float64]:
    """Reads a number from each line; the file may be `.gz` or `.bz2`.

    Raises:
        DataError: says which line is not a number of 0 or more.
    """
    with opened(Path(path)) as file:
        lines = file.read().splitlines()
    weights = np.empty(len(lines))
    for place, line in enumerate(lines):
        try:
            weights[place] = float(line)
        except ValueError:
            weights[place] = np.nan
        if not 0 <= weights[place] < np.inf:
            shown = line[:40].decode("utf-8", "replace")
            raise DataError(
                f"{path}: line {place + 1}: {shown!r} is not a weight; expected a number of 0 or "
                "more on each line, one for each row"
            )
    return weights


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to read; what the system complains about, now or later, becomes a DataError."""
    try:
        with (
            status.doing(f"reading {path.name}") as now,
            Watched(path, now) as raw,
            unpacked(path, raw, "rb") as file,
        ):
            try:
                yield file
            except DataError:
                # To the checksum: a damaged file may give wrong text before that complains
                while file is not raw and file.read(1 << 20):
                    pass
                raise
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; name a file") from None
    except PermissionError:
        raise DataError(f"{path}: you are not permitted to read it") from None
    except (EOFError, zlib.error, OSError) as error:
        raise DataError(f"{path}: {_reason(error, path)}") from error


class Watched(io.FileIO):
    """A file to read that says how far it was read."""

    def __init__(self, path: Path, now: status.Doing) -> None:
        super().__init__(path)
        self._now, self._size = now, os.fstat(self.fileno()).st_size
        self._got = self._reads = 0

    def readinto(self, buffer: Any) -> int:
        return self._count(super().readinto(buffer))

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(-1 if size is None else size)
        self._count(len(data))
        return data

    def _count(self, got: int) -> int:
        self._got += got
        self._reads += 1
        if self._reads == 2:  # after the first one, a kernel may have been compiled
            self._now.began = time.monotonic()
        if not self._size or self._reads < 2:  # a pipe, or too early to say
            return got
        rate = self._got / 1e6 / max(1e-3, time.monotonic() - self._now.began)
        done = min(self._got, self._size)
        self._now.counted(done, self._size, f"{rate:,.0f} MB/s")
        return got


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return f"cannot be read: {error.strerror}"
    kind = COMPRESSED.get(path.suffix.lower(), "compressed")
    return f"cut off, damaged, or not a {kind} file in spite of its name ({error}); get it anew"


def unpacked(path: Path, raw: Any, mode: str) -> AbstractContextManager[Any]:
    """The contents of a file as its suffix says; the same bytes for the same contents."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        # Reads on to the end: zeros behind a member are padding, as for gzip(1); all else must be
        # another member, or is an error
        return gzip.GzipFile("", mode, compresslevel=6, fileobj=raw, mtime=0)
    if suffix == ".bz2":
        return io.BufferedReader(Streams(raw)) if mode == "rb" else bz2.BZ2File(raw, "wb")
    return nullcontext(raw)


class Streams(io.RawIOBase):
    """The contents of bzip2 streams one after the other, with nothing between and behind them.

    Python's own reader takes what is no bzip2 for garbage behind the last stream, and leaves out
    the rest of the file. But a stream with a flipped bit looks just like garbage. bzip2 knows no
    padding, unlike gzip: zeros at the end are refused like all else.
    """

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._stream = bz2.BZ2Decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills some of the buffer; 0 at the end of the last stream.

        Raises:
            OSError: what is there is no bzip2.
            EOFError: the file ends within a stream.
        """
        data = b""
        while not data:
            packed = b""
            if self._stream.eof or self._stream.needs_input:
                packed = self._stream.unused_data or self._packed.read(BLOCK)
                if not packed and not self._stream.eof:
                    raise EOFError("the file ends within a stream")
                if not packed:
                    return 0
            if self._stream.eof:
                self._stream = bz2.BZ2Decompressor()
            data = self._stream.decompress(packed, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def suffix_of(path: Path) -> str:
    """The suffix that tells the format, in small letters: that before `.gz` or `.bz2`."""
    packed = path.suffix.lower() in COMPRESSED
    return Path(path.stem if packed else path.name).suffix.lower()


def format_of(path: Path, formats: dict[str, Format], otherwise: Format) -> Format:
    """The format that a file's suffix names, or the other one."""
    suffix = suffix_of(path)
    if suffix in PACKED and path.suffix.lower() in COMPRESSED:
        raise DataError(f"{path}: {suffix} files are not packed once more; leave out {path.suffix}")
    return formats.get(suffix, otherwise)
