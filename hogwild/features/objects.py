"""JSON lines: a flat object a line. A list of values is several values of its key."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import DataError
from hogwild.features import tables
from hogwild.features.blocks import Block, Dealer
from hogwild.features.hashing import Hasher, Part, ProblemError
from hogwild.features.layout import Layout
from hogwild.features.murmur import hashes_of
from hogwild.features.settings import Settings
from hogwild.kernels import fields, objects
from hogwild.kernels.fields import NO_GROUP
from hogwild.kernels.hashing import LABEL
from hogwild.kernels.objects import split_objects

WRONG = {
    objects.NOT_JSON: "this is no JSON object on one line",
    objects.NESTED: "an object or a list within a value: take it apart into keys of its own",
    objects.TWICE: "the key is there twice",
    objects.NEW_KEY: f"the key is not in the first {tables.SAMPLE:,} rows: say what it is, with "
    "numeric, categorical, text or ignore",
}


def layout(
    settings: Settings, known: tables.Columns, dealer: Dealer, name: str, labels: bool
) -> Layout:
    """The layout of such a file; `known` are the keys of the training data, if there was one."""
    settings.refuse(["label_style", "header"], "JSON lines")
    columns = known
    notes: tuple[str, ...] = ()
    if not known:
        names, sample, words = _beginning(dealer, settings, labels)
        if not names:
            raise DataError(f"{name}: there are no objects in it; expected one on each line")
        columns = tables.columns_of(settings, names, sample, name, labels, words)
        notes = tables.notes_of(settings, columns, len(sample))
    groups, number_of = tables.groups_of(columns, labels)
    group_of = np.array([number_of.get(key, NO_GROUP) for key, _ in columns], np.uint32)
    needed = [
        place
        for place, (key, _) in enumerate(columns)
        if key in number_of and groups[number_of[key]].kind != LABEL
    ]
    keys = hashes_of([key.encode() for key, _ in columns])
    given = keys, group_of, np.array(needed, np.uint32), not known

    def parser(hasher: Hasher) -> Callable[[Block], list[Part]]:
        return _parser(hasher, *given)

    pairs = tables.pairs_of(settings, groups)
    return Layout(settings, groups, parser, pairs, columns, notes)


def _parser(
    hasher: Hasher,
    keys: npt.NDArray[np.uint32],
    group_of: npt.NDArray[np.uint32],
    needed: npt.NDArray[np.uint32],
    new: bool,
) -> Callable[[Block], list[Part]]:
    known = keys, group_of, needed, np.zeros(len(keys), np.uint64), new

    def parse(block: Block) -> list[Part]:
        at, parts = block.begin, []
        state = np.zeros(fields.STATE, np.uint64)
        while at < block.size:
            stop, rows = split_objects(block.text, at, block.size, *known, hasher.fields, state)
            at = int(stop)
            if rows:
                parts += hasher.hash(block, int(rows))
            wrong, where = state.tolist()
            if wrong == fields.NO_ROOM and not rows:
                hasher.needs(2 * len(hasher.fields.begins))
            elif wrong in WRONG:
                raise ProblemError(where, WRONG[wrong])
        return parts

    return parse


def _beginning(
    dealer: Dealer, settings: Settings, labels: bool
) -> tuple[list[str], list[list[str]], frozenset[str]]:
    """The keys of the first rows, their values as text, and the keys of what is no number."""
    rows: list[dict[str, Any]] = []
    for line in dealer.beginning().splitlines()[: tables.SAMPLE]:
        try:
            row = json.loads(line)
        except ValueError:  # which is found again when rows are made
            continue
        if isinstance(row, dict):
            rows.append(row)
    said = [] if settings.label is None or not labels else [str(settings.label)]
    for kind in (*tables.KINDS, "ignore"):
        said += getattr(settings, kind)
    names = list(dict.fromkeys([*(key for row in rows for key in row), *said]))
    sample = [[_text(row.get(key)) for key in names] for row in rows]
    words = {
        key for row in rows for key, value in row.items() if isinstance(value, bool | str | list)
    }
    return (names if rows else []), sample, frozenset(words)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return "" if value is None else str(value)
