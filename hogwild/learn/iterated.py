"""Solvers whose epochs are iterations on all of the data, with the strategy `passes`."""

from abc import abstractmethod
from typing import Any

import numpy as np

from hogwild.kernels.views import NO_FETCHING
from hogwild.learn.problem import Doubles, Followed, Passed
from hogwild.learn.proof import Proof
from hogwild.learn.sample import Sample
from hogwild.learn.solver import Solver
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.steps.step import Step


class IteratedSolver(Solver):
    """A solver without a step: its outcome does all the work."""

    @property
    def step(self) -> Step:
        """That of gradient descent, for the shape of what is stored: no row is visited alone."""
        return self._heads.step("constant", self._data.weighted)

    def plan(self, since: float, eta0: float, *numbers: float) -> Any:
        raise NotImplementedError  # no row is visited alone

    def rate(self, done: int, eta0: float) -> float:
        return 1.0

    def steady_steps(self, done: int, eta0: float) -> int:
        return len(self._data)

    def find_rate(self, sample: Sample) -> float:
        return 1.0


class Iterated(Proof):
    """Weights that an iteration makes better.

    Attributes:
        fetching: how far ahead rows are fetched, where they are visited one by one.
    """

    fetching = NO_FETCHING

    @abstractmethod
    def iterate(self, shared: Arrays, passed: Passed) -> float:
        """Makes a step, if there is one; the mean loss before it.

        Call `passed` with the number of passes since its last call. It returns whether to continue.
        """

    def shared(self) -> Wanted:
        return {}

    def finish(
        self, shared: Arrays, reading: Any, snapshots: tuple[int, int] | None, part: int, parts: int
    ) -> Doubles:
        """Nothing: what is stored are the weights."""
        return np.zeros(0)

    def name(self, shared: Arrays) -> str:
        return "stored"

    def follow(self, shared: Arrays, excess: float, steps: int, alone: bool) -> Followed:
        return Followed(True, False)
