"""Shared arrays: aligned, zeroed, seen by forked processes, and leaving nothing behind."""

import gc
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from hogwild.errors import HogwildError
from hogwild.parallel import memory


def test_arrays_are_zero_aligned_and_apart() -> None:
    arrays = memory.shared_arrays({"a": (3, np.float32), "b": (0, np.int64), "c": (17, np.uint8)})
    assert {name: (len(array), array.dtype) for name, array in arrays.items()} == {
        "a": (3, np.float32),
        "b": (0, np.int64),
        "c": (17, np.uint8),
    }
    assert all(array.ctypes.data % 64 == 0 for array in arrays.values())
    arrays["a"][:] = 1
    arrays["c"][:] = 2
    assert arrays["a"].tolist() == [1, 1, 1]
    assert set(arrays["c"].tolist()) == {2}


def test_a_forked_process_writes_to_them() -> None:
    array = memory.shared_arrays({"a": (4, np.int64)})["a"]
    pid = os.fork()
    if pid == 0:
        array[2] = 7
        os._exit(0)
    os.waitpid(pid, 0)
    assert array.tolist() == [0, 0, 7, 0]


def test_no_descriptor_and_no_name_are_left() -> None:
    def state() -> tuple[int, set[str]]:
        return len(list(Path("/proc/self/fd").iterdir())), {
            path.name for path in Path("/dev/shm").iterdir()
        }

    gc.collect()  # what earlier tests left
    before = state()
    kept = [memory.shared_arrays({"a": (1000, np.float32)}) for _ in range(5)]
    # the mapping itself duplicates its descriptor, and gives it back with the array
    del kept
    assert state() == before


def test_too_much_is_refused_with_the_number_of_bytes() -> None:
    with pytest.raises(HogwildError, match=r"there is no shared memory for [\d,]+ bytes"):
        memory.shared_arrays({"a": (2**60, np.float32)})


@pytest.mark.parametrize("left", [0, 1])
def test_too_few_open_files_are_named(left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that leaves none for the memory, or one and none for the map of it."""
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 30)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + left, before[1]))
    try:
        with pytest.raises(HogwildError, match=r"open files \(ulimit -n\), or use fewer"):
            memory.shared_arrays({"a": (1000, np.float32)})
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
