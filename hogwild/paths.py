"""Where files are to be written: refused before any work, if nothing can be."""

import os
import shutil
from pathlib import Path
from typing import Any

from hogwild.errors import HogwildError, OptionError

PathLike = str | os.PathLike[str]

HEAD = 1 << 16  # bytes of a model file besides its weights, amply


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


def _unwritable(path: Path) -> str | None:
    folder = path.absolute().parent
    if path.is_dir():
        return f"{path} is a folder; give the name of a file in it"
    if path.exists() and not path.is_file():
        return f"{path} is a device or a pipe; name a file"
    if not folder.is_dir():
        return f"{path} cannot be written: there is no folder {folder}; make it first"
    if not os.access(folder, os.W_OK):
        return f"{path} cannot be written: the folder {folder} is not writable for you"
    return None


def check_space(path: PathLike, size: int) -> None:
    """Refuses a path on a disk without room for a model with so many bytes of weights."""
    needed, free = size + HEAD, shutil.disk_usage(Path(path).absolute().parent).free
    if free < needed:
        raise HogwildError(
            f"{path} cannot be written: it needs {needed:,} bytes, and {free:,} are free; "
            "make room, or name another place"
        )
