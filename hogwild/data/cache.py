"""Keeps a `.rows` file beside a text file, and reads it instead while the text is unchanged.

The file lies beside the source, as `train.svm.rows`. If that folder is not writable, the file lies
in the folder of hogwild's cache, under the path of the source.
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hogwild.data.convert import convert
from hogwild.data.opening import suffix_of
from hogwild.data.rows_file import SUFFIX, RowsFile
from hogwild.errors import DataError, OptionError
from hogwild.features.settings import RAW
from hogwild.kernels.compile import cache_folder
from hogwild.paths import PathLike

NO_CACHE = (
    "cache: only for svmlight text; text and tables become a .rows file by hogwild convert, once"
)
CONTENT = 1  # raised where the same text becomes other rows


def cached(
    source: PathLike,
    *,
    index_base: str | int = "auto",
    tell: Callable[[str], Any] = lambda text: None,
) -> Path:
    """The `.rows` file that is kept for a file of rows. It is made if there is none yet.

    It is made again if the source has changed (its size or modification time), or if the options of
    reading have.

    Args:
        source: the file; one of the format .rows is returned as it is.
        index_base: as for `load`.
        tell: is called with a message about what was done.

    Raises:
        DataError: the source cannot be used.
        HogwildError: the `.rows` file cannot be written.
    """
    source = Path(source)
    if suffix_of(source) == SUFFIX:
        return source
    if suffix_of(source) in RAW:
        raise OptionError(NO_CACHE)
    try:
        about = source.stat()
    except OSError as error:
        raise DataError(f"{source}: cannot be read: {error.strerror}") from error
    wanted = {
        "source": {
            "size": about.st_size,
            "changed": about.st_mtime_ns,
            "index_base": index_base,
            "content": CONTENT,
        }
    }
    target = _place_of(source)
    found = _about(target)
    if found == wanted:
        tell(f"{source.name}: taken from {target}, which is of the same text")
        return target
    convert(source, target, index_base=index_base, about=wanted)
    why = "" if found is None else f" anew, since {source.name} or how it is read has changed"
    tell(f"{source.name}: kept as {target}{why}")
    return target


def _place_of(source: Path) -> Path:
    """Where the file is kept."""
    whole = Path(os.path.realpath(source))
    beside = whole.with_name(whole.name + SUFFIX)
    if os.access(whole.parent, os.W_OK):
        return beside
    folder = cache_folder()
    if folder is None:
        raise DataError(
            f"{source}: no place to keep its rows: neither {whole.parent} nor a cache folder can "
            "be written to; convert it to a .rows file elsewhere"
        )
    named = hashlib.sha256(str(whole).encode()).hexdigest()[:16]
    place = folder.parent / "rows"
    place.mkdir(exist_ok=True)
    return place / f"{whole.name}-{named}{SUFFIX}"


def _about(target: Path) -> Any:
    """What a kept file says of its source; None where there is no such file."""
    with suppress(DataError, OSError), target.open("rb") as file:
        return RowsFile(str(target), file.fileno()).about["about"]
    return None
