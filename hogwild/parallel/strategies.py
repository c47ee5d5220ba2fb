"""Strategies: how the workers may touch the weights. What the weights mean they do not know.

Of a problem of rows, each worker makes one side of its strategy, learns on its `weights`, and calls
`exchange` after every piece of an epoch and `finish` at its end. Of a problem of blocks, a strategy
says which tasks (a band of each side) may be done at the same time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hogwild.parallel.memory import Arrays
from hogwild.seeds import seed_of

Phase = list[tuple[int, int]]  # tasks that may be done at the same time: two bands each


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


def any_order(bands: int, seed: int, epoch: int) -> list[Phase]:
    """All tasks in one phase, in a random order: two at a time may touch the same rows."""
    order = np.random.default_rng(seed_of(seed, epoch)).permutation(bands * bands)
    return [[(int(task) // bands, int(task) % bands) for task in order]]


def diagonals(bands: int, seed: int, epoch: int) -> list[Phase]:
    """As many phases as bands, in a random order: no two tasks of one touch the same rows.

    A worker that does neighbouring tasks finds, in the next phase, most of their rows in its cache.
    """
    order = np.random.default_rng(seed_of(seed, epoch)).permutation(bands).tolist()
    return [
        [(band, order[(band + phase) % bands]) for band in range(bands)] for phase in range(bands)
    ]


@dataclass(frozen=True)
class Strategy:
    """A strategy, in a line; a worker's side of it for rows, and its phases for blocks, if any."""

    summary: str
    make: Callable[[Arrays, int, int], Sharing] | None = None
    phases: Callable[[int, int, int], list[Phase]] | None = None


STRATEGIES: dict[str, Strategy] = {
    "hogwild": Strategy("all workers write one array without locks", Hogwild, any_order),
    "strata": Strategy(
        "workers hold blocks that share no row and no column; any number of them, the same bytes",
        phases=diagonals,
    ),
}
