"""`hogwild convert`."""

import argparse
from pathlib import Path

from hogwild.cli.features import add_features, feature_options
from hogwild.cli.options import add_index_base
from hogwild.cli.parser import Parser, group
from hogwild.cli.streams import say
from hogwild.data.convert import convert
from hogwild.data.files import load

EXAMPLES = ("part-*.svm.gz train.rows", "reviews.txt train.rows --format text --idf")


def add_options(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "sources",
        metavar="SRC",
        nargs="+",
        help="rows to read, in any format; text or tables, with options for features; a folder or "
        "a pattern in quotes stands for its files",
    )
    add("target", metavar="DST", help="the file to write: .rows, .npz, or else svmlight text")
    group(parser, "output").add_argument("--quiet", action="store_true", help="print nothing")
    add_index_base(parser)
    add_features(parser)


def run(parsed: argparse.Namespace) -> int:
    """Writes the rows of some files to another."""
    settings = feature_options(parsed)
    convert(parsed.sources, parsed.target, index_base=parsed.index_base, **settings)
    if not parsed.quiet:
        size = Path(parsed.target).stat().st_size
        say(f"saved: {parsed.target}, {size:,} bytes, {load(parsed.target, labels=False)}")
    return 0
