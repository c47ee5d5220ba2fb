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

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Set:
    """Rows as kernels take them, whether they have weights, and the sum of these."""

    view: RowView
    weighted: bool
    weight: float

    @classmethod
    def of(cls, rows: Rows, target: Target, factors: Doubles | None = None) -> "Set":
        """The rows with their targets; `factors` are multiplied into their weights.

        Weights are scaled to a mean of 1: a mean over the rows is then a weighted one.
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
    """The rows to learn from, and a random share of each class held out; nothing is copied."""
    learned, judged = held_out(len(rows), share, seed, strata(rows, target), rows.name)
    return rows.part(learned), rows.part(judged)


def strata(rows: Rows, target: Target) -> npt.NDArray[Any] | None:
    """The labels among which rows are to be held out evenly, where they are one of a few each."""
    return rows.y if target.labels and isinstance(rows.y, np.ndarray) else None


def class_weights(config: Config, rows: Rows, target: Target) -> Doubles | None:
    """For each row, the weight of its class, where classes have weights.

    Of several labels the mean weight counts; a row without any has the weight 1.
    """
    wanted, labels = config.class_weight, target.labels
    if wanted is None:
        return None
    sets = rows.y if isinstance(rows.y, LabelSets) else None
    numbers = (
        rows.classes(labels).astype(np.intp) if sets is None else sets.numbered(labels, rows.name)
    )
    if wanted == "balanced":
        weights = np.ones(len(rows)) if rows.sample_weight is None else rows.sample_weight
        sizes = np.bincount(numbers, weights if sets is None else weights[sets.rows], len(labels))
        total, unused = sizes.sum(), np.zeros(len(sizes))
        of_label: Doubles = np.divide(total, len(sizes) * sizes, out=unused, where=sizes > 0)
    else:
        given = _given(wanted, labels)
        of_label = np.array([given.get(label, 1.0) for label in labels])
    if sets is None:
        return np.take(of_label, numbers)
    counts = np.bincount(sets.rows, minlength=len(rows))
    sums = np.bincount(sets.rows, of_label[numbers], len(rows))
    return np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)


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
