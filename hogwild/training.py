"""`hogwild.train`: from data and options to a model, and to files where some were asked for."""

import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from hogwild import trace as records
from hogwild.config import Config
from hogwild.coordinator import Result, Run, State, Watcher
from hogwild.data.files import load
from hogwild.data.ratings import Ratings
from hogwild.data.ratings_files import load_ratings, named_as_ratings
from hogwild.data.rows import Labels, Rows, check_same_base
from hogwild.errors import DataError, HogwildError, OptionError, WorkerError
from hogwild.interrupt import Interrupt
from hogwild.paths import PathLike, check_apart, check_output, check_space
from hogwild.problems.factor_model import FactorModel
from hogwild.problems.problem import Problem
from hogwild.problems.registry import PROBLEMS

ROOM = 1 << 16  # bytes of a model file besides its weights, amply


def train(
    data: Rows | Ratings | PathLike,
    *,
    test: Rows | Ratings | PathLike | None = None,
    model: PathLike | None = None,
    trace: PathLike | None = None,
    watcher: Watcher | None = None,
    start: State | FactorModel | None = None,
    labels: Labels | None = None,
    index_base: str | int = "auto",
    columns: Any = None,
    duplicates: str = "keep",
    **options: Any,
) -> Result:
    """Trains a model.

    Args:
        data: rows with labels, or for the task mf ratings; or the file to load them from.
        test: rows or ratings (or their file) to report the error on after every epoch.
        model: a file to save the model in, also after Ctrl-C or the death of a worker.
        trace: a file for the record of the run, as JSON lines.
        watcher: is told how the run goes.
        start: the `state` of an earlier result, to go on from; or a factor model: users and items
            that it does not know begin anew.
        labels: the negative and the positive label, where the data has only one of them.
        index_base: the number of the first column, where `data` is a file of text; see `load`.
        columns: which columns of a file of ratings to read; see `load_ratings`.
        duplicates: what to do with several ratings of an item by a user; see `Ratings`.
        **options: the fields of `hogwild.Config`: task, loss, l2, epochs, workers, ... Without a
            task, ratings (and files with the names of such) mean mf.

    Returns:
        The model, the reason why training stopped, and the trace. After Ctrl-C the reason is
        "interrupted" and the model is the one so far: code that trains in a loop should look.

    Raises:
        OptionError: lists all the options that are out of range.
        DataError: data that cannot be learned from.
        DivergenceError: the objective gets worse, or the weights overflow, however small the rate.
        WorkerError: a worker ended; its `result` has the model of the last finished epoch.
    """
    if isinstance(data, Ratings) or (
        isinstance(data, str | os.PathLike) and named_as_ratings(data)
    ):
        options = {"task": "mf"} | options
    config = Config.of(options)
    for path in (model, trace):
        if path is not None:
            check_output(path)
    files = [given if isinstance(given, str | os.PathLike) else None for given in (data, test)]
    check_apart({"model": model, "trace": trace}, files)
    sets: tuple[Any, Any]
    if config.family == "factors":
        sets = _ratings_sets(data, test, columns, duplicates)
        given = {"labels": labels, "index_base": None if index_base == "auto" else index_base}
    else:
        sets = _row_sets(data, test, index_base)
        given = {"columns": columns, "duplicates": None if duplicates == "keep" else duplicates}
    _refuse(given, config.task)
    problem: Problem = PROBLEMS[config.family](*sets, config, *([labels] if labels else []))
    if model is not None:
        check_space(model, problem.model_bytes + ROOM)
    if isinstance(start, FactorModel):
        start = State(start, 0, 0, config.eta0 or problem.find_rate())
    run = Run(problem, config, watcher or Watcher(), start)
    try:
        result = run.run()
    except WorkerError as death:
        if death.result is None:
            raise
        _write(death.result, model, trace, run.late_interrupt)
        where = f"its weights are in {model}" if model else "no model file was asked for"
        told = WorkerError(f"{death}; {where}")
        told.result = death.result
        raise told from None
    _write(result, model, trace, run.late_interrupt)
    return result


def _refuse(given: dict[str, Any], task: str) -> None:
    wrong = [f"{name}: the task {task} has none" for name, value in given.items() if value]
    if wrong:
        raise OptionError("\n".join(wrong))


def _row_sets(data: Any, test: Any, index_base: str | int) -> tuple[Rows, Rows | None]:
    rows = _loaded_rows(data, index_base)
    if test is None:
        return rows, None
    # Of a file, the training data says which number its first column has
    tests = _loaded_rows(test, "auto" if rows.index_base is None else rows.index_base)
    check_same_base(tests, rows.index_base, rows.name)
    if not len(tests):
        raise DataError(f"{tests.name} has no rows to test on")
    return rows, tests


def _loaded_rows(data: Any, index_base: str | int) -> Rows:
    if isinstance(data, Rows):
        return data
    if isinstance(data, str | os.PathLike):
        if named_as_ratings(data):
            raise OptionError(f"task: {data} holds ratings, by its name; give the task mf")
        return load(data, index_base=index_base)
    cure = "hogwild.Rows(X, y) takes matrices"
    if isinstance(data, Ratings):
        cure = "ratings are for the task mf"
    raise DataError(
        f"expected hogwild.Rows or the name of a file, not a {type(data).__name__}; {cure}"
    )


def _ratings_sets(
    data: Any, test: Any, columns: Any, duplicates: str
) -> tuple[Ratings, Ratings | None]:
    ratings = _loaded_ratings(data, columns, duplicates)
    if test is None:
        return ratings, None
    tests = _loaded_ratings(test, columns, duplicates)
    if not len(tests):
        raise DataError(f"{tests.name} has no ratings to test on")
    return ratings, tests


def _loaded_ratings(data: Any, columns: Any, duplicates: str) -> Ratings:
    if isinstance(data, Ratings):
        return data.deduplicated(duplicates)
    if isinstance(data, str | os.PathLike):
        return load_ratings(data, columns=columns, duplicates=duplicates)
    cure = "hogwild.Ratings(matrix) takes matrices"
    if isinstance(data, Rows):
        cure = "the task mf learns from users, items and values"
    raise DataError(
        f"expected hogwild.Ratings or the name of a file, not a {type(data).__name__}; {cure}"
    )


def _write(
    result: Result, model: PathLike | None, trace: PathLike | None, interrupt: Interrupt
) -> None:
    """Writes what was asked for; Ctrl-C comes after that."""
    with interrupt:
        if model is not None:
            _save_or_rescue(result, model)
        if trace is not None:
            _write_trace(result, trace)
    if interrupt.happened:
        raise KeyboardInterrupt


def _write_trace(result: Result, path: PathLike) -> None:
    end = {"kind": "end", "reason": result.reason, "notes": result.notes}
    try:
        records.write(path, [result.header, *result.trace, end])
    except HogwildError as problem:
        problem.result = result
        raise


def _save_or_rescue(result: Result, path: PathLike) -> None:
    """Saves the model, where it was asked for or else somewhere, and says where."""
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
