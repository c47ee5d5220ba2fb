"""Strategies: how several workers write weights.

A strategy is a kind of worker for problems of rows, one for problems of blocks, or both.
"""

from dataclasses import dataclass
from typing import Any

from hogwild.learn.problem import BlockProblem, Problem, RowProblem
from hogwild.loops.averaging import AveragedWorker, MixedWorker
from hogwild.loops.blocks import RacingBlockWorker, StrataWorker
from hogwild.loops.column_strata import ColumnStrataWorker
from hogwild.loops.combine import CombineWorker
from hogwild.loops.excluding import LockedWorker, RoundRobinWorker
from hogwild.loops.heads import HeadsWorker
from hogwild.loops.passes import PassesWorker
from hogwild.loops.rounds import (
    MinibatchWorker,
    OrderedExactWorker,
    OrderedWorker,
    TogetherWorker,
)
from hogwild.loops.shared import RowWorker
from hogwild.loops.worker import Worker
from hogwild.parallel.memory import Arrays
from hogwild.parallel.team import Control

AUTO = "auto"
PASSES = "passes"


@dataclass(frozen=True)
class Strategy:
    """A strategy.

    Attributes:
        summary: what it does, in a line.
        rows, blocks: its workers for either kind of problem, if any.
        deterministic: the result does not depend on the number of workers.
        one_array: all workers write one array of weights.
        exclusive: workers exclude each other.
        averages: the weights of workers are averaged.
        threads: its workers are threads that one worker uses.
        exact: its workers for steps that are exact, if they differ from `rows`.
    """

    summary: str
    rows: type[Worker] | None = None
    blocks: type[Worker] | None = None
    deterministic: bool = False
    one_array: bool = False
    exclusive: bool = False
    averages: bool = False
    threads: bool = False
    exact: type[Worker] | None = None

    @property
    def loses(self) -> bool:
        """Whether an addition may be lost where two workers add at the same time."""
        return self.one_array and not self.exclusive

    def workers(self, problem: Problem) -> type[Worker]:
        """The kind of worker for this problem."""
        kind = self.blocks if isinstance(problem, BlockProblem) else self.rows
        if isinstance(problem, RowProblem) and problem.step.exact:
            kind = self.exact or kind
        assert kind is not None  # as `Config` has seen to
        return kind


STRATEGIES: dict[str, Strategy] = {
    "hogwild": Strategy(
        "all workers write one array without locks", RowWorker, RacingBlockWorker, one_array=True
    ),
    "combine": Strategy(
        "each worker trains a private copy; updates are merged, frequent columns more often; no "
        "update is lost",
        CombineWorker,
        exact=TogetherWorker,
    ),
    "ordered": Strategy(
        "as combine, but merged in order at fixed points: the same bytes for any number of workers",
        OrderedWorker,
        deterministic=True,
        exact=OrderedExactWorker,
    ),
    "heads": Strategy(
        "each worker learns some of the classes, from all rows: the same bytes for any number of "
        "workers",
        HeadsWorker,
        deterministic=True,
    ),
    "strata": Strategy(
        "workers hold blocks that share no row and no column: the same bytes for any number of "
        "workers",
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
    "averaged": Strategy(
        "workers train alone; their weights are averaged", AveragedWorker, averages=True
    ),
    "mixed": Strategy(
        "as averaged, but all go on from the mean after every epoch", MixedWorker, averages=True
    ),
    "minibatch": Strategy(
        "the gradient of a batch of rows, computed in parallel, makes one step",
        MinibatchWorker,
        deterministic=True,
    ),
}

# `passes` cannot be chosen: the solvers that need it have no other strategy
ALL_STRATEGIES = STRATEGIES | {
    PASSES: Strategy(
        "whole passes over the rows, in shards: the same bytes for any number of workers",
        PassesWorker,
        deterministic=True,
        threads=True,
    )
}


class Workers:
    """All workers of a run, as a team calls them: each is made when it is first called."""

    def __init__(self, problem: Problem, strategy: str, shared: Arrays, control: Control) -> None:
        self._ingredients = problem, shared, control
        self._kind = ALL_STRATEGIES[strategy].workers(problem)
        self._made: dict[int, Worker] = {}

    def __call__(self, rank: int, command: str, arguments: tuple[Any, ...]) -> Any:
        if rank not in self._made:
            self._made[rank] = self._kind(*self._ingredients, rank)
        return getattr(self._made[rank], command)(*arguments)
