"""Worker processes: forked once, kept, and each controlled through a pipe.

Workers are forked after the kernels were compiled, so they have the kernels and the data without a
copy. A child only waits for commands and runs compiled code on arrays. It imports nothing, prints
nothing, and leaves by `os._exit`. So it may be forked from a notebook or a thread, and needs no
``if __name__ == "__main__"``.
"""

import contextlib
import errno
import gc
import multiprocessing.connection as connections
import os
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, cast

from hogwild.errors import HogwildError, WorkerError, remedy
from hogwild.interrupt import ENDINGS
from hogwild.parallel.team import TICK, Control, Tick, Work

Pipe: TypeAlias = "Connection[Any, Any]"

LEAVE = ("leave", ())
PATIENCE = 1.0  # seconds that a worker gets to end by itself
FOR_THE_PARENT = {signal.SIGINT, *ENDINGS}  # sent to the whole process group; workers ignore them


def available() -> bool:
    """Whether this system can fork worker processes that share memory: Linux can."""
    return hasattr(os, "memfd_create")


class Processes:
    def __init__(self, work: Work, control: Control) -> None:
        self._control = control
        self._pids: list[int] = []
        self._pipes: list[Pipe] = []
        try:
            for rank in range(control.workers):
                self._fork(rank, work)
        except BaseException as problem:
            started = len(self._pids)
            self.close()
            if not isinstance(problem, OSError):
                raise
            raise HogwildError(
                f"worker {started} of {control.workers} could not be started "
                f"({problem.strerror}): {remedy(problem)}"
            ) from problem

    def _fork(self, rank: int, work: Work) -> None:
        ours, theirs = connections.Pipe()
        parent = os.getpid()
        with _held_back(FOR_THE_PARENT), warnings.catch_warnings():
            # Python 3.12 warns about forks beside other threads. The module's docstring says why a
            # fork is safe here
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
            if pid == 0:
                for pipe in [*self._pipes, ours]:
                    pipe.close()
                _serve(rank, work, theirs, parent, self._control)
            self._pids.append(pid)
            self._pipes.append(ours)
        theirs.close()

    def run(self, command: str, *arguments: Any, tick: Tick) -> list[Any]:
        answers: list[Any] = [None] * len(self._pids)
        waiting = dict(zip(self._pipes, range(len(self._pids)), strict=True))
        for pipe, rank in waiting.items():
            try:
                pipe.send((command, arguments))
            except OSError:
                raise self._died(rank) from None
        while waiting:
            for pipe in cast(list[Pipe], connections.wait(list(waiting), timeout=TICK)):
                rank = waiting.pop(pipe)
                answers[rank] = self._receive(rank, pipe)
            for rank in waiting.values():
                # The pipe does not show every death: another child may hold its other end open
                pid, status = _reap(self._pids[rank])
                if pid:
                    raise self._died(rank, status)
            tick()
        return answers

    @property
    def pids(self) -> list[int]:
        """The process numbers of the workers that live, as far as is known."""
        return [pid for pid in self._pids if pid]

    def all_live(self) -> bool:
        """Whether no worker has ended, as far as can be seen without asking them."""
        for rank, pid in enumerate(self._pids):
            if not pid or _reap(pid)[0]:
                self._pids[rank] = 0
                return False
        return True

    def _receive(self, rank: int, pipe: Pipe) -> Any:
        try:
            failure, answer = pipe.recv()
        except (EOFError, OSError):
            raise self._died(rank) from None
        if failure:
            raise WorkerError(f"worker {rank} {failure}")
        return answer

    def _died(self, rank: int, status: int | None = None) -> WorkerError:
        self._control.stop()
        pid = self._pids[rank]
        deadline = time.monotonic() + PATIENCE
        while status is None and time.monotonic() < deadline:
            reaped, found = _reap(pid)
            status = found if reaped else None
            time.sleep(0.001)
        self._pids[rank] = 0
        return WorkerError(f"worker {rank} (process {pid}) {_ending(status)}")

    def close(self) -> None:
        """Ends all workers: they leave when their pipe closes, and are killed if they do not."""
        self._control.stop()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.send(LEAVE)  # other children may hold our end open: closing it may not tell
            pipe.close()
        deadline = time.monotonic() + PATIENCE
        for pid in filter(None, self._pids):
            while not _reap(pid)[0]:
                if time.monotonic() > deadline:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                        os.waitpid(pid, 0)
                    break
                time.sleep(0.0005)
        self._pids, self._pipes = [], []


def _reap(pid: int) -> tuple[int, int]:
    """waitpid without waiting; a process that someone else reaped counts as a normal end."""
    try:
        return os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return pid, 0


def _ending(status: int | None) -> str:
    if status is None:
        return "stopped answering: try again, or use backend='thread'"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended by itself with exit code {code}: try again, or use backend='thread'"
    name = signal.Signals(-code).name
    cause = {
        "SIGKILL": "someone ended it, or the system did for lack of memory: free some memory, "
        "or use fewer workers",
        "SIGBUS": "a page of the data or of the weights could not be read: free some "
        "memory, and do not change a data file while it is used",
    }.get(name, "try again, or use backend='thread'")
    return f"was ended by {name}: {cause}"


@contextlib.contextmanager
def _held_back(signals: set[signal.Signals]) -> Iterator[None]:
    """Holds signals back until the end of this block: a new worker must first set its handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(rank: int, work: Work, pipe: Pipe, parent: int, control: Control) -> None:
    """A worker's life: do what the pipe says, until it says leave or the parent is gone."""
    try:
        _leave_the_parents_ways()

        def between() -> None:
            if os.getppid() != parent:
                os._exit(0)

        control.between = between
        while True:
            while not pipe.poll(PATIENCE):
                between()
            command, arguments = pipe.recv()
            if (command, arguments) == LEAVE:
                return
            try:
                failure, answer = None, work(rank, command, arguments)
            except BaseException as problem:
                failure, answer = _failure(problem), None
            pipe.send((failure, answer))
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)


def _failure(problem: BaseException) -> str:
    if isinstance(problem, HogwildError):
        return f"failed: {problem}"
    if isinstance(problem, MemoryError) or getattr(problem, "errno", None) == errno.ENOMEM:
        return "ran out of memory: free some, or use fewer workers"
    return f"failed, by a bug of hogwild:\n{traceback.format_exc()}"


def _leave_the_parents_ways() -> None:
    """Leaves signals that end the program, and the parent's garbage, to the parent."""
    gc.disable()
    signal.set_wakeup_fd(-1)
    for number in FOR_THE_PARENT:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FOR_THE_PARENT)
