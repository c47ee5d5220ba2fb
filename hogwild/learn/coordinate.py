"""The solver `coordinate`: an L1 penalty, on the columns of data in memory, with a proved gap.

    P(w, b) = l2/2 |w|^2 + l1 |w|_1 + 1/n sum of weight_i loss_i(<w, x_i> + b)

An epoch replaces the losses by a quadratic model. It sets one weight after the other to the minimum
of the model; once the signs of the weights hardly change, conjugate gradients help. Then a line
search moves all weights towards the minimum of the model. There is no learning rate. An epoch of
stochastic gradient descent comes first. After Yuan, Ho and Lin, "An improved GLMNET for
L1-regularized logistic regression", 2012.

Any dual variables a_i prove a lower bound of the optimum, if with an intercept the sum of
weight_i a_i is 0 (`learn/duals.py` has e):

    D(a) = 1/n sum of weight_i e(a_i) - 1/(2 l2) sum over columns of max(0, |z_j| - l1)^2,
    z = 1/n sum of weight_i a_i x_i

Without l2, no |z_j| may exceed l1. Here they are a share of minus the slopes.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels import columns as kernels
from hogwild.kernels import passes
from hogwild.kernels.columns import Columns, Model
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import view
from hogwild.lasting import Lasting, Saved, copied
from hogwild.learn.columns import ByColumn, column_spans, over, row_spans
from hogwild.learn.conjugate import Progress, conjugate_gradients
from hogwild.learn.first_epochs import FirstEpochs
from hogwild.learn.heads import Heads
from hogwild.learn.iterated import Iterated, IteratedSolver
from hogwild.learn.problem import Doubles, Passed
from hogwild.learn.proof import Proof
from hogwild.learn.sets import Set
from hogwild.parallel.memory import Arrays

Numbers = npt.NDArray[np.uint32]
T = TypeVar("T")

# A model is solved to this share of its first distance, or less where distances shrink faster, and
# to no less than this share of what ends the training
NEAR, NEAREST, SAFE = 0.3, 1e-3, 0.3
# Nearer from then on, if a single pass seemed enough but distances stayed above this share
NEARER, SLOW = 0.25, 0.5
PASSES, PRODUCTS = 30, 60  # for a model, at most
# Conjugate gradients are used if this many more passes seem to be needed, and if in the last pass
# at most this share of the weights changed sign. They end at this share of the distance if any did
FAR, FEW, ROUGHLY = 20, 0.05, 0.3
SHORTER = 1.0, 0.5, 0.25  # shares of their way that are tried
# With at most this many columns the Hessian may be made. For each value that a row has in them,
# this takes as long as this many passes (measured: 0.3 to 0.6)
MOST_DENSE, DENSE = 1000, 0.4
# Descent on it, between two solutions for the weights that are not 0: passes, additions, rounds
DENSE_PASSES, DENSE_WORK, DENSE_ROUNDS = 1000, 50_000_000, 20
RIDGE = 1e-11  # beside a diagonal of ones
FLAT = 1e-10  # of the curvature along the axes: less than that is none
MAYBE = 0.95  # share of l1: columns with larger derivatives may get a weight in an epoch
SUFFICIENT, HALVINGS = 0.01, 40  # of a step: the share of the promised decrease that is enough
BALANCED, ROUNDS = 1e-11, 30  # of the intercept: the sum of the slopes beside that of their sizes
RESIDUAL = 2.0  # times the intercept: how much larger that of the optimum may be
# Shares of the objective: by which a bound may be wrong (the kernels' log1p is exact to
# 1e-10), and by which a sum may differ from the next one
ROUNDING, NOISE = 3e-10, 1e-13
RISES = 1e-9  # share of the losses: by which a step of the intercept may be too long
PROGRESS = 0.9  # share of the gap before: one that is larger is no progress
BYTES = 8  # of a value and its row
GOLDEN, SHARES = (math.sqrt(5) - 1) / 2, 10


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


class CoordinateDescent(IteratedSolver):
    """Coordinate descent on columns."""

    def outcome(self, columns: int, nonzeros: float) -> "CoordinateProof":
        given = self._config, self._heads, self._data
        return CoordinateProof(*given, columns, FirstEpochs(*given, self.intercept_share))


class CoordinateProof(Iterated):
    """Weights in double precision, many of them 0, and a lower bound of the optimum."""

    lasting = (*Iterated.lasting, "_begun", "_looked", "_is_done")

    def __init__(
        self, config: Config, heads: Heads, data: Set, columns: int, first: FirstEpochs
    ) -> None:
        super().__init__(config)
        self._heads, self._data, self._columns = heads, data, columns
        self._first = first
        self._threads = 1
        self._begun = self._looked = self._is_done = False
        self.copied = BYTES * (data.nonzeros + config.intercept * len(data))
        self._by_column = ByColumn(data.view, columns, config.intercept)
        self._descent: Descent | None = None

    def share(self, other: Proof) -> None:
        assert isinstance(other, CoordinateProof)
        self._by_column = other._by_column

    def use(self, threads: int) -> None:
        self._threads = threads

    def kernels(self, alone: bool) -> list[Kernel]:
        return [*Descent.kernels(self._heads, self._data.weighted), *self._first.kernels]

    def suits(self, start: Arrays) -> Arrays:
        """The weights, whatever solver they come from."""
        return {"stored": start.get("weights", start["stored"])}

    def begin(self, shared: Arrays, start: Arrays, at_zero: float) -> None:
        """Takes the weights to go on from."""
        self._scale = at_zero if math.isfinite(at_zero) else 0.0
        self._objective, self.bound = math.inf, -math.inf
        self._begun, self._looked, self._is_done = False, False, False

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        super().restore(shared, learned, last)
        self.begin(shared, last, self._scale)

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        descent = self._started(shared["stored"], passed)
        goes_on = True
        if not self._looked:
            self._look(descent)
            goes_on = passed(1.0)
        loss = descent.losses
        if goes_on and self.reason is None:
            self._improve(descent, passed)
        shared["stored"][:] = descent.weights
        return loss

    def _started(self, stored: npt.NDArray[np.float32], passed: Passed) -> "Descent":
        descent = self._made()
        descent.threads = self._threads
        if not self._begun:
            descent.start(np.zeros(len(stored)))
            # Where targets are far from 0, a gap is not small because the intercept made it so
            self._scale = min(self._scale, descent.losses)
            if stored.any():
                descent.start(stored)
            else:
                self._begin_by_descent(descent, len(stored), passed)
            self._begun = True
        return descent

    def _made(self) -> "Descent":
        """The columns are made when they are first needed."""
        if self._descent is None:
            columns = self._by_column.get(self._threads)
            config, given = self._config, (self._heads, self._data, columns)
            penalties = config.l1, float(config.l2 or 0.0)
            more = config.intercept, config.loss_value, self._threads
            self._descent = Descent(*given, penalties, *more)
        return self._descent

    def saved(self) -> Saved:
        return super().saved() | {"descent": copied(self._descent) if self._begun else None}

    def put_back(self, saved: Saved) -> None:
        super().put_back(saved)
        if self._begun:
            self._made().put_back(saved["descent"])

    def _begin_by_descent(self, descent: "Descent", size: int, passed: Passed) -> None:
        """Begins with the weights of an epoch of descent, if they are better than zeros."""
        before, weights = descent.objective, np.zeros(size, np.float32)
        self._first.learn_sparse(weights, self.fetching, passed)
        if np.isfinite(weights).all():
            descent.start(weights)
        if not descent.objective < before:
            descent.start(np.zeros(size))

    def _look(self, descent: "Descent") -> None:
        found = descent.look()
        self._objective, self.bound = found.objective, max(self.bound, found.bound)
        self._looked = True

    def _improve(self, descent: "Descent", passed: Passed) -> None:
        """Makes a step, and measures the result unless the target is reached."""
        before, gap = self._objective, self._objective - self.bound
        target = self._config.target
        enough = self._config.tol * self._size / gap if target is None and gap > 0.0 else 0.0
        descent.improve(passed, enough)
        self._objective, self._looked = descent.objective, False
        if target is None or self._objective > target:
            self._look(descent)
            passed(1.0)
            stands = self._objective >= before - ROUNDING * abs(before)
            remains = self._objective - self.bound
            self._is_done = stands and (remains <= 0.0 or remains > PROGRESS * gap)

    def prove(self, shared: Arrays) -> Doubles:
        """The sums for the weights; before a claim, for those in single precision."""
        assert self._descent is not None
        return self._descent.sums(None if self.reason is None else self.settle(shared))

    def settle(self, shared: Arrays) -> Doubles:
        """Takes the objective of the weights in single precision; returns how far scores move."""
        assert self._descent is not None
        moves, self._objective = self._descent.rounded()
        return moves

    @property
    def _stuck(self) -> str | None:
        return "stuck" if self._is_done else None


class Descent(Lasting):
    """Weights on their way to the optimum.

    Attributes:
        weights: in double precision, with the intercept behind them.
        losses: the mean loss.
        threads: that may be used.
    """

    lasting = (
        *("weights", "losses", "_scores", "_derivatives", "_distances", "_seed"),
        *("_near", "_single", "_dense"),
    )

    def __init__(
        self,
        heads: Heads,
        data: Set,
        columns: Columns,
        penalties: tuple[float, float],
        intercept: bool,
        parameter: float = 0.0,
        threads: int = 1,
    ) -> None:
        self.threads = threads
        self._data, self._size = data, len(data)
        self._heads, self._parameter, self._intercept = heads, parameter, intercept
        given = heads.loss, data.weighted
        self._modeler, self._along = kernels.modeler(*given), passes.along(*given)
        self._dual_along = kernels.dual_along(*given)
        self._errors = passes.errors(heads.loss, heads.kind, data.weighted)
        self._columns = columns
        self._row_spans, self._column_spans = row_spans(self._size), column_spans(columns)
        count = len(columns.bounds) - 1  # with that of the intercept
        self.weights = np.zeros(count)
        self._derivatives, self._curves = np.zeros((2, count))
        self._chosen = np.empty(count, np.uint32)
        self._places = np.zeros(count, np.uint32)
        self._scores, self._moves, self._pulls, self._bends = np.zeros((4, self._size))
        # Penalties as those of the sum of the losses
        self._l1, self._l2 = (self._size * penalty for penalty in penalties)
        free = count - intercept
        self.losses, self._distances, self._seed = 0.0, (math.inf, math.inf), 0
        self._near, self._single, self._dense = NEAR, False, False
        slopes = np.zeros(self._size)
        self._model = view(Model, slopes, self._bends, self._l1, self._l2, free)

    @staticmethod
    def kernels(heads: Heads, weighted: bool) -> list[Kernel]:
        """All that is called."""
        given = heads.loss, weighted
        made = kernels.modeler(*given), passes.along(*given), kernels.dual_along(*given)
        plain = [kernels.count_values, kernels.put_into_columns, kernels.add_columns]
        plain += [kernels.products_of, kernels.curve_along, kernels.differentiate]
        plain += [kernels.choose, kernels.excess, kernels.descend]
        plain += [kernels.add_hessian, kernels.descend_densely]
        plain += [passes.inner, passes.advance, passes.turn]
        return [*plain, *made, passes.errors(heads.loss, heads.kind, weighted)]

    def start(self, weights: npt.NDArray[Any]) -> None:
        """Begins at some weights."""
        self.weights[:] = weights
        self._distances = math.inf, math.inf  # of the last two looks
        self._seed = 0
        self._near, self._single = NEAR, False  # whether one pass over the model seemed enough
        self._dense = False  # whether the Hessian was made
        self._scores[:] = self._products(self.weights)
        self._make_model()

    def put_back(self, saved: Saved) -> None:
        super().put_back(saved)
        self._modeled()

    # Where it is

    @property
    def objective(self) -> float:
        return self.losses + self._penalty(self.weights) / self._size

    def look(self) -> Look:
        """Looks at all columns: the objective, and a lower bound of the optimum."""
        columns, given = self._columns, (self._model, self.weights, self._derivatives)
        found = self._over_columns(lambda span: kernels.differentiate(columns, span, *given))
        largest, distance = max(one for one, _ in found), sum(other for _, other in found)
        self._distances = self._distances[1], distance
        bound = self._bound(largest) - ROUNDING * abs(self.objective)
        return Look(self.objective, bound, distance)

    def rounded(self) -> tuple[Doubles, float]:
        """How far the scores are from those of the weights in single precision; their objective."""
        weights = self.weights.astype(np.float32).astype(np.float64)
        moves = self._products(weights - self.weights)
        return moves, self._loss_at(moves, 1.0) + self._penalty(weights) / self._size

    def sums(self, moves: Doubles | None = None) -> Doubles:
        """The sums over the rows of losses and errors, where scores have moved."""
        scores = self._scores if moves is None else self._scores + moves
        loss = self.losses if moves is None else self._loss_at(moves, 1.0)
        errors = self._over_rows(lambda span: self._errors(self._data.view, span, scores, 0.0))
        return np.array([loss * self._size, *np.sum(errors, axis=0)])

    def _penalty(self, weights: Doubles) -> float:
        """Of the sum of the losses."""
        weights = weights[:-1]
        square = float(passes.inner(weights, weights)) if self._l2 else 0.0
        return self._l1 * float(np.abs(weights).sum()) + 0.5 * self._l2 * square

    def _bound(self, largest: float) -> float:
        """The best lower bound from a share of the slopes; their largest product is given."""
        feasible = min(1.0, self._l1 / largest) if largest else 1.0
        best = self._dual(feasible)
        if self._l2 and feasible < 1.0:
            best = max(best, self._dual(1.0), highest(self._dual, feasible, 1.0))
        if self._intercept:
            best -= RESIDUAL * abs(self.weights[-1] * self._derivatives[-1])
        return float(best) / self._size

    def _dual(self, share: float) -> float:
        """The dual objective at a share of minus the slopes, as that of the sum of the losses."""
        given = self._model.slopes, share, self._parameter
        found = sum(self._over_rows(lambda span: self._dual_along(self._data.view, span, *given)))
        if self._l2:
            columns = self._derivatives[:-1]
            found -= kernels.excess(columns, self._model, share) / (2.0 * self._l2)
        return float(found)

    def _make_model(self) -> None:
        """Makes the model around the present scores, with the best intercept for them."""
        losses, slope, sizes, bend = self._modeled()
        for _ in range(ROUNDS * self._intercept):
            if abs(slope) <= BALANCED * sizes or bend <= 0.0:
                break
            step, before = -slope / bend, losses
            self._move_intercept(step)
            losses, slope, sizes, bend = self._modeled()
            while losses > before + RISES * abs(before) and abs(step) > BALANCED:
                step *= 0.5
                self._move_intercept(-step)
                losses, slope, sizes, bend = self._modeled()
        self.losses = losses / self._size

    def _modeled(self) -> tuple[float, ...]:
        """Makes the model; the sums over the rows that its kernel returns."""
        given = self._scores, self._parameter, self._model.slopes, self._bends
        parts = self._over_rows(lambda span: self._modeler(self._data.view, span, *given))
        return tuple(sum(some) for some in zip(*parts, strict=True))

    def _move_intercept(self, step: float) -> None:
        self.weights[-1] += step
        self._scores += step

    # How it moves

    def improve(self, passed: Passed = lambda share: True, enough: float = 0.0) -> bool:
        """Moves to about the minimum of the model; to be called after a look.

        Args:
            passed: is told of each pass, as a share of all values, and says whether to go on.
            enough: the share of the present gap that ends the training.

        Returns:
            Whether the objective became smaller.
        """
        chosen, new = self._candidates(), self.weights.copy()
        self._solve(chosen, new, self._share(enough) * self._distances[1], passed)
        start = self.weights[chosen]
        change = new[chosen] - start
        self._move(chosen, change)
        step = self._step(chosen, change)
        if not step:
            self._make_model()
            return False
        # Zeros are exact
        self.weights[chosen] = new[chosen] if step == 1.0 else start + step * change
        self._scores += step * self._moves
        self._make_model()
        return True

    def _candidates(self) -> Numbers:
        """The columns that may move: at the start those that have to, later some more."""
        share = MAYBE if self.weights.any() else 1.0
        columns = len(self.weights) - (not self._intercept)
        given = self._derivatives[:columns], self.weights, self._model
        return self._chosen[: kernels.choose(*given, share * self._l1, self._chosen)]

    def _share(self, enough: float) -> float:
        """How near its minimum it is worth solving the model."""
        before, now = self._distances
        faster = now / before if 0.0 < before < math.inf else NEAR
        if self._single and now > SLOW * before:
            self._near *= NEARER
        self._single = False
        return min(self._near, max(NEAREST, SAFE * enough, faster))

    def _solve(self, chosen: Numbers, new: Doubles, wanted: float, passed: Passed) -> None:
        """Moves weights until their distances from the minimum of the model are small."""
        self._curves[chosen] = kernels.NOT_KNOWN
        active, limit, before = len(chosen), math.inf, math.inf
        for number in range(PASSES):
            self._seed += 1
            given = chosen, active, limit, np.uint64(self._seed), new, self._curves
            visited = self._share_of(chosen[:active])
            largest, distance, changed, left = kernels.descend(self._columns, self._model, *given)
            if not passed(visited):
                return
            if distance <= wanted:
                if active == len(chosen):
                    self._single = number == 0
                    return
                active, limit, before = len(chosen), math.inf, math.inf
                continue
            active, limit = left, largest or math.inf
            ahead = _passes_ahead(before, distance, wanted)
            few = chosen if len(chosen) <= MOST_DENSE else chosen[:active]
            cost = self._cost_of_hessian(few)
            if ahead > cost or (self._dense and cost < math.inf):
                self._dense = True
                self._solve_densely(few, new, min(wanted, NEAREST * distance), passed)
                if len(few) == len(chosen):
                    return
            elif changed <= FEW * left and ahead > FAR:
                near = max(0.5 * wanted / distance, ROUGHLY if changed else 0.0)
                self._solve_smooth(chosen[:active], new, near, passed)
            before = distance

    def _share_of(self, chosen: Numbers) -> float:
        """The share of all values that some columns have."""
        bounds = self._columns.bounds
        return float((bounds[chosen + 1] - bounds[chosen]).sum()) / max(1, int(bounds[-1]))

    def _cost_of_hessian(self, chosen: Numbers) -> float:
        """How many passes over some columns take as long as making the Hessian of the model."""
        if len(chosen) > MOST_DENSE:
            return math.inf
        return DENSE * self._share_of(chosen) * int(self._columns.bounds[-1]) / self._size

    def _solve_densely(self, chosen: Numbers, new: Doubles, wanted: float, passed: Passed) -> None:
        """Coordinate descent on the Hessian of the model, where a pass takes next to no time."""
        penalized = chosen != self._model.free
        slopes, start = np.empty(len(chosen)), new[chosen]
        kernels.products_of(self._columns, chosen, self._model.slopes, slopes)
        hessian, weights = self._hessian(chosen), new[chosen]
        l1, l2 = self._l1 * penalized, self._l2 * penalized
        most = max(1, min(DENSE_PASSES, DENSE_WORK // len(chosen) ** 2))
        for _ in range(DENSE_ROUNDS):
            given = l1, l2, 0.5 * wanted, most, slopes, weights
            if kernels.descend_densely(hessian.ravel(), *given) <= wanted:
                break
            free = np.flatnonzero((weights != 0.0) | ~penalized)
            pull = slopes[free] + l1[free] * np.sign(weights[free]) + l2[free] * weights[free]
            change = solve(hessian[np.ix_(free, free)] + np.diag(l2[free]), -pull)
            share = min(1.0, first_zero(weights[free] * penalized[free], change))
            there = weights[free] + share * change
            there[(there * weights[free] <= 0.0) & penalized[free]] = 0.0
            slopes += hessian[:, free] @ (there - weights[free])
            weights[free] = there
        new[chosen] = weights
        self._move(chosen, weights - start)
        self._model.slopes[:] += self._bends * self._moves
        passed(self._cost_of_hessian(chosen) * self._share_of(chosen))

    def _hessian(self, chosen: Numbers) -> Doubles:
        """The Hessian of the model, without the penalty, for some columns."""
        rows, count = self._data.view, len(chosen)
        self._places[chosen] = np.arange(1, count + 1)
        free = int(self._places[-1]) * self._intercept
        longest = int((rows.ends - rows.begins).max()) + 2
        found, values = np.empty(longest, np.uint32), np.empty(longest)
        half = np.zeros((count, count))
        given = self._places, count, free, found, values, half.ravel()
        kernels.add_hessian(rows, self._bends, *given)
        self._places[chosen] = 0
        return half + half.T - np.diag(np.diag(half))

    def _solve_smooth(self, chosen: Numbers, new: Doubles, near: float, passed: Passed) -> None:
        """Conjugate gradients on the weights that are not 0, until the residual is small."""
        chosen = chosen[(new[chosen] != 0.0) | (chosen == self._model.free)]
        start, penalized = new[chosen], chosen != self._model.free
        visited = 2.0 * self._share_of(chosen)
        slopes, image, flat = np.zeros((3, len(chosen)))
        curves = self._curves[chosen]
        curves[curves <= 0.0] = np.inf  # of weights that have not moved yet: they stay
        known = np.where(np.isfinite(curves), curves, 0.0)
        kernels.products_of(self._columns, chosen, self._model.slopes, slopes)
        slopes += (self._l2 * start + self._l1 * np.sign(start)) * penalized

        def product(search: Doubles, moves: Doubles) -> Doubles:
            given = self._model, search, moves, self._pulls, image
            kernels.curve_along(self._columns, chosen, *given)
            if search @ image <= FLAT * ((search * known) @ search):
                flat[:] = search
                image[:] = 0.0  # which ends it
            return image

        def goes_on(now: Progress) -> bool:
            return passed(visited) and now.size > near * near and now.products < PRODUCTS

        found = conjugate_gradients(product, -slopes, curves, self._size, goes_on)
        self._go(chosen, found.direction, new)
        if flat.any():
            self._go(chosen, flat * first_zero(new[chosen], flat), new)

    def _go(self, chosen: Numbers, change: Doubles, new: Doubles) -> None:
        """Moves weights of the model along a change; where their signs would change, to 0.

        As far as the model becomes smaller.
        """
        start, penalized = new[chosen], chosen != self._model.free
        signs, l2 = np.sign(start) * penalized, 0.5 * self._l2 * penalized
        for share in (*SHORTER, min(1.0, first_zero(start * penalized, change))):
            there = start + share * change
            there[there * signs < 0.0] = 0.0
            self._move(chosen, there - start)
            np.multiply(self._bends, self._moves, out=self._pulls)
            gain = float((self._model.slopes + 0.5 * self._pulls) @ self._moves)
            gain += float((self._l1 * signs + l2 * (there + start)) @ (there - start))
            if gain <= 0.0:
                new[chosen] = there
                self._model.slopes[:] += self._pulls
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
            gained = self._size * (self._loss_at(self._moves, step) - self.losses)
            most = SUFFICIENT * step * promised + NOISE * self._size * self.losses
            if gained + change_of_penalty(step) <= most:
                return step
        return 0.0

    # Sums

    def _loss_at(self, moves: Doubles, step: float) -> float:
        """The mean loss where scores have moved."""
        given = self._scores, moves, step, 0.0, 0.0, 0.0, self._parameter
        parts = self._over_rows(lambda span: self._along(self._data.view, span, *given))
        return float(sum(losses for losses, _, _ in parts)) / self._size

    def _products(self, weights: Doubles) -> Doubles:
        """The products of the rows and weights."""
        found = np.zeros(self._size)
        chosen = np.flatnonzero(weights).astype(np.uint32)
        kernels.add_columns(self._columns, chosen, weights[chosen], found)
        return found

    def _move(self, chosen: Numbers, change: Doubles) -> None:
        """Finds how far scores move where weights change."""
        self._moves[:] = 0.0
        kernels.add_columns(self._columns, chosen, change, self._moves)

    def _over_rows(self, work: Callable[[Any], T]) -> list[T]:
        return over(self._row_spans, work, self.threads)

    def _over_columns(self, work: Callable[[Any], T]) -> list[T]:
        return over(self._column_spans, work, self.threads)


def _passes_ahead(before: float, now: float, wanted: float) -> float:
    """The passes that are needed where distances shrink as in the last one."""
    if not math.isfinite(before) or wanted <= 0.0:
        return 0.0
    return math.log(now / wanted) / math.log(before / now) if now < before else math.inf


def solve(matrix: Doubles, right: Doubles) -> Doubles:
    """The solution of a symmetric system, in which rows may depend on each other."""
    scale = 1.0 / np.sqrt(np.diag(matrix) + kernels.LEAST)
    scaled = matrix * scale[:, None] * scale + RIDGE * np.eye(len(matrix))
    found: Doubles = scale * np.linalg.solve(scaled, scale * right)
    return found


def first_zero(start: Doubles, change: Doubles) -> float:
    """The largest share of a change that takes no number beyond 0."""
    towards = start * change < 0.0
    return float(np.min(-start[towards] / change[towards], initial=math.inf))


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
