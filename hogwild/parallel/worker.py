"""A worker: its share of the units, and the loops over it. One source for one worker and for many.

What is learned is the problem's affair, how the weights are shared the strategy's, and who runs
all this the team's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.parallel.memory import Arrays
from hogwild.parallel.strategies import STRATEGIES
from hogwild.parallel.team import Control
from hogwild.problems.problem import Problem
from hogwild.problems.schedules import Clock

LATE = 0.75  # of an epoch: what comes then is in both means of the weights

FEWEST = 16  # units in a piece: with fewer, the looks would take most of the time


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


def seed_of(seed: int, epoch: int, rank: int) -> int:
    """The seed of a worker's order in an epoch: a function of these three and of nothing else."""
    word = np.random.SeedSequence((seed, epoch, rank)).generate_state(1, np.uint64)[0]
    return int(word)


class Worker:
    """One worker. It is made in its own process, where it has one."""

    def __init__(
        self, problem: Problem, shared: Arrays, control: Control, strategy: str, rank: int
    ):
        self._problem = problem
        self._shared = shared
        self._control = control
        self._rank = rank
        self._sharing = STRATEGIES[strategy].make(shared, rank, control.workers)
        self._first, end = share_of(problem.units, control.workers, rank)
        self._order = np.empty(end - self._first, np.uint32)

    def learn(self, part: Part) -> float:
        """Does this worker's share of a part of an epoch; the sum of the losses it met."""
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
        return total

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

    def evaluate(self, data: str) -> npt.NDArray[Any]:
        """This worker's share of the sums that the objective and the errors are made of."""
        first, end = share_of(self._problem.size(data), self._control.workers, self._rank)
        parts = [
            self._problem.evaluate(self._shared, data, place, min(place + self._problem.chunk, end))
            for place in self._looking(range(first, end, self._problem.chunk))
        ]
        return np.sum(parts, axis=0) if parts else np.zeros(2)

    def _looking(self, places: range) -> Iterator[int]:
        for place in places:
            if not self._control.goes_on():
                return
            yield place


class Workers:
    """All workers of a run, as a team calls them: each is made when it is first called."""

    def __init__(self, problem: Problem, shared: Arrays, control: Control, strategy: str) -> None:
        self._ingredients = problem, shared, control, strategy
        self._made: dict[int, Worker] = {}

    def __call__(self, rank: int, command: str, arguments: tuple[Any, ...]) -> Any:
        if rank not in self._made:
            self._made[rank] = Worker(*self._ingredients, rank)
        return getattr(self._made[rank], command)(*arguments)
