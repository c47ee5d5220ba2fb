"""The meaning of factorization: its objective and its trainer, plain and slow, in float64.

    F = mean of loss(score, value)
        + 1/n * sum over the rows of w (l2/2 |p|^2 + l1 |p|_1 + bias_l2/2 b^2)
    score = mean + b_u + b_i + <p_u, q_i>

Targets of the logistic loss are -1 and 1. A row's w is the number of its ratings, or 1 if it has
any.
"""

from dataclasses import dataclass

import numpy as np

from hogwild.learn.losses import FAINTEST


def bent(score, target):
    """The score, or where the divergence's tangent takes over from it."""
    return np.maximum(score, FAINTEST * np.asarray(target))


def divergence(score, target):
    at = np.where(np.asarray(target) > 0, bent(score, target), 1.0)
    curve = target * np.log(np.where(np.asarray(target) > 0, target, 1) / at) - target + at
    return curve + divergence_slope(score, target) * (score - at)


def divergence_slope(score, target):
    some = np.asarray(target) > 0
    return 1 - target / np.where(some, bent(score, target), 1.0)


LOSSES = {
    "squared": (lambda s, t: (s - t) ** 2 / 2, lambda s, t: s - t),
    "absolute": (lambda s, t: np.abs(s - t), lambda s, t: np.sign(s - t)),
    "logistic": (
        lambda s, t: np.logaddexp(0, -t * s),
        lambda s, t: -t * np.exp(-np.logaddexp(0, t * s)),
    ),
    "kl": (divergence, divergence_slope),
}


@dataclass
class Side:
    """The users, or the items: their factors, biases, and their own rates."""

    factors: np.ndarray
    biases: np.ndarray
    rates: np.ndarray

    def copy(self):
        return Side(self.factors.copy(), self.biases.copy(), self.rates.copy())


@dataclass
class Plan:
    """What the kernel is told, in its order."""

    mean: float = 0.0
    rate: float = 0.0
    bias_share: float = 1.0
    l2: float = 0.0
    bias_l2: float = 0.0
    growth: float = 0.0
    l1: float = 0.0
    least: float = -np.inf


def scores(users, items, mean, u, i):
    products = np.einsum("nk,nk->n", users.factors[u], items.factors[i])
    return mean + users.biases[u] + items.biases[i] + products


def penalty(side, weights, plan):
    """The sum over the rows of one side."""
    squares, sizes = (side.factors**2).sum(axis=1), np.abs(side.factors).sum(axis=1)
    return weights @ (plan.l2 / 2 * squares + plan.l1 * sizes + plan.bias_l2 / 2 * side.biases**2)


def objective(users, items, ratings, plan, loss, weights):
    """F; weights: w of the users, and of the items."""
    u, i, values = ratings
    losses = LOSSES[loss][0](scores(users, items, plan.mean, u, i), values)
    sides = penalty(users, weights[0], plan) + penalty(items, weights[1], plan)
    return losses.mean() + sides / len(values)


def model_objective(model, ratings):
    """F of a trained model on the ratings of its training."""
    options = model.about["options"]
    plan = Plan(model.mean, l2=options["l2"], bias_l2=options["bias_l2"] or 0, l1=options["l1"])
    counts = [np.bincount(some, minlength=size) for some, size in
              zip((ratings.users, ratings.items), ratings.shape, strict=True)]  # fmt: skip
    weights = counts if options["weighted"] else [np.minimum(count, 1) for count in counts]
    values = ratings.values.astype(float)
    targets = 2 * values - 1 if model.loss == "logistic" else values
    given = ratings.users, ratings.items, targets
    return objective(*sides_of(model), given, plan, model.loss, weights)


def sides_of(model):
    return (
        Side(model.user_factors.astype(float), model.user_biases.astype(float), None),
        Side(model.item_factors.astype(float), model.item_biases.astype(float), None),
    )


def learn(users, items, ratings, plan, loss, shares=None):
    """A step on each of the ratings of a block, in order; the sum of the losses met.

    A rating's product of factors is what it was before the steps of the two ratings before it.
    shares: w of the users and of the items for each of their ratings, where it is not 1.
    """
    products, total = [], 0.0
    for k in range(len(ratings) + 2):
        if k < len(ratings):
            u, i, _ = ratings[k]
            products.append(users.factors[u] @ items.factors[i])
        if k < 2:
            continue
        u, i, value = ratings[k - 2]
        score = plan.mean + users.biases[u] + items.biases[i] + products[k - 2]
        total += LOSSES[loss][0](score, value)
        slope = LOSSES[loss][1](score, value)
        p, q = users.factors[u].copy(), items.factors[i].copy()
        w_u, w_i = (1, 1) if shares is None else (shares[0][u], shares[1][i])
        _step(users, u, q, slope, w_u, plan)
        _step(items, i, p, slope, w_i, plan)
    return total


def _step(side, row, other, slope, w, plan):
    rate = plan.rate * side.rates[row]
    moved = side.factors[row] - rate * (slope * other + plan.l2 * w * side.factors[row])
    shrunk = np.sign(moved) * np.maximum(np.abs(moved) - rate * plan.l1 * w, 0)
    side.factors[row] = np.maximum(shrunk, plan.least)
    side.biases[row] -= rate * plan.bias_share * (slope + plan.bias_l2 * w * side.biases[row])
    side.rates[row] -= min(plan.growth * slope**2, 0.5) * side.rates[row] ** 3
