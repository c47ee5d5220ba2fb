"""`hogwild export`."""

import argparse

from hogwild.cli.options import add_model
from hogwild.cli.streams import show
from hogwild.learn.registry import load_model
from hogwild.models.exports import FORMATS, export
from hogwild.paths import check_files

EXAMPLES = ("m.hog m.onnx", "m.hog m.liblinear")


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    names = ", ".join(FORMATS)
    parser.add_argument("output", metavar="FILE", help=f"what to write; its name ends with {names}")


def run(parsed: argparse.Namespace) -> int:
    """Writes a model in the format that the name of the output says."""
    check_files({"output": parsed.output}, parsed.model)
    export(load_model(parsed.model), parsed.output)
    show(f"saved: {parsed.output}")
    return 0
