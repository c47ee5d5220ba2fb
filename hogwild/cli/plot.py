"""`hogwild plot`."""

import argparse

from hogwild.cli.parser import group
from hogwild.cli.streams import show
from hogwild.paths import check_files
from hogwild.plots import AGAINST, check_output, learning_curves, write

OUTPUT = "curves.html"
EXAMPLES = ("run.jsonl", "one.jsonl other.jsonl --against epochs --output curves.png")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "traces", metavar="TRACE...", nargs="+", help="files that train --trace wrote"
    )
    add = group(parser, "output").add_argument
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
    show(f"saved: {parsed.output}")
    return 0
