"""What holds for all tests together: nothing that hogwild started, or made, is left over."""

import os
from pathlib import Path

import psutil
import pytest

import hogwild

# For numpy, which is imported later: on busy cores its threads wait for each other, a hundred
# times as long as the work takes
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

SHARED_MEMORY = Path("/dev/shm")
JOBLIB = ("joblib", "sem.loky")


def shared_blocks() -> set[str]:
    if not SHARED_MEMORY.is_dir():
        return set()
    return {block.name for block in SHARED_MEMORY.iterdir() if not block.name.startswith(JOBLIB)}


def forked() -> list[psutil.Process]:
    """Children that this very program forked, dead and not waited for ones included."""
    me = psutil.Process()
    return [
        child
        for child in me.children(recursive=True)
        if child.status() == psutil.STATUS_ZOMBIE or child.cmdline() == me.cmdline()
    ]


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_over():
    before = shared_blocks()
    yield
    hogwild.close_pool()
    assert not forked()
    assert not shared_blocks() - before


@pytest.fixture(autouse=True)
def workers_of_its_own():
    """Each test forks its workers itself: what it replaces, they have, too."""
    yield
    hogwild.close_pool()
