"""`hogwild inspect`."""

import argparse
import dataclasses
import json
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from hogwild.cli.models import add_columns
from hogwild.cli.options import add_index_base, index_base, plain
from hogwild.errors import DataError, OptionError

if TYPE_CHECKING:
    from hogwild.data.rating_statistics import RatingStatistics
    from hogwild.data.ratings import Ratings
    from hogwild.data.rows import Rows
    from hogwild.data.statistics import Statistics

QUANTILES = ("least", "5 %", "25 %", "median", "75 %", "95 %", "most")
MOST_VALUES = 12  # different ratings that are shown one by one

DOUBTFUL = ".dat"  # these hold ratings, mostly
FEATURE = re.compile(rb"(?:[0-9]+|qid):[^:]*")
BETWEEN = (b",", b";", b"::", b"\t")  # fields of ratings, beside blanks
LOOKED_AT = 1 << 16  # bytes, in which the first line with anything in it must be


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="rows (svmlight text, .npz) or ratings (.csv, .tsv, .dat, .mtx, .npz); text also as "
        ".gz or .bz2. Where the name does not tell which, what is in it does",
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--rows", action="store_true", help="take the data for rows")
    kind.add_argument("--ratings", action="store_true", help="take the data for ratings")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_index_base(parser)
    add_columns(parser)


def run(parsed: argparse.Namespace) -> int:
    """Prints the shape of the data and what it means for scaling."""
    given = parsed.rows or parsed.ratings
    path = Path(parsed.data)
    are_ratings = parsed.ratings if given else _are_ratings(path)
    _refuse(parsed, are_ratings)
    try:
        (_inspect_ratings if are_ratings else _inspect_rows)(parsed)
    except DataError as problem:
        if given or not are_ratings or not _is_doubtful(path):
            raise
        raise DataError(
            f"{problem}\n(it was taken for ratings; --rows takes it for rows)"
        ) from None
    return 0


def _refuse(parsed: argparse.Namespace, are_ratings: bool) -> None:
    """Refuses options that this kind of data has no use for."""
    if are_ratings and parsed.index_base != "auto":
        raise OptionError("index_base: it is for rows, and these are ratings (else say --rows)")
    if parsed.columns and not are_ratings:
        raise OptionError("columns: they are of ratings, and these are rows (else say --ratings)")


# Which kind it is


def _are_ratings(path: Path) -> bool:
    """Whether a file holds ratings: by its name, or else by what is in it."""
    from hogwild.data.files import FORMATS, suffix_of
    from hogwild.data.ratings_files import named_as_ratings

    suffix = suffix_of(path)
    if suffix == DOUBTFUL or named_as_ratings(path):
        return True
    if not path.is_file():  # a pipe can be read only once
        return False
    if suffix == ".npz":
        return path.suffix.lower() == suffix and _arrays_are_ratings(path)
    return suffix not in FORMATS and _text_is_ratings(path)


def _is_doubtful(path: Path) -> bool:
    """Whether ratings were seen where there may be others."""
    from hogwild.data.files import suffix_of
    from hogwild.data.ratings_files import FORMATS

    return path.is_file() and suffix_of(path) not in FORMATS


def _arrays_are_ratings(path: Path) -> bool:
    """A matrix may be either, and is rows."""
    from hogwild.data.files import opened
    from hogwild.data.npz import Arrays
    from hogwild.data.ratings_npz import ITEMS, USERS

    with opened(path) as source:
        arrays = Arrays(str(path), source.file)
        return all(any(name in arrays for name in names) for names in (USERS, ITEMS))


def _text_is_ratings(path: Path) -> bool:
    from hogwild.data.files import opened

    with opened(path) as source:
        text = source.file.read(LOOKED_AT)
    lines = (line.partition(b"#")[0].strip() for line in text.splitlines())
    return _line_is_ratings(next(filter(None, lines), b""))


def _line_is_ratings(line: bytes) -> bool:
    """A row is a label, and features behind it, of which there may be none."""
    fields = line.split()
    if len(fields) > 1:
        return not FEATURE.fullmatch(fields[1])
    return any(mark in line for mark in BETWEEN)


# Rows


def _inspect_rows(parsed: argparse.Namespace) -> None:
    from hogwild.data.files import load
    from hogwild.data.statistics import meaning, statistics

    rows = load(parsed.data, index_base=index_base(parsed), labels=False)
    found = statistics(rows)
    if parsed.json:
        print(json.dumps(dataclasses.asdict(found) | {"meaning": meaning(found)}))
        return
    _show_rows(found, rows)
    print("\n" + textwrap.fill(meaning(found), 96))


def _show_rows(found: "Statistics", rows: "Rows") -> None:
    empty = f", {found.empty_rows:,} of them empty" if found.empty_rows else ""
    print(f"rows        {found.rows:,}{empty}")
    print(f"columns     {found.columns:,}, {found.columns_used:,} of them used")
    print(f"non-zeros   {found.nonzeros:,}, {rows.nbytes / 1e6:,.0f} MB in memory")
    print(f"row length  {_spread(found.row_lengths)}")
    print(f"values      {found.value_range[0]:g} to {found.value_range[1]:g}")
    print(f"labels      {_labels(found.labels, found.label_kinds, found.rows)}")
    print(f"Omega       {found.omega:,}   most non-zeros in a row")
    print(f"Delta       {found.delta:.4f}   share of the rows that hold the commonest column")
    how = "" if found.rho_exact else f" (at least; the largest among {found.rho_sample:,} rows)"
    print(f"rho         {found.rho:.4f}   largest share of the rows that one row meets{how}")
    hot = [entry for entry in found.heat if entry[0] < found.columns_used]
    if hot:
        heat = ", ".join(f"{100 * share:.0f} % in the {columns:,}" for columns, share in hot)
        print(f"heat        of the non-zeros, {heat} commonest columns")


def _labels(counts: tuple[tuple[object, int], ...], kinds: int, rows: int) -> str:
    if not counts:
        return "none"
    shown = ", ".join(f"{plain(label)}: {n:,} ({100 * n / rows:.1f} %)" for label, n in counts)
    return shown + (f", and {kinds - len(counts):,} more" if kinds > len(counts) else "")


# Ratings


def _inspect_ratings(parsed: argparse.Namespace) -> None:
    from hogwild.data.rating_statistics import meaning, rating_statistics
    from hogwild.data.ratings_files import load_ratings

    # Where only two columns are named, there are no values
    pairs = parsed.columns is not None and parsed.columns.count(",") == 1
    given = load_ratings(parsed.data, columns=parsed.columns, values=not pairs)
    found = rating_statistics(given)
    if parsed.json:
        print(json.dumps(dataclasses.asdict(found) | {"meaning": meaning(found)}))
        return
    _show_ratings(found, given)
    print("\n" + textwrap.fill(meaning(found), 96))


def _show_ratings(found: "RatingStatistics", given: "Ratings") -> None:
    from hogwild.data.statistics import percent

    print(f"users       {found.users:,}{_few(found.single_users, found.empty_users)}")
    print(f"items       {found.items:,}{_few(found.single_items, found.empty_items)}")
    print(f"ratings     {found.ratings:,}, {given.nbytes / 1e6:,.0f} MB in memory")
    print(f"density     {percent(found.density)} of the pairs of a user and an item")
    print(f"duplicates  {_duplicates(found.duplicates)}")
    for line in _values(found):
        print(line)
    print(f"per user    {_spread(found.user_ratings)}")
    print(f"per item    {_spread(found.item_ratings)}")
    print(f"Omega       {found.omega}        rows of factors that a rating touches")
    print(f"Delta       {found.delta:.4f}   largest share of the ratings of one user or one item")
    print(f"rho         {found.rho:.4f}   largest share of the ratings that one rating meets")
    print(f"chance      {found.chance:.4f}   that two ratings have the same user or item")


def _few(single: int, empty: int) -> str:
    """Of users or items: how many have next to nothing to learn from."""
    said = [f"{single:,} of them with one rating only"] if single else []
    said += [f"{empty:,} without any"] if empty else []
    return "".join(f", {words}" for words in said)


def _duplicates(count: int) -> str:
    return f"{count:,} ratings of a pair that has one already" if count else "none"


def _values(found: "RatingStatistics") -> list[str]:
    if found.mean is None:
        return ["values      none"]
    lines = [
        f"values      {found.least:g} to {found.most:g}, mean {found.mean:.4g}, "
        f"standard deviation {found.deviation:.4g}"
    ]
    if 0 < len(found.values) <= MOST_VALUES:
        shares = (f"{value:g}: {100 * n / found.ratings:.1f} %" for value, n in found.values)
        lines.append(" " * 12 + ", ".join(shares))
    elif found.value_kinds:
        lines.append(f"            {found.value_kinds} different ones")
    return lines


# Both


def _spread(quantiles: tuple[int, ...]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in zip(QUANTILES, quantiles, strict=True))
