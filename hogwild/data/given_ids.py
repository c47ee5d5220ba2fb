"""Ids from callers: arrays and lists of whole numbers or of text; anything else is refused."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.texts import Numbers, Texts
from hogwild.errors import DataError
from hogwild.kernels.text import PADDING

BLOCK = 1 << 16  # ids that are looked at together
MISSING = ("None", "nan", "NaT", "<NA>")  # what Python and pandas write for what is not there


def as_ids(array: Any, name: str) -> npt.NDArray[Any] | list[str]:
    """An array of whole numbers, or a list of text; all else is refused."""
    if isinstance(array, list | tuple):
        return _from_list(list(array), name)
    given = np.asarray(array)
    if given.ndim != 1:
        raise DataError(f"{name}: expected one dimension, not an array of the shape {given.shape}")
    if given.dtype.kind in "iu":
        if given.dtype.kind == "u" and len(given) and given.max() >= 2**63:
            raise DataError(_too_large(name, int(given.max())))
        return given
    if given.dtype.kind in "OUT":
        return _from_list(given.tolist(), name)
    if given.size == 0:
        return np.empty(0, np.int64)
    hint = "use .astype(str)"
    if given.dtype.kind == "f":
        hint = "make them whole numbers, .astype(int)"
        if not np.all(np.isfinite(given)):
            at = int(np.argmin(np.isfinite(given)))
            raise DataError(f"{name}: number {at + 1} is {given[at]}; leave out what has no id")
    raise DataError(f"{name} are of the type {given.dtype}; ids are whole numbers or text: {hint}")


def _from_list(entries: list[Any], name: str) -> npt.NDArray[Any] | list[str]:
    kinds = set(map(type, entries))
    if kinds == {str}:
        return entries
    if all(map(_is_whole, kinds)):
        try:
            return np.array(entries, np.int64)
        except OverflowError:
            raise DataError(_too_large(name, max(entries, key=abs))) from None
    if all(map(_is_text, kinds)):
        return [str(entry) for entry in entries]
    fits = _is_text if isinstance(entries[0], str) else _is_whole
    number, odd = next((k, entry) for k, entry in enumerate(entries, 1) if not fits(type(entry)))
    if str(odd) in MISSING:
        raise DataError(f"{name}: number {number} is missing ({odd!r}); leave out what has no id")
    raise DataError(
        f"{name}: number {number} is {odd!r}, a {type(odd).__name__}; "
        "ids must all be whole numbers, or all be text (.astype(str))"
    )


def _is_whole(kind: type) -> bool:
    return issubclass(kind, int | np.integer) and kind is not bool


def _is_text(kind: type) -> bool:
    return issubclass(kind, str)


def _too_large(name: str, number: int) -> str:
    return f"{name}: {number} does not fit into 64 bits; give such ids as text (.astype(str))"


def number_blocks(numbers: npt.NDArray[Any]) -> Iterator[tuple[int, Numbers]]:
    """Where a block begins, and its numbers."""
    for begin in range(0, len(numbers), BLOCK):
        yield begin, np.ascontiguousarray(numbers[begin : begin + BLOCK], np.int64)


def text_blocks(entries: list[str], name: str) -> Iterator[tuple[int, Texts]]:
    """Where a block begins, and its texts."""
    for begin in range(0, len(entries), BLOCK):
        block = entries[begin : begin + BLOCK]
        try:
            data = "".join(block).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{name}: there is text that is not Unicode ({error})") from None
        sizes = [len(text) for text in block]
        if sum(sizes) != len(data):
            sizes = [len(text.encode()) for text in block]
        ends = np.cumsum([0, *sizes], dtype=np.uint64)
        yield begin, Texts(np.frombuffer(data + bytes(PADDING), np.uint8), ends[:-1], ends[1:])
