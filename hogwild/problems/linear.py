"""Linear models: score = <w, x> + intercept, and the objective l2/2 |w|^2 + mean(loss).

The intercept is not penalised. It learns like a column that holds a typical value of the data.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.rows import Labels, Rows
from hogwild.errors import DataError
from hogwild.kernels import linear as kernels
from hogwild.problems import losses, schedules
from hogwild.problems.schedules import Clock

Arrays = dict[str, npt.NDArray[Any]]

CHUNK_NONZEROS = 4_000_000  # some milliseconds of work
MOMENTS = 64  # at most, of an epoch, that the mean of the weights is taken over
MEAN_COST = 0.5  # weights added to the mean, per non-zero visited: some 3 % of the time
AHEAD_NONZEROS = 320  # how far ahead rows are fetched into the cache
SAMPLE_ROWS = 4000  # rows to try rates on, and as many others to judge them by
SAMPLE_NONZEROS = 500_000
FEW_COLUMNS = 1 << 20  # with more, the sample is renumbered to its own columns


class LinearProblem:
    """Training rows (and test rows) and what the workers do with them."""

    def __init__(
        self, rows: Rows, test: Rows | None, config: Config, labels: Labels | None = None
    ) -> None:
        self.config = config
        self.labels = labels or rows.labels
        if not len(rows):
            raise DataError(f"{rows.name} has no rows to learn from")
        self.units = len(rows)
        self.nonzeros = rows.nonzeros
        self.columns = rows.columns
        self.seed = config.seed
        self.notes: list[str] = []
        self._rows = rows
        self._data = {"train": _arrays(rows, rows.targets(self.labels))}
        self._sizes = {"train": len(rows)}
        if test is not None:
            self._data["test"] = self._test_arrays(test)
            self._sizes["test"] = len(test)
        mean_length = max(1.0, rows.nonzeros / len(rows))
        self.chunk = max(1, int(CHUNK_NONZEROS / mean_length))
        self._ahead = int(min(64, max(4, AHEAD_NONZEROS / mean_length)))
        affordable = int(MEAN_COST * rows.nonzeros / max(1, rows.columns))
        self.moments = min(MOMENTS, max(2, affordable)) if config.average else 0
        self._loss = losses.code(config.loss_name)
        self._schedule = schedules.code(config.schedule)
        self._intercept_share = _intercept_share(rows) if config.intercept else 0.0
        self._learned = "mean_" if config.average else ""

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

    def shared(self) -> dict[str, tuple[int, Any]]:
        """The arrays that all workers share."""
        arrays = {"weights": (self.columns, np.float32), "intercept": (1, np.float32)}
        if self.config.average:
            arrays |= {"mean_" + name: wanted for name, wanted in arrays.items()}
        return arrays

    def prepare(self) -> None:
        """Compiles, or loads, all that the workers will call."""
        for kernel in (kernels.shuffle, kernels.learn, kernels.evaluate, kernels.add_scaled):
            kernel.compiled  # noqa: B018

    def size(self, data: str) -> int:
        """How many rows there are to train on, or to test on."""
        return self._sizes[data]

    def left(self, done: int, since: int, eta0: float) -> float:
        """The share of the weights of step `since` that the penalty has left at step `done`."""
        formula = schedules.SCHEDULES[self.config.schedule].left
        return float(formula(float(done), float(since), eta0, self.config.l2))

    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""
        formula = schedules.SCHEDULES[self.config.schedule].rate
        return float(formula(float(max(1, done)), eta0, self.config.l2))

    def fold(self, shared: Arrays, left: float) -> None:
        """Multiplies the penalty into the weights, which so become whole."""
        if left != 1.0:
            shared["weights"] *= np.float32(left)

    def end_moments(self, shared: Arrays, counts: list[int]) -> None:
        """Makes means of the sums, given how many moments each worker has added to its slice.

        Where training stopped before the first moment, the weights as they are must do.
        """
        for rank, count in enumerate(counts):
            part = self._slice(rank, len(counts))
            for name, place in (("weights", part), ("intercept", slice(0, 1 if rank == 0 else 0))):
                if count:
                    shared["mean_" + name][place] /= np.float32(count)
                else:
                    shared["mean_" + name][place] = shared[name][place]

    def _slice(self, rank: int, workers: int) -> slice:
        """The columns that a worker has the mean of."""
        return slice(self.columns * rank // workers, self.columns * (rank + 1) // workers)

    def learned(self, shared: Arrays) -> Arrays:
        """The weights and the intercept that training came to: views, not copies."""
        return {name: shared[self._learned + name] for name in ("weights", "intercept")}

    def objective(self, shared: Arrays, mean_loss: float) -> float:
        """The objective, given the mean loss at the same weights."""
        weights = self.learned(shared)["weights"]
        return 0.5 * self.config.l2 * float(kernels.squared_norm(weights)) + mean_loss

    def find_rate(self) -> float:
        """A first rate: the best of some, tried on a few rows and judged by the loss on others."""
        targets = self._data["train"][3]
        sample = _Sample(self._rows, targets, self.config, self._intercept_share)
        return best_rate(sample.objective, sample.guess())

    # What the workers ask

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
        plan = (self._schedule, clock.eta0, self.config.l2, self._intercept_share)
        return float(
            kernels.learn(
                self._data["train"],
                order,
                begin,
                end,
                self._ahead,
                weights["weights"],
                weights["intercept"],
                self._loss,
                plan,
                (float(clock.done), float(clock.since), float(clock.stride)),
            )
        )

    def add_moment(self, shared: Arrays, share: tuple[int, int], first: bool, clock: Clock) -> None:
        """Adds this worker's slice of the weights, made whole, to that of their mean."""
        rank, workers = share
        part = self._slice(rank, workers)
        left = self.left(clock.done, clock.since, clock.eta0)
        keep = 0.0 if first else 1.0
        kernels.add_scaled(shared["weights"][part], left, keep, shared["mean_weights"][part])
        if rank == 0:
            before = 0.0 if first else shared["mean_intercept"]
            shared["mean_intercept"][:] = before + shared["intercept"]

    def evaluate(self, shared: Arrays, data: str, begin: int, end: int) -> npt.NDArray[Any]:
        """The sum of the losses of some rows, and how many of them have the wrong sign."""
        learned = self.learned(shared)
        weights, intercept = learned["weights"], learned["intercept"][0]
        return np.array(
            kernels.evaluate(self._data[data], begin, end, weights, intercept, self._loss)
        )


def _arrays(rows: Rows, targets: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], ...]:
    return rows.indptr, rows.indices, rows.values, targets


def _intercept_share(rows: Rows) -> float:
    """The intercept's rate over that of the weights.

    Like a column of a typical size in unnormalised data, slower where rows are normed: found on
    RCV1-shaped rows (0.1 best), on a9a and on binary rows (1 best).
    """
    if not rows.nonzeros:
        return 1.0
    typical = float(np.median(np.abs(rows.values[: 1 << 16])))
    return max(1e-6, min(typical, typical**2 * rows.nonzeros / len(rows)))


def best_rate(objective: Callable[[float], float], guess: float) -> float:
    """Doubles, else halves, the guess for as long as that lowers the objective (after Bottou).

    One rise is stepped over: on a sample the objective is not smooth.
    """
    best = (objective(guess), guess)
    for factor in (2.0, 0.5):
        rate, rises = guess, 0
        start = best
        while rises < 2 and 1e-12 < rate < 1e12:
            rate *= factor
            tried = (objective(rate), rate)
            rises = 0 if tried < best else rises + 1
            best = min(best, tried)
        if best < start:
            break
    return best[1]


class _Sample:
    """A few rows to learn from and a few others to judge by."""

    def __init__(
        self,
        rows: Rows,
        targets: npt.NDArray[np.float32],
        config: Config,
        intercept_share: float,
    ) -> None:
        mean_length = max(1.0, rows.nonzeros / len(rows))
        most = max(16, min(2 * SAMPLE_ROWS, int(2 * SAMPLE_NONZEROS / mean_length)))
        picker = np.random.default_rng(config.seed)
        chosen = picker.choice(len(rows), min(len(rows), most), replace=False)
        rows = rows.take(chosen)
        if rows.columns > FEW_COLUMNS:
            used, renumbered = np.unique(rows.indices, return_inverse=True)
            rows = Rows.from_arrays(rows.indptr, renumbered, rows.values, max(1, len(used)))
        self._data = _arrays(rows, targets[chosen])
        self._rows = rows
        self._config = config
        self._intercept_share = intercept_share
        # With very few rows, the same ones must do for both
        half = len(rows) // 2
        self._learned, self._judged = (half, half) if half >= 8 else (len(rows), 0)

    def guess(self) -> float:
        """One over the mean squared length of a row, as a power of two."""
        mean_square = float(np.sum(self._rows.values.astype(np.float64) ** 2)) / len(self._rows)
        nearest = 2.0 ** round(-math.log2(mean_square)) if mean_square else 1.0
        return min(1e6, max(1e-9, nearest))

    def objective(self, rate: float) -> float:
        """The objective on the rows to judge by, after learning from the others at this rate."""
        config = self._config
        loss = losses.code(config.loss_name)
        weights = np.zeros(self._rows.columns, np.float32)
        intercept = np.zeros(1, np.float32)
        count = self._learned
        order = np.arange(count, dtype=np.uint32)
        plan = (schedules.code(config.schedule), rate, config.l2, self._intercept_share)
        with np.errstate(all="ignore"):
            kernels.learn(
                self._data, order, 0, count, 8, weights, intercept, loss, plan, (0.0, 0.0, 1.0)
            )
            left = schedules.SCHEDULES[config.schedule].left(float(count), 0.0, rate, config.l2)
            weights *= np.float32(left)
            size = len(self._rows)
            total, _ = kernels.evaluate(self._data, self._judged, size, weights, intercept[0], loss)
            value = 0.5 * config.l2 * kernels.squared_norm(weights) + total / (size - self._judged)
        return float(value) if np.isfinite(value) else float("inf")
