"""Reading and writing ratings, and which format is read by which module.

To add a format, write a module, and name its suffix in `FORMATS`.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hogwild.data import delimited, files, market, ratings_npz
from hogwild.data.files import Format, checked_threads, format_of
from hogwild.data.opening import created, opened, suffix_of
from hogwild.data.ratings import Ratings, check_duplicates
from hogwild.data.sets import Files, files_of, name_of
from hogwild.errors import DataError, OptionError
from hogwild.paths import PathLike


def _read_npz(paths: Sequence[Path], *, threads: int | None, **options: Any) -> Ratings:
    """Reads a file of arrays."""
    if len(paths) > 1:
        raise DataError(
            f"{name_of(paths)}: several .npz files are not one data set of ratings; text may be in "
            "several files"
        )
    with opened(paths[0]) as file:
        return ratings_npz.read(paths[0], file, **options)


OTHERWISE: Format = delimited.read, partial(delimited.write, separator=b",")
FORMATS: dict[str, Format] = {
    ".csv": OTHERWISE,
    ".tsv": (delimited.read, partial(delimited.write, separator=b"\t")),
    ".npz": (_read_npz, ratings_npz.write),
    ".mtx": (market.read, market.write),
}


def named_as_ratings(path: Files) -> bool:
    """Whether a file's name says that it holds ratings, and nothing else; several must agree."""
    only_ratings = FORMATS.keys() - files.FORMATS.keys()
    found = {suffix_of(file) in only_ratings: file for file in files_of(path)}
    if len(found) > 1:
        raise DataError(
            f"{found[True]} holds ratings, by its name, and {found[False]} does not; a data set is "
            "of one kind"
        )
    return True in found


def format_to_write(path: Path) -> Format:
    """The format that a file's suffix names; an error where it names none."""
    if suffix_of(path) not in FORMATS:
        raise OptionError(f"{path}: the suffix must be one of {', '.join(FORMATS)}")
    return format_of(path, FORMATS, OTHERWISE)


def load_ratings(
    path: Files,
    *,
    columns: Any = None,
    values: bool = True,
    duplicates: str = "keep",
    threads: int | None = None,
) -> Ratings:
    """Reads ratings from files: `.npz`, Matrix Market (`.mtx`), or else delimited text.

    Text may be compressed: `.gz`, `.bz2`, `.xz` or `.zst`. Commas, tabs, semicolons, "::" or blanks
    separate its fields, and it may have a header. A column's ids are whole numbers if all of them
    are written as such, without leading zeros or a plus; else they are text. Several files of text
    are read as if they were one, in their order; all of them have a header, or none.

    Args:
        path: the file; or several, as for `load`.
        columns: which columns of delimited text hold user, item and value, by the names in its
            header or by places from 1 on: "user,item,rating", (1, 2, 3). Without it, columns are
            found by usual names, or are the first three where there is no header.
        values: False reads pairs of user and item, and ignores values.
        duplicates: "keep" all ratings of the same pair, or take their "mean" or the "last" of them,
            or "error".
        threads: how many threads parse text; None: one for each core. The ratings are the same for
            any number.

    Raises:
        DataError: a file cannot be used, or one does not go with the others; the text says where,
            and what is expected there.
    """
    check_duplicates(duplicates)
    paths = files_of(path)
    found = {format_of(path, FORMATS, OTHERWISE)[0]: path for path in paths}
    if len(found) > 1:
        one, other = list(found.values())[:2]
        raise DataError(f"{one} and {other} have different formats; several files must have one")
    read = next(iter(found))
    options = {"columns": columns, "values": values, "threads": checked_threads(threads)}
    ratings: Ratings = read(paths, **options)
    return ratings.deduplicated(duplicates)


def save_ratings(ratings: Ratings, path: PathLike) -> None:
    """Writes ratings to a file that `load_ratings` reads back, in the format of its suffix.

    Only `.npz` also keeps ids that no rating has, and text that looks like whole numbers as text.
    A matrix (`.mtx`) holds no ids but 0, 1, 2 ..., and pairs are read back with the value 1.

    Args:
        ratings: the data.
        path: the file, `.csv`, `.tsv`, `.npz` or `.mtx`; text also with `.gz`, `.bz2`, `.xz` or
            `.zst` behind. It is replaced once all is written, and stays untouched if anything
            fails.

    Raises:
        HogwildError: the file cannot be written, or the format cannot hold the data.
    """
    path = Path(path)
    _, write = format_to_write(path)
    with created(path) as (file, _):
        write(ratings, file)
