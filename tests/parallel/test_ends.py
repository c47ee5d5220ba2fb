"""Workers end with their program, whatever they do, and one that is stopped holds nobody up."""

import contextlib
import errno
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

import hogwild
from hogwild.errors import WorkerError
from hogwild.parallel.memory import shared_arrays
from hogwild.parallel.processes import Processes
from hogwild.parallel.team import Control

Start = Callable[..., "subprocess.Popen[str]"]
LARGE = 20_000_000  # bytes: far more than a socket takes before the other side reads


def nothing() -> None:
    pass


def control_for(workers: int) -> Control:
    return Control(shared_arrays(Control.arrays(workers)), workers)


def lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def until(happened: Callable[[], object], seconds: float = 30) -> float:
    began = time.monotonic()
    while not happened():
        assert time.monotonic() < began + seconds, "it never happened"
        time.sleep(0.001)
    return time.monotonic() - began


def state(pid: int) -> str:
    return str(psutil.Process(pid).status())


# The program is killed

TEAM = """
    import os, signal, sys, threading, time
    from hogwild.parallel.memory import shared_arrays
    from hogwild.parallel.processes import Processes
    from hogwild.parallel.team import Control

    control = Control(shared_arrays(Control.arrays(2)), 2)

    def work(rank, command, arguments):
        if command == "kernel":
            control.all_finished(0, 5, 1 << 60)  # looks for years, within the compiled kernel
        elif command == "python":
            while True:
                pass
        elif command == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        return os.getpid()

    def say():
        print(*team.pids, flush=True)
        time.sleep(100)

    def begin():
        global team
        team = Processes(work, control)

    if {in_thread}:
        thread = threading.Thread(target=begin)
        thread.start()
        while os.path.exists(f"/proc/self/task/{{thread.native_id}}"):
            time.sleep(0.001)
    else:
        begin()
    assert team.run("idle", tick=lambda: None) == team.pids
    threading.Timer(0.2, say).start()
    if "{doing}" != "idle":
        team.run("{doing}", tick=lambda: None)
"""
DOING = {"idle": "S", "kernel": "R", "python": "R", "stopped": "T"}


@pytest.mark.parametrize("in_thread", [False, True], ids=["main thread", "ended thread"])
@pytest.mark.parametrize("doing", list(DOING))
def test_workers_end_when_their_program_is_killed(
    start: Start, doing: str, in_thread: bool
) -> None:
    script = textwrap.dedent(TEAM).format(doing=doing, in_thread=in_thread)
    program = start([sys.executable, "-c", script])
    assert program.stdout is not None
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert len(pids) == 2
    if doing == "stopped":
        until(lambda: all(state(pid) == psutil.STATUS_STOPPED for pid in pids))
    program.kill()
    until(lambda: not any(map(lives, pids)), 5)


TRAINING = """
    import numpy as np
    import hogwild

    class Told(hogwild.Watcher):
        def tick(self, epoch, share, seconds):
            print("training", flush=True)

    size, each = 100_000, 40
    rng = np.random.default_rng(0)
    rows = hogwild.Rows.from_arrays(
        np.arange(size + 1) * each,
        rng.integers(0, 3_000, size * each).astype(np.uint32),
        np.ones(size * each, np.float32), 3_000, np.arange(size) % 2,
    )
    hogwild.train(rows, workers=3, strategy="{strategy}", solver="sgd", epochs=10_000, tol=0,
                  eta0=1e-3, objective_every=0, watcher=Told())
"""
WAITING = ["locked", "roundrobin", "combine", "ordered"]
OTHERS = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("hogwild", "minibatch", "averaged", "mixed")
]


@pytest.mark.parametrize("strategy", [*WAITING, *OTHERS])
def test_workers_that_wait_for_a_dead_one_end_with_their_program(
    start: Start, strategy: str
) -> None:
    """The program and one worker are killed together: nobody is left to ask the others to stop."""
    program = start([sys.executable, "-c", textwrap.dedent(TRAINING).format(strategy=strategy)])
    assert program.stdout is not None
    assert program.stdout.readline() == "training\n"
    pids = [child.pid for child in psutil.Process(program.pid).children()]
    assert len(pids) == 3
    os.kill(pids[1], signal.SIGKILL)
    program.kill()
    until(lambda: not any(map(lives, pids)), 5)


def test_workers_outlive_the_thread_that_forked_them() -> None:
    made: list[Processes] = []
    thread = threading.Thread(target=lambda: made.append(Processes(work_of_pids, control_for(2))))
    thread.start()
    thread.join()
    team = made[0]
    try:
        assert team.run("pid", tick=nothing) == team.pids
    finally:
        team.close()


def work_of_pids(rank: int, command: str, arguments: tuple[Any, ...]) -> int:
    return os.getpid()


# A worker is stopped


def stopping(rank: int, command: str, arguments: tuple[Any, ...]) -> Any:
    """What the second worker does wrong."""
    if rank == 1 and command == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    return os.getpid() if command != "large" else bytes(LARGE)


def told_of_stop(team: Processes, command: str, *arguments: Any) -> WorkerError:
    try:
        with pytest.raises(WorkerError, match="was stopped by SIGSTOP and did not go on") as told:
            team.run(command, *arguments, tick=nothing)
    finally:
        team.close()
    assert not psutil.Process().children()
    return told.value


def test_a_stopped_worker_is_given_up_after_the_patience() -> None:
    team = Processes(stopping, control_for(3), patience=0.3)
    pid = team.pids[1]
    began = time.monotonic()
    error = told_of_stop(team, "stop")
    assert time.monotonic() - began > 0.3
    assert f"worker 1 (process {pid})" in str(error)
    assert "0.3 s" in str(error)
    assert "worker_patience" in str(error)
    assert (error.from_outside, error.signal) == (True, signal.SIGSTOP)


def test_a_worker_that_goes_on_in_time_is_kept() -> None:
    team = Processes(stopping, control_for(2), patience=60)
    pid = team.pids[1]

    def continue_it() -> None:
        if state(pid) == psutil.STATUS_STOPPED:
            os.kill(pid, signal.SIGCONT)

    try:
        assert team.run("stop", tick=continue_it) == team.pids
    finally:
        team.close()


def test_a_command_does_not_wait_for_a_stopped_worker_to_read_it() -> None:
    team = Processes(stopping, control_for(2), patience=0.3)
    os.kill(team.pids[1], signal.SIGSTOP)
    told_of_stop(team, "read", bytes(LARGE))


def test_an_answer_that_breaks_off_in_the_middle_is_not_waited_for() -> None:
    team = Processes(stopping, control_for(2), patience=0.3)
    pid = team.pids[1]

    def stop_it() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)

    for child in team._children:
        child.begin(pickle.dumps(("large", ())))
    until(lambda: team._children[1].go_on() or len(team._children[1]._received) > 0)
    stop_it()
    assert 0 < len(team._children[1]._received) < LARGE
    team._children[1].begin = nothing_sent  # type: ignore[method-assign]
    team._children[0].begin = nothing_sent  # type: ignore[method-assign]
    told_of_stop(team, "large")


def nothing_sent(message: bytes) -> None:
    pass


def test_large_commands_and_answers_arrive_whole() -> None:
    team = Processes(lambda rank, command, arguments: (rank, *arguments), control_for(2))
    data = os.urandom(LARGE)
    try:
        for some in (data, b"", data[:70_000]):
            assert team.run("echo", some, tick=nothing) == [(0, some), (1, some)]
    finally:
        team.close()


def test_a_worker_that_was_stopped_while_idle_is_replaced_at_once() -> None:
    team = Processes(stopping, control_for(2))
    assert team.all_live()
    os.kill(team.pids[0], signal.SIGSTOP)
    until(lambda: not team.all_live())
    began = time.monotonic()
    team.close()
    assert time.monotonic() - began < 0.9  # it is not waited for
    assert not psutil.Process().children()


PAUSED = """
    import hogwild
    from hogwild.data.synthetic import rcv1

    class Told(hogwild.Watcher):
        def epoch(self, row):
            print(row["epoch"], flush=True)

    hogwild.train(rcv1(3000)[0], workers=2, strategy="hogwild", solver="sgd", epochs=100_000,
                  tol=0, eta0=0.5, objective_every=0, worker_patience=0.3, watcher=Told())
"""


def test_a_pause_of_the_whole_program_is_no_stop_of_a_worker(start: Start) -> None:
    """Ctrl-Z stops the program and its workers for longer than the patience; `fg` goes on."""
    program = start([sys.executable, "-c", textwrap.dedent(PAUSED)])
    assert program.stdout is not None
    for _ in range(3):
        assert program.stdout.readline()
        os.killpg(program.pid, signal.SIGSTOP)
        until(lambda: state(program.pid) == psutil.STATUS_STOPPED)
        time.sleep(0.5)
        os.killpg(program.pid, signal.SIGCONT)
    for _ in range(1000):  # more than a pipe holds
        assert program.stdout.readline()
    assert program.poll() is None


def test_the_patience_is_an_option_of_training() -> None:
    """Given up after it, since the second worker never goes on."""
    rows = hogwild.data.synthetic.rcv1(3000, 2000)[0]

    class Stopping(hogwild.Watcher):
        def begin(self, epoch: int) -> None:
            if epoch == 2:
                os.kill(psutil.Process().children()[-1].pid, signal.SIGSTOP)

    options: dict[str, Any] = {"workers": 2, "eta0": 0.5, "epochs": 3, "tol": 0}
    with pytest.raises(WorkerError, match=r"did not go on within 0\.2 s"):
        hogwild.train(rows, worker_patience=0.2, watcher=Stopping(), **options)


# What is said of an end


@pytest.mark.parametrize(
    ("number", "outside", "said"),
    [
        (signal.SIGKILL, True, r"it used [1-9][\d,]+ bytes; [1-9][\d,]+ are available now"),
        (signal.SIGUSR1, True, "was ended by SIGUSR1: try again"),
        (signal.SIGSEGV, False, "was ended by SIGSEGV: try again"),
        (signal.SIGBUS, False, "could not be read: free some memory"),
    ],
)
def test_an_error_tells_whether_another_worker_may_succeed(
    number: signal.Signals, outside: bool, said: str
) -> None:
    def work(rank: int, command: str, arguments: Any) -> None:
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.kill(os.getpid(), number)
        time.sleep(10)

    team = Processes(work, control_for(1))
    try:
        with pytest.raises(WorkerError, match=said) as told:
            team.run("do", tick=nothing)
    finally:
        team.close()
    assert (told.value.from_outside, told.value.signal) == (outside, number)
    copy = pickle.loads(pickle.dumps(told.value))
    assert (str(copy), copy.from_outside, copy.signal) == (str(told.value), outside, number)


def test_a_failure_of_its_own_work_would_happen_again() -> None:
    def work(rank: int, command: str, arguments: Any) -> None:
        raise MemoryError

    team = Processes(work, control_for(1))
    try:
        with pytest.raises(WorkerError) as told:
            team.run("do", tick=nothing)
    finally:
        team.close()
    assert (told.value.from_outside, told.value.signal) == (False, None)


def test_a_worker_that_someone_else_waited_for_has_vanished() -> None:
    """So it is in a program that ignores SIGCHLD."""
    team = Processes(stopping, control_for(2))
    os.kill(team.pids[1], signal.SIGKILL)
    os.waitpid(team.pids[1], 0)
    try:
        with pytest.raises(WorkerError, match=r"worker 1 \(process \d+\) vanished") as told:
            team.run("do", tick=nothing)
    finally:
        team.close()
    assert (told.value.from_outside, told.value.signal) == (True, None)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EAGAIN, r"worker 1 of 3 could not be started .*: allow more processes \(ulimit -u"),
        (errno.ENOMEM, r"this process uses [\d,]+ bytes, [\d,]+ are available\): allow more mem"),
    ],
)
def test_a_fork_that_fails_leaves_nothing(
    number: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, calls = os.fork, []

    def fails_at_second() -> int:
        calls.append(number)
        if len(calls) == 2:
            raise OSError(number, os.strerror(number))
        return fork()

    control = control_for(3)
    before = set(Path("/proc/self/fd").iterdir())
    monkeypatch.setattr(os, "fork", fails_at_second)
    with pytest.raises(WorkerError, match=said) as told:
        Processes(stopping, control)
    assert (told.value.from_outside, told.value.signal) == (False, None)
    assert len(set(Path("/proc/self/fd").iterdir())) == len(before)
    assert not psutil.Process().children()
