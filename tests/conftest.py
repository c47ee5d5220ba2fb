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
