"""Rows in numpy's `.npz`, laid out as `scipy.sparse.save_npz` does, with the labels beside them.

The matrix formats csr, csc and coo are read. `data` may be missing if every value is 1. Labels are
looked for in the file (`y`, `labels`, `target`, `targets`) and then beside it, as `<name>.y.npy`
and `<name>.labels.npy`. Several labels a row are a CSR matrix beside the other one: `label_indptr`,
`label_indices`, and `label_names` (0, 1, ... where they are missing). Without any, `y` is None;
training will ask for labels.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from hogwild.data.given_arrays import INTEGERS, NUMBERS, checked, row_pointers
from hogwild.data.labels import LabelSets
from hogwild.data.rows import Rows
from hogwild.data.sources import PACKED, SUSPECT
from hogwild.errors import DataError
from hogwild.machine import available_memory

NEEDED = {
    "csr": ("indices", "indptr", "shape"),
    "csc": ("indices", "indptr", "shape"),
    "coo": ("row", "col", "shape"),
}
LABELS = ("y", "labels", "target", "targets")
SETS = "label_indptr", "label_indices", "label_names"
LABEL_FILES = (".y.npy", ".labels.npy")

LABEL_KINDS = "fiubUS"
POINTER = 8  # bytes for each row
HEADS: dict[tuple[int, int], Callable[[Any], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read(path: Path, file: BinaryIO, *, index_base: str | int, labels: bool) -> Rows:
    """Reads a file; `labels` changes nothing, since a missing `y` is told by None."""
    name = str(path)
    arrays = Arrays(name, file)
    base = _index_base(arrays, index_base)
    y = _labels(arrays, path)
    kind, (size, columns) = matrix_format(arrays), shape_of(arrays)
    if kind != "csr":
        rows = Rows(matrix_of(arrays, kind), y, name=name)
        rows.index_base = base
        return rows
    indptr, indices = arrays.get("indptr", INTEGERS), arrays.get("indices", INTEGERS)
    if len(indptr) != size + 1:
        raise DataError(
            f"{name}: {size} rows need {size + 1} row pointers ('indptr'), and there are "
            f"{len(indptr)}"
        )
    values = _values(arrays, len(indices))
    return Rows.from_arrays(indptr, indices, values, columns, y, index_base=base, name=name)


class Arrays:
    """The arrays in a file, each read when it is asked for."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        if file.read(4) != b"PK\x03\x04":
            raise DataError(
                f"{name}: is not an .npz file; write one with hogwild.save, numpy.savez or "
                "scipy.sparse.save_npz"
            )
        file.seek(0)
        with self._reading("the file"):
            self.archive = np.load(file, allow_pickle=False)
            for member in self.archive.zip.namelist():  # a damaged name is not a missing one
                self.archive.zip.open(member).close()
            self.packed = file.seek(0, 2)
        size = sum(info.file_size for info in self.archive.zip.infolist())
        if size > max(SUSPECT, PACKED * self.packed):
            raise DataError(
                f"{name}: unpacks to {size:,} bytes, more than {PACKED} times its size, and is "
                "refused; if it holds real data, save it uncompressed"
            )

    def __contains__(self, key: str) -> bool:
        return key in self.archive.files

    def get(self, key: str, kinds: str, dimensions: int = 1) -> npt.NDArray[Any]:
        """An array, if it is of one of the kinds (of numpy's dtypes) and so many dimensions."""
        return checked(self.any(key), f"{self.name}: {key!r}", kinds, dimensions)

    def any(self, key: str) -> npt.NDArray[Any]:
        """An array of whatever kind, but not of Python objects."""
        with self._reading(repr(key)):
            self._check_size(key)
            array: npt.NDArray[Any] = self.archive[key]
        return array

    def _check_size(self, key: str) -> None:
        """Refuses an array that is not as large as its head says, or does not fit into memory."""
        names = self.archive.zip.namelist()
        info = self.archive.zip.getinfo(key if key in names else f"{key}.npy")
        if info.file_size > available_memory():
            raise MemoryError(f"it has {info.file_size:,} bytes")
        with self.archive.zip.open(info) as member:
            read = HEADS.get(np.lib.format.read_magic(member))
            if read is None:
                return
            shape, _, kind = read(member)
            has, wanted = info.file_size - member.tell(), math.prod(shape) * kind.itemsize
        if has != wanted and not kind.hasobject:
            raise ValueError(f"the shape {shape} needs {wanted:,} bytes, and there are {has:,}")

    @contextmanager
    def _reading(self, place: str) -> Iterator[None]:
        """Turns the many errors of zipfile and numpy into one error about a part of the file."""
        try:
            yield
        except MemoryError as error:
            raise DataError(
                f"{self.name}: {place} does not fit into memory, or is damaged ({error})"
            ) from error
        except Exception as error:
            if "pickle" in str(error).lower():
                raise DataError(
                    f"{self.name}: {place} holds Python objects, which may run code when they are "
                    "read; save it as numbers or text (astype(str))"
                ) from None
            raise self.damaged(error, place) from error

    def damaged(self, error: Exception, place: str) -> DataError:
        """What to raise where a part of the file makes no sense."""
        return DataError(f"{self.name}: {place} is damaged or cut off ({error}); get it anew")


def matrix_format(arrays: Arrays, other: str = "") -> str:
    """The matrix's format, once it is clear that all it needs is there."""
    kind = "csr"
    if "format" in arrays:
        value = arrays.get("format", "SU", 0).item()
        kind = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
    if kind not in NEEDED:
        raise DataError(
            f"{arrays.name}: a matrix in the format {kind!r}; save it as csr "
            "(scipy.sparse.csr_matrix(X)); csc and coo are read, too"
        )
    missing = [key for key in NEEDED[kind] if key not in arrays]
    if missing:
        raise DataError(
            f"{arrays.name}: there is no {', '.join(missing)} in it, only "
            f"{', '.join(arrays.archive.files) or 'nothing'}; expected {other}a matrix as "
            "scipy.sparse.save_npz writes it"
        )
    return kind


def _index_base(arrays: Arrays, wanted: str | int) -> int | None:
    """What is wanted, or what the file names, or None.

    The columns of a matrix are always in their places. The base is only the number that text would
    give to the first column, so a matrix goes with text of either base.
    """
    base = int(arrays.get("index_base", INTEGERS, 0)) if "index_base" in arrays else None
    if base not in (0, 1, None):
        raise DataError(f"{arrays.name}: 'index_base' is {base}; expected 0 or 1")
    return base if isinstance(wanted, str) else wanted


def shape_of(arrays: Arrays) -> tuple[int, int]:
    shape = arrays.get("shape", INTEGERS)
    if len(shape) != 2 or shape.min() < 0:
        raise DataError(f"{arrays.name}: the shape {shape.tolist()} is not one of rows x columns")
    rows, columns = map(int, shape)
    # Row pointers are made for a matrix that is not CSR. In a CSR matrix they would be in the file
    most = max(SUSPECT, PACKED * arrays.packed) // POINTER
    if rows > most or POINTER * rows > available_memory():
        raise DataError(
            f"{arrays.name}: {rows:,} rows in a file of {arrays.packed:,} bytes do not fit into "
            "memory, or are not meant; see whether the shape is right"
        )
    return rows, columns


def matrix_of(arrays: Arrays, kind: str) -> Any:
    """The matrix as scipy has it. All is checked: scipy's conversions trust what they are given."""
    from scipy import sparse

    shape = shape_of(arrays)
    try:
        if kind == "coo":
            row, column = arrays.get("row", INTEGERS), arrays.get("col", INTEGERS)
            return sparse.coo_matrix((_values(arrays, len(row)), (row, column)), shape)
        made = sparse.csr_matrix if kind == "csr" else sparse.csc_matrix
        indices, indptr = arrays.get("indices", INTEGERS), arrays.get("indptr", INTEGERS)
        matrix = made((_values(arrays, len(indices)), indices, indptr), shape)
        matrix.check_format(full_check=True)
        return matrix
    except DataError:
        raise
    except ValueError as error:
        raise arrays.damaged(error, f"the {kind} matrix") from error


def _values(arrays: Arrays, count: int) -> npt.NDArray[Any]:
    values = arrays.get("data", NUMBERS) if "data" in arrays else np.ones(count, np.float32)
    return values.astype(np.float32) if values.dtype == np.float16 else values  # as scipy needs


def _labels(arrays: Arrays, path: Path) -> Any:
    """The labels in the file or beside it, or None."""
    keys = [key for key in LABELS if key in arrays]
    if SETS[0] in arrays and not keys:
        return _label_sets(arrays)
    if len(keys) > 1:
        raise DataError(f"{arrays.name}: has {' and '.join(keys)}; keep the one with the labels")
    if keys:
        return arrays.get(keys[0], LABEL_KINDS)
    for suffix in LABEL_FILES:
        beside = path.with_suffix(suffix)
        if beside.exists():
            try:
                array = np.load(beside, allow_pickle=False)
            except (OSError, EOFError, ValueError) as error:
                raise DataError(f"{beside}: the labels cannot be read: {error}") from error
            return checked(array, str(beside), LABEL_KINDS, 1)
    return None


def _label_sets(arrays: Arrays) -> LabelSets:
    """Several labels a row."""
    name = f"{arrays.name}: the labels"
    numbers = arrays.get(SETS[1], INTEGERS)
    starts = row_pointers(arrays.get(SETS[0], INTEGERS), len(numbers), name)
    most = int(numbers.max()) + 1 if len(numbers) else 0
    names = arrays.get(SETS[2], LABEL_KINDS) if SETS[2] in arrays else np.arange(most)
    if len(numbers) and not 0 <= int(numbers.min()) <= most - 1 < len(names):
        raise DataError(f"{name}: numbers must go from 0 to {len(names) - 1}, as there are names")
    return LabelSets(starts, numbers, names)


def write(rows: Rows, file: BinaryIO, *, index_base: int | None) -> None:
    """Writes a csr matrix that scipy reads as well, uncompressed, with `y` and `index_base`."""
    signed = rows.columns <= 2**31
    arrays = {
        "indices": rows.indices.view(np.int32) if signed else rows.indices.astype(np.int64),
        "indptr": rows.indptr.view(np.int64),
        "format": np.array(b"csr"),
        "shape": np.array([len(rows), rows.columns]),
        "data": rows.values,
    }
    if index_base is not None:
        arrays["index_base"] = np.array(index_base)
    if isinstance(rows.y, LabelSets):
        arrays |= dict(zip(SETS, (rows.y.starts, rows.y.numbers, rows.y.names), strict=True))
    elif rows.y is not None:
        if rows.y.dtype.kind not in LABEL_KINDS:
            raise DataError(
                f"{rows.name}: labels of the type {rows.y.dtype} cannot be saved; "
                "make them numbers or text (astype(str))"
            )
        arrays["y"] = rows.y
    np.savez(file, **arrays)  # type: ignore[arg-type]
