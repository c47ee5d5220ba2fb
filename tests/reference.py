"""The meaning of the package: the trainer, plain and slow, in float64.

    F(w, b) = l2/2 |w|^2 + mean of loss(<w, x_i> + b, y_i)

Of classes, y_i is -1 or +1. X is anything that ``@`` works with; `learn` and `train` want it dense.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from hogwild.learn.losses import LOSSES
from hogwild.learn.problem import Share
from hogwild.learn.schedules import SCHEDULES
from hogwild.steps.sgd import Plan as Numbers


def of_margin(value, slope):
    """A loss and its derivative by the score, made of functions of the margin z = y * score."""
    return (
        lambda score, y, p: value(np.asarray(y * score, float)),
        lambda score, y, p: y * slope(np.asarray(y * score, float)),
    )


# value and slope of (score, y, parameter)
FORMULAS = {
    "hinge": of_margin(lambda z: np.where(z < 1, 1 - z, 0), lambda z: -1.0 * (z < 1)),
    "squared_hinge": of_margin(lambda z: (z < 1) * (1 - z) ** 2, lambda z: (z < 1) * (2 * z - 2)),
    "logistic": of_margin(lambda z: np.logaddexp(0, -z), lambda z: -np.exp(-np.logaddexp(0, z))),
    "modified_huber": of_margin(
        lambda z: np.select([z < -1, z < 1], [-4 * z, (1 - z) ** 2]),
        lambda z: np.select([z < -1, z < 1], [-4.0 + 0 * z, 2 * z - 2]),
    ),
    "exponential": of_margin(
        lambda z: np.where(z < -50, np.exp(50) * (-49 - z), np.exp(-np.fmax(z, -50))),
        lambda z: -np.exp(-np.fmax(z, -50)),
    ),
    "perceptron": of_margin(lambda z: np.where(z < 0, -z, 0), lambda z: -1.0 * (z <= 0)),
    "squared": (lambda s, y, p: (s - y) ** 2 / 2, lambda s, y, p: s - y),
    "absolute": (lambda s, y, p: np.abs(s - y), lambda s, y, p: np.sign(s - y)),
    "huber": (
        lambda s, y, p: np.where(np.abs(s - y) < p, (s - y) ** 2 / 2, p * np.abs(s - y) - p**2 / 2),
        lambda s, y, p: np.clip(s - y, -p, p),
    ),
    "epsilon_insensitive": (
        lambda s, y, p: np.fmax(0, np.abs(s - y) - p),
        lambda s, y, p: np.sign(s - y) * (np.abs(s - y) > p),
    ),
    "quantile": (
        lambda s, y, p: np.where(s > y, (1 - p) * (s - y), p * (y - s)),
        lambda s, y, p: (1 - p) * (s > y) - p * (s < y),
    ),
    "poisson": (
        lambda s, y, p: np.exp(np.fmin(s, 30)) * (1 + np.fmax(0, s - 30)) - y * s,
        lambda s, y, p: np.exp(np.fmin(s, 30)) - y,
    ),
}


class Plan(NamedTuple):
    """What is learned, and how: `share` is the intercept's rate over that of the weights.

    With the schedule inverse, that is in the first half of an epoch of so many `rows`, which ends
    at the step `end`.
    """

    loss: str
    schedule: str
    eta0: float
    l2: float
    share: float
    parameter: float = 0.0
    end: float = 1.0
    rows: float = 1.0


def plan_of(problem, eta0):
    """The plan of a problem."""
    config, numbers = problem.config, problem.plan(Share(1, 0, 1, 0, eta0))
    return Plan(config.loss_name, config.schedule, numbers.eta0, numbers.l2, *numbers[3:])


def value(loss, score, y, parameter=0.0):
    """The losses; of a loss that has no formula here, by its own function."""
    if loss in FORMULAS:
        return FORMULAS[loss][0](np.asarray(score, float), y, parameter)
    return np.vectorize(LOSSES[loss].value, otypes=[float])(score, y, parameter)


def slope(loss, score, y, parameter=0.0):
    """Their derivatives by the score."""
    if loss in FORMULAS:
        return FORMULAS[loss][1](np.asarray(score, float), y, parameter)
    return np.vectorize(LOSSES[loss].slope, otypes=[float])(score, y, parameter)


def objective(X, y, w, b, loss, l2):
    """F"""
    return l2 / 2 * (w @ w) + np.mean(value(loss, X @ w + b, y))


def gradient(X, y, w, b, loss, l2):
    """The derivatives of F by w and by b."""
    slopes = slope(loss, X @ w + b, y) / len(y)
    return l2 * w + slopes @ X, slopes.sum()


def learn(X, y, order, plan, w, b, times):
    """One step on each of the rows in `order`, at `times[1:]`; w, b, and the sum of the losses.

    A step is the penalty's, and then one against the slope of the loss at the weights that are
    left; the losses are those just before the latter.
    """
    schedule = SCHEDULES[plan.schedule]
    total = 0.0
    for row, before, t in zip(order, times[:-1], times[1:], strict=True):
        now = Numbers(plan.eta0, plan.l2, before, plan.share, *plan[5:])
        w = schedule.scale(now, t) * w
        score = w @ X[row] + b
        total += value(plan.loss, score, y[row], plan.parameter)
        rate = schedule.rate(now, t)
        of_b = schedule.intercept_rate(now, t)
        pull = rate * (X[row] @ X[row]) + of_b
        taken = slope_in_step(plan, pull, score, y[row])
        w = w - rate * taken * X[row]
        b = b - of_b * taken
    return w, b, total


def slope_in_step(plan, pull, score, y):
    """The slope that a step takes; of a steep loss, that at the score to which the step leads."""
    if plan.loss != "poisson":
        return slope(plan.loss, score, y, plan.parameter)
    far = 1 + pull * abs(slope(plan.loss, score, y))

    def excess(u):
        return u - score + pull * slope(plan.loss, u, y)

    return slope(plan.loss, brentq(excess, score - far, score + far, xtol=1e-14), y)


def train(X, y, orders, plan, snapshots, beta=1.0):
    """An epoch for each order, and what it may have come to: pairs w, b.

    The last ones, and the means of those at the ends of the pieces of the last epoch, which is cut
    into so many pieces, or more: all of them, and those that end in its last quarter.
    """
    rows, size, w, b = len(y), max(1, len(y) // snapshots), np.zeros(X.shape[1]), 0.0
    for epoch, order in enumerate(orders):
        now, kept = plan._replace(eta0=plan.eta0 * beta**epoch, end=(epoch + 1.0) * rows), []
        for begin in range(0, rows, size):
            piece = order[begin : begin + size]
            times = epoch * rows + begin + np.arange(len(piece) + 1.0)
            w, b, _ = learn(X, y, piece, now, w, b, times)
            if len(piece) == size:
                kept.append((w, b))
    late = kept[-sum(end > 0.75 * rows for end in range(size, rows + 1, size)) :]
    means = [
        tuple(sum(part) / len(some) for part in zip(*some, strict=True)) for some in (late, kept)
    ]
    return {"last": (w, b), "tail mean": means[0], "whole mean": means[1]}


def averaged_perceptron(X, y, orders, share):
    """The means of w and b after each step of all orders; `share` as in `Plan`."""
    w, b, sum_w, sum_b, steps = np.zeros(X.shape[1]), 0.0, 0.0, 0.0, 0
    for row in np.concatenate(orders):
        if y[row] * (w @ X[row] + b) <= 0:
            w, b = w + y[row] * X[row], b + share * y[row]
        sum_w, sum_b, steps = sum_w + w, sum_b + b, steps + 1
    return sum_w / steps, sum_b / steps


def follow(X, y, orders, plan, weights=None, normalized=False):
    """FTRL-proximal, an epoch for each order: w, b, and the sums of the losses just before steps.

    plan: loss, its parameter, alpha, beta, l1, l2, the value of the intercept's column (0: none).
    Normalized, alpha and beta are for columns divided by the root of the mean square of values.
    """
    loss, parameter, alpha, beta, l1, l2, value_of_b = plan
    X = np.column_stack([X, np.full(len(y), value_of_b)])
    weights = np.ones(len(y)) if weights is None else weights
    penalized = np.append(np.ones(X.shape[1] - 1), 0)
    holders = np.maximum(np.count_nonzero(X, axis=0), 1)
    if normalized:
        sizes = np.sqrt((X**2).sum(axis=0) / holders)
        sizes[sizes == 0] = 1
        alpha, beta = alpha / sizes, beta * sizes
    z, s, totals = np.zeros(X.shape[1]), np.zeros(X.shape[1]) + beta / alpha, []

    def read(rows_before):
        h = penalized * rows_before
        return -np.sign(z) * np.maximum(np.abs(z) - l1 * h, 0) / (s + l2 * h)

    for epoch, order in enumerate(orders):
        total, visits = 0.0, np.zeros(X.shape[1])
        for row in order:
            w = read(len(y) * (epoch + visits / holders))
            score = X[row] @ w
            total += weights[row] * value(loss, score, y[row], parameter)
            g = weights[row] * slope(loss, score, y[row], parameter) * X[row]
            below = alpha * (2 * alpha * s + np.abs(g))
            sigma = np.divide(g**2, below, out=np.zeros_like(g), where=g != 0)
            z, s, visits = z + g - sigma * w, s + sigma, visits + (X[row] != 0)
        totals.append(total)
    w = read(len(y) * len(orders))
    return w[:-1], w[-1] * value_of_b, totals


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
    schedule = SCHEDULES[plan.schedule]
    total = 0.0
    for row, before, t in zip(order, times[:-1], times[1:], strict=True):
        now = Numbers(plan.eta0, plan.l2, before, plan.share, *plan[5:])
        W = schedule.scale(now, t) * W
        losses, slopes = _head_losses((W @ X[row] + b)[None], signs[row][None], plan.loss)
        total += losses.sum()
        rate = schedule.rate(now, t)
        W = W - rate * slopes.T * X[row]
        b = b - schedule.intercept_rate(now, t) * slopes[0]
    return W, b, total
