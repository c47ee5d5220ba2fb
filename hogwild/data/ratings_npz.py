"""Ratings in numpy's `.npz`: a matrix as scipy saves it, or arrays of users, items and values.

The arrays hold the ids themselves, unless there are `user_ids...` and `item_ids...` as well: then
they hold codes. Files are written here with codes, which keeps ids of any kind in their order.
"""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild.data.given_arrays import INTEGERS, NUMBERS
from hogwild.data.ids import Ids
from hogwild.data.npz import Arrays, matrix_format, matrix_of
from hogwild.data.ratings import Ratings, of_matrix
from hogwild.errors import DataError, OptionError

USERS = ("users", "user", "user_id", "userId")
ITEMS = ("items", "item", "item_id", "itemId", "movies", "movie", "movieId")
VALUES = ("values", "value", "ratings", "rating", "scores", "stars")
USER_IDS, ITEM_IDS = "user_ids.", "item_ids."
ID_KINDS = "iuUfb"  # numbers that are no ids get their message from Ids


def read(path: Path, file: BinaryIO, *, columns: Any, values: bool) -> Ratings:
    """Reads a file; pairs without values if it is asked to."""
    name = str(path)
    if columns is not None:
        raise OptionError(f"{name}: columns is for delimited text; arrays have names")
    arrays = Arrays(name, file)
    users, items = _key(arrays, USERS), _key(arrays, ITEMS)
    if users and items:
        return _of_arrays(arrays, users, items, values)
    # The entries one by one: of the same place there may be more than one
    matrix = matrix_of(arrays, matrix_format(arrays, "users, items and values, or "))
    who, what, given, *ids = of_matrix(matrix, None, name)
    return Ratings.from_codes(who, what, given if values else None, *ids, name=name)


def _key(arrays: Arrays, names: tuple[str, ...]) -> str | None:
    found = [name for name in names if name in arrays]
    if len(found) > 1:
        raise DataError(f"{arrays.name}: has {' and '.join(found)}; keep one of them")
    return found[0] if found else None


def _of_arrays(arrays: Arrays, users: str, items: str, values: bool) -> Ratings:
    key = _key(arrays, VALUES)
    coded = any(name.startswith((USER_IDS, ITEM_IDS)) for name in arrays.archive.files)
    if values and key is None and not coded:
        raise DataError(
            f"{arrays.name}: has no array of values, only {', '.join(arrays.archive.files)}; "
            "for pairs without values: values=False"
        )
    given = arrays.get(key, NUMBERS) if values and key else None
    kinds = INTEGERS if coded else ID_KINDS
    found = arrays.get(users, kinds), arrays.get(items, kinds), given
    if not coded:
        return Ratings(*found, name=arrays.name)
    ids = _ids(arrays, USER_IDS), _ids(arrays, ITEM_IDS)
    return Ratings.from_codes(*found, *ids, name=arrays.name)


def _ids(arrays: Arrays, prefix: str) -> Ids:
    names = [name for name in arrays.archive.files if name.startswith(prefix)]
    held = {name: arrays.get(name, INTEGERS) for name in names}
    return Ids.from_arrays(held, f"{arrays.name}: {prefix.rstrip('.')}", prefix)


def write(ratings: Ratings, file: BinaryIO) -> None:
    """Writes codes, values and ids, uncompressed."""
    arrays: dict[str, npt.NDArray[Any]] = {"users": ratings.users, "items": ratings.items}
    if ratings.values is not None:
        arrays["values"] = ratings.values
    arrays |= ratings.user_ids.arrays(USER_IDS) | ratings.item_ids.arrays(ITEM_IDS)
    np.savez(file, **arrays)  # type: ignore[arg-type]
