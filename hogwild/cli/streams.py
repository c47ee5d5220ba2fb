"""Where commands write: standard output and error, of which either may be gone, or a file."""

import argparse
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from hogwild import status
from hogwild.cli.parser import group
from hogwild.paths import writing


def complain(text: str) -> None:
    """A message on standard error, as the program's own. Where that is gone, nothing."""
    status.clear()
    try:
        print(f"hogwild: {text}".replace("\n", "\n         "), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def show(text: str) -> None:
    """A line of a result."""
    status.clear()
    print(text)


def silence(stream: TextIO) -> None:
    """Sends what is still to be written there nowhere: Python must not fail for it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def add_output(parser: argparse.ArgumentParser) -> None:
    add = group(parser, "output").add_argument
    add("--output", metavar="FILE", help="write here, not to standard output")


def put(lines: Iterable[str], output: str | None) -> None:
    """Writes lines, some at a time."""
    if output is None:
        for some in lines:
            status.clear()
            sys.stdout.write(some)
            sys.stdout.flush()
        return
    with writing(output) as file:
        for some in lines:
            file.write(some.encode())
