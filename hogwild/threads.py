"""Work in equal shares, and a few things done side by side in threads of this process."""

from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock, Thread
from typing import TypeVar

T = TypeVar("T")


def share_of(size: int, count: int, rank: int) -> tuple[int, int]:
    """Where one of so many shares of a size begins and ends; they differ by at most one."""
    return size * rank // count, size * (rank + 1) // count


def side_by_side(tasks: Iterable[Callable[[], T]], threads: int) -> list[T]:
    """What the tasks return, in their order; so many threads do them, of which this is one.

    The others have ended when it returns, so processes may be forked then. (The threads of
    `concurrent.futures` do not begin any more once the program's main thread has come to its end.)
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

    others = [Thread(target=work) for _ in range(1, min(threads, len(given)))]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if failures:
        raise failures[0]
    return [found[number] for number in range(len(given))]


def in_shares(work: Callable[[int, int], T], size: int, threads: int) -> list[T]:
    """What work(begin, end) returns for each of as many shares of a size as there are threads."""
    shares = (share_of(size, threads, rank) for rank in range(threads))
    return side_by_side((partial(work, *share) for share in shares), threads)
