"""What a solver is: how a linear model is learned. A new one is a class here, and a table entry."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import Shape
from hogwild.learn.heads import Heads
from hogwild.learn.problem import Now
from hogwild.learn.sample import Sample
from hogwild.learn.sets import Set
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.steps.step import Step


class Traits(NamedTuple):
    """What a solver must know of the data.

    Attributes:
        heads: how many scores a row has.
        data: the training rows.
        parameter: of the loss.
        intercept_share: the intercept's rate over that of the weights; 0: there is none.
    """

    heads: Heads
    data: Set
    parameter: float
    intercept_share: float


class Outcome(ABC):
    """Which weights an epoch came to, given what is stored."""

    snapshots = 0  # of what is stored, in an epoch
    over_run = False  # whether means are over all epochs
    kept: tuple[str, ...] = ("stored",)  # arrays that training goes on from

    @abstractmethod
    def shared(self) -> Wanted:
        """The arrays that all workers share."""

    @abstractmethod
    def kernels(self) -> list[Kernel]:
        """All that will be called."""

    @abstractmethod
    def finish(
        self, shared: Arrays, reading: Any, moments: tuple[int, int] | None, part: int, parts: int
    ) -> npt.NDArray[np.float64]:
        """Makes a share of the weights; what it returns is added up over the parts for `choose`.

        `reading` is what the solver's method of this name gives.
        """

    def add(
        self, shared: Arrays, late: bool, first: bool, scale: float, some: Shape | None = None
    ) -> None:
        """Adds what is stored, or of some heads, to a sum over snapshots."""

    def choose(
        self,
        shared: Arrays,
        found: npt.NDArray[np.float64],
        first: bool,
        sample: Sample,
        threads: int,
    ) -> None:
        """Chooses which weights to take."""

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        """Goes back to what training came to, and went on from: copies of these."""
        for name, array in (last | learned).items():
            shared[name][:] = array

    @abstractmethod
    def name(self, shared: Arrays) -> str:
        """The name of the array of the weights that are taken."""

    def word(self, shared: Arrays) -> str:
        """Which weights are taken, as a word for the trace."""
        return "last"


class Solver(ABC):
    """A way of learning: a step, its numbers for each epoch, and what the epoch came to."""

    effort = 1.0  # how long it takes for a non-zero, over plain gradient descent

    def __init__(self, config: Config, traits: Traits) -> None:
        self._config = config
        self._traits = traits

    @property
    @abstractmethod
    def step(self) -> Step:
        """The step that loops are compiled for."""

    @abstractmethod
    def outcome(self, columns: int, nonzeros: float) -> Outcome:
        """What becomes of the stored numbers of so many columns and an intercept."""

    @abstractmethod
    def plan(self, since: float, eta0: float) -> Any:
        """The numbers of a share of an epoch."""

    @abstractmethod
    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""

    def scale(self, now: Now) -> float:
        """What weights that were stored whole are multiplied by now."""
        return 1.0

    def reading(self, now: Now) -> Any:
        """What makes weights of stored numbers now."""
        return self.scale(now)

    def start(self, stored: npt.NDArray[np.float32]) -> None:
        """Makes stored numbers, which are zero or of an earlier training, ready for the rows."""

    def factor(self, epoch: int) -> float:
        """What the first rate is multiplied by in an epoch (they count from 1)."""
        return 1.0

    @abstractmethod
    def steady_steps(self, done: int, eta0: float) -> int:
        """Steps in which the schedule changes little."""

    def kernels(self) -> list[Kernel]:
        """All that the search for a rate will call."""
        return []

    @abstractmethod
    def find_rate(self, sample: Sample, threads: int) -> float:
        """A first rate, found on a few rows."""
