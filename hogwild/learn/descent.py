"""Coordinate descent on the columns of data in memory: the minimum with an L1 penalty.

    P(w, b) = l2/2 |w|^2 + l1 |w|_1 + 1/n sum of weight_i loss_i(<w, x_i> + b)

An iteration replaces the losses by a quadratic model, in which weights are set one after the other
to where the model is least, and goes on where the weights that are not 0 stay so with conjugate
gradients. Then it moves along the way that the model leads. After Yuan, Ho and Lin, "An improved
GLMNET for L1-regularized logistic regression", 2012.

Any numbers a_i with a sum of 0, times the rows' weights, prove a lower bound of the optimum:

    D(a) = 1/n sum of weight_i e_i(a_i) - 1/(2 l2) sum over columns of max(0, |z_j| - l1)^2,
    z = 1/n sum of weight_i a_i x_i

Without l2, no |z_j| may exceed l1. They are a share of minus the slopes at the present weights.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.kernels import columns as kernels
from hogwild.kernels.columns import Columns, Model
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import RowView, Span, view
from hogwild.learn.sets import Set
from hogwild.threads import share_of, side_by_side

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.uint32]
T = TypeVar("T")

SHARDS = 8  # of rows or columns; they do not depend on the number of threads
PART = 32_768  # rows of a part
MANY = 2_000_000  # non-zeros: a pass over them takes longer than starting a thread
# How near its minimum a model is left: this share of the distance at which it began, less where
# distances shrink faster
NEAR, NEAREST, FASTER = 0.1, 1e-3, 1.0
PASSES, PRODUCTS = 30, 60  # for a model, at most
# Conjugate gradients: from so many passes ahead on, where so small a share of signs changed last
FAR, FEW = 20, 0.05
ROUGHLY = 0.3
SHORTER = 1.0, 0.5, 0.25, 0.125  # shares of their way that are tried
SAFE = 0.3  # share of what is wanted: how near the next gap is aimed at
# Columns whose derivative is this share of l1 may get a weight in an iteration
MAYBE = 0.9
SUFFICIENT, HALVINGS = 0.01, 40  # of a step: the share of the decrease that is promised
BALANCED, ROUNDS = 1e-13, 30  # of the intercept: the sum of the slopes beside that of their sizes
RESIDUAL = 2.0  # times the intercept: how much larger that of the optimum may be
ROUNDING, NOISE = 1e-12, 1e-14  # shares of the objective: of a proof, and of two next to each other
GOLDEN = (math.sqrt(5) - 1) / 2
SHARES = 10  # that are tried for the lower bound with an l2


class Look(NamedTuple):
    """What is known at some weights.

    Attributes:
        objective: at these weights.
        bound: a lower bound of the optimum, from the slopes at these weights.
        distance: the sum over the weights of how far derivatives are from those of an optimum.
    """

    objective: float
    bound: float
    distance: float


class Descent:
    """Weights on their way to the optimum.

    Attributes:
        weights: in double precision, with the intercept behind them.
        work: the values of columns that were visited so far.
        threads: that may be used.
    """

    def __init__(
        self,
        loss: str,
        data: Set,
        columns: int,
        penalties: tuple[float, float],
        intercept: bool,
        parameter: float = 0.0,
        threads: int = 1,
    ) -> None:
        self.threads, self.work = threads, 0
        self._loss, self._data, self._size = loss, data, len(data)
        self._l1, self._l2 = (self._size * penalty for penalty in penalties)
        self._intercept, self._parameter = intercept, parameter
        self._columns = columns_of(data.view, columns, intercept, threads)
        self.lengths = np.diff(self._columns.bounds.astype(np.int64))
        self.weights = np.zeros(columns + 1)
        self._scores, self._moved = np.zeros((2, self._size))
        self._derivatives, self._curves = np.zeros((2, columns + 1))
        self._chosen = np.empty(columns + 1, np.uint32)
        bends = np.zeros(self._size)
        free = columns if intercept else columns + 1
        self._model = view(Model, np.zeros(self._size), bends, self._l1, self._l2, free)
        self._bends = bends
        self._losses = 0.0
        self._distances = math.inf, math.inf  # of the last two iterations
        self._seed = 0
        self.start(self.weights)

    @staticmethod
    def kernels(loss: str, weighted: bool) -> list[Kernel]:
        """All that is called."""
        plain = [kernels.count_values, kernels.put_into_columns, kernels.add_columns]
        plain += [kernels.products_of, kernels.curve_along, kernels.differentiate]
        plain += [kernels.choose, kernels.excess, kernels.descend]
        made = kernels.modeler, kernels.losses_along, kernels.dual_along
        return [*plain, *(make(loss, weighted) for make in made)]

    def start(self, weights: npt.NDArray[Any]) -> None:
        """Begins at some weights."""
        self.weights[:] = weights
        self._distances = math.inf, math.inf
        self._scores[:] = self._products(self.weights)
        self._make_model()

    # Where it is

    def look(self) -> Look:
        """Looks at all columns: the objective, and a lower bound of the optimum."""
        columns, model = self._columns, self._model
        given = model, self.weights, self._derivatives
        found = self._over_columns(lambda span: kernels.differentiate(columns, span, *given))
        self.work += len(columns.rows)
        largest, distance = max(one for one, _ in found), sum(other for _, other in found)
        self._distances = self._distances[1], distance
        objective = (self._losses + self._penalty(self.weights)) / self._size
        return Look(objective, self._bound(largest) - ROUNDING * objective, distance)

    def rounded(self) -> tuple[Floats, Floats, float]:
        """The weights in single precision, the scores of the rows, and the sum of the losses."""
        weights = self.weights.astype(np.float32)
        moves = self._products(weights - self.weights)
        losses = self._losses_at(moves, 1.0)
        moves += self._scores
        return weights, moves.astype(np.float32), losses

    def _penalty(self, weights: Doubles) -> float:
        weights = weights[:-1]
        square = float(np.einsum("i,i", weights, weights)) if self._l2 else 0.0
        return self._l1 * float(np.abs(weights).sum()) + 0.5 * self._l2 * square

    def _bound(self, largest: float) -> float:
        """The best lower bound from a share of the slopes; their largest product is given."""
        feasible = min(1.0, self._l1 / largest) if largest else 1.0
        best = self._dual(feasible)
        if self._l2 and feasible < 1.0:
            best = max(best, self._dual(1.0), highest(self._dual, feasible, 1.0))
        if self._intercept:
            best -= RESIDUAL * abs(self.weights[-1] * self._derivatives[-1])
        return best / self._size

    def _dual(self, share: float) -> float:
        kernel = kernels.dual_along(self._loss, self._data.weighted)
        given = self._model.slopes, share, self._parameter
        total = sum(self._over_rows(lambda span: kernel(self._data.view, span, *given)))
        if not self._l2:
            return float(total)
        above = kernels.excess(self._derivatives[:-1], self._model, share)
        return float(total) - above / (2.0 * self._l2)

    def _make_model(self) -> None:
        """Makes the model around the present scores, with the best intercept for them."""
        kernel = kernels.modeler(self._loss, self._data.weighted)

        def made() -> Doubles:
            given = self._scores, self._parameter, self._model.slopes, self._bends
            parts = self._over_rows(lambda span: kernel(self._data.view, span, *given))
            found: Doubles = np.sum(parts, axis=0)
            return found

        losses, slope, sizes, bend = made()
        for _ in range(ROUNDS * self._intercept):
            if abs(slope) <= BALANCED * sizes or bend <= 0.0:
                break
            step, before = -slope / bend, losses
            self._move_intercept(step)
            losses, slope, sizes, bend = made()
            while losses > before + ROUNDING * abs(before) and abs(step) > BALANCED:
                step *= 0.5
                self._move_intercept(-step)
                losses, slope, sizes, bend = made()
        self._losses = float(losses)

    def _move_intercept(self, step: float) -> None:
        self.weights[-1] += step
        self._scores += step

    # How it moves

    def improve(self, enough: float = 0.0, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """Moves to about the minimum of the model; to be called after a look.

        Returns whether the objective became smaller.

        Args:
            enough: the share of the present gap that ends the training.
            goes_on: says whether to; else what was reached by then is taken.
        """
        chosen = self._candidates()
        new = self.weights.copy()
        self._solve(chosen, new, self._share(enough) * self._distances[1], goes_on)
        start = self.weights[chosen]
        change = new[chosen] - start
        self._moved[:] = 0.0
        self._add(chosen, change, self._moved)
        step = self._step(chosen, change)
        if not step:
            return False
        # Zeros are exact
        self.weights[chosen] = new[chosen] if step == 1.0 else start + step * change
        self._scores += step * self._moved
        self._make_model()
        return True

    def _candidates(self) -> Numbers:
        """The columns that may move: at the start those that must, later some more."""
        share = MAYBE if self.weights.any() else 1.0
        columns = len(self.weights) - (not self._intercept)
        given = self._derivatives[:columns], self.weights, self._model
        return self._chosen[: kernels.choose(*given, share * self._l1, self._chosen)]

    def _share(self, enough: float) -> float:
        """How near its minimum the model is worth to be solved."""
        before, now = self._distances
        faster = (now / before) ** FASTER if math.isfinite(before) else NEAR
        return min(NEAR, max(NEAREST, SAFE * enough, faster))

    def _solve(
        self, chosen: Numbers, new: Doubles, wanted: float, goes_on: Callable[[], bool]
    ) -> None:
        """Moves weights until their distances from the minimum of the model are small."""
        self._curves[chosen] = kernels.NOT_KNOWN
        active, limit, before = len(chosen), math.inf, math.inf
        for _ in range(PASSES):
            if not goes_on():
                return
            self._seed += 1
            given = chosen, active, limit, np.uint64(self._seed), new, self._curves
            self.work += int(self.lengths[chosen[:active]].sum())
            largest, distance, changed, left = kernels.descend(self._columns, self._model, *given)
            if distance <= wanted:
                if active == len(chosen):
                    return
                active, limit, before = len(chosen), math.inf, math.inf
                continue
            active, limit = left, largest or math.inf
            if changed <= FEW * left and _is_far(before, distance, wanted):
                self._solve_smooth(chosen[:active], new, 0.5 * wanted, changed > 0, goes_on)
            before = distance

    def _solve_smooth(
        self, chosen: Numbers, new: Doubles, wanted: float, rough: bool, goes_on: Callable[[], bool]
    ) -> None:
        """Conjugate gradients on the weights that are not 0 (Hestenes and Stiefel, 1952)."""
        chosen = chosen[(new[chosen] != 0.0) | (chosen == self._model.free)]
        start, penalized = new[chosen], chosen != self._model.free
        left = np.empty(len(chosen))
        kernels.products_of(self._columns, chosen, self._model.slopes, left)
        left = -(left + (self._l2 * start + self._l1 * np.sign(start)) * penalized)
        curves = self._curves[chosen]
        curves[curves == kernels.NOT_KNOWN] = np.inf
        change, direction, out = np.zeros((3, len(chosen)))
        old = math.inf
        wanted = max(wanted, ROUGHLY * float(np.abs(left).sum())) if rough else wanted
        for _ in range(PRODUCTS):
            if np.abs(left).sum() <= wanted or not goes_on():
                break
            scaled = left / curves
            length = float(left @ scaled)
            direction = scaled + length / old * direction
            self.work += 2 * int(self.lengths[chosen].sum())
            kernels.curve_along(self._columns, chosen, self._model, direction, self._moved, out)
            curve = float(direction @ out)
            if not curve > 0.0:
                break
            change += length / curve * direction
            left -= length / curve * out
            old = length
        self._go(chosen, start, change, new)

    def _go(self, chosen: Numbers, start: Doubles, change: Doubles, new: Doubles) -> None:
        """Moves weights of the model along a change; where their signs would change, to 0.

        As far as the model becomes smaller.
        """
        penalized = chosen != self._model.free
        signs, l2 = np.sign(start) * penalized, 0.5 * self._l2 * penalized
        for share in SHORTER:
            there = start + share * change
            there[there * signs < 0.0] = 0.0
            self._moved[:] = 0.0
            self._add(chosen, there - start, self._moved)
            pull = self._bends * self._moved
            gain = float((self._model.slopes + 0.5 * pull) @ self._moved)
            gain += float((self._l1 * signs + l2 * (there + start)) @ (there - start))
            if gain <= 0.0:
                new[chosen] = there
                self._model.slopes[:] += pull
                return

    def _step(self, chosen: Numbers, change: Doubles) -> float:
        """How far to go along a change of weights: all of it, or half, ...; 0: it does not help."""
        start, penalized = self.weights[chosen], chosen != self._model.free

        def change_of_penalty(step: float) -> float:
            old, new = start[penalized], (start + step * change)[penalized]
            square = (new - old) @ (new + old)
            return float(self._l1 * (np.abs(new) - np.abs(old)).sum() + 0.5 * self._l2 * square)

        promised = float(self._derivatives[chosen] @ change) + change_of_penalty(1.0)
        if not promised < 0.0:
            return 0.0
        for halvings in range(HALVINGS):
            step = 0.5**halvings
            found = self._losses_at(self._moved, step) - self._losses + change_of_penalty(step)
            if found <= SUFFICIENT * step * promised + NOISE * self._losses:
                return step
        return 0.0

    # Sums

    def _losses_at(self, moves: Doubles, step: float) -> float:
        kernel = kernels.losses_along(self._loss, self._data.weighted)
        given = self._scores, moves, step, self._parameter
        return float(sum(self._over_rows(lambda span: kernel(self._data.view, span, *given))))

    def _products(self, weights: Doubles) -> Doubles:
        """The products of rows and weights."""
        found = np.zeros(self._size)
        chosen = np.flatnonzero(weights).astype(np.uint32)
        self._add(chosen, weights[chosen], found)
        return found

    def _add(self, chosen: Numbers, factors: Doubles, out: Doubles) -> None:
        kernels.add_columns(self._columns, chosen, factors, out)

    def _over_rows(self, work: Callable[[Any], T]) -> list[T]:
        count = max(1, min(SHARDS, self._size // PART))
        return _side_by_side(work, self._size, count, self.threads)

    def _over_columns(self, work: Callable[[Any], T]) -> list[T]:
        """What `work` returns for shards of columns with about as many values each."""
        bounds = self._columns.bounds
        count = SHARDS if len(self._columns.rows) >= MANY else 1
        ends = np.searchsorted(bounds, np.linspace(0, int(bounds[-1]), count + 1)[1:-1])
        places = [0, *ends.tolist(), len(bounds) - 1]
        spans = [view(Span, *pair) for pair in pairwise(places)]
        return side_by_side([partial(work, span) for span in spans], self.threads)


def columns_of(rows: RowView, columns: int, intercept: bool, threads: int = 1) -> Columns:
    """The columns of rows; with an intercept, one of ones behind them, else one without values."""
    size = len(rows.begins)
    nonzeros = int((rows.ends - rows.begins).sum())
    count = SHARDS if nonzeros >= MANY and nonzeros >= SHARDS * columns else 1

    def counted(span: Any) -> npt.NDArray[np.uint64]:
        found = np.zeros(columns, np.uint64)
        kernels.count_values(rows, span, found)
        return found

    counts = np.array(_side_by_side(counted, size, count, threads))
    bounds = np.zeros(columns + 2, np.uint64)
    np.cumsum(counts.sum(axis=0), out=bounds[1:-1])
    bounds[-1] = nonzeros + size * intercept
    # Where each shard of rows begins in each column
    places = np.cumsum(counts, axis=0) - counts + bounds[:-2]
    out_rows, out_values = (
        np.empty(int(bounds[-1]), np.uint32),
        np.empty(int(bounds[-1]), np.float32),
    )
    numbers = iter(range(count))

    def put(number: int, span: Any) -> None:
        kernels.put_into_columns(rows, span, places[number], out_rows, out_values)

    tasks = [
        partial(put, number, span)
        for number, span in zip(numbers, _spans(size, count), strict=True)
    ]
    side_by_side(tasks, threads)
    out_rows[nonzeros:] = np.arange(len(out_rows) - nonzeros)
    out_values[nonzeros:] = 1.0
    return view(Columns, bounds, out_rows, out_values)


def _is_far(before: float, now: float, wanted: float) -> bool:
    """Whether many more passes are needed, where distances shrink as they did in the last one."""
    if not math.isfinite(before):
        return False
    return now >= before or math.log(now / wanted) > FAR * math.log(before / now)


def highest(function: Callable[[float], float], least: float, most: float) -> float:
    """About the highest value of a concave function between two places (golden section)."""
    left, right = (most - GOLDEN * (most - least)), (least + GOLDEN * (most - least))
    at_left, at_right = function(left), function(right)
    for _ in range(SHARES):
        if at_left >= at_right:
            most, right, at_right = right, left, at_left
            left = most - GOLDEN * (most - least)
            at_left = function(left)
        else:
            least, left, at_left = left, right, at_right
            right = least + GOLDEN * (most - least)
            at_right = function(right)
    return max(at_left, at_right)


def _spans(size: int, count: int) -> list[Any]:
    return [view(Span, *share_of(size, count, number)) for number in range(count)]


def _side_by_side(work: Callable[[Any], T], size: int, count: int, threads: int) -> list[T]:
    return side_by_side([partial(work, span) for span in _spans(size, count)], threads)
