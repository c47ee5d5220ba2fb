"""Labelled sparse rows: what linear models learn from."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.computed import cached_property
from hogwild.data.given_arrays import (
    NUMBERS,
    as_float32,
    as_frozen,
    as_indices,
    checked,
    row_pointers,
    through_scipy,
)
from hogwild.data.labels import LabelSets, unknown_label
from hogwild.errors import DataError
from hogwild.kernels.rows import gather_rows
from hogwild.threads import in_shares

PAGE = 1024  # 4-byte numbers, in the smallest pages of memory
MOST_COLUMNS = 2**32
MOST_ROWS = 2**32
LOOKED_AT = 4096  # values, to see of what size they are

Labels = tuple[Any, ...]
CSR = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.float32]]
CSRParts = tuple[npt.NDArray[np.uint64], *CSR]  # where rows begin, and where they end


def some_places(size: int, most: int = LOOKED_AT) -> npt.NDArray[np.int64]:
    """`most` random places below `size`, the same ones each time."""
    return np.random.default_rng(0).integers(0, size, most)


class Rows:
    """Sparse rows with a label each, in compressed sparse row (CSR) form.

    ``Rows(X, y)`` takes a scipy sparse matrix (or a dense array) and one label per row. Float32
    values and 32-bit indices are used without a copy; other types are converted. The labels may be
    values of any kind; of two, the smaller one is the negative class. A row may have several
    labels, or none: ``y`` is then a matrix of 0 and 1, or a list of lists or sets. It may be left
    out for data to predict. A row of weight k counts like k copies of it, one of weight 0 like
    none.

    Attributes:
        indptr, indices, values: the CSR arrays (uint64, uint32, float32), not writeable.
        begins, ends: where each row begins and ends among them; of a `part`, all that there is.
        columns: how many columns there are.
        y: the labels as they were given, or None; `LabelSets` where a row may have several.
        sample_weight: the rows' weights (float32), or None where all are 1.
        index_base: 0 or 1: the number that text gave to the first column; None where the data has
            not been text, and the columns simply lie in their places.
        feature_names: the names of a data frame's columns, or None.
        features: how the rows were made from text or a table (`hogwild.Features`), or None.
        notes: notes for the user about how the rows were read.
        name: where the rows come from, for messages.
    """

    name: str
    index_base: int | None
    columns: int
    _indptr: npt.NDArray[np.uint64] | None
    begins: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint64]
    indices: npt.NDArray[np.uint32]
    values: npt.NDArray[np.float32]
    y: Any
    sample_weight: npt.NDArray[np.float32] | None
    feature_names: list[str] | None = None
    features: Any = None
    notes: tuple[str, ...] = ()

    def __init__(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, name: str = "the data"
    ) -> None:
        names = _names_of(X)
        if getattr(X, "format", None) != "csr" or X.ndim != 2 or X.dtype.kind not in NUMBERS:
            X = _to_csr(X, name)
        made = Rows.from_arrays(X.indptr, X.indices, X.data, int(X.shape[1]), y, name=name)
        self.__dict__ = made.__dict__
        self.feature_names = names
        if len(self) != X.shape[0]:
            raise DataError(f"{name}: a matrix of {X.shape[0]} rows has {len(self)} row pointers")
        self.sample_weight = checked_weights(sample_weight, len(self), name)

    @classmethod
    def from_arrays(
        cls,
        indptr: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        values: npt.NDArray[Any],
        columns: int,
        y: Any = None,
        *,
        index_base: int | None = None,
        name: str = "the data",
    ) -> "Rows":
        """Makes rows from CSR arrays, checked as in the constructor."""
        rows = cls.__new__(cls)
        rows.name = name
        rows.index_base = index_base
        rows.columns = columns
        if columns > MOST_COLUMNS:
            raise DataError(f"{name}: {columns} columns; at most 2^32 can be held")
        if len(indices) != len(values):
            raise DataError(
                f"{name}: damaged CSR arrays: there must be as many indices ({len(indices)}) as "
                f"values ({len(values)})"
            )
        pointers = row_pointers(indptr, len(indices), name)
        rows._indptr, rows.begins, rows.ends = pointers, pointers[:-1], pointers[1:]
        if len(rows) > MOST_ROWS:
            raise DataError(f"{name}: {len(rows)} rows; at most 2^32 can be held")

        def row_of(at: int) -> int:
            return int(np.searchsorted(pointers, np.uint64(at), side="right"))

        def outside(index: int, at: int) -> DataError:
            where = f"column {index} in row {row_of(at)}"
            return DataError(f"{name}: {where}; columns go from 0 to {columns - 1}")

        rows.indices = as_indices(indices, columns, f"{name}: 'indices'", outside)
        values = checked(values, f"{name}: 'data'", NUMBERS)
        rows.values, bad, reason = as_float32(values)
        if bad < len(values):
            raise DataError(
                f"{name}: the value {values[bad]} in row {row_of(bad)}, "
                f"column {int(rows.indices[bad])}, is {reason or 'NaN or infinite'} (rows are "
                "counted from 1, columns from 0)"
            )
        rows.y = None if y is None else label_array(y, len(rows), name)
        rows.sample_weight = None
        return rows

    def __len__(self) -> int:
        return len(self.begins)

    def __repr__(self) -> str:
        return f"<Rows {len(self):,} x {self.columns:,}, {self.nonzeros:,} non-zeros>"

    @property
    def nonzeros(self) -> int:
        """How many values are stored."""
        return int((self.ends - self.begins).sum()) if self.is_part else len(self.indices)

    @property
    def is_part(self) -> bool:
        """Whether these are some rows of another object, and share its arrays."""
        return self._indptr is None

    @property
    def indptr(self) -> npt.NDArray[np.uint64]:
        """The row pointers."""
        if self._indptr is None:
            raise DataError(
                f"{self.name}: a part of rows has no row pointers; take(slice(None)) copies the "
                "part into rows of their own"
            )
        return self._indptr

    @property
    def nbytes(self) -> int:
        """Bytes of the rows themselves, or of a copy of a part: pointers, indices and values."""
        return 8 * (len(self) + 1) + 8 * self.nonzeros

    @cached_property
    def labels(self) -> Labels:
        """The different labels in order, of two the negative one first; one alone is an error."""
        if self.y is None:
            raise DataError(f"{self.name} has no labels; training needs one for every row")
        if isinstance(self.y, LabelSets):
            return tuple(self.y.names.tolist())
        found = different(self.y, self.name)
        if len(found) < 2:
            what = f"the label is {found[0]} in every row" if len(found) else "there are no rows"
            raise DataError(f"{self.name}: {what}; training needs rows of two classes")
        return checked_labels(found)

    def targets(self, labels: Labels | None = None) -> npt.NDArray[np.float32]:
        """The labels as float32 -1 and +1, by this data's own two labels or by a model's."""
        negative, positive = self.labels if labels is None else labels
        y = self._single_labels()
        is_positive = y == positive
        unknown = ~(is_positive | (y == negative))
        if np.any(unknown):
            row = int(np.argmax(unknown))
            raise unknown_label(self.name, row, y[row], (negative, positive))
        return np.where(is_positive, np.float32(1), np.float32(-1))

    def classes(self, labels: Labels) -> npt.NDArray[np.float32]:
        """For each row, the number of its label among these."""
        y = self._single_labels()
        names = np.array(labels)
        order = np.argsort(names)
        try:
            places = np.minimum(np.searchsorted(names[order], y), len(names) - 1)
            unknown = names[order][places] != y
        except TypeError:  # numbers beside text
            places, unknown = np.zeros(len(y), np.intp), np.ones(len(y), bool)
        if np.any(unknown):
            row = int(np.argmax(unknown))
            raise unknown_label(self.name, row, y[row], labels)
        return order[places].astype(np.float32)

    def _single_labels(self) -> npt.NDArray[Any]:
        if self.y is None:
            raise DataError(f"{self.name} has no labels")
        if isinstance(self.y, LabelSets):
            raise DataError(
                f"{self.name} has several labels in a row, and the model knows one for each: train "
                "it on such rows, or give one label a row"
            )
        return np.asarray(self.y)

    def numbers(self, center: float = 0.0) -> npt.NDArray[np.float32]:
        """The labels as numbers less a center, for regression."""
        if self.y is None:
            raise DataError(f"{self.name} has no targets; regression needs a number for every row")
        y = self._single_labels()
        if y.dtype.kind not in "fiub":
            raise DataError(
                f"{self.name}: the target of row 1 is {str(y[0])[:40]!r}; regression needs numbers"
            )
        numbers, bad, _ = as_float32(y if center == 0.0 else y - np.float64(center))
        if bad < len(y):
            raise DataError(
                f"{self.name}: the target {y[bad]} of row {bad + 1} is too large for float32"
            )
        return numbers.copy()  # not a view of the caller's array

    def weighted(self, sample_weight: Any) -> "Rows":
        """The same rows, with these weights; the arrays are shared."""
        return self._with(sample_weight=checked_weights(sample_weight, len(self), self.name))

    def labelled(self, y: Any) -> "Rows":
        """The same rows, with these labels; the arrays are shared."""
        return self._with(y=None if y is None else label_array(y, len(self), self.name))

    def widened(self, columns: int) -> "Rows":
        """The same rows, with at least this number of columns; the arrays are shared."""
        return self if columns <= self.columns else self._with(columns=columns)

    def part(self, numbers: npt.NDArray[Any]) -> "Rows":
        """The rows with these numbers, in this order, to learn from or to evaluate on.

        Nothing of them is copied, so there is no matrix of them: see `take`.
        """
        weights = self.sample_weight
        return self._with(
            _indptr=None,
            begins=as_frozen(self.begins[numbers], np.uint64),
            ends=as_frozen(self.ends[numbers], np.uint64),
            y=None if self.y is None else self.y[numbers],
            sample_weight=None if weights is None else as_frozen(weights[numbers], np.float32),
        )

    def _with(self, **changed: Any) -> "Rows":
        rows = copy(self)
        rows.__dict__.pop("labels", None)  # of the old ones, where they were asked for
        rows.__dict__.update(changed)
        return rows

    def some_values(self, most: int = LOOKED_AT) -> npt.NDArray[np.float32]:
        """Values at `most` random places, the same ones each time; all if there are fewer."""
        if self.nonzeros <= most:
            every = np.arange(len(self), dtype=np.uint64)
            return self.gather(every)[2] if self.is_part else self.values
        places = some_places(self.nonzeros, most)
        if self.is_part:
            ends = np.cumsum((self.ends - self.begins).astype(np.int64))
            rows = np.searchsorted(ends, places, side="right")
            places += self.ends[rows].astype(np.int64) - ends[rows]
        return self.values[places]

    def at_hand(self) -> Iterator[tuple[slice, CSRParts]]:
        """The rows, all at once or some at a time: their numbers and their arrays."""
        yield slice(0, len(self)), (self.begins, self.ends, self.indices, self.values)

    def lengths(self, numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """How many values the rows with these numbers have."""
        found: npt.NDArray[np.int64] = (self.ends[numbers] - self.begins[numbers]).astype(np.int64)
        return found

    def drawn(self, picker: np.random.Generator, count: int) -> npt.NDArray[Any]:
        """The numbers of so many random rows, each at most once."""
        return picker.choice(len(self), count, replace=False)

    def take(self, chosen: npt.NDArray[Any]) -> "Rows":
        """A copy of the rows with these numbers, in this order."""
        numbers = np.arange(len(self), dtype=np.uint64)[chosen]  # as numpy would take them
        y = None if self.y is None else self.y[chosen]
        weights = None if self.sample_weight is None else self.sample_weight[chosen]
        return self._made_of(*self.gather(numbers), self.columns, y).weighted(weights)

    def _made_of(self, indptr: Any, indices: Any, values: Any, columns: int, y: Any) -> "Rows":
        base, name = self.index_base, self.name
        made = Rows.from_arrays(indptr, indices, values, columns, y, index_base=base, name=name)
        made.features = self.features
        return made

    def gather(self, numbers: npt.NDArray[np.uint64], threads: int = 1) -> CSR:
        """The CSR arrays of the rows with these numbers, in this order: copies."""
        indptr = np.zeros(len(numbers) + 1, np.uint64)
        np.cumsum(self.lengths(numbers), out=indptr[1:])
        indices = np.empty(int(indptr[-1]), np.uint32)
        values = np.empty(int(indptr[-1]), np.float32)
        for array in (indices, values):  # new pages: ten times as fast before there are threads
            array[::PAGE] = 0

        def copy(begin: int, end: int) -> None:
            chosen = numbers[begin:end], indptr[begin:end]
            rows = self.begins, self.ends, self.indices, self.values
            gather_rows(*rows, *chosen, indices, values)

        in_shares(copy, len(numbers), threads)
        return indptr, indices, values

    def renumbered(self, indices: npt.NDArray[np.uint32], columns: int) -> "Rows":
        """The same rows and values with other columns; the arrays are shared."""
        return self._with(indices=indices, columns=columns)

    def holding(self, csr: CSR, columns: int) -> "Rows":
        """The same rows with other values."""
        indptr, indices, values = csr
        for array in csr:
            array.flags.writeable = False
        begins, ends = indptr[:-1], indptr[1:]
        arrays = {"begins": begins, "ends": ends, "indices": indices, "values": values}
        return self._with(_indptr=indptr, columns=columns, **arrays)

    def narrowed(self, columns: int) -> "Rows":
        """A copy without the values in columns from this one on."""
        known = self.indices < columns
        kept = np.concatenate([[0], np.cumsum(known)])[self.indptr.astype(np.int64)]
        arrays = kept, self.indices[known], self.values[known]
        return self._made_of(*arrays, columns, self.y).weighted(self.sample_weight)

    def to_scipy(self) -> Any:
        """The rows as a scipy CSR matrix (values shared, indices copied to signed ones)."""
        from scipy.sparse import csr_matrix

        width = np.int64 if max(self.nonzeros, self.columns) >= 2**31 else np.int32
        shape = (len(self), self.columns)
        arrays = (self.values, self.indices.astype(width), self.indptr.astype(width))
        return csr_matrix(arrays, shape=shape)


def joined(parts: Sequence[Rows], name: str) -> Rows:
    """The rows of several files as one data set; their kinds must agree."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for other in parts[1:]:
        check_same_base(other, first.index_base, first.name)
        check_same_features(other, first.features, first.name)
        if _kind_of_labels(other) != _kind_of_labels(first):
            raise DataError(
                f"{other.name} has {_kind_of_labels(other)}, and {first.name} has "
                f"{_kind_of_labels(first)}; files of one data set must agree"
            )
    lengths = np.concatenate([part.ends - part.begins for part in parts])
    indptr = np.concatenate([[np.uint64(0)], np.cumsum(lengths, dtype=np.uint64)])
    indices = np.concatenate([part.indices for part in parts])
    values = np.concatenate([part.values for part in parts])
    bases = [part.index_base for part in parts if part.index_base is not None]
    columns = max(part.columns for part in parts)
    y: Any = None
    if isinstance(first.y, LabelSets):
        y = LabelSets.joined([part.y for part in parts])
    elif first.y is not None:
        y = np.concatenate([part.y for part in parts])
    base = bases[0] if bases else None
    made = Rows.from_arrays(indptr, indices, values, columns, y, index_base=base, name=name)
    made.features = first.features
    return made


def _kind_of_labels(rows: Rows) -> str:
    if rows.y is None:
        return "no labels"
    several = isinstance(rows.y, LabelSets)
    kind = (rows.y.names if several else rows.y).dtype.kind
    what = "numbers" if kind in NUMBERS else "text"
    return f"sets of labels that are {what}" if several else f"labels that are {what}"


def check_same_base(rows: Rows, base: int | None, other: str) -> None:
    """Refuses rows from text whose columns are numbered in another way than those of `other`."""
    if None not in (rows.index_base, base) and rows.index_base != base:
        raise DataError(
            f"{rows.name} was read with columns from {rows.index_base} on, and {other} with "
            f"columns from {base} on: load it with index_base={base}"
        )


def check_same_features(rows: Rows, features: Any, other: str) -> None:
    """Refuses rows that were made from text or tables in another way than the rows of `other`."""
    if rows.features is None and features is None:
        return
    if rows.features is None:
        raise DataError(
            f"{rows.name} does not say how its rows were made, and those of {other} are of text or "
            "a table; give the text or the table itself"
        )
    unlike = rows.features.unlike(features)
    if unlike and features is None:
        raise DataError(
            f"{rows.name} has rows made from text or a table, and those of {other} were not"
        )
    if unlike:
        raise DataError(
            f"{rows.name} was made with other settings than {other} ({', '.join(unlike)}): give "
            "the text or the table itself; in Python, model.load or features.rows make rows of it"
        )


def checked_labels(labels: Any) -> Labels:
    """Different labels that a model file can hold: numbers, text, or True and False."""
    plain = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    for label in plain:
        if not isinstance(label, bool | int | float | str):
            raise DataError(
                f"a label is {label!r}, a {type(label).__name__}; labels must be numbers or text"
            )
    if len(plain) < 2 or len(set(plain)) < len(plain):
        raise DataError(f"labels must be two or more different values, not {list(plain)}")
    return plain


def different(y: npt.NDArray[Any], name: str) -> Any:
    """The different labels, in order. Only where they are three or more all labels are sorted."""
    found: list[Any] = []
    rest = y
    while len(rest) and len(found) < 3:
        found.append(rest[0])
        rest = rest[rest != rest[0]]
    try:
        return sorted(found) if len(found) < 3 else np.unique(y)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        raise DataError(
            f"{name}: labels of several kinds ({', '.join(kinds)}): make them all numbers or text"
        ) from None


def _to_csr(X: Any, name: str) -> Any:
    from scipy import sparse

    if isinstance(X, Rows):
        raise DataError(f"{name}: hogwild.Rows have their labels already; give them alone")
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in NUMBERS:
        raise DataError(
            f"{name}: expected a scipy sparse matrix or a numeric array of two dimensions, "
            f"not {X.ndim} dimension(s) of {X.dtype}"
        )
    return through_scipy(X, name, sparse.csr_matrix)


def _names_of(X: Any) -> list[str] | None:
    """The names of the columns of a data frame, where all are text."""
    columns = getattr(X, "columns", None)
    names = list(columns) if isinstance(columns, Iterable) else []
    return names if names and all(isinstance(name, str) for name in names) else None


def checked_weights(given: Any, rows: int, name: str) -> npt.NDArray[np.float32] | None:
    """The rows' weights, checked."""
    if given is None:
        return None
    weights = np.asarray(given)
    if weights.shape != (rows,) or weights.dtype.kind not in "fiub":
        is_list = weights.ndim == 1 and weights.dtype.kind in "fiub"
        found = f"{len(weights):,}" if is_list else f"an array of {weights.shape}, {weights.dtype}"
        raise DataError(f"{name}: sample_weight: {rows:,} rows need {rows:,} numbers, not {found}")
    with np.errstate(over="ignore"):
        frozen = weights.astype(np.float32)
    sound = np.isfinite(frozen) & (frozen >= 0)
    if not np.all(sound):
        row = int(np.argmin(sound))
        raise DataError(
            f"{name}: the weight of row {row + 1} is {weights[row]}; weights must be finite and "
            "not negative"
        )
    if rows and not frozen.any():
        raise DataError(f"{name}: all sample weights are zero; give some row a weight above 0")
    frozen.flags.writeable = False
    return frozen


def label_array(y: Any, rows: int, name: str) -> Any:
    sets = LabelSets.of(y, name)
    if sets is not None:
        if len(sets) != rows:
            raise DataError(f"{name}: {rows} rows need {rows} sets of labels, not {len(sets)}")
        return sets
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) != rows:
        raise DataError(f"{name}: {rows} rows need {rows} labels, not an array of {array.shape}")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        row = int(np.argmin(np.isfinite(array)))
        raise DataError(f"{name}: the label of row {row + 1} is {array[row]}")
    return array
