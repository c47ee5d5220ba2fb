"""Memory that the workers see: made before they are forked, and gone with the last of them.

On Linux it is a memfd, elsewhere an anonymous shared mapping (a named block of
`multiprocessing.shared_memory` would serve forked workers no better, and brings a name that can
leak and a tracker process). Neither has a name to unlink, neither depends on the size of /dev/shm,
and nothing is left of them after kill -9.
"""

import contextlib
import mmap
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import HogwildError
from hogwild.machine import available_memory

LINE = 64  # bytes in a cache line; every array begins on one

Arrays = dict[str, npt.NDArray[Any]]


def shared_arrays(wanted: dict[str, tuple[int, Any]], workers: int = 2) -> Arrays:
    """Zeroed arrays by name, of (length, dtype) each, in memory that forked workers share.

    One worker alone gets memory of this process, which the system gives in larger pages.
    """
    offsets = {}
    size = 0
    for name, (length, dtype) in wanted.items():
        offsets[name] = size
        size += -(-max(1, length) * np.dtype(dtype).itemsize // LINE) * LINE
    shared = _memfd if _has_memfd() else _anonymous
    block = _block(size, shared if workers > 1 else _private)
    return {
        name: np.frombuffer(block, dtype, length, offsets[name])
        for name, (length, dtype) in wanted.items()
    }


def means() -> str:
    """What shared memory is made of on this system."""
    return "memfd" if _has_memfd() else "anonymous shared mapping"


def _has_memfd() -> bool:
    return hasattr(os, "memfd_create")


def _block(size: int, make: Callable[[int], mmap.mmap]) -> mmap.mmap:
    available = available_memory()
    try:
        # What is kept and returned takes as much again; to claim the pages without having them
        # would get some process killed
        if 2 * size > available:
            raise OSError(
                f"with the copies that are kept {2 * size:,}; {available:,} are available"
            )
        return make(size)
    except (OSError, ValueError, OverflowError) as problem:
        raise HogwildError(
            f"no shared memory to be had for {size:,} bytes of weights ({problem}): "
            "free some memory, or train on fewer columns"
        ) from problem


def _memfd(size: int) -> mmap.mmap:
    descriptor = os.memfd_create("hogwild", os.MFD_CLOEXEC)
    try:
        # Claims the pages now: an error here, and not a fatal signal at some later write
        os.posix_fallocate(descriptor, 0, size)
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


def _anonymous(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size)


def _private(size: int) -> mmap.mmap:
    if not hasattr(mmap, "MAP_PRIVATE"):
        return _anonymous(size)
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            block.madvise(mmap.MADV_HUGEPAGE)
    return block
