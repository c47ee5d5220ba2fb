"""Tables: text with a column for each field, whose names are in the first line."""

import csv
import dataclasses
import difflib
import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import DataError, OptionError
from hogwild.features.blocks import Block, Dealer
from hogwild.features.hashing import Group, Hasher, Part, ProblemError
from hogwild.features.layout import Layout
from hogwild.features.murmur import hashes_of
from hogwild.features.settings import Settings
from hogwild.kernels import fields as kernels
from hogwild.kernels.fields import NO_GROUP, last_record, split_table
from hogwild.kernels.hashing import CATEGORY, LABEL, NUMBER, WORDS

SEPARATORS = ",;\t|"  # of a .csv, the first of these that its first line has
SAMPLE = 1_000  # rows that are looked at to guess what columns are
LONG = 40  # characters of a name that a message shows
WORDY = 4  # words that a field of text has on average, at the least
KINDS = {"numeric": NUMBER, "categorical": CATEGORY, "text": WORDS}
MISSING = ("", "na", "nan", "null", "none", "n/a", "?")

Columns = tuple[tuple[str, str], ...]


def layout(
    settings: Settings,
    known: Columns,
    dealer: Dealer,
    suffix: str,
    name: str,
    labels: bool,
    words: frozenset[str] = frozenset(),
) -> Layout:
    """The layout of a table.

    Args:
        known: the columns of the training data, if there was one.
        words: columns that are not numbers, whatever they look like.
    """
    settings.refuse(["label_style"], "tables, whose label is a column")
    separator = _separator(dealer, settings, suffix)
    dealer.cut_by(_cutter(separator))
    names, sample, header = _beginning(dealer, settings, separator, name)
    dealer.skip(header)
    columns = known or columns_of(settings, names, sample, name, labels, words)
    groups, number_of = groups_of(columns, labels)
    missing = [column for column in number_of if column not in names]
    if missing:
        raise DataError(
            f"{name}: there is no column {missing[0]!r}, which the training data had; its columns "
            f"are {_listed(names)}"
        )
    group_of = np.array([number_of.get(column, NO_GROUP) for column in names], np.uint32)
    notes = () if known else notes_of(settings, columns, len(sample))
    pairs = pairs_of(settings, groups)

    def parser(hasher: Hasher) -> Callable[[Block], list[Part]]:
        return _parser(hasher, separator, group_of, len(names))

    return Layout(settings, groups, parser, pairs, columns, notes)


def groups_of(columns: Columns, labels: bool) -> tuple[list[Group], dict[str, int]]:
    """The groups of columns that are used, and the number of each column's group."""
    groups: list[Group] = []
    numbers = 0
    for column, kind in columns:
        if kind == "label" and labels:
            groups.append(Group(LABEL, column, 0))
        elif kind in KINDS:
            (seed,) = hashes_of([column.encode()]).tolist()
            groups.append(Group(KINDS[kind], column, seed, numbers))
            numbers += kind == "numeric"
    return groups, {group.name: number for number, group in enumerate(groups)}


def _parser(
    hasher: Hasher, separator: str, group_of: npt.NDArray[np.uint32], columns: int
) -> Callable[[Block], list[Part]]:
    def parse(block: Block) -> list[Part]:
        at, parts = block.begin, []
        state = np.zeros(kernels.STATE, np.uint64)
        hasher.needs(columns)
        while at < block.size:
            stop, rows = split_table(
                block.text, at, block.size, ord(separator), group_of, hasher.fields, state
            )
            at = int(stop)
            parts += hasher.hash(block, int(rows))
            wrong, where = state.tolist()
            if wrong == kernels.BAD_QUOTE:
                raise ProblemError(
                    where, "a quote is not closed at the end of its field; two quotes stand for one"
                )
            if wrong == kernels.BAD_COUNT:
                fields = "1 field" if where == 1 else f"{where:,} fields"
                raise ProblemError(at, f"the row has {fields}, and there are {columns:,} columns")
        return parts

    return parse


def _separator(dealer: Dealer, settings: Settings, suffix: str) -> str:
    if suffix == ".tsv" or (suffix != ".csv" and settings.format == "tsv"):
        return "\t"
    line = dealer.beginning().partition(b"\n")[0].decode("utf-8", "replace")
    return next((mark for mark in SEPARATORS if mark in line), ",")


def _cutter(separator: str) -> Callable[[Any, int, int], int]:
    """What finds the last whole row, which may have line ends in quotes."""

    def cut(text: Any, begin: int, end: int) -> int:
        data = text.data[:end].tobytes()
        if b'"' not in data:
            place: int = data.rfind(b"\n", begin)
            return place + 1
        return int(last_record(text, end, ord(separator)))

    return cut


def _beginning(
    dealer: Dealer, settings: Settings, separator: str, name: str
) -> tuple[list[str], list[list[str]], int]:
    """The names of columns, the first rows, and how many bytes the names take."""
    data = dealer.beginning()
    lines = io.StringIO(data.decode("utf-8", "replace"), newline="")
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    sample: list[list[str]] = []
    used = 0
    # What is wrong, or too long for this reader, is found again when rows are made
    with suppress(csv.Error):
        for row in filter(None, reader):
            used = used or reader.line_num
            sample.append([field.strip() for field in row])
            if len(sample) > SAMPLE:
                break
    if not sample:
        raise DataError(f"{name}: there are no rows in it; expected a table with a header")
    first, sample = sample[0], sample[1:]
    if not settings.header:
        return [str(place + 1) for place in range(len(first))], [first, *sample], 0
    names = first
    again = [column for place, column in enumerate(names) if column in names[:place]]
    if again:
        raise DataError(f"{name}: the column {again[0]!r} is there twice; rename one of them")
    size = sum(len(line) for line in io.BytesIO(data).readlines()[:used])
    return names, sample, size


def columns_of(
    settings: Settings,
    names: Sequence[str],
    sample: list[list[str]],
    name: str,
    labels: bool,
    words: frozenset[str],
) -> Columns:
    """The kind of each column: as given, or guessed from some rows."""
    if settings.label is None and labels:
        raise OptionError(
            f"label: which column of {name} has the label? Its columns are {_listed(names)}"
        )
    said: dict[str, str] = {}
    problems = []
    for kind in ("label", *KINDS, "ignore"):
        given = getattr(settings, kind)
        for one in given if kind != "label" else [given] if labels else []:
            column = _found(str(one), names)
            if column is None:
                near = difflib.get_close_matches(str(one), names, n=1)
                hint = f"did you mean {near[0]}?" if near else f"there are {_listed(names)}"
                problems.append(f"{kind}: {name} has no column {one!r}; {hint}")
            elif column in said:
                problems.append(f"{kind}: the column {column!r} is the {said[column]} one already")
            else:
                said[column] = kind
    if problems:
        raise OptionError("\n".join(problems))
    return tuple(
        (
            column,
            said.get(column)
            or guess([row[place] for row in sample if place < len(row)], column in words),
        )
        for place, column in enumerate(names)
    )


def guess(fields: list[str], are_words: bool = False) -> str:
    """What a column looks like: numeric (unless it is known to be text), text or categorical."""
    there = [field for field in fields if field.lower() not in MISSING]
    if there and not are_words and all(map(_is_number, there)):
        return "numeric"
    words = sum(len(field.split()) for field in there)
    return "text" if there and words >= WORDY * len(there) else "categorical"


def _is_number(field: str) -> bool:
    try:
        return bool(np.isfinite(float(field))) and "_" not in field
    except ValueError:
        return False


def _found(column: str, names: Sequence[str]) -> str | None:
    """A column by its name, or by its place from 1 on."""
    if column in names:
        return column
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return names[int(column) - 1]
    return None


def _listed(names: Sequence[str], most: int = 20) -> str:
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    short = (name if len(name) <= LONG else f"{name[:LONG]}..." for name in names[:most])
    return ", ".join(short) + more


def notes_of(settings: Settings, columns: Columns, rows: int) -> tuple[str, ...]:
    """Which columns were guessed to be what."""
    said = {
        *settings.numeric,
        *settings.categorical,
        *settings.text,
        *settings.ignore,
        str(settings.label),
    }
    guessed: dict[str, list[str]] = {}
    for place, (column, kind) in enumerate(columns):
        if kind in KINDS and not {column, str(place + 1)} & said:
            guessed.setdefault(kind, []).append(column)
    if not guessed:
        return ()
    found = "; ".join(f"{kind}: {_listed(names)}" for kind, names in guessed.items())
    return (f"columns by their first {rows:,} rows, unless you say otherwise - {found}",)


def pairs_of(settings: Settings, groups: list[Group]) -> tuple[tuple[int, int], ...]:
    """The groups that interact."""
    numbers = {group.name: number for number, group in enumerate(groups)}
    pairs, problems = [], []
    for pair in settings.interact:
        both = pair.split(":", 1)
        for one in both:
            kind = groups[numbers[one]].kind if one in numbers else None
            if kind not in (CATEGORY, WORDS):
                what = "not categorical or text" if one in numbers else "not used"
                problems.append(f"interact: {pair}: the column {one!r} is {what}")
        if not problems:
            pairs.append((numbers[both[0]], numbers[both[1]]))
    if problems:
        raise OptionError("\n".join(problems))
    return tuple(pairs)


def resolved(settings: Settings, columns: Columns) -> Settings:
    """The settings for other tables, with the guessed kinds of columns."""
    lists: dict[str, Any] = {
        kind: tuple(name for name, what in columns if what == kind) for kind in (*KINDS, "ignore")
    }
    return dataclasses.replace(settings, **lists)
