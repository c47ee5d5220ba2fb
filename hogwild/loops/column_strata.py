"""`strata` for rows: workers take parts of the rows that share no column, if the data has any."""

import numpy as np

from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import Clock, Span, Stored, view
from hogwild.learn.problem import RowProblem, Share
from hogwild.loops.rounds import SHARDS
from hogwild.loops.shared import parts_loop
from hogwild.loops.worker import Worker
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.team import Control
from hogwild.seeds import seed_of


class ColumnStrataWorker(Worker):
    """Takes one part after another; no two touch the same weight (Gemulla et al. 2011).

    The intercept, which all rows share, is averaged after every epoch. Which worker does a part is
    random; the result is not.
    """

    _problem: RowProblem

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._separate = problem.separate
        self._done = 0

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        return [parts_loop(problem.step)]

    @classmethod
    def prepare(cls, problem: RowProblem) -> None:
        super().prepare(problem)
        problem.divide(SHARDS)

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """An intercept for each part."""
        return {"intercepts": (SHARDS * problem.width, np.float32)}

    def _learn(self, share: Share) -> list[tuple[int, float]]:
        self._done = 0
        losses = [(mine, self._learn_one(share, mine)) for mine in self._tasks(0, SHARDS)]
        all_done = self._wait_for_all(0, SHARDS)
        if all_done and self._rank == 0 and not self._control.stopped:
            sizes = [len(rows) for rows in self._separate]
            intercepts = self._shared["intercepts"].reshape(SHARDS, -1)
            mean = np.average(intercepts.astype(np.float64), axis=0, weights=sizes)
            self._shared["stored"][-self._problem.width :] = mean
        self._control.finish(self._rank)
        return losses

    def _learn_one(self, share: Share, mine: int) -> float:
        problem = self._problem
        rows = self._separate[mine]
        order = np.empty(len(rows), np.uint32)
        seed = seed_of(problem.seed, share.epoch, mine)
        problem.shuffle(order, 0, seed, self._shared["row_state"])
        place = first = int(len(order) * share.begin)
        stop = int(len(order) * share.end)
        weights = self._shared["stored"]
        intercept = self._shared["intercepts"].reshape(SHARDS, -1)[mine]
        intercept[:] = weights[-problem.width :]
        # Not stored with the weights: other parts would write to it, too
        stored = view(Stored, weights, weights, intercept, intercept, self._shared["row_state"])
        task = problem.task(rows[order], share)
        total = 0.0
        while place < stop and self._goes_on(total):
            end = min(place + problem.chunk, stop)
            clock = view(Clock, share.done + SHARDS * (place - first), SHARDS)
            total += parts_loop(problem.step)(task, view(Span, place, end), stored, clock)
            self._done += end - place
            self._control.count(self._rank, self._done)
            place = end
        return total
