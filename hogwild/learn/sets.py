"""Sets of rows to learn from or to evaluate on, with their targets and weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.folds import held_out
from hogwild.data.labels import LabelSets, as_written
from hogwild.data.mapped_rows import MappedRows
from hogwild.data.rows import Rows
from hogwild.errors import DataError, OptionError
from hogwild.fingerprints import digest_of
from hogwild.kernels.views import RowView, Span, view
from hogwild.learn.row_sizes import LOOKED_AT, some_squares, typical
from hogwild.learn.targets import Target

CHUNK_NONZEROS = 4_000_000  # some milliseconds of work


@dataclass(frozen=True)
class Set:
    """Rows as kernels take them, whether they have weights, and the sum of the weights.

    If rows are `mapped` (they stay in their file), all rows of the view are empty: see `pieces`.
    """

    view: RowView
    weighted: bool
    weight: float
    mapped: MappedRows | None = None

    @classmethod
    def of(
        cls, rows: Rows, target: Target, factors: npt.NDArray[np.float64] | None = None
    ) -> "Set":
        """The rows with their targets; their weights are multiplied by `factors`.

        Weights are scaled to a mean of 1: a weighted sum over the number of rows is a mean.
        """
        targets = target.of(rows)
        given = rows.sample_weight
        weighted = given is not None or factors is not None
        if weighted:
            weights = np.ones(len(rows)) if given is None else given.astype(np.float64)
            if factors is not None:
                weights *= factors
            if not weights.any():
                raise DataError(
                    f"{rows.name}: all rows have the weight 0; give some class or row a weight"
                )
            weights *= len(rows) / weights.sum()
            targets = np.column_stack([targets, weights.astype(np.float32)]).ravel()
        targets = np.ascontiguousarray(targets).reshape(-1)
        mapped = rows.bare() if isinstance(rows, MappedRows) else None
        if mapped is not None:
            nowhere = np.zeros(len(rows), np.uint64)  # pages that nobody writes to
            arrays: Any = nowhere, nowhere, np.zeros(1, np.uint32), np.zeros(1, np.float32)
        else:
            arrays = rows.begins, rows.ends, rows.indices, rows.values
        return cls(view(RowView, *arrays, targets), weighted, float(len(rows)), mapped)

    def __len__(self) -> int:
        return len(self.view.begins)

    def fingerprint(self) -> str:
        """A digest of the rows, their targets and their weights."""
        if self.mapped is None:
            return digest_of(self.view)
        return digest_of([self.mapped.file.index.checks, self.view.targets])

    @property
    def nonzeros(self) -> int:
        """Of all rows."""
        if self.mapped is not None:
            return self.mapped.nonzeros
        return int((self.view.ends - self.view.begins).sum())

    @property
    def chunk(self) -> int:
        """Rows that take some milliseconds to visit."""
        return max(1, int(CHUNK_NONZEROS * len(self) / max(len(self), self.nonzeros)))

    def pieces(self, span: Span) -> Iterator[tuple[RowView, Span]]:
        """Views of some rows, each with the rows that it covers: all, or a few at a time."""
        if self.mapped is None:
            yield self.view, span
            return
        for first, last, piece in self.mapped.pieces(int(span.begin), int(span.end)):
            yield view(RowView, *piece, self.view.targets), view(Span, first, last)

    @property
    def some_values(self) -> npt.NDArray[np.float32]:
        """Values: all if they are in memory, or some of those that stay in their file."""
        return self.view.values if self.mapped is None else self.mapped.some_values()

    def typical_square(self) -> float:
        """The squared length of a typical row."""
        if self.mapped is None:
            return typical(some_squares(self.view))
        numbers = self.mapped.drawn(np.random.default_rng(0), min(len(self), LOOKED_AT))
        indptr, _, values = self.mapped.gather(numbers.astype(np.uint64))
        lengths = (indptr[1:] - indptr[:-1]).astype(np.int64)
        rows = np.repeat(np.arange(len(numbers)), lengths)
        squares = np.bincount(rows, values.astype(np.float64) ** 2, len(numbers))
        return typical(squares.astype(np.float64))

    def errors(self, scores_of: Callable[[RowView], npt.NDArray[Any]], span: Span) -> float:
        """The weight of some rows of two classes that scores put on the wrong side."""
        found = 0.0
        for rows, part in self.pieces(span):
            mine = slice(int(part.begin), int(part.end))
            targets = rows.targets.reshape(len(self), -1)[mine]
            some = rows._replace(begins=rows.begins[mine], ends=rows.ends[mine])
            wrong = (scores_of(some) > 0) != (targets[:, 0] > 0)
            found += float(
                np.sum(targets[wrong, 1], dtype=np.float64) if self.weighted else wrong.sum()
            )
        return found


def hold_out(rows: Rows, target: Target, share: float, seed: int) -> tuple[Rows, Rows]:
    """The rows to learn from, and a random share of each class to hold out; no copies."""
    learned, judged = held_out(len(rows), share, seed, strata(rows, target), rows.name)
    return rows.part(learned), rows.part(judged)


def strata(rows: Rows, target: Target) -> npt.NDArray[Any] | None:
    """The labels to stratify by, where each row has one of a few."""
    return rows.y if target.labels and isinstance(rows.y, np.ndarray) else None


def class_weights(config: Config, rows: Rows, target: Target) -> npt.NDArray[np.float64] | None:
    """The weight of each label of the target, where classes have weights."""
    wanted = config.class_weight
    if wanted is None:
        return None
    if wanted != "balanced":
        given = _given(wanted, target.labels)
        return np.array([given.get(label, 1.0) for label in target.labels])
    weights = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
    if isinstance(rows.y, LabelSets):
        numbers = rows.y.numbered(target.labels, rows.name)
        sizes = np.bincount(numbers, weights[rows.y.rows], len(target.labels))
    else:
        sizes = np.array([weights[rows.y == k].sum(dtype=np.float64) for k in target.labels])
    balanced = sizes.sum() / (len(sizes) * np.maximum(sizes, np.finfo(float).tiny))
    return np.where(sizes > 0, balanced, 0.0)


def row_weights(by_label: Any, rows: Rows, target: Target) -> npt.NDArray[np.float64] | None:
    """For each row the weight of its label, or the mean of its labels; 1 where it has none."""
    if by_label is None:
        return None
    factors = np.ones(len(rows))
    if isinstance(rows.y, LabelSets):
        numbers = rows.y.numbered(target.labels, rows.name)
        counts = np.bincount(rows.y.rows, minlength=len(rows))
        sums = np.bincount(rows.y.rows, np.asarray(by_label)[numbers], len(rows))
        return np.divide(sums, counts, out=factors, where=counts > 0)
    for label, weight in zip(target.labels, by_label, strict=True):
        factors[rows.y == label] = weight
    return factors


def _given(wanted: Any, labels: tuple[Any, ...]) -> dict[Any, float]:
    """Weights by label, from a dict or from text such as 1:10,-1:1."""
    if isinstance(wanted, str):
        by_text = {str(as_written(label)): label for label in labels}
        pairs = [pair.rpartition(":") for pair in wanted.split(",")]
        wanted = {by_text.get(label.strip(), label): weight for label, _, weight in pairs}
    found = {}
    for label, weight in wanted.items():
        try:
            number = float(weight)
        except (TypeError, ValueError):
            number = float("nan")
        if label not in labels or not 0 <= number < float("inf"):
            able = ", ".join(f"{as_written(known)}:1" for known in labels)
            what = f"{label}:{weight}".removeprefix(":")
            raise OptionError(
                f"class_weight: {what} is not a label of the data with a weight of 0 or more; "
                f"write balanced, or such as {able}"
            )
        found[label] = number
    if not any(found.get(label, 1.0) for label in labels):
        raise OptionError("class_weight: the weights of all classes are 0; some class must count")
    return found
