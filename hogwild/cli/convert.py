"""`hogwild convert`."""

import argparse
from pathlib import Path

from hogwild.cli.options import add_index_base
from hogwild.cli.parser import Parser, group
from hogwild.cli.streams import say
from hogwild.data.convert import convert
from hogwild.data.files import load
from hogwild.errors import OptionError

EXAMPLES = ("train.svm train.rows", "part1.svm.gz part2.svm.gz train.rows")


def add_options(parser: Parser) -> None:
    add = parser.add_argument
    add("sources", metavar="SRC", nargs="+", help="rows to read, in any format")
    add("target", metavar="DST", help="the file to write: .rows, .npz, or else svmlight text")
    group(parser, "output").add_argument("--quiet", action="store_true", help="print nothing")
    add_index_base(parser)


def run(parsed: argparse.Namespace) -> int:
    """Writes the rows of some files to another."""
    missing = [name for name in parsed.sources if not Path(name).exists()]
    if missing:
        raise OptionError("\n".join(f"sources: there is no file {name}" for name in missing))
    convert(parsed.sources, parsed.target, index_base=parsed.index_base)
    if not parsed.quiet:
        size = Path(parsed.target).stat().st_size
        say(f"saved: {parsed.target}, {size:,} bytes, {load(parsed.target, labels=False)}")
    return 0
