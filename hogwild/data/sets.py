"""The files of a data set: one, several, those of a folder, or those that match a pattern."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

from hogwild.data.opening import explained
from hogwild.errors import DataError
from hogwild.paths import PathLike

Files = PathLike | Sequence[PathLike]


def are_files(given: Any) -> TypeGuard[Files]:
    """Whether something names files, and is not data itself."""
    if isinstance(given, list | tuple):
        return bool(given) and all(isinstance(one, str | os.PathLike) for one in given)
    return isinstance(given, str | os.PathLike)


def files_of(given: Files) -> list[Path]:
    """The files that are meant, in their order.

    Args:
        given: a file; a folder: all files in it by name, but hidden ones and other folders; a
            pattern such as "part-*.svm": all files that match, by name; or a list of such.

    Raises:
        DataError: a folder or a pattern has no files.
    """
    if isinstance(given, str | os.PathLike):
        return _meant(os.fspath(given))
    return [file for one in given for file in _meant(os.fspath(one))]


def named(*given: Any) -> list[Path]:
    """All files that some arguments name; others, such as data itself, are left out."""
    return [file for one in given if are_files(one) for file in files_of(one)]


def name_of(files: Sequence[Path]) -> str:
    """A name for some files together, for messages."""
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return f"{files[0]}{more}"


def _meant(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        with explained(path):
            found = [file for file in path.iterdir() if not file.name.startswith(".")]
        what = "the folder has no files in it"
    elif glob.has_magic(name) and not path.exists():
        found = [Path(file) for file in glob.glob(name)]  # noqa: PTH207
        what = "no file matches; a name with * ? or [ in it is a pattern"
    else:
        return [path]
    files = sorted(file for file in found if not file.is_dir())
    if not files:
        raise DataError(f"{name}: {what}")
    return files
