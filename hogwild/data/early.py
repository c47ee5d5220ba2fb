"""Packed files that are unpacked before their turn, while those in front of them are read.

To unpack a file takes several times as long as to parse what comes of it, and only one core can do
it, from the beginning to the end. Of several files, each core unpacks another one.
"""

import io
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from hogwild.data.opening import PACKINGS, Progress, Streams, Watched, is_packed, text_of
from hogwild.machine import available_memory
from hogwild.threads import Helper

CHUNK = 1 << 20  # bytes of text that are unpacked at a time
# Limits of unpacked text that is not read yet: one byte in 8 of available memory, and 4 GiB
SHARE, MOST = 8, 1 << 32
LATER = 0.005  # seconds to wait where there is no room for more text


class Room:
    """How many bytes of text may wait for their turn."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = Lock()

    def is_left(self) -> bool:
        """Whether more text may be unpacked."""
        return self._left > 0

    def take(self, size: int) -> None:
        """Takes room for more text; negative where text was read."""
        with self._lock:
            self._left -= size


class Early(io.RawIOBase):
    """The text of a packed file. `unpack_some` reads on, in any thread, until its turn comes.

    Attributes:
        path: of the file.
        has_turn: whether its text has been asked for.
        packed: bytes of the file itself that were read.
    """

    def __init__(self, path: Path, progress: Progress, room: Room) -> None:
        self.path = path
        self._progress, self._room = progress, room
        self._lock = Lock()  # of all that follows
        self._raw: Watched | None = None
        self._streams: Streams | None = None
        self._taken = 0  # of the room
        self.has_turn = False
        self.packed = 0

    def unpack_some(self) -> bool:
        """Unpacks some text; False if there is nothing more to do before its turn."""
        with self._lock:
            if self.has_turn:
                return False
            try:
                streams = self._opened()
                streams.prepare(CHUNK)
            except Exception:  # it is raised again when its turn comes
                return False
            self._account(streams)
            return not streams.ended

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills some of the buffer; 0 at the end. Raises what `Streams` raises, and OSError."""
        self.has_turn = True  # a helper that holds the lock now will not take it again
        with self._lock:
            streams = self._opened()
            count = streams.readinto(buffer)
            self._account(streams)
            return count

    def _opened(self) -> Streams:
        if self._streams is None:
            self._raw = self._raw or Watched(self.path, self._progress)
            self._streams = PACKINGS[self.path.suffix.lower()].reader(self._raw)
        return self._streams

    def _account(self, streams: Streams) -> None:
        """Takes room for the text that waits now; closes the file once it is unpacked."""
        self._room.take(streams.waiting - self._taken)
        self._taken = streams.waiting
        if self._raw is not None and not self._raw.closed:
            self.packed = self._raw.tell()
            if streams.ended:
                self._raw.close()

    def close(self) -> None:
        """Closes the file, if it was opened."""
        if self._raw is not None:
            self._raw.close()
        super().close()


class Turns:
    """Files in their order, of which packed ones are unpacked before their turn.

    `threads` is how many unpack, together with the one that reads. Other files are left alone.
    """

    def __init__(self, paths: Sequence[Path], progress: Progress, threads: int) -> None:
        self._progress = progress
        room = Room(min(MOST, available_memory() // SHARE))
        self._files = deque(
            Early(path, progress, room) for path in paths if is_packed(path) and path.is_file()
        )
        self._room = room
        self._next = iter([*self._files][1:])  # the first one is read at once
        self._lock = Lock()
        self._threads = threads
        self._ended = False
        self._waits: list[Callable[[], None]] = []

    def __enter__(self) -> "Turns":
        helpers = min(self._threads, len(self._files)) - 1
        try:
            for _ in range(helpers):
                self._waits.append(Helper.one().begin(self._work))
        except RuntimeError:  # the system has no more threads to give
            pass
        except BaseException:
            self._ended = True
            raise
        return self

    def __exit__(self, *problem: Any) -> None:
        self._ended = True
        for wait in self._waits:
            wait()
        for file in self._files:
            file.close()

    def file_of(self, path: Path) -> Early | None:
        """The text of this file, whose turn it is; None if it is not packed, or a pipe."""
        if self._files and self._files[0].path == path:
            return self._files.popleft()
        return None

    def opened(self, path: Path) -> AbstractContextManager[BinaryIO]:
        """Opens the file whose turn it is; errors of the system become a DataError."""
        early: Any = self.file_of(path)
        return text_of(path, self._progress, early)

    def _work(self) -> None:
        while (file := self._another()) is not None:
            while not self._ended and not file.has_turn:
                if not self._room.is_left():
                    time.sleep(LATER)
                elif not file.unpack_some():
                    break

    def _another(self) -> Early | None:
        with self._lock:
            return None if self._ended else next(self._next, None)
