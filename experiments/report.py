"""What the experiments share: options, tables, records, the objective, and how a command ends."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild import machine, trace
from hogwild.errors import HogwildError, OptionError
from hogwild.results import Result

FOLDER = Path(__file__).resolve().parent
OUT = FOLDER / "out"

LEAST_ROWS = 100  # with fewer, all labels may be the same
ROW_BYTES = 8 * 77  # of an RCV1-shaped row

Vector = npt.NDArray[np.float64]


def command(main: Callable[[], None]) -> int:
    """Runs an experiment. The exit code: 0 done, 1 failed, 2 wrong usage, 130 after Ctrl-C."""
    try:
        main()
    except (HogwildError, OSError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, OptionError) else 1
    except KeyboardInterrupt:
        print("\ninterrupted; nothing was recorded", file=sys.stderr)
        return 130
    return 0


def say(text: str) -> None:
    """A line, at once."""
    print(text, flush=True)


def rows_option(parser: argparse.ArgumentParser, default: int, copies: float) -> None:
    """Adds --rows; refuses what `copies` times as much memory as the rows take cannot hold."""

    def rows(text: str) -> int:
        count = int(text) if text.isascii() and text.isdigit() else 0
        if count < LEAST_ROWS:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number of rows, {LEAST_ROWS} or more"
            )
        needed = count * ROW_BYTES * copies
        if needed > machine.memory_limit():
            raise argparse.ArgumentTypeError(
                f"{count:,} rows would need {needed / 1e9:,.0f} GB of memory, and there are "
                f"{machine.memory_limit() / 1e9:,.0f}: take fewer"
            )
        return count

    parser.add_argument("--rows", type=rows, default=default, metavar="N", help=f"[{default}]")


def data_option(parser: argparse.ArgumentParser) -> None:
    """Adds --data: files of rows to measure instead of generated ones."""
    parser.add_argument("--data", nargs="+", metavar="FILE", help="these, not generated rows")


def about_machine() -> str:
    """Two lines: the machine, and the versions of what computes."""
    found = machine.record()
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions().items())
    return (
        f"Machine   {found['cpu']}, {found['usable_cores']} of {found['cores']} cores usable, "
        f"{machine.memory_limit() / 2**30:.0f} GiB, {found['system']}\n"
        f"Versions  {versions}"
    )


def header(options: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The first line of a record: the machine, the versions, the time, the options."""
    return trace.header(options, {}, {}) | more


def record(name: str, lines: list[dict[str, Any]]) -> None:
    """Writes a record as JSON lines into experiments/out, and says where."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.jsonl"
    trace.write(path, lines)
    say(f"\nRecord: {_short(path)}")


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def table(head: list[str], rows: list[list[str]]) -> str:
    """The processor's name, and columns as wide as their cells, flush right but for the first."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [head, *rows]
    ]
    cores = machine.usable_cores()
    return "\n".join([f"{machine.cpu_name()}, {cores} core{'s' * (cores > 1)}", *lines])


def finished(result: Result) -> Result:
    """The result, unless Ctrl-C ended the training."""
    if result.reason == "interrupted":
        raise KeyboardInterrupt
    return result


def objective(
    X: Any, targets: Vector, weights: Vector, intercept: float, loss: str, l2: float
) -> float:
    """l2/2 |w|^2 + mean(loss), in float64, of any trainer's weights. X is a scipy matrix."""
    margins = targets * (X @ weights + intercept)
    if loss == "hinge":
        mean = float(np.mean(np.maximum(0.0, 1.0 - margins)))
    else:
        mean = float(np.mean(np.logaddexp(0.0, -margins)))
    return l2 / 2 * float(weights @ weights) + mean
