"""Bad input for every reader at once, as `make fuzz` has it."""

import gc
import mmap
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import hogwild
from tests import fuzz

ROOT = Path(__file__).parent.parent


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "numbers", [range(260), pytest.param(range(260, 13_000), marks=pytest.mark.slow)]
)
def test_every_reader_reads_or_refuses(
    numbers: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fuzz.run(0, numbers, tmp_path) == 0, capsys.readouterr().out


def test_failures_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def too_large(*_: object) -> None:
        (tmp_path / "a").touch()
        raise hogwild.DataError("of no file")

    monkeypatch.setattr(fuzz, "KINDS", {"bad": lambda *_: 1 // 0, "nameless": too_large})
    assert fuzz.run(3, range(2), tmp_path) == 2
    said = capsys.readouterr().out
    assert "ZeroDivisionError" in said
    assert "make fuzz COUNT=1 SEED=3 FIRST=1" in said


def test_memory_that_is_claimed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: object) -> None:
        (tmp_path / "a").touch()
        with mmap.mmap(-1, 200 << 20) as claimed:  # not malloc, which may have as much left
            for at in range(0, len(claimed), mmap.PAGESIZE):
                claimed[at] = 1

    monkeypatch.setattr(fuzz, "AMPLE", 50 << 20)
    monkeypatch.setattr(fuzz, "KINDS", {"greedy": greedy})
    gc.collect()  # else what earlier tests left may be freed meanwhile
    assert "bytes of memory" in (fuzz.check(0, 0, tmp_path) or "")


def test_ctrl_c_says_where_to_go_on(start: Callable[..., Any]) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--count", "1000000", "--first", "7"]
    fuzzing = start(command, env=os.environ | {"PYTHONPATH": "tests"}, cwd=ROOT)
    while len(psutil.Process(fuzzing.pid).children()) < 2:
        assert fuzzing.poll() is None
        time.sleep(0.1)
    time.sleep(1)
    os.killpg(fuzzing.pid, signal.SIGINT)
    said, problems = fuzzing.communicate(timeout=60)
    assert (fuzzing.returncode, problems) == (130, "")
    assert int(said.partition("stopped; go on with FIRST=")[2]) >= 7
