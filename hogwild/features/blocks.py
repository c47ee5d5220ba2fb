"""Deals a file to threads, in blocks of whole lines: one thread reads while the others parse."""

import io
import os
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.sources import start_of_text
from hogwild.errors import DataError
from hogwild.kernels.text import AHEAD, PADDING

BLOCK = 1 << 19  # bytes; what is made of them stays in a core's cache
BEHIND = PADDING + int(AHEAD)  # bytes behind the text, which kernels may look at
TAIL = 1 << 14  # bytes in which the last line end is looked for at first

Bytes = npt.NDArray[np.uint8]


class Block:
    """A thread's own buffer, with whole lines in it from `begin` up to `size`."""

    def __init__(self) -> None:
        self.text: Bytes = np.empty(BLOCK + BEHIND, np.uint8)
        self.number = -1
        self.begin = self.size = 0

    def grow(self) -> None:
        """Room for twice as much."""
        self.text = np.concatenate([self.text, np.empty(len(self.text), np.uint8)])


def last_line(text: Bytes, begin: int, end: int) -> int:
    """The place behind the last line end in text[begin:end]; 0 if there is none."""
    for first in (max(begin, end - TAIL), begin):  # most lines are short
        place = text.data[first:end].tobytes().rfind(b"\n")
        if place >= 0:
            return first + place + 1
    return 0


class Dealer:
    """Deals the lines of an open file, in order, to whoever asks next.

    `cut` says where the last whole line of a text ends, `size` how many bytes there are; 0: nobody
    knows.
    """

    cut: Callable[[Bytes, int, int], int] = staticmethod(last_line)

    def __init__(self, file: Any, name: str) -> None:
        self._file, self.name = file, name
        self._known = os.fstat(file.fileno()) if isinstance(file, io.FileIO) else None
        self.size = self._known.st_size if self._known else 0
        self._lock = Lock()
        self._kept: Bytes = np.empty(0, np.uint8)  # the beginning of the next block's first line
        self._number = 0
        self._peeked: Block | None = None
        self._ended = False

    def beginning(self) -> bytes:
        """The first lines of the file; they will be dealt, too."""
        block = self._beginning()
        return block.text[block.begin : block.size].tobytes()

    def skip(self, size: int) -> None:
        """Leaves out so many bytes at the beginning."""
        self._beginning().begin += size

    def cut_by(self, cut: Callable[[Bytes, int, int], int]) -> None:
        """Where else lines end, also in what was looked at already."""
        self.cut = cut  # type: ignore[method-assign]
        block = self._beginning()
        size = block.size if self._ended else cut(block.text, 0, block.size)
        if size < block.size:
            self._kept = np.concatenate([block.text[size : block.size], self._kept])
            block.size = size

    def _beginning(self) -> Block:
        if self._peeked is None:
            self._peeked = Block()
            self._fill(self._peeked)
        return self._peeked

    def check(self) -> None:
        """Refuses a file that has changed since it was opened."""
        if self._known is not None:
            now, known = os.fstat(self._file.fileno()), self._known
            if (now.st_size, now.st_mtime_ns) != (known.st_size, known.st_mtime_ns):
                raise DataError(
                    f"{self.name}: has changed while it was read; read it again when nothing "
                    "writes to it"
                )

    def stop(self) -> None:
        """Deals no more."""
        self._ended = True

    def fill(self, block: Block) -> bool:
        """Fills a block with the next lines; False at the end."""
        with self._lock:
            if self._peeked is not None:
                peeked, self._peeked = self._peeked, None
                block.__dict__.update(peeked.__dict__)
                return block.size > 0
            return not self._ended and self._fill(block)

    def _fill(self, block: Block) -> bool:
        used = len(self._kept)
        while len(block.text) < used + BLOCK // 2 + BEHIND:
            block.grow()
        block.text[:used] = self._kept
        size, looked_at = 0, used
        while not size:
            if used == len(block.text) - BEHIND:
                block.grow()
            used = self._read(block.text, used)
            if self._ended:
                if not used:
                    return False
                block.text[used] = ord("\n")  # a byte that nothing was read into
                size = used = used + (block.text[used - 1] != ord("\n"))
            else:
                size = self.cut(block.text, looked_at, used)
                looked_at = used
        self._kept = block.text[size:used].copy()
        block.text[size : size + BEHIND] = 0
        block.number, block.begin, block.size = self._number, 0, size
        if self._number == 0:
            block.begin = start_of_text(bytearray(block.text[:16]), f"{self.name}: is not text")
        self._number += 1
        return True

    def _read(self, text: Bytes, used: int) -> int:
        """Reads until the text is full; where it ends."""
        room = len(text) - BEHIND
        while used < room and not self._ended:
            got = self._file.readinto(text.data[used:room])
            self._ended = not got
            used += got
        return used
