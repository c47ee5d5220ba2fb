"""`hogwild.train`: from data and options to a model, and to files if they are asked for."""

import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hogwild import status
from hogwild import trace as records
from hogwild.callbacks import together
from hogwild.checkpoint import EVERY
from hogwild.config import TASKS, Config
from hogwild.coordinator import Run
from hogwild.data.cache import NO_CACHE, cached
from hogwild.data.files import by_name, features_of, load, load_weights
from hogwild.data.opening import suffix_of
from hogwild.data.ratings import Ratings
from hogwild.data.ratings_files import load_ratings, named_as_ratings
from hogwild.data.rows import Labels, Rows, check_same_base, check_same_features
from hogwild.data.rows_file import SUFFIX
from hogwild.data.sets import Files, are_files, files_of, name_of, named
from hogwild.display import Lines
from hogwild.errors import DataError, HogwildError, OptionError, WorkerError
from hogwild.features.encoder import Features
from hogwild.features.settings import NAMES
from hogwild.learn.factors import FactorProblem
from hogwild.learn.linear import LinearProblem
from hogwild.learn.problem import Problem
from hogwild.live import live
from hogwild.models.linear import LinearModel
from hogwild.paths import PathLike, check_files, check_space
from hogwild.results import Result, Watcher
from hogwild.starts import GoingOn, Start
from hogwild.trace import Row

R = TypeVar("R", bound=Result)
D = TypeVar("D", Rows, Ratings)
Keep = Callable[..., Path]  # what `cached` does


def train(
    data: Rows | Ratings | Files,
    *,
    test: Rows | Ratings | Files | None = None,
    validate: Rows | Files | None = None,
    model: PathLike | None = None,
    trace: PathLike | None = None,
    watcher: Watcher | None = None,
    callbacks: Iterable[Watcher] = (),
    verbose: int = 0,
    start: Start | None = None,
    checkpoint: PathLike | None = None,
    every: int | str = EVERY,
    resume: PathLike | None = None,
    labels: Labels | None = None,
    sample_weight: Any = None,
    index_base: str | int = "auto",
    columns: Any = None,
    duplicates: str = "keep",
    cache: bool = False,
    features: Features | None = None,
    **options: Any,
) -> Result:
    """Trains a model.

    Args:
        data: rows with labels, or for the task mf ratings; or the file (or files) to load them
            from, see `load`.
        test: rows or ratings (or their file); their error is reported after every epoch.
        validate: rows (or their file) that are not learned from. Training stops when their loss has
            not decreased for `patience` epochs, and returns the model of the best epoch. The option
            `early_stopping` holds out a share of the data for the same purpose.
        model: a file to save the model in, also after Ctrl-C or the death of a worker.
        trace: a file for the record of the run, as JSON lines.
        watcher: its methods are called as the run goes on.
        callbacks: more watchers; a `hogwild.Callback` can also look at the model, and stop the run.
            `hogwild.callbacks` has some: best model, CSV, JSON lines, MLflow, TensorBoard, Optuna.
        verbose: 1 prints what the command line prints, 2 also why things were chosen.
        start: what to go on from: the `state` of an earlier result, or a model or its file, of
            which the weights are taken. New columns begin with zero weights; to a factor model, new
            users and items are added.
        checkpoint: a file to save all that this training needs to go on, to the bit, in case it is
            broken off; also after Ctrl-C and at the end.
        every: when to do so: after this number of epochs, or after a time, such as "30s" or "5m".
        resume: a checkpoint to go on from, with the same data and options; but the number of
            epochs, the time limit and the number of workers may differ. "auto" goes on from
            `checkpoint` if there is such a file, and else begins.
        labels: the negative and the positive label, if the data has only one of them.
        sample_weight: a weight for each row of the data: an array, or a file with a number a line.
        index_base: the number of the first column, where `data` is a file of text; see `load`.
        columns: which columns of a file of ratings to read; see `load_ratings`.
        duplicates: what to do with several ratings of an item by a user; see `Ratings`.
        cache: whether to keep a `.rows` file beside each file of rows. The `.rows` file is read
            instead until the original changes; see `cached`.
        features: how rows are made, if `data` is a file of text or a table. Test and validation
            files are read in the same way.
        **options: the fields of `hogwild.Config`: task, loss, l2, epochs, workers, ... For ratings
            (and files named as such) the default task is mf. Those of `hogwild.Features` may stand
            among them, in place of `features`.

    Returns:
        The model, the reason why training stopped, and the trace. After Ctrl-C the reason is
        "interrupted" and the model is the one so far. Code that trains in a loop should check the
        reason.

    Raises:
        OptionError: lists all the options that are out of range.
        DataError: data that cannot be learned from.
        DivergenceError: the objective rises, or the weights overflow, even at a small rate.
        WorkerError: a worker died; the error's `result` has the model of the last finished epoch.
    """
    settings, options = with_task(options, data, features)
    config = Config.of(options)
    going = GoingOn.of(config.family, start, checkpoint, every, resume)
    if not cache:
        _check_format(config, data)
    outputs = {"model": model, "trace": trace, "checkpoint": checkpoint}
    check_files(outputs, *named(data, test, validate, sample_weight))
    reading = {"index_base": index_base, "columns": columns, "duplicates": duplicates}
    asked = asked_for(
        options
        | settings
        | reading
        | ({"cache": True} if cache else {})
        | ({"every": every} if every != EVERY else {}),
        checkpoint=checkpoint,
        resume=resume,
        data=data,
        test=test,
        validate=validate,
        sample_weight=sample_weight,
    )
    with watched(watcher, verbose) as follower:
        followers = together(follower, callbacks)
        if config.family == "factors":
            given = {"labels": labels, "sample_weight": sample_weight is not None, "cache": cache}
            _refuse(given | settings | {"features": features}, config.task)
            problem = _factor_problem(config, data, test, validate, columns, duplicates)
        else:
            _refuse({"columns": columns, "duplicates": duplicates != "keep"}, config.task)
            _check_patience(config, validate)
            keep = partial(cached, tell=follower.tell) if cache else None
            sources = Sources(index_base, keep, features_for(data, features, settings, cache))
            sources = sources.like(going.model)
            rows, *others = row_sets(data, test, validate, sources, sample_weight)
            problem = _linear_problem(config, rows, others, labels, going)
        if model is not None:
            check_space(model, problem.model_bytes)
        run = going.run(problem, config, followers)
        run.asked = asked
        with followers.following(run):
            run.prepare()
            with run.interrupt:
                result = run_and_write(run, model, trace, lambda result: result)
                followers.result = result
        if run.interrupt.happened and result.reason != "interrupted":
            raise KeyboardInterrupt("training was done, and all that was asked for is written")
        follower.end(result)
        return result


def _factor_problem(
    config: Config, data: Any, test: Any, validate: Any, columns: Any, duplicates: str
) -> Problem:
    if validate is not None:
        raise OptionError(
            "validate: not available for the task mf; give early_stopping, a share of the ratings "
            "to hold out"
        )
    ratings = _loaded_ratings(data, columns, duplicates)
    tests = None if test is None else _not_empty(_loaded_ratings(test, columns, duplicates))
    with status.doing("preparing"):
        return FactorProblem(ratings, tests, config)


def _linear_problem(
    config: Config, rows: Rows, others: list[Rows | None], labels: Labels | None, going: GoingOn
) -> Problem:
    test, validate = others
    if going.model is not None:
        rows = rows.widened(going.model.columns)
    with status.doing("preparing"):
        given = rows, test, config, labels, validate, going.weights
        return LinearProblem(*given, compact=going.start is None)


def _check_patience(config: Config, validate: Any) -> None:
    """Refuses rows to judge by, or a patience, that the training cannot use."""
    if validate is not None:
        check_judge(config)
    elif config.proves and config.early_stopping is None and config.patience != Config.patience:
        raise OptionError(
            f"patience: the solver {config.solver} stops by what it proves; leave it out, or give "
            "rows to judge by: validate or early_stopping"
        )


def _check_format(config: Config, data: Any) -> None:
    """Refuses a limit of memory for a file that must be read as a whole, before it is read."""
    files = files_of(data) if config.memory is not None and are_files(data) else []
    if any(suffix_of(file) != SUFFIX for file in files):
        name = name_of(files)
        raise OptionError(f"memory: it needs a .rows file: hogwild convert {name} train.rows")


def with_task(
    options: dict[str, Any], data: Any, features: Features | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits options into settings of features and the others, which get a task.

    If no task is given, ratings get the task mf. A file that is named like ratings is a table of
    rows if there are settings of features.
    """
    settings = {name: value for name, value in options.items() if name in NAMES}
    rest = {name: value for name, value in options.items() if name not in NAMES}
    tables = bool(settings) or features is not None
    by_name = are_files(data) and named_as_ratings(data) and not tables
    task = "mf" if by_name or isinstance(data, Ratings) else Config.task
    return settings, {"task": task} | rest


def features_for(
    data: Any, features: Features | None, settings: dict[str, Any], cache: bool = False
) -> Features | None:
    """How rows are made of data; None if the data already holds rows."""
    found = features_of(features, settings)
    if found is not None and isinstance(data, Rows):
        raise OptionError("features: the data has columns already; leave out the settings of them")
    if found is not None and cache and found.settings.format != "svmlight":
        raise OptionError(NO_CACHE)
    return found


@contextmanager
def watched(watcher: Watcher | None, verbose: int) -> Iterator[Watcher]:
    """The watcher that was given, or one that prints what `verbose` asks for."""
    if verbose and watcher is not None:
        raise OptionError("verbose: not together with a watcher; leave one of them out")
    with live(bool(verbose)):
        yield Lines(why=verbose > 1) if verbose else watcher or Watcher()


def asked_for(options: dict[str, Any], **files: Any) -> Row:
    """What was asked for, as far as a file can hold it, so that a run can be repeated."""
    asked: dict[str, Any] = {}
    for name, given in files.items():
        if isinstance(given, str | os.PathLike):
            asked[name] = str(given)
        elif are_files(given):
            asked[name] = list(map(str, files_of(given)))
    for name, value in options.items():
        if isinstance(value, dict):
            asked[name] = ",".join(f"{key}:{number}" for key, number in value.items())
        elif value is not None:
            asked[name] = np.asarray(value).tolist()
    return asked


def run_and_write(
    run: Run, model: PathLike | None, trace: PathLike | None, made_of: Callable[[Result], R]
) -> R:
    """Trains, and writes what was asked for; `made_of` may add to the result before."""
    try:
        result = made_of(run.run())
    except WorkerError as death:
        if death.result is None:
            raise
        raise written_after(death, made_of(death.result), model, trace, "its weights are") from None
    write(result, model, trace)
    return result


def written_after(
    death: WorkerError, result: Result, model: PathLike | None, trace: PathLike | None, what: str
) -> WorkerError:
    """Writes the result from before a worker died. Returns an error that says where `what` is."""
    write(result, model, trace)
    where = f"{what} in {model}" if model else "no model file was asked for"
    error = WorkerError(f"{death}; {where}")
    error.result = result
    return error


def load_data(
    data: Rows | Ratings | Files,
    task: str,
    index_base: str | int = "auto",
    columns: Any = None,
    duplicates: str = "keep",
) -> Rows | Ratings:
    """The data of a task, loaded if it is the name of a file; arguments as for `train`."""
    if TASKS[task].family == "factors":
        _refuse({"index_base": index_base != "auto"}, task)
        return _loaded_ratings(data, columns, duplicates)
    _refuse({"columns": columns, "duplicates": duplicates != "keep"}, task)
    return _loaded_rows(data, Sources(index_base))


def _refuse(given: dict[str, Any], task: str) -> None:
    wrong = [f"{name}: not available for the task {task}" for name, value in given.items() if value]
    if wrong:
        raise OptionError("\n".join(wrong))


class Sources(NamedTuple):
    """How files become rows.

    Attributes:
        index_base: the number of the first column in text.
        keep: gives the file that is kept for a file, if any are kept.
        features: makes rows of text and tables.
    """

    index_base: str | int = "auto"
    keep: Keep | None = None
    features: Features | None = None

    def like(self, model: LinearModel | None) -> "Sources":
        """The same, but files are read as the training data of the model was, if there is one."""
        if model is None:
            return self
        if model.features is not None:
            if self.features is not None:
                raise OptionError("features: the model to go on from has them; leave them out")
            return self._replace(features=model.features.knowing(model.labels))
        base = model.index_base
        return self if base is None or self.index_base != "auto" else self._replace(index_base=base)


def row_sets(
    data: Any, test: Any, validate: Any, sources: Sources, sample_weight: Any = None
) -> tuple[Rows, Rows | None, Rows | None]:
    """Rows to learn from, to test on and to judge on. Names of files are loaded."""
    rows = weighted(_loaded_rows(data, sources), sample_weight)
    # The training data decides how other files are read, and which number their first column has
    base = "auto" if rows.index_base is None else rows.index_base
    sources = sources._replace(index_base=base, features=rows.features)
    others = _others(test, rows, "test on", sources), _others(validate, rows, "judge by", sources)
    return rows, *others


def _others(given: Any, rows: Rows, purpose: str, sources: Sources) -> Rows | None:
    """Other rows (or their file) to go with the rows to learn from; None if none are given."""
    if given is None:
        return None
    if are_files(given) and rows.features is None and by_name(files_of(given), None) is not None:
        raise DataError(
            f"{name_of(files_of(given))} is text or a table, and {rows.name} is not of such"
        )
    others = _loaded_rows(given, sources)
    check_same_base(others, rows.index_base, rows.name)
    if others.features is not None:
        check_same_features(others, rows.features, rows.name)
    return _not_empty(others, purpose)


def _not_empty(tests: D, purpose: str = "test on") -> D:
    if not len(tests):
        what = "ratings" if isinstance(tests, Ratings) else "rows"
        raise DataError(f"{tests.name} has no {what} to {purpose}")
    return tests


def weighted(rows: Rows, sample_weight: Any) -> Rows:
    """The rows with weights from an array or a file, if any are given."""
    if sample_weight is None:
        return rows
    if isinstance(sample_weight, str | os.PathLike):
        sample_weight = load_weights(sample_weight)
    return rows.weighted(sample_weight)


def check_judge(config: Config) -> None:
    """Refuses rows to judge on if training could not evaluate them in every epoch."""
    problems = []
    if config.early_stopping is not None:
        problems.append("validate: not together with early_stopping; leave one of them out")
    if config.objective_every != 1:
        problems.append("validate: it needs an objective_every of 1")
    if problems:
        raise OptionError("\n".join(problems))


def _loaded_rows(data: Any, sources: Sources) -> Rows:
    if are_files(data):
        if named_as_ratings(data) and sources.features is None:
            name = name_of(files_of(data))
            raise OptionError(
                f"task: {name} holds ratings or a table, by its name; of a table, say which column "
                "has the label (label); for ratings, use the task mf"
            )
        base = sources.index_base
        if sources.keep is not None:
            how = sources.features
            if how is not None and how.settings.format != "svmlight":
                raise OptionError(NO_CACHE)
            data = [sources.keep(file, index_base=base) for file in files_of(data)]
        return load(data, index_base=base, features=sources.features)
    if sources.features is not None and not isinstance(data, Rows | Ratings):
        return sources.features.rows(data)
    return _checked(data, Rows)


def _loaded_ratings(data: Any, columns: Any, duplicates: str) -> Ratings:
    if are_files(data):
        return load_ratings(data, columns=columns, duplicates=duplicates)
    return _checked(data, Ratings).deduplicated(duplicates)


# What to do if data is neither a file nor of this kind: for the other kind, and for anything else
CURES = {
    Rows: ("ratings are for the task mf", "hogwild.Rows(X, y) takes matrices"),
    Ratings: (
        "the task mf learns from users, items and values",
        "hogwild.Ratings(matrix) takes matrices",
    ),
}


def _checked(data: Any, kind: type[D]) -> D:
    if not isinstance(data, kind):
        cure = CURES[kind][not isinstance(data, Rows | Ratings)]
        raise DataError(
            f"expected hogwild.{kind.__name__} or the name of a file, not a "
            f"{type(data).__name__}; {cure}"
        )
    return data


def write(result: Result, model: PathLike | None, trace: PathLike | None) -> None:
    """Writes what was asked for."""
    if model is not None:
        with status.doing(f"saving {model}"):
            _save_or_rescue(result, model)
    if trace is not None:
        try:
            records.write(trace, result.records())
        except HogwildError as problem:
            problem.result = result
            raise


def _save_or_rescue(result: Result, path: PathLike) -> None:
    """Saves the model at the given path, or else somewhere, and says where."""
    try:
        result.model.save(path)
    except (HogwildError, OSError) as problem:
        rescued = _rescue(result.model)
        where = f"it is kept in {rescued}" if rescued else "and no other place was found for it"
        error = HogwildError(f"the model could not be saved ({problem}); {where}")
        error.result = result
        raise error from problem


def _rescue(model: Any) -> str | None:
    for folder in (tempfile.gettempdir, Path.home, Path.cwd):
        try:
            path = Path(folder()) / f"hogwild-model-{secrets.token_hex(4)}.hog"
            model.save(path)
        except (HogwildError, OSError, RuntimeError):
            continue
        return str(path)
    return None
