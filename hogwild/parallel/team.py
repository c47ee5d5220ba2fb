"""Teams: who does the work. Threads of this process, or processes beside it.

A team calls ``work(rank, command, arguments)`` for all its workers at once and gathers the answers.
A team does not know what the work is. The workers of a team share a `Control`: through it, long
work learns that it should stop, and reports its progress.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.kernels import atomic
from hogwild.kernels.atomic import add, claim_one, wait_for
from hogwild.kernels.compile import ready
from hogwild.parallel.memory import Arrays

Work = Callable[[int, str, tuple[Any, ...]], Any]
Tick = Callable[[], None]

TICK = 0.05  # seconds between two looks at the clock, the display and the workers' health
SLOT = int(atomic.SLOT)
TASKS = 64  # most tasks of an epoch, in all its phases together


class Control:
    """Shared by a team: a flag that says stop, and a counter of the steps done by each worker."""

    def __init__(self, arrays: Arrays, workers: int) -> None:
        self._stop = arrays["stop"]
        self._steps = arrays["steps"]
        self._at_work = arrays["at_work"]
        self._snapshots = arrays["snapshots"]
        self._claimed = arrays["claimed"]
        self._taken = arrays["tasks_taken"]
        self._finished = arrays["tasks_finished"]
        self.workers = workers
        self.clear()
        if workers > 1:
            ready(add, claim_one, wait_for)
        # With one worker, plain Python is used: there is nothing to compile
        self._add, self._claim = (
            one.compiled if workers > 1 else one.function for one in (add, claim_one)
        )
        # Called by work between its pieces, in workers that have something to check
        self.between: Tick = lambda: None

    @staticmethod
    def arrays(workers: int) -> dict[str, tuple[int, Any]]:
        slots = (workers * SLOT, np.int64)
        one = (SLOT, np.int64)
        return {
            "stop": one,
            "snapshots": one,
            "claimed": one,
            "steps": slots,
            "at_work": slots,
            "tasks_taken": (TASKS, np.int64),
            "tasks_finished": (TASKS * SLOT, np.int64),
        }

    def stop(self) -> None:
        """Asks all workers to stop at their next look."""
        self._stop[0] = 1

    def clear(self) -> None:
        """Resets `stop` and all counters before the next command."""
        self._stop[0] = 0
        self._steps[:] = 0
        self._at_work[::SLOT] = 1
        self._taken[:] = 0
        self._finished[:] = 0

    @property
    def stopped(self) -> bool:
        return bool(self._stop[0])

    def goes_on(self) -> bool:
        """For work, between its pieces: False if it should stop where it is."""
        self.between()
        return not self._stop[0]

    def count(self, rank: int, steps: int) -> None:
        """Says how many steps a worker has done since the last `clear`."""
        self._steps[rank * SLOT] = steps

    def finish(self, rank: int) -> None:
        self._at_work[rank * SLOT] = 0

    def at_work(self) -> int:
        """How many workers have not called `finish`."""
        return int(self._at_work.sum())

    def snapshots(self) -> tuple[int, int]:
        """How many snapshots of this epoch were taken early, and late."""
        return int(self._snapshots[1]), int(self._snapshots[2])

    def forget_snapshots(self) -> None:
        """Resets the counts of snapshots, as an epoch begins."""
        self._snapshots[:] = 0

    @contextmanager
    def snapshot(self, number: int, late: bool) -> Iterator[bool]:
        """Whether the caller should take the snapshot: no other worker has taken or is taking it.

        Within the block, no other worker takes a snapshot.
        """
        if number <= self._snapshots[0] or self._claim(self._claimed, 0, 1, 0) < 0:
            yield False
            return
        mine = number > self._snapshots[0]
        if mine:
            self._snapshots[0] = number
        yield mine
        self._snapshots[1 + late] += mine
        self._claimed[0] = 0

    def add_snapshots(self, early: int, late: int) -> None:
        for which, count in enumerate((early, late), start=1):
            self._add(self._snapshots, which, count)

    @property
    def words(self) -> tuple[Any, Any, Any]:
        """For kernels: the steps of each worker, which of them are at work, and the stop."""
        return self._steps, self._at_work, self._stop

    def take(self, phase: int, tasks: int, rank: int) -> int:
        """The number of a task of a phase that nobody has taken, or -1 if all are taken.

        A worker takes tasks of its own share first, so that their data stays in its cache.
        """
        start = rank * tasks // self.workers
        return int(self._claim(self._taken, phase * tasks, tasks, start))

    def finish_task(self, phase: int) -> None:
        self._add(self._finished, phase * SLOT, 1)

    def all_finished(self, phase: int, tasks: int, looks: int) -> bool:
        """Whether all tasks of a phase are done; asks up to `looks` times, until they are."""
        return self.workers == 1 or bool(wait_for(self._finished, phase * SLOT, tasks, looks))

    def steps(self) -> int:
        """How many steps all workers have done since the last `clear`."""
        return int(self._steps.sum())


@dataclass
class Threads:
    """Threads of this process; kernels release the GIL. One worker uses the caller's thread."""

    work: Work
    control: Control

    def run(self, command: str, *arguments: Any, tick: Tick) -> list[Any]:
        answers: list[Any] = [None] * self.control.workers
        failures: list[BaseException] = []
        ticked = time.monotonic()

        def between() -> None:
            nonlocal ticked
            if time.monotonic() - ticked > TICK:
                ticked = time.monotonic()
                tick()

        def work(rank: int) -> None:
            try:
                answers[rank] = self.work(rank, command, arguments)
            except BaseException as failure:
                failures.append(failure)
                self.control.stop()

        if self.control.workers == 1:
            self.control.between = between
            return [self.work(0, command, arguments)]
        threads = [
            threading.Thread(target=work, args=(rank,), name=f"hogwild-{rank}")
            for rank in range(self.control.workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(TICK)
                    tick()
        except BaseException:
            self.control.stop()
            for thread in threads:
                thread.join()
            raise
        if failures:
            raise failures[0]
        return answers

    def close(self) -> None:
        pass
