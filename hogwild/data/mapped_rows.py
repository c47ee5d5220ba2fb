"""Rows that stay in their file: a few blocks are open at a time, in the order of the visits.

A kernel sees a view of all rows. In this view, the rows of the open blocks have values, and all
others are empty. While the kernel runs, a thread asks the system for the next blocks in the order.
"""

import mmap
from collections.abc import Callable, Iterator
from threading import Semaphore, Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.rows import CSR, CSRParts, Rows
from hogwild.data.rows_file import Piece, StoredRows
from hogwild.errors import DataError
from hogwild.kernels.order import OPEN
from hogwild.kernels.rows import gather_rows
from hogwild.machine import available_memory

AT_ONCE = int(OPEN)  # blocks that are open
AHEAD = 2  # windows that are asked for before they are opened
# Windows after which the pages that say where rows began are given back
FORGET = 64
TOGETHER = 16  # neighboring rows that are drawn together: they lie in the same block

Numbers = npt.NDArray[Any]


class MappedRows(StoredRows):
    """The rows of a file, of which some blocks are in memory at a time; there are no arrays."""

    def __getattr__(self, name: str) -> Any:
        if name in ("_indptr", "begins", "ends", "indices", "values"):
            raise DataError(
                f"{self.name}: its rows stay on the disk, and this needs them in memory: train "
                "without a limit of memory, or on fewer rows"
            )
        return super().__getattr__(name)

    @classmethod
    def of(cls, rows: StoredRows) -> "MappedRows":
        """The same rows; they stay where they are."""
        found = cls.__new__(cls)
        found.__dict__.update(rows.__dict__)
        for name in ("_indptr", "begins", "ends", "indices", "values"):
            found.__dict__.pop(name, None)
        found.file.expect_any_order()
        return found

    def bare(self) -> "MappedRows":
        """The same without what lies in memory: labels and weights."""
        return MappedRows(self.file)

    @property
    def window(self) -> int:
        """Rows of the blocks that are open at the same time."""
        return int(AT_ONCE * self.file.each)

    def lengths(self, numbers: Numbers) -> npt.NDArray[np.int64]:
        index = self.file.index
        numbers = numbers.astype(np.int64)
        blocks = numbers // self.file.each
        places = index.offsets[blocks].astype(np.int64) // 4 + numbers - blocks * self.file.each
        self.file.ask_for_bytes(4 * places, np.full(len(places), 4))
        found: npt.NDArray[np.int64] = index.words[places].astype(np.int64)
        if np.any(found > np.diff(index.firsts.astype(np.int64))[blocks]):
            raise self.file.damaged("a row is longer than its block")
        return found

    def gather(self, numbers: npt.NDArray[np.uint64], threads: int = 1) -> CSR:
        """The CSR arrays of the rows with these numbers, in this order: copies."""
        indptr = np.zeros(len(numbers) + 1, np.uint64)
        np.cumsum(self.lengths(numbers), out=indptr[1:])
        indices = np.empty(int(indptr[-1]), np.uint32)
        values = np.empty(int(indptr[-1]), np.float32)
        reader, order = Reader(self), np.argsort(numbers, kind="stable")
        for some in np.array_split(order, 1 + len(numbers) // AT_ONCE):
            opened = reader.open(numbers[some])
            gather_rows(*opened, numbers[some], indptr[some], indices, values)
        return indptr, indices, values

    def drawn(self, picker: np.random.Generator, count: int) -> Numbers:
        """Random rows, in groups that lie together: each block has to be read."""
        groups = picker.choice(-(-len(self) // TOGETHER), -(-count // TOGETHER), replace=False)
        numbers = (groups[:, None] * TOGETHER + np.arange(TOGETHER)).ravel()
        return numbers[numbers < len(self)][:count]

    def some_values(self, most: int = 4096) -> npt.NDArray[np.float32]:
        """Values of random rows, the same ones each time."""
        picker = np.random.default_rng(0)
        numbers = self.drawn(picker, min(len(self), most))
        values = self.gather(numbers.astype(np.uint64))[2]
        return values[picker.integers(0, len(values), most)] if len(values) > most else values

    def part(self, numbers: Numbers) -> Rows:
        """Refused: some of the rows, which may lie anywhere."""
        raise DataError(
            f"{self.name}: its rows stay on the disk, where a part of them is not to be had; give "
            "the other part as a file of its own (validate, not early_stopping)"
        )

    def narrowed(self, columns: int) -> Rows:
        """Refused: rows without some columns."""
        raise DataError(
            f"{self.name}: has {self.columns:,} columns, the training data {columns:,}, and its "
            "rows stay on the disk; convert rows that have no others"
        )

    def shares(self, workers: int) -> list[int]:
        """How many rows each worker has, if they take blocks in turn."""
        each, blocks = self.file.each, self.file.blocks
        sizes = [each * len(range(rank, blocks, workers)) for rank in range(workers)]
        sizes[(blocks - 1) % workers] -= each * blocks - len(self)
        return sizes

    def pieces(self, begin: int, end: int) -> Iterator[tuple[int, int, Piece]]:
        """The rows from `begin` to `end` a window at a time: from which to which, and opened."""
        reader = Reader(self)
        for first in range(begin, end, self.window):
            last = min(first + self.window, end)
            self._ask_for(np.arange(last, min(last + self.window, end)))
            yield first, last, reader.open(np.arange(first, last))

    def _ask_for(self, numbers: Numbers) -> None:
        self.file.ask_for(np.unique(numbers // self.file.each))

    def at_hand(self) -> Iterator[tuple[slice, CSRParts]]:
        """The rows a window at a time: which they are, and where each begins and ends in what."""
        for first, last, piece in self.pieces(0, len(self)):
            mine = slice(first, last)
            yield mine, (piece.begins[mine], piece.ends[mine], piece.columns, piece.values)


def in_reach(rows: Rows) -> Rows:
    """The rows of a file, left there if they do not fit into memory; others as they are."""
    if isinstance(rows, StoredRows) and not rows.is_open and rows.nbytes > available_memory():
        return MappedRows.of(rows)
    return rows


class Reader:
    """Opens blocks for one worker. Opening reuses the arrays, so earlier blocks are gone."""

    def __init__(self, rows: MappedRows) -> None:
        self._rows, self._file = rows, rows.file
        self._file.expect_any_order()  # it may have been opened again, in another process
        self._size = len(rows)
        # Where rows begin and end: pages that nobody writes to take no memory
        self._pointers = mmap.mmap(-1, max(1, 16 * self._size), flags=mmap.MAP_PRIVATE)
        both = np.frombuffer(self._pointers, np.uint64)[: 2 * self._size].reshape(2, -1)
        self._begins, self._ends = both
        self._columns, self._values = np.zeros(1, np.uint32), np.zeros(1, np.float32)
        self._opened = 0
        self._ahead: _Ahead | None = None

    def open(self, numbers: Numbers) -> Piece:
        """The rows with these numbers, and others of their blocks; the rest are empty."""
        index = self._file.index
        blocks = np.unique(numbers // self._file.each).astype(np.int64)
        if not len(blocks):
            return Piece(self._begins, self._ends, self._columns, self._values)
        sizes = (index.firsts[blocks + 1] - index.firsts[blocks]).astype(np.int64)
        places = np.cumsum(sizes)
        self._make_room(int(places[-1]))
        self._forget()
        self._file.ask_for(blocks)  # again, where memory was too short to keep them
        piece = Piece(self._begins, self._ends, self._columns, self._values)
        self._file.open(blocks.astype(np.uint64), places - sizes, piece)
        return piece

    def follow(self, part: Callable[[int], Numbers], first: int, count: int) -> None:
        """Asks for the blocks of the parts of an order ahead of time, from the first part on."""
        self.rest()
        self._ahead = _Ahead(self._rows, part, range(first, count))
        self._ahead.start()

    def go_on(self) -> None:
        """The next part of the order is begun."""
        if self._ahead is not None:
            self._ahead.go_on()

    def rest(self) -> None:
        """Ends the thread that asks for more."""
        if self._ahead is not None:
            self._ahead.end()
        self._ahead = None

    def _make_room(self, nonzeros: int) -> None:
        if nonzeros > len(self._columns):
            room = nonzeros + nonzeros // 4
            self._columns, self._values = np.empty(room, np.uint32), np.empty(room, np.float32)

    def _forget(self) -> None:
        self._opened += 1
        if self._opened % FORGET == 0:
            self._pointers.madvise(mmap.MADV_DONTNEED)


class _Ahead(Thread):
    """Goes through an order, some windows ahead of the reader."""

    def __init__(self, rows: MappedRows, part: Callable[[int], Numbers], numbers: range) -> None:
        super().__init__(daemon=True)
        self._rows, self._part, self._numbers = rows, part, numbers
        self._left, self._ended = Semaphore(1 + AHEAD), False

    def run(self) -> None:
        """Asks for one part after the other."""
        for number in self._numbers:
            self._left.acquire()
            if self._ended:
                return
            self._rows._ask_for(self._part(number))

    def go_on(self) -> None:
        """One more part may be asked for."""
        self._left.release()

    def end(self) -> None:
        """No more."""
        self._ended = True
        self._left.release()
        self.join()
