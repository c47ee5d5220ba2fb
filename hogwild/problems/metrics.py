"""How good scores are: a function of scores, targets (-1, +1) and the loss's odds. Add one here."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.problems.losses import LOSSES

Floats = npt.NDArray[np.float64]
Metric = Callable[[Floats, Floats, str], Any]


def error(scores: Floats, targets: Floats, loss: str) -> float:
    """The share of rows on the wrong side; a score of zero counts as negative."""
    return float(np.mean((scores > 0) != (targets > 0)))


def log_loss(scores: Floats, targets: Floats, loss: str) -> float | None:
    """Mean of -log(probability of the true class); None where the loss gives no probabilities."""
    if loss == "logistic":  # exact, however sure a wrong score is
        return float(np.mean(np.logaddexp(0, -targets * scores)))
    odds = LOSSES[loss].probability
    if odds is None:
        return None
    positive = odds(scores)
    true_class = np.where(targets > 0, positive, 1 - positive)
    return float(-np.mean(np.log(np.maximum(true_class, np.finfo(np.float64).tiny))))


def auc(scores: Floats, targets: Floats, loss: str) -> float | None:
    """The chance that a positive row scores above a negative one; ties count half."""
    positive = int(np.count_nonzero(targets > 0))
    negative = len(targets) - positive
    if positive == 0 or negative == 0:
        return None
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(sizes) - (sizes - 1) / 2
    ranks = float(mean_rank[group][targets > 0].sum())
    return (ranks - positive * (positive + 1) / 2) / (positive * negative)


def confusion(scores: Floats, targets: Floats, loss: str) -> dict[str, int]:
    """How many rows of each class were predicted as which."""
    said, true = scores > 0, targets > 0
    return {
        "true_negative": int(np.count_nonzero(~said & ~true)),
        "false_positive": int(np.count_nonzero(said & ~true)),
        "false_negative": int(np.count_nonzero(~said & true)),
        "true_positive": int(np.count_nonzero(said & true)),
    }


METRICS: dict[str, Metric] = {
    "error": error,
    "log_loss": log_loss,
    "auc": auc,
    "confusion": confusion,
}
