"""`hogwild.certify`: how good a linear model is, proved, whoever trained it.

The least value of an objective has a lower bound that does not depend on the model: that of a
solver with a proof. Where the loss is smooth, the slopes of the losses at the model are dual
variables that may prove enough in a single look. If they do not, the solver goes on from the model.
Where the loss has kinks, the dual is solved.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.coordinator import Quiet, Result, Run, State
from hogwild.data.files import load
from hogwild.data.rows import Rows, check_same_base
from hogwild.errors import DataError, OptionError
from hogwild.kernels import passes
from hogwild.kernels.views import Span, view
from hogwild.learn.choosing import COORDINATE, DUAL, METHODS, NEWTON
from hogwild.learn.duals import DUALS
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import LOSSES, SIGNS
from hogwild.learn.needs import ON_COLUMNS
from hogwild.learn.sets import Set, class_weights, row_weights
from hogwild.learn.targets import target_for
from hogwild.machine import usable_cores
from hogwild.models.given import Given, GivenHeads, given_model
from hogwild.paths import PathLike
from hogwild.threads import share_of, side_by_side

# Gaps of the solver, as shares of the objective: a smaller one is asked for where the gap of the
# model would be much smaller for it
GAPS = 1e-2, 1e-3, 1e-4, 1e-5
MUCH = 0.1  # share of the model's gap that may be the solver's
# Non-zeros that a solver visits for each of its gaps, and the least and most passes
MOST_WORK, FEWEST_PASSES, MOST_PASSES = 2e9, 200, 10_000
SHARDS = 8
# Why a solver ended without the gap that was asked for, in words
UNFINISHED = {
    "stuck": "; single precision proves no more",
    "epochs": ". They did not suffice, so the bound may be far too low",
}
PROVABLE = [name for name, loss in LOSSES.items() if loss.second or name in DUALS]


@dataclass(frozen=True)
class Certificate:
    """How good a model is.

    Attributes:
        objective: of the model on the rows.
        bound: a lower bound of the least objective that any weights have.
        gap: how much the objective may be above the least one, as a share of the bound; infinite
            if the bound is not above 0.
        how: the way the bound was found.
        loss, l2, l1: what the objective is made of.
    """

    objective: float
    bound: float
    gap: float
    how: str
    loss: str
    l2: float
    l1: float


def certify(
    model: Any,
    rows: Rows | PathLike,
    loss: str | None = None,
    l2: float | None = None,
    l1: float | None = None,
) -> Certificate:
    """Proves how near the optimum of its objective on some rows a linear model is.

    The objective is l2/2 |w|^2 + l1 |w|_1 + mean(loss). Of a model of several classes or labels,
    each against the rest, it is the sum over them. The intercept is
    penalized only in models of LIBLINEAR (and of scikit-learn's estimators that use it).

    Args:
        model: a model of hogwild, a fitted estimator with `coef_` and `intercept_`, or a file: of
            hogwild, of LIBLINEAR, or an `.npz` with weights, intercept and labels.
        rows: the rows that it was trained on, with labels; or their file.
        loss, l2, l1: what the objective is made of; by default what the model says. LIBLINEAR and
            scikit-learn's C is 1 / (l2 * number of rows).

    Raises:
        OptionError: the loss or the penalty allows no proof, or is not known.
        DataError: the model and the rows do not fit.
        HogwildError: the file holds no model, or the model is not linear, or of several classes
            and not of hogwild, or of softmax.
    """
    given, asked = given_model(model), {"loss": loss, "l2": l2, "l1": l1}
    rows = _loaded(rows, given.index_base)
    if isinstance(given, GivenHeads):
        return _of_heads(given, rows, asked)
    return _of_one(given, rows, asked)


def _of_one(given: Given, rows: Rows, asked: dict[str, Any]) -> Certificate:
    config = _config(given, asked)
    return _Proving(given, _fitting(rows, given), config).certificate()


def _of_heads(given: GivenHeads, rows: Rows, asked: dict[str, Any]) -> Certificate:
    """The sums over classes or labels, each of which is a problem of two classes."""
    known = given.target.known(rows)
    factors = row_weights(given.class_weights, rows, given.target)
    if factors is not None:
        rows = rows.weighted(factors * (1.0 if rows.sample_weight is None else rows.sample_weight))
    found = []
    for number, head in enumerate(given.heads):
        has = known[:, number] if known.ndim > 1 else known == number
        found.append(_of_one(head, rows.labelled(np.where(has, 1.0, -1.0)), asked))
    loosest = max(found, key=lambda one: one.objective - one.bound)
    objective = sum(one.objective for one in found)
    bound = sum(one.bound for one in found)
    how = f"each of {len(found):,} against the rest; the one with the largest gap {loosest.how}"
    return replace(loosest, objective=objective, bound=bound, gap=_share(objective, bound), how=how)


def _config(given: Given, asked: dict[str, Any]) -> Config:
    """The training whose optimum the model is compared with."""
    known = {name: value for name, value in given.options.items() if value is not None}
    known |= {name: value for name, value in asked.items() if value is not None}
    loss = known.get("loss")
    if loss is None:
        raise OptionError("loss: the model does not say which it was trained for; give it")
    l1, l2 = known.get("l1", 0.0), known.get("l2")
    if l2 is None and not l1:
        raise OptionError("l2: the model does not say which it was trained with; give it")
    able = ON_COLUMNS if l1 else PROVABLE
    if loss not in able:
        with_l1 = " with an l1" if l1 else ""
        raise OptionError(
            f"loss: for {loss}{with_l1} nothing can be proved; it can for {', '.join(able)}"
        )
    if not l2 and not l1:
        raise OptionError("l2: without a penalty nothing can be proved; give one above 0")
    kinds = LOSSES[loss].kinds
    is_class = SIGNS in kinds and (len(kinds) == 1 or bool(given.labels))
    has_intercept = given.intercept is not None
    solver = COORDINATE if l1 else NEWTON if LOSSES[loss].second else DUAL
    more = {"task": "svm" if is_class else "regression", "solver": solver}
    return Config.of(known | {"l2": l2 or 0.0, "intercept": has_intercept} | more)


def _loaded(rows: Rows | PathLike, index_base: int | None) -> Rows:
    if not isinstance(rows, Rows):
        rows = load(rows, index_base="auto" if index_base is None else index_base)
    check_same_base(rows, index_base, "the training data")
    if not len(rows):
        raise DataError(f"{rows.name} has no rows to certify on")
    return rows


def _fitting(rows: Rows, given: Given) -> Rows:
    """The rows; with one more column if the intercept is the weight of that."""
    columns = len(given.weights) - (given.penalized > 0)
    # Text does not say how many columns there are
    if rows.columns > columns or (rows.columns < columns and rows.index_base is None):
        raise DataError(
            f"{rows.name} has {rows.columns:,} columns, and the model has weights for "
            f"{columns:,}: certify it on the rows that it was trained on"
        )
    if not np.isfinite(given.weights).all() or not math.isfinite(given.intercept or 0.0):
        raise DataError("the model has weights that are NaN or infinite")
    return _with_column(rows, columns, given.penalized) if given.penalized else rows


def _with_column(rows: Rows, place: int, value: float) -> Rows:
    """The rows with one more column, which has the same value in each."""
    indptr, indices, values = rows.gather(np.arange(len(rows), dtype=np.uint64))
    ends = indptr[1:].astype(np.intp)
    arrays = np.insert(indices, ends, place), np.insert(values, ends, value)
    begins = indptr + np.arange(len(indptr), dtype=np.uint64)
    made = Rows.from_arrays(
        begins, *arrays, place + 1, rows.y, index_base=rows.index_base, name=rows.name
    )
    return made.weighted(rows.sample_weight)


class _Proving:
    """The objective of a model, and lower bounds of the optimum that get better."""

    def __init__(self, given: Given, rows: Rows, config: Config) -> None:
        self._given, self._rows, self._config = given, rows, config
        self._labels = given.labels
        if config.task == "svm":
            self._labels = self._labels or rows.labels
            if len(self._labels) != 2:
                raise DataError(
                    f"{rows.name} has {len(self._labels)} classes; certify a model of two classes"
                )
        target = target_for(config, rows, self._labels)
        by_label = class_weights(config, rows, target)
        self._data = Set.of(rows, target, row_weights(by_label, rows, target))
        self._bias = given.intercept or 0.0
        self._weights = np.zeros(max(rows.columns, len(given.weights)))
        self._weights[: len(given.weights)] = given.weights

    def certificate(self) -> Certificate:
        """Asks the solver for smaller and smaller gaps."""
        bound, visits, moved = -math.inf, 0, False
        objective, start = self._look()
        for tol in GAPS:
            problem, result = self._solve(tol, start)
            bound = max(bound, float(problem.proved().bound))
            visits += sum(row["rows"] for row in result.trace)
            moved = moved or _has_moved(start, result.state)
            start = result.state
            best = min(objective, result.trace[-1]["objective"])
            is_exact = best - bound <= MUCH * (objective - bound)
            is_small = objective - bound <= GAPS[-1] * abs(best)
            if is_exact or is_small or result.reason != "converged":
                break
        how = self._how(moved, result.reason, visits / len(self._rows))
        penalty = float(self._config.l2 or 0.0), self._config.l1
        gap = _share(objective, bound)
        return Certificate(objective, bound, gap, how, self._config.loss_name, *penalty)

    def _solve(self, tol: float, start: State | None) -> tuple[LinearProblem, Result]:
        """The solver's problem and result, where it ends at such a gap."""
        most = int(MOST_WORK / max(1, self._rows.nonzeros))
        epochs = min(MOST_PASSES, max(FEWEST_PASSES, most))
        config = replace(self._config, tol=tol, epochs=epochs)
        problem = LinearProblem(self._rows, None, config, self._labels)
        run = Run(problem, Quiet(), start)
        run.prepare()
        with run.interrupt:
            result = run.run()
        if run.interrupt.happened:
            raise KeyboardInterrupt
        return problem, result

    def _how(self, moved: bool, reason: str, passes_made: float) -> str:
        """The way the bound was found, in words."""
        made = f"{max(1, round(passes_made)):,} passes over the rows"
        if not moved:
            return f"from the slopes of the losses at the model, {made}"
        name = self._config.choice[0]
        how = f"by {METHODS[name]}, {made}"
        if name == DUAL:
            how += "; slopes prove little where a loss has kinks"
        return how + UNFINISHED.get(reason, "")

    def _look(self) -> tuple[float, State | None]:
        """The objective, and where the solver begins: at the model, if that is of use."""
        scores = np.empty(len(self._rows))
        known, data = self._weights[: self._rows.columns], self._data.view
        self._over_shards(lambda span: passes.scores_of(data, span, known, scores))
        w, l2 = self._weights, float(self._config.l2 or 0.0)
        penalty = 0.5 * l2 * float(w @ w) + self._config.l1 * float(np.abs(w).sum())
        objective = penalty + self._loss(scores, self._bias)
        at_zero = self._loss(np.zeros(len(self._rows)), 0.0)
        if self._config.is_dual or not objective < at_zero:
            return objective, None
        stored = np.append(known, self._bias).astype(np.float32)
        return objective, State({"stored": stored}, 0, 0, 0.0)

    def _loss(self, scores: npt.NDArray[np.float64], bias: float) -> float:
        kernel = passes.losses(self._config.loss_name, self._data.weighted)
        given = scores, bias, self._config.loss_value
        parts = self._over_shards(lambda span: kernel(self._data.view, span, *given))
        return float(sum(parts)) / len(scores)

    def _over_shards(self, work: Any) -> list[Any]:
        spans = [view(Span, *share_of(len(self._rows), SHARDS, k)) for k in range(SHARDS)]
        return side_by_side([partial(work, span) for span in spans], usable_cores())


def _has_moved(start: State | None, state: State | None) -> bool:
    """Whether a solver found other weights than it began with; the intercept does not count."""
    if start is None or state is None:
        return True
    return not np.array_equal(start.weights["stored"][:-1], state.weights["stored"][:-1])


def _share(objective: float, bound: float) -> float:
    """The gap as a share of the bound; infinite where that tells nothing."""
    if bound <= 0.0 <= objective or not math.isfinite(bound):
        return math.inf
    return max(0.0, objective - bound) / abs(bound)
