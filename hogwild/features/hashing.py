"""Makes rows from fields: threads hash blocks, and their results become one set of rows."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.data.ids import coded
from hogwild.data.labels import LabelSets
from hogwild.data.texts import Texts
from hogwild.errors import DataError
from hogwild.features.blocks import Block, Dealer
from hogwild.kernels import hashing as kernels
from hogwild.kernels.hashing import (
    NUMBER,
    STATE,
    Fields,
    Found,
    Groups,
    Names,
    Plan,
    Scratch,
    Tables,
)
from hogwild.kernels.text import PADDING
from hogwild.kernels.views import view
from hogwild.threads import lock_and_condition, side_by_side

FIELDS = 1 << 17  # that are found before they are hashed: all of most blocks
ENTRIES = 1 << 18  # of rows that are hashed before they are put aside
KEYS = 1 << 12  # of a row
NAMES, NAME_BYTES = 1 << 14, 1 << 20
FIELD_KINDS = "u8", "u8", "u4", "f4", "u8"

NOTHING, NO_VALUES = np.empty(0, np.uint32), np.empty(0, np.float32)
NO_LENGTHS = np.empty(0, np.uint64)

Words = npt.NDArray[np.uint64]


class Group(NamedTuple):
    """A kind of fields: what it is, its name, and what seeds its features."""

    kind: int
    name: str
    seed: int
    slot: int = 0


class Part(NamedTuple):
    """The result of a block."""

    lengths: Words
    indices: npt.NDArray[np.uint32]
    values: npt.NDArray[np.float32]
    labels: bytes
    label_ends: Words
    label_numbers: npt.NDArray[np.float64]
    row_labels: Words  # of each row: how many
    weights: npt.NDArray[np.float32]
    named: npt.NDArray[np.uint32]
    names: bytes
    name_ends: Words
    replaced: int


class ProblemError(Exception):
    """Something wrong at a place in a block."""

    def __init__(self, place: int, text: str) -> None:
        super().__init__(text)
        self.place = place


class Hasher:
    """What a thread needs to hash fields; its scratch grows with the rows."""

    def __init__(
        self, groups: Sequence[Group], pairs: Sequence[tuple[int, int]], plan: Plan, tables: Tables
    ) -> None:
        self.plan, self.tables = plan, tables
        self._know(groups, pairs)
        self._known = np.zeros(int(plan.mask) + 1 + int(plan.reserved) if plan.naming else 0, "u1")
        self._names = self._room_for_names(NAMES if plan.naming else 0, NAME_BYTES)
        self._scratch = self._room(KEYS)
        self._words = np.empty(0, np.uint8)
        self._out = ENTRIES
        kinds = ["u8", "u4", "f4", "u1", "u8", "f8", "u8", "f4"]
        self._found = {
            name: np.empty(0, kind) for name, kind in zip(Found._fields, kinds, strict=True)
        }
        self.fields: Fields = view(Fields, *(np.empty(0, kind) for kind in FIELD_KINDS))
        self.needs(FIELDS)

    def _know(self, groups: Sequence[Group], pairs: Sequence[tuple[int, int]]) -> None:
        """Takes the groups that there are, and those that interact."""
        self.named = list(groups)
        self._interacting = len(pairs) > 0
        interacting = {group for pair in pairs for group in pair}
        self.groups = view(
            Groups,
            np.array([group.kind for group in groups], np.uint8),
            np.array([group.seed for group in groups], np.uint32),
            np.array([group.slot for group in groups], np.uint32),
            np.array([number in interacting for number in range(len(groups))], np.uint8),
            np.array(pairs, np.uint32).reshape(-1),
        )
        # A number's name is known without looking at any row, and a feature's begins with these
        prefixes = [f"{group.name}=" if group.name else "" for group in groups]
        encoded = [prefix.encode() for prefix in prefixes]
        self._prefixes = np.frombuffer(b"".join(encoded), np.uint8)
        self._prefix_ends = np.cumsum([len(one) for one in encoded], dtype=np.uint64)

    def knows(self, groups: Sequence[Group], pairs: Sequence[tuple[int, int]]) -> None:
        """There are more groups than were known."""
        self._know(groups, pairs)
        self._names = view(Names, self._prefixes, self._prefix_ends, *self._names[2:])
        self._scratch = self._room(self._keys)

    def needs(self, fields: int) -> None:
        """Makes room for so many fields, at the least."""
        if len(self.fields.begins) < fields:
            self.fields = view(Fields, *(np.empty(fields, kind) for kind in FIELD_KINDS))

    def _room(self, keys: int) -> Any:
        pairs = keys if self._interacting else 0
        self._keys = keys
        return (
            np.empty(keys, np.uint64),
            np.empty(int(keys + kernels.BLOCK), np.uint64),  # whole blocks of keys are compared
            np.empty(int(self.plan.digits * kernels.SIZE), np.uint32),
            *(np.empty(pairs, kind) for kind in ["u4", "f4", "u4", "u8", "u8", "u4"]),
            np.empty(len(self.named), np.uint32),
            np.empty(int(keys + kernels.MOST_WORDS + kernels.LANES + 1), np.uint64),
            np.empty(int(kernels.MOST_WORDS * kernels.LANES), np.uint32),
        )

    def _room_for_names(self, names: int, size: int) -> Names:
        text, ends, columns = np.empty(size, "u1"), np.empty(names, "u8"), np.empty(names, "u4")
        return view(Names, self._prefixes, self._prefix_ends, self._known, text, ends, columns)

    def _room_for(self, rows: int, fields: int, size: int) -> Found:
        """Where rows are written to: pages that were written to before, if there are enough."""
        wanted = rows, self._out, self._out, size, fields, fields, rows, rows
        for name, count in zip(Found._fields, wanted, strict=True):
            if len(self._found[name]) < count:
                self._found[name] = np.empty(count, self._found[name].dtype)
        return view(Found, *self._found.values())

    def hash(self, block: Block, rows: int) -> list[Part]:
        """The rows whose fields were found in a block, in one or several parts."""
        if len(self._words) < 3 * len(block.text):
            self._words = np.empty(3 * len(block.text), np.uint8)  # `hash_runs` reads behind words
        state = np.zeros(STATE, np.uint64)
        fields = int(self.fields.row_ends[rows - 1]) if rows else 0
        parts = []
        while True:
            first = int(state[kernels.ROW])
            state[[kernels.PLACE, kernels.LABELS, kernels.LABEL_BYTES]] = 0
            state[[kernels.NAMES, kernels.NAME_BYTES, kernels.REPLACED]] = 0
            found = self._room_for(rows, fields, len(block.text))
            scratch = view(Scratch, self._words, *self._scratch)
            kernels.hash_rows(
                block.text,
                self.fields,
                rows,
                self.groups,
                self.plan,
                self.tables,
                scratch,
                self._names,
                found,
                state,
            )
            parts.append(self._part(found, first, state))
            if state[kernels.ROW] == rows:
                return parts
            self._go_on(block, state)

    def _part(self, found: Found, first: int, state: Words) -> Part:
        """What was found, in arrays of its own."""
        some = slice(first, int(state[kernels.ROW]))
        place, labels = int(state[kernels.PLACE]), int(state[kernels.LABELS])
        size, names = int(state[kernels.LABEL_BYTES]), int(state[kernels.NAMES])
        ends, row_labels = found.row_ends[some], found.row_labels[some]
        return Part(
            np.diff(ends, prepend=np.uint64(0)),
            found.indices[:place].copy(),
            found.values[:place].copy(),
            found.labels[:size].tobytes(),
            found.label_ends[:labels].copy(),
            found.label_numbers[:labels].copy(),
            np.diff(row_labels, prepend=np.uint64(0)),
            found.weights[some].copy(),
            self._names.columns[:names].copy(),
            self._names.text[: int(state[kernels.NAME_BYTES])].tobytes(),
            self._names.ends[:names].copy(),
            int(state[kernels.REPLACED]),
        )

    def _go_on(self, block: Block, state: Words) -> None:
        """Makes room where that was missing, or says what is wrong."""
        why, where = int(state[kernels.PROBLEM]), int(state[kernels.WHERE])
        if why == kernels.OUT_FULL:
            self._out = max(self._out, 2 * where)
        elif why == kernels.ROW_FULL:
            self._scratch = self._room(2 * self._keys)
        elif why == kernels.NAMES_FULL:
            if not state[kernels.NAMES]:
                self._names = self._room_for_names(
                    2 * len(self._names.columns), 2 * len(self._names.text)
                )
        elif why == kernels.DAMAGED:
            raise ProblemError(
                where, "is not UTF-8; convert the file, or read it without strict_utf8"
            )
        else:
            self._look_at_field(block, where, why)

    def _look_at_field(self, block: Block, field: int, why: int) -> None:
        """Reads a number that is hard to round, or says what is wrong with a field."""
        begin, end = int(self.fields.begins[field]), int(self.fields.ends[field])
        if why == kernels.NO_LABEL:
            raise ProblemError(begin, "the label is missing")
        group = self.named[int(self.fields.groups[field])]
        text = block.text[begin:end].tobytes()
        if why == kernels.HARD_NUMBER and group.kind == NUMBER:
            self.fields.values[field] = np.float32(float(text))
            self.fields.ends[field] = 0
            if np.isfinite(self.fields.values[field]):
                return
            why = kernels.LARGE_NUMBER
        shown = ascii(text[:40].decode("utf-8", "replace")) + ("..." if len(text) > 40 else "")
        reason = "is too large" if why == kernels.LARGE_NUMBER else "is not a number"
        what = f"the column {group.name}" if group.kind == NUMBER else "a weight"
        raise ProblemError(begin, f"{shown} {reason}, as {what} must be")


class Made(NamedTuple):
    """All rows of some data, before anything is weighed."""

    indptr: Words
    indices: npt.NDArray[np.uint32]
    values: npt.NDArray[np.float32]
    y: Any
    weights: npt.NDArray[np.float32] | None
    named: npt.NDArray[np.uint32]
    names: list[bytes]
    replaced: int


class Collector:
    """Puts the parts of blocks one behind the other, in the order of the blocks.

    Threads copy the parts whose places are known, several at the same time.
    """

    def __init__(self) -> None:
        self._guard, self._changed = lock_and_condition()
        self._waiting: dict[int, list[Part]] = {}
        self._parts: list[Part] = []  # without their entries
        self._next = self._place = self._copying = 0
        self._indices = np.empty(0, np.uint32)
        self._values = np.empty(0, np.float32)

    @property
    def blocks(self) -> int:
        """How many blocks have their place."""
        return self._next

    def add(self, number: int, parts: list[Part], share: float) -> None:
        """Adds the result of a block, which is this share of the file; 0: unknown."""
        with self._guard:
            self._waiting[number] = parts
            placed = []
            while (some := self._waiting.pop(self._next, None)) is not None:
                self._next += 1
                for part in some:
                    placed.append((self._place, part))
                    self._place += len(part.indices)
                    self._parts.append(part._replace(indices=NOTHING, values=NO_VALUES))
            self._make_room(share)
            self._copying += 1
        try:
            for place, part in placed:
                end = place + len(part.indices)
                self._indices[place:end], self._values[place:end] = part.indices, part.values
        finally:
            with self._guard:
                self._copying -= 1
                self._changed.notify_all()

    def _make_room(self, share: float) -> None:
        if self._place <= len(self._indices):
            return
        self._changed.wait_for(lambda: not self._copying)
        # For all of a file, if it goes on like this: pages that are not written to cost nothing
        known = share if share and not len(self._indices) else 1.0
        wanted = max(2 * self._place, int(1.1 * self._place / known))
        longer = np.empty(wanted, np.uint32), np.empty(wanted, np.float32)
        for new, old in zip(longer, (self._indices, self._values), strict=True):
            new[: len(old)] = old
        self._indices, self._values = longer

    def made(self, name: str) -> Made:
        """All rows."""
        parts = self._parts
        if not sum(len(part.lengths) for part in parts):
            raise DataError(f"{name}: there are no rows in it")
        indptr = np.zeros(sum(len(part.lengths) for part in parts) + 1, np.uint64)
        np.cumsum(np.concatenate([NO_LENGTHS, *(part.lengths for part in parts)]), out=indptr[1:])
        for array in (self._indices, self._values):
            array.resize(self._place, refcheck=False)
        weights = np.concatenate([part.weights for part in parts])
        return Made(
            indptr,
            self._indices,
            self._values,
            labels_of(parts, name),
            None if np.all(weights == 1) else weights,
            *_names_of(parts),
            sum(part.replaced for part in parts),
        )


def labels_of(parts: list[Part], name: str) -> Any:
    """The labels of all rows: numbers where all are, else text; sets where a row has several."""
    counts = np.concatenate([part.row_labels for part in parts])
    numbers = np.concatenate([part.label_numbers for part in parts])
    if not len(numbers):
        return None
    several = bool(np.any(counts > 1))
    if not several and np.any(counts == 0):
        row = int(np.argmax(counts == 0)) + 1
        raise DataError(f"{name}: row {row} has no label, and others have one")
    y: Any = numbers
    if np.any(np.isnan(numbers)):
        known, codes = _distinct(_label_texts(parts), name)
        try:
            of_known = np.array([float(text) for text in known])
            if not np.all(np.isfinite(of_known)):
                raise ValueError
        except ValueError:
            of_known = np.array(known)
        y = of_known[codes]
    if not several:
        return y
    names, codes = np.unique(y, return_inverse=True)
    return LabelSets(np.concatenate([[0], np.cumsum(counts)]), codes, names)


def _label_texts(parts: list[Part]) -> Texts:
    blob = b"".join([*(part.labels for part in parts), bytes(PADDING)])
    before = np.cumsum([0, *(len(part.labels) for part in parts)], dtype=np.uint64)
    ends = np.concatenate(
        [part.label_ends + start for part, start in zip(parts, before, strict=False)]
    )
    return Texts(np.frombuffer(blob, np.uint8), np.concatenate([[np.uint64(0)], ends[:-1]]), ends)


def _distinct(texts: Texts, name: str) -> tuple[list[str], npt.NDArray[Any]]:
    """The different texts, and which of them each is."""
    try:
        return coded(texts)
    except UnicodeDecodeError:
        raise DataError(f"{name}: a label is not UTF-8; convert the file to it") from None


def _names_of(parts: list[Part]) -> tuple[npt.NDArray[np.uint32], list[bytes]]:
    """The columns that have a name, each once, and the names: the first in the order of rows."""
    columns = np.concatenate([part.named for part in parts])
    _, first = np.unique(columns >> np.uint32(1), return_index=True)
    texts = [
        part.names[begin:end]
        for part in parts
        for begin, end in pairwise([0, *part.name_ends.tolist()])
    ]
    return columns[first], [texts[place] for place in first.tolist()]


def in_blocks(
    dealer: Dealer,
    make: Callable[[], Callable[[Block], list[Part]]],
    threads: int,
    found: Collector,
) -> None:
    """Collects the rows of all blocks of a file; each of the threads has what `make` makes.

    Raises:
        DataError: what is wrong first, with its line and column.
    """
    before_it = found.blocks
    lines: dict[int, int] = {}
    problems: dict[int, tuple[int, int, str]] = {}

    def work() -> None:
        parse, block, ends = make(), Block(), np.empty(0, np.bool_)
        while dealer.fill(block):
            text = block.text[: block.size]
            if len(ends) < block.size:
                ends = np.empty(len(block.text), np.bool_)
            line_ends = np.equal(text, ord("\n"), out=ends[: block.size])
            lines[block.number] = int(np.count_nonzero(line_ends))
            try:
                share = block.size / dealer.size if dealer.size else 0.0
                found.add(before_it + block.number, parse(block), share)
            except ProblemError as problem:
                dealer.stop()
                before = text[: problem.place].tobytes()
                begin = before.rfind(b"\n") + 1
                column = len(before[begin:].decode("utf-8", "replace")) + 1
                problems[block.number] = before.count(b"\n"), column, str(problem)

    side_by_side([work] * threads, threads)
    if problems:
        number = min(problems)
        line, column, text = problems[number]
        line += 1 + sum(lines[before] for before in range(number))
        raise DataError(f"{dealer.name}: line {line}, column {column}: {text}")
