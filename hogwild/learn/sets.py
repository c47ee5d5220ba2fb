"""Sets of rows to learn from or to evaluate on, with their targets and weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.folds import held_out
from hogwild.data.labels import LabelSets
from hogwild.data.rows import Rows
from hogwild.errors import DataError, OptionError
from hogwild.kernels.views import RowView, view
from hogwild.learn.targets import Target


@dataclass(frozen=True)
class Set:
    """Rows as kernels take them, whether they have weights, and the sum of the weights."""

    view: RowView
    weighted: bool
    weight: float

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
        arrays = rows.begins, rows.ends, rows.indices, rows.values, targets
        return cls(view(RowView, *arrays), weighted, float(len(rows)))

    def __len__(self) -> int:
        return len(self.view.begins)


def hold_out(rows: Rows, target: Target, share: float, seed: int) -> tuple[Rows, Rows]:
    """The rows to learn from, and a random share of each class to hold out; no copies."""
    learned, judged = held_out(len(rows), share, seed, strata(rows, target), rows.name)
    return rows.part(learned), rows.part(judged)


def strata(rows: Rows, target: Target) -> npt.NDArray[Any] | None:
    """The labels to stratify by, where each row has one of a few."""
    return rows.y if target.labels and isinstance(rows.y, np.ndarray) else None


def class_weights(config: Config, rows: Rows, target: Target) -> npt.NDArray[np.float64] | None:
    """For each row, the weight of its class, where classes have weights."""
    wanted = config.class_weight
    if wanted is None:
        return None
    assert rows.y is not None
    if isinstance(rows.y, LabelSets):
        return _label_weights(wanted, rows, rows.y, target)
    if wanted == "balanced":
        sizes = _sizes(rows, target)
        by_label = {
            label: sizes.sum() / (len(sizes) * size) if size else 0.0
            for label, size in zip(target.labels, sizes, strict=True)
        }
    else:
        by_label = _given(wanted, target.labels)
    factors = np.ones(len(rows))
    for label, factor in by_label.items():
        factors[rows.y == label] = factor
    return factors


def _label_weights(
    wanted: Any, rows: Rows, sets: LabelSets, target: Target
) -> npt.NDArray[np.float64]:
    """For each row, the mean weight of its labels; 1 where it has none."""
    numbers = sets.numbered(target.labels, rows.name)
    if wanted == "balanced":
        weights = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
        sizes = np.bincount(numbers, weights[sets.rows], len(target.labels))
        of_label = sizes.sum() / (len(sizes) * np.maximum(sizes, np.finfo(float).tiny))
    else:
        given = _given(wanted, target.labels)
        of_label = np.array([given.get(label, 1.0) for label in target.labels])
    counts = np.bincount(sets.rows, minlength=len(rows))
    sums = np.bincount(sets.rows, of_label[numbers], len(rows))
    return np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)


def _sizes(rows: Rows, target: Target) -> npt.NDArray[np.float64]:
    """The sum of the weights of each class."""
    weights = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
    return np.array([weights[rows.y == label].sum(dtype=np.float64) for label in target.labels])


def _given(wanted: Any, labels: tuple[Any, ...]) -> dict[Any, float]:
    """Weights by label, from a dict or from text such as 1:10,-1:1."""
    if isinstance(wanted, str):
        by_text = {str(_short(label)): label for label in labels}
        pairs = [pair.rpartition(":") for pair in wanted.split(",")]
        wanted = {by_text.get(label.strip(), label): weight for label, _, weight in pairs}
    found = {}
    for label, weight in wanted.items():
        try:
            number = float(weight)
        except (TypeError, ValueError):
            number = float("nan")
        if label not in labels or not 0 <= number < float("inf"):
            able = ", ".join(f"{_short(known)}:1" for known in labels)
            raise OptionError(
                f"class_weight: {label}:{weight} is not a label with a weight of 0 or more; "
                f"write balanced, or such as {able}"
            )
        found[label] = number
    if not any(found.get(label, 1.0) for label in labels):
        raise OptionError("class_weight: the weights of all classes are 0; some class must count")
    return found


def _short(label: Any) -> Any:
    whole = isinstance(label, float) and label.is_integer() and abs(label) < 2**53
    return int(label) if whole else label
