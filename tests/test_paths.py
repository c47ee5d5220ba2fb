"""Files appear whole or not at all. No kill leaves a name, and writers do not disturb others."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hogwild.errors import HogwildError
from hogwild.paths import writing

OLD, NEW = b"old" * 1000, b"new" * 2000


@pytest.fixture(params=["nameless", "named"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to write, also on systems that know no nameless files."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE")
    return tmp_path / "target"


def forked(work: Callable[[], None]) -> int:
    """The exit code of a process that does this."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def write(target: Path, contents: bytes) -> None:
    with writing(target) as file:
        file.write(contents)


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("exists", [False, True])
def test_a_file_is_replaced_whole_and_keeps_its_permissions(target: Path, exists: bool) -> None:
    if exists:
        target.write_bytes(OLD)
        target.chmod(0o640)
    umask = os.umask(0)
    os.umask(umask)
    write(target, NEW)
    assert target.read_bytes() == NEW
    assert target.stat().st_mode & 0o777 == (0o640 if exists else 0o666 & ~umask)
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("exists", [False, True])
def test_a_failure_leaves_the_old_file_and_nothing_else(target: Path, exists: bool) -> None:
    if exists:
        target.write_bytes(OLD)
    with pytest.raises(ZeroDivisionError), writing(target) as file:
        file.write(NEW)
        raise ZeroDivisionError
    with pytest.raises(HogwildError, match="refused"), writing(target, check=refuse) as file:
        file.write(NEW)
    assert list(target.parent.iterdir()) == [target] * exists
    assert not exists or target.read_bytes() == OLD


def refuse(path: Path) -> None:
    assert path.read_bytes() == NEW
    raise HogwildError("refused")


@pytest.mark.parametrize("exists", [False, True])
def test_a_kill_while_it_writes_leaves_nothing(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "target"
    if exists:
        target.write_bytes(OLD)

    def work() -> None:
        with writing(target) as file:
            file.write(NEW)
            file.flush()
            die()

    assert forked(work) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == [target] * exists
    assert not exists or target.read_bytes() == OLD


def test_what_a_kill_between_two_names_leaves_is_removed_by_the_next_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.write_bytes(OLD)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        assert forked(lambda: write(target, NEW)) == -signal.SIGKILL
    assert target.read_bytes() == OLD
    assert len(list(tmp_path.iterdir())) == 2
    write(target, NEW)
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_bytes() == NEW


def test_writers_of_one_file_do_not_disturb_each_other(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: None)  # 800 would take long

    def work() -> None:
        for _ in range(100):
            write(target, OLD if os.getpid() % 2 else NEW)

    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                work()
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    assert target.read_bytes() in (OLD, NEW)
    assert list(target.parent.iterdir()) == [target]
