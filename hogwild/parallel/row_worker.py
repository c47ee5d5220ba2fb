"""Workers that go through rows in a random order, some at a time: `hogwild`, and what is like it.

Between the pieces they look at the clock, at the others and at the control.
"""

import numpy as np

from hogwild.parallel.memory import Arrays
from hogwild.parallel.team import Control
from hogwild.parallel.worker import Part, Worker
from hogwild.problems.problem import RowProblem
from hogwild.problems.schedules import Clock
from hogwild.seeds import seed_of
from hogwild.threads import share_of

LATE = 0.75  # of an epoch: what comes then is in both means of the weights

FEWEST = 16  # units in a piece: with fewer, the looks would take most of the time


class RowWorker(Worker):
    """All workers write the shared weights themselves, without locks (Niu et al. 2011)."""

    _problem: RowProblem

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._first, end = self._share()
        self._order = np.empty(end - self._first, np.uint32)

    def _share(self) -> tuple[int, int]:
        """Its rows: the first, and the one after the last."""
        return share_of(self._problem.units, self._control.workers, self._rank)

    def _learn(self, part: Part) -> list[tuple[int, float]]:
        size = len(self._order)
        if part.begin == 0:
            seed = seed_of(self._problem.seed, part.epoch, self._rank)
            self._problem.shuffle(self._order, self._first, seed)
        begin, stop = int(size * part.begin), int(size * part.end)
        total = self._go_through(part, begin, stop)
        self._control.finish(self._rank)
        return [(self._rank, total)]

    def _go_through(self, part: Part, begin: int, stop: int) -> float:
        """Visits the rows at these places of the order; the sum of the losses met."""
        total = 0.0
        place = begin
        while place < stop and self._control.goes_on():
            clock = self._clock(part)
            end = min(place + self._piece(clock), stop)
            total += self._visit(place, end, clock)
            self._control.count(self._rank, end - begin)
            self._add_moment(part)
            place = end
        return total

    def _visit(self, begin: int, end: int, clock: Clock) -> float:
        weights = self._shared  # raced for: an update may get lost
        return self._problem.learn(weights, self._order, begin, end, clock)

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


class LoneWorker(RowWorker):
    """Goes through all rows, while the others have nothing to do."""

    def _share(self) -> tuple[int, int]:
        return 0, self._problem.units

    def _clock(self, part: Part) -> Clock:
        return Clock(part.done + self._control.steps(), part.done, 1, part.eta0)
