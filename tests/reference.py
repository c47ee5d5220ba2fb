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
    """An epoch for each order. The mean of w and b over the last epoch's moments, and the last.

    An epoch is cut into `moments` pieces; what w and b are at the end of each counts, but for
    those of the first half of the first epoch.
    """
    loss, schedule, eta0, l2, share = plan
    rows, w, b = len(y), np.zeros(X.shape[1]), 0.0
    for epoch, order in enumerate(orders):
        kept = []
        for begin in range(0, rows, -(-rows // moments)):
            piece = order[begin : begin + -(-rows // moments)]
            times = epoch * rows + begin + np.arange(len(piece) + 1.0)
            w, b, _ = learn(
                X, y, piece, (loss, schedule, eta0 * beta**epoch, l2, share), w, b, times
            )
            if epoch > 0 or begin + len(piece) > rows / 2:
                kept.append((w, b))
    return tuple(sum(part) / len(kept) for part in zip(*kept, strict=True)), (w, b)
