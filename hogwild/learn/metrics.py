"""Metrics: functions of scores, targets, row weights and the loss. Add one here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.learn.losses import LOSSES

Floats = npt.NDArray[np.float64]
Metric = Callable[[npt.NDArray[Any], npt.NDArray[Any], Floats, str], Any]


def error(scores: Floats, targets: Floats, weights: Floats, loss: str) -> float:
    """The share of rows on the wrong side; a score of zero counts as negative."""
    return float(np.average((scores > 0) != (targets > 0), weights=weights))


def log_loss(scores: Floats, targets: Floats, weights: Floats, loss: str) -> float | None:
    """Mean of -log(probability of the true class); None where the loss gives no probabilities."""
    if loss == "logistic":  # exact, however sure a wrong score is
        return float(np.average(np.logaddexp(0, -targets * scores), weights=weights))
    odds = LOSSES[loss].probability
    if odds is None:
        return None
    positive = odds(scores)
    true_class = np.where(targets > 0, positive, 1 - positive)
    logs = np.log(np.maximum(true_class, np.finfo(np.float64).tiny))
    return float(-np.average(logs, weights=weights))


def auc(scores: Floats, targets: Floats, weights: Floats, loss: str) -> float | None:
    """The chance that a positive row scores above a negative one; ties count half."""
    is_positive = targets > 0
    positive, negative = weights[is_positive].sum(), weights[~is_positive].sum()
    if positive == 0 or negative == 0:
        return None
    _, group = np.unique(scores, return_inverse=True)
    # Negative rows below a score count whole, those with the same score half
    below = np.bincount(group, np.where(is_positive, 0.0, weights))
    beaten = np.cumsum(below) - below / 2
    return float((beaten[group] * weights)[is_positive].sum() / (positive * negative))


def confusion(scores: Floats, targets: Floats, weights: Floats, loss: str) -> dict[str, float]:
    """The number of rows of each class, by predicted class."""
    predicted, true = scores > 0, targets > 0
    counts = {
        "true_negative": ~predicted & ~true,
        "false_positive": predicted & ~true,
        "false_negative": ~predicted & true,
        "true_positive": predicted & true,
    }
    return {name: _count(weights[rows].sum()) for name, rows in counts.items()}


def _count(weight: float) -> float:
    """A sum of weights, as an int where it is whole."""
    return int(weight) if weight == int(weight) else float(weight)


def rmse(scores: Floats, targets: Floats, weights: Floats, loss: str) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(np.average((expected(scores, loss) - targets) ** 2, weights=weights)))


def mae(scores: Floats, targets: Floats, weights: Floats, loss: str) -> float:
    """The mean absolute error."""
    return float(np.average(np.abs(expected(scores, loss) - targets), weights=weights))


def r2(scores: Floats, targets: Floats, weights: Floats, loss: str) -> float | None:
    """The explained share of the variance; None where all targets are equal."""
    mean = np.average(targets, weights=weights)
    variance = np.average((targets - mean) ** 2, weights=weights)
    if variance == 0:
        return None
    error = np.average((expected(scores, loss) - targets) ** 2, weights=weights)
    return float(1 - error / variance)


def deviance(scores: Floats, targets: Floats, weights: Floats, loss: str) -> float | None:
    """The mean Poisson deviance; None for other losses."""
    if loss != "poisson":
        return None
    ratio = np.where(targets > 0, targets, 1.0)
    logs = targets * (np.log(ratio) - scores)
    return float(2 * np.average(logs - targets + np.exp(scores), weights=weights))


def expected(scores: npt.NDArray[Any], loss: str) -> npt.NDArray[Any]:
    """The expected values of the targets."""
    mean = LOSSES[loss].mean
    return scores if mean is None else np.asarray(mean(scores))


GREATER_IS_BETTER = ("auc", "r2", "subset_accuracy", "macro_f1", "micro_f1")
TABLES = ("confusion", "class_errors")  # not single numbers

CLASS_METRICS: dict[str, Metric] = {
    "error": error,
    "log_loss": log_loss,
    "auc": auc,
    "confusion": confusion,
}

NUMBER_METRICS: dict[str, Metric] = {"rmse": rmse, "mae": mae, "r2": r2, "deviance": deviance}
