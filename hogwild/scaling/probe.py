"""Measures how far the machine itself scales with threads: no training can scale better.

One thread and then several do the same simple work: arithmetic in a core's cache, and reading an
array that is larger than the caches.
"""

import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, repeat
from typing import NamedTuple

import numpy as np

from hogwild import machine

SECONDS = 0.05  # of each measurement
STARTING = 0.0005  # seconds until a thread runs: all threads begin at the same time
TRIES = 3  # the best one counts
CACHED = 4096  # numbers to compute with: 32 KiB
STREAMED = 256 << 20  # bytes to read, more than caches hold
LEAST_STREAMED = 16 << 20
PIECE = 4 << 20  # bytes read at a time


class Probe(NamedTuple):
    """What several threads do together in a second, by the number of threads."""

    arithmetic: dict[int, float]  # operations on numbers in a core's cache
    bandwidth: dict[int, float]  # bytes read from memory

    def speed_up(self, threads: int) -> float:
        """Their arithmetic over that of one thread."""
        return self.arithmetic[threads] / self.arithmetic[1]

    @property
    def text(self) -> str:
        """A sentence with all numbers."""
        found = [
            f"{count} threads do {self.speed_up(count):.2f} times its arithmetic and read "
            f"{self.bandwidth[count] / 1e9:.3g} GB/s"
            for count in self.arithmetic
            if count > 1
        ]
        return "; ".join([f"One thread reads {self.bandwidth[1] / 1e9:.3g} GB/s", *found]) + "."


def probe(threads: Iterable[int], seconds: float = SECONDS) -> Probe:
    """Measures one thread and each of these numbers of threads."""
    counts = sorted({1, *threads})
    numbers, results = np.linspace(0.0, 1.0, CACHED), np.empty((counts[-1], CACHED))
    size = min(STREAMED, max(LEAST_STREAMED, machine.available_memory() // 8))
    # Filled with ones: memory that was never written has no pages behind it
    pieces = list(np.ones((size // PIECE, PIECE // 8), np.int64))
    starts = [len(pieces) * thread // counts[-1] for thread in range(counts[-1])]
    turns = [cycle(pieces[start:] + pieces[:start]) for start in starts]

    def compute(thread: int) -> int:
        return len(np.sin(numbers, out=results[thread]))

    def read(thread: int) -> int:
        next(turns[thread]).sum()
        return PIECE

    return Probe(_measured(compute, counts, seconds), _measured(read, counts, seconds))


def typical(probes: list[Probe]) -> Probe:
    """The median of several probes, for each number of threads."""
    medians = (
        {count: statistics.median(one[count] for one in some) for count in some[0]}
        for some in zip(*probes, strict=True)
    )
    return Probe(*medians)


def _measured(work: Callable[[int], int], counts: list[int], seconds: float) -> dict[int, float]:
    """The best of some tries. `work` does a piece for a thread, and returns how much that was."""

    def speed(thread: int, start: float) -> float:
        done = 0
        time.sleep(max(0.0, start - time.perf_counter()))
        began = now = time.perf_counter()
        while now - began < seconds:
            done += work(thread)
            now = time.perf_counter()
        return done / (now - began)

    found = dict.fromkeys(counts, 0.0)
    for _ in range(TRIES):
        for count in counts:
            with ThreadPoolExecutor(count) as pool:
                start = time.perf_counter() + STARTING * count
                speeds = pool.map(speed, range(count), repeat(start))
                found[count] = max(found[count], sum(speeds))
    return found
