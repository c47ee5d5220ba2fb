"""What one worker does: its share of an epoch, and of the evaluation.

The mathematics is the problem's, who may write where is the strategy's, when is the team's.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.parallel.memory import Arrays
from hogwild.parallel.strategies import STRATEGIES, Phase
from hogwild.parallel.team import Control
from hogwild.problems.problem import BlockProblem, Problem, RowProblem
from hogwild.problems.schedules import Clock
from hogwild.seeds import seed_of

LATE = 0.75  # of an epoch: what comes then is in both means of the weights

FEWEST = 16  # units in a piece: with fewer, the looks would take most of the time

SPINS = 2000  # looks at a phase's counter, some microseconds, before others get the core
NAP = 0.0001  # seconds


@dataclass(frozen=True)
class Part:
    """A part of an epoch, as all workers are told it; the whole, unless the schedule folds more."""

    epoch: int
    begin: float  # from this share of each worker's units
    end: float  # to this one
    done: int
    eta0: float


def share_of(units: int, workers: int, rank: int) -> tuple[int, int]:
    """Where a worker's share of the units begins and ends; sizes differ by at most one."""
    return units * rank // workers, units * (rank + 1) // workers


class Worker(ABC):
    """One worker. It is made in its own process, where it has one."""

    def __init__(self, problem: Problem, shared: Arrays, control: Control, rank: int) -> None:
        self._problem = problem
        self._shared = shared
        self._control = control
        self._rank = rank

    @abstractmethod
    def learn(self, part: Part) -> list[tuple[int, float]]:
        """Does this worker's share of a part of an epoch; the sums of losses met, by number."""

    def evaluate(self, data: str) -> npt.NDArray[np.float64]:
        """The sums over this worker's parts of a set of examples, a row for each part."""
        first, end = share_of(self._problem.parts(data), self._control.workers, self._rank)
        return np.array(
            [
                self._problem.evaluate(self._shared, data, part)
                for part in self._looking(range(first, end))
            ]
        )

    def stage(self, stage: str) -> None:
        """Does this worker's part of a stage of the preparation."""
        self._problem.stage(self._shared, stage, self._rank, self._control.workers)

    def _looking(self, parts: range) -> Iterator[int]:
        for part in parts:
            if not self._control.goes_on():
                return
            yield part


class RowWorker(Worker):
    """A worker that goes through its share of the rows in a random order."""

    _problem: RowProblem

    def __init__(
        self, problem: RowProblem, shared: Arrays, control: Control, strategy: str, rank: int
    ) -> None:
        super().__init__(problem, shared, control, rank)
        make = STRATEGIES[strategy].make
        assert make is not None  # as `Config` has seen to
        self._sharing = make(shared, rank, control.workers)
        self._first, end = share_of(problem.units, control.workers, rank)
        self._order = np.empty(end - self._first, np.uint32)

    def learn(self, part: Part) -> list[tuple[int, float]]:
        size = len(self._order)
        if part.begin == 0:
            seed = seed_of(self._problem.seed, part.epoch, self._rank)
            self._problem.shuffle(self._order, self._first, seed)
        total = 0.0
        place = first = int(size * part.begin)
        stop = int(size * part.end)
        while place < stop and self._control.goes_on():
            clock = self._clock(part)
            end = min(place + self._piece(clock), stop)
            total += self._problem.learn(self._sharing.weights, self._order, place, end, clock)
            self._control.count(self._rank, end - first)
            self._sharing.exchange()
            self._add_moment(part)
            place = end
        self._sharing.finish()
        self._control.finish(self._rank)
        return [(self._rank, total)]

    def _clock(self, part: Part) -> Clock:
        done = part.done + self._control.steps()
        return Clock(done, part.done, max(1, self._control.at_work()), part.eta0)

    def _piece(self, clock: Clock) -> int:
        """Units until the next look: so few that Ctrl-C is heard and all moments are had.

        Until then a worker takes it that the others keep pace, so with others the schedule must not
        go far meanwhile.
        """
        moments = max(1, self._problem.moments)
        piece = min(self._problem.chunk, -(-len(self._order) // moments))
        if clock.stride > 1:
            piece = min(piece, max(FEWEST, self._problem.pace(clock) // clock.stride))
        return max(1, piece)

    def _add_moment(self, part: Part) -> None:
        """Adds the weights to a mean where all workers together have come to another moment."""
        units, moments = self._problem.units, self._problem.moments
        steps = int(units * part.begin) + self._control.steps()
        late = steps > LATE * units
        with self._control.moment(steps * moments // units, late) as mine:
            if mine:
                first = self._control.moments()[late] == 0
                self._problem.add_moment(self._shared, late, first, self._clock(part))


class BlockWorker(Worker):
    """A worker that takes one task of a phase after another, until all of them are done.

    Who does which task is a matter of chance; what comes of it is not, where no two tasks of a
    phase touch the same rows.
    """

    _problem: BlockProblem

    def __init__(
        self, problem: BlockProblem, shared: Arrays, control: Control, strategy: str, rank: int
    ) -> None:
        super().__init__(problem, shared, control, rank)
        phases = STRATEGIES[strategy].phases
        assert phases is not None  # as `Config` has seen to
        self._phases = phases

    def learn(self, part: Part) -> list[tuple[int, float]]:
        phases = self._phases(self._problem.bands, self._problem.seed, part.epoch)
        losses = []
        done = 0
        for number, tasks in enumerate(phases):
            while self._control.goes_on() and (mine := self._take(number, tasks)) >= 0:
                units, loss = self._problem.learn(self._shared, tasks[mine], part.epoch, part.eta0)
                losses.append((number * len(tasks) + mine, loss))
                done += units
                self._control.count(self._rank, done)
                self._control.finish_task(number)
            if number + 1 < len(phases):
                self._wait_for_all(number, len(tasks))
        self._control.finish(self._rank)
        return losses

    def _take(self, number: int, tasks: Phase) -> int:
        return self._control.take(number, len(tasks), self._rank)

    def _wait_for_all(self, number: int, tasks: int) -> None:
        began = time.monotonic()
        while not self._control.all_finished(number, tasks, SPINS) and self._control.goes_on():
            # The core may be wanted by those that are waited for
            time.sleep(0.0 if time.monotonic() - began < NAP else NAP)


class Workers:
    """All workers of a run, as a team calls them: each is made when it is first called."""

    def __init__(self, problem: Problem, shared: Arrays, control: Control, strategy: str) -> None:
        self._ingredients = problem, shared, control, strategy
        self._made: dict[int, Worker] = {}

    def __call__(self, rank: int, command: str, arguments: tuple[Any, ...]) -> Any:
        if rank not in self._made:
            self._made[rank] = self._make(rank)
        return getattr(self._made[rank], command)(*arguments)

    def _make(self, rank: int) -> Worker:
        problem, shared, control, strategy = self._ingredients
        if isinstance(problem, BlockProblem):
            return BlockWorker(problem, shared, control, strategy, rank)
        assert isinstance(problem, RowProblem)
        return RowWorker(problem, shared, control, strategy, rank)
