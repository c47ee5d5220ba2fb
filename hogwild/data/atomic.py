"""Writing a file whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hogwild.errors import HogwildError

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` once it is written, and vanishes on any failure.

    It is written beside its place under another name, so nobody ever sees half a file, and what
    stood there before stays until the end. A link is followed, and the permissions are kept.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".hogwild-{secrets.token_hex(8)}.part")
    try:
        mode = _mode_to_keep(target)
        with beside.open("xb") as file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as error:
        raise HogwildError(f"{path} cannot be written: {_reason(error, target)}") from error
    finally:
        beside.unlink(missing_ok=True)


def _mode_to_keep(target: Path) -> int | None:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(mode):  # /dev/null must not be replaced by a file
        raise OSError(errno.EINVAL, "it is a device or a pipe; name a file")
    return stat.S_IMODE(mode)


def _reason(error: OSError, target: Path) -> str:
    if error.errno in FULL:
        return "the disk is full; free some space or choose another place"
    if not target.parent.is_dir():
        return f"there is no folder {target.parent}; create it first"
    return error.strerror or str(error)
