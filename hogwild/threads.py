"""Work in equal shares, and tasks that run in parallel threads of this process."""

import os
import queue
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from threading import Condition, Lock, Thread
from typing import TypeVar

T = TypeVar("T")

IDLE = (
    0.05  # seconds that a thread waits for more to do: to begin takes it 0.1 ms, to go on a tenth
)


class Helper(Thread):
    """A thread that runs tasks for others, and ends after some time without a task.

    (Threads of `concurrent.futures` do not start after the program's main thread has ended.)
    """

    lock = Lock()
    idle: "list[Helper]" = []  # noqa: RUF012  all that wait for something to do

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._given: queue.SimpleQueue[Given | None] = queue.SimpleQueue()

    @classmethod
    def one(cls) -> "Helper":
        """A helper that has nothing to do."""
        with cls.lock:
            if cls.idle:
                return cls.idle.pop()
        helper = cls()
        helper.start()
        return helper

    def begin(self, work: Callable[[], None]) -> Callable[[], None]:
        """Starts a task, which must not raise; returns a function that waits until it is done."""
        done: queue.SimpleQueue[None] = queue.SimpleQueue()  # the next task has another
        self._given.put((work, done))
        return done.get

    def run(self) -> None:
        while (given := self._next()) is not None:
            work, done = given
            work()
            del given, work  # frees the task and all that it holds
            with self.lock:
                self.idle.append(self)
            done.put(None)

    def _next(self) -> "Given | None":
        while True:
            try:
                return self._given.get(timeout=IDLE)
            except queue.Empty:
                with self.lock:
                    if self in self.idle:  # else somebody took this helper for a task
                        self.idle.remove(self)
                        return None

    @classmethod
    def end_all(cls) -> None:
        """Ends idle helpers: a forked process has only one thread."""
        with cls.lock:
            ending, cls.idle[:] = [*cls.idle], []
        for helper in ending:
            helper._given.put(None)
        for helper in ending:
            helper.join()

    @classmethod
    def forget_all(cls) -> None:
        """In a forked process: the threads are gone, and so may be the holder of the lock."""
        cls.lock, cls.idle = Lock(), []


Given = tuple[Callable[[], None], "queue.SimpleQueue[None]"]  # a task, and who waits for it

os.register_at_fork(before=Helper.end_all, after_in_child=Helper.forget_all)


def lock_and_condition() -> tuple[Lock, Condition]:
    """A lock to hold, and a condition to wait for while holding it.

    Never hold the condition by `with`: its `__enter__` and `__exit__` are Python, and Ctrl-C within
    them would leave it locked, so that other threads would wait forever.
    """
    lock = Lock()
    return lock, Condition(lock)


def share_of(size: int, count: int, rank: int) -> tuple[int, int]:
    """Where a share of `size` begins and ends; shares differ by at most one."""
    return size * rank // count, size * (rank + 1) // count


def side_by_side(tasks: Iterable[Callable[[], T]], threads: int) -> list[T]:
    """The results of tasks, in their order. `threads` threads run them, this one included.

    Fewer do where the system has no more threads to give.
    """
    given = list(tasks)
    waiting = enumerate(given)
    lock = Lock()
    found: dict[int, T] = {}
    failures: list[BaseException] = []

    def work() -> None:
        while not failures:
            with lock:
                number, task = next(waiting, (-1, None))
            if task is None:
                return
            try:
                found[number] = task()
            except BaseException as failure:
                failures.append(failure)

    waits = []
    with suppress(RuntimeError):  # "can't start new thread"
        for _ in range(1, min(threads, len(given))):
            waits.append(Helper.one().begin(work))
    work()
    for wait in waits:
        wait()
    if failures:
        raise failures[0]
    return [found[number] for number in range(len(given))]


def in_shares(work: Callable[[int, int], T], size: int, threads: int) -> list[T]:
    """The results of work(begin, end), for one equal share of `size` for each thread."""
    shares = (share_of(size, threads, rank) for rank in range(threads))
    return side_by_side((partial(work, *share) for share in shares), threads)
