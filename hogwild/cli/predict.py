"""`hogwild predict`."""

import argparse
from collections.abc import Iterator
from itertools import compress
from typing import Any

from hogwild.cli.options import add_columns, add_data, add_model, base_of, files_in, plain, refuse
from hogwild.cli.parser import group
from hogwild.cli.streams import add_output, complain, put
from hogwild.data.ratings_files import load_ratings
from hogwild.data.rows import Rows
from hogwild.data.sets import named
from hogwild.errors import OptionError
from hogwild.learn.registry import load_model
from hogwild.models.factors import FactorModel
from hogwild.paths import check_files
from hogwild.streaming import STANDARD_INPUT, rows_of_stream

LINES = 100_000  # lines that are made and written at a time

EXAMPLES = ("m.hog new.svm --output labels.txt", "m.hog new.svm --proba")
DOING = "predicting"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    what = "rows to predict, or - for a stream of text from standard input; or pairs of user and "
    what += "item. Labels and ratings in it are ignored"
    add_data(parser, what)
    add_output(parser)
    add = group(parser, "output").add_argument
    add("--score", action="store_true", help="scores instead of labels or probabilities")
    add(
        "--proba",
        action="store_true",
        help="the second label's probability instead of labels; of more labels, that of each",
    )
    add("--strict", action="store_true", help="refuse pairs of unknown users or items")
    add_columns(parser)


def run(parsed: argparse.Namespace) -> int:
    """Prints a label, a score, a probability or a rating for every row or pair."""
    if parsed.score and parsed.proba:
        raise OptionError("score: choose one of --score and --proba")
    check_files({"output": parsed.output}, *named(parsed.model, files_in(parsed)))
    model = load_model(parsed.model)
    predict = _of_pairs if model.kind == FactorModel.kind else _of_rows
    put(predict(model, parsed), parsed.output)
    return 0


def _of_pairs(model: Any, parsed: argparse.Namespace) -> Iterator[str]:
    refuse(parsed, model, "proba")
    pairs = load_ratings(files_in(parsed), columns=parsed.columns, values=False)
    predict = model.decision_function if parsed.score else model.predict
    return _lines(predict(pairs, strict=parsed.strict).tolist(), "{:.9g}")


def _of_rows(model: Any, parsed: argparse.Namespace) -> Iterator[str]:
    refuse(parsed, model, "strict", "columns")
    data = files_in(parsed)
    if data == STANDARD_INPUT:
        return _of_stream(model, parsed)
    return _predicted(model, model.load(data, labels=False), parsed)


def _of_stream(model: Any, parsed: argparse.Namespace) -> Iterator[str]:
    """Some rows at a time, as they come."""
    if model.features is not None:
        raise OptionError(
            f"{parsed.model}: the model reads text or tables, and a stream has svmlight text; "
            "write the text into a file, and name that"
        )
    unseen = 0
    for rows in rows_of_stream(STANDARD_INPUT, base_of(model), labels=False):
        known = rows
        if rows.columns > model.columns:
            known = rows.narrowed(model.columns)
            unseen += rows.nonzeros - known.nonzeros
        yield from _predicted(model, known, parsed)
    if unseen:
        complain(f"{unseen:,} values are in columns that the model never saw; they are ignored")


def _predicted(model: Any, rows: Rows, parsed: argparse.Namespace) -> Iterator[str]:
    if parsed.proba:
        found = model.predict_proba(rows)
        return _numbers(found if model.target.heads > 1 else found[:, 1])
    if parsed.score:
        return _numbers(model.decision_function(rows))
    if not model.labels:
        return _numbers(model.predict(rows))
    found = model.predict(rows)
    if found.ndim == 1:
        return _lines([plain(label) for label in found.tolist()], "{}")
    names = [plain(label) for label in model.labels]
    return _lines([",".join(compress(names, row)) for row in found.tolist()], "{}")


def _numbers(values: Any) -> Iterator[str]:
    """A line for each row: a number, or the numbers of all classes with blanks between them."""
    if values.ndim == 1:
        return _lines(values.tolist(), "{:.9g}")
    form = " ".join(["{:.9g}"] * values.shape[1])
    return _lines([form.format(*row) for row in values.tolist()], "{}")


def _lines(values: list[Any], form: str) -> Iterator[str]:
    for begin in range(0, len(values), LINES):
        yield "".join(form.format(v) + "\n" for v in values[begin : begin + LINES])
