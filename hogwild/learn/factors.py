"""Matrix factorization: score = mean + b_u + b_i + <p_u, q_i>, learned from ratings.

The objective is the mean over the ratings of loss(score, value), plus 1 / ratings times the sum
over users and items of w (l2/2 |p|^2 + l1 |p|_1 + bias_l2/2 b^2). For a row with ratings, w is
their number (`weighted`, as in ALS-WR: Zhou, Wilkinson, Schreiber, Pan 2008) or else 1.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.computed import cached_property
from hogwild.config import FACTOR_BETA, Config
from hogwild.data.ids import UNKNOWN, Codes
from hogwild.data.ratings import Ratings, counts_of
from hogwild.errors import DataError
from hogwild.fingerprints import digest_of
from hogwild.kernels import blocks as sorting_kernels
from hogwild.kernels import factors as kernels
from hogwild.kernels.compile import Kernel, ready
from hogwild.learn.blocks import BANDS, Grid, Side, Sorting
from hogwild.learn.losses import FACTOR_LOSSES
from hogwild.learn.problem import Arrays, BlockPair, BlockProblem, Shown, Sums
from hogwild.learn.scale import Scale
from hogwild.learn.schedules import EPOCH_SCHEDULES
from hogwild.models.factors import FactorModel, targets_of
from hogwild.seeds import seed_of
from hogwild.threads import share_of

HOPELESS = 2.0  # times the first objective: no epoch at a good rate ends above it
TRIED = 1000  # ratings, about, from which the first objective is estimated

TRAIN, TEST, HELD_OUT = "train", "test", "held_out"
# The arrays that are learned: rows of factors, and for each row its bias and its rate
FACTORS = ("users", "user_sides", "items", "item_sides")
LEARNED = (*FACTORS, "mean")


class FactorProblem(BlockProblem):
    """The ratings to train on, to test on and to hold out, and the work of the workers."""

    work_name = "ratings"
    unit_name = "ratings"
    bands = BANDS
    most_workers = BANDS
    ours_alone = ("_ratings", "_row_counts", "_row_weights", "_begun", "_sorted_in", "notes")

    def __init__(self, ratings: Ratings, test: Ratings | None, config: Config) -> None:
        self.config = config
        self.name = ratings.name
        self.seed = config.seed
        self.notes: list[str] = []
        sets = {TRAIN: ratings}
        if config.early_stopping is not None:
            sets[TRAIN], sets[HELD_OUT] = ratings.split(config.early_stopping, config.seed)
            self.judge = "held_out_loss"
            if not len(sets[HELD_OUT]):
                raise DataError(
                    f"{self.name}: none of {len(ratings):,} ratings was held out; give a larger "
                    "early_stopping, or leave it out"
                )
        if test is not None:
            sets[TEST] = test
        if not len(sets[TRAIN]):
            raise DataError(f"{self.name} has no ratings to learn from")
        self._ratings = sets[TRAIN]
        self.units = self.work = len(self._ratings)
        values = {data: _targets(some, config.loss_name) for data, some in sets.items()}
        self._scale = Scale.of(values[TRAIN], config)
        ratings_a_row = self.units / math.sqrt(ratings.shape[0] * ratings.shape[1])
        usual = self._scale.l2(ratings_a_row) * (1.0 if config.weighted else ratings_a_row)
        self._l2 = usual if config.l2 is None else config.l2
        self._bias_l2 = self._scale.bias_l2 if config.bias_l2 is None else config.bias_l2
        self._width = kernels.width_of(config.rank)
        users, items = ratings.shape
        # One more row of zeros on each side, for the unknown users and items of a test
        shape = users + 1, items + 1
        self._grid = Grid(shape, self.units, 4 * self._width + 8, seed_of(self.seed, 1))
        self._sortings = {
            data: Sorting(self._grid, *self._codes(some), values[data], seed_of(self.seed, 2), data)
            for data, some in sets.items()
        }
        self._sorted_in: Arrays | None = None  # the shared arrays that have the sorted ratings
        self._hopeless = HOPELESS * (self._first_loss(values[TRAIN]) + self._first_penalty())
        self._hopeless += 0.5 * self._scale.loss  # where all values are equal
        self.shown = tuple(
            Shown(f"{data}_rmse", f"{data.replace('_', ' ')} RMSE", ".4f") for data in sets
        )
        self._begun: dict[str, npt.NDArray[np.bool_]] = {}  # rows whose factors came with a model

    @property
    def _learner(self) -> Kernel:
        bounded = self.config.l1 > 0 or self._nonnegative
        return kernels.learner(self._width, self.config.loss_name, self.config.weighted, bounded)

    @property
    def _evaluator(self) -> Kernel:
        return kernels.evaluator(self._width, self.config.loss_name)

    @property
    def _nonnegative(self) -> bool:
        return self.config.nonnegative or self.config.loss_name == "kl"

    def _first_loss(self, values: npt.NDArray[np.float32]) -> float:
        """The mean loss, about, without factors or with the first ones."""
        some = values[:: max(1, len(values) // TRIED)].astype(np.float64).tolist()
        value = FACTOR_LOSSES[self.config.loss_name].value
        if self.config.loss_name == "kl":  # a score of 0 is not allowed
            scores = [self._scale.average or 1.0]
        else:
            scores = [self._scale.mean, self._scale.average]
        return max(float(np.mean([value(score, given, 0.0) for given in some])) for score in scores)

    def _first_penalty(self) -> float:
        """The penalty of the first factors per rating, about."""
        least, greatest = self._first_factors()
        square = (least**2 + least * greatest + greatest**2) / 3
        size = max(abs(least), abs(greatest))
        rows = 2.0 if self.config.weighted else sum(self._ratings.shape) / self.units
        return rows * self.config.rank * (0.5 * self._l2 * square + self.config.l1 * size)

    def _codes(self, some: Ratings) -> tuple[Codes, Codes]:
        """The users and items of ratings, as training numbers them; unknown ones come last."""
        known = self._ratings.user_ids, self._ratings.item_ids
        if (some.user_ids, some.item_ids) == known:
            return some.users, some.items
        users, items = some.recoded(*known)
        unknown = int(np.count_nonzero((users == UNKNOWN) | (items == UNKNOWN)))
        if unknown:
            self.notes.append(
                f"{some.name}: {unknown:,} of {len(some):,} ratings involve users or items "
                "not in the training data; predictions use what is known"
            )
            users = np.where(users == UNKNOWN, np.uint32(len(known[0])), users)
            items = np.where(items == UNKNOWN, np.uint32(len(known[1])), items)
        return users, items

    # What the coordinator asks

    def describe(self) -> dict[str, Any]:
        users, items = self._ratings.shape
        return {"name": self.name, "users": users, "items": items, "ratings": self.units}

    def summary(self) -> list[str]:
        users, items = self._ratings.shape
        counted = "" if self.config.weighted else " (once a row)"
        l1 = f", l1 {self.config.l1:g}" if self.config.l1 else ""
        biases = f", bias_l2 {self._bias_l2:g}" if self.config.has_biases else ", no biases"
        sign = ", none negative" if self._nonnegative else ""
        return [
            f"{self.name}: {self.units:,} ratings of {items:,} items by {users:,} users",
            f"{self.config.rank} factors{sign}, {self.config.loss_name} loss, "
            f"l2 {self._l2:.4g}{biases}{l1}{counted}",
        ]

    def chosen(self) -> dict[str, Any]:
        return {
            "l2": self._l2,
            "bias_l2": self._bias_l2 if self.config.has_biases else None,
            "biases": self.config.has_biases,
            "nonnegative": self._nonnegative,
        }

    @property
    def model_bytes(self) -> int:
        ids = self._ratings.user_ids, self._ratings.item_ids
        return sum(len(some) * 4 * (self.config.rank + 1) + some.nbytes for some in ids)

    @property
    def effort(self) -> float:
        return self.work * self._width / 32

    def shared(self) -> dict[str, tuple[int, Any]]:
        wanted: dict[str, tuple[int, Any]] = {"mean": (1, np.float32)}
        for side in self._sides:
            wanted[side.factors] = side.size * self._width, np.float32
            wanted[side.beside] = side.size * 2, np.float32
        for sorting in self._sortings.values():
            wanted |= sorting.shared()
        return wanted

    def kernels(self) -> list[Kernel]:
        sorting = [sorting_kernels.count, sorting_kernels.sort, sorting_kernels.mix]
        return [self._learner, self._evaluator, *sorting, kernels.initialise]

    def prepare(self) -> None:
        """Does what need not be done by each worker."""
        super().prepare()
        ready(kernels.weighted_norms)
        self._shares  # noqa: B018

    def set_start(self, shared: Arrays, start: Any, do: Callable[[str], None]) -> None:
        """Sorts the ratings into blocks, once; draws the first factors or takes given ones."""
        for data, sorting in self._sortings.items() if self._sorted_in is not shared else ():
            do(f"count {data}")
            sorting.begin(shared)
            do(f"sort {data}")
            do(f"mix {data}")
        self._sorted_in = shared
        for name in LEARNED:
            shared[name][:] = 0
        for side in self._sides:
            shared[side.beside][1::2] = 1
        shared["mean"][0] = self._scale.mean
        if isinstance(start, dict):
            self._take(start, shared)
            return
        do("draw")
        if start is not None:
            self._take_model(start, shared)

    def state(self, shared: Arrays) -> Arrays:
        """What training can continue from, in the order of the ids."""
        found = {"mean": shared["mean"].copy()}
        for side in self._sides:
            rows = side.rows[:-1]
            whole = np.take(shared[side.factors].reshape(-1, self._width), rows, axis=0)
            found[side.factors] = whole[:, : self.config.rank].ravel()
            found[side.beside] = shared[side.beside].reshape(-1, 2)[rows].ravel()
        return found

    def _take(self, start: Arrays, shared: Arrays) -> None:
        for name, array in self.state(shared).items():
            if name not in start or len(start[name]) != len(array):
                raise DataError(
                    f"{self.name} needs {len(array):,} numbers for {name}; the state to continue "
                    f"from has {len(start.get(name, ())):,}. Use the same users, items and rank"
                )
        shared["mean"][:] = start["mean"]
        for side in self._sides:
            factors = start[side.factors].reshape(-1, self.config.rank)
            self._write(shared, side, side.rows[:-1], factors)
            shared[side.beside].reshape(-1, 2)[side.rows[:-1]] = start[side.beside].reshape(-1, 2)

    def _write(self, shared: Arrays, side: Side, rows: Any, factors: Any) -> None:
        shared[side.factors].reshape(-1, self._width)[rows, : self.config.rank] = factors

    def _take_model(self, start: FactorModel, shared: Arrays) -> None:
        """Writes the rows of the users and items that a model knows."""
        if start.rank != self.config.rank or start.loss != self.config.loss_name:
            raise DataError(
                f"the model to continue from has rank {start.rank} and the loss {start.loss}: "
                f"use the same, not {self.config.rank} and {self.config.loss_name}"
            )
        if not self.config.has_biases and (start.user_biases.any() or start.item_biases.any()):
            raise DataError("the model to continue from has biases: leave out biases=False")
        shared["mean"][0] = start.mean
        first_time = not self._begun  # later calls go back to the same model
        for side in self._sides:
            known, ours = (getattr(some, f"{side.role}_ids") for some in (start, self._ratings))
            codes = known.codes_of(ours)
            found = codes != UNKNOWN
            rows, codes = side.rows[:-1][found], codes[found]
            self._write(shared, side, rows, getattr(start, f"{side.role}_factors")[codes])
            shared[side.beside][0::2][rows] = getattr(start, f"{side.role}_biases")[codes]
            self._begun[side.role] = found
        if first_time:
            self._hopeless = HOPELESS * (self._hopeless + self._penalty(shared))

    def stage(self, shared: Arrays, stage: str, part: int, parts: int) -> None:
        verb, _, data = stage.partition(" ")
        if verb == "draw":
            self._draw(shared, part, parts)
            return
        sorting = self._sortings[data]
        for piece in range(part, sorting.pieces(verb), parts):
            getattr(sorting, verb)(piece, shared)

    def _draw(self, shared: Arrays, part: int, parts: int) -> None:
        least, greatest = map(np.float32, self._first_factors())
        shape = self._width, self.config.rank
        for number, side in enumerate(self._sides):
            begin, end = share_of(side.count - 1, parts, part)
            seed = np.uint64(seed_of(self.seed, 3, number))
            drawing = (least, greatest), seed, side.rows, begin, end
            kernels.initialise(shared[side.factors], shape, *drawing)

    def _first_factors(self) -> tuple[float, float]:
        return self._scale.first_factors(self.config.rank, self._nonnegative)

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self._grid.users, self._grid.items

    def find_rate(self) -> float:
        """A first rate, from the size of the values."""
        return self._scale.rate

    def rate(self, done: int, eta0: float) -> float:
        return eta0

    def factor(self, epoch: int) -> float:
        beta = FACTOR_BETA if self.config.beta is None else self.config.beta
        return float(EPOCH_SCHEDULES[str(self.config.schedule)].factor(epoch, beta))

    def learned(self, shared: Arrays) -> Arrays:
        return {name: shared[name] for name in LEARNED}

    def lasting_arrays(self, shared: Arrays, is_open: bool) -> Iterable[str]:
        return LEARNED

    def fingerprints(self) -> dict[str, str]:
        """Of the ratings, and of the ids of users and items."""
        ratings = self._ratings
        ids = ratings.user_ids.arrays(), ratings.item_ids.arrays()
        values = [] if ratings.values is None else [ratings.values]
        arrays = [ratings.users, ratings.items, *values, *ids[0].values(), *ids[1].values()]
        return {"data": digest_of(arrays)}

    def sets(self) -> list[str]:
        return list(self._sortings)

    def measured(self, shared: Arrays, sums: Sums) -> dict[str, float]:
        """The objective, and the mean loss and the RMSE on each set."""
        found = {"objective": self.online(shared, sums[TRAIN][0] / self.units)}
        for data, (loss, squares) in sums.items():
            size = max(1, self._sortings[data].size)
            found[f"{data}_loss"] = float(loss) / size
            found[f"{data}_rmse"] = math.sqrt(float(squares) / size)
        return found

    def online(self, shared: Arrays, mean_loss: float) -> float:
        return float(mean_loss) + self._penalty(shared)

    def _penalty(self, learned: Arrays) -> float:
        """The penalty, for each rating."""
        total = 0.0
        for side, weights in zip(self._sides, self._row_weights, strict=True):
            squares, sizes = kernels.weighted_norms(learned[side.factors], self._width, weights)
            total += 0.5 * self._l2 * squares + self.config.l1 * sizes
            biases = learned[side.beside][0::2].astype(np.float64)
            # No matrix product: numpy's threads would keep spinning on the cores of the workers
            total += 0.5 * self._bias_l2 * float(np.sum(weights * biases**2))
        return float(total) / self.units

    @cached_property
    def _row_weights(self) -> tuple[npt.NDArray[np.float32], ...]:
        """How often each row's penalty counts, in the order of the rows."""
        if self.config.weighted:
            return self._row_counts
        return tuple((count > 0).astype(np.float32) for count in self._row_counts)

    @cached_property
    def _row_counts(self) -> tuple[npt.NDArray[np.float32], ...]:
        found = tuple(np.zeros(side.size, np.float32) for side in self._sides)
        codes = self._ratings.users, self._ratings.items
        for side, some, counts in zip(self._sides, codes, found, strict=True):
            counts[side.rows] = counts_of(some, side.count)
        return found

    def went_wrong(self, objective: float, best: float) -> bool:
        """Whether the objective is worse than where training began."""
        return objective > self._hopeless

    def model(
        self, learned: Arrays, about: dict[str, Any], state: Arrays | None = None
    ) -> FactorModel:
        """A model with rows in the order of the ids; it keeps no view of the arrays."""
        about["penalty"] = self._penalty(learned)
        found = self.state(learned) if state is None else state
        given: dict[str, Any] = {}
        for side, counts in zip(self._sides, self._row_counts, strict=True):
            matrix = found[side.factors].reshape(-1, self.config.rank)
            # Without ratings, a row still has the factors that were drawn: they mean nothing
            idle = (counts[side.rows[:-1]] == 0) & ~self._begun.get(side.role, np.False_)
            if idle.any():
                matrix = matrix.copy()
                matrix[idle] = 0
            given[f"{side.role}_factors"] = matrix
            given[f"{side.role}_biases"] = found[side.beside][0::2]
            given[f"{side.role}_ids"] = getattr(self._ratings, f"{side.role}_ids")
        mean, loss = float(found["mean"][0]), self.config.loss_name
        return FactorModel(**given, mean=mean, loss=loss, about=about)

    # What the workers ask

    def learn(self, shared: Arrays, task: BlockPair, epoch: int, eta0: float) -> tuple[int, float]:
        blocks, starts = self._grid.task(*task), shared["train_starts"]
        loss, _ = self._visit(self._learner, shared, TRAIN, blocks, eta0)
        return int((starts[blocks + 1] - starts[blocks]).sum()), float(loss)

    def _visit(self, kernel: Kernel, shared: Arrays, data: str, blocks: Any, rate: float) -> Any:
        ratings = shared[f"{data}_ratings"]
        views = ratings.view(np.uint16), ratings.view(np.float32)
        factors = tuple(shared[name] for name in FACTORS)
        plan = self._plan(shared["mean"][0], rate)
        given = *views, shared[f"{data}_starts"], blocks
        return kernel(given, self._grid.shape, factors, self._shares, plan)

    @cached_property
    def _shares(self) -> tuple[npt.NDArray[np.float32], ...]:
        """One over each row's number of ratings, where a penalty counts once a row."""
        if self.config.weighted:
            return (NOTHING, NOTHING)
        return tuple(np.reciprocal(np.maximum(count, 1)) for count in self._row_counts)

    def _plan(self, mean: float, rate: float) -> tuple[np.float32, ...]:
        scale, config = self._scale, self.config
        adapts = EPOCH_SCHEDULES[str(config.schedule)].adapts
        plan = (
            mean,
            rate,
            scale.length if config.has_biases else 0.0,
            self._l2,
            self._bias_l2,
            scale.growth if adapts else 0.0,
            config.l1,
            0.0 if self._nonnegative else -np.inf,
        )
        return tuple(map(np.float32, plan))

    def parts(self, data: str) -> int:
        return BANDS * BANDS

    def evaluate(self, shared: Arrays, data: str, part: int) -> npt.NDArray[np.float64]:
        """The sums of the losses and of the squared errors of some ratings."""
        blocks = self._grid.task(*divmod(part, BANDS))
        return np.array(self._visit(self._evaluator, shared, data, blocks, 0.0))


NOTHING = np.empty(0, np.float32)


def _targets(ratings: Ratings, loss: str) -> npt.NDArray[np.float32]:
    """The values as the loss takes them; an error where it cannot take one."""
    if ratings.values is None:
        raise DataError(f"{ratings.name} has no values, only pairs; each rating needs one")
    return targets_of(ratings.values, loss, ratings.name)
