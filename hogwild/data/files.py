"""Which format of rows is read by which module.

A format is a function that reads files of one data set, and one that writes into an open file. To
add a format, write a module with both, and name its suffix in `FORMATS`.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data import npz, rows_file, svmlight
from hogwild.data.opening import created, is_packed, opened, suffix_of
from hogwild.data.rows import Rows, check_same_features, joined
from hogwild.data.sets import Files, files_of, name_of
from hogwild.errors import DataError, OptionError, warn
from hogwild.features.encoder import Features
from hogwild.features.settings import NAMES, RAW
from hogwild.paths import PathLike

INDEX_BASES = ("auto", 0, 1)

PACKED = (".npz", rows_file.SUFFIX)  # formats that do their own packing

Format = tuple[Callable[..., Any], Callable[..., None]]  # what reads, and what writes


def _read_npz(paths: Sequence[Path], *, threads: int | None, **options: Any) -> Rows:
    """Reads files of arrays one by one."""
    parts = []
    for path in paths:
        with opened(path) as file:
            parts.append(npz.read(path, file, **options))
    return joined(parts, name_of(paths))


def _read_rows(paths: Sequence[Path], *, threads: int | None, **options: Any) -> Rows:
    """Opens a file; several are read into memory, as one."""
    parts = []
    for path in paths:
        with opened(path) as file:
            parts.append(rows_file.read(path, file, **options))
    return joined(parts, name_of(paths))


FORMATS: dict[str, Format] = {
    ".npz": (_read_npz, npz.write),
    rows_file.SUFFIX: (_read_rows, rows_file.write),
}
OTHERWISE: Format = svmlight.read, svmlight.write


def load(
    path: Files,
    *,
    index_base: str | int = "auto",
    labels: bool = True,
    threads: int | None = None,
    features: Features | None = None,
    **settings: Any,
) -> Rows:
    """Reads rows from files: `.rows`, scipy's `.npz`, svmlight text, or raw text and tables.

    A `.rows` file is only opened: its rows are read when they are first used. Text may be
    compressed: `.gz`, `.bz2`, `.xz` or `.zst`. Several files are read as if they were one, in their
    order.

    Args:
        path: the file; or several: a list of files, a folder (all files in it by name, but hidden
            ones and other folders), or a pattern such as "part-*.svm" (all that match, by name).
        index_base: the number that the files give to the first column. "auto" takes 0 if the
            index 0 occurs anywhere, else 1.
        labels: False accepts data without labels, to predict.
        threads: how many threads parse text; None: one for each core. The rows are the same for
            any number.
        features: how rows are made from the text or table in the file.
        **settings: the same, by the options of `hogwild.Features`: format, label, ngrams, ...

    Raises:
        DataError: a file cannot be used, or one does not go with the others; the text says where,
            and what is expected there.
    """
    check_index_base(index_base)
    features = features_of(features, settings)
    paths = files_of(path)
    features = by_name(paths, features)
    options = {"index_base": index_base, "labels": labels, "threads": checked_threads(threads)}
    if features is not None and features.settings.format != "svmlight":
        if index_base != "auto":
            raise OptionError("index_base: it is for svmlight text, whose columns are numbers")
        return _of_features(features, paths, options)
    return _of_formats(paths, options)


def by_name(paths: Sequence[Path], features: Features | None) -> Features | None:
    """The given features; else the defaults, for files whose names say that they hold raw input."""
    raw = [path for path in paths if suffix_of(path) in RAW]
    if features is not None or not raw:
        return features
    if len(raw) < len(paths):
        other = next(path for path in paths if path not in raw)
        raise DataError(f"{raw[0]} is text or a table, and {other} is not; give them separately")
    return Features()


def _of_formats(paths: Sequence[Path], options: dict[str, Any]) -> Rows:
    """The rows of files that have columns."""
    groups = groupby(paths, lambda path: format_of(path, FORMATS, OTHERWISE)[0])
    return joined([read(list(group), **options) for read, group in groups], name_of(paths))


def _of_features(features: Features, paths: Sequence[Path], options: dict[str, Any]) -> Rows:
    """The rows of text or tables, or of files that were made from such in the same way."""
    made = [path for path in paths if format_of(path, FORMATS, OTHERWISE) != OTHERWISE]
    if not made:
        return features.read(paths, options["labels"], options["threads"])
    if not features.learned:
        names = features.given or ["features"]
        raise OptionError(
            "\n".join(f"{name}: {made[0]} has columns already; leave it out" for name in names)
        )
    if len(made) < len(paths):
        raise DataError(f"{made[0]}: text or tables are beside it; give them separately")
    rows = _of_formats(paths, options)
    check_same_features(rows, features, "the training data")
    return rows


def check_index_base(index_base: str | int) -> None:
    """Refuses what is no index base."""
    if index_base not in INDEX_BASES or isinstance(index_base, bool):
        raise OptionError(f'index_base must be "auto", 0 or 1, not {index_base!r}')


def checked_threads(threads: int | None) -> int | None:
    """The number of threads that were asked for."""
    if threads is not None and (isinstance(threads, bool) or threads < 1):
        raise OptionError(f"threads must be 1 or more, or None, not {threads!r}")
    return threads


def features_of(features: Features | None, settings: dict[str, Any]) -> Features | None:
    """The features that are given, or those of some settings; None where there are none."""
    if not settings:
        return features
    if features is not None:
        raise OptionError(f"features: leave it out, or {', '.join(settings)}")
    unknown = [name for name in settings if name not in NAMES]
    if unknown:
        raise OptionError("\n".join(f"{name}: there is no such option" for name in unknown))
    if settings.get("format") == "svmlight" and len(settings) > 1:
        names = ", ".join(name for name in settings if name != "format")
        raise OptionError(f"format: svmlight text has columns already; leave out {names}")
    return Features(**settings)


def save(rows: Rows, path: PathLike, *, index_base: int | None = None) -> None:
    """Writes rows to a file that `load` reads back bit for bit, in the format of its suffix.

    Args:
        rows: the data.
        path: the file. It is replaced once all is written, and stays untouched if anything fails.
        index_base: the number to give to the first column, 0 or 1; None keeps `rows.index_base`, or
            in text takes 1 where there is none.

    Raises:
        HogwildError: the file cannot be written, or the format cannot hold the data.
    """
    if not isinstance(rows, Rows):
        raise DataError(
            f"save takes hogwild.Rows, not a {type(rows).__name__}; for ratings: save_ratings"
        )
    if index_base is None:
        index_base = rows.index_base
    if index_base not in (0, 1, None) or isinstance(index_base, bool):
        raise OptionError(f"index_base must be 0, 1 or None, not {index_base!r}")
    path = Path(path)
    _, write = format_of(path, FORMATS, OTHERWISE)
    if rows.features is not None and write is not rows_file.write:
        warn(
            f"{path} does not keep how its rows were made of text or a table, so models of it "
            f"cannot read such; a {rows_file.SUFFIX} file keeps that"
        )
    with created(path) as (file, _):
        write(rows, file, index_base=index_base)


def load_weights(path: PathLike) -> npt.NDArray[np.float64]:
    """Reads a number from each line; the file may be compressed.

    Raises:
        DataError: says which line is not a number of 0 or more.
    """
    with opened(Path(path)) as file:
        lines = file.read().splitlines()
    weights = np.empty(len(lines))
    for place, line in enumerate(lines):
        try:
            weights[place] = float(line)
        except ValueError:
            weights[place] = np.nan
        if not 0 <= weights[place] < np.inf:
            shown = line[:40].decode("utf-8", "replace")
            raise DataError(
                f"{path}: line {place + 1}: {shown!r} is not a weight; expected a number of 0 or "
                "more on each line, one for each row"
            )
    return weights


def format_of(path: Path, formats: dict[str, Format], otherwise: Format) -> Format:
    """The format that a file's suffix names, or the other one."""
    suffix = suffix_of(path)
    if suffix in PACKED and is_packed(path):
        raise DataError(f"{path}: {suffix} files are not packed once more; leave out {path.suffix}")
    return formats.get(suffix, otherwise)
