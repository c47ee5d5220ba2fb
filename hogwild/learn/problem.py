"""The interface of a problem, for the coordinator and the workers.

`learn/linear.py` and `learn/factors.py` are problems: all model families use the same coordinator,
workers and strategies. In an epoch, workers visit single examples in a random order (`RowProblem`)
or blocks of examples (`BlockProblem`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.computed import cached_property
from hogwild.data.components import parts_apart
from hogwild.data.mapped_rows import MappedRows
from hogwild.data.rows import Rows
from hogwild.data.statistics import Frequency, frequency, sharing
from hogwild.kernels.compile import Kernel, ready
from hogwild.kernels.order import shuffle
from hogwild.kernels.views import Task
from hogwild.lasting import Lasting
from hogwild.steps.step import Step
from hogwild.threads import share_of

if TYPE_CHECKING:
    from hogwild.config import Config

Arrays = dict[str, npt.NDArray[Any]]
Order = npt.NDArray[np.uint32]
Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Sums = dict[str, Doubles]
# (passes since it was called last: 1) -> whether to go on
Passed = Callable[..., bool]
BlockPair = tuple[int, int]  # a band of users, and one of items


SUMS = ("whole", "tail")  # of the weights of a row problem, over early and over late snapshots


class Share(NamedTuple):
    """A share of an epoch, the same for all workers; often the whole epoch."""

    epoch: int
    begin: float  # from this share of each worker's rows
    end: float  # to this one
    done: int  # steps of all workers before it
    eta0: float
    numbers: tuple[float, ...] = ()  # what else the plan of the step needs


class Now(NamedTuple):
    """The state of training: steps so far, steps before this share of the epoch, its rate."""

    done: int
    since: int
    eta0: float


class Followed(NamedTuple):
    """The result of an epoch of a solver with a proof.

    Whether to measure how good the weights are, and whether the epoch undid earlier ones.
    """

    due: bool
    fell: bool


class Proved(NamedTuple):
    """The gap, as a share of the optimum; a reason to stop, if any; a lower bound."""

    gap: float
    reason: str | None
    bound: float


class Shown(NamedTuple):
    """A number of the trace that is printed after every epoch."""

    key: str
    title: str
    form: str  # "percent", or a format


class Problem(Lasting, ABC):
    """What is learned, from which data. Methods that are not abstract have usable defaults."""

    config: "Config"  # as given; what the data decides is chosen
    name: str  # where the data comes from, for messages
    units: int  # examples in the training data
    work: int  # non-zeros or ratings in the training data, for the throughput
    work_name: str  # what `work` counts
    unit_name: str  # what `units` counts
    seed: int
    notes: list[str]  # messages for the user before training
    shown: tuple[Shown, ...]
    snapshots = 0  # of the weights in an epoch, to be averaged; 0: none
    averages_run = False  # whether what is taken is a mean over all epochs
    judge: str | None = None  # the number of the trace that decides which epoch is best, if any
    most_workers = 1024  # at the same time
    threads = 1  # of this process, that may be used where workers are idle
    ours_alone: tuple[str, ...] = ()  # attributes that workers do not need

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to workers that were started for another problem."""
        return {name: it for name, it in self.__dict__.items() if name not in self.ours_alone}

    # What the coordinator asks

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The shape of the data, for the record."""

    @abstractmethod
    def summary(self) -> list[str]:
        """The data and the objective, a line each."""

    def chosen(self) -> dict[str, Any]:
        """The values chosen for options that were left open, for the record."""
        return {}

    @property
    @abstractmethod
    def model_bytes(self) -> int:
        """About how large a model file will be."""

    @property
    def effort(self) -> float:
        """The work of an epoch; the unit is the time of a non-zero of a linear model."""
        return self.work

    def check_memory(self, shared: int, own: int, available: int) -> None:
        """Raises an error where memory does not suffice.

        `shared` bytes of arrays, of which copies are kept, and `own` bytes of the workers.
        """

    @abstractmethod
    def shared(self) -> dict[str, tuple[int, Any]]:
        """The arrays that all workers share: name -> (length, type)."""

    @abstractmethod
    def kernels(self) -> list[Kernel]:
        """The kernels that training will call."""

    def prepare(self) -> None:
        """Does what need not be done by each worker, such as compiling."""
        ready(*self.kernels())

    @abstractmethod
    def set_start(self, shared: Arrays, start: Any, do: Callable[[str], None]) -> None:
        """Writes the arrays to start from. `do` makes all workers do a stage of the preparation."""

    def stage(self, shared: Arrays, stage: str, part: int, parts: int) -> None:
        """Does one of `parts` parts of a stage of the preparation."""

    @abstractmethod
    def find_rate(self) -> float:
        """A first rate; the search may use `threads`."""

    @abstractmethod
    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""

    @abstractmethod
    def factor(self, epoch: int) -> float:
        """The factor of the first rate in an epoch (counted from 1)."""

    def scale(self, now: Now) -> float:
        """The factor between stored weights and weights, now."""
        return 1.0

    def finish(
        self, shared: Arrays, now: Now, snapshots: tuple[int, int] | None, part: int, parts: int
    ) -> Doubles:
        """Multiplies a share of the stored weights by their scale, and divides sums over snapshots.

        `snapshots`: the numbers of early and of late snapshots. Results are added up for `choose`.
        """
        return np.zeros(0)

    def choose(self, shared: Arrays, found: Doubles, first: bool) -> None:
        """Chooses the weights or a mean of them, with `threads`."""

    @abstractmethod
    def learned(self, shared: Arrays) -> Arrays:
        """The result of training: views of the shared arrays."""

    def goes_on_from(self, shared: Arrays) -> Arrays:
        """What training continues from, where that differs from the result: views."""
        return {}

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        """Goes back to copies of `learned` and `goes_on_from` after an earlier epoch."""
        for name, array in (last | learned).items():
            shared[name][:] = array

    @abstractmethod
    def state(self, shared: Arrays) -> Arrays:
        """What training can continue from: copies."""

    @abstractmethod
    def lasting_arrays(self, shared: Arrays, is_open: bool) -> Iterable[str]:
        """The names of the shared arrays that the next epoch needs as they are.

        `is_open`: whether `choose` has not been called yet for the last epoch.
        """

    @abstractmethod
    def fingerprints(self) -> dict[str, str]:
        """Digests of the data that results depend on, by what it is."""

    def taken(self, shared: Arrays) -> str:
        """Which weights `learned` returns, as a word for the trace."""
        return "last"

    @abstractmethod
    def sets(self) -> list[str]:
        """The sets of examples to evaluate on: train, and test or held_out if given."""

    @abstractmethod
    def measured(self, shared: Arrays, sums: Sums) -> dict[str, float]:
        """The objective and other numbers by name, given the sums of each set."""

    @abstractmethod
    def online(self, shared: Arrays, mean_loss: float) -> float:
        """An estimate of the objective, given the mean loss during the epoch."""

    # Of solvers with a proof

    @property
    def proves(self) -> bool:
        """Whether it is known how near the optimum the result is."""
        return False

    def numbers(self) -> tuple[float, ...]:
        """What the plan of the next share needs besides its rate."""
        return ()

    def follow(self, shared: Arrays, excess: float, steps: int, alone: bool) -> Followed:
        """Takes note of an epoch, with what its rows added to the gap when they were visited."""
        raise NotImplementedError

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        """Makes a step of a method of whole passes, by `threads`; the mean loss before it.

        Call `passed` after each pass. It returns whether to continue.
        """
        raise NotImplementedError

    def prove(self, shared: Arrays) -> Sums:
        """Measures how good the weights are; returns the sums of the sets that it needed."""
        return {}

    def proved(self) -> Proved:
        """What was proved last."""
        raise NotImplementedError

    def went_wrong(self, objective: float, best: float) -> bool:
        """Whether to repeat an epoch at a smaller rate, given the best objective so far."""
        return False

    def has_risen(self, objective: float, best: float) -> bool:
        """Whether an objective is above the best one so far by more than chance."""
        return False

    def learned_nothing(self, objective: float) -> bool:
        """Whether nothing was learned, and the data is the likely cause."""
        return False

    @property
    def advice(self) -> str:
        """What to do about data for which no rate works."""
        return "Scale the values of the data down"

    @property
    def hint(self) -> str:
        """The advice, where the data calls for it; else an empty string."""
        return ""

    @abstractmethod
    def model(self, learned: Arrays, about: dict[str, Any], state: Arrays | None = None) -> Any:
        """A model of what was learned; it keeps no view of the arrays.

        `state`: the result of `state()` for the same arrays, if known.
        """

    # What the workers ask

    @abstractmethod
    def parts(self, data: str) -> int:
        """The number of parts that a set is evaluated in, whatever the number of workers."""

    @abstractmethod
    def evaluate(self, shared: Arrays, data: str, part: int) -> Doubles:
        """The sums over one part, for `measured`."""

    @property
    def finishes_together(self) -> bool:
        """Whether `finish` takes long enough for the workers to share it."""
        return False

    def steady_steps(self, done: int, eta0: float) -> int:
        """The number of steps in which the rate changes little."""
        return self.units


class RowProblem(Problem):
    """A problem whose workers visit examples one by one, in a random order.

    Steps add to `shared["stored"]`: `width` numbers for each column, those of the intercept last.
    `shared["row_state"]` has the numbers of each row.
    """

    _given: Rows  # to learn from
    chunk: int  # units between two checks whether to stop
    columns: int  # without the intercept
    width: int  # numbers stored for a column
    intercept_share: float  # the intercept's rate over that of the weights; 0: no intercept
    curvature: float  # how far a slope changes where the score changes by one, about
    votes = False  # whether what each worker learned is taken, and not only the mean
    mapped: MappedRows | None = None  # the rows, where they stay in their file
    groups = 1  # of weights, each of which can be learned without the others
    separate: list[npt.NDArray[np.uint32]]  # parts of the rows without common columns
    batch: int  # rows, for the strategy minibatch

    @property
    @abstractmethod
    def step(self) -> Step:
        """The step that loops are compiled for."""

    def rows_of(self, workers: int, rank: int) -> tuple[int, int]:
        """A worker's rows: the first, and the one after the last.

        Rows in a file are dealt block by block: worker `rank` of n has every n-th block. So each
        worker has rows from all parts of the file, which may be sorted. Rows are numbered as if
        each worker's rows followed those of the worker before.
        """
        if self.mapped is None:
            return share_of(self.units, workers, rank)
        ends = np.cumsum([0, *self.mapped.shares(workers)])
        return int(ends[rank]), int(ends[rank + 1])

    def shuffle_share(
        self, order: Order, workers: int, rank: int, seed: int, state: Floats
    ) -> None:
        """Fills `order` with a worker's rows, in a random order."""
        if self.mapped is None:
            self.shuffle(order, self.rows_of(workers, rank)[0], seed, state)
            return
        self.shuffle(order, 0, seed, state)
        each = np.uint32(self.mapped.file.each)
        # Its block number k is the file's block number k * workers + rank
        order += (order // each * np.uint32(workers - 1) + np.uint32(rank)) * each

    @property
    def size(self) -> int:
        """The number of stored numbers, including the intercept's."""
        return (self.columns + 1) * self.width

    @cached_property
    def frequency(self) -> Frequency:
        """The columns of a sample of rows, the most frequent first."""
        return frequency(self._given)

    @property
    def passes(self) -> str:
        """What workers share, where a solver makes whole passes over the rows; else nothing."""
        return ""

    def sharing(self) -> tuple[bool, str]:
        """Whether several workers on one array of weights are faster than one, and why."""
        found = sharing(self._given)
        return found.pays, found.reason

    def divide(self, parts: int) -> None:
        """Divides the rows into parts without common columns, or raises an error."""
        self.separate = parts_apart(self._given, parts)

    def shuffle(self, order: Order, first: int, seed: int, state: Floats) -> None:
        """Fills `order` with the units from `first` on, in a random order.

        `state` is that of all rows: those that were put aside are left out.
        """
        shuffle(order, first, np.uint64(seed))

    @abstractmethod
    def plan(self, share: Share) -> Any:
        """The numbers of a share of an epoch, as the step takes them."""

    @abstractmethod
    def task(
        self, order: Order, share: Share, writers: int = 1, groups: tuple[int, int] | None = None
    ) -> Task:
        """What a loop works on: rows in an order, with new scratch arrays.

        `writers` workers write to the weights; `groups`: the first and last group to learn.
        """

    def repeats(self, share: Share) -> float:
        """One in how many rows is visited in this share; the others were put aside."""
        return 1.0

    def ahead(self, share: Share, copies: int) -> tuple[float, float]:
        """How much farther weights move on one of several copies than when they are merged.

        The second number is for the intercept.
        """
        return 1.0, 1.0

    def add_snapshot(self, shared: Arrays, late: bool, first: bool, scale: float) -> None:
        """Adds the weights, or those of some heads, made whole, to a sum; the first begins it."""


class BlockProblem(Problem):
    """A problem whose workers visit blocks: a task has the blocks of two bands."""

    bands: int

    @abstractmethod
    def learn(self, shared: Arrays, task: BlockPair, epoch: int, eta0: float) -> tuple[int, float]:
        """Learns from a task's units; returns their number and the sum of their losses."""
