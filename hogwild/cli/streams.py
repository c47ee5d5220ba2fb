"""Where commands write: standard output and error, of which either may be gone, or a file."""

import argparse
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
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


def say(text: str) -> None:
    """A line, at once. Where none can be written any more, the work goes on in silence."""
    global _lost
    status.clear()
    try:
        print(text, flush=True)
    except OSError as problem:
        silence(sys.stdout)
        if not isinstance(problem, BrokenPipeError):
            _lost = True
            complain(f"standard output: {problem.strerror}")


_lost = False  # whether `say` could not write something for which somebody waits


def begin_output() -> None:
    """To be called before anything is written: nothing is lost yet.

    Of an unbuffered standard output (python -u), Python drops what the system did not take at once,
    such as the rest of a write to a disk that is nearly full. A buffer writes on, or fails.
    """
    global _lost
    _lost = False
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    elif isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        encoding, errors, number = sys.stdout.encoding, sys.stdout.errors, sys.stdout.fileno()
        sys.stdout = open(number, "w", 1, encoding, errors, closefd=False)  # noqa: SIM115


def end_output() -> bool:
    """Writes what is left, and returns whether all that was to be written was."""
    sys.stdout.flush()
    return not _lost


def silence_if_broken() -> None:
    """After an error: if standard output takes nothing, it is silenced."""
    try:
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)


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
