"""Model files: one file, read without executing anything, checked to the last byte.

8 bytes   HOGWILD and a line feed
4 bytes   the format's version, little-endian
8 bytes   length of the head, little-endian
head      JSON: what the model is, and each array's name, type and length
arrays    their bytes, each beginning on a multiple of 64
4 bytes   CRC-32 of all before
"""

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.given_arrays import native
from hogwild.errors import HogwildError
from hogwild.paths import PathLike, writing

MAGIC = b"HOGWILD\n"
VERSION = 2  # the newest that is read; what an older program can read is written as of its time
HEAD = struct.Struct("<8sIQ")
ALIGNMENT = 64

Arrays = dict[str, npt.NDArray[Any]]


class ModelFileError(HogwildError):
    """A file that is no model, or is damaged, or is newer than this program."""


def write(path: PathLike, about: dict[str, Any], arrays: Arrays, version: int = 1) -> None:
    """Writes a model file, whole or not at all, for programs that read this version or later."""
    listed = [
        {"name": name, "dtype": array.dtype.str, "length": len(array)}
        for name, array in arrays.items()
    ]
    text = json.dumps({"arrays": listed, "about": about}, allow_nan=False).encode()
    head = HEAD.pack(MAGIC, version, len(text)) + text
    checksum = zlib.crc32(head)
    place = len(head)
    with writing(path) as file:
        file.write(head)
        for array in arrays.values():
            gap = bytes(-place % ALIGNMENT)
            data = np.ascontiguousarray(array).view(np.uint8).data
            checksum = zlib.crc32(data, zlib.crc32(gap, checksum))
            file.write(gap)
            file.write(data)
            place += len(gap) + len(data)
        file.write(struct.pack("<I", checksum))


def is_model(path: PathLike) -> bool:
    """Whether a file begins as model files do. A pipe is left alone: it can be read only once."""
    if not Path(path).is_file():
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # whoever reads the file says why
        return False


def read(path: PathLike) -> tuple[dict[str, Any], Arrays]:
    """What a model file says of the model, and its arrays."""
    try:
        data = memoryview(Path(path).read_bytes())
    except OSError as problem:
        raise ModelFileError(f"cannot read the model {path}: {problem.strerror}") from problem
    if data[: len(MAGIC)] != MAGIC:
        raise ModelFileError(f"{path} is not a model of hogwild")
    if len(data) < HEAD.size + 4:
        raise ModelFileError(f"{path} is cut off after {len(data)} bytes; save it again")
    _, version, length = HEAD.unpack_from(data)
    if version > VERSION:
        raise ModelFileError(
            f"{path} was written by a newer hogwild (format {version}; this one reads up to "
            f"{VERSION}): install that one"
        )
    body = data[:-4]
    if struct.pack("<I", zlib.crc32(body)) != data[-4:]:
        raise ModelFileError(f"{path} is damaged or cut off: its checksum is wrong; save it again")
    head = json.loads(bytes(body[HEAD.size : HEAD.size + length]))
    return head["about"], _arrays(body, HEAD.size + length, head["arrays"])


def _arrays(body: memoryview, place: int, listed: list[dict[str, Any]]) -> Arrays:
    arrays = {}
    for entry in listed:
        place += -place % ALIGNMENT
        array = np.frombuffer(body, entry["dtype"], entry["length"], place)
        arrays[entry["name"]] = native(array.copy())
        place += array.nbytes
    return arrays
