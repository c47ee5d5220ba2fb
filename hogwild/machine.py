"""What the machine lets this process use: cores, memory, and its name in records."""

import os
import platform
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
    """The cores' worth of time that cgroups (version 1 or 2) grant, or None where unlimited."""
    quotas = [_words(folder / "cpu.max") for folder in _cgroup_folders("", cgroups, own)]
    for folder in _cgroup_folders("cpu", cgroups, own):
        quotas.append(_words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us"))
    # Without a quota, version 2 says max, and version 1 says -1
    granted = [some for some in quotas if len(some) == 2 and some[0].isdigit()]
    return min((int(quota) / int(period) for quota, period in granted), default=None)


def memory_limit(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> int:
    """Bytes of memory that this process may have: the machine's, or a container's limit."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for controller, name in (("", "memory.max"), ("memory", "memory.limit_in_bytes")):
        for folder in _cgroup_folders(controller, cgroups, own):
            words = _words(folder / name)
            if words and words[0].isdigit():
                limits.append(int(words[0]))
    return min(limits)


def available_memory() -> int:
    """Bytes of memory to be had now, without driving other processes out."""
    free = [memory_limit() - _container_memory_in_use()]
    words = _words(Path("/proc/meminfo"))
    if "MemAvailable:" in words:
        free.append(int(words[words.index("MemAvailable:") + 1]) * 1024)
    return max(0, min(free))


def _container_memory_in_use() -> int:
    """What a container's limit counts already, but for file contents that can be dropped."""
    for controller, name in (("", "memory.current"), ("memory", "memory.usage_in_bytes")):
        for folder in _cgroup_folders(controller, CGROUPS, OWN_CGROUP)[:1]:
            used, counts = _words(folder / name), _words(folder / "memory.stat")
            if used:
                files = "inactive_file" if not controller else "total_inactive_file"
                droppable = int(counts[counts.index(files) + 1]) if files in counts else 0
                return int(used[0]) - droppable
    return 0


def _cgroup_folders(controller: str, cgroups: Path, own: Path) -> list[Path]:
    """This process's folder of a controller ("" is version 2) and those above it."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            mounts = [cgroups / names, cgroups / controller] if controller else [cgroups]
            steps = [part for part in path.split("/") if part]
            return [
                mount.joinpath(*steps[:depth])
                for mount in mounts
                for depth in range(len(steps), -1, -1)
            ]
    return []


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


@cache
def cpu_name() -> str:
    """The processor's name, as the system has it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


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
