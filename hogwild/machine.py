"""What this process and other programs use of the machine, and its description in records."""

import math
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import numba
import numpy
import psutil

from hogwild.version import VERSION

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
SHORTEST = 0.3  # seconds: over less, the system's counts of 0.01 s say little
DIGITS = 20  # every number of the system has fewer
LATELY = 0.1  # seconds for which an answer of the system is used again
# The file that says how much memory is used, in cgroups of version 2 and 1; files' part of it
USED_MEMORY = {"memory.current": "inactive_file", "memory.usage_in_bytes": "total_inactive_file"}
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")  # steal: the host's other machines

P = ParamSpec("P")
R = TypeVar("R")


def asked_lately(ask: Callable[P, R]) -> Callable[P, R]:
    """Asks the system at most once in `LATELY` seconds, since asking slows short trainings."""
    known: dict[object, tuple[float, R]] = {}

    @wraps(ask)
    def answer(*args: P.args, **more: P.kwargs) -> R:
        now = time.monotonic()
        if args not in known or now - known[args][0] > LATELY:
            known[args] = now, ask(*args, **more)
        return known[args][1]

    return answer


def usable_cores() -> int:
    """How many cores this process may use, by affinity and container quotas."""
    quota = cpu_quota()
    allowed = affinity_cores()
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def affinity_cores() -> int:
    """How many cores the scheduler may put this process on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def counted(cores: int, physical: int | None) -> str:
    """The number of cores in words, with the number of physical cores if that is known."""
    return f"{cores}" if physical is None else f"{cores} ({physical} physical)"


@cache
def physical_cores() -> int | None:
    """How many cores the machine has, where two hyper-threads count once; None: unknown."""
    found: int | None = psutil.cpu_count(logical=False)
    return found


@asked_lately
def cpu_quota(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> float | None:
    """The cores' worth of time that cgroups grant, or None where unlimited."""
    found = [_counts(path) for path in _cgroup_files(cgroups, own, "cpu", "cpu.max")]
    for quota in _cgroup_files(cgroups, own, "cpu", "cpu.cfs_quota_us"):  # of version 1
        if granted := _counts(quota):  # else -1
            found.append(granted + _counts(quota.with_name("cpu.cfs_period_us")))
    shares = (some[0] / some[1] for some in found if len(some) == 2 and some[1])  # else "max"
    return min(shares, default=None)


@asked_lately
def memory_limit(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> int:
    """Bytes of memory that this process may have: the machine's, or a container's limit."""
    files = _cgroup_files(cgroups, own, "memory", "memory.max", "memory.limit_in_bytes")
    limits = [_counts(path)[:1] for path in files]
    return min([_whole_memory(), *(limit for some in limits for limit in some if limit)])


@cache
def _whole_memory() -> int:
    """Bytes of memory of the machine: psutil takes long to say so."""
    return int(psutil.virtual_memory().total)


@asked_lately
def available_memory() -> int:
    """Bytes of memory that are available now, without swapping."""
    granted: int = memory_limit() - _container_memory_in_use()
    return max(0, min(granted, int(psutil.virtual_memory().available)))


def peak_memory(process: int | None = None) -> int:
    """The peak memory of a process (by default this one); its present memory if no peak is known.

    psutil knows no peak on Linux, and `getrusage` begins with the size of the parent.
    """
    peak = _named(Path(f"/proc/{process or os.getpid()}/status"), "VmHWM", 0)
    if peak:
        return 1024 * peak
    seen = psutil.Process(process).memory_info()
    return int(getattr(seen, "peak_wset", seen.rss))


class Usage:
    """What work takes of the machine from now on, and what other programs take meanwhile.

    `workers` returns the ids of the processes that belong to the work. Nothing is counted in the
    first `after` seconds of the work: shorter work should not wait for the system's answer.
    """

    def __init__(self, workers: Callable[[], Iterable[int]] = tuple, after: float = 0.0) -> None:
        self._workers = workers
        self._began, self._others = time.monotonic() + after, math.inf
        self.look()

    def look(self) -> None:
        """Begins to count, if it is time; to be called now and then."""
        now = time.monotonic()
        if math.isinf(self._others) and now >= self._began:
            self._began, self._others = now, self._seconds_of_others()

    def so_far(self) -> dict[str, object]:
        """The peak of this process's memory, and the average number of cores that others kept busy.

        The load is None if the time was too short to measure it.
        """
        seconds, load = time.monotonic() - self._began, None
        if seconds >= SHORTEST and math.isfinite(self._others):
            load = max(0.0, self._seconds_of_others() - self._others) / seconds
        return {"peak_memory": peak_memory(), "other_load": load}

    def _seconds_of_others(self) -> float:
        seen = psutil.cpu_times()
        own = sum(os.times()[:4])  # with children that have ended
        for number in self._workers():
            with suppress(psutil.Error):
                own += sum(psutil.Process(number).cpu_times()[:2])
        return float(sum(getattr(seen, name, 0.0) for name in BUSY) - own)


def _container_memory_in_use() -> int:
    """Memory that a container's limit counts, without file contents that can be dropped."""
    for path in _cgroup_files(CGROUPS, OWN_CGROUP, "memory", *USED_MEMORY)[:1]:
        if used := _counts(path):
            return used[0] - _named(path.with_name("memory.stat"), USED_MEMORY[path.name], 0)
    return 0


@cache
def _cgroup_files(cgroups: Path, own: Path, controller: str, *names: str) -> list[Path]:
    """The files with these names in this process's folders of cgroups and in those above them.

    The folders are of version 2 and 1. A container often sees its own as the top, whatever the
    names of those above.
    """
    found = []
    for line in _text(own).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, given = rest.partition(":")
        if given.startswith("/") and controller in (controllers or controller).split(","):
            top, folder = cgroups / (controller if controllers else ""), Path(given)
            folders = [top / some.relative_to("/") for some in (folder, *folder.parents)]
            found += [folder / name for folder in folders for name in names]
    return [path for path in found if _text(path)]


def _counts(path: Path) -> list[int]:
    """The numbers in a file of the system's; none where it holds anything else, such as "max"."""
    words = _words(path)
    good = all(word.isascii() and word.isdigit() and len(word) < DIGITS for word in words)
    return [int(word) for word in words] if good else []


def _named(path: Path, name: str, default: int) -> int:
    """The number behind a name."""
    found = re.search(rf"^{name}:?\s+(\d{{1,{DIGITS}}})\b", _text(path), re.M | re.A)
    return default if found is None else int(found[1])


def _words(path: Path) -> list[str]:
    return _text(path).split()


def _text(path: Path) -> str:
    try:
        with path.open("rb", buffering=0) as file:  # half the time of read_text
            return file.readall().decode(errors="replace")
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return ""


@cache
def cpu_name() -> str:
    """The processor's name, as the system has it."""
    found = re.search(r"^model name\s*:(.*)", _text(Path("/proc/cpuinfo")), re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


def record() -> dict[str, object]:
    """The machine, for the head of a trace."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "physical_cores": physical_cores(),
        "usable_cores": usable_cores(),
        "memory": memory_limit(),
        "available_memory": available_memory(),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """The versions of what computes, for the head of a trace and of a model file."""
    return {
        "hogwild": VERSION,
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "numpy": numpy.__version__,
        "numba": numba.__version__,
    }
