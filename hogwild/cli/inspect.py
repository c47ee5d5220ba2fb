"""`hogwild inspect`."""

import argparse
import dataclasses
import json
import math
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.cli.features import add_features, feature_options
from hogwild.cli.model_lines import inspect_model
from hogwild.cli.options import add_columns, add_data, add_index_base, files_in, plain
from hogwild.cli.parser import Parser, group
from hogwild.cli.streams import show
from hogwild.data import rating_statistics, statistics
from hogwild.data.files import FORMATS as ROW_FORMATS
from hogwild.data.files import load
from hogwild.data.npz import Arrays
from hogwild.data.opening import opened, suffix_of
from hogwild.data.ratings_files import FORMATS, load_ratings, named_as_ratings
from hogwild.data.ratings_npz import ITEMS, USERS
from hogwild.data.rows import Rows
from hogwild.data.sets import files_of
from hogwild.errors import DataError, OptionError
from hogwild.features.settings import MOST_BITS
from hogwild.model_file import is_model

QUANTILES = ("least", "5 %", "25 %", "median", "75 %", "95 %", "most")
MOST_VALUES = 12  # different ratings that are shown one by one

DOUBTFUL = ".dat"  # files with this suffix mostly hold ratings
FEATURE = re.compile(rb"(?:[0-9]+|qid):[^:]*")
BETWEEN = (b",", b";", b"::", b"\t")  # fields of ratings, beside blanks
LOOKED_AT = 1 << 16  # bytes that must contain the first line that is not empty

Found = tuple[Any, str, list[tuple[str, str]]]  # statistics, their meaning, and lines to show

EXAMPLES = ("train.svm", "ratings.csv --json")
DOING = "inspecting"


def add_options(parser: Parser) -> None:
    add_data(
        parser,
        "a model, rows (svmlight text, .npz) or ratings (.csv, .tsv, .dat, .mtx, .npz); text also "
        "as .gz, .bz2, .xz or .zst. If the name leaves the kind open, the content decides",
    )
    add = group(parser, "model").add_argument
    add("--top", type=int, metavar="N", help="of a linear model: the N largest weights, by class")
    add("--features", metavar="FILE", help="with --top: the name of a column a line, in order")
    kind = group(parser, "data").add_mutually_exclusive_group()
    kind.add_argument("--rows", action="store_true", help="read the data as rows")
    kind.add_argument("--ratings", action="store_true", help="read the data as ratings")
    add = group(parser, "output").add_argument
    add("--json", action="store_true", help="print one JSON object")
    add_index_base(parser)
    add_columns(parser)
    add_features(parser)


def run(parsed: argparse.Namespace) -> int:
    """Prints what a model is, or the shape of the data and what it means for scaling."""
    paths = files_of(files_in(parsed))
    if len(paths) == 1 and is_model(paths[0]):
        return inspect_model(parsed, paths[0])
    given = [name for name in ("top", "features") if getattr(parsed, name) is not None]
    if given:
        raise OptionError("\n".join(f"{name}: only for models" for name in given))
    settings = feature_options(parsed)
    if settings and parsed.ratings:
        raise OptionError("ratings: they have no features; leave out --ratings or the others")
    decided = parsed.rows or parsed.ratings or bool(settings)
    path = paths[0]
    are_ratings = parsed.ratings if decided else named_as_ratings(paths) or _are_ratings(path)
    if are_ratings and parsed.index_base != "auto":
        raise OptionError(
            "index_base: only for rows, but the data was read as ratings (--rows reads it as rows)"
        )
    if parsed.columns and not are_ratings:
        raise OptionError(
            "columns: only for ratings, but the data was read as rows (--ratings reads it "
            "as ratings)"
        )
    try:
        found, means, shown = (_ratings if are_ratings else _rows)(parsed)
    except DataError as problem:
        if decided or not are_ratings or not path.is_file() or suffix_of(path) in FORMATS:
            raise
        raise DataError(f"{problem}\n(it was read as ratings; --rows reads it as rows)") from None
    if parsed.json:
        show(json.dumps(dataclasses.asdict(found) | {"meaning": means}))
        return 0
    for name, text in shown:
        show(f"{name:12}{text}")
    show("\n" + textwrap.fill(means, 96))
    return 0


def _are_ratings(path: Path) -> bool:
    """Whether a file holds ratings, by its content if its name leaves that open."""
    suffix = suffix_of(path)
    if suffix == DOUBTFUL:
        return True
    if not path.is_file():  # a pipe can be read only once
        return False
    if suffix in ROW_FORMATS and path.suffix.lower() != ".npz":
        return False
    with opened(path) as file:
        if suffix == ".npz":  # a matrix may be either, and is rows
            arrays = Arrays(str(path), file)
            return all(any(name in arrays for name in names) for names in (USERS, ITEMS))
        text = file.read(LOOKED_AT)
    lines = (line.partition(b"#")[0].strip() for line in text.splitlines())
    return _line_is_ratings(next(filter(None, lines), b""))


def _line_is_ratings(line: bytes) -> bool:
    """Whether a line holds a rating. A row is a label, followed by features or nothing."""
    fields = line.split()
    if len(fields) > 1:
        return not FEATURE.fullmatch(fields[1])
    return any(mark in line for mark in BETWEEN)


def _rows(parsed: argparse.Namespace) -> Found:
    settings, files = feature_options(parsed), files_in(parsed)
    rows = load(files, index_base=parsed.index_base, labels=bool(settings), **settings)
    found = statistics.statistics(rows)
    empty = f", {found.empty_rows:,} of them empty" if found.empty_rows else ""
    how = "" if found.rho_exact else f" (at least; the largest among {found.rho_sample:,} rows)"
    overlap = f"largest share of the rows that share a column with one row{how}"
    shown = [
        ("rows", f"{found.rows:,}{empty}"),
        ("columns", f"{found.columns:,}, {found.columns_used:,} of them used"),
        ("non-zeros", f"{found.nonzeros:,}, {rows.nbytes / 1e6:,.0f} MB in memory"),
        ("row length", _spread(found.row_lengths)),
        ("values", f"{found.value_range[0]:g} to {found.value_range[1]:g}"),
        ("labels", _labels(found.labels, found.label_kinds, found.rows)),
        ("Omega", f"{found.omega:,}   most non-zeros in a row"),
        ("Delta", f"{found.delta:.4f}   share of the rows that hold the most frequent column"),
        ("rho", f"{found.rho:.4f}   {overlap}"),
    ]
    if rows.features is not None and settings:
        shown[2:2] = _features(files, rows, found.columns_used, settings)
    few = [entry for entry in found.frequency if entry[0] < found.columns_used]
    if few:
        shares = ", ".join(f"{100 * share:.0f} % in the {columns:,}" for columns, share in few)
        shown.append(("skew", f"of the non-zeros, {shares} most frequent columns"))
    return found, statistics.meaning(found), shown


def _features(files: Any, rows: Rows, used: int, settings: dict[str, Any]) -> list[tuple[str, str]]:
    """How many features share columns. With many more columns, almost none would."""
    shown = [("", note) for note in rows.notes]
    plain = {"bits": MOST_BITS, "idf": False, "keep_names": False}
    wide = load(files, **settings | plain)
    seen = len(np.unique(wide.indices))
    every = 1 << MOST_BITS
    features = round(-every * math.log1p(-seen / every))  # all, except those that still collide
    columns = 1 << rows.features.settings.bits
    expected = columns * -math.expm1(-features / columns)
    alone = features * math.exp(-features / columns)
    text = (
        f"{features:,} different ones, {100 * (1 - alone / features):.1f} % of them share a column"
    )
    more = f"{used:,} columns used; {expected:,.0f} are expected of a random hash"
    return [("features", text), ("", more), *shown]


def _labels(counts: tuple[tuple[object, int], ...], kinds: int, rows: int) -> str:
    if not counts:
        return "none"
    shown = ", ".join(f"{plain(label)}: {n:,} ({100 * n / rows:.1f} %)" for label, n in counts)
    return shown + (f", and {kinds - len(counts):,} more" if kinds > len(counts) else "")


def _ratings(parsed: argparse.Namespace) -> Found:
    # If only two columns are named, there are no values
    pairs = parsed.columns is not None and parsed.columns.count(",") == 1
    given = load_ratings(files_in(parsed), columns=parsed.columns, values=not pairs)
    found = rating_statistics.rating_statistics(given)
    again = f"{found.duplicates:,} ratings of a pair that has one already"
    shown = [
        ("users", f"{found.users:,}{_few(found.single_users, found.empty_users)}"),
        ("items", f"{found.items:,}{_few(found.single_items, found.empty_items)}"),
        ("ratings", f"{found.ratings:,}, {given.nbytes / 1e6:,.0f} MB in memory"),
        ("density", f"{statistics.percent(found.density)} of the pairs of a user and an item"),
        ("duplicates", again if found.duplicates else "none"),
        *_values(found),
        ("per user", _spread(found.user_ratings)),
        ("per item", _spread(found.item_ratings)),
        ("Omega", f"{found.omega}        rows of factors that a rating touches"),
        ("Delta", f"{found.delta:.4f}   largest share of the ratings of one user or one item"),
        ("rho", f"{found.rho:.4f}   largest share of the ratings with the user or item of one"),
        ("chance", f"{found.chance:.4f}   that two ratings have the same user or item"),
    ]
    return found, rating_statistics.meaning(found), shown


def _few(single: int, empty: int) -> str:
    """How many users or items have one rating or none."""
    said = f", {single:,} of them with one rating only" if single else ""
    return said + (f", {empty:,} without any" if empty else "")


def _values(found: rating_statistics.RatingStatistics) -> list[tuple[str, str]]:
    if found.mean is None:
        return [("values", "none")]
    spread = f"mean {found.mean:.4g}, standard deviation {found.deviation:.4g}"
    shown = [("values", f"{found.least:g} to {found.most:g}, {spread}")]
    if 0 < len(found.values) <= MOST_VALUES:
        shares = (f"{value:g}: {100 * n / found.ratings:.1f} %" for value, n in found.values)
        shown.append(("", ", ".join(shares)))
    elif found.value_kinds:
        shown.append(("", f"{found.value_kinds} different ones"))
    return shown


def _spread(quantiles: tuple[int, ...]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in zip(QUANTILES, quantiles, strict=True))
