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
from hogwild.data.rows import Labels, Rows, check_same_base
from hogwild.errors import DataError, HogwildError, WorkerError
from hogwild.parallel.interrupt import Interrupt
from hogwild.paths import PathLike, check_apart, check_output, check_space
from hogwild.problems.linear_model import LinearModel
from hogwild.problems.registry import PROBLEMS

ROOM = 1 << 16  # bytes of a model file besides its weights, amply


def train(
    data: Rows | PathLike,
    *,
    test: Rows | PathLike | None = None,
    model: PathLike | None = None,
    trace: PathLike | None = None,
    watcher: Watcher | None = None,
    start: State | None = None,
    labels: Labels | None = None,
    index_base: str | int = "auto",
    **options: Any,
) -> Result:
    """Trains a model.

    Args:
        data: rows with labels, or the file to load them from.
        test: rows (or their file) to report the error on after every epoch.
        model: a file to save the model in, also after Ctrl-C or the death of a worker.
        trace: a file for the record of the run, as JSON lines.
        watcher: is told how the run goes.
        start: the `state` of an earlier result, to go on from.
        labels: the negative and the positive label, where the data has only one of them.
        index_base: the number of the first column, where `data` is a file of text; see `load`.
        **options: the fields of `hogwild.Config`: task, loss, l2, epochs, workers, ...

    Returns:
        The model, the reason why training stopped, and the trace. After Ctrl-C the reason is
        "interrupted" and the model is the one so far: code that trains in a loop should look.

    Raises:
        OptionError: lists all the options that are out of range.
        DataError: data that cannot be learned from.
        DivergenceError: the weights overflowed.
        WorkerError: a worker ended; its `result` has the model of the last finished epoch.
    """
    config = Config.of(options)
    for path in (model, trace):
        if path is not None:
            check_output(path)
    files = [None if isinstance(given, Rows) else given for given in (data, test)]
    check_apart({"model": model, "trace": trace}, files)
    rows = _loaded(data, index_base)
    tests = _test_rows(test, rows)
    if model is not None:
        check_space(model, rows.columns * 4 + ROOM)
    problem = PROBLEMS[config.task](rows, tests, config, labels)
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


def _loaded(data: Rows | PathLike, index_base: str | int) -> Rows:
    if isinstance(data, Rows):
        return data
    if not isinstance(data, str | os.PathLike):
        raise DataError(
            f"expected hogwild.Rows or the name of a file, not a {type(data).__name__}; "
            "hogwild.Rows(X, y) takes matrices"
        )
    return load(data, index_base=index_base)


def _test_rows(test: Rows | PathLike | None, rows: Rows) -> Rows | None:
    if test is None:
        return None
    # Of a file, the training data says which number its first column has
    tests = _loaded(test, "auto" if rows.index_base is None else rows.index_base)
    check_same_base(tests, rows.index_base, rows.name)
    if not len(tests):
        raise DataError(f"{tests.name} has no rows to test on")
    return tests


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


def _rescue(model: LinearModel) -> str | None:
    for folder in (tempfile.gettempdir, Path.home, Path.cwd):
        try:
            path = Path(folder()) / f"hogwild-model-{secrets.token_hex(4)}.hog"
            model.save(path)
        except (HogwildError, OSError, RuntimeError):
            continue
        return str(path)
    return None
