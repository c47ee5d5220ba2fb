"""The storm itself: it repeats its cases, and notices what must not happen."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from tests.chaos import checks
from tests.chaos.cases import FORKED, SURROUNDINGS, Blow, Case, drawn
from tests.chaos.storm import Ended, children, members
from tests.chaos.victims import MODEL

COMMAND = [sys.executable, "-m", "tests.chaos.run"]
PLAIN = Case(0, 0, FORKED, "signs.svm", {"task": "svm"}, [], "plain", 0.5, False, [])


def test_a_case_can_be_repeated() -> None:
    usable = set(SURROUNDINGS)
    assert [drawn(3, n, usable) for n in range(50)] == [drawn(3, n, usable) for n in range(50)]
    assert drawn(3, 0, usable) != drawn(4, 0, usable)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a case leaves that went well."""
    (tmp_path / "out").touch()
    (tmp_path / "err").touch()
    (tmp_path / "tmp").mkdir()
    hogwild.train(rcv1(300, 400)[0], epochs=1, model=tmp_path / MODEL)
    return tmp_path


def ended(
    folder: Path,
    code: int = 0,
    hung: bool = False,
    strays: tuple[int, ...] = (),
    old: bytes | None = None,
) -> Ended:
    return Ended(PLAIN, folder, code, 1.0, hung, [], old, list(strays), 0.0)


def test_what_went_well_is_no_violation(folder: Path) -> None:
    assert checks.violations(ended(folder)) == []
    assert checks.violations(ended(folder, old=b"another one")) == []


def test_what_must_not_happen_is_noticed(folder: Path) -> None:
    def found(**what: Any) -> str:
        return "; ".join(checks.violations(ended(folder, **what)))

    assert "hung" in found(hung=True)
    assert "outlived" in found(strays=(7,))
    assert "exit code 1" in found(code=1)
    assert "exit code -9" in found(code=-9)
    model = folder / MODEL
    assert "the old model is still there" in found(old=model.read_bytes())
    (folder / "err").write_text("Traceback (most recent call last)")
    assert "Traceback" in found()
    (folder / "err").write_text("")
    (folder / ".hogwild-1.part").touch()
    assert ".hogwild-1.part was left over" in found()
    model.write_bytes(model.read_bytes()[:-5])
    assert "the model is damaged" in found()
    model.unlink()
    assert "there is no model" in found()
    assert "the old model is gone" in found(old=b"old", code=130)


def test_a_whole_file_between_two_names_is_none(folder: Path) -> None:
    beside = folder / ".hogwild-1.part"
    beside.write_bytes((folder / MODEL).read_bytes())
    blow = Blow("saving", 1, 0.01, signal.SIGKILL, "program", None)
    killed = ended(folder, code=-signal.SIGKILL)._replace(dealt=[blow])
    assert checks.violations(killed) == []
    assert ".hogwild-1.part was left over" in "; ".join(checks.violations(ended(folder)))
    beside.write_bytes(beside.read_bytes()[:-5])
    assert ".hogwild-1.part was left over" in "; ".join(checks.violations(killed))


def test_processes_of_a_session_are_found() -> None:
    sleeping = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60"], start_new_session=True)

    def until_there_are(count: int) -> None:
        deadline = time.monotonic() + 30
        while len(members(sleeping.pid)) != count:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    try:
        until_there_are(3)
        assert len(children(sleeping.pid)) == 2
    finally:
        os.killpg(sleeping.pid, signal.SIGKILL)
        sleeping.wait()
    until_there_are(0)


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_a_storm_does_no_harm(seconds: int) -> None:
    done = subprocess.run(
        [*COMMAND, "--seconds", str(seconds)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "violations: 0" in done.stdout
