"""Linear models: score = <w, x> + intercept, and the objective l2/2 |w|^2 + mean(loss).

The intercept is not penalized. It learns like a column that holds a typical value of the data.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.components import parts_apart
from hogwild.data.rows import Labels, Rows
from hogwild.data.statistics import Frequency, sharing
from hogwild.errors import DataError
from hogwild.kernels.compile import Kernel
from hogwild.kernels.evaluate import squared_norm
from hogwild.kernels.order import shuffle
from hogwild.kernels.primitives import LINE
from hogwild.kernels.rows import gather_rows, renumber
from hogwild.kernels.views import Fetching, Span, Task, task_of, view
from hogwild.loops.trying import trial_loop
from hogwild.problems.averages import Averages
from hogwild.problems.heads import heads_of
from hogwild.problems.heads_model import HeadsModel
from hogwild.problems.linear_model import LinearModel
from hogwild.problems.losses import LOSSES
from hogwild.problems.problem import Arrays, RowProblem, Share, Shown, Sums
from hogwild.problems.sample import Options, Sample
from hogwild.problems.sets import Set, class_weights
from hogwild.problems.sgd import Sgd
from hogwild.problems.targets import target_for
from hogwild.steps.step import Step

BATCH = 256
MANY_WEIGHTS = 1 << 18  # a pass over them takes longer than telling the workers to make it
CHUNK_NONZEROS = 4_000_000  # some milliseconds of work
# How far ahead rows are fetched into the cache, in non-zeros, and in rows at least and at most
AHEAD_NONZEROS = 320
AHEAD = 4, 20
# How long rows are is looked up at so many of them. Where the shortest and the longest, but for a
# tenth at either end, take different numbers of cache lines, as many as the longest take are
# fetched of each, up to so many
LENGTHS, MOST_LINES = 1_000, 16
# How far ahead their weights are, where there are more than caches hold: those of the machine, or
# of a core where others write to the same weights. Fewer are at hand without being asked for
NEAR_NONZEROS = 64
CACHED, CACHED_BY_ONE = 1 << 21, 1 << 18


class LinearProblem(RowProblem):
    """Training rows (and test rows) and what the workers do with them."""

    work_name = "nonzeros"
    unit_name = "rows"
    ours_alone = ("_given", "_sample", "notes")

    def __init__(
        self, rows: Rows, test: Rows | None, config: Config, labels: Labels | None = None
    ) -> None:
        self.config = config
        self._l2 = float(config.l2 or 0.0)
        if not len(rows):
            raise DataError(f"{rows.name} has no rows to learn from")
        self.target = target_for(config, rows, labels)
        self.heads = heads_of(config.loss_name, self.target.kind, self.target.heads)
        self.width, self.groups = self.heads.width, self.heads.groups
        self.name = rows.name
        self.units = len(rows)
        self.work = rows.nonzeros
        self.columns = rows.columns
        self.batch = config.batch or BATCH
        self.seed = config.seed
        self.notes: list[str] = []
        self._given = rows
        self._sample: Sample | None = None
        self._sets = {"train": Set.of(rows, self.target, class_weights(config, rows, self.target))}
        if test is not None:
            self._sets["test"] = Set.of(self._narrowed(test), self.target)
        self.shown = tuple(
            Shown(f"{data}_{shown.key}", f"{data} {shown.title}", shown.form)
            for shown in self.target.shown
            for data in ("train", "test")
        )
        self._mean_length = max(1.0, rows.nonzeros / len(rows))
        self.chunk = max(1, int(CHUNK_NONZEROS / self._mean_length / self.heads.effort))
        self._lines = _lines(rows)
        self._weighted = self._sets["train"].weighted
        self._parameter = config.loss_value
        self.curvature = LOSSES[config.loss_name].curvature
        self.intercept_share = _intercept_share(rows) if config.intercept else 0.0
        self._solver = Sgd(
            config, self.heads, self._weighted, self._parameter, self.intercept_share
        )
        self._averages = Averages(self.columns, self.width, self.effort, config.average)
        self.snapshots = self._averages.snapshots

    def _narrowed(self, test: Rows) -> Rows:
        if test.columns > self.columns:
            unseen = int(np.count_nonzero(test.indices >= self.columns))
            test = test.narrowed(self.columns)
            self.notes.append(
                f"{test.name}: {unseen:,} values are in columns that training never saw; "
                "they are ignored"
            )
        return test

    # What the coordinator asks

    def describe(self) -> dict[str, Any]:
        """The shape of the data, for the record."""
        return {
            "name": self.name,
            "rows": self.units,
            "columns": self.columns,
            "nonzeros": self.work,
        }

    def summary(self) -> list[str]:
        """The data and the objective, a line each, for people."""
        return [
            f"{self.name}: {self.units:,} rows, {self.columns:,} columns, {self.work:,} non-zeros",
            self.target.summary + f"{self.config.loss_name} loss, l2 {self._l2:g}",
        ]

    @property
    def effort(self) -> float:
        """The work of an epoch, in what takes as long as a non-zero of a linear model."""
        return self.work * self.heads.effort

    @property
    def model_bytes(self) -> int:
        """About how large a model file will be."""
        return 4 * self.columns * self.heads.count

    def check_memory(self, shared: int, available: int) -> None:
        """Refuses to begin where the weights of all heads, with all copies, do not fit."""
        needed = 2 * shared  # what is kept and returned takes as much again
        if self.width > 1 and needed > available:
            weights, count = 4 * self.size / 1e9, self.heads.count
            raise DataError(
                f"{self.name}: {count:,} {self.target.kind} x {self.columns:,} columns are "
                f"{weights:,.2f} GB of weights, and {needed / 1e9:,.2f} GB with all copies; "
                f"{available / 1e9:,.2f} GB of memory are available. Take fewer columns (leave out "
                "rare ones, or hash them), or fewer labels at a time, or average=False; if labels "
                "are quantities, use the task regression"
            )

    def sharing(self) -> tuple[bool, str]:
        """Whether several workers gain by writing to one array of weights, and why."""
        found = sharing(self._given)
        return found.pays, found.reason

    def shared(self) -> dict[str, tuple[int, Any]]:
        """The arrays that all workers share."""
        stored = {"stored": (self.size, np.float32)}
        state = {"row_state": (self.units * self.step.state, np.float32)}
        return stored | state | self._averages.shared()

    def kernels(self) -> list[Kernel]:
        """All that training will call besides the loops."""
        evaluators = [self.heads.kernels(data.weighted)[0] for data in self._sets.values()]
        always = [shuffle, *dict.fromkeys(evaluators), squared_norm]
        few, compare = self.heads.few(), self.heads.kernels(self._weighted)[1]
        trying = [trial_loop(few.step(self._weighted)), few.kernels(self._weighted)[1]]
        trying = [] if self.config.eta0 else trying
        sampled = [compare, gather_rows, renumber]
        needs_sample = self.config.average or not self.config.eta0
        return always + self._averages.kernels() + trying + (sampled if needs_sample else [])

    def set_start(self, shared: Arrays, start: Any, do: Callable[[str], None]) -> None:
        """Writes the weights to begin with into the shared ones: zeros, or what is given."""
        for name in self.shared():
            shared[name][:] = 0
        for name, array in (_given_state(start) if start else {}).items():
            if len(array) != len(shared[name]):
                raise DataError(
                    f"{self.name} needs {len(shared[name]) - self.width:,} weights, and what to go "
                    f"on from has {len(array) - self.width:,}"
                )
            shared[name][:] = array

    @property
    def step(self) -> Step:
        """The step that loops are compiled for."""
        return self._solver.step

    def plan(self, share: Share) -> Any:
        """The numbers of a share of an epoch, as the step takes them."""
        return self._solver.plan(share.done, share.eta0)

    def scale(self, done: int, since: int, eta0: float) -> float:
        """What weights stored whole at step `since` are multiplied by at step `done`."""
        return self._solver.scale(done, since, eta0)

    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""
        return self._solver.rate(done, eta0)

    def factor(self, epoch: int) -> float:
        """What the first rate is multiplied by in an epoch (they count from 1)."""
        return self._solver.factor(epoch)

    def finish(
        self, shared: Arrays, scale: float, moments: tuple[int, int] | None, part: int, parts: int
    ) -> npt.NDArray[np.float64]:
        """Makes a share of the weights whole, and means of sums over snapshots."""
        return self._averages.finish(shared, scale, moments, part, parts)

    @property
    def finishes_together(self) -> bool:
        """Whether `finish` is so much work that the workers share it."""
        return self.size > MANY_WEIGHTS

    def choose(
        self, shared: Arrays, found: npt.NDArray[np.float64], first: bool, threads: int
    ) -> None:
        """Chooses what to take: the weights, or a mean of them."""
        self._averages.choose(shared, found, first, self.sample(threads), threads)

    def learned(self, shared: Arrays) -> Arrays:
        """The weights, with the intercept behind them, that training came to: a view."""
        return {"weights": shared[Averages.name(shared)]}

    def goes_on_from(self, shared: Arrays) -> Arrays:
        """The last weights, and not a mean of them."""
        return {"stored": shared["stored"]}

    def state(self, shared: Arrays) -> Arrays:
        """What training can go on from: copies."""
        return {name: array.copy() for name, array in self.goes_on_from(shared).items()}

    def taken(self, shared: Arrays) -> str:
        """Which weights `learned` gives, as a word for the trace."""
        return Averages.word(shared)

    def sets(self) -> list[str]:
        """The sets of rows to evaluate on."""
        return list(self._sets)

    def measured(self, shared: Arrays, sums: Sums) -> dict[str, float]:
        """The objective, and the errors on each set."""
        found = {"objective": self.online(shared, sums["train"][0] / self.units)}
        for data, (_, first, second) in sums.items():
            weight = self._sets[data].weight
            errors = self.target.measured(float(first) / weight, float(second) / weight)
            found |= {f"{data}_{name}": error for name, error in errors.items()}
        return found

    def online(self, shared: Arrays, mean_loss: float) -> float:
        """The objective, given the mean loss at the same weights."""
        weights = self.learned(shared)["weights"][: -self.width]
        return float(0.5 * self._l2 * float(squared_norm(weights)) + mean_loss)

    def model(
        self, learned: Arrays, about: dict[str, Any], state: Arrays | None = None
    ) -> LinearModel:
        """A model of what was learned; it keeps no view of the arrays."""
        weights = learned["weights"].copy()
        given = self.target, self.config.loss_name, self._given.index_base, about
        if self.width > 1:
            by_column = weights.reshape(-1, self.width)[:, : self.heads.count]
            return HeadsModel(by_column[:-1].T, by_column[-1], *given, parameter=self._parameter)
        return LinearModel(weights[:-1], float(weights[-1]), *given, parameter=self._parameter)

    def sample(self, threads: int = 1) -> Sample:
        """A few of the rows, always the same ones; they are copied when first asked for."""
        if self._sample is None:
            given = self.heads, self._parameter, self._l2, self._weighted, self.seed
            targets = self._sets["train"].view.targets
            self._sample = Sample(self._given, targets, Options(*given), threads)
        return self._sample

    def find_rate(self, threads: int = 1) -> float:
        """A first rate: the best of some, tried on a few rows."""
        return self.sample(threads).best_rate(self._solver.try_out, threads)

    # What the workers ask

    def task(
        self,
        order: npt.NDArray[np.uint32],
        share: Share,
        writers: int = 1,
        groups: tuple[int, int] | None = None,
    ) -> Task:
        """What a loop works on: the rows of an order, with scratch of its own."""
        shape = self.heads.shape(self._weighted, groups)
        rows, fetching = self._sets["train"].view, self._fetching(writers)
        return task_of(rows, order, self.heads.scratch(), shape, self.plan(share), fetching)

    def _fetching(self, writers: int) -> Fetching:
        least, most = AHEAD
        ahead = int(min(most, max(least, AHEAD_NONZEROS / self._mean_length)))
        near = int(min(ahead // 2, max(1, NEAR_NONZEROS / self._mean_length)))
        cached = CACHED if writers == 1 else CACHED_BY_ONE
        wanted = ahead, self._lines, near if self.size > cached else 0
        fetching: Fetching = view(Fetching, *wanted)
        return fetching

    def steady_steps(self, done: int, eta0: float) -> int:
        """Steps in which the schedule changes little."""
        return self._solver.steady_steps(done, eta0, self.units)

    def shuffle(self, order: npt.NDArray[np.uint32], first: int, seed: int) -> None:
        """Fills `order` with the rows from `first` on, in a random order."""
        shuffle(order, first, np.uint64(seed))

    def divide(self, parts: int) -> None:
        """Finds so many parts of the rows that share no column, or refuses to."""
        self.separate = parts_apart(self._given, parts)

    @cached_property
    def frequency(self) -> Frequency:
        """The columns that some rows hold, the most frequent first."""
        return self._given.frequency

    def add_snapshot(
        self,
        shared: Arrays,
        late: bool,
        first: bool,
        scale: float,
        groups: tuple[int, int] | None = None,
    ) -> None:
        """Adds the weights as they are, or some groups, made whole, to a sum."""
        some = None if groups is None else self.heads.shape(self._weighted, groups)
        self._averages.add(shared, late, first, scale, some)

    def parts(self, data: str) -> int:
        """In how many parts rows are evaluated."""
        return -(-len(self._sets[data]) // self.chunk)

    def evaluate(self, shared: Arrays, data: str, part: int) -> npt.NDArray[np.float64]:
        """The sums over some rows of the losses and of the two errors of the kind of target."""
        weights, rows = self.learned(shared)["weights"], self._sets[data]
        span = view(Span, part * self.chunk, min((part + 1) * self.chunk, len(rows)))
        return self.heads.evaluate(rows.view, rows.weighted, span, weights, self._parameter)


def _given_state(start: Arrays) -> Arrays:
    """The weights of a state; of the first release, which had the intercept in another array."""
    if "stored" in start:
        return start
    return {"stored": np.append(start["weights"], start["intercept"]).astype(np.float32)}


def _lines(rows: Rows) -> int:
    """Cache lines that are to be fetched of each row, whatever its length."""
    places = np.random.default_rng(0).integers(0, len(rows), LENGTHS)
    lengths = (rows.indptr[places + 1] - rows.indptr[places]).astype(np.int64)
    short, long = np.ceil(np.quantile(lengths, (0.1, 0.9)) / int(LINE)).astype(int)
    return int(min(long, MOST_LINES)) if long > short else 0


def _intercept_share(rows: Rows) -> float:
    """The intercept's rate over that of the weights.

    Like a column of a typical size in unnormalised data, slower where rows are normed: found on
    RCV1-shaped rows (0.1 best), on a9a and on binary rows (1 best).
    """
    if not rows.nonzeros:
        return 1.0
    typical = float(np.median(np.abs(rows.values[: 1 << 16])))
    return max(1e-6, min(typical, typical**2 * rows.nonzeros / len(rows)))
