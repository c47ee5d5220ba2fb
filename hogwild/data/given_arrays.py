"""Arrays as callers and files give them: of any byte order and width, checked and frozen.

Arrays are checked after the conversion, as kernels get them. A check before would miss the mistakes
of a wrong conversion.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import DataError
from hogwild.fingerprints import first_bad_index, first_bad_value

INTEGERS = "iu"
NUMBERS = "fiub"
WANTED = {INTEGERS: "whole numbers", NUMBERS: "numbers"}


def checked(array: Any, name: str, kinds: str, dimensions: int = 1) -> npt.NDArray[Any]:
    """The array in this machine's byte order, if it has one of the kinds (of numpy's dtypes)."""
    array = np.asarray(array)
    if array.dtype.kind not in kinds or array.ndim != dimensions:
        raise DataError(
            f"{name} is an array of {array.dtype} in {array.ndim} dimension(s); "
            f"expected {WANTED.get(kinds, 'numbers or text')} in {dimensions}"
        )
    return native(array)


def native(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in this machine's byte order; a copy only where it has the other one."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def as_frozen(array: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """A read-only view of the array if it can be used as it is, else of a copy.

    Whole numbers are wrapped where they are negative or too large, as in C.
    """
    wanted = np.dtype(dtype)
    # Equal dtypes have the same byte order: a view of other bytes would be of other numbers
    if wanted.kind == "u" and array.dtype == np.dtype(f"i{wanted.itemsize}"):
        array = array.view(wanted)
    view = np.require(array, dtype=wanted, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


def as_float32(array: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float32], int, str]:
    """Numbers as float32, the place of the first that is then not finite (or the end), and why."""
    with np.errstate(over="ignore"):
        frozen = as_frozen(array, np.float32)
    at = first_bad_value(frozen)
    reason = "too large for float32" if at < len(array) and np.isfinite(array[at]) else ""
    return frozen, at, reason


def row_pointers(given: Any, entries: int, name: str) -> npt.NDArray[np.uint64]:
    """The row pointers of a CSR matrix with this number of entries, as uint64."""
    pointers = as_frozen(checked(given, f"{name}: 'indptr'", INTEGERS), np.uint64)
    if len(pointers) == 0 or pointers[0] != 0 or pointers[-1] != entries:
        raise DataError(
            f"{name}: damaged CSR arrays: the row pointers must go from 0 to the number of "
            f"non-zeros ({entries})"
        )
    falls = pointers[1:] < pointers[:-1]  # so does what was negative: it is too large now
    if np.any(falls):
        row = int(np.argmax(falls))
        raise DataError(f"{name}: damaged CSR arrays: row {row + 1} ends before it begins")
    return pointers


def as_indices(
    given: Any, limit: int, name: str, error: Callable[[int, int], DataError]
) -> npt.NDArray[np.uint32]:
    """Whole numbers below the limit as uint32; `error` makes one of a number and its place."""
    array = checked(given, name, INTEGERS)
    signed = array.dtype.kind == "i"
    if array.dtype.itemsize > 4:
        wide = as_frozen(array, np.uint64)
        if len(wide) and wide.max() >= limit:
            at = int(np.argmax(wide >= limit))
            raise error(int(array[at]), at)
        array, signed = wide, False
    frozen = as_frozen(array, np.uint32)
    # A negative number is 2^31 or more now: one test for both
    at = first_bad_index(frozen, min(limit, 2**31) if signed else limit)
    if at < len(frozen):
        raise error(int(array[at]), at)
    return frozen


def through_scipy(matrix: Any, name: str, convert: Callable[[Any], Any]) -> Any:
    """Converts a matrix by scipy, which does not know all types of values."""
    known = matrix.dtype.newbyteorder("=")
    if known.kind == "f":
        known = np.promote_types(known, np.float32)  # scipy has no half precision
    try:
        return convert(matrix.astype(known, copy=False))
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{name}: scipy cannot convert the matrix ({error}); give it as csr, or its indices "
            "as int32"
        ) from error
