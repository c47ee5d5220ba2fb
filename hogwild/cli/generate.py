"""`hogwild generate`."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.cli.parser import group
from hogwild.cli.streams import show
from hogwild.data.files import save
from hogwild.data.opening import created
from hogwild.data.ratings_files import format_to_write, save_ratings
from hogwild.data.synthetic import rcv1, rcv1_classes, rcv1_numbers
from hogwild.data.synthetic_ratings import movielens
from hogwild.data.synthetic_text import reviews
from hogwild.errors import OptionError
from hogwild.learn.targets import Classes, Counts, Numbers, SeveralLabels
from hogwild.models.heads import HeadsModel
from hogwild.models.linear import LinearModel
from hogwild.paths import check_files

TEST_SHARE = 0.1

EXAMPLES = ("rcv1 train.svm --rows 100000", "ratings ratings.csv --test test.csv")
DOING = "generating"


def add_options(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(title="kinds of data", metavar="KIND", required=True)
    add = _kind(kinds, "rcv1", "text-like sparse rows", ".svm or .npz", _write_rcv1)
    add("--rows", type=int, default=200_000, metavar="N", help="how many rows [%(default)s]")
    add("--columns", type=int, default=47_236, metavar="N", help="how many columns [%(default)s]")
    first = "begin at this row of the endless set that the seed names: for test rows that go with "
    first += "training rows [%(default)s]"
    add("--first-row", type=int, default=0, metavar="N", help=first)
    add("--classes", type=int, metavar="N", help="classes, in place of the labels -1 and 1")
    several = "with --classes: mean number of labels of a row, which then has any number"
    add("--labels", type=float, metavar="X", help=several)
    add("--targets", metavar="WORD", help="numbers or counts, in place of the labels")
    add("--weights", metavar="FILE", help="a file for the weights behind the labels, as a model")
    text = "reviews: a label and a document a line; the order of some word pairs tells the label"
    add = _kind(kinds, "text", text, ".txt", _write_text)
    add("--rows", type=int, default=100_000, metavar="N", help="how many documents [%(default)s]")
    add("--first-row", type=int, default=0, metavar="N", help=first)
    text = "half stars by users for items, by default as many as in MovieLens 1M"
    add = _kind(kinds, "ratings", text, ".csv, .tsv, .npz or .mtx", _write_ratings)
    all_of_them = "how many ratings, those for --test among them [%(default)s]"
    add("--users", type=int, default=6_040, metavar="N", help="how many users [%(default)s]")
    add("--items", type=int, default=3_706, metavar="N", help="how many items [%(default)s]")
    add("--ratings", type=int, default=1_000_209, metavar="N", help=all_of_them)
    behind = "factors of users and items behind the ratings [%(default)s]"
    add("--rank", type=int, default=16, metavar="N", help=behind)
    add("--test", metavar="FILE", help="a second file, for ratings to test on")
    share = f"the share of the ratings that goes there [{TEST_SHARE}]"
    add("--test-share", type=float, metavar="X", help=share)


def _kind(
    kinds: Any, name: str, text: str, suffixes: str, write: Callable[[argparse.Namespace], None]
) -> Callable[..., Any]:
    """Adds a kind of data with the common options; returns a function that adds its own options."""
    parser = kinds.add_parser(name, help=text, description=f"hogwild generate {name}: {text}.")
    file = f"a file to write: {suffixes}; text also with .gz, .bz2, .xz or .zst behind"
    parser.add_argument("output", metavar="OUT", help=file)
    add = group(parser, "data").add_argument
    add("--seed", type=int, default=0, metavar="N", help="[%(default)s]")
    parser.set_defaults(write=write, parser=parser)  # `parser`: whose options errors name
    return add  # type: ignore[no-any-return]


def run(parsed: argparse.Namespace) -> int:
    """Writes seeded synthetic data; the same seed gives the same bytes."""
    parsed.write(parsed)
    return 0


def _write_rcv1(parsed: argparse.Namespace) -> None:
    check_files({"output": parsed.output, "weights": parsed.weights})
    given = parsed.rows, parsed.columns, parsed.seed
    model: LinearModel
    if parsed.targets not in (None, "numbers", "counts"):
        raise OptionError(f"targets: {parsed.targets!r}; it must be numbers or counts")
    if parsed.targets is not None:
        if parsed.classes is not None or parsed.labels is not None:
            raise OptionError("targets: leave out --classes and --labels, or --targets")
        counts = parsed.targets == "counts"
        rows, weights = rcv1_numbers(*given, first_row=parsed.first_row, counts=counts)
        numbers, loss = (Counts(), "poisson") if counts else (Numbers(), "squared")
        model = LinearModel(weights, 0.0, numbers, loss, 1)
    elif parsed.classes is None:
        if parsed.labels is not None:
            raise OptionError("labels: it needs --classes, how many labels there are")
        rows, weights = rcv1(*given, first_row=parsed.first_row)
        model = LinearModel(weights, 0.0, (-1, 1), "hinge", 1)
    else:
        many = {"classes": parsed.classes, "labels_per_row": parsed.labels}
        rows, weights = rcv1_classes(*given, first_row=parsed.first_row, **many)
        target = (Classes if parsed.labels is None else SeveralLabels)(tuple(range(len(weights))))
        model = HeadsModel(weights, np.zeros(len(weights), np.float32), target, "hinge", 1)
    save(rows, parsed.output, index_base=1)  # as other programs expect of svmlight files
    if parsed.weights is not None:
        model.save(parsed.weights)
    show(
        f"{parsed.output}: {len(rows):,} rows, {rows.columns:,} columns, "
        f"{rows.nonzeros:,} non-zeros"
    )


def _write_text(parsed: argparse.Namespace) -> None:
    check_files({"output": parsed.output})
    rows = size = 0
    with created(Path(parsed.output)) as (file, now):
        for lines in reviews(parsed.rows, parsed.seed, first_row=parsed.first_row):
            file.write(lines)
            rows += lines.count(b"\n")
            size += len(lines)
            now.counted(rows, parsed.rows, f"{size / 1e6:,.0f} MB")
    show(f"{parsed.output}: {parsed.rows:,} documents, {size / 1e6:,.1f} MB")


def _write_ratings(parsed: argparse.Namespace) -> None:
    check_files({"output": parsed.output, "test": parsed.test})
    files = [path for path in (parsed.output, parsed.test) if path is not None]
    for path in files:
        format_to_write(Path(path))
    if parsed.test is None and parsed.test_share is not None:
        raise OptionError("test_share: it needs --test, the file for that share")
    share = TEST_SHARE if parsed.test_share is None else parsed.test_share
    if not 0 < share < 1:
        raise OptionError(f"test_share: must lie between 0 and 1, not {share:g}")
    sizes = parsed.users, parsed.items, parsed.ratings
    ratings, _ = movielens(*sizes, parsed.seed, rank=parsed.rank)
    parts = [ratings] if parsed.test is None else ratings.split(share, parsed.seed)
    if not all(map(len, parts)):
        counts = " and ".join(f"{len(part):,}" for part in parts)
        raise OptionError(
            f"test_share: of {len(ratings):,} ratings, {counts} would be in the two files; "
            "take more ratings, or another share"
        )
    for path, part in zip(files, parts, strict=True):
        save_ratings(part, path)
        users, items = part.shape
        show(f"{path}: {len(part):,} ratings of {items:,} items by {users:,} users")
