"""`hogwild plot`."""

import argparse

from hogwild.paths import check_files
from hogwild.plots import AGAINST, check_output, learning_curves, write

OUTPUT = "curves.html"


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("traces", metavar="TRACE", nargs="+", help="a file that train --trace wrote")
    add(
        "--output",
        metavar="FILE",
        default=OUTPUT,
        help=f"what to write: .html, or with matplotlib .png or .svg [{OUTPUT}]",
    )
    add("--against", choices=AGAINST, default="seconds", help="the horizontal axis [seconds]")


def run(parsed: argparse.Namespace) -> int:
    """Draws the objective, the gap and the errors of runs."""
    check_files({"output": parsed.output}, *parsed.traces)
    check_output(parsed.output)
    write(parsed.output, "Learning curves", learning_curves(parsed.traces, parsed.against))
    print(f"saved: {parsed.output}")
    return 0
