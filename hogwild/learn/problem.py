"""What a problem is: what is learned, as the coordinator and the workers see it.

`learn/linear.py` is one, `learn/factors.py` another; each model family goes through the
same coordinator, workers and strategies. Two kinds differ in how workers go through an epoch: by
examples in a random order (`RowProblem`), or by blocks of them (`BlockProblem`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.statistics import Frequency
from hogwild.kernels.compile import Kernel, ready
from hogwild.kernels.views import Task
from hogwild.steps.step import Step

Arrays = dict[str, npt.NDArray[Any]]
Order = npt.NDArray[np.uint32]
Sums = dict[str, npt.NDArray[np.float64]]
BlockPair = tuple[int, int]  # a band of users, and one of items


SUMS = ("whole", "tail")  # of the weights of a row problem, over early and over late snapshots


class Share(NamedTuple):
    """A share of an epoch, the same for all workers: the whole, unless weights must be made whole
    in between."""

    epoch: int
    begin: float  # from this share of each worker's rows
    end: float  # to this one
    done: int  # steps of all workers before it
    eta0: float


class Now(NamedTuple):
    """Where training is: steps done, those done when this share of the epoch began, its rate."""

    done: int
    since: int
    eta0: float


class Shown(NamedTuple):
    """A number of the trace that people are shown after every epoch."""

    key: str
    title: str
    form: str  # "percent", or a format


class Problem(ABC):
    """What is learned. A problem that lacks something leaves its method as it is here."""

    name: str  # where the data comes from, for messages
    units: int  # examples to learn from
    work: int  # what throughput is counted by: non-zeros, or ratings
    work_name: str  # of what `work` counts
    unit_name: str  # of what `units` counts
    seed: int
    notes: list[str]  # what the user should be told before training
    shown: tuple[Shown, ...]
    snapshots = 0  # of the weights in an epoch, of which means are made; 0: none
    judge: str | None = None  # the number of the trace by which the best epoch is told, if any
    most_workers = 1024  # that can be at work at once
    ours_alone: tuple[str, ...] = ()  # attributes that the workers do without

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to workers that are at another problem yet."""
        return {name: it for name, it in self.__dict__.items() if name not in self.ours_alone}

    # What the coordinator asks

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The shape of the data, for the record."""

    @abstractmethod
    def summary(self) -> list[str]:
        """The data and the objective, a line each, for people."""

    def chosen(self) -> dict[str, Any]:
        """What was chosen for options that were left open, for the record."""
        return {}

    @property
    @abstractmethod
    def model_bytes(self) -> int:
        """About how large a model file will be."""

    @property
    def effort(self) -> float:
        """The work of an epoch, in what takes as long as a non-zero of a linear model."""
        return self.work

    def check_memory(self, shared: int, available: int) -> None:
        """Refuses to begin where arrays of so many bytes, and what is kept of them, do not fit."""

    @abstractmethod
    def shared(self) -> dict[str, tuple[int, Any]]:
        """The arrays that all workers share: length and type by name."""

    @abstractmethod
    def kernels(self) -> list[Kernel]:
        """All that training will call."""

    def prepare(self) -> None:
        """Does what is better done once than by each worker: compiling, to begin with."""
        ready(*self.kernels())

    @abstractmethod
    def set_start(self, shared: Arrays, start: Any, do: Callable[[str], None]) -> None:
        """Writes what to begin with. `do` has all workers do their parts of a stage of that."""

    def stage(self, shared: Arrays, stage: str, part: int, parts: int) -> None:
        """Does one of so many parts of a stage of the preparation."""

    @abstractmethod
    def find_rate(self, threads: int = 1) -> float:
        """A first rate; several threads may look for it side by side."""

    @abstractmethod
    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""

    @abstractmethod
    def factor(self, epoch: int) -> float:
        """What the first rate is multiplied by in an epoch (they count from 1)."""

    def scale(self, now: Now) -> float:
        """What weights that were stored whole are multiplied by now."""
        return 1.0

    def finish(
        self, shared: Arrays, now: Now, moments: tuple[int, int] | None, part: int, parts: int
    ) -> npt.NDArray[np.float64]:
        """Makes a share of the weights whole, and means of sums over early and late snapshots.

        What it returns is added up over the parts, for `choose`.
        """
        return np.zeros(0)

    def choose(
        self, shared: Arrays, found: npt.NDArray[np.float64], first: bool, threads: int
    ) -> None:
        """Chooses what to take: the weights, or a mean of them. So many threads may be used."""

    @abstractmethod
    def learned(self, shared: Arrays) -> Arrays:
        """What training came to: views of the shared arrays."""

    def goes_on_from(self, shared: Arrays) -> Arrays:
        """What training goes on from, where that is not what it came to: views."""
        return {}

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        """Goes back to what training came to, and went on from, after an epoch: copies of these."""
        for name, array in (last | learned).items():
            shared[name][:] = array

    @abstractmethod
    def state(self, shared: Arrays) -> Arrays:
        """What training can go on from: copies."""

    def taken(self, shared: Arrays) -> str:
        """Which weights `learned` gives, as a word for the trace."""
        return "last"

    @abstractmethod
    def sets(self) -> list[str]:
        """The sets of examples to evaluate on: train, and test or held_out where there are."""

    @abstractmethod
    def measured(self, shared: Arrays, sums: Sums) -> dict[str, float]:
        """The objective and other numbers by name, given each set's sums."""

    @abstractmethod
    def online(self, shared: Arrays, mean_loss: float) -> float:
        """About the objective, given the mean loss that was met on the way."""

    def went_wrong(self, objective: float, best: float) -> bool:
        """Whether an epoch is to be done again at a smaller rate, by the best objective so far."""
        return False

    def has_risen(self, objective: float, best: float) -> bool:
        """Whether an objective is above the best one so far, by more than may be chance."""
        return False

    def learned_nothing(self, objective: float) -> bool:
        """Whether nothing was learned of data that has more to say, as far as can be seen."""
        return False

    @property
    def advice(self) -> str:
        """What to do about data that no rate is right for."""
        return "Scale the values of the data down"

    @property
    def hint(self) -> str:
        """The advice, where something in the data calls for it; else nothing."""
        return ""

    @abstractmethod
    def model(self, learned: Arrays, about: dict[str, Any], state: Arrays | None = None) -> Any:
        """A model of what was learned; it keeps no view of the arrays.

        `state` is what the method of this name made of the same, if that is known.
        """

    # What the workers ask

    @abstractmethod
    def parts(self, data: str) -> int:
        """In how many parts a set of examples is evaluated: not a matter of the workers."""

    @abstractmethod
    def evaluate(self, shared: Arrays, data: str, part: int) -> npt.NDArray[np.float64]:
        """The sums over one part that `measured` needs."""

    @property
    def finishes_together(self) -> bool:
        """Whether `finish` is so much work that the workers share it."""
        return False

    def steady_steps(self, done: int, eta0: float) -> int:
        """Steps in which the schedule changes little."""
        return self.units


class RowProblem(Problem):
    """A problem whose workers go through examples one by one, in a random order.

    The numbers that steps add to are `shared["stored"]`: `width` for each column, those of the
    intercept last. `shared["row_state"]` has those that are kept for each row.
    """

    chunk: int  # units between two looks at the control
    columns: int  # beside which there is the intercept
    width: int  # numbers stored for a column
    intercept_share: float  # the intercept's rate over that of the weights; 0: there is none
    curvature: float  # how far a slope changes where the score changes by one, about
    groups = 1  # of weights, each of which can be learned without the others
    separate: list[npt.NDArray[np.uint32]]  # parts of the rows that share no column, once divided
    batch: int  # rows of a batch, for the strategy that has one

    @property
    @abstractmethod
    def step(self) -> Step:
        """The step that loops are compiled for."""

    @property
    def size(self) -> int:
        """How many numbers are stored, those of the intercept included."""
        return (self.columns + 1) * self.width

    @property
    @abstractmethod
    def frequency(self) -> Frequency:
        """The columns that some rows hold, the most frequent first."""

    @abstractmethod
    def sharing(self) -> tuple[bool, str]:
        """Whether several workers gain by writing to one array of weights, and why."""

    @abstractmethod
    def divide(self, parts: int) -> None:
        """Finds so many parts of the rows that share no column, or refuses to."""

    @abstractmethod
    def plan(self, share: Share) -> Any:
        """The numbers of a share of an epoch, as the step takes them."""

    @abstractmethod
    def task(
        self, order: Order, share: Share, writers: int = 1, groups: tuple[int, int] | None = None
    ) -> Task:
        """What a loop works on: the rows of an order, with scratch of its own.

        So many workers write to the weights; only some groups of them are learned, if so said.
        """

    @abstractmethod
    def shuffle(self, order: Order, first: int, seed: int) -> None:
        """Fills `order` with the units from `first` on, in a random order."""

    def add_snapshot(
        self,
        shared: Arrays,
        late: bool,
        first: bool,
        scale: float,
        groups: tuple[int, int] | None = None,
    ) -> None:
        """Adds the weights as they are, or some groups of them, to a sum; the first begins it."""


class BlockProblem(Problem):
    """A problem whose workers go through blocks: those of a task touch one band of each side."""

    bands: int

    @abstractmethod
    def learn(self, shared: Arrays, task: BlockPair, epoch: int, eta0: float) -> tuple[int, float]:
        """Learns from a task's units: how many they are, and the sum of the losses met."""
