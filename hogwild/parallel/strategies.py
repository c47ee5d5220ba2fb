"""Strategies: how the workers may touch the weights. What the weights mean they do not know.

Each worker makes one of its strategy, learns on its `weights`, and calls `exchange` after every
piece of an epoch and `finish` at its end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hogwild.parallel.memory import Arrays


class Sharing(Protocol):
    """One worker's side of a strategy."""

    weights: Arrays  # what this worker's kernels read and write

    def exchange(self) -> None:
        """Called after every piece of an epoch."""

    def finish(self) -> None:
        """Called at the end of the worker's part of an epoch: the shared weights must be whole."""


class Hogwild:
    """All workers write the shared weights themselves, without locks (Niu et al. 2011)."""

    def __init__(self, shared: Arrays, rank: int, workers: int) -> None:
        self.weights = shared  # raced for: an update may get lost

    def exchange(self) -> None:
        pass

    def finish(self) -> None:
        pass


@dataclass(frozen=True)
class Strategy:
    """A strategy: what it does, in a line, and what makes a worker's side of it."""

    summary: str
    make: Callable[[Arrays, int, int], Sharing]


STRATEGIES: dict[str, Strategy] = {
    "hogwild": Strategy("all workers write one array without locks", Hogwild),
}
