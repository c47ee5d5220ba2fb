"""Runs cases, several at a time, and deals their blows."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.chaos import victims
from tests.chaos.cases import COMMAND, Blow, Case

LIMIT = 180.0  # seconds after the last blow within which a program must end: some are just slow
OUTLIVING = 15.0  # seconds within which the last worker must end after its program
LOOK = 0.001  # seconds between two looks


class Ended(NamedTuple):
    """What became of a case."""

    case: Case
    folder: Path
    code: int  # exit code, or less than 0 for a signal
    seconds: float
    hung: bool
    dealt: list[Blow]
    old: bytes | None  # the model file that was there before
    strays: list[int]  # processes that had to be killed
    outlived: float  # seconds after its end at which one of its workers was last seen


class Running:
    """A case that runs."""

    def __init__(self, case: Case, folder: Path, data: Path) -> None:
        self.case, self.folder = case, folder
        model = folder / victims.MODEL
        self._old = model.read_bytes() if model.exists() else None
        self.dealt: list[Blow] = []
        self._rng = random.Random(f"{case.seed} {case.number} which worker")
        self._pid, self._pipe = victims.start(case, folder, data)
        self._began = self._last = time.monotonic()
        self._counts: dict[str, int] = {}
        self._due: list[tuple[float, Blow]] = []
        self._to_continue: list[tuple[float, int]] = []
        self._code: int | None = None
        self._ended_at = self._outlived = 0.0
        self._unread = b""
        self._hung = False
        if case.way == COMMAND:
            self._come_to("start")

    def look(self) -> Ended | None:
        """Deals what is due. Returns what became of the case when all of it has ended."""
        now = time.monotonic()
        self._continue(now)
        if self._code is None:
            self._hear()
            self._deal(now)
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._hear()  # the last moment may have been a blow
                self._code, self._ended_at = os.waitstatus_to_exitcode(status), now
            elif now > self._last + LIMIT:
                self._give_up()
            return None
        left = members(self._pid)
        if left:
            self._outlived = now - self._ended_at
            if self._outlived < OUTLIVING:
                return None
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not victims.remove_group(self._pid) and now < self._ended_at + OUTLIVING:
            return None  # the system has not quite done with the program's workers
        os.close(self._pipe)
        seconds = self._ended_at - self._began
        return Ended(
            *(self.case, self.folder, self._code, seconds),
            *(self._hung, self.dealt, self._old, left, self._outlived),
        )

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            self._unread += os.read(self._pipe, 1 << 16)
        *words, self._unread = self._unread.split(b"\n")
        for word in words:
            self._come_to(word.decode())

    def _come_to(self, moment: str) -> None:
        now = time.monotonic()
        count = self._counts[moment] = self._counts.get(moment, 0) + 1
        for blow in self.case.blows:
            if (blow.moment, blow.count) != (moment, count):
                continue
            if blow.delay or self.case.way == COMMAND:
                self._due.append((now + blow.delay, blow))
            else:  # it hit already
                self._note(blow, [-self._pid if blow.target == "group" else self._pid])

    def _deal(self, now: float) -> None:
        self._due, due = [some for some in self._due if some[0] > now], self._due
        for when, blow in due:
            if when > now:
                continue
            whom = self._whom(blow.target)
            if whom is None:  # no worker yet
                self._due.append((when, blow))
            elif _sent(whom, blow.number):
                self._note(blow, [whom])

    def _continue(self, now: float) -> None:
        """Lets what was stopped go on: also a process of the user's, which outlives the program."""
        self._to_continue, due_back = (
            [some for some in self._to_continue if some[0] > now],
            [whom for when, whom in self._to_continue if when <= now],
        )
        for whom in due_back:
            _sent(whom, signal.SIGCONT)

    def _whom(self, target: str) -> int | None:
        """The process, or less than 0 for a group."""
        if target == "group":
            return -self._pid
        if target == "program":
            return self._pid
        workers = children(self._pid)
        return self._rng.choice(workers) if workers else None

    def _note(self, blow: Blow, whom: list[int]) -> None:
        self._last = time.monotonic()
        self.dealt.append(blow)
        back = blow.back
        if back is None and blow.number == signal.SIGSTOP and not _goes_with_program(whom[0]):
            back = 1.0
        if back is not None:
            self._to_continue += [(self._last + back, one) for one in whom]

    def _give_up(self) -> None:
        """Ends a program that hangs; what its threads do is in its errors then."""
        self._hung = True
        for pid in members(self._pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGUSR2)
        time.sleep(0.5)
        for pid in members(self._pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._last = time.monotonic()


def _sent(whom: int, number: signal.Signals) -> bool:
    """Whether a signal was sent to a process, or with a number less than 0 to a group."""
    try:
        os.kill(whom, number)
    except ProcessLookupError:
        return False
    return True


def _goes_with_program(worker: int) -> bool:
    """Whether it has asked for a signal at its program's death: its second thread comes after."""
    try:
        return psutil.Process(worker).num_threads() > 1
    except psutil.Error:
        return False


def children(pid: int) -> list[int]:
    """The processes that a process has forked, in any of its threads."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(word) for word in path.read_text().split()]
    return sorted(found)


def members(session: int) -> list[int]:
    """The processes of a session that live."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208  a path for each would take twice as long
        if not name.isdigit():
            continue
        with suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(name))
    return found
