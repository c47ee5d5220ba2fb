"""The format `.rows`: rows in blocks, each with a checksum, in a file that is mapped into memory.

    64 bytes    the head: `HEAD`
    blocks      of as many rows each, the last of fewer; see `kernels/row_blocks.py`
    arrays      where blocks begin, in bytes (`offsets`) and in non-zeros (`firsts`), their
                checksums and kinds; labels and sample weights, if there are any
    JSON        `arrays` (type, length, place and checksum of each), index base, names of features;
                how rows were made of text or tables, as model files have it

All is little-endian. Blocks, their parts and arrays begin on multiples of 64 bytes; zeros, behind
the JSON blanks, are between them. Opening a file checks the head, the JSON and the length. The rest
is checked when it is first used.
"""

import hashlib
import json
import mmap
import os
import struct
import tempfile
import weakref
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild import status
from hogwild.computed import cached_property
from hogwild.data.given_arrays import row_pointers
from hogwild.data.labels import LabelSets
from hogwild.data.rows import CSR, Rows, checked_weights, label_array
from hogwild.errors import DataError
from hogwild.features.encoder import Features
from hogwild.fingerprints import know
from hogwild.kernels import row_blocks as kernels
from hogwild.kernels.row_blocks import Blocks, block_bytes
from hogwild.kernels.views import view
from hogwild.machine import available_memory, usable_cores
from hogwild.model_file import DamageError
from hogwild.models.contents import Contents
from hogwild.threads import in_shares

SUFFIX = ".rows"
MAGIC, VERSION = b"HOGROWS\n", 1
# Magic, version, rows of a block, rows, non-zeros, columns, where the JSON begins, bytes in all,
# CRC-32 of the JSON, CRC-32 of what is before it in the head
HEAD = struct.Struct("<8sIIQQQQQII")
LINE = 64
BLOCK_BYTES = 64 << 10  # of a block, about: what a disk reads well, and caches hold many of
MOST_ROWS = 1 << 16  # of a block
BATCH = 4_000_000  # non-zeros that are packed at a time
LOOKED_AT = 8  # blocks, at most, that are checked for being in memory
LABEL_KINDS = "fiubUS"
SETS = "label_starts", "label_numbers", "label_names"
INDEX = {"offsets": np.uint64, "firsts": np.uint64, "checks": np.uint64, "kinds": np.uint8}
ONE = np.float32(1).view(np.uint32)

Array = npt.NDArray[Any]


def read(path: Path, file: BinaryIO, *, index_base: str | int, labels: bool) -> Rows:
    """Opens a file; its rows are read when they are first used."""
    return StoredRows(RowsFile(str(path), file.fileno()), index_base)


def write(rows: Rows, file: BinaryIO, *, index_base: int | None) -> None:
    """Writes all that rows have."""
    mean = 8 + 6 * rows.nonzeros // max(1, len(rows))
    writer = Writer(file, rows_of_block(mean))
    writer.add(rows)
    names = rows.feature_names
    writer.finish(rows.columns, arrays_of(rows), index_base, names, features=rows.features)


def rows_of_block(mean: float) -> int:
    """Rows of a block, where a row takes so many bytes."""
    return 1 << min(MOST_ROWS, max(1, int(BLOCK_BYTES / mean))).bit_length() - 1


def arrays_of(rows: Rows) -> dict[str, Array]:
    """Labels and sample weights, as a file has them."""
    found: dict[str, Array] = {}
    if isinstance(rows.y, LabelSets):
        found = dict(zip(SETS, (rows.y.starts, rows.y.numbers, rows.y.names), strict=True))
    elif rows.y is not None:
        found["labels"] = np.ascontiguousarray(rows.y)
    for name, array in found.items():
        if array.dtype.kind not in LABEL_KINDS:
            raise DataError(
                f"{rows.name}: {name.replace('_', ' ')} of the type {array.dtype} cannot be saved; "
                "make them numbers or text (astype(str))"
            )
    return found if rows.sample_weight is None else found | {"weights": rows.sample_weight}


class Writer:
    """Writes rows as they come; only the rows of the last, incomplete block stay in memory."""

    def __init__(self, file: BinaryIO, each: int) -> None:
        self._file, self._each = file, each
        self._rows = self._nonzeros = 0  # that are in blocks
        self._place = LINE
        self._index: dict[str, list[Array]] = {name: [] for name in INDEX}
        self._left: CSR = _no_rows()
        self._lanes = np.empty(kernels.LANES, np.uint32)
        file.write(bytes(LINE))

    def add(self, rows: Rows) -> None:
        """Adds rows behind those that are there."""
        begin = 0
        while begin < len(rows):
            nonzeros = rows.indptr[begin] + np.uint64(BATCH)
            end = int(np.searchsorted(rows.indptr, nonzeros, side="right")) - 1
            # Whole blocks, of rows that have not too many values together
            end = begin + max(1, (end - begin) // self._each) * self._each
            self._add(rows, begin, min(end, len(rows)))
            begin = end

    def _add(self, rows: Rows, begin: int, end: int) -> None:
        span = slice(int(rows.indptr[begin]), int(rows.indptr[end]))
        pointers = rows.indptr[begin : end + 1] - rows.indptr[begin]
        given = pointers, rows.indices[span], rows.values[span]
        if len(self._left[0]) > 1:
            before, columns, values = self._left
            given = (
                np.concatenate([before, pointers[1:] + before[-1]]),
                np.concatenate([columns, given[1]]),
                np.concatenate([values, given[2]]),
            )
        full = (len(given[0]) - 1) // self._each * self._each
        self._pack(given, full)
        self._left = _rows_from(given, full)

    def _pack(self, given: CSR, end: int) -> None:
        """Writes the first rows, all blocks of which but the last of the file are full."""
        pointers, columns, values = given
        places = np.append(np.arange(0, end, self._each), end)
        firsts = pointers[places]
        sizes = np.diff(firsts).astype(np.int64)
        if end == 0:
            return
        kinds = _kinds(columns[: int(firsts[-1])], values, firsts, sizes)
        room = block_bytes(np.diff(places), sizes, kinds)
        offsets = np.concatenate([[0], np.cumsum(room)]).astype(np.uint64)
        out = np.zeros(int(offsets[-1]), np.uint8)
        checks = np.empty(len(kinds), np.uint64)
        types = out.view(np.uint16), out.view(np.uint32), out.view(np.float32), out
        rows = pointers[: end + 1], columns, values
        kernels.pack_blocks(rows, 0, self._each, offsets, kinds, types, checks, self._lanes)
        self._file.write(out.data)
        found = offsets[:-1] + np.uint64(self._place), firsts[:-1] + np.uint64(self._nonzeros)
        for name, array in zip(INDEX, (*found, checks, kinds), strict=True):
            self._index[name].append(array)
        self._rows += end
        self._nonzeros += int(firsts[-1])
        self._place += len(out)

    def shift(self) -> None:
        """Corrects the rows so far: their columns were stored one too small."""
        self._index["kinds"] = [kinds | kernels.SHIFTED for kinds in self._index["kinds"]]
        self._left = self._left[0], self._left[1] + np.uint32(1), self._left[2]

    def finish(
        self,
        columns: int,
        arrays: dict[str, Array],
        index_base: int | None,
        names: list[str] | None = None,
        about: dict[str, Any] | None = None,
        features: Features | None = None,
    ) -> None:
        """Writes what is behind the blocks, and the head."""
        self._pack(self._left, len(self._left[0]) - 1)
        index = {name: _joined(self._index[name], kind) for name, kind in INDEX.items()}
        for name, end in (("offsets", self._place), ("firsts", self._nonzeros)):
            index[name] = np.append(index[name], np.uint64(end))
        learned = {} if features is None else features.arrays()
        given = (index | arrays | learned).items()
        described = {name: self._write(array) for name, array in given}
        head = {"arrays": described, "index_base": index_base, "feature_names": names}
        if features is not None:
            head["features"] = features.about()
        text = json.dumps(head | {"about": about or {}}).encode()
        text += b" " * (-len(text) % LINE)
        self._file.write(text)
        numbers = self._each, self._rows, self._nonzeros, columns, self._place
        start = HEAD.pack(MAGIC, VERSION, *numbers, self._place + len(text), zlib.crc32(text), 0)[
            :-4
        ]
        self._file.seek(0)
        self._file.write(start + struct.pack("<I", zlib.crc32(start)))

    def _write(self, array: Array) -> dict[str, Any]:
        """Writes an array; what the JSON says of it."""
        given = array.astype(array.dtype.newbyteorder("<"), copy=False)
        about = {"type": given.dtype.str, "length": len(given), "place": self._place}
        data = given.view(np.uint8) if len(given) and given.itemsize else np.zeros(0, np.uint8)
        tail = np.zeros(-len(data) % LINE, np.uint8)
        self._file.write(data.data)
        self._file.write(tail.data)
        self._place += len(data) + len(tail)
        return about | {"check": check_of(data, tail)}


def _no_rows() -> CSR:
    return np.zeros(1, np.uint64), np.empty(0, np.uint32), np.empty(0, np.float32)


def _rows_from(given: CSR, first: int) -> CSR:
    """A copy of the rows from this one on."""
    pointers, columns, values = given
    at = int(pointers[first])
    return pointers[first:] - pointers[first], columns[at:].copy(), values[at:].copy()


def _kinds(columns: Array, values: Array, firsts: Array, sizes: Array) -> npt.NDArray[np.uint8]:
    """For each block, the bytes of a column, and whether all values are 1."""
    kinds = np.full(len(sizes), np.uint8(2) | kernels.ONES, np.uint8)
    some = sizes > 0
    if some.any():
        begins = firsts[:-1][some].astype(np.int64)
        largest = np.maximum.reduceat(columns, begins)
        widths = 2 + (largest >= 1 << 16).astype(np.uint8) + (largest >= 1 << 24)
        are_ones = values[: len(columns)].view(np.uint32) == ONE
        ones = np.logical_and.reduceat(are_ones, begins)
        kinds[some] = widths.astype(np.uint8) | ones * kernels.ONES
    return kinds


def _joined(parts: list[Array], kind: Any) -> Array:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def check_of(data: Array, tail: Array) -> str:
    """The checksum of an array's bytes and the zeros behind them, as text."""
    whole = len(data) // LINE * LINE
    lanes, words = np.empty(kernels.LANES, np.uint32), (data[:whole].view(np.uint32))
    last = np.concatenate([data[whole:], tail]).view(np.uint32)
    found = [int(kernels.checksum(part, lanes)) for part in (words, last)]
    return "".join(f"{one:016x}" for one in found)


class Spool:
    """An array that grows on the disk, in a file without a name."""

    def __init__(self, folder: Path, kind: Any) -> None:
        self._kind = np.dtype(kind)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self.size = 0

    def add(self, array: Array) -> None:
        """Appends numbers."""
        self._file.write(np.ascontiguousarray(array, self._kind).data)
        self.size += len(array)

    def array(self) -> Array:
        """All of it, mapped."""
        self._file.flush()
        if not self.size:
            return np.empty(0, self._kind)
        return np.memmap(self._file, self._kind, "r")  # type: ignore[call-overload,no-any-return]


class Piece(NamedTuple):
    """What blocks were opened as: where each row of them begins and ends among these."""

    begins: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint64]
    columns: npt.NDArray[np.uint32]
    values: npt.NDArray[np.float32]


class RowsFile:
    """An open file. It is mapped, so processes that are forked share what memory holds of it.

    Attributes:
        name: for messages.
        rows, nonzeros, columns: how many there are.
        each: rows of a block.
        about: the JSON.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self._descriptor = os.dup(descriptor)
        weakref.finalize(self, os.close, self._descriptor)
        self.size = os.fstat(descriptor).st_size
        start = os.pread(descriptor, HEAD.size, 0)
        if not start.startswith(MAGIC):
            raise DataError(
                f"{name}: is not a {SUFFIX} file in spite of its name; write one with hogwild "
                "convert, or give it the suffix of its format"
            )
        if len(start) < HEAD.size:
            raise self.damaged("it is cut off within the head")
        _, version, self.each, self.rows, self.nonzeros, self.columns, place, size, check, own = (
            HEAD.unpack(start)
        )
        if version != VERSION:
            raise DataError(
                f"{name}: version {version} of the format, and this program reads {VERSION}; take "
                "a newer hogwild, or convert the data again"
            )
        if zlib.crc32(start[:-4]) != own:
            raise self.damaged("the head does not have its checksum")
        if size != self.size:
            raise self.damaged(f"it has {self.size:,} bytes, and {size:,} were written")
        if not self.each or self.blocks * LINE > size:
            raise self.damaged("there is no room for its rows")
        self._head = start
        self._map = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        self.bytes = np.frombuffer(self._map, np.uint8)
        text = self.bytes[place:].tobytes()
        if zlib.crc32(text) != check:
            raise self.damaged("the part behind the blocks does not have its checksum")
        self.about = json.loads(text)
        # One byte a block, which processes share: whether it was found sound
        self._known = np.frombuffer(mmap.mmap(-1, max(1, self.blocks)), np.uint8)

    def __reduce__(self) -> Any:
        return _opened_again, (self.name, self._head)

    @property
    def blocks(self) -> int:
        """How many there are."""
        return int(-(-self.rows // self.each))

    def damaged(self, what: str) -> DataError:
        """The error for a file that is damaged."""
        return DataError(
            f"{self.name}: is damaged or cut off: {what}. Convert the data again, or get the file "
            "anew"
        )

    def array(self, name: str) -> Array | None:
        """An array behind the blocks, checked and mapped; None where the file has none."""
        about = self.about["arrays"].get(name)
        if about is None:
            return None
        kind, begin = np.dtype(about["type"]), int(about["place"])
        if kind.kind not in LABEL_KINDS:
            raise self.damaged(f"its {name} are neither numbers nor text")
        size = kind.itemsize * int(about["length"])
        end = begin + -(-size // LINE) * LINE
        if begin % LINE or not LINE <= begin <= end <= self.size:
            raise self.damaged(f"there is no place for its {name}")
        data, tail = self.bytes[begin : begin + size], self.bytes[begin + size : end]
        if check_of(data, tail) != about["check"]:
            raise self.damaged(f"its {name} do not have their checksum")
        found = data.view(kind) if size else np.empty(int(about["length"]), kind)
        return found.astype(kind.newbyteorder("="), copy=False)

    @cached_property
    def features(self) -> Features | None:
        """How the rows were made of text or a table; None where they were not."""
        if "features" not in self.about:
            return None
        names = [name for name in self.about["arrays"] if name.startswith("features_")]
        arrays = {name: np.asarray(self.array(name)) for name in names}
        try:
            return Features.from_file(Contents(self.about, arrays))
        except DamageError as problem:
            raise self.damaged(str(problem)) from None

    @cached_property
    def index(self) -> Blocks:
        """The blocks as kernels take them, after a check that each lies within the file."""
        arrays = {name: self.array(name) for name in INDEX}
        lengths = self.blocks + 1, self.blocks + 1, self.blocks, self.blocks
        for (name, kind), length in zip(INDEX.items(), lengths, strict=True):
            array = arrays[name]
            if array is None or len(array) != length or array.dtype != kind:
                raise self.damaged(f"there are no {name} of its {self.blocks:,} blocks")
        offsets, firsts, _, kinds = (np.asarray(array) for array in arrays.values())
        rows = np.minimum(self.each, self.rows - self.each * np.arange(self.blocks))
        sizes = np.diff(firsts.astype(np.int64))
        sound = (
            int(firsts[0]) == 0
            and int(firsts[-1]) == self.nonzeros
            and int(offsets[0]) == LINE
            and int(offsets[-1]) <= self.size
            and bool(np.all(sizes >= 0))
            and bool(np.all(np.isin(kinds & kernels.WIDTH, (2, 3, 4))))
            and bool(np.all(np.diff(offsets.astype(np.int64)) == block_bytes(rows, sizes, kinds)))
        )
        if not sound:
            raise self.damaged("its blocks do not lie where they should")
        views = (self.bytes.view(kind) for kind in (np.uint16, np.uint32, np.float32))
        given = self.bytes, *views, *arrays.values(), self.rows, self.each, self.columns
        return view(Blocks, *given)

    def open(self, chosen: npt.NDArray[np.uint64], places: npt.NDArray[Any], piece: Piece) -> None:
        """Writes the rows of some blocks; the first non-zero of each block to its place."""
        self.check_length()
        lanes = np.empty(kernels.LANES, np.uint32)
        given = self.index, chosen, places.astype(np.uint64), self._known, lanes
        done = int(kernels.open_blocks(*given, *piece))
        if done < len(chosen):
            block = int(chosen[done])
            first, last = block * self.each + 1, min(self.rows, (block + 1) * self.each)
            raise self.damaged(
                f"block {block + 1:,} of {self.blocks:,}, rows {first:,} to {last:,}, is not "
                "as it was written"
            )

    def expect_any_order(self) -> None:
        """Tells the system that blocks will be opened in any order, if memory cannot hold the file.

        Else it reads what lies around each page that is not there, up to 8 MB for a block of 60 KB:
        the best where all of it will be used, and 30 times too much where it is dropped before.
        """
        if hasattr(mmap, "MADV_RANDOM") and self.size > available_memory():
            self._map.madvise(mmap.MADV_RANDOM)

    def ask_for(self, blocks: npt.NDArray[np.int64]) -> None:
        """Tells the system that some blocks, in ascending order, will be wanted soon."""
        if not len(blocks) or self._are_there(blocks):
            return
        last = np.flatnonzero(np.diff(blocks, append=blocks[-1] + 2) > 1)
        first = np.append(0, last[:-1] + 1)
        begins, ends = self.index.offsets[blocks[first]], self.index.offsets[blocks[last] + 1]
        self.ask_for_bytes(begins, ends - begins)

    def ask_for_bytes(self, begins: npt.NDArray[Any], sizes: npt.NDArray[Any]) -> None:
        """Tells the system that some parts of the file will be wanted soon."""
        if not hasattr(os, "posix_fadvise"):
            return
        with suppress(OSError):
            for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True):
                os.posix_fadvise(self._descriptor, begin, size, os.POSIX_FADV_WILLNEED)

    def _are_there(self, blocks: npt.NDArray[np.int64]) -> bool:
        """Whether some of these blocks are in memory; then likely all are."""
        if not hasattr(os, "RWF_NOWAIT"):
            return False
        byte = bytearray(1)
        try:
            for block in blocks[:: 1 + len(blocks) // LOOKED_AT].tolist():
                os.preadv(self._descriptor, [byte], int(self.index.offsets[block]), os.RWF_NOWAIT)
        except OSError:  # it is not there, or this kind of file cannot tell
            return False
        return True

    def check_length(self) -> None:
        """Refuses a file that was made shorter since it was opened."""
        if os.fstat(self._descriptor).st_size < self.size:
            raise self.damaged("it became shorter while it was read")

    @cached_property
    def csr(self) -> CSR:
        """All rows, in memory."""
        indptr = np.zeros(self.rows + 1, np.uint64)
        columns, values = np.empty(self.nonzeros, np.uint32), np.empty(self.nonzeros, np.float32)
        firsts = self.index.firsts
        piece = Piece(indptr[:-1], indptr[1:], columns, values)

        def opened(begin: int, end: int) -> None:
            chosen = np.arange(begin, end, dtype=np.uint64)
            self.open(chosen, firsts[begin:end], piece)

        with status.doing(f"reading {Path(self.name).name}"):
            in_shares(opened, self.blocks, usable_cores())
        digest = hashlib.blake2b(self._head + self.index.checks.tobytes(), digest_size=15).digest()
        for number, array in enumerate((indptr, columns, values)):
            array.flags.writeable = False
            know(array, digest + bytes([number]))
        return indptr, columns, values


def _opened_again(name: str, head: bytes) -> RowsFile:
    """The same file, in another process."""
    with Path(name).open("rb") as file:
        found = RowsFile(name, file.fileno())
    if found._head != head:
        raise DataError(f"{name}: is another file than it was; load it again")
    return found


class StoredRows(Rows):
    """The rows of a file. They are read and checked when they are first used."""

    def __init__(self, file: RowsFile, index_base: str | int = "auto") -> None:
        self.name, self.columns, self.file = file.name, file.columns, file
        base = file.about["index_base"]
        self.index_base = base if isinstance(index_base, str) else index_base
        self.feature_names = file.about["feature_names"]
        self.features = file.features

    def __getattr__(self, name: str) -> Any:
        """What is not there yet."""
        if name in ("_indptr", "begins", "ends", "indices", "values"):
            self._indptr, self.indices, self.values = self.file.csr
            self.begins, self.ends = self._indptr[:-1], self._indptr[1:]
        elif name == "y":
            self.y = self._labels()
        elif name == "sample_weight":
            self.sample_weight = checked_weights(self.file.array("weights"), len(self), self.name)
        else:
            raise AttributeError(name)
        return self.__dict__[name]

    def _labels(self) -> Any:
        starts, numbers, names = (self.file.array(name) for name in SETS)
        if starts is None:
            labels = self.file.array("labels")
            return None if labels is None else label_array(labels, self.file.rows, self.name)
        if numbers is None or names is None:
            raise self.file.damaged("its labels have no names")
        row_pointers(starts, len(numbers), f"{self.name}: the labels")
        if len(numbers) and int(numbers.max()) >= len(names):
            raise self.file.damaged("a label has no name")
        return label_array(LabelSets(starts, numbers, names), self.file.rows, self.name)

    @property
    def is_open(self) -> bool:
        """Whether the rows are in memory, or other rows were made of them."""
        return "begins" in self.__dict__

    def __len__(self) -> int:
        return super().__len__() if self.is_open else self.file.rows

    @property
    def is_part(self) -> bool:
        """Whether these are some rows of another object, and share its arrays."""
        return self.is_open and super().is_part

    @property
    def nonzeros(self) -> int:
        """How many values are stored."""
        return super().nonzeros if self.is_open else self.file.nonzeros
