"""Cores and memory: what affinity and containers leave of the machine's."""

import os
from pathlib import Path

import pytest

from hogwild import machine


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_no_cgroups_mean_no_quota(tmp_path: Path) -> None:
    assert machine.cpu_quota(tmp_path / "none", tmp_path / "neither") is None


def test_the_smallest_quota_on_the_way_up(tmp_path: Path) -> None:
    write(tmp_path / "own", "0::/a/b\n")
    write(tmp_path / "fs/a/b/cpu.max", "max 100000\n")
    write(tmp_path / "fs/a/cpu.max", "150000 100000\n")
    write(tmp_path / "fs/cpu.max", "400000 100000\n")
    assert machine.cpu_quota(tmp_path / "fs", tmp_path / "own") == 1.5


def test_the_smallest_limit_of_memory_on_the_way_up(tmp_path: Path) -> None:
    write(tmp_path / "own", "2:memory:/other\n0::/a/b\n")
    write(tmp_path / "fs/a/b/memory.max", "max\n")
    write(tmp_path / "fs/a/memory.max", "1000000\n")
    assert machine.memory_limit(tmp_path / "fs", tmp_path / "own") == 1_000_000


@pytest.mark.parametrize(("quota", "cores"), [(0.5, 1), (1.5, 1), (2.5, 2), (64.0, 3), (None, 3)])
def test_usable_cores(monkeypatch: pytest.MonkeyPatch, quota: float | None, cores: int) -> None:
    monkeypatch.setattr(machine, "affinity_cores", lambda: 3)
    monkeypatch.setattr(machine, "cpu_quota", lambda: quota)
    assert machine.usable_cores() == cores


def test_affinity_counts() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert machine.affinity_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_the_record_is_complete() -> None:
    record = machine.record()
    assert all(record[name] for name in ("cpu", "cores", "usable_cores", "memory", "system"))
    assert 0 < machine.available_memory() <= machine.memory_limit()
    assert set(machine.versions()) == {"hogwild", "python", "numpy", "numba"}
