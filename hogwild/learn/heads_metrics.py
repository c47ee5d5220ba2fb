"""How good the scores of several heads are. Add a metric to a table here.

A metric is a function of scores (rows x heads), targets, row weights and the loss. A target is the
number of a row's class or, for several labels, a row of booleans.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.learn.losses import CLASSES, LOSSES
from hogwild.learn.metrics import Metric

TOP = 5  # the classes with the highest scores, for the top-k error
FEW = 20  # classes, at most, for which the whole confusion table is returned
LARGEST = 20  # confusions that are returned for more classes

Array = npt.NDArray[Any]


def probabilities(scores: Array, loss: str) -> npt.NDArray[np.float64] | None:
    """The probability of each class: softmax, or independent heads scaled to a sum of 1."""
    odds = LOSSES[loss].probability
    if odds is None:
        return None
    each = np.asarray(odds(scores.astype(np.float64)), np.float64)
    if LOSSES[loss].kinds == (CLASSES,):
        return each
    sums = each.sum(axis=1, keepdims=True)
    return np.where(sums > 0, each / np.where(sums > 0, sums, 1), 1 / each.shape[1])


def _error(scores: Array, targets: Array, weights: Array, loss: str) -> float:
    return float(np.average(scores.argmax(axis=1) != targets, weights=weights))


def _top_error(scores: Array, targets: Array, weights: Array, loss: str) -> float | None:
    """The share of rows whose class is not among the TOP with the highest scores."""
    if scores.shape[1] <= TOP:
        return None
    of_class = np.take_along_axis(scores, targets[:, None], axis=1)
    return float(np.average((scores > of_class).sum(axis=1) >= TOP, weights=weights))


def _table(scores: Array, targets: Array, weights: Array) -> npt.NDArray[np.float64]:
    """The confusion table: a row for each true class, a column for each predicted class."""
    count = scores.shape[1]
    places = targets * count + scores.argmax(axis=1)
    return np.bincount(places, weights, count * count).reshape(count, count).astype(np.float64)


def _class_errors(scores: Array, targets: Array, weights: Array, loss: str) -> list[float | None]:
    """For each class the share of its rows that is predicted as another; None where it has none."""
    table = _table(scores, targets, weights)
    sizes = table.sum(axis=1)
    return [
        float(1 - right / size) if size else None
        for right, size in zip(table.diagonal(), sizes, strict=True)
    ]


def _f1(true: Array, predicted: Array, both: Array) -> npt.NDArray[np.float64]:
    """2 TP / (2 TP + FP + FN); 0 where nothing is true or predicted, as in scikit-learn."""
    sums = np.asarray(true + predicted, np.float64)
    return np.where(sums > 0, 2 * both / np.where(sums > 0, sums, 1), 0.0)


def _macro_f1(scores: Array, targets: Array, weights: Array, loss: str) -> float:
    """The mean of F1 over the classes that are true or predicted anywhere."""
    table = _table(scores, targets, weights)
    true, predicted = table.sum(axis=1), table.sum(axis=0)
    found = _f1(true, predicted, table.diagonal())
    return float(found[(true > 0) | (predicted > 0)].mean())


def _micro_f1(scores: Array, targets: Array, weights: Array, loss: str) -> float:
    """F1 of all classes' counts together: with one label a row, the share that is right."""
    return 1.0 - _error(scores, targets, weights, loss)


def _log_loss(scores: Array, targets: Array, weights: Array, loss: str) -> float | None:
    """Mean of -log(probability of the true class); None where the loss gives no probabilities."""
    found = probabilities(scores, loss)
    if found is None:
        return None
    of_class = np.take_along_axis(found, targets[:, None], axis=1)[:, 0]
    logs = np.log(np.maximum(of_class, np.finfo(np.float64).tiny))
    return float(-np.average(logs, weights=weights))


def _confusion(scores: Array, targets: Array, weights: Array, loss: str) -> Any:
    """The confusion table; for many classes, the largest confusions.

    A confusion is a triple: the true class, the predicted class, and the number of rows.
    """
    table = _table(scores, targets, weights)
    if len(table) <= FEW:
        return {"table": table.tolist()}
    np.fill_diagonal(table, 0)
    largest = np.argsort(-table, axis=None, kind="stable")[:LARGEST]
    pairs = zip(*np.unravel_index(largest, table.shape), strict=True)
    found = [[int(a), int(b), float(table[a, b])] for a, b in pairs if table[a, b] > 0]
    return {"largest": found}


def _hamming(scores: Array, targets: Array, weights: Array, loss: str) -> float:
    return float(np.average(((scores > 0) != targets).mean(axis=1), weights=weights))


def _subset_accuracy(scores: Array, targets: Array, weights: Array, loss: str) -> float:
    """The share of rows all of whose labels are right."""
    return float(np.average(((scores > 0) == targets).all(axis=1), weights=weights))


def _label_counts(scores: Array, targets: Array, weights: Array) -> tuple[Array, Array, Array]:
    """For each label, the weight of the rows that have it, are predicted to have it, and both."""
    predicted = scores > 0
    return weights @ targets, weights @ predicted, weights @ (predicted & targets)


def _labels_macro_f1(scores: Array, targets: Array, weights: Array, loss: str) -> float:
    return float(_f1(*_label_counts(scores, targets, weights)).mean())


def _labels_micro_f1(scores: Array, targets: Array, weights: Array, loss: str) -> float:
    """F1 of all labels' counts together."""
    true, predicted, both = (c.sum() for c in _label_counts(scores, targets, weights))
    return float(_f1(true, predicted, both))


CLASSES_METRICS: dict[str, Metric] = {
    "error": _error,
    "top_5_error": _top_error,
    "class_errors": _class_errors,
    "macro_f1": _macro_f1,
    "micro_f1": _micro_f1,
    "log_loss": _log_loss,
    "confusion": _confusion,
}

LABELS_METRICS: dict[str, Metric] = {
    "hamming_loss": _hamming,
    "subset_accuracy": _subset_accuracy,
    "macro_f1": _labels_macro_f1,
    "micro_f1": _labels_micro_f1,
}
