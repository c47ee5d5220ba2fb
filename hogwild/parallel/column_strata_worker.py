"""Workers that hold parts of the rows which share no column: `strata`, where there are such."""

import numpy as np
import numpy.typing as npt

from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.rounds_worker import SHARDS
from hogwild.parallel.team import Control
from hogwild.parallel.worker import Part, Worker
from hogwild.problems.problem import Problem, RowProblem
from hogwild.problems.schedules import Clock
from hogwild.seeds import seed_of


class ColumnStrataWorker(Worker):
    """Takes one part after another; no two touch the same weight (Gemulla et al. 2011).

    The intercept, which all rows share, is averaged after every epoch. Who does which part is a
    matter of chance; what comes of it is not.
    """

    _problem: RowProblem

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._apart = problem.apart
        self._done = 0

    @classmethod
    def prepare(cls, problem: Problem) -> None:
        """Does what is better done once, before there are workers."""
        super().prepare(problem)
        assert isinstance(problem, RowProblem)
        problem.divide(SHARDS)

    @classmethod
    def arrays(cls, problem: Problem, workers: int) -> Wanted:
        """An intercept for each part."""
        return {"intercepts": (SHARDS, np.float64)}

    def _learn(self, part: Part) -> list[tuple[int, float]]:
        self._done = 0
        losses = [(mine, self._learn_one(part, mine)) for mine in self._tasks(0, SHARDS)]
        all_done = self._wait_for_all(0, SHARDS)
        if all_done and self._rank == 0 and not self._control.stopped:
            sizes = [len(rows) for rows in self._apart]
            self._shared["intercept"][0] = np.average(self._shared["intercepts"], weights=sizes)
        self._control.finish(self._rank)
        return losses

    def _learn_one(self, part: Part, mine: int) -> float:
        order = self._order(part.epoch, mine)
        place = first = int(len(order) * part.begin)
        stop = int(len(order) * part.end)
        intercept = self._shared["intercept"].copy()
        own = {"weights": self._shared["weights"], "intercept": intercept}
        total = 0.0
        while place < stop and self._control.goes_on():
            end = min(place + self._problem.chunk, stop)
            clock = Clock(part.done + SHARDS * (place - first), part.done, SHARDS, part.eta0)
            total += self._problem.learn(own, order, place, end, clock)
            self._done += end - place
            self._control.count(self._rank, self._done)
            place = end
        self._shared["intercepts"][mine] = intercept[0]
        return total

    def _order(self, epoch: int, mine: int) -> npt.NDArray[np.uint32]:
        rows = self._apart[mine]
        order = np.empty(len(rows), np.uint32)
        self._problem.shuffle(order, 0, seed_of(self._problem.seed, epoch, mine))
        return rows[order]
