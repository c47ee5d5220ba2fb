"""Writing of files, whole or not at all. Paths that cannot be written are refused at once."""

import errno
import os
import secrets
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from hogwild.errors import HogwildError, OptionError

PathLike = str | os.PathLike[str]

HEAD = 1 << 16  # bytes of a model file besides its weights, amply
BUSY = 0.001  # seconds to wait for another process that writes the same file
FULL = (errno.ENOSPC, errno.EDQUOT)


def check_files(outputs: dict[str, PathLike | None], *inputs: Any) -> None:
    """Refuses files that cannot be written, that are inputs, or that are one and the same."""
    files = (given for given in inputs if isinstance(given, str | os.PathLike))
    taken = {os.path.realpath(path): "an input" for path in files}
    problems = []
    for name, path in outputs.items():
        if path is None:
            continue
        if problem := _unwritable(Path(path)):
            problems.append(problem)
        place = os.path.realpath(path)
        if place in taken:
            problems.append(f"{name}: {path} is {taken[place]}, too; give another name")
        taken[place] = f"the {name}"
    if problems:
        raise OptionError("\n".join(problems))


def check_space(path: PathLike, size: int) -> None:
    """Refuses a path on a disk without room for a model of this size in bytes."""
    needed, free = size + HEAD, shutil.disk_usage(Path(path).absolute().parent).free
    if free < needed:
        raise HogwildError(
            f"{path} cannot be written: it needs {needed:,} bytes, and {free:,} are free; "
            "make room, or name another place"
        )


@contextmanager
def writing(path: PathLike, check: Callable[[Path], None] | None = None) -> Iterator[BinaryIO]:
    """A binary file that replaces `path` once it is written, and vanishes on any failure.

    The file has no name until it is whole, so nobody ever sees half a file, and a killed process
    leaves none. The old file stays until the end, and if `check` raises an error for the new one. A
    link is followed, and the permissions are kept.
    """
    if problem := _unwritable(Path(path)):
        raise HogwildError(problem)
    target = Path(os.path.realpath(path))
    beside: Path | None = None
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        file = _nameless(target.parent)
        if file is None:
            beside = target.with_name(f".hogwild-{secrets.token_hex(8)}.part")
            file = beside.open("xb")
        with file:
            yield file
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
            if check is not None:
                check(beside or _open_file(file))
            if beside is None:
                _name(file, target)
        if beside is not None:
            beside.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in FULL:
            reason = "the disk is full; free some space or choose another place"
        raise HogwildError(f"{path} cannot be written: {reason}") from error
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)


def _nameless(folder: Path) -> BinaryIO | None:
    """A new file in a folder that has no name yet; None where there are no such files."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        file = os.fdopen(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            return None
        raise
    if _open_file(file).exists():
        return file
    file.close()  # there is no /proc, through which it would get its name
    return None


def _open_file(file: BinaryIO) -> Path:
    return Path(f"/proc/self/fd/{file.fileno()}")


def _name(file: BinaryIO, target: Path) -> None:
    """Gives a nameless file its name.

    No call of the system replaces a file by a nameless one. So the file gets another name first. If
    this process is killed before the end, the next one that writes this target takes that name.
    """
    import fcntl

    def link(name: Path) -> None:
        # A folder's number, though not needed, makes Python follow the link to the file
        os.link(_open_file(file), name, src_dir_fd=file.fileno())

    with suppress(FileExistsError):
        link(target)
        return
    whose = f"{os.getuid()} {target.name}"
    beside = target.with_name(f".hogwild-{zlib.crc32(os.fsencode(whose)):08x}.part")
    fcntl.flock(file, fcntl.LOCK_EX)  # while it lives, no other process takes the name away
    while True:
        try:
            link(beside)
            break
        except FileExistsError:
            with suppress(FileNotFoundError), beside.open("rb") as left:
                try:
                    fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    time.sleep(BUSY)
                else:
                    _unlink(beside, left)
    try:
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _unlink(path: Path, file: BinaryIO) -> None:
    """Removes the name of a file, unless another file got that name."""
    if os.path.samestat(os.fstat(file.fileno()), path.stat()):
        path.unlink()


def _sync_folder(folder: Path) -> None:
    """Writes the names in a folder to the disk: else a power cut may bring back the old file."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # of systems that know no such thing
            raise
    finally:
        os.close(number)


def _unwritable(path: Path) -> str | None:
    folder = Path(os.path.realpath(path)).parent
    if path.is_dir():
        return f"{path} is a folder; give the name of a file in it"
    if path.exists() and not path.is_file():
        return f"{path} is a device or a pipe; name a file"
    if not folder.is_dir():
        return f"{path} cannot be written: there is no folder {folder}; make it first"
    if not os.access(folder, os.W_OK):
        return f"{path} cannot be written: the folder {folder} is not writable for you"
    return None
