"""What the machine lets this process use: cores, memory, and its name in records."""

import os
import platform
import re
import sys
from functools import cache
from pathlib import Path

import numba
import numpy

from hogwild.version import VERSION

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")


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


def cpu_quota(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> float | None:
    """The cores' worth of time that cgroups (version 2) grant, or None where unlimited."""
    quotas = [_words(folder / "cpu.max") for folder in _cgroup_folders(cgroups, own)]
    granted = [some for some in quotas if some and some[0].isdigit()]  # else it is "max"
    return min((int(quota) / int(period) for quota, period in granted), default=None)


def memory_limit(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> int:
    """Bytes of memory that this process may have: the machine's, or a container's limit."""
    words = [_words(folder / "memory.max") for folder in _cgroup_folders(cgroups, own)]
    limits = [int(some[0]) for some in words if some and some[0].isdigit()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *limits])


def available_memory() -> int:
    """Bytes of memory to be had now, without driving other processes out."""
    free = [memory_limit() - _container_memory_in_use()]
    words = _words(Path("/proc/meminfo"))
    if "MemAvailable:" in words:
        free.append(int(words[words.index("MemAvailable:") + 1]) * 1024)
    return max(0, min(free))


def _container_memory_in_use() -> int:
    """What a container's limit counts already, but for file contents that can be dropped."""
    for folder in _cgroup_folders(CGROUPS, OWN_CGROUP)[:1]:
        used, counts = _words(folder / "memory.current"), _words(folder / "memory.stat")
        if used:
            files = "inactive_file"
            droppable = int(counts[counts.index(files) + 1]) if files in counts else 0
            return int(used[0]) - droppable
    return 0


@cache
def _cgroup_folders(cgroups: Path, own: Path) -> list[Path]:
    """This process's folder of cgroups and those above it."""
    for word in _words(own):
        if word.startswith("0::/"):
            folder = Path(word.removeprefix("0::"))
            return [cgroups / some.relative_to("/") for some in (folder, *folder.parents)]
    return []


def _words(path: Path) -> list[str]:
    return _text(path).split()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
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
        "usable_cores": usable_cores(),
        "memory": memory_limit(),
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
