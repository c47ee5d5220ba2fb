"""`hogwild.search`: cross-validation, and the best of several values of an option.

    rows = hogwild.load("train.svm")
    # How good is it? Five models, each judged on a fifth of the rows that it did not learn from
    result = hogwild.search(rows, folds=5, task="logistic")
    print(result.table[0]["error"], result.table[0]["error_std"])
    # How strong must the penalty be? Judged on a tenth of the rows, held out
    result = hogwild.search(rows, l2=hogwild.logspace(1e-6, 1e-2, 9), task="logistic")
    # The same with folds, by the area under the ROC curve
    result = hogwild.search(rows, l2="1e-6:1e-2:9", folds=5, metric="auc", task="logistic")
    print(result.best, result.model)  # {'l2': 0.0001}, and a model trained with it on all rows

Values of a penalty are tried from strong to weak. Each training begins with the weights of the one
before, and takes fewer epochs than from zero. Folds share the rows without a copy. Folds are
trained in parallel by one worker each, so results do not depend on the number of workers.
"""

import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hogwild import grids, status
from hogwild.config import VOTE, Config
from hogwild.coordinator import Run
from hogwild.data.folds import folds as folds_of
from hogwild.data.rows import Labels, Rows
from hogwild.data.sets import Files, named
from hogwild.errors import DivergenceError, OptionError, WorkerError
from hogwild.features.encoder import Features
from hogwild.grids import Options
from hogwild.interrupt import Interrupt
from hogwild.learn.choosing import SGD
from hogwild.learn.metrics import GREATER_IS_BETTER, TABLES
from hogwild.learn.registry import PROBLEMS
from hogwild.learn.sets import hold_out, row_weights, strata
from hogwild.learn.targets import Target, target_for
from hogwild.loops.strategies import AUTO
from hogwild.machine import usable_cores
from hogwild.paths import PathLike, check_files, check_space
from hogwild.results import Quiet, Result, State, Watcher
from hogwild.status import Doing
from hogwild.threads import side_by_side
from hogwild.trace import Row
from hogwild.training import (
    Sources,
    asked_for,
    check_judge,
    features_for,
    row_sets,
    run_and_write,
    watched,
    with_task,
    write,
    written_after,
)

SHARE = 0.1  # share of the rows that is held out by default to judge models
LOSS = "loss"
OF_THE_LOSS = {"loss", "epsilon", "quantile"}  # options whose values make losses that differ
OF_THE_RUN = ("mean", "taken")  # parts of a state that belong to one training only: its mean


@dataclass(frozen=True, repr=False)
class SearchResult(Result):
    """The result of a search: the result of the final training, and the table.

    Attributes:
        table: a dict for each combination of values: the values, the mean of each metric, its
            standard deviation over the folds (as `error_std`), and the metrics on each fold.
        best: the best values.
        metric: the metric that decided.
    """

    table: list[Row]
    best: Options
    metric: str

    def records(self) -> list[Row]:
        """The record of the search and of the final training."""
        header, *rows = super().records()
        picked = {"kind": "picked", "metric": self.metric, "options": self.best}
        return [header, *self.table, picked, *rows]


def search(
    data: Rows | Files,
    *,
    folds: int | None = None,
    metric: str = LOSS,
    validate: Rows | Files | None = None,
    test: Rows | Files | None = None,
    model: PathLike | None = None,
    trace: PathLike | None = None,
    watcher: Watcher | None = None,
    verbose: int = 0,
    labels: Labels | None = None,
    sample_weight: Any = None,
    index_base: str | int = "auto",
    features: Features | None = None,
    **options: Any,
) -> SearchResult:
    """Cross-validates, picks the best values of options, and trains with them on all rows.

    If early stopping ended the compared trainings, the final training runs for the mean of their
    best numbers of epochs.

    Args:
        data: rows with labels, or the file (or files) to load them from.
        folds: number of folds of a cross-validation. Without folds and without `validate`, models
            are compared on held-out rows: the share `early_stopping` (by default a tenth).
        metric: what to compare by: loss, error, log_loss or auc; for a regression loss, rmse, mae,
            r2 or deviance.
        validate: rows (or their file) to compare on.
        test, model, trace, watcher, verbose, labels, sample_weight, index_base, features: as for
            `hogwild.train`. The record of the run has the rows of the table, too.
        **options: the fields of `hogwild.Config`. Those that are numbers of the model (l2, l1,
            eta0, ...) may be lists, or text such as 1e-6:1e-2:9 (first, last, number of values).
            Limits such as `epochs` and `time_limit` hold for each training.

    Returns:
        The table, the best options and the model. After Ctrl-C the reason is "interrupted", the
        table has what was done, and the model is the best one so far.

    Raises:
        OptionError: lists all that is out of range.
        DataError: data that cannot be learned from, or split.
        DivergenceError: the weights overflowed with all values.
    """
    settings, options = with_task(options, data, features)
    how = features_for(data, features, settings)
    plan = plan_of(options, folds, validate is not None)
    check_files({"model": model, "trace": trace}, *named(data, test, validate, sample_weight))
    with watched(watcher, verbose) as follower:
        sources = Sources(index_base, features=how)
        rows, tests, judges = row_sets(data, test, validate, sources, sample_weight)
        found = _Search(rows, judges, labels, folds, metric, plan, follower)
        found.asked = asked_for(
            options | settings | {"folds": folds, "metric": metric, "index_base": index_base},
            data=data,
            test=test,
            validate=validate,
            sample_weight=sample_weight,
        )
        if model is not None:
            check_space(model, found.problem_of(rows, plan.configs[0]).model_bytes)
        with found.interrupt:
            result = found.result(tests, model, trace)
        if found.interrupt.happened and result.reason != "interrupted":
            raise KeyboardInterrupt("the search was done, and all that was asked for is written")
        follower.end(result)
        return result


class Plan(NamedTuple):
    """What a search compares: combinations of values in chains, and the options of each."""

    options: Options  # those with one value
    combinations: list[Options]
    length: int  # of a chain
    configs: list[Config]


def is_search(options: Options, folds: Any) -> bool:
    """Whether options ask for a search: by folds, or by several values of one of them."""
    return folds is not None or bool(grids.split(options)[1])


def check_options(options: Options, folds: Any, validate: bool, metric: str | None) -> None:
    """Refuses options before any data is read, be they of a search or of a training alone."""
    if is_search(options, folds):
        plan_of(options, folds, validate)
        return
    Config.of(options)
    if metric is not None:
        raise OptionError("metric: it needs folds, or several values of an option, to compare")


def plan_of(options: Options, folds: Any, validate: bool) -> Plan:
    """The plan of a search; an `OptionError` lists all that is wrong with the options."""
    problems = []
    if folds is not None and (isinstance(folds, bool) or not isinstance(folds, int) or folds < 2):
        problems.append(f"folds: {folds!r} is not a whole number from 2 on")
    if folds is not None and validate:
        problems.append("validate: not together with folds; leave one of them out")
    single, grid = grids.split(options)
    if folds is None and not grid:
        problems.append("folds: give their number, or several values of an option such as l2")
    if folds is None and not validate:
        single = {"early_stopping": SHARE} | {k: v for k, v in single.items() if v is not None}
    combinations, length = grids.combinations(grid)
    by_epochs = folds is None or single.get("early_stopping") is not None
    if by_epochs and single.get("solver", AUTO) == AUTO:
        single["solver"] = SGD  # the final training must be like the judged ones, epoch by epoch
    configs = []
    for some in combinations:
        try:
            config = Config.of(single | some)
            if config.family != "linear":
                raise OptionError(
                    f"task: search compares linear models only; for {config.task}, train with each "
                    "value and compare the errors on a test file"
                )
            if validate:
                check_judge(config)
            configs.append(config)
        except OptionError as problem:
            problems += str(problem).splitlines()
    if problems:
        raise OptionError("\n".join(dict.fromkeys(problems)))
    return Plan(single, combinations, length, configs)


class Judged(NamedTuple):
    """One training, judged on rows that it did not learn from."""

    metrics: Row  # numbers, or None for a metric that does not exist here
    epochs: int  # epochs up to the best one, summed over the chain of trainings so far
    reason: str
    seconds: float
    notes: list[str]


class Kept(NamedTuple):
    """A training whose model is kept unless a better one follows."""

    key: float  # the smaller, the better
    result: Result
    number: int  # of the combination


class _Search:
    """Trains on parts of the rows, gathers the table, and trains on all of them."""

    def __init__(
        self,
        rows: Rows,
        judges: Rows | None,
        labels: Labels | None,
        folds: int | None,
        metric: str,
        plan: Plan,
        watcher: Watcher,
    ) -> None:
        self._rows, self._given_judges, self._plan, self._watcher = rows, judges, plan, watcher
        self._target: Target = target_for(plan.configs[0], rows, labels)
        self._metric = metric
        self._metrics = [LOSS, *(name for name in self._target.metrics if name not in TABLES)]
        if metric not in self._metrics:
            raise OptionError(f"metric: {metric!r} is not one of {', '.join(self._metrics)}")
        others = sorted(OF_THE_LOSS & plan.combinations[0].keys())
        if metric == LOSS and others:
            able = ", ".join(name for name in self._metrics if name != LOSS)
            raise OptionError(
                f"metric: each value of {' and '.join(others)} is another loss, so losses cannot "
                f"be compared; give one of {able}"
            )
        self.asked: Row = {}
        self._notes: list[str] = []
        self._folds = folds
        self._splits = self._made_splits(plan.configs[0])
        self._lock = threading.Lock()  # of the table
        self._judged: dict[tuple[int, int], Judged] = {}  # by combination and split
        self._table: list[Row] = []
        self._best: Kept | None = None  # the best training so far, by the rows that judge it
        self._comparing = Doing("")
        self._begun: Kept | None = None  # the first interrupted training
        self._divergence: DivergenceError | None = None
        self.interrupt = Interrupt()

    def _made_splits(self, config: Config) -> list[tuple[Rows, Rows]]:
        """Pairs of rows to learn from and rows to judge on."""
        rows, target = self._rows, self._target
        if self._given_judges is not None:
            return [(rows, self._given_judges)]
        if self._folds is None:
            return [hold_out(rows, target, config.early_stopping or SHARE, config.seed)]
        given = len(rows), self._folds, config.seed, strata(rows, target), rows.name
        splits, self._notes = folds_of(*given)
        return [(rows.part(learned), rows.part(held)) for learned, held in splits]

    def result(
        self, tests: Rows | None, model: PathLike | None, trace: PathLike | None
    ) -> SearchResult:
        """Compares, picks, and trains on all rows; writes what was asked for."""
        for text in self._notes:
            self._watcher.note(text)
        try:
            self._watcher.search(self._about())
            with status.doing("comparing", over=True, forks=True) as self._comparing:
                self._compare()
            picked = self._picked()
            final, best = self._final(picked), self._plan.combinations[picked]
            problem = self.problem_of(self._rows, final, tests, self._given_judges)
            run = Run(problem, self._watcher, None, self.interrupt)
            run.asked = self.asked
            run.prepare()
            return run_and_write(run, model, trace, partial(self._searched, best=best))
        except (KeyboardInterrupt, WorkerError) as ending:
            kept = self._best or self._begun
            if kept is None or getattr(ending, "result", None):
                raise
            reason = "died" if isinstance(ending, WorkerError) else "interrupted"
            values = self._plan.combinations[kept.number]
            found = self._searched(replace(kept.result, reason=reason), values)
            if isinstance(ending, WorkerError):
                named = ", ".join(f"{name} {value:g}" for name, value in values.items())
                what = f"the best model so far ({named}) is" if self._best else "its weights are"
                raise written_after(ending, found, model, trace, what) from None
            write(found, model, trace)
            return found

    def _about(self) -> Row:
        compared: dict[str, list[Any]] = {}
        for some in self._plan.combinations:
            for name, value in some.items():
                compared[name] = list(dict.fromkeys([*compared.get(name, []), value]))
        return {
            "kind": "search",
            "metric": self._metric,
            "shown": [LOSS, *(s.key for s in self._target.shown if s.key in self._target.metrics)],
            "options": compared,
            "folds": self._folds,
            "rows": len(self._rows),
            "held_out": [len(held) for _, held in self._splits],
        }

    def _searched(self, result: Result, best: Options) -> SearchResult:
        given = {name: getattr(result, name) for name in Result.__dataclass_fields__}
        given["notes"] = [*self._notes, *result.notes]
        return SearchResult(**given, table=self._table, best=best, metric=self._metric)

    # Comparing

    def _compare(self) -> None:
        length, configs = self._plan.length, self._plan.configs
        several = len(configs) * len(self._splits) > length
        tasks = [
            partial(self._follow, range(place, place + length), split, several)
            for place in range(0, len(configs), length)
            for split in range(len(self._splits))
        ]
        threads = configs[0].workers or usable_cores()
        side_by_side(tasks, threads if several else 1)

    def _follow(self, numbers: range, split: int, alone: bool) -> None:
        """Trains along a chain on the rows of one split, each time from where the last ended."""
        start, epochs = None, 0
        for number in numbers:
            config = self._plan.configs[number]
            if alone and config.merge == VOTE:  # a vote needs as many workers as the final training
                config = replace(config, backend="thread")
            elif alone:
                config = replace(config, workers=1)
            try:
                result = self._trained(config, split, start)
            except WorkerError as death:
                if death.result is not None:
                    self._begun = Kept(0.0, death.result, number)
                raise WorkerError(str(death)) from None  # no file has been written yet
            except DivergenceError as problem:
                self._divergence, start, epochs = problem, None, 0
                self._add(number, split, Judged({}, 0, "diverged", 0.0, [str(problem)]))
                continue
            if result.reason == "interrupted":
                self._begun = self._begun or Kept(0.0, result, number)
                raise KeyboardInterrupt
            judged = self._judgement(result, split)
            self._keep_best(result, judged, number)
            epochs += judged.epochs
            self._add(number, split, judged._replace(epochs=epochs))
            assert result.state is not None
            state = result.state.weights
            kept = {name: state[name] for name in state if name not in OF_THE_RUN}
            start = State(kept, 0, 0, 0.0)

    def _trained(self, config: Config, split: int, start: State | None) -> Result:
        learned, held = self._splits[split]
        stops = None
        if self._folds is None:
            config, stops = replace(config, early_stopping=None), held
        problem = self.problem_of(learned, config, None, stops)
        run = Run(problem, Quiet(), start, self.interrupt)
        run.prepare()
        self.interrupt.check()
        return run.run()

    def problem_of(
        self, rows: Rows, config: Config, test: Rows | None = None, validate: Rows | None = None
    ) -> Any:
        """The problem of learning from some of the rows, with the labels of all rows."""
        labels = self._target.labels or None
        more = {"compact": True} if config.family == "linear" else {}
        return PROBLEMS[config.family](rows, test, config, labels, validate=validate, **more)

    def _judgement(self, result: Result, split: int) -> Judged:
        held = self._splits[split][1]
        factors = row_weights(result.model.class_weights, held, self._target)
        if factors is not None:
            counted = 1.0 if held.sample_weight is None else held.sample_weight
            held = held.weighted(factors * counted)
        found = result.model.measured(held, None)
        metrics = {name: found[name] for name in self._metrics}
        last = result.model.about["trace"]["last"]
        seconds = result.trace[-1]["seconds"] if result.trace else 0.0
        return Judged(metrics, last.get("epoch", 0), result.reason, seconds, result.notes)

    def _keep_best(self, result: Result, judged: Judged, number: int) -> None:
        value = judged.metrics[self._metric]
        with self._lock:
            if value is None or (self._best and self._key(value) >= self._best.key):
                return
            self._best = Kept(self._key(value), result, number)

    def _key(self, value: float) -> float:
        """A sort key for a metric: smaller is better."""
        return -value if self._metric in GREATER_IS_BETTER else value

    # The table

    def _add(self, number: int, split: int, judged: Judged) -> None:
        with self._lock:
            self._judged[number, split] = judged
            done, total = len(self._judged), len(self._plan.configs) * len(self._splits)
            self._comparing.counted(done, total, f"{done} of {total} trainings")
            while len(self._table) < len(self._plan.configs):
                keys = [(len(self._table), which) for which in range(len(self._splits))]
                if not all(key in self._judged for key in keys):
                    return
                row = self._row(len(self._table), [self._judged[key] for key in keys])
                self._table.append(row)
                self._watcher.search(row)

    def _row(self, number: int, found: list[Judged]) -> Row:
        row: Row = {"kind": "compared"} | self._plan.combinations[number]
        for name in dict.fromkeys(name for one in found for name in one.metrics):
            values = [one.metrics.get(name) for one in found]
            known = [value for value in values if value is not None]
            whole = len(known) == len(values)
            row[name] = float(np.mean(known)) if whole else None
            if self._folds is not None:
                row[f"{name}_std"] = float(np.std(known, ddof=1)) if whole else None
        row["epochs"] = float(np.mean([one.epochs for one in found]))
        row["reasons"] = [one.reason for one in found]
        row["seconds"] = sum(one.seconds for one in found)
        if self._folds is not None:
            row["folds"] = [one.metrics | {"epochs": one.epochs} for one in found]
        row["notes"] = list(dict.fromkeys(note for one in found for note in one.notes))
        return row

    def _picked(self) -> int:
        """The number of the best row of the table; the first one of equal rows."""
        judged = [
            (self._key(row[self._metric]), number)
            for number, row in enumerate(self._table)
            if row.get(self._metric) is not None
        ]
        if judged:
            return min(judged)[1]
        if self._divergence is not None:
            raise self._divergence
        raise OptionError(
            f"metric: {self._metric} does not exist for this loss on these rows; use another one"
        )

    def _final(self, picked: int) -> Config:
        """The options of the final training. Only given `validate` rows stop it early."""
        best, row = self._plan.combinations[picked], self._table[picked]
        config = Config.of(self._plan.options | best | {"early_stopping": None})
        if self._given_judges is None and "overfitting" in row["reasons"]:
            fewer = max(1, round(row["epochs"]))
            config = replace(config, epochs=min(config.epochs or fewer, fewer))
        about = {"options": best, "rows": len(self._rows), "epochs": config.epochs}
        self._watcher.search({"kind": "picked"} | about)
        return config
