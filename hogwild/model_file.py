"""Model files: one file, read without executing anything, checked to the last byte.

8 bytes   HOGWILD and a line feed
4 bytes   the format's version, little-endian
8 bytes   length of the head, little-endian
head      JSON: what the model is, and each array's name, type and length
arrays    their bytes, each beginning on a multiple of 64
4 bytes   CRC-32 of all before
"""

import json
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild.data.given_arrays import native
from hogwild.errors import HogwildError
from hogwild.machine import available_memory
from hogwild.paths import PathLike, writing

MAGIC = b"HOGWILD\n"
VERSION = 2  # the newest version that is read; files get the oldest version that can hold them
HEAD = struct.Struct("<8sIQ")
ALIGNMENT = 64
BLOCK = 1 << 24  # bytes that are read at a time
DTYPE = re.compile(r"[<>|][fiu][1248]")  # of an array, as numpy writes it; no objects

Arrays = dict[str, npt.NDArray[Any]]


class ModelFileError(HogwildError):
    """A file that is not a model, is damaged, or is newer than this program."""


def write(
    path: PathLike,
    about: dict[str, Any],
    arrays: Arrays,
    version: int = 1,
    check: Callable[[Path], None] | None = None,
) -> None:
    """Writes a model file, whole or not at all, for programs that read this version or later.

    `check` may refuse the new file before it replaces the old one.
    """
    listed = [
        {"name": name, "dtype": array.dtype.str, "length": len(array)}
        for name, array in arrays.items()
    ]
    text = json.dumps({"arrays": listed, "about": about}, allow_nan=False).encode()
    head = HEAD.pack(MAGIC, version, len(text)) + text
    checksum = zlib.crc32(head)
    place = len(head)
    with writing(path, check) as file:
        file.write(head)
        for array in arrays.values():
            gap = bytes(-place % ALIGNMENT)
            data = np.ascontiguousarray(array).view(np.uint8).data
            checksum = zlib.crc32(data, zlib.crc32(gap, checksum))
            file.write(gap)
            file.write(data)
            place += len(gap) + len(data)
        file.write(struct.pack("<I", checksum))


def verify(path: Path) -> None:
    """Reads a file that was just written, and raises an error if it is not as it was written."""
    checksum, last = 0, b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32((last + block)[:-4], checksum)
            last = (last + block)[-4:]
    if struct.pack("<I", checksum) != last:
        raise ModelFileError(f"{path} was not written as it should be: check the disk")


def is_model(path: PathLike) -> bool:
    """Whether a file begins like a model file. A pipe is not read: it can be read only once."""
    if not Path(path).is_file():
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # whoever reads the file says why
        return False


def read(path: PathLike) -> tuple[dict[str, Any], Arrays]:
    """What a model file says of the model, and its arrays, all of which lie within the file.

    Raises:
        ModelFileError: the file is not a model, or is damaged. The description of the model is not
            checked yet.
    """
    try:
        with Path(path).open("rb") as file:
            data = memoryview(_all_of(path, file))
    except OSError as problem:
        raise ModelFileError(f"cannot read the model {path}: {problem.strerror}") from problem
    except MemoryError as problem:
        raise ModelFileError(f"the model {path} does not fit into memory") from problem
    if len(data) < HEAD.size + 4:
        raise ModelFileError(f"{path} is cut off after {len(data)} bytes; save it again")
    body = data[:-4]
    if struct.pack("<I", zlib.crc32(body)) != data[-4:]:
        raise ModelFileError(f"{path} is damaged or cut off: its checksum is wrong; save it again")
    try:
        head, place = _head(body)
        arrays = _arrays(body, place, head["arrays"])
    except DamageError as problem:
        raise damaged(path, problem) from None
    about: dict[str, Any] = head["about"]
    return about, arrays


class DamageError(ValueError):
    """What is wrong within a model file whose checksum is right."""


def damaged(path: PathLike, problem: Exception) -> ModelFileError:
    """The error to raise if something within a file is impossible."""
    return ModelFileError(f"{path} is damaged: {problem}; save it again")


def _all_of(path: PathLike, file: BinaryIO) -> bytearray:
    """All bytes of a file that begins as a model does, as far as memory holds them twice."""
    data = bytearray(file.read(HEAD.size))
    if not data.startswith(MAGIC):
        raise ModelFileError(f"{path} is not a model of hogwild")
    if len(data) == HEAD.size:
        _, version, _ = HEAD.unpack_from(data)
        if version > VERSION:
            raise ModelFileError(
                f"{path} was written by a newer hogwild (format {version}; this one reads up to "
                f"{VERSION}): install that one"
            )
    most = available_memory() // 2  # the arrays are copied from here
    while block := file.read(BLOCK):
        if len(data) + len(block) > most:
            raise ModelFileError(
                f"the model {path} does not fit into memory: it has more than {len(data):,} bytes, "
                f"which are needed twice, and {2 * most:,} are available"
            )
        data += block
    return data


def _head(body: memoryview) -> tuple[dict[str, Any], int]:
    """The head, and where it ends."""
    _, _, length = HEAD.unpack_from(body)
    end = HEAD.size + length
    if end > len(body):
        raise DamageError(f"its head has {length:,} bytes, and the file {len(body) + 4:,}")
    try:
        head = json.loads(bytes(body[HEAD.size : end]), parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise DamageError(f"its head is no JSON ({problem})") from None
    kinds = {"arrays": list, "about": dict}
    if not isinstance(head, dict) or not all(
        isinstance(head.get(name), kind) for name, kind in kinds.items()
    ):
        raise DamageError("its head has no list of arrays, or says nothing of the model")
    return head, end


def _no_number(word: str) -> None:
    raise ValueError(f"there is {word}")


def _arrays(body: memoryview, place: int, listed: list[Any]) -> Arrays:
    arrays: Arrays = {}
    for entry in listed:
        name, dtype, length = _entry(entry)
        if name in arrays:
            raise DamageError(f"there are two arrays {name}")
        place += -place % ALIGNMENT
        size = length * dtype.itemsize
        if place + size > len(body):
            raise DamageError(f"the array {name} of {size:,} bytes ends behind the file")
        arrays[name] = native(np.frombuffer(body[place : place + size], dtype).copy())
        place += size
    if place != len(body):
        raise DamageError(f"{len(body) - place:,} bytes lie behind its arrays")
    return arrays


def _entry(entry: Any) -> tuple[str, np.dtype[Any], int]:
    """An array's name, type and length."""
    given = entry if isinstance(entry, dict) else {}
    name, kind, length = (given.get(key) for key in ("name", "dtype", "length"))
    counts = isinstance(length, int) and not isinstance(length, bool) and length >= 0
    if isinstance(name, str) and isinstance(kind, str) and DTYPE.fullmatch(kind) and counts:
        try:
            return name, np.dtype(kind), int(length or 0)
        except TypeError:  # as of f1
            pass
    raise DamageError(f"{str(entry)[:80]} is no array's name, type and length")
