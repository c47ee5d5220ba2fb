"""The meaning of the package: the trainer, plain and slow, in float64.

    F(w, b) = l2/2 |w|^2 + mean of loss(<w, x_i> + b, y_i),    y_i = -1 or +1

X is anything that ``@`` works with; `learn` and `train` want it dense.
"""

import numpy as np

from hogwild.problems.losses import LOSSES
from hogwild.problems.schedules import SCHEDULES

# loss and its derivative as functions of the margin z = y * score
MARGIN_LOSSES = {
    "hinge": (lambda z: np.where(z < 1, 1 - z, 0), lambda z: -1.0 * (z < 1)),
    "squared_hinge": (lambda z: (z < 1) * (1 - z) ** 2, lambda z: (z < 1) * (2 * z - 2)),
    "logistic": (lambda z: np.logaddexp(0, -z), lambda z: -np.exp(-np.logaddexp(0, z))),
    "squared": (lambda z: (1 - z) ** 2 / 2, lambda z: z - 1),
    "modified_huber": (
        lambda z: np.select([z < -1, z < 1], [-4 * z, (1 - z) ** 2]),
        lambda z: np.select([z < -1, z < 1], [-4.0 + 0 * z, 2 * z - 2]),
    ),
    "exponential": (
        lambda z: np.where(z < -50, np.exp(50) * (-49 - z), np.exp(-np.fmax(z, -50))),
        lambda z: -np.exp(-np.fmax(z, -50)),
    ),
    "perceptron": (lambda z: np.where(z < 0, -z, 0), lambda z: -1.0 * (z <= 0)),
}


def value(loss, score, target):
    """The losses; of a loss that has no formula here, by its own function."""
    if loss in MARGIN_LOSSES:
        return MARGIN_LOSSES[loss][0](np.asarray(target * score, float))
    return np.vectorize(LOSSES[loss].value, otypes=[float])(score, target)


def slope(loss, score, target):
    """Their derivatives by the score."""
    if loss in MARGIN_LOSSES:
        return target * MARGIN_LOSSES[loss][1](np.asarray(target * score, float))
    return np.vectorize(LOSSES[loss].slope, otypes=[float])(score, target)


def objective(X, y, w, b, loss, l2):
    """F"""
    return l2 / 2 * (w @ w) + np.mean(value(loss, X @ w + b, y))


def gradient(X, y, w, b, loss, l2):
    """The derivatives of F by w and by b."""
    slopes = slope(loss, X @ w + b, y) / len(y)
    return l2 * w + slopes @ X, slopes.sum()


def learn(X, y, order, plan, w, b, times):
    """One step on each of the rows in `order`, at `times[1:]`; w, b, and the losses just before.

    plan: loss, schedule, eta0, l2, and the intercept's rate over that of the weights.
    """
    loss, schedule, eta0, l2, share = plan
    rate, left = SCHEDULES[schedule].rate, SCHEDULES[schedule].left
    total = 0.0
    for row, before, t in zip(order, times[:-1], times[1:], strict=True):
        score = w @ X[row] + b
        total += value(loss, score, y[row])
        step = rate(t, eta0, l2) * slope(loss, score, y[row])
        w = left(t, before, eta0, l2) * w - step * X[row]
        b = b - share * step
    return w, b, total


def train(X, y, orders, plan, moments, beta=1.0):
    """An epoch for each order, and what it may have come to: pairs w, b.

    The last ones, and the means of those at the ends of the pieces of the last epoch, which is cut
    into `moments` pieces: all of them, and those that end in its last quarter.
    """
    loss, schedule, eta0, l2, share = plan
    rows, size, w, b = len(y), -(-len(y) // moments), np.zeros(X.shape[1]), 0.0
    for epoch, order in enumerate(orders):
        now, kept = (loss, schedule, eta0 * beta**epoch, l2, share), []
        for begin in range(0, rows, size):
            piece = order[begin : begin + size]
            times = epoch * rows + begin + np.arange(len(piece) + 1.0)
            w, b, _ = learn(X, y, piece, now, w, b, times)
            kept.append((w, b))
    late = kept[-sum(min(begin + size, rows) > 0.75 * rows for begin in range(0, rows, size)) :]
    means = [
        tuple(sum(part) / len(some) for part in zip(*some, strict=True)) for some in (late, kept)
    ]
    return {"last": (w, b), "tail mean": means[0], "whole mean": means[1]}


def heads_objective(X, signs, W, b, loss, l2):
    """l2/2 |W|^2 + mean over the rows of the sum of the losses of all heads.

    W is heads x columns, `signs` rows x heads: 1 for the heads that a row belongs to, else -1. With
    cross_entropy each row belongs to one: log(sum of exp(scores)) - score of that one.
    """
    return l2 / 2 * np.sum(W**2) + np.mean(_head_losses(X @ W.T + b, signs, loss)[0].sum(axis=1))


def heads_gradient(X, signs, W, b, loss, l2):
    """Its derivatives by W and by b."""
    slopes = _head_losses(X @ W.T + b, signs, loss)[1] / len(signs)
    return l2 * W + slopes.T @ X, slopes.sum(axis=0)


def _head_losses(scores, signs, loss):
    """Losses and slopes, rows x heads."""
    if loss != "cross_entropy":
        return value(loss, scores, signs), slope(loss, scores, signs)
    logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    return -logs * (signs > 0), np.exp(logs) - (signs > 0)


def learn_heads(X, signs, order, plan, W, b, times):
    """One step on each of the rows in `order`, as `learn` for all heads: W, b, losses before."""
    loss, schedule, eta0, l2, share = plan
    rate, scale = SCHEDULES[schedule].rate, SCHEDULES[schedule].scale
    total = 0.0
    for row, before, t in zip(order, times[:-1], times[1:], strict=True):
        W = scale(t, before, eta0, l2) * W
        losses, slopes = _head_losses((W @ X[row] + b)[None], signs[row][None], loss)
        total += losses.sum()
        W = W - rate(t, eta0, l2) * slopes.T * X[row]
        b = b - share * rate(t, eta0, l2) * slopes[0]
    return W, b, total
