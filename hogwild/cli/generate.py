"""`hogwild generate`."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hogwild.cli.options import ARGUMENTS
from hogwild.data.files import save
from hogwild.data.ratings_files import format_to_write, save_ratings
from hogwild.data.synthetic import rcv1, rcv1_classes, rcv1_numbers
from hogwild.data.synthetic_ratings import movielens
from hogwild.errors import OptionError
from hogwild.learn.targets import Classes, Counts, Numbers, SeveralLabels
from hogwild.models.heads import HeadsModel
from hogwild.models.linear import LinearModel
from hogwild.paths import check_files


class Kind(NamedTuple):
    """A kind of data: what it is, what writes it, and the options that it alone has.

    An option has a default, a type, and a text that says what it means.
    """

    text: str
    write: Callable[[argparse.Namespace], None]
    options: dict[str, tuple[Any, Callable[[str], Any], str]]


def add_options(parser: argparse.ArgumentParser) -> None:
    kinds = "; ".join(f"{name}: {kind.text}" for name, kind in KINDS.items())
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help=kinds)
    parser.add_argument(
        "output",
        metavar="OUT",
        help="a file to write: rows as .svm or .npz, ratings as .csv, .tsv, .npz or .mtx; "
        "text also with .gz or .bz2 behind",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="[0]")
    for name, kind in KINDS.items():
        group = parser.add_argument_group(f"options of {name}")
        for word, (default, convert, text) in kind.options.items():
            group.add_argument(
                "--" + word.replace("_", "-"),
                type=convert,
                metavar=ARGUMENTS.get(convert, "FILE"),
                help=text if default is None else f"{text} [{default}]",
            )


def run(parsed: argparse.Namespace) -> int:
    """Writes seeded synthetic data; the same seed gives the same bytes."""
    _refuse_others(parsed)
    KINDS[parsed.kind].write(parsed)
    return 0


def _refuse_others(parsed: argparse.Namespace) -> None:
    """Refuses the options of other kinds, and fills in the defaults of this one."""
    able = ", ".join("--" + word.replace("_", "-") for word in KINDS[parsed.kind].options)
    wrong = [
        f"{word}: only for {name}; {parsed.kind} has {able}"
        for name, kind in KINDS.items()
        for word in kind.options
        if name != parsed.kind and getattr(parsed, word) is not None
    ]
    if wrong:
        raise OptionError("\n".join(wrong))
    if parsed.kind == "ratings" and parsed.test is None and parsed.test_share is not None:
        raise OptionError("test_share: it needs --test, the file for that share")
    for word, (default, _, _) in KINDS[parsed.kind].options.items():
        if getattr(parsed, word) is None:
            setattr(parsed, word, default)


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
    print(
        f"{parsed.output}: {len(rows):,} rows, {rows.columns:,} columns, "
        f"{rows.nonzeros:,} non-zeros"
    )


def _write_ratings(parsed: argparse.Namespace) -> None:
    check_files({"output": parsed.output, "test": parsed.test})
    files = [path for path in (parsed.output, parsed.test) if path is not None]
    for path in files:
        format_to_write(Path(path))
    if not 0 < parsed.test_share < 1:
        raise OptionError(f"test_share: must lie between 0 and 1, not {parsed.test_share:g}")
    sizes = parsed.users, parsed.items, parsed.ratings
    ratings, _ = movielens(*sizes, parsed.seed, rank=parsed.rank)
    parts = [ratings] if parsed.test is None else ratings.split(parsed.test_share, parsed.seed)
    if not all(map(len, parts)):
        counts = " and ".join(f"{len(part):,}" for part in parts)
        raise OptionError(
            f"test_share: of {len(ratings):,} ratings, {counts} would be in the two files; "
            "take more ratings, or another share"
        )
    for path, part in zip(files, parts, strict=True):
        save_ratings(part, path)
        users, items = part.shape
        print(f"{path}: {len(part):,} ratings of {items:,} items by {users:,} users")


KINDS = {
    "rcv1": Kind(
        "text-like sparse rows",
        _write_rcv1,
        {
            "rows": (200_000, int, "how many rows"),
            "columns": (47_236, int, "how many columns"),
            "first_row": (
                0,
                int,
                "begin at this row of the endless set that the seed names: for test rows that go "
                "with training rows",
            ),
            "classes": (None, int, "classes, in place of the labels -1 and 1"),
            "labels": (
                None,
                float,
                "with --classes: mean number of labels of a row, which then has any number",
            ),
            "targets": (None, str, "numbers or counts, in place of the labels"),
            "weights": (None, str, "a file for the weights behind the labels, as a model"),
        },
    ),
    "ratings": Kind(
        "half stars by users for items, by default as many as in MovieLens 1M",
        _write_ratings,
        {
            "users": (6_040, int, "how many users"),
            "items": (3_706, int, "how many items"),
            "ratings": (1_000_209, int, "how many ratings, those for --test among them"),
            "rank": (16, int, "factors of users and items behind the ratings"),
            "test": (None, str, "a second file, for ratings to test on"),
            "test_share": (0.1, float, "the share of the ratings that goes there"),
        },
    ),
}
