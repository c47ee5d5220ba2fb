"""Several labels a row: sets of labels in compressed form, from matrices, lists or sets."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.errors import DataError

MANY = (list, tuple, set, frozenset)


class LabelSets:
    """The labels of rows: those of row i are ``names[numbers[starts[i]:starts[i + 1]]]``.

    Attributes:
        starts, numbers: as in a CSR matrix (uint64 and uint32).
        names: all labels, each once.
    """

    def __init__(self, starts: Any, numbers: Any, names: Any) -> None:
        self.starts = np.asarray(starts, np.uint64)
        self.numbers = np.asarray(numbers, np.uint32)
        self.names = np.asarray(names)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, chosen: Any) -> "LabelSets":
        """The label sets of some rows, chosen as in a numpy array."""
        rows = np.arange(len(self))[chosen]
        before = self.starts.astype(np.int64)
        sizes = np.diff(before)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        moved = np.repeat(before[rows] - starts[:-1], sizes)
        return LabelSets(starts, self.numbers[np.arange(int(starts[-1])) + moved], self.names)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """For each of `numbers`, its row."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts).astype(np.int64))

    def counts(self) -> npt.NDArray[np.int64]:
        """How many rows have each label."""
        return np.bincount(self.numbers, minlength=len(self.names))

    def numbered(self, names: tuple[Any, ...], name: str) -> npt.NDArray[np.int64]:
        """`numbers`, where labels are numbered as in `names`; others are refused."""
        places = {label: place for place, label in enumerate(names)}
        number_of = np.array([places.get(label, -1) for label in self.names.tolist()], np.int64)
        found = number_of[self.numbers] if len(number_of) else self.numbers.astype(np.int64)
        if len(found) and found.min() < 0:
            at = int(np.argmin(found))
            raise unknown_label(name, int(self.rows[at]), self.names[self.numbers[at]], names)
        return found

    @classmethod
    def joined(cls, parts: "list[LabelSets]") -> "LabelSets":
        """The sets of all parts, one after the other."""
        names = np.unique(np.concatenate([part.names for part in parts]))
        numbers = [np.searchsorted(names, part.names)[part.numbers] for part in parts]
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return cls(starts, np.concatenate(numbers), names)

    @classmethod
    def of(cls, y: Any, name: str) -> "LabelSets | None":
        """The label sets that `y` is, if it is any: a matrix of 0 and 1, or a list of lists."""
        if isinstance(y, LabelSets):
            return y
        if hasattr(y, "tocsr"):
            return _of_matrix(y, name)
        if isinstance(y, np.ndarray) and y.dtype != object:
            return _of_matrix(y, name) if y.ndim == 2 and y.shape[1] > 1 else None
        given = list(y) if isinstance(y, (*MANY[:2], np.ndarray)) else []
        if not given or not all(isinstance(labels, MANY) for labels in given):
            return None
        return _of_lists(given, name)


def as_written(label: Any) -> Any:
    """A label as written in text: 1 for the number 1.0."""
    whole = isinstance(label, float) and label.is_integer() and abs(label) < 2**53
    return int(label) if whole else label


def unknown_label(name: str, row: int, label: Any, known: tuple[Any, ...]) -> DataError:
    """The error for a label that a model does not know."""
    shown = ", ".join(str(label) for label in known[:5]) + (", ..." if len(known) > 5 else "")
    return DataError(f"{name}: row {row + 1} has the label {label}; the model knows {shown}")


def _of_matrix(y: Any, name: str) -> LabelSets:
    from scipy import sparse

    matrix = sparse.csr_matrix(y)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not np.all(matrix.data == 1):
        wrong = matrix.data[np.argmax(matrix.data != 1)]
        raise DataError(
            f"{name}: a matrix of labels has 1 where a row has a label, and else 0, not {wrong}"
        )
    return LabelSets(matrix.indptr, matrix.indices, np.arange(matrix.shape[1]))


def _of_lists(given: list[Iterable[Any]], name: str) -> LabelSets:
    sets = [sorted(set(labels), key=str) for labels in given]
    flat = [label for labels in sets for label in labels]
    kinds = {isinstance(label, str) for label in flat}
    if len(kinds) > 1:
        raise DataError(f"{name}: labels of two kinds, numbers and text: make them all one kind")
    names, numbers = np.unique(np.array(flat), return_inverse=True)
    return LabelSets(np.cumsum([0, *map(len, sets)]), numbers, names)
