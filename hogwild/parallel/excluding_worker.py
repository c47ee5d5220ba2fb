"""Workers whose updates exclude each other: `locked` and `roundrobin`."""

from abc import abstractmethod
from typing import Any

import numpy as np

from hogwild.kernels import locks as kernels
from hogwild.kernels.compile import Kernel
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.row_worker import RowWorker
from hogwild.parallel.team import Control
from hogwild.parallel.worker import Part
from hogwild.problems.problem import Problem, RowProblem
from hogwild.problems.schedules import Clock


class ExcludingWorker(RowWorker):
    """A worker that may have to wait for others in the middle of its work."""

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._waiting = np.zeros(1, np.int64)  # nanoseconds

    def _go_through(self, part: Part, begin: int, stop: int) -> float:
        self._waiting[0] = 0
        total = super()._go_through(part, begin, stop)
        self._leave()
        self._waited += 1e-9 * int(self._waiting[0])
        return total

    def _leave(self) -> None:
        """Called when it has nothing left to do."""

    @property
    @abstractmethod
    def _means(self) -> tuple[Kernel, tuple[Any, ...]]:
        """The kernel, and what it takes besides rows, weights and the clock."""

    def _visit(self, begin: int, end: int, clock: Clock) -> float:
        kernel, more = self._means
        rows, how = self._problem.visiting(clock.eta0)
        weights = self._shared["weights"], self._shared["intercept"]
        times = float(clock.done), float(clock.since), float(clock.stride)
        return float(
            kernel(rows, self._order, (begin, end), *weights, how, times, *more, self._waiting)
        )


class LockedWorker(ExcludingWorker):
    """Holds a lock for each column of a row while it learns from it (AIG: Niu et al. 2011)."""

    @classmethod
    def kernels(cls) -> list[Kernel]:
        """What it calls besides the problem's own kernels."""
        return [kernels.learn_locked]

    @classmethod
    def arrays(cls, problem: Problem, workers: int) -> Wanted:
        """A lock for each column, and one for the intercept."""
        assert isinstance(problem, RowProblem)
        return {"locks": (problem.columns + 1, np.int64)}

    @property
    def _means(self) -> tuple[Kernel, tuple[Any, ...]]:
        stop = self._control.words[2]
        return kernels.learn_locked, (self._shared["locks"], self._rank + 1, stop)


class RoundRobinWorker(ExcludingWorker):
    """Writes its updates when it is its turn (RR: Langford, Smola, Zinkevich 2009)."""

    @classmethod
    def kernels(cls) -> list[Kernel]:
        """What it calls besides the problem's own kernels."""
        return [kernels.learn_in_turn, kernels.leave_turn]

    @classmethod
    def arrays(cls, problem: Problem, workers: int) -> Wanted:
        """Whose turn it is."""
        return {"turn": (8, np.int64)}

    @property
    def _means(self) -> tuple[Kernel, tuple[Any, ...]]:
        return kernels.learn_in_turn, (
            self._shared["turn"],
            self._rank,
            self._control.words[1:],
        )

    def _leave(self) -> None:
        kernels.leave_turn(*self._means[1], self._waiting)
