"""The interface of a solver, which learns a linear model."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels.compile import Kernel
from hogwild.kernels.order import CHUNK, shuffle, shuffle_chunks
from hogwild.lasting import Lasting
from hogwild.learn.heads import Heads
from hogwild.learn.problem import Doubles, Now, Share
from hogwild.learn.sample import Sample
from hogwild.learn.sets import Set
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.steps.step import Step


class Outcome(Lasting, ABC):
    """The weights that an epoch results in, given what is stored."""

    snapshots = 0  # of what is stored, in an epoch
    over_run = False  # whether means are over all epochs
    kept: tuple[str, ...] = ("stored",)  # arrays that training goes on from
    copied = 0  # bytes of data that it copies
    chunk = int(CHUNK)  # rows that stay near each other in an order
    puts_aside = True  # whether rows that need no step may be left out of an order
    scratch = 0  # bytes that it needs for several scores of each row, besides what is shared

    @abstractmethod
    def shared(self) -> Wanted:
        """The arrays that all workers share."""

    @abstractmethod
    def kernels(self, alone: bool) -> list[Kernel]:
        """The kernels that will be called. With one worker `alone`, the loop adds snapshots."""

    @abstractmethod
    def finish(
        self, shared: Arrays, reading: Any, snapshots: tuple[int, int] | None, part: int, parts: int
    ) -> Doubles:
        """Computes a share of the weights; the results are added up over the parts for `choose`.

        `reading`: the result of the solver's method of this name.
        """

    def add(self, shared: Arrays, late: bool, first: bool, scale: float) -> None:
        """Adds what is stored, or the part of some heads, to a sum over snapshots."""

    def choose(self, shared: Arrays, found: Doubles, first: bool, sample: Sample) -> None:
        """Chooses which weights to take."""

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        """Goes back to an earlier result and to what training continued from: both are copies."""
        for name, array in (learned | last).items():
            if name in shared:
                shared[name][:] = array

    def lasting_arrays(self, shared: Arrays, is_open: bool) -> Iterable[str]:
        """The names of the shared arrays that the next epoch needs as they are."""
        return {"stored", "row_state", *self.shared()}

    @property
    def numbers(self) -> tuple[float, ...]:
        """What the plan of the next share needs."""
        return ()

    def suits(self, start: Arrays) -> Arrays:
        """The part of an earlier training's result that this training can continue from."""
        return start

    def begin(self, shared: Arrays, start: Arrays, at_zero: float) -> None:
        """Prepares the shared arrays, which hold what training continues from, if anything.

        `at_zero` is the objective at zero weights.
        """

    def shuffle(
        self, order: npt.NDArray[np.uint32], first: int, seed: int, state: npt.NDArray[np.float32]
    ) -> None:
        """Fills an order with the rows from `first` on."""
        if self.chunk == CHUNK:
            shuffle(order, first, np.uint64(seed))
        else:
            shuffle_chunks(order, first, np.uint64(seed), self.chunk)

    @abstractmethod
    def name(self, shared: Arrays) -> str:
        """The name of the array of the weights that are taken."""

    def word(self, shared: Arrays) -> str:
        """Which weights are taken, as a word for the trace."""
        return "last"


class Solver(ABC):
    """A way of learning: a step, its numbers for each epoch, and the resulting weights.

    It knows the training rows as kernels take them, and the intercept's rate over that of the
    weights; 0: no intercept.
    """

    effort = 1.0  # its time for a non-zero, over that of plain gradient descent

    def __init__(self, config: Config, heads: Heads, data: Set, intercept_share: float) -> None:
        self._config = config
        self._heads = heads
        self._data = data
        self.intercept_share = intercept_share

    @property
    @abstractmethod
    def step(self) -> Step:
        """The step that loops are compiled for."""

    @abstractmethod
    def outcome(self, columns: int, nonzeros: float) -> Outcome:
        """How stored numbers become weights, for `columns` columns and an intercept."""

    @abstractmethod
    def plan(self, since: float, eta0: float, *numbers: float) -> Any:
        """The numbers of a share of an epoch; `numbers` are those of the outcome."""

    def plan_of(self, share: Share) -> Any:
        """The same for a share."""
        return self.plan(share.done, share.eta0, *share.numbers)

    @abstractmethod
    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""

    def scale(self, now: Now) -> float:
        """The factor between stored weights and weights, now."""
        return 1.0

    def reading(self, now: Now) -> Any:
        """What `Outcome.finish` needs to compute weights now."""
        return self.scale(now)

    def start(self, stored: npt.NDArray[np.float32]) -> None:
        """Prepares stored numbers, which are zero or from an earlier training."""

    def ahead(self, eta0: float, copies: int) -> tuple[float, float]:
        """How much farther weights move on one of several copies than when they are merged.

        The second number is for the intercept.
        """
        return 1.0, 1.0

    def factor(self, epoch: int) -> float:
        """The factor of the first rate in an epoch (counted from 1)."""
        return 1.0

    @abstractmethod
    def steady_steps(self, done: int, eta0: float) -> int:
        """The number of steps in which the rate changes little."""

    def kernels(self) -> list[Kernel]:
        """The kernels that the search for a rate will call."""
        return []

    @abstractmethod
    def find_rate(self, sample: Sample) -> float:
        """A first rate, found on a few rows."""

    def tried(self, sample: Sample) -> float:
        """The objective on some rows after training at that rate; infinity if unknown."""
        return math.inf
