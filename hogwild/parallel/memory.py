"""Memory that the workers see: made before they are forked, and gone with the last of them.

The memory is a memfd. It has no name to unlink, does not depend on the size of /dev/shm, and leaves
nothing behind after kill -9. A named block of `multiprocessing.shared_memory` would be no better
for forked workers, and would add a tracker process and a name that can leak.
"""

import contextlib
import errno
import mmap
import os
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import HogwildError, remedy
from hogwild.machine import available_memory

LINE = 64  # bytes in a cache line; every array begins on one

Arrays = dict[str, npt.NDArray[Any]]
Wanted = dict[str, tuple[int, Any]]  # length and type, by name


def shared_arrays(wanted: Wanted) -> Arrays:
    """Zeroed arrays in memory that is shared with workers that are forked later."""
    with contextlib.closing(Arena()) as arena:
        return arena.arrays(wanted)


def private_arrays(wanted: Wanted) -> Arrays:
    """Zeroed arrays in private memory, for which the system uses larger pages."""
    return _laid_out(_claimed(size_of(wanted), _private), wanted)


def size_of(wanted: Wanted) -> int:
    return sum(_room(*one) for one in wanted.values())


class Arena:
    """Shared memory that can grow after processes were forked, and be used again."""

    def __init__(self) -> None:
        try:
            self._descriptor = os.memfd_create("hogwild", os.MFD_CLOEXEC)
        except OSError as problem:
            raise HogwildError(
                f"no shared memory to be had ({problem.strerror}): {remedy(problem)}"
            ) from problem
        self._size = 0  # bytes
        self._block: mmap.mmap | None = None

    def arrays(self, wanted: Wanted, unzeroed: Collection[str] = ()) -> Arrays:
        """Arrays that replace those given out before; all but the `unzeroed` ones are zero."""
        size, had = size_of(wanted), self._size
        if size > had:
            self._block, self._size = _claimed(size, self._mapped, had), size
        assert self._block is not None
        found = _laid_out(self._block, wanted)
        for name in wanted.keys() - set(unzeroed) if had else ():
            found[name][:] = 0
        return found

    def attach(self, wanted: Wanted) -> Arrays:
        """In a worker: the arrays that `arrays` made for the same request."""
        size = size_of(wanted)
        if size > self._size:
            self._block, self._size = mmap.mmap(self._descriptor, size), size
        assert self._block is not None
        return _laid_out(self._block, wanted)

    def close(self) -> None:
        """Releases this process's hold on the memory; arrays that are still in use keep theirs."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._block = -1, None

    def _mapped(self, size: int) -> mmap.mmap:
        # Claims the pages now, so that a lack of memory is an error here, not a fatal signal later
        os.posix_fallocate(self._descriptor, 0, size)
        return mmap.mmap(self._descriptor, size)


def _laid_out(block: mmap.mmap, wanted: Wanted) -> Arrays:
    arrays = {}
    place = 0
    for name, (length, dtype) in wanted.items():
        arrays[name] = np.frombuffer(block, dtype, length, place)
        place += _room(length, dtype)
    return arrays


def _room(length: int, dtype: Any) -> int:
    return int(-(-max(1, length) * np.dtype(dtype).itemsize // LINE) * LINE)


def _claimed(size: int, make: Callable[[int], mmap.mmap], had: int = 0) -> mmap.mmap:
    """A block of memory, of which `had` bytes were claimed before."""
    available = available_memory()
    try:
        # The copies that are kept and returned take as much again. If pages were claimed that the
        # machine does not have, the system would kill some process
        if 2 * size - had > available:
            raise OSError(
                f"with the copies that are kept {2 * size:,}; {available:,} are available"
            )
        return make(size)
    except (OSError, ValueError, OverflowError) as problem:
        what = "free some memory, or train on fewer columns"
        if getattr(problem, "errno", None) == errno.ENOMEM:
            what = "free some memory, allow more (ulimit -v), or train on fewer columns"
        elif isinstance(problem, OSError) and problem.errno in (errno.EMFILE, errno.ENFILE):
            what = remedy(problem)
        raise HogwildError(
            f"there is no shared memory for {size:,} bytes of weights ({problem}): {what}"
        ) from problem


def _private(size: int) -> mmap.mmap:
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            block.madvise(mmap.MADV_HUGEPAGE)
    return block
