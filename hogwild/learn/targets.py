"""Kinds of targets: how labels become numbers, and scores become predictions."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.data.labels import LabelSets
from hogwild.data.rows import Labels, Rows, checked_labels
from hogwild.errors import DataError
from hogwild.kernels.targets import WORD
from hogwild.learn.heads_metrics import CLASSES_METRICS, LABELS_METRICS
from hogwild.learn.losses import CLASSES, COUNTS, LABELS, LOSSES, NUMBERS, SIGNS
from hogwild.learn.metrics import CLASS_METRICS, NUMBER_METRICS, Metric, expected
from hogwild.learn.problem import Shown
from hogwild.learn.row_sizes import median_and_deviation

Floats = npt.NDArray[np.float64]

# Targets get a center if their median is more than this times their deviation. From 1000 on, sgd
# ends before its intercept has arrived; and single precision has 7 digits
FAR = 100.0


class Target(ABC):
    """A kind of target.

    Attributes:
        kind: its name in model files, losses and kernels.
        heads: the number of scores of a row.
        able: the least and the largest number of labels.
        labels: the possible targets of a row, where they are classes or labels.
        summary: its part of the summary of the data.
        shown: the numbers that are shown after every epoch, without the data's name.
        metrics: functions of scores, targets, sample weights and the loss.
        center: a number that is subtracted from all targets; add it to the intercept.
    """

    kind: str
    heads = 1
    able: tuple[int, float] = 0, 0
    labels: tuple[Any, ...] = ()
    summary = ""
    shown: tuple[Shown, ...]
    metrics: dict[str, Metric]
    center = 0.0

    def centered(self, rows: Rows) -> "Target":
        """The same kind, with a center if the targets of these rows need one."""
        return self

    def with_center(self, center: float) -> "Target":
        """The same kind with this center, if it can have one."""
        return self

    @abstractmethod
    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The targets of rows, as kernels take them."""

    def known(self, rows: Rows) -> npt.NDArray[Any]:
        """What metrics take as targets."""
        return self.of(rows).astype(np.float64)

    def measured(self, *errors: float) -> dict[str, float]:
        """The numbers to show, given the means of the two errors that kernels sum up."""
        return {shown.key: error for shown, error in zip(self.shown, errors, strict=False)}

    @abstractmethod
    def predicted(self, scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
        """The predictions for scores, as labels or numbers."""

    def about(self) -> dict[str, Any]:
        """Its part of a model file."""
        labels = {"labels": list(self.labels)} if self.labels else {}
        return {"target": self.kind} | labels


class TwoClasses(Target):
    """One of two labels: -1 for the first, 1 for the second."""

    kind = SIGNS
    able = 2, 2
    shown = (Shown("error", "err", "percent"),)
    metrics = CLASS_METRICS

    def __init__(self, labels: Labels) -> None:
        self.labels = checked_labels(labels)

    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """-1 or 1; other labels are refused."""
        return rows.targets(self.labels)

    def predicted(self, scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
        """The second label where a score is positive, else the first."""
        return np.asarray(self.labels)[(scores > 0).astype(np.intp)]


class Classes(Target):
    """One of several labels; the target is its number."""

    kind = CLASSES
    able = 2, math.inf
    shown: tuple[Shown, ...] = (Shown("error", "err", "percent"),)
    metrics = CLASSES_METRICS

    def __init__(self, labels: Labels) -> None:
        self.labels = checked_labels(labels)
        self.heads = len(self.labels)
        self.summary = f"{self.heads:,} classes, "

    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The numbers of the labels; others are refused."""
        return rows.classes(self.labels)

    def known(self, rows: Rows) -> npt.NDArray[Any]:
        """What metrics take as targets: the numbers of the labels."""
        return self.of(rows).astype(np.intp)

    def predicted(self, scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
        """The label with the highest score."""
        return np.asarray(np.asarray(self.labels)[scores.argmax(axis=1)])


class SeveralLabels(Classes):
    """Any number of labels per row; the target has a bit for each."""

    kind = LABELS
    able = 1, math.inf
    shown = (Shown("hamming_loss", "Hamming", "percent"), Shown("subset", "any err", "percent"))
    metrics = LABELS_METRICS

    def __init__(self, labels: Labels) -> None:
        self.labels = tuple(labels)
        self.heads = len(self.labels)
        self.summary = f"{self.heads:,} labels, "
        if not self.labels:
            raise DataError("no row has a label; training needs at least one")

    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """Bitmaps of the labels, 32 to a number; other labels are refused."""
        words = -(-self.heads // int(WORD))
        numbers = _sets(rows).numbered(self.labels, rows.name)
        bitmaps = np.zeros(len(rows) * words, np.uint32)
        place = _sets(rows).rows * words + numbers // int(WORD)
        np.bitwise_or.at(bitmaps, place, np.uint32(1) << (numbers % int(WORD)).astype(np.uint32))
        return bitmaps.view(np.float32).reshape(-1, words)

    def known(self, rows: Rows) -> npt.NDArray[Any]:
        """What metrics take as targets: whether each row has each label."""
        found = np.zeros((len(rows), self.heads), bool)
        found[_sets(rows).rows, _sets(rows).numbered(self.labels, rows.name)] = True
        return found

    def predicted(self, scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
        """A matrix with 1 where a score is positive: the row has the label of that column."""
        return (scores > 0).astype(np.int8)


class Numbers(Target):
    """A number that the score approximates."""

    kind = NUMBERS
    shown = (Shown("rmse", "RMSE", ".4g"),)
    metrics = NUMBER_METRICS

    def __init__(self, center: float = 0.0) -> None:
        self.center = center

    def centered(self, rows: Rows) -> "Numbers":
        """Numbers with a center near their median, if it is far from 0.

        Without one, they lose digits in single precision, and are slow to learn. The center is a
        multiple of a power of 2, so that subtracting it is exact.
        """
        numbers = np.asarray(rows.y)
        if numbers.dtype.kind not in "fiu":
            return self  # refused by `of`
        counted = slice(None) if rows.sample_weight is None else rows.sample_weight > 0.0
        median, deviation = median_and_deviation(numbers[counted])
        if not (math.isfinite(deviation) and 0.0 < FAR * deviation < abs(median)):
            return self
        power_of_2 = 2.0 ** math.floor(math.log2(deviation))
        return self.with_center(power_of_2 * round(median / power_of_2))

    def with_center(self, center: float) -> "Numbers":
        """Numbers with this center."""
        return type(self)(center)

    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The labels themselves, less the center."""
        return rows.numbers(self.center)

    def measured(self, *errors: float) -> dict[str, float]:
        """The root of the mean squared error."""
        return {"rmse": float(np.sqrt(errors[0]))}

    def predicted(self, scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
        """The expected value."""
        return expected(scores, loss)


class Counts(Numbers):
    """A number that is not negative, such as a count."""

    kind = COUNTS

    def with_center(self, center: float) -> "Counts":
        """The same: scores are logarithms of expected counts, so no count can be subtracted."""
        return self

    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The labels themselves; negative ones are refused."""
        numbers = super().of(rows)
        if np.any(numbers < 0):
            row = int(np.argmax(numbers < 0))
            raise DataError(
                f"{rows.name}: row {row + 1} has the target {numbers[row]:g}; the loss poisson "
                "needs targets that are not negative: use another loss, such as squared"
            )
        return numbers


def _sets(rows: Rows) -> LabelSets:
    """The labels of rows; a single label is a set of one."""
    if rows.y is None:
        raise DataError(f"{rows.name} has no labels")
    if isinstance(rows.y, LabelSets):
        return rows.y
    names, numbers = np.unique(rows.y, return_inverse=True)
    return LabelSets(np.arange(len(rows) + 1), numbers, names)


def target_for(config: Config, rows: Rows, labels: Labels | None) -> Target:
    """The kind of target that the task, the loss and the labels call for."""
    kinds = set(config.kinds) & {*LOSSES[config.loss_name].kinds, CLASSES}
    if CLASSES not in kinds:
        return Counts() if LOSSES[config.loss_name].kinds == (COUNTS,) else Numbers()
    known = tuple(labels or rows.labels)
    if isinstance(rows.y, LabelSets):
        if SIGNS not in LOSSES[config.loss_name].kinds:
            raise DataError(
                f"{rows.name} has several labels in a row, of which softmax chooses one: use the "
                "task svm or logistic"
            )
        return SeveralLabels(known)
    if len(known) == 2 and SIGNS in LOSSES[config.loss_name].kinds:
        return TwoClasses(known)
    return Classes(known)


TARGETS: dict[str, Any] = {  # by their names in model files
    kind.kind: kind for kind in (TwoClasses, Classes, SeveralLabels, Numbers, Counts)
}
