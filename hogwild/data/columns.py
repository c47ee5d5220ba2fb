"""The layout of delimited text: the separator of the fields, and the wanted fields."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hogwild.data.opening import suffix_of
from hogwild.data.svmlight import NOT_FINITE, NUMBER
from hogwild.errors import DataError, OptionError
from hogwild.kernels.text import FLOAT32_LIMIT

# In order of preference, where more than one would do
SEPARATORS = {b"::": '"::"', b"\t": "tabs", b";": "semicolons", b",": "commas", b" ": "blanks"}
OF_SUFFIX = {".csv": (b"\t", b";", b","), ".tsv": (b"\t",)}
QUOTING = (b"\t", b";", b",")

ROLES = ("user", "item", "value")
KNOWN = {
    "user": "user userid uid username customer customerid reviewer reviewerid reader readerid",
    "item": "item itemid iid movie movieid film filmid book bookid isbn track trackid song songid "
    "artist artistid album albumid product productid asin anime animeid game gameid recipe "
    "recipeid business businessid",
    "value": "rating value score stars ratings bookrating overall weight plays playcount count",
}
ROLE_OF = {name: role for role, names in KNOWN.items() for name in names.split()}

PLACE = re.compile("0*[1-9][0-9]{0,5}")
QUOTED = re.compile(rb'"((?:[^"]|"")*)" *')

Columns = tuple[int, ...] | tuple[str, ...]
Fields = list[bytes]


class Layout(NamedTuple):
    """How lines are made up; `places` (user, item, perhaps value) count from 0."""

    separator: bytes
    places: tuple[int, ...]
    header: bool


class Unclear(Exception):  # noqa: N818
    """Why a line cannot be read; the caller knows its number."""


def checked_columns(columns: Any, values: bool) -> Columns | None:
    """The `columns` option as a tuple of names, or of places from 0 on."""
    if columns is None:
        return None
    given = columns.split(",") if isinstance(columns, str) else columns
    wanted = (
        f"columns is {columns!r}; it must name the columns of the user, the item"
        f"{' and the value' if values else ''}, all by names or all by places (from 1 on), such as "
        f"{_example(values)}"
    )
    if not isinstance(given, Sequence) or not (2 <= len(given) <= 3) or len(given) < 2 + values:
        raise OptionError(wanted)
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in given[: 2 + values]]
    if len(set(map(str, cells))) < len(cells):
        raise OptionError(f"columns is {columns!r}; it names a column twice")
    if all(type(cell) in (str, int) and PLACE.fullmatch(str(cell)) for cell in cells):
        return tuple(int(cell) - 1 for cell in cells)
    if all(isinstance(cell, str) and cell and not cell.isdecimal() for cell in cells):
        return tuple(cells)
    raise OptionError(wanted)


def _example(values: bool) -> str:
    return '"user,item,rating" or "1,2,3"' if values else '"user,item" or "1,2"'


def split(line: bytes, separator: bytes) -> Fields:
    """The fields of a line, without the blanks around them and without quotes."""
    line = line.removesuffix(b"\r")
    if separator == b" ":
        return re.split(rb"[ \t]+", line.strip(b" \t"))
    if separator not in QUOTING or b'"' not in line:
        return [field.strip(b" ") for field in line.split(separator)]
    fields = []
    at = 0
    while True:
        field, at = _field(line, at, separator)
        fields.append(field)
        if at > len(line):
            return fields


def _field(line: bytes, at: int, separator: bytes) -> tuple[bytes, int]:
    """A field, and where the next one begins: behind the line if there is none."""
    while line[at : at + 1] == b" ":
        at += 1
    if line[at : at + 1] != b'"':
        end = line.find(separator, at)
        end = len(line) if end < 0 else end
        return line[at:end].strip(b" "), end + 1
    found = QUOTED.match(line, at)
    if found is None:
        raise Unclear(
            "a quote is not closed; text over several lines cannot be read: leave such columns out"
        )
    if found.end() < len(line) and line[found.end() : found.end() + 1] != separator:
        raise Unclear(
            f"{shown(found.group())} is followed by something else than {SEPARATORS[separator]}; "
            'a quote within quotes is written twice: ""'
        )
    return found.group(1).replace(b'""', b'"'), found.end() + 1


def shown(field: bytes) -> str:
    """A field for a message."""
    return ascii(field[:40].decode("utf-8", "replace")) + ("..." if len(field) > 40 else "")


def layout_of(
    path: Path, lines: list[bytes], columns: Columns | None, values: bool, first: int
) -> Layout:
    """The layout that fits some lines best; `first` is the number of the first line."""
    candidates = OF_SUFFIX.get(suffix_of(path), tuple(SEPARATORS))
    best = max(candidates, key=lambda separator: _fitting(lines, separator, columns, values))
    try:
        return _layout(lines, best, columns, values)
    except Unclear as problem:
        raise DataError(f"{path}: line {first}: {problem}") from None


def layout_like(
    known: Layout,
    of: str,
    name: str,
    lines: list[bytes],
    columns: Columns | None,
    values: bool,
    first: int,
) -> Layout:
    """The layout of another file's first lines, which must be that of a file before it."""
    try:
        found = _layout(lines, known.separator, columns, values)
    except Unclear as problem:
        raise DataError(f"{name}: line {first}: {problem}") from None
    if found == known:
        return found
    if found.header != known.header:
        mine, others = ("a header", "none") if found.header else ("no header", "one")
        what = f"has {mine}, and {of} has {others}"
    else:
        mine, others = (", ".join(str(n + 1) for n in one.places) for one in (found, known))
        what = f"has user, item and value in the columns {mine}, and {of} in {others}"
    raise DataError(f"{name}: line {first}: {what}; files of one data set must agree")


def _fitting(
    lines: list[bytes], separator: bytes, columns: Columns | None, values: bool
) -> tuple[int, int]:
    """How many lines can be read with this separator, and how many lines contain it."""
    enough = _understood(lines, lambda line: len(split(line, separator)) >= 2)
    try:
        layout = _layout(lines, separator, columns, values)
    except Unclear:
        return 0, enough
    below = lines[layout.header :]
    return layout.header + _understood(below, lambda line: rating_of(line, layout)), enough


def _understood(lines: list[bytes], meaning: Callable[[bytes], Any]) -> int:
    """In how many lines there is something of this meaning."""
    count = 0
    for line in lines:
        with suppress(Unclear):
            count += bool(meaning(line))
    return count


def _layout(lines: list[bytes], separator: bytes, columns: Columns | None, values: bool) -> Layout:
    first = split(lines[0], separator)
    if columns is None and (known := _by_known_names(first, values)):
        return Layout(separator, known, True)
    if columns is not None and isinstance(columns[0], str):
        return Layout(separator, _by_names(first, columns), True)
    places = tuple(map(int, columns or range(2 + values)))
    if len(first) <= max(places):
        raise Unclear(_too_few(first, separator, values, max(places) + 1))
    header = _is_header(lines, places, separator, values)
    if header and columns is None:
        raise Unclear(
            f"neither a rating nor a header with names that are known: {_listed(first)}; "
            f"{_say_which(values)}. Of a table of rows, say which column has the label: label"
        )
    return Layout(separator, places, header)


def _plain(name: bytes | str) -> str:
    """A column's name without case and punctuation."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    return re.sub(r"[\s_\-.]", "", text).lower()


def _by_known_names(first: Fields, values: bool) -> tuple[int, ...] | None:
    """The places of the columns with names that are known; None if this is no such header."""
    found: dict[str, list[int]] = {role: [] for role in ROLES}
    for place, field in enumerate(first):
        role = ROLE_OF.get(_plain(field))
        if role:
            found[role].append(place)
    if not (found["user"] and found["item"]):
        return None
    for role in ROLES[: 2 + values]:
        if len(found[role]) > 1:
            names = " and ".join(shown(first[place]) for place in found[role])
            raise Unclear(f"the columns {names} may both hold the {role}; {_say_which(values)}")
    if values and not found["value"]:
        raise Unclear(
            f"none of the columns {_listed(first)} is known to hold values; "
            f"{_say_which(values)}, or values=False for pairs without values"
        )
    return tuple(found[role][0] for role in ROLES[: 2 + values])


def _by_names(first: Fields, columns: Columns) -> tuple[int, ...]:
    exact = [field.decode("utf-8", "replace") for field in first]
    plain = [_plain(field) for field in first]
    places = []
    for name in map(str, columns):
        names, wanted = (exact, name) if name in exact else (plain, _plain(name))
        if names.count(wanted) != 1:
            how_often = "is not" if wanted not in names else "is more than once"
            raise Unclear(f"the column {name!r} {how_often} among {_listed(first)}")
        places.append(names.index(wanted))
    return tuple(places)


def _is_header(lines: list[bytes], places: tuple[int, ...], separator: bytes, values: bool) -> bool:
    """Whether the first line has no numbers in the wanted fields, while lines below have."""
    fields = split(lines[0], separator)
    named = [fields[place] for place in places]
    if any(not field or NUMBER.fullmatch(field) or NOT_FINITE.match(field) for field in named):
        return False
    return values or all(_holds_numbers(lines[1:], place, separator) for place in places)


def _holds_numbers(lines: list[bytes], place: int, separator: bytes) -> bool:
    """Whether a field is a number in all of some lines."""
    count = _understood(
        lines, lambda line: any(map(NUMBER.fullmatch, split(line, separator)[place : place + 1]))
    )
    return 0 < count == len(lines)


def _too_few(first: Fields, separator: bytes, values: bool, wanted: int) -> str:
    what = "user, item and value" if values else "user and item"
    if len(first) == 1:
        known = ", ".join(SEPARATORS.values())
        return f"{shown(first[0])} is one field; expected {what}, separated by one of: {known}"
    hint = " (for pairs without values: values=False)" if values and len(first) == 2 else ""
    return (
        f"{len(first)} fields (separated by {SEPARATORS[separator]}); expected {what} in at least "
        f"{wanted}{hint}"
    )


def _listed(first: Fields) -> str:
    return ", ".join(map(shown, first[:20])) + (", ..." if len(first) > 20 else "")


def _say_which(values: bool) -> str:
    return f"say which are wanted: columns={_example(values)}"


def rating_of(line: bytes, layout: Layout) -> tuple[bytes, bytes, float]:
    """The user, the item and the value (or 0) in a line."""
    fields = split(line, layout.separator)
    if len(fields) <= max(layout.places):
        raise Unclear(
            _too_few(fields, layout.separator, len(layout.places) == 3, max(layout.places) + 1)
        )
    for role, place in zip(ROLES, layout.places[:2], strict=False):
        if not fields[place]:
            raise Unclear(f"the {role} (field {place + 1}) is empty")
    value = 0.0 if len(layout.places) == 2 else _value(fields, layout)
    return fields[layout.places[0]], fields[layout.places[1]], value


def _value(fields: Fields, layout: Layout) -> float:
    place = layout.places[2]
    text = fields[place]
    where = f"{shown(text)} (field {place + 1})"
    if NOT_FINITE.match(text):
        raise Unclear(f"{where} is not finite; leave out what has no value")
    if not NUMBER.fullmatch(text):
        comma = (
            ", with a point and not a comma" if NUMBER.fullmatch(text.replace(b",", b".")) else ""
        )
        raise Unclear(f"{where} is not a number; expected a value such as 4 or 3.5{comma}")
    value = float(text)
    if abs(value) >= FLOAT32_LIMIT:
        raise Unclear(f"{where} is too large; expected a value of 3.4e38 at the most")
    return value
