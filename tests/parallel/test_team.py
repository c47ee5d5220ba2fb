"""Teams: every worker does the command once, answers come by rank, and ends are in good order."""

import errno
import os
import pickle
import re
import signal
import threading
import time
from typing import Any

import numpy as np
import psutil
import pytest

from hogwild.errors import DataError, WorkerError
from hogwild.parallel.memory import shared_arrays
from hogwild.parallel.processes import Processes
from hogwild.parallel.team import SLOT, Control, Threads

TEAMS = {"threads": Threads, "processes": Processes}


def nothing() -> None:
    pass


def control_for(workers: int) -> Control:
    return Control(shared_arrays(Control.arrays(workers)), workers)


@pytest.fixture(params=list(TEAMS))
def make(request: pytest.FixtureRequest) -> Any:
    return TEAMS[request.param]


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_every_worker_answers_for_itself(make: Any, workers: int) -> None:
    team = make(lambda rank, command, arguments: (rank, command, arguments), control_for(workers))
    try:
        for number in range(3):
            expected = [(rank, "do", (number,)) for rank in range(workers)]
            assert team.run("do", number, tick=nothing) == expected
    finally:
        team.close()


def test_processes_are_kept_from_command_to_command() -> None:
    team = Processes(lambda rank, command, arguments: os.getpid(), control_for(3))
    try:
        first = team.run("pid", tick=nothing)
        assert len({*first, os.getpid()}) == 4
        assert team.run("pid", tick=nothing) == first
    finally:
        team.close()
    assert not any(psutil.pid_exists(pid) for pid in first)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            ValueError("no MemoryError"),
            r"worker 1 failed, by a bug of hogwild:\nTraceback(.|\n)*ValueError: no MemoryError",
        ),
        (MemoryError("Allocation failed"), "worker 1 ran out of memory: free some, or use fewer.*"),
        (OSError(errno.ENOMEM, "no"), "worker 1 ran out of memory: free some, or use fewer.*"),
        (DataError("row 7 is odd"), "worker 1 failed: row 7 is odd"),
    ],
)
def test_a_worker_says_of_what_kind_its_failure_was(problem: Exception, said: str) -> None:
    def work(rank: int, command: str, arguments: Any) -> None:
        if rank == 1:
            raise problem

    team = Processes(work, control_for(2))
    try:
        with pytest.raises(WorkerError) as told:
            team.run("do", tick=nothing)
    finally:
        team.close()
    assert re.fullmatch(said, str(told.value).rstrip())


def test_a_failure_in_a_thread_is_raised_and_stops_the_others() -> None:
    control = control_for(2)

    def work(rank: int, command: str, arguments: Any) -> None:
        if rank == 1:
            raise ZeroDivisionError("one by nothing")
        while control.goes_on():
            time.sleep(0.001)

    with pytest.raises(ZeroDivisionError):
        Threads(work, control).run("do", tick=nothing)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_ends_the_program_does_not_end_a_worker(number: signal.Signals) -> None:
    def work(rank: int, command: str, arguments: Any) -> int:
        os.kill(os.getpid(), number)
        return rank

    team = Processes(work, control_for(2))
    try:
        assert team.run("do", tick=nothing) == [0, 1]
    finally:
        team.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGUSR1])
def test_a_killed_worker_is_named_within_a_second(number: signal.Signals) -> None:
    control = control_for(3)

    def work(rank: int, command: str, arguments: Any) -> None:
        if rank == 2:
            os.kill(os.getpid(), number)
        while control.goes_on():
            time.sleep(0.001)

    team = Processes(work, control)
    began = time.monotonic()
    try:
        with pytest.raises(
            WorkerError, match=rf"worker 2 \(process \d+\) was ended by {number.name}"
        ):
            team.run("do", tick=nothing)
    finally:
        team.close()
    assert time.monotonic() - began < 1.0
    assert not psutil.Process().children()


def test_a_worker_that_leaves_is_noticed() -> None:
    team = Processes(lambda rank, command, arguments: os._exit(3), control_for(1))
    try:
        with pytest.raises(WorkerError, match="exit code 3"):
            team.run("do", tick=nothing)
    finally:
        team.close()


def test_a_stuck_worker_is_killed_at_close() -> None:
    def work(rank: int, command: str, arguments: Any) -> None:
        if command == "hang":
            signal.pause()

    control = control_for(1)
    team = Processes(work, control)
    team._children[0].begin(pickle.dumps(("hang", ())))
    team.close()
    assert not psutil.Process().children()


def test_workers_go_when_their_parent_is_killed() -> None:
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        team = Processes(lambda rank, command, arguments: os.getpid(), control_for(2))
        pids = team.run("pid", tick=nothing)
        os.write(writing, np.array(pids, np.int64).tobytes())
        signal.pause()
    pids = np.frombuffer(os.read(reading, 16), np.int64).tolist()
    os.close(reading)
    os.close(writing)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    deadline = time.monotonic() + 5
    while any(psutil.pid_exists(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_stop_is_heard_and_taken_back() -> None:
    control = control_for(2)

    def work(rank: int, command: str, arguments: Any) -> int:
        steps = 0
        while control.goes_on() and steps < 1_000_000:
            steps += 1
            control.count(rank, steps)
            time.sleep(0.0005)
        return steps

    team = Processes(work, control)
    ticks = 0

    def stop_after_some() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 3:
            control.stop()

    try:
        answers = team.run("do", tick=stop_after_some)
        assert control.stopped
        assert control.steps() == sum(answers) > 0
        control.clear()
        assert not control.stopped
        assert control.steps() == 0
    finally:
        team.close()


def test_counters_lie_on_cache_lines_of_their_own() -> None:
    arrays = shared_arrays(Control.arrays(3))
    assert SLOT * arrays["steps"].itemsize == 64
    Control(arrays, 3).count(2, 5)
    assert arrays["steps"][2 * SLOT] == 5


def test_alone_works_in_this_thread_and_ticks() -> None:
    control = control_for(1)
    ticks: list[int] = []

    def work(rank: int, command: str, arguments: Any) -> int:
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline:
            control.goes_on()
        return threading.get_ident()

    team = Threads(work, control)
    assert team.run("do", tick=lambda: ticks.append(1)) == [threading.get_ident()]
    assert 1 <= len(ticks) <= 4
