"""Strategies: how the workers may touch the weights. What the weights mean they do not know.

A strategy is a kind of worker for problems of rows, one for problems of blocks, or both.
"""

from dataclasses import dataclass
from typing import Any

from hogwild.parallel.averaging_worker import AveragedWorker, MixedWorker
from hogwild.parallel.block_worker import RacingBlockWorker, StrataWorker
from hogwild.parallel.column_strata_worker import ColumnStrataWorker
from hogwild.parallel.combine_worker import CombineWorker
from hogwild.parallel.excluding_worker import LockedWorker, RoundRobinWorker
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.rounds_worker import MinibatchWorker, OrderedWorker
from hogwild.parallel.row_worker import RowWorker
from hogwild.parallel.team import Control
from hogwild.parallel.worker import Worker
from hogwild.problems.problem import BlockProblem, Problem

AUTO = "auto"


@dataclass(frozen=True)
class Strategy:
    """A strategy, in a line; its workers; whether their number does not matter for the outcome.

    Whether all workers write one array of weights, and whether they exclude each other from it.
    """

    summary: str
    rows: type[Worker] | None = None
    blocks: type[Worker] | None = None
    deterministic: bool = False
    one_array: bool = False
    exclusive: bool = False

    def workers(self, problem: Problem) -> type[Worker]:
        """The kind of worker for this problem."""
        kind = self.blocks if isinstance(problem, BlockProblem) else self.rows
        assert kind is not None  # as `Config` has seen to
        return kind


STRATEGIES: dict[str, Strategy] = {
    "hogwild": Strategy(
        "all workers write one array without locks", RowWorker, RacingBlockWorker, one_array=True
    ),
    "combine": Strategy(
        "workers learn on copies and exchange changes, those of hot columns most often; none is "
        "lost",
        CombineWorker,
    ),
    "ordered": Strategy(
        "as combine, but merged in order at fixed points; any number of workers, the same bytes",
        OrderedWorker,
        deterministic=True,
    ),
    "strata": Strategy(
        "workers hold blocks that share no row and no column; any number of them, the same bytes",
        ColumnStrataWorker,
        StrataWorker,
        deterministic=True,
    ),
    "locked": Strategy(
        "a lock for every column that an update touches",
        LockedWorker,
        one_array=True,
        exclusive=True,
    ),
    "roundrobin": Strategy(
        "workers write in turn", RoundRobinWorker, one_array=True, exclusive=True
    ),
    "averaged": Strategy("workers train alone; their weights are averaged", AveragedWorker),
    "mixed": Strategy("as averaged, but all go on from the mean after every epoch", MixedWorker),
    "minibatch": Strategy(
        "the gradient of a batch of rows, computed in parallel, makes one step",
        MinibatchWorker,
        deterministic=True,
    ),
}


class Workers:
    """All workers of a run, as a team calls them: each is made when it is first called."""

    def __init__(self, problem: Problem, shared: Arrays, control: Control, strategy: str) -> None:
        self._ingredients = problem, shared, control
        self._kind = STRATEGIES[strategy].workers(problem)
        self._made: dict[int, Worker] = {}

    @staticmethod
    def arrays(problem: Problem, strategy: str, workers: int) -> Wanted:
        """All arrays that so many of them share."""
        return problem.shared() | STRATEGIES[strategy].workers(problem).arrays(problem, workers)

    def __call__(self, rank: int, command: str, arguments: tuple[Any, ...]) -> Any:
        if rank not in self._made:
            self._made[rank] = self._kind(*self._ingredients, rank)
        return getattr(self._made[rank], command)(*arguments)
