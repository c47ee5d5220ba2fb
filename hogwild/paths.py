"""Where files are to be written: refused before any work, if nothing can be."""

import os
import shutil
from pathlib import Path

from hogwild.errors import HogwildError, OptionError

PathLike = str | os.PathLike[str]

HEAD = 1 << 16  # bytes of a model file besides its weights, amply


def check_output(path: PathLike) -> None:
    """Refuses a path that no file could be written to."""
    folder = Path(path).absolute().parent
    if Path(path).is_dir():
        raise OptionError(f"{path} is a folder; give the name of a file in it")
    if Path(path).exists() and not Path(path).is_file():
        raise OptionError(f"{path} is a device or a pipe; name a file")
    if not folder.is_dir():
        raise OptionError(f"{path} cannot be written: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise OptionError(f"{path} cannot be written: the folder {folder} is not writable for you")


def check_apart(outputs: dict[str, PathLike | None], inputs: list[PathLike | None]) -> None:
    """Refuses to write over the data, or two things to one file."""
    taken = {os.path.realpath(path): "an input" for path in inputs if path is not None}
    for name, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise OptionError(f"{name}: {path} is {taken[place]}, too; give another name")
        taken[place] = f"the {name}"


def check_space(path: PathLike, size: int) -> None:
    """Refuses a path on a disk without room for a model with so many bytes of weights."""
    needed, free = size + HEAD, shutil.disk_usage(Path(path).absolute().parent).free
    if free < needed:
        raise HogwildError(
            f"{path} cannot be written: it needs {needed:,} bytes, and {free:,} are free; "
            "make room, or name another place"
        )
