"""What one worker does: its share of an epoch, and of the evaluation.

The problem says what is computed, and the team says when. Each strategy has its own kind of worker;
the kinds differ in who writes which weights.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels.atomic import LOOKS
from hogwild.kernels.compile import Kernel
from hogwild.learn.problem import Now, Problem, Share
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.team import Control
from hogwild.threads import share_of

NAP = 0.0001  # seconds
PATIENCE = 10.0  # seconds to wait for others that were asked to stop: a dead one never answers


class Learned(NamedTuple):
    """What a worker answers.

    The sums of the online losses, by number. The total seconds, and those of merging and waiting.
    Whether one worker did all the work, since several would have overshot.
    """

    losses: list[tuple[int, float]]
    seconds: float
    merging: float = 0.0
    waiting: float = 0.0
    alone: bool = False


class Worker(ABC):
    """One worker. It is made in its own process, where it has one."""

    def __init__(self, problem: Problem, shared: Arrays, control: Control, rank: int) -> None:
        self._problem = problem
        self._shared = shared
        self._control = control
        self._rank = rank
        self._waited = 0.0
        self._merged = 0.0
        self._alone = False

    unzeroed: tuple[str, ...] = ()  # shared arrays that it writes before it reads
    lasting: tuple[str, ...] = ()  # shared arrays that the next epoch needs as they are
    uses_frequency = False  # whether it treats columns by how frequent they are

    @classmethod
    def kernels(cls, problem: Any) -> list[Kernel]:
        """What workers of this kind call besides the problem's own kernels."""
        return []

    @classmethod
    def prepare(cls, problem: Any) -> None:
        """Prepares what is needed once, before there are workers."""
        if cls.uses_frequency:
            problem.frequency  # noqa: B018

    @classmethod
    def arrays(cls, problem: Any, workers: int) -> Wanted:
        """What workers of this kind share besides the problem's own arrays."""
        return {}

    @classmethod
    def own_memory(cls, problem: Any, workers: int) -> int:
        """The approximate bytes that workers of this kind take besides the shared arrays."""
        return 0

    @abstractmethod
    def _learn(self, share: Share) -> list[tuple[int, float]]:
        """Does this worker's share of a part of an epoch; sums of the online losses, by number."""

    def learn(self, share: Share) -> Learned:
        """Does this worker's share of a part of an epoch."""
        began = time.monotonic()
        self._waited = self._merged = 0.0
        losses = self._learn(share)
        seconds = time.monotonic() - began
        return Learned(losses, seconds, self._merged, self._waited, self._alone)

    def _goes_on(self, losses: float) -> bool:
        """Whether to go on, given the sum of losses so far. If it overflowed, all workers stop."""
        if not math.isfinite(losses):
            self._control.stop()
        return self._control.goes_on()

    def evaluate(self, data: str) -> npt.NDArray[np.float64]:
        """The sums over this worker's parts of a set of examples, a row for each part."""
        first, end = share_of(self._problem.parts(data), self._control.workers, self._rank)
        parts = takewhile(lambda _: self._control.goes_on(), range(first, end))
        return np.array([self._problem.evaluate(self._shared, data, part) for part in parts])

    def finish(
        self, now: Now, snapshots: tuple[int, int] | None, parts: int
    ) -> list[npt.NDArray[np.float64]]:
        """Unscales some parts of the weights; returns the result of each part, in their order."""
        mine = range(*share_of(parts, self._control.workers, self._rank))
        return [self._problem.finish(self._shared, now, snapshots, k, parts) for k in mine]

    def stage(self, stage: str) -> None:
        """Does this worker's part of a stage of the preparation."""
        self._problem.stage(self._shared, stage, self._rank, self._control.workers)

    def _wait_for_all(self, phase: int, tasks: int) -> bool:
        """Waits until all tasks of a phase are done; False if it was asked to stop before that."""
        began = time.monotonic()
        while not (done := self._control.all_finished(phase, tasks, LOOKS)):
            if not self._control.goes_on():
                break
            time.sleep(NAP)  # the workers that this one waits for may need the core
        self._waited += time.monotonic() - began
        return done

    def _wait_though_stopped(self, phase: int, tasks: int) -> bool:
        """Waits for all tasks of a phase, though asked to stop; False if someone seems dead."""
        deadline = time.monotonic() + PATIENCE
        while not self._control.all_finished(phase, tasks, LOOKS):
            self._control.between()
            if time.monotonic() > deadline:
                return False
            time.sleep(NAP)
        return True

    def _tasks(self, phase: int, tasks: int) -> Iterator[int]:
        """Tasks of a phase that are this worker's to do, until all are taken or it should stop."""
        while (
            self._control.goes_on() and (mine := self._control.take(phase, tasks, self._rank)) >= 0
        ):
            yield mine
            self._control.finish_task(phase)

    def _wait_for_everyone(self, phase: int) -> bool:
        """Waits until every worker has come to a phase; False if it was asked to stop before."""
        self._control.finish_task(phase)
        return self._wait_for_all(phase, self._control.workers)
