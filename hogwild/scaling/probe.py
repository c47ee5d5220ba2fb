"""What the machine itself gives to several workers: the bound of any scaling on it.

Threads do the same simple work, first one, then several: arithmetic on what fits into a core's
cache, and reading an array that fits into none. Where several threads do less than so many times
the work of one, no trainer can do better.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hogwild import machine

SECONDS = 0.05  # of each measurement
TRIES = 3  # the best of them counts
CACHED = 32_768  # bytes of doubles to compute with, and as many of results
STREAMED = 256 << 20  # bytes to read, more than caches hold
LEAST_STREAMED = 16 << 20
PIECE = 4 << 20  # bytes that are read at a time

Work = Callable[[int], float]  # of a thread's number: how much of it was done in one go


@dataclass(frozen=True)
class Probe:
    """What threads did together in a second, by their number.

    Attributes:
        arithmetic: operations on numbers in a core's cache, in millions.
        bandwidth: bytes read from memory.
    """

    arithmetic: dict[int, float]
    bandwidth: dict[int, float]

    def speed_up(self, workers: int) -> float:
        """How many times the arithmetic of one thread so many do, as far as there are cores."""
        return self.arithmetic[self._threads(workers)] / self.arithmetic[1]

    def stream(self, workers: int) -> float:
        """Bytes a second that so many read from memory, as far as there are cores."""
        return self.bandwidth[self._threads(workers)]

    def _threads(self, workers: int) -> int:
        return max(count for count in self.arithmetic if count <= workers)


def probe(counts: Iterable[int], seconds: float = SECONDS) -> Probe:
    """Measures with one thread, and with each of these numbers of threads, up to the cores."""
    cores = machine.usable_cores()
    numbers = sorted({1, *(min(count, cores) for count in counts)})
    return Probe(_arithmetic(numbers, seconds), _bandwidth(numbers, seconds))


def typical(probes: list[Probe]) -> Probe:
    """The median of several: of each number of threads."""
    counts = list(probes[0].arithmetic)

    def middle(name: str) -> dict[int, float]:
        found = {n: sorted(getattr(one, name)[n] for one in probes) for n in counts}
        return {n: values[(len(values) - 1) // 2] for n, values in found.items()}

    return Probe(middle("arithmetic"), middle("bandwidth"))


def _arithmetic(counts: list[int], seconds: float) -> dict[int, float]:
    numbers = np.linspace(0.0, 1.0, CACHED // 8)
    results = [np.empty_like(numbers) for _ in range(counts[-1])]

    def work(thread: int) -> float:
        np.sin(numbers, out=results[thread])
        return len(numbers) / 1e6

    return _measured(work, counts, seconds)


def _bandwidth(counts: list[int], seconds: float) -> dict[int, float]:
    array = _large_array()
    pieces = array[: len(array) // PIECE * PIECE].reshape(-1, PIECE).view(np.int64)
    turns = [len(pieces) * thread // counts[-1] for thread in range(counts[-1])]

    def work(thread: int) -> float:
        turns[thread] = (turns[thread] + 1) % len(pieces)
        pieces[turns[thread]].sum()
        return PIECE

    return _measured(work, counts, seconds)


def _large_array() -> npt.NDArray[np.uint8]:
    size = min(STREAMED, max(LEAST_STREAMED, machine.available_memory() // 8))
    return np.ones(size, np.uint8)  # written to, so that there is memory behind it


def _measured(work: Work, counts: list[int], seconds: float) -> dict[int, float]:
    """How much of the work is done in a second, the best of some tries in turn."""
    found = dict.fromkeys(counts, 0.0)
    for _ in range(TRIES):
        for count in counts:
            found[count] = max(found[count], _done(work, count, seconds))
    return found


def _done(work: Work, count: int, seconds: float) -> float:
    """What so many threads do together in a second."""
    start = threading.Barrier(count)
    speeds = [0.0] * count

    def run(thread: int) -> None:
        done = 0.0
        start.wait()
        began = now = time.perf_counter()
        while now - began < seconds:
            done += work(thread)
            now = time.perf_counter()
        speeds[thread] = done / (now - began)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(speeds)
