"""Worker processes: forked once, kept, and each controlled through a socket.

Workers are forked after the kernels were compiled, so they have the kernels and the data without a
copy. A child only waits for commands and runs compiled code on arrays. It imports nothing, prints
nothing, and leaves by `os._exit`. So it may be forked from a notebook or a thread, and needs no
``if __name__ == "__main__"``.

The parent never waits for a single worker: a worker may be stopped or killed in mid-message.
"""

import contextlib
import ctypes
import errno
import gc
import math
import os
import pickle
import select
import signal
import socket
import struct
import threading
import time
import traceback
import warnings
from _thread import start_new_thread
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, NamedTuple

from hogwild.errors import HogwildError, WorkerError, remedy
from hogwild.interrupt import ENDINGS
from hogwild.machine import available_memory, peak_memory
from hogwild.parallel.team import TICK, Control, Tick, Work

LEAVING = 1.0  # seconds that a worker gets to end by itself
WATCH = 0.2  # seconds between two looks of a worker whether its parent lives
PIECE = 1 << 18  # bytes of an answer that are read at a time
LENGTH = struct.Struct("=Q")  # of an answer, before it
FOR_THE_PARENT = {signal.SIGINT, *ENDINGS}  # sent to the whole process group; workers ignore them
ON_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG, of <linux/prctl.h>
# A process gets these for what it does itself, and would do again
FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT")


def available() -> bool:
    """Whether this system can fork worker processes that share memory: Linux can."""
    return hasattr(os, "memfd_create")


class Ending(NamedTuple):
    """How a process ended: its wait status (None: unknown), and the most bytes that it used."""

    status: int | None
    peak: int


class Child:
    """A worker process as its parent sees it."""

    def __init__(self, rank: int, pid: int, connection: socket.socket) -> None:
        self.rank, self.pid = rank, pid
        self.ended = False
        self._socket = connection
        self._socket.setblocking(False)
        self._to_send = memoryview(b"")
        self._received = bytearray()
        self._stopped, self._looked = 0.0, time.monotonic()

    def begin(self, message: bytes) -> None:
        """Sends a command, or as much of it as the worker takes now."""
        self._to_send, self._received = memoryview(message), bytearray()
        self._send()

    def events(self) -> tuple[int, int]:
        """For `select.poll`: what to wait for."""
        return self._socket.fileno(), select.POLLIN | select.POLLOUT * bool(self._to_send)

    def go_on(self) -> bool:
        """Sends and receives what is possible now. Returns whether the answer is complete.

        Raises:
            EOFError, OSError: the worker is gone.
        """
        self._send()
        try:
            piece = self._socket.recv(PIECE)
        except BlockingIOError:
            return False
        if not piece:
            raise EOFError
        self._received += piece
        if len(self._received) < LENGTH.size:
            return False
        (size,) = LENGTH.unpack_from(self._received)
        return len(self._received) == LENGTH.size + int(size)

    def answer(self) -> tuple[str | None, Any]:
        """The complete answer: what failed, and the result."""
        found: tuple[str | None, Any] = pickle.loads(memoryview(self._received)[LENGTH.size :])
        return found

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._to_send:
                self._to_send = self._to_send[self._socket.send(self._to_send) :]

    def ending(self) -> Ending | None:
        """How it ended; None while it lives."""
        try:
            pid, status, used = os.wait4(self.pid, os.WNOHANG)
        except ChildProcessError:  # someone else waited for it
            self.ended = True
            return Ending(None, 0)
        self.ended = pid != 0
        return Ending(status, 1024 * used.ru_maxrss) if pid else None

    def stopped_by(self) -> signal.Signals | None:
        """The signal that stopped it, if it is stopped now."""
        with contextlib.suppress(ChildProcessError):
            found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                return signal.Signals(found.si_status)
        return None

    def seconds_stopped(self) -> float:
        """For how long it has been seen stopped.

        The time between two looks hardly counts if it was long: this process was stopped, too.
        """
        now = time.monotonic()
        passed, self._looked = min(now - self._looked, 2 * TICK), now
        self._stopped = 0.0 if self.stopped_by() is None else self._stopped + passed
        return self._stopped

    def kill(self) -> Ending:
        """Ends it at once."""
        while (ending := self.ending()) is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.0005)
        return ending

    def hang_up(self) -> None:
        """Asks it to leave, also where another process holds a copy of the socket."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def forget(self) -> None:
        """In another child: closes its copy of the socket."""
        self._socket.close()


class Processes:
    """Worker processes. `patience`: seconds after which one that is stopped counts as dead."""

    def __init__(self, work: Work, control: Control, patience: float = math.inf) -> None:
        self.patience = patience
        self._control = control
        self._children: list[Child] = []
        try:
            for rank in range(control.workers):
                self._fork(rank, work)
        except BaseException as problem:
            started = len(self._children)
            self.close()
            if not isinstance(problem, OSError):
                raise
            raise _not_started(started, control.workers, problem) from problem

    def _fork(self, rank: int, work: Work) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        _libc()  # a child should not have to load it
        try:
            with held_back(FOR_THE_PARENT), warnings.catch_warnings():
                # Python 3.12 warns about forks beside other threads. The module's docstring says
                # why a fork is safe here
                warnings.simplefilter("ignore", DeprecationWarning)
                on_death = _on_parents_death()
                pid = os.fork()
                if pid == 0:
                    for child in self._children:
                        child.forget()
                    ours.close()
                    _serve(rank, work, theirs, parent, on_death)
                self._children.append(Child(rank, pid, ours))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

    def run(self, command: str, *arguments: Any, tick: Tick) -> list[Any]:
        """Has every worker do a command; their answers by rank.

        Raises:
            WorkerError: a worker failed, died, or was stopped for too long.
        """
        message = pickle.dumps((command, arguments), pickle.HIGHEST_PROTOCOL)
        answers: list[Any] = [None] * len(self._children)
        waiting = {child.rank: child for child in self._children}
        for child in self._children:
            with self._heeding_death(child):
                child.begin(message)
        while waiting:
            for child in _ready(waiting.values()):
                with self._heeding_death(child):
                    if not child.go_on():
                        continue
                failure, answers[child.rank] = waiting.pop(child.rank).answer()
                if failure:
                    raise WorkerError(f"worker {child.rank} {failure}")
            for child in waiting.values():
                self._look_after(child)
            tick()
        return answers

    @property
    def pids(self) -> list[int]:
        """The process numbers of the workers that live, as far as is known."""
        return [child.pid for child in self._children if not child.ended]

    def all_live(self) -> bool:
        """Whether no worker has ended or is stopped, as far as can be seen without asking them."""
        return all(
            not child.ended and child.ending() is None and child.stopped_by() is None
            for child in self._children
        )

    def _look_after(self, child: Child) -> None:
        # The socket does not show every death: another process may hold a copy of its other end
        if (ending := child.ending()) is not None:
            raise self._died(child, ending)
        if child.seconds_stopped() < self.patience:
            return
        stopped = child.stopped_by() or signal.SIGSTOP
        child.kill()
        self._control.stop()
        raise WorkerError(
            f"{_named(child)} was stopped by {stopped.name} and did not go on within "
            f"{self.patience:g} s, so it was ended: continue it sooner (kill -CONT), or give a "
            "larger worker_patience",
            from_outside=True,
            signal=stopped,
        )

    @contextlib.contextmanager
    def _heeding_death(self, child: Child) -> Iterator[None]:
        try:
            yield
        except (EOFError, OSError):
            raise self._died(child) from None

    def _died(self, child: Child, ending: Ending | None = None) -> WorkerError:
        self._control.stop()
        deadline = time.monotonic() + LEAVING
        while ending is None and time.monotonic() < deadline:
            time.sleep(0.001)
            ending = child.ending()
        if ending is None:
            child.kill()
            return WorkerError(f"{_named(child)} stopped answering: try again", from_outside=True)
        return _death(_named(child), ending)

    def close(self) -> None:
        """Ends all workers: they leave when their socket closes, and are killed if they do not.

        Once one has ended they are killed at once: they may be waiting for it.
        """
        self._control.stop()
        one_ended = any(child.ended for child in self._children)
        for child in self._children:
            child.hang_up()
        deadline = time.monotonic() + LEAVING * (not one_ended)
        for child in self._children:
            while not child.ended and child.ending() is None:
                if child.stopped_by() is not None or time.monotonic() > deadline:
                    child.kill()
                time.sleep(0.0005)
        self._children = []


def _ready(children: Collection[Child]) -> list[Child]:
    """The children that answer, or take more of a command; waits for them for a tick at most."""
    by_number = {child.events()[0]: child for child in children}
    poll = select.poll()
    for child in children:
        poll.register(*child.events())
    return [by_number[number] for number, _ in poll.poll(1000 * TICK)]


# What is said of an end


def _named(child: Child) -> str:
    return f"worker {child.rank} (process {child.pid})"


def _not_started(started: int, workers: int, problem: OSError) -> WorkerError:
    why = f"{problem.strerror}"
    if problem.errno == errno.ENOMEM:
        why += f"; this process uses {peak_memory():,} bytes, {available_memory():,} are available"
    what = remedy(problem)
    if problem.errno == errno.EAGAIN:
        what = "allow more processes (ulimit -u), or use fewer workers"
    return WorkerError(f"worker {started} of {workers} could not be started ({why}): {what}")


def _death(name: str, ending: Ending) -> WorkerError:
    again = "try again, or use backend='thread'"
    if ending.status is None:
        return WorkerError(f"{name} vanished: {again}", from_outside=True)
    code = os.waitstatus_to_exitcode(ending.status)
    if code >= 0:
        text = f"{name} ended by itself with exit code {code}: {again}"
        return WorkerError(text, from_outside=True)
    number = signal.Signals(-code)
    cause = {
        signal.SIGKILL: "someone ended it, or the system did for lack of memory (it used "
        f"{ending.peak:,} bytes; {available_memory():,} are available now): free some memory, or "
        "use fewer workers",
        signal.SIGBUS: "a page of the data or of the weights could not be read: free some memory, "
        "and do not change a data file while it is used",
    }.get(number, again)
    text = f"{name} was ended by {number.name}: {cause}"
    return WorkerError(text, from_outside=number.name not in FAULTS, signal=number)


# In the worker


@contextlib.contextmanager
def held_back(signals: set[signal.Signals]) -> Iterator[None]:
    """Holds signals back until the end of this block: a new worker must first set its handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(
    rank: int, work: Work, connection: socket.socket, parent: int, on_death: signal.Signals
) -> None:
    """A worker's life: do what its parent says, until the parent hangs up or is gone."""
    try:
        _go_with(parent, on_death)
        _leave_the_parents_ways()
        commands = connection.makefile("rb")
        while True:
            command, arguments = pickle.load(commands)
            try:
                answer = _packed(None, work(rank, command, arguments))
            except BaseException as problem:
                answer = _packed(_failure(problem), None)
            connection.sendall(answer)
    except (EOFError, OSError, pickle.UnpicklingError):  # broken off
        pass
    finally:
        os._exit(0)


def _packed(failure: str | None, answer: Any) -> bytes:
    data = pickle.dumps((failure, answer), pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


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


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _on_parents_death() -> signal.Signals:
    """The signal that a worker forked now should get when this thread ends.

    The program lives on when a thread besides the main one ends, and so must its workers. They only
    go on if they are stopped, and see for themselves whether the program is gone.
    """
    is_main = threading.get_native_id() == os.getpid()
    return signal.SIGKILL if is_main else signal.SIGCONT


def _go_with(parent: int, on_death: signal.Signals) -> None:
    """Has this worker end with its parent, in whatever kernel or loop it is, or if stopped."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(0)

    # First of all: a worker that is stopped before this would outlive its parent
    _libc().prctl(ON_PARENTS_DEATH, int(on_death))
    try:
        start_new_thread(watch, ())
    except RuntimeError:  # no thread is to be had: better it ends too early than never
        _libc().prctl(ON_PARENTS_DEATH, int(signal.SIGKILL))
