"""`hogwild predict`."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from hogwild.cli.options import base_of, plain
from hogwild.errors import OptionError

LINES = 100_000  # made and written at a time


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("model", metavar="MODEL", help="a file that train --model wrote")
    parser.add_argument("data", metavar="DATA", help="rows to predict; labels in it are ignored")
    parser.add_argument("--output", metavar="FILE", help="write here, not to standard output")
    parser.add_argument("--score", action="store_true", help="scores instead of labels")
    parser.add_argument(
        "--proba", action="store_true", help="the second label's probability instead of labels"
    )


def run(parsed: argparse.Namespace) -> int:
    """Prints a label, a score or a probability for every row."""
    from hogwild.data.files import load
    from hogwild.paths import check_apart, check_output
    from hogwild.problems.registry import load_model

    if parsed.score and parsed.proba:
        raise OptionError("score: choose one of --score and --proba")
    if parsed.output:
        check_output(parsed.output)
        check_apart({"output": parsed.output}, [parsed.model, parsed.data])
    model = load_model(parsed.model)
    rows = load(parsed.data, index_base=base_of(model), labels=False)
    if parsed.proba:
        lines = _lines(model.predict_proba(rows)[:, 1].tolist(), "{:.9g}")
    elif parsed.score:
        lines = _lines(model.decision_function(rows).tolist(), "{:.9g}")
    else:
        names = [plain(label) for label in model.labels]
        positive = (model.decision_function(rows) > 0).tolist()
        lines = _lines([names[said] for said in positive], "{}")
    _put(lines, parsed.output)
    return 0


def _lines(values: list[Any], form: str) -> Iterator[str]:
    for begin in range(0, len(values), LINES):
        yield "".join(form.format(v) + "\n" for v in values[begin : begin + LINES])


def _put(lines: Iterator[str], output: str | None) -> None:
    if output is None:
        for some in lines:
            sys.stdout.write(some)
        sys.stdout.flush()
        return
    from hogwild.data.atomic import writing

    with writing(output) as file:
        for some in lines:
            file.write(some.encode())
