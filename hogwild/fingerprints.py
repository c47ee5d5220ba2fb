"""Fingerprints of arrays, by which worker processes recognize arrays that they have already.

Data from outside is checked in one pass before any kernel trusts it. The same pass computes the
fingerprint.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import DataError
from hogwild.kernels.checks import LANES, survey
from hogwild.remembered import Remembered

EVERY_BIT = np.uint32(0xFFFFFFFF)
NO_SIGN = np.uint32(0x7FFFFFFF)
NOT_FINITE = 0x7F800000  # the least pattern of bits, but for the sign, of an infinity or a NaN
NEVER = 1 << 32
PROBES = 1024  # words that are checked again, to see whether an array has changed

Array = npt.NDArray[Any]

_known = Remembered[tuple[bytes, bytes]]()  # of frozen arrays: fingerprint and probe


def first_bad_index(indices: npt.NDArray[np.uint32], limit: int) -> int:
    """Where the first index >= limit stands, or the array's length."""
    return _surveyed(indices, EVERY_BIT, limit)[0]


def first_bad_value(values: npt.NDArray[np.float32]) -> int:
    """Where the first NaN or infinity stands, or the array's length."""
    return _surveyed(values, NO_SIGN, NOT_FINITE)[0]


def fingerprint(array: Array) -> bytes:
    """A digest of the array's type and content; for a frozen array it is computed only once.

    The array must be contiguous, of one dimension, and a multiple of four bytes long.

    Raises:
        DataError: the array was frozen, and someone wrote to it nevertheless.
    """
    known = _known.get(array)
    if known is None:
        return _surveyed(array, EVERY_BIT, NEVER)[1]
    found, probe = known
    if probe != _probe(array):
        raise DataError(
            "an array changed after it was given to hogwild.Rows or hogwild.Ratings: create a new "
            "object after every change"
        )
    return found


def digest_of(arrays: Iterable[Array]) -> str:
    """A digest of several contiguous arrays, of any type and length."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        flat = array.ravel()
        digest.update(flat.tobytes() if flat.nbytes % 4 or not len(flat) else fingerprint(flat))
    return digest.hexdigest()


def know(array: Array, found: bytes) -> None:
    """Records a known digest of a frozen array's content as the array's fingerprint."""
    _known.put(array, (found, _probe(array)))


def _surveyed(array: Array, mask: np.uint32, limit: int) -> tuple[int, bytes]:
    lanes = np.zeros(LANES, np.uint32)
    bad = int(survey(array.view(np.uint32), mask, limit, lanes))
    digest = hashlib.blake2b(lanes.tobytes(), digest_size=16)
    digest.update(f"{array.dtype.str} {len(array)}".encode())
    found = digest.digest()
    if not array.flags.writeable:
        know(array, found)
    return bad, found


def _probe(array: Array) -> bytes:
    words = array.view(np.uint32)
    return words[:: max(1, len(words) // PROBES)].tobytes()
