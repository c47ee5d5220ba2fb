"""A new user's factors and bias, from ratings of items whose factors are known.

min over x of sum_j loss(score_j, value_j) + x'Dx/2 + sum_k l1_k |x_k|, with score = offset + A x

and x_k >= 0 for nonnegative factors. With the squared loss and an L2 penalty this is a linear
system; all else is left to L-BFGS-B (Byrd, Lu, Nocedal, Zhu 1995).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.kernels.fold_in import add_squares
from hogwild.learn.losses import FAINTEST

OPTIONS = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 20}
# The absolute loss is smoothed below these errors, in turn (as shares of the typical error)
WIDTHS = (1e-2, 1e-4, 1e-6)

Doubles = npt.NDArray[np.float64]


def fold_in(
    factors: npt.NDArray[np.float32],
    offsets: Doubles,
    values: Doubles,
    loss: str,
    options: dict[str, Any],
) -> tuple[npt.NDArray[np.float32], float]:
    """Factors and bias of a user who gave `values` to items with these factors.

    `offsets` are the scores without the user: the mean plus the biases of the items. With the
    logistic loss, values are -1 and 1. `options` are those of the training. Its penalty of a user
    is w (l2/2 |p|^2 + l1 |p|_1 + bias_l2/2 b^2); missing options
    mean no penalty.
    """
    given = {name: value for name, value in options.items() if value is not None}
    l2, l1 = given.get("l2", 0.0), given.get("l1", 0.0)
    biases = given.get("biases", loss != "kl")
    nonnegative = given.get("nonnegative") or loss == "kl"
    rank = factors.shape[1]
    weight = float(len(values)) if given.get("weighted", True) else 1.0
    A = factors.astype(np.float64)
    if biases:
        A = np.column_stack([A, np.ones(len(values))])
    is_factor = np.arange(A.shape[1]) < rank
    D = weight * np.where(is_factor, l2, given.get("bias_l2", l2))
    if loss == "squared" and not l1 and not nonnegative:
        x = _ridge(A, values - offsets, D)
    else:
        L = weight * np.where(is_factor, l1, 0.0)
        x = np.zeros(A.shape[1])
        typical = float(np.abs(values - offsets).mean()) or 1.0
        for width in WIDTHS if loss == "absolute" else WIDTHS[:1]:
            loss_at = partial(LOSSES[loss], values, width * typical)
            x = _least_point(A, offsets, loss_at, D, L, is_factor & nonnegative, x)
    return x[:rank].astype(np.float32), float(x[rank]) if biases else 0.0


def _ridge(A: Doubles, targets: Doubles, D: Doubles) -> Doubles:
    """The x that minimizes |A x - targets|^2/2 + x'Dx/2."""
    H = np.diag(D)
    add_squares(A.ravel(), H.ravel())
    g = np.einsum("ij,i->j", A, targets)
    try:
        np.linalg.cholesky(H)
        return np.asarray(np.linalg.solve(H, g), np.float64)
    except np.linalg.LinAlgError:  # several solutions (few ratings, no penalty): the shortest
        return np.asarray(np.linalg.lstsq(H, g)[0], np.float64)


def _least_point(
    A: Doubles,
    offsets: Doubles,
    loss_at: Callable[[Doubles], tuple[Doubles, Doubles]],
    D: Doubles,
    l1: Doubles,
    nonnegative: npt.NDArray[np.bool_],
    start: Doubles,
) -> Doubles:
    """The minimum of the objective. An x with an L1 penalty is a difference of two parts >= 0."""
    from scipy.optimize import minimize

    parted = (l1 > 0) & ~nonnegative
    parts = np.append(np.arange(len(D)), np.flatnonzero(parted))
    signs = np.where(np.arange(len(parts)) < len(D), 1.0, -1.0)
    least = np.where(parted | nonnegative, 0.0, -np.inf)[parts]

    def objective(z: Doubles, unit: float) -> tuple[float, Doubles]:
        x = np.bincount(parts, signs * z)
        values, slopes = loss_at(offsets + np.einsum("ij,j->i", A, x))
        uphill = np.einsum("ij,i->j", A, slopes) + D * x
        total = values.sum() + (D * x * x).sum() / 2 + (l1[parts] * z).sum()
        return float(total) / unit, (signs * uphill[parts] + l1[parts]) / unit

    z = np.maximum(signs * start[parts], least)
    unit = abs(objective(z, 1.0)[0]) or 1.0  # so that the unit of the ratings does not matter
    bounds = np.column_stack([least, np.full(len(least), np.inf)])
    how = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": OPTIONS}
    found = minimize(objective, z, (unit,), **how)
    return np.asarray(np.bincount(parts, signs * found.x), np.float64)


def _squared(values: Doubles, width: float, scores: Doubles) -> tuple[Doubles, Doubles]:
    errors = scores - values
    return errors**2 / 2, errors


def _absolute(values: Doubles, width: float, scores: Doubles) -> tuple[Doubles, Doubles]:
    errors = scores - values
    slopes = np.clip(errors / width, -1, 1)
    return slopes * (errors - slopes * width / 2), slopes


def _logistic(values: Doubles, width: float, scores: Doubles) -> tuple[Doubles, Doubles]:
    from scipy.special import expit

    margins = values * scores
    return np.logaddexp(0, -margins), -values * expit(-margins)


def _divergence(values: Doubles, width: float, scores: Doubles) -> tuple[Doubles, Doubles]:
    # For 0, the divergence is the score itself
    least = np.where(values > 0, FAINTEST * values, 1.0)
    clipped = np.maximum(scores, least)
    slopes = 1 - values / clipped
    return clipped - values * np.log(clipped) + slopes * (scores - clipped), slopes


LOSSES: dict[str, Callable[[Doubles, float, Doubles], tuple[Doubles, Doubles]]] = {
    "squared": _squared,
    "absolute": _absolute,
    "logistic": _logistic,
    "kl": _divergence,
}
