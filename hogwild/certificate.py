"""`hogwild.certify`: proves how good a linear model is, whoever trained it.

The least value of an objective has a lower bound that does not depend on the model. A solver with a
proof finds this bound. If the loss is smooth, the slopes of the losses at the model are dual
variables, and these may prove enough in a single evaluation. If not, the solver continues from the
model. If the loss has kinks, the dual is solved.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from hogwild.config import Config
from hogwild.coordinator import Run
from hogwild.data.files import load
from hogwild.data.rows import Labels, Rows, check_same_base
from hogwild.data.sets import Files
from hogwild.errors import DataError, OptionError
from hogwild.kernels import passes
from hogwild.kernels.views import Span, view
from hogwild.learn.choosing import COORDINATE, DUAL, METHODS, NEWTON, by_data
from hogwild.learn.class_passes import ClassPasses
from hogwild.learn.duals import DUALS
from hogwild.learn.heads import heads_of
from hogwild.learn.linear import CENTER, LinearProblem
from hogwild.learn.losses import CLASSES, LOSSES, SIGNS, loss_named
from hogwild.learn.needs import ON_COLUMNS
from hogwild.learn.passes import Doubles
from hogwild.learn.proof import gap_of
from hogwild.learn.sets import Set, class_weights, row_weights
from hogwild.learn.targets import target_for
from hogwild.loops.strategies import AUTO
from hogwild.machine import usable_cores
from hogwild.models.given import Given, GivenHeads, given_model
from hogwild.results import Quiet, Result, State
from hogwild.threads import share_of, side_by_side

# Gaps to ask of the solver, as shares of the objective. The solver continues to a smaller gap if
# that would make the model's gap much smaller
GAPS = 1e-2, 1e-3, 1e-4, 1e-5
ROUNDING = 1e-12  # share of the objective by which rounding may lift a bound above the optimum
MUCH = 0.1  # largest share of the model's gap that may be due to the solver
# Non-zeros that a solver visits for each of its gaps, and the least and most passes
MOST_WORK, FEWEST_PASSES, MOST_PASSES = 2e9, 200, 10_000
SHARDS = 8
# Why a solver ended without the requested gap, in words
UNFINISHED = {
    "stuck": "; single precision proves no more",
    "epochs": ". They did not suffice, so the bound may be far too low",
}
PROVABLE = [name for name, loss in LOSSES.items() if loss.second or name in DUALS]
OF_ALL_CLASSES = [name for name, loss in LOSSES.items() if loss.has_class_passes]


@dataclass(frozen=True)
class Certificate:
    """How good a model is.

    Attributes:
        objective: the objective of the model on the rows.
        bound: a lower bound of the objective of any weights.
        gap: how far the objective may be above the optimum, as a share of the bound; infinite if
            the bound is not above 0.
        how: how the bound was found.
        loss, l2, l1: the loss and the penalties of the objective.
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
    rows: Rows | Files,
    loss: str | None = None,
    l2: float | None = None,
    l1: float | None = None,
) -> Certificate:
    """Proves how near the optimum of its objective on some rows a linear model is.

    The objective is l2/2 |w|^2 + l1 |w|_1 + mean(loss). If a model has weights for each of several
    classes or labels, the objective is the sum over them, each against the rest. The loss
    cross_entropy (softmax) needs the scores of all classes; here w are the weights of all classes.
    The intercept is penalized only in models of LIBLINEAR (and of scikit-learn's estimators that
    use it).

    Args:
        model: a model of hogwild, a fitted estimator with `coef_` and `intercept_`, or a file: of
            hogwild, of LIBLINEAR, or an `.npz` with weights, intercept and labels.
        rows: the rows that it was trained on, with labels; or their file.
        loss, l2, l1: the loss and the penalties of the objective; by default those of the model. C
            of LIBLINEAR and scikit-learn is 1 / (l2 * number of rows). The loss of scikit-learn's
            LogisticRegression is logistic with two classes or the solver liblinear, else
            cross_entropy.

    Raises:
        OptionError: the loss or the penalty allows no proof, or is not known.
        DataError: the model and the rows do not fit.
        HogwildError: the file holds no model, or the model is not linear, or has no label for each
            of its scores.
    """
    given, asked = given_model(model), {"loss": loss_named(loss), "l2": l2, "l1": l1}
    rows = _loaded(rows, given.index_base)
    if isinstance(given, GivenHeads):
        return _of_heads(given, rows, asked)
    config = _config(given, asked)
    return _Proving([given], given.labels, _fitting(rows, [given]), config).certificate()


def _of_heads(given: GivenHeads, rows: Rows, asked: dict[str, Any]) -> Certificate:
    """The certificate of softmax, or a sum over classes or labels, each against the rest."""
    config = _config(given.heads[0], asked, given.target.kind)
    rows = _fitting(rows, given.heads)
    factors = row_weights(given.class_weights, rows, given.target)
    if factors is not None:
        rows = rows.weighted(factors * (1.0 if rows.sample_weight is None else rows.sample_weight))
    if config.loss_name in OF_ALL_CLASSES:
        return _Proving(given.heads, given.target.labels, rows, config).certificate()
    known, found = given.target.known(rows), []
    for number, head in enumerate(given.heads):
        has = known[:, number] if known.ndim > 1 else known == number
        against = rows.labelled(np.where(has, 1.0, -1.0))
        found.append(_Proving([head], head.labels, against, config).certificate())
    loosest = max(found, key=lambda one: one.objective - one.bound)
    objective = sum(one.objective for one in found)
    bound = sum(one.bound for one in found)
    how = f"each of {len(found):,} against the rest; the one with the largest gap {loosest.how}"
    return replace(loosest, objective=objective, bound=bound, gap=gap_of(objective, bound), how=how)


def _config(given: Given, asked: dict[str, Any], kind: str = SIGNS) -> Config:
    """The training whose optimum the model is compared with."""
    known = {name: value for name, value in given.options.items() if value is not None}
    known |= {name: value for name, value in asked.items() if value is not None}
    loss = known.get("loss")
    if loss is None:
        raise OptionError("loss: the model does not say which it was trained for; give it")
    l1, l2 = known.get("l1", 0.0), known.get("l2")
    if l2 is None and not l1:
        raise OptionError("l2: the model does not say which it was trained with; give it")
    able = list(ON_COLUMNS) if l1 else PROVABLE + OF_ALL_CLASSES * (kind == CLASSES)
    if given.labels:
        able = [name for name in able if {SIGNS, CLASSES}.intersection(LOSSES[name].kinds)]
    if loss not in able:
        with_l1 = " with an l1" if l1 else ""
        raise OptionError(
            f"loss: for {loss}{with_l1} nothing can be proved of this model; it can for "
            f"{', '.join(able)}"
        )
    if not l2 and not l1:
        raise OptionError("l2: without a penalty nothing can be proved; give one above 0")
    kinds = LOSSES[loss].kinds
    is_class = SIGNS in kinds and (len(kinds) == 1 or bool(given.labels))
    has_intercept = given.intercept is not None
    solver = COORDINATE if l1 else NEWTON if LOSSES[loss].is_smooth else DUAL
    task = "softmax" if loss in OF_ALL_CLASSES else "svm" if is_class else "regression"
    more = {"task": task, "solver": solver}
    return Config.of(known | {"l2": l2 or 0.0, "intercept": has_intercept} | more)


def _loaded(rows: Rows | Files, index_base: int | None) -> Rows:
    if not isinstance(rows, Rows):
        rows = load(rows, index_base="auto" if index_base is None else index_base)
    check_same_base(rows, index_base, "the training data")
    if not len(rows):
        raise DataError(f"{rows.name} has no rows to certify on")
    return rows


def _fitting(rows: Rows, heads: Sequence[Given]) -> Rows:
    """The rows, with one more column if the intercept is the weight of a constant column."""
    given = heads[0]
    columns = len(given.weights) - (given.penalized > 0)
    # Text does not say how many columns there are
    if rows.columns > columns or (rows.columns < columns and rows.index_base is None):
        raise DataError(
            f"{rows.name} has {rows.columns:,} columns, and the model has weights for "
            f"{columns:,}: certify it on the rows that it was trained on"
        )
    if not all(np.isfinite(np.append(head.weights, head.intercept or 0.0)).all() for head in heads):
        raise DataError("the model has weights that are NaN or infinite")
    return _with_column(rows, columns, given.penalized) if given.penalized else rows


def _with_column(rows: Rows, place: int, value: float) -> Rows:
    """The rows with one more column, which has the same value in every row."""
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

    def __init__(
        self, given: Sequence[Given], labels: Labels | None, rows: Rows, config: Config
    ) -> None:
        """`given`: one set of weights; with softmax, one for each label."""
        self._rows, self._config, self._labels = rows, config, labels
        if config.task == "svm":
            self._labels = labels or rows.labels
            if len(self._labels) != 2:
                raise DataError(
                    f"{rows.name} has {len(self._labels)} classes, and the model has one score a "
                    "row: certify a model of two classes, or with weights for each"
                )
        target = target_for(config, rows, self._labels)
        target = target.centered(rows) if config.intercept else target
        self._center = target.center
        by_label = class_weights(config, rows, target)
        self._data = Set.of(rows, target, row_weights(by_label, rows, target))
        self._heads = heads_of(config.loss_name, target.kind, target.heads)
        if config.is_dual:  # unless another solver with a proof is likely faster
            chosen = by_data(replace(config, solver=AUTO), rows, self._heads, judged=False)[0]
            self._config = replace(config, solver=chosen)
        self._classes: ClassPasses | None = None
        if self._heads.coupled:
            self._classes = ClassPasses(self._heads, self._data, rows.columns, config.intercept)
            self._classes.threads = usable_cores()
        # A line for each score of a row
        self._weights = np.array([one.weights for one in given])
        self._bias = np.array([one.intercept or 0.0 for one in given]) - self._center

    def certificate(self) -> Certificate:
        """Asks the solver for smaller and smaller gaps."""
        bound, visits, moved = -math.inf, 0, False
        objective, start = self._look()
        for tol in GAPS:
            problem, result = self._solve(tol, start)
            bound = max(bound, float(problem.proved().bound))
            visits += sum(row["rows"] for row in result.trace)
            moved = moved or self._has_moved(start, result.state)
            start = result.state
            best = min(objective, result.trace[-1]["objective"])
            is_exact = best - bound <= MUCH * (objective - bound)
            is_small = objective - bound <= GAPS[-1] * abs(best)
            if is_exact or is_small or result.reason != "converged":
                break
        how = self._how(moved, result.reason, visits / len(self._rows))
        penalty = float(self._config.l2 or 0.0), self._config.l1
        if 0.0 < bound - objective <= ROUNDING * abs(objective):
            bound = objective
        gap = gap_of(objective, bound)
        return Certificate(objective, bound, gap, how, self._config.loss_name, *penalty)

    def _solve(self, tol: float, start: State | None) -> tuple[LinearProblem, Result]:
        """The problem and the result of a solver that stops at the gap `tol`."""
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
        is_smooth = LOSSES[self._config.loss_name].is_smooth
        if not moved and is_smooth:
            return f"from the slopes of the losses at the model, {made}"
        name = self._config.choice[0]
        how = f"by {METHODS[name]}, {made}"
        if not is_smooth:
            how += "; slopes prove little where a loss has kinks"
        return how + UNFINISHED.get(reason, "")

    def _look(self) -> tuple[float, State | None]:
        """The objective, and where the solver begins: at the model, if that is better than 0."""
        known = self._weights[:, : self._rows.columns]
        scores = self._scores(known)
        w, l2 = self._weights.ravel(), float(self._config.l2 or 0.0)
        penalty = 0.5 * l2 * float(w @ w) + self._config.l1 * float(np.abs(w).sum())
        objective = penalty + self._loss(scores, self._bias)
        at_zero = self._loss(np.zeros_like(scores), np.zeros_like(self._bias))
        if self._config.is_dual or not objective < at_zero:
            return objective, None
        stored = np.zeros((self._rows.columns + 1, self._heads.width), np.float32)
        stored[:, : len(known)] = np.column_stack([known, self._bias]).T
        state = {"stored": stored.ravel(), CENTER: np.array([self._center])}
        return objective, State(state, 0, 0, 0.0)

    def _scores(self, weights: Doubles) -> Doubles:
        """The scores without intercepts: a line for each line of weights."""
        scores, data = np.empty((len(weights), len(self._rows))), self._data.view
        pairs = list(zip(weights, scores, strict=True))
        self._over_shards(lambda span: [passes.scores_of(data, span, *pair) for pair in pairs])
        return scores

    def _loss(self, scores: Doubles, bias: Doubles) -> float:
        if self._classes:
            return self._classes.loss(scores.T.ravel(), bias)
        kernel = passes.losses(self._config.loss_name, self._data.weighted)
        given = scores[0], float(bias[0]), self._config.loss_value
        parts = self._over_shards(lambda span: kernel(self._data.view, span, *given))
        return float(sum(parts)) / len(self._rows)

    def _has_moved(self, start: State | None, state: State | None) -> bool:
        """Whether the solver changed the weights that it began with; intercepts do not count."""
        if start is None or state is None:
            return True
        before, after = (one.weights["stored"][: -self._heads.width] for one in (start, state))
        return not np.array_equal(before, after)

    def _over_shards(self, work: Any) -> list[Any]:
        spans = [view(Span, *share_of(len(self._rows), SHARDS, k)) for k in range(SHARDS)]
        return side_by_side([partial(work, span) for span in spans], usable_cores())
