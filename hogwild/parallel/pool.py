"""Worker processes that are kept from one training to the next, so that the next begins at once.

Workers are forked for the first job, and get its data without a copy. For a later job, workers are
sent a pickle that makes their work. Arrays that they do not have yet are copied into shared memory.
Workers are forked anew if that is cheaper, or if another number of workers is wanted. They end with
the program, after some idle time, and with `close_pool`.
"""

import atexit
import contextlib
import io
import os
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import WorkerError
from hogwild.fingerprints import fingerprint
from hogwild.interrupt import nothing
from hogwild.kernels.compile import Kernel
from hogwild.parallel.memory import Arena, Arrays, Wanted, shared_arrays
from hogwild.parallel.processes import Processes
from hogwild.parallel.team import Control, Tick, Work

IDLE = 20.0  # seconds after which kept workers end
SMALL = 1 << 16  # bytes: smaller arrays are sent with the problem
MOST_COPIED = 64 << 20  # bytes of data to copy; for more, forking anew takes less time

Data = dict[bytes, npt.NDArray[Any]]  # by fingerprint


def hire(
    make: Callable[[Arrays, Control], Work],
    wanted: Wanted,
    kernels: set[Kernel],
    workers: int,
    unzeroed: tuple[str, ...],
    patience: float,
) -> "Hired":
    """Workers that have begun on a job: the kept ones if they suit, else new ones.

    `make` makes their work of shared arrays and a control; it is sent to them, but for its large
    arrays. Some of the wanted arrays need not be zeroed. A worker that is stopped for `patience`
    seconds counts as dead.
    """
    global _kept
    kept = _LOCK.acquire(blocking=False)  # else some other thread has the kept ones
    try:
        packed, data = _packed(make)
        if kept and (found := _taken()) is not None:
            if found.suits(kernels, workers, data):
                # Someone may have ended them meanwhile
                with contextlib.suppress(WorkerError):
                    found.begin(wanted, packed, data, unzeroed, patience)
                    _kept = found
                    return found
            else:
                found.end()
        found = Hired(kernels, workers, data, kept)
        found.begin(wanted, packed, data, unzeroed, patience)
    except BaseException:
        if kept:
            _LOCK.release()
        raise
    if kept:
        _kept = found
    return found


def close_pool() -> None:
    """Ends the worker processes that are kept for the next training, if nobody is using them."""
    if not _LOCK.acquire(blocking=False):
        return
    try:
        if (found := _taken()) is not None:
            found.end()
    finally:
        _LOCK.release()


def pids() -> list[int]:
    """The process numbers of the kept workers, at work or not."""
    return [] if _kept is None else _kept.pids


def _taken() -> "Hired | None":
    """Takes the kept workers, which are no longer kept then. The caller must hold the lock."""
    global _kept, _timer
    if _timer is not None:
        _timer.cancel()
    found, _kept, _timer = _kept, None, None
    return found


class Hired:
    """A team of worker processes, the arrays that they have, and memory to share with them."""

    def __init__(self, kernels: set[Kernel], workers: int, data: Data, kept: bool) -> None:
        self.control = Control(shared_arrays(Control.arrays(workers)), workers)
        self.shared: Arrays
        self._arena = Arena()
        self._has = set(data)
        self._kernels = kernels
        self._kept = kept
        self._sound = True  # no command was broken off
        try:
            self._processes = Processes(_serving(self._arena, data, self.control), self.control)
        except BaseException:
            self._arena.close()
            raise

    @property
    def pids(self) -> list[int]:
        """The process numbers of the workers that live."""
        return self._processes.pids

    def suits(self, kernels: set[Kernel], workers: int, data: Data) -> bool:
        """Whether these workers can begin on a job sooner than new ones."""
        missing = self._missing(data)
        return (
            self._sound
            and self.control.workers == workers
            and sum(array.nbytes for array in missing.values()) <= MOST_COPIED
            and kernels <= self._kernels
            and self._processes.all_live()
        )

    def begin(
        self,
        wanted: Wanted,
        packed: bytes,
        data: Data,
        unzeroed: tuple[str, ...],
        patience: float,
    ) -> None:
        """Gives a job to the workers. If that fails, the workers are ended."""
        self._processes.patience = patience
        missing = self._missing(data)
        copies = {_place(found): (len(array), array.dtype) for found, array in missing.items()}
        wanted = wanted | copies
        try:
            self.shared = self._arena.arrays(wanted, unzeroed)
            for found, array in missing.items():
                self.shared.pop(_place(found))[:] = array
            self.run("begin", packed, wanted, list(missing), tick=nothing)
        except BaseException:
            self.end()
            raise

    def _missing(self, data: Data) -> Data:
        return {found: array for found, array in data.items() if found not in self._has}

    def run(self, command: str, *arguments: Any, tick: Tick) -> list[Any]:
        """Has every worker do the command; their answers by rank."""
        self._sound = False
        answers = self._processes.run(command, *arguments, tick=tick)
        self._sound = True
        return answers

    def close(self) -> None:
        """Releases the workers: they wait for the next job, or end."""
        global _kept, _timer
        if not self._kept:
            self.end()
            return
        try:
            if self._sound:
                with contextlib.suppress(WorkerError):
                    self.run("rest", tick=nothing)
            _timer = _started_timer() if self._sound else None
            if _timer is None:
                _kept = None
                self.end()
        finally:
            _LOCK.release()

    def end(self) -> None:
        """Ends the workers."""
        self._processes.close()
        self._arena.close()


def _started_timer() -> threading.Timer | None:
    """What ends idle workers; None if there is no memory for its thread."""
    timer = threading.Timer(IDLE, close_pool)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:
        return None
    return timer


def _serving(arena: Arena, data: Data, control: Control) -> Work:
    """What a worker does: it has its parent's data, and serves the work that was last begun."""
    at: Work | None = None

    def serve(rank: int, command: str, arguments: tuple[Any, ...]) -> Any:
        nonlocal at
        if command in ("begin", "rest"):
            at = None  # frees the last work before the next work, and its data, come
            at = _begun(arena, data, control, *arguments) if command == "begin" else None
            return None
        assert at is not None
        return at(rank, command, arguments)

    return serve


def _begun(
    arena: Arena, data: Data, control: Control, packed: bytes, wanted: Wanted, missing: list[bytes]
) -> Work:
    shared = arena.attach(wanted)
    known = data | {found: shared.pop(_place(found)) for found in missing}
    for found in missing:  # read-only: kernels are compiled for data that cannot be written
        known[found].flags.writeable = False
    make = _Unpacker(io.BytesIO(packed), known).load()
    work: Work = make(shared, control)
    return work


_LOCK = threading.Lock()  # held by whoever uses the kept workers
_kept: Hired | None = None
_timer: threading.Timer | None = None


def _forget() -> None:
    """In a process that was forked from this one: the kept workers belong to the parent."""
    global _kept, _timer, _LOCK
    _kept, _timer, _LOCK = None, None, threading.Lock()


atexit.register(close_pool)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# What is sent


class _Packer(pickle.Pickler):
    """Replaces large arrays by their fingerprints."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.data: Data = {}

    def persistent_id(self, thing: Any) -> bytes | None:
        large = isinstance(thing, np.ndarray) and thing.nbytes >= SMALL
        if not large or thing.ndim != 1 or thing.nbytes % 4 or not thing.flags.c_contiguous:
            return None
        found = fingerprint(thing)
        self.data[found] = thing
        return found


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, data: Data) -> None:
        super().__init__(file)
        self._data = data

    def persistent_load(self, found: Any) -> npt.NDArray[Any]:
        return self._data[found]


def _packed(thing: Any) -> tuple[bytes, Data]:
    """The pickled thing without its large arrays, and the large arrays."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(thing)
    return file.getvalue(), packer.data


def _place(found: bytes) -> str:
    return f"copy {found.hex()}"
