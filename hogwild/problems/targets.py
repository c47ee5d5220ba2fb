"""What labels are to a model: how they become numbers, and what scores say of them."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import TASKS, Config
from hogwild.data.rows import Labels, Rows, checked_labels
from hogwild.errors import DataError
from hogwild.problems.losses import COUNTS, LOSSES, NUMBERS, SIGNS
from hogwild.problems.metrics import CLASS_METRICS, NUMBER_METRICS, Metric
from hogwild.problems.problem import Shown

Floats = npt.NDArray[np.float64]


class Target(ABC):
    """A kind of target.

    Attributes:
        name: what model files call it.
        kind: what losses and kernels call it.
        heads: how many scores a row gets.
        labels: what the target of a row may be, where it is one of a few.
        shown: the numbers that people are shown after every epoch, without the data's name.
        metrics: functions of scores, targets, sample weights and the loss.
    """

    name: str
    kind: str
    heads = 1
    labels: tuple[Any, ...] = ()
    shown: tuple[Shown, ...]
    metrics: dict[str, Metric]

    @abstractmethod
    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The targets of rows, as kernels take them."""

    @abstractmethod
    def measured(self, first: float, second: float) -> dict[str, float]:
        """The numbers that are shown, given the means of the two errors that kernels sum up."""

    @abstractmethod
    def predicted(self, scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
        """What scores say, in the terms of the labels."""

    def about(self) -> dict[str, Any]:
        """What a model file must say of it."""
        return {"target": self.name}


class TwoClasses(Target):
    """One of two labels: -1 for the first, 1 for the second."""

    name = kind = SIGNS
    shown = (Shown("error", "err", "percent"),)
    metrics = CLASS_METRICS

    def __init__(self, labels: Labels) -> None:
        self.labels = checked_labels(labels)

    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """-1 or 1; other labels are refused."""
        return rows.targets(self.labels)

    def measured(self, first: float, second: float) -> dict[str, float]:
        """The share of the rows on the wrong side."""
        return {"error": first}

    def predicted(self, scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
        """The second label where a score is positive, else the first."""
        return np.asarray(self.labels)[(scores > 0).astype(np.intp)]

    def about(self) -> dict[str, Any]:
        """What a model file must say of it."""
        return super().about() | {"labels": list(self.labels)}


class Numbers(Target):
    """A number, which the score is to come near."""

    name = kind = NUMBERS
    shown = (Shown("rmse", "RMSE", ".4g"),)
    metrics = NUMBER_METRICS

    def of(self, rows: Rows) -> npt.NDArray[np.float32]:
        """The labels themselves."""
        return rows.numbers()

    def measured(self, first: float, second: float) -> dict[str, float]:
        """The root of the mean squared error."""
        return {"rmse": float(np.sqrt(first))}

    def predicted(self, scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
        """The expected value."""
        mean = LOSSES[loss].mean
        return scores if mean is None else np.asarray(mean(scores))


class Counts(Numbers):
    """A number that is not negative: how often something happens."""

    name = kind = COUNTS

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


def target_for(config: Config, rows: Rows, labels: Labels | None) -> Target:
    """The kind of target that the task, the loss and the labels call for."""
    if SIGNS in TASKS[config.task].kinds:
        return TwoClasses(labels or rows.labels)
    return Counts() if LOSSES[config.loss_name].kinds == (COUNTS,) else Numbers()


def target_from(about: dict[str, Any]) -> Target:
    """The target that a model file tells of; in the first release there were only two classes."""
    name = about.get("target", SIGNS)
    if name == SIGNS:
        negative, positive = about["labels"]
        return TwoClasses((negative, positive))
    return {kind.name: kind for kind in (Numbers, Counts)}[name]()
