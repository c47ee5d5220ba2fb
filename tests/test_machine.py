"""Cores and memory: what affinity and containers leave of the machine's."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import hogwild
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


def test_limits_of_older_cgroups_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    write(own, "4:memory:/a/b\n2:cpu,cpuacct:/elsewhere\n0::/c\n")
    write(tmp_path / "fs/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n")
    write(tmp_path / "fs/memory/a/b/memory.usage_in_bytes", "700000\n")
    write(tmp_path / "fs/memory/a/b/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\n")
    write(tmp_path / "fs/memory/a/memory.limit_in_bytes", "1000000\n")
    write(tmp_path / "fs/memory/a/memory.usage_in_bytes", "900000\n")
    # A container sees its own folder as the top
    write(tmp_path / "fs/cpu/cpu.cfs_quota_us", "150000\n")
    write(tmp_path / "fs/cpu/cpu.cfs_period_us", "100000\n")
    assert machine.memory_limit(tmp_path / "fs", own) == 1_000_000
    assert machine.cpu_quota(tmp_path / "fs", own) == 1.5
    write(tmp_path / "fs/cpu/cpu.cfs_quota_us", "-1\n")
    assert machine.cpu_quota.__wrapped__(tmp_path / "fs", own) is None  # type: ignore[attr-defined]
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "fs")
    monkeypatch.setattr(machine, "OWN_CGROUP", own)
    assert machine._container_memory_in_use() == 600_000


GARBAGE = [
    b"",
    b"\n",
    b"max",
    b"1",
    b"1 0",
    b"x y",
    b"-1 5",
    b"\xff\xfe 1",
    b"1e5 100000",
    b"\0 \0",
]
GARBAGE += [b"\0 \0", b"9" * 5000, b"\xc2\xb2 \xd9\xa3", b"0"]


@pytest.mark.parametrize("text", GARBAGE)
def test_garbage_in_files_of_cgroups_is_no_limit(
    text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, own = tmp_path / "a b", tmp_path / "own"
    folder.mkdir()
    older = tmp_path / "memory" / "a b"
    older.mkdir(parents=True)
    for name in ("cpu.max", "memory.max", "memory.current", "memory.stat"):
        (folder / name).write_bytes(text)
    for name in ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"):
        (older / name).write_bytes(text)
    for found in (b"0::/a b\n", b"4:memory:/a b\n", text, b"0::/" + text, b"0::/../a\0\xff\n"):
        own.write_bytes(found)
        machine._cgroup_files.cache_clear()
        monkeypatch.setattr(machine, "CGROUPS", tmp_path)
        monkeypatch.setattr(machine, "OWN_CGROUP", own)
        assert machine.cpu_quota.__wrapped__(tmp_path, own) is None
        assert machine.memory_limit.__wrapped__(tmp_path, own) in (machine._whole_memory(), 1)
        assert machine._container_memory_in_use() in (0, 1)
    machine._cgroup_files.cache_clear()


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
    assert record["physical_cores"] is None or 1 <= record["physical_cores"] <= record["cores"]
    assert 0 < machine.available_memory() <= machine.memory_limit()
    assert set(machine.versions()) == {"hogwild", "python", "numpy", "numba"}


def test_the_peak_of_memory_stays_when_the_memory_is_given_back() -> None:
    before = psutil.Process().memory_info().rss
    np.ones(50 << 20, np.int8)
    assert machine.peak_memory() >= before + (45 << 20)
    assert machine.peak_memory(os.getpid()) == machine.peak_memory() != machine.peak_memory(1)


def test_the_load_is_that_of_programs_that_do_not_belong_to_the_work() -> None:
    numbers: list[int] = []
    as_other, as_worker = machine.Usage(), machine.Usage(lambda: numbers)
    assert as_other.so_far()["other_load"] is None  # too early to say
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            numbers += [busy.pid, 1 << 30]  # there is no such process
            while sum(psutil.Process(busy.pid).cpu_times()[:2]) < 0.4:
                time.sleep(0.01)
            loads = [one.so_far()["other_load"] for one in (as_other, as_worker)]
        finally:
            busy.kill()
    assert loads[0] - loads[1] > 0.3 / (time.monotonic() - began)


def test_short_work_does_not_ask_for_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    times = psutil.cpu_times()
    monkeypatch.setattr(psutil, "cpu_times", lambda: asked.append(1) or times)
    usage = machine.Usage(after=0.05)
    usage.look()
    assert usage.so_far()["other_load"] is None
    assert not asked
    time.sleep(0.05)
    usage.look()
    usage.look()
    assert len(asked) == 1


def test_many_short_trainings_ask_the_system_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    memory = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: asked.append(1) or memory)
    rows = hogwild.Rows(np.eye(4), [0, 1, 0, 1])
    began = time.monotonic()
    for _ in range(20):
        hogwild.train(rows, solver="sgd", workers=1, epochs=1)
    assert len(asked) <= 1 + (time.monotonic() - began) / machine.LATELY


def test_where_linux_calls_are_missing_threads_train(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("memfd_create", "MFD_CLOEXEC", "sched_getaffinity", "posix_fallocate"):
        monkeypatch.delattr(os, name)
    with monkeypatch.context() as without_proc:
        without_proc.setattr(machine, "_text", lambda path: "")
        assert machine.peak_memory() > 1 << 20
    rows = hogwild.Rows(np.tile(np.eye(4), (100, 1)), np.tile([0, 1], 200))
    result = hogwild.train(rows, solver="sgd", workers=2, epochs=2)
    assert result.header["chosen"]["backend"] == "thread"
    assert result.trace[-1]["train_error"] == 0
