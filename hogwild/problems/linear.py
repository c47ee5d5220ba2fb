"""Linear models: score = <w, x> + intercept, and the objective l2/2 |w|^2 + mean(loss).

The intercept is not penalised. It learns like a column that holds a typical value of the data.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.components import parts_apart
from hogwild.data.rows import Labels, Rows, checked_labels
from hogwild.data.statistics import Heat, largest_columns, sharing
from hogwild.errors import DataError
from hogwild.kernels import linear as kernels
from hogwild.kernels.compile import Kernel
from hogwild.kernels.primitives import LINE
from hogwild.kernels.rows import gather_rows, renumber
from hogwild.problems import column_sizes, losses, progress, schedules
from hogwild.problems.linear_model import LinearModel
from hogwild.problems.problem import Arrays, RowProblem, Shown, Sums
from hogwild.problems.sample import DOUBT, Point, Sample
from hogwild.problems.schedules import Clock
from hogwild.threads import share_of

BATCH = 256
MANY_COLUMNS = 1 << 18  # a pass over them takes longer than telling the workers to make it
PACE = 0.25  # of the weights: what the penalty may take until workers look at each other again
CHUNK_NONZEROS = 4_000_000  # some milliseconds of work
MOMENTS = 64  # at most, of an epoch, that means of the weights are taken over
MEAN_COST = 0.25  # weights added to a mean, per non-zero visited: some 3 % of the time
# What training may have come to: the last weights, their mean over the last quarter of an epoch, or
# over all of it. Which is best depends on how noisy the steps are, against how far there is to go.
CANDIDATES = ("", "tail_", "whole_")
TAKEN = ("last", "tail mean", "whole mean")  # the same, as words
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
    ours_alone = ("_rows", "_sample", "_start", "notes")
    shown = (
        Shown("train_error", "train err", "percent"),
        Shown("test_error", "test err", "percent"),
    )

    def __init__(
        self, rows: Rows, test: Rows | None, config: Config, labels: Labels | None = None
    ) -> None:
        self.config = config
        self._l2 = float(config.l2 or 0.0)
        self.labels = checked_labels(labels) if labels else rows.labels
        if not len(rows):
            raise DataError(f"{rows.name} has no rows to learn from")
        self.name = rows.name
        self.units = len(rows)
        self.work = rows.nonzeros
        self.columns = rows.columns
        self.batch = config.batch or BATCH
        self.seed = config.seed
        self.notes: list[str] = []
        self._rows = rows
        self._sample: Sample | None = None
        self._data = {"train": _arrays(rows, rows.targets(self.labels))}
        if test is not None:
            self._data["test"] = self._test_arrays(test)
        mean_length = max(1.0, rows.nonzeros / len(rows))
        self.chunk = max(1, int(CHUNK_NONZEROS / mean_length))
        least, most = AHEAD
        self._ahead = int(min(most, max(least, AHEAD_NONZEROS / mean_length)))
        self._near = int(min(self._ahead // 2, max(1, NEAR_NONZEROS / mean_length)))
        self._lines = _lines(rows)
        affordable = int(MEAN_COST * rows.nonzeros / max(1, rows.columns))
        self.moments = min(MOMENTS, max(2, affordable)) if config.average else 0
        self._loss = losses.code(config.loss_name)
        self.bend = losses.LOSSES[config.loss_name].bend
        self._start: Arrays = {}  # what training goes on from, if anything
        self._at_zero = progress.at_zero(config.loss_name, self._data["train"][3])
        self._schedule = schedules.code(str(config.schedule))
        self.intercept_share = _intercept_share(rows) if config.intercept else 0.0

    def _test_arrays(self, test: Rows) -> tuple[npt.NDArray[Any], ...]:
        targets = test.targets(self.labels)
        if test.columns > self.columns:
            unseen = int(np.count_nonzero(test.indices >= self.columns))
            test = test.narrowed(self.columns)
            self.notes.append(
                f"{test.name}: {unseen:,} values are in columns that training never saw; "
                "they are ignored"
            )
        return _arrays(test, targets)

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
            f"{self.config.loss_name} loss, l2 {self._l2:g}",
        ]

    @property
    def model_bytes(self) -> int:
        """About how large a model file will be."""
        return 4 * self.columns

    def sharing(self) -> tuple[bool, str]:
        """Whether several workers gain by writing to one array of weights, and why."""
        found = sharing(self._rows)
        return found.pays, found.reason

    def shared(self) -> dict[str, tuple[int, Any]]:
        """The arrays that all workers share."""
        learned = {"weights": (self.columns, np.float32), "intercept": (1, np.float32)}
        prefixes = CANDIDATES if self.config.average else CANDIDATES[:1]
        arrays = {prefix + name: wanted for prefix in prefixes for name, wanted in learned.items()}
        return arrays | {"chosen": (1, np.int64)}

    def kernels(self) -> list[Kernel]:
        """All that training will call."""
        always = [kernels.shuffle, kernels.learn, kernels.evaluate, kernels.squared_norm]
        means = [kernels.add_scaled, kernels.settle] if self.config.average else []
        sampled = [kernels.try_out, kernels.losses_of, gather_rows, renumber]
        return always + means + (sampled if self.config.average or not self.config.eta0 else [])

    def set_start(self, shared: Arrays, start: Any, do: Callable[[str], None]) -> None:
        """Writes the weights to begin with into the shared ones: zeros, or what is given."""
        for name in self.shared():
            shared[name][:] = 0
        self._start = start or {}
        for name, array in self._start.items():
            if len(array) != len(shared[name]):
                raise DataError(
                    f"{self.name} needs {len(shared[name]):,} {name}, and what to go on from has "
                    f"{len(array):,}"
                )
            shared[name][:] = array

    def left(self, done: int, since: int, eta0: float) -> float:
        """The share of the weights of step `since` that the penalty has left at step `done`."""
        formula = schedules.SCHEDULES[str(self.config.schedule)].left
        return float(formula(float(done), float(since), eta0, self._l2))

    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""
        formula = schedules.SCHEDULES[str(self.config.schedule)].rate
        return float(formula(float(max(1, done)), eta0, self._l2))

    def factor(self, epoch: int) -> float:
        """What the first rate is multiplied by in an epoch (they count from 1)."""
        return self.config.backoff(epoch)

    def settle(
        self, shared: Arrays, left: float, moments: tuple[int, int] | None, part: int, parts: int
    ) -> npt.NDArray[np.float64]:
        """Multiplies the penalty into a share of the weights, and makes means of sums of them.

        Early moments come before the last quarter of an epoch. Where there were no late ones, the
        weights as they are must do. Returns the squared lengths of the share of all candidates.
        """
        begin, end = share_of(self.columns, parts, part)
        if moments is None:
            if left != 1.0:
                shared["weights"][begin:end] *= np.float32(left)
            return np.zeros(len(CANDIDATES))
        early, late = moments
        each = 1.0 / (early + max(late, 1))
        factors = float(late), each if early else 0.0, each
        found = np.zeros(len(CANDIDATES))
        for name, of_left, share in (("weights", left, (begin, end)), ("intercept", 1.0, (0, 1))):
            if name == "weights" or part == 0:
                arrays = tuple(shared[prefix + name] for prefix in CANDIDATES)
                norms = kernels.settle(arrays, of_left, factors, share)
                found += norms if name == "weights" else 0.0
        return found

    @property
    def settles_together(self) -> bool:
        """Whether `settle` is so much work that the workers share it."""
        return self.columns > MANY_COLUMNS

    def choose(
        self, shared: Arrays, squares: npt.NDArray[np.float64], first: bool, threads: int
    ) -> None:
        """Chooses among the candidates, given their squared lengths.

        In the first epoch, whose beginning is far off, the mean over all of it is not expected to
        be best.
        """
        default = CANDIDATES.index("tail_" if first else "whole_")
        # In the first epoch they differ by much, and nothing is known of which is better
        doubt = 0.0 if first else DOUBT
        candidates = [
            (shared[prefix + "weights"], shared[prefix + "intercept"][0], float(square))
            for prefix, square in zip(CANDIDATES, squares, strict=True)
        ]
        points = self.sample(threads).points(candidates, threads)
        shared["chosen"][0] = self._best_candidate(points, default, doubt)

    def _best_candidate(self, points: list[Point], default: int, doubt: float) -> int:
        """The default, unless another is better beyond doubt on a few rows."""
        present = points[default]
        gains = [
            0.0 if point is present else self.sample().sure_gain(present, point, doubt)
            for point in points
        ]
        return int(np.argmax(gains))

    def learned(self, shared: Arrays) -> Arrays:
        """The weights and the intercept that training came to: views, not copies."""
        prefix = CANDIDATES[shared["chosen"][0]]
        return {name: shared[prefix + name] for name in ("weights", "intercept")}

    def goes_on_from(self, shared: Arrays) -> Arrays:
        """The last weights, and not a mean of them."""
        return {name: shared[name] for name in ("weights", "intercept")}

    def state(self, shared: Arrays) -> Arrays:
        """What training can go on from: copies."""
        return {name: array.copy() for name, array in self.goes_on_from(shared).items()}

    def taken(self, shared: Arrays) -> str:
        """Which of the candidates `learned` gives, as a word for the trace."""
        return TAKEN[shared["chosen"][0]]

    def sets(self) -> list[str]:
        """The sets of rows to evaluate on."""
        return list(self._data)

    def measured(self, shared: Arrays, sums: Sums) -> dict[str, float]:
        """The objective, and the share of the rows on the wrong side of either set."""
        found = {"objective": self.online(shared, sums["train"][0] / self.units)}
        for data, (_, wrong) in sums.items():
            found[f"{data}_error"] = float(wrong) / len(self._data[data][3])
        return found

    def online(self, shared: Arrays, mean_loss: float) -> float:
        """The objective, given the mean loss at the same weights."""
        weights = self.learned(shared)["weights"]
        return float(0.5 * self._l2 * float(kernels.squared_norm(weights)) + mean_loss)

    def went_wrong(self, objective: float, best: float) -> bool:
        """Whether an epoch undid too much of what was gained since the start."""
        if not progress.went_wrong(objective, best, self._at_zero):
            return False
        return progress.went_wrong(objective, best, max(self._at_zero, self._at_start))

    def has_risen(self, objective: float, best: float) -> bool:
        """Whether an objective is above the best one so far, or that of zero weights."""
        return progress.has_risen(objective, min(best, self._at_zero))

    def learned_nothing(self, objective: float) -> bool:
        """Whether it is next to that of zero weights, and values are large: else that is best."""
        return objective > (1 - progress.LEAST) * self._at_zero and bool(self.hint)

    @cached_property
    def _at_start(self) -> float:
        """The objective of what training goes on from; few need it, so it is found when asked."""
        if not self._start:
            return self._at_zero
        arrays = {name: np.asarray(array, np.float32) for name, array in self._start.items()}
        arrays["chosen"] = np.zeros(1, np.int64)
        parts = [self.evaluate(arrays, "train", part) for part in range(self.parts("train"))]
        return self.measured(arrays, {"train": np.sum(parts, axis=0)})["objective"]

    @cached_property
    def _largest(self) -> list[tuple[int, float]]:
        return largest_columns(self._rows, column_sizes.NAMED)

    @property
    def advice(self) -> str:
        """To scale the columns, the largest of which are named."""
        return column_sizes.advice(self._largest, self._rows.index_base)

    @property
    def hint(self) -> str:
        """The same, where values are large."""
        return self.advice if column_sizes.are_large(self._largest) else ""

    def model(
        self, learned: Arrays, about: dict[str, Any], state: Arrays | None = None
    ) -> LinearModel:
        """A model of what was learned; it keeps no view of the arrays."""
        weights, intercept = learned["weights"].copy(), float(learned["intercept"][0])
        loss = self.config.loss_name
        return LinearModel(weights, intercept, self.labels, loss, self._rows.index_base, about)

    def sample(self, threads: int = 1) -> Sample:
        """A few of the rows, always the same ones; they are copied when first asked for."""
        if self._sample is None:
            targets = self._data["train"][3]
            given = self._rows, targets, self.config, self.intercept_share
            self._sample = Sample(*given, threads)
        return self._sample

    def find_rate(self, threads: int = 1) -> float:
        """A first rate: the best of some, tried on a few rows."""
        return self.sample(threads).best_rate(threads)

    # What the workers ask

    def pace(self, clock: Clock) -> int:
        """Steps in which the penalty takes no more than a share PACE of the weights."""
        taken = self._l2 * self.rate(clock.done + 1, clock.eta0)
        return int(PACE / taken) if taken > PACE / self.units else self.units

    def shuffle(self, order: npt.NDArray[np.uint32], first: int, seed: int) -> None:
        """Fills `order` with the rows from `first` on, in a random order."""
        kernels.shuffle(order, first, np.uint64(seed))

    def learn(
        self,
        weights: Arrays,
        order: npt.NDArray[np.uint32],
        begin: int,
        end: int,
        clock: Clock,
    ) -> float:
        """One step on each of the rows order[begin:end]; the sum of the losses met on the way."""
        rows, (loss, fetching, plan) = self.visiting(clock.eta0)
        if clock.stride > 1:  # others write there, too
            fetching = self._fetching(CACHED_BY_ONE)
        return float(
            kernels.learn(
                rows,
                order,
                begin,
                end,
                fetching,
                weights["weights"],
                weights["intercept"],
                loss,
                plan,
                (float(clock.done), float(clock.since), float(clock.stride)),
            )
        )

    def divide(self, parts: int) -> None:
        """Finds so many parts of the rows that share no column, or refuses to."""
        self.apart = parts_apart(self._rows, parts)

    def visiting(self, eta0: float) -> tuple[Any, Any]:
        """The rows, and how they are visited, as the kernels of strategies take them."""
        plan = (self._schedule, eta0, self._l2, self.intercept_share)
        return self._data["train"], (self._loss, self._fetching(CACHED), plan)

    def _fetching(self, cached: int) -> tuple[int, int, int]:
        """How far ahead rows are fetched, lines of each, and how far ahead their weights are."""
        return self._ahead, self._lines, self._near if self.columns > cached else 0

    @cached_property
    def heat(self) -> Heat:
        """The columns that some rows hold, the commonest first."""
        return self._rows.heat

    def add_moment(self, shared: Arrays, late: bool, first: bool, clock: Clock) -> None:
        """Adds the weights as they are, made whole, to a sum; the first begins it."""
        left = self.left(clock.done, clock.since, clock.eta0)
        sums = "tail_" if late else "whole_"
        keep = 0.0 if first else 1.0
        kernels.add_scaled(shared["weights"], left, keep, shared[sums + "weights"])
        kernels.add_scaled(shared["intercept"], 1.0, keep, shared[sums + "intercept"])

    def parts(self, data: str) -> int:
        """In how many parts rows are evaluated."""
        return -(-len(self._data[data][3]) // self.chunk)

    def evaluate(self, shared: Arrays, data: str, part: int) -> npt.NDArray[np.float64]:
        """The sum of the losses of some rows, and how many of them have the wrong sign."""
        learned = self.learned(shared)
        weights, intercept = learned["weights"], learned["intercept"][0]
        rows = self._data[data]
        begin, end = part * self.chunk, min((part + 1) * self.chunk, len(rows[3]))
        return np.array(kernels.evaluate(rows, begin, end, weights, intercept, self._loss))


def _arrays(rows: Rows, targets: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], ...]:
    return rows.indptr, rows.indices, rows.values, targets


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
