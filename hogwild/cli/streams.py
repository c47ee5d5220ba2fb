"""Where commands write: standard output, standard error (either may be closed), or a file."""

import argparse
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from hogwild import status
from hogwild.cli.parser import group
from hogwild.live import harmless
from hogwild.paths import writing


def complain(text: str) -> None:
    """Writes a message of the program to standard error, or nothing if that is closed."""
    status.clear()
    said = harmless(f"hogwild: {text}").replace("\n", "\n         ")
    try:
        print(said, file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def show(text: str) -> None:
    """A line of a result."""
    status.clear()
    print(harmless(text))


def say(text: str) -> None:
    """Writes a line at once. If no line can be written any more, the work goes on silently."""
    global _lost
    status.clear()
    try:
        print(harmless(text), flush=True)
    except OSError as problem:
        silence(sys.stdout)
        if not isinstance(problem, BrokenPipeError):
            _lost = True
            complain(f"standard output: {problem.strerror}")


_lost = False  # whether `say` failed to write a line, other than to a closed pipe


def begin_output() -> None:
    """Prepares standard output. Call this before anything is written.

    If standard output is unbuffered (python -u), Python drops what the system did not take at once,
    such as the rest of a write to a nearly full disk. A buffer writes the rest, or fails.
    """
    global _lost
    _lost = False
    if sys.stdout is None:  # closed by the program that started this one
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    elif isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        encoding, errors, number = sys.stdout.encoding, sys.stdout.errors, sys.stdout.fileno()
        sys.stdout = open(number, "w", 1, encoding, errors, closefd=False)  # noqa: SIM115


def end_output() -> bool:
    """Writes the rest of the output; returns whether all output was written."""
    sys.stdout.flush()
    return not _lost


def silence_if_broken() -> None:
    """After an error: silences standard output if nothing can be written to it."""
    try:
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)


def silence(stream: TextIO) -> None:
    """Discards what a stream still has to write, so that Python does not fail at exit."""
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
