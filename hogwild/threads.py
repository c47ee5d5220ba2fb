"""Work in equal shares, and a few things done side by side in threads of this process."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def share_of(size: int, count: int, rank: int) -> tuple[int, int]:
    """Where one of so many shares of a size begins and ends; they differ by at most one."""
    return size * rank // count, size * (rank + 1) // count


class Threads:
    """So many threads, of which this is one; the others end with the `with` statement.

    None is left after it, so processes may be forked then.
    """

    def __init__(self, count: int) -> None:
        self._others = ThreadPoolExecutor(count - 1) if count > 1 else None

    def __enter__(self) -> Callable[[Iterable[Callable[[], T]]], list[T]]:
        """Does tasks and returns what they return, in their order."""
        return self._do

    def __exit__(self, *problem: Any) -> None:
        if self._others is not None:
            self._others.shutdown()

    def _do(self, tasks: Iterable[Callable[[], T]]) -> list[T]:
        first, *others = tasks
        if self._others is None:
            return [task() for task in (first, *others)]
        coming = [self._others.submit(task) for task in others]
        return [first(), *(one.result() for one in coming)]
