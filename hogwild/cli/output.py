"""Where commands write their lines: to standard output, or to a file, whole or not at all."""

import argparse
import sys
from collections.abc import Iterable

from hogwild.data.atomic import writing
from hogwild.paths import check_apart, check_output


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE", help="write here, not to standard output")


def check(parsed: argparse.Namespace, *inputs: str | None) -> None:
    """Refuses a file that cannot be written, or that is an input."""
    if parsed.output:
        check_output(parsed.output)
        check_apart({"output": parsed.output}, list(inputs))


def put(lines: Iterable[str], output: str | None) -> None:
    """Writes lines, some at a time."""
    if output is None:
        for some in lines:
            sys.stdout.write(some)
        sys.stdout.flush()
        return
    with writing(output) as file:
        for some in lines:
            file.write(some.encode())
