"""Shared arrays: aligned, zeroed, seen by forked processes, and leaving nothing behind."""

import os
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

    before = state()
    kept = [memory.shared_arrays({"a": (1000, np.float32)}) for _ in range(5)]
    # the mapping itself duplicates its descriptor, and gives it back with the array
    del kept
    assert state() == before


def test_too_much_is_refused_with_the_number_of_bytes() -> None:
    with pytest.raises(HogwildError, match=r"there is no shared memory for [\d,]+ bytes"):
        memory.shared_arrays({"a": (2**60, np.float32)})
