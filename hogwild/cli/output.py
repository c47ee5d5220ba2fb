"""Where commands write their lines: to standard output, or to a file, whole or not at all."""

import argparse
import sys
from collections.abc import Iterable

from hogwild.paths import writing


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", metavar="FILE", help="write here, not to standard output")


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
