"""What holds for all tests together: nothing that hogwild started, or made, is left over."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import hogwild

# For numpy, which is imported later: on busy cores its threads wait for each other, a hundred
# times as long as the work takes
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

SHARED_MEMORY = Path("/dev/shm")
JOBLIB = ("joblib", "sem.loky")

# What forks many workers comes first: a kernel that was compiled leaves some 6 MB behind, and by
# the end of the tests a fork would take twenty times as long. What was loaded leaves next to none
FORKING = [
    "tests/parallel",
    "tests/test_recovery.py",
    "tests/test_signals.py",
    "tests/test_factor_training.py",
    "tests/loops",
    "tests/scaling",
    "tests/test_divergence.py",
    "tests/test_determinism.py",
    "tests/test_selection.py",
    "tests/test_early_stopping.py",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        starts = (item.nodeid.startswith(some) for some in FORKING)
        return next((number for number, found in enumerate(starts) if found), len(FORKING))

    items.sort(key=place)


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


@pytest.fixture
def listening() -> Iterator[None]:
    """Ctrl-C as Python has it, also where the tests run in the background and are deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def start() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a command in a session of its own, that hears Ctrl-C; what is left of it is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(command: list[str], **options: Any) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Tests that run in the background are deaf to it, and would hand that on
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
            **options,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
