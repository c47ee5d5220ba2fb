"""Programs that are run as processes of their own, and what they took."""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from experiments import report
from hogwild import HogwildError
from hogwild.machine import peak_memory

SAMPLED_EVERY = 0.01  # seconds


def finish(
    command: list[str],
    environment: dict[str, str] | None = None,
    watch: Callable[[int], None] | None = None,
    folder: Path = report.FOLDER.parent,
) -> str:
    """Runs a command in a folder to its end; what it printed, or an error if it failed.

    `watch` is called with its process number again and again meanwhile.
    """
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            command,
            stdout=printed,
            stderr=complaints,
            cwd=folder,
            env=os.environ | (environment or {}),
        )
        try:
            while watch and child.poll() is None:
                watch(child.pid)
                time.sleep(SAMPLED_EVERY)
            code = child.wait()
        finally:
            child.kill()
            child.wait()
        printed.seek(0)
        complaints.seek(0)
        if code != 0:
            last = complaints.read().decode().strip()[-400:]
            raise HogwildError(f"{' '.join(command[1:4]).strip()} ended with {code}: {last}")
        return printed.read().decode()


def cpu_seconds(command: list[str], environment: dict[str, str], folder: Path) -> float:
    """Seconds of all cores, in the program and in the system, that a command takes to its end."""

    def so_far() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = so_far()
    finish(command, environment, folder=folder)
    return so_far() - before


def peak(command: list[str]) -> float:
    """The most bytes that a command has: the greater of what two counts say.

    One adds up its processes, pages that they share once (PSS), and may miss a short peak. The
    other is the system's, which misses none, of what is resident in the parent alone.
    """
    most = 0

    def watch(number: int) -> None:
        nonlocal most
        most = max(most, _shared(number))
        with suppress(psutil.Error):
            most = max(most, peak_memory(number))

    finish(command, watch=watch)
    return float(most)


def _shared(number: int) -> int:
    total = 0
    with suppress(psutil.Error):
        root = psutil.Process(number)
        for member in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                total += member.memory_full_info().pss
    return total
