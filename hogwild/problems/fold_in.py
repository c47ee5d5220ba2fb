"""A new user's factors and bias, from ratings of items whose factors are known.

min over x of sum_j loss(score_j, value_j) + x'Dx/2 + sum_k l1_k |x_k|, with score = offset + A x

and, where factors are not negative, x_k >= 0 for them. A loss is replaced by a parabola that
touches it, with the loss's own curvature (Newton), or one that lies above it (absolute: weighted
least squares, again and again); its least point is where to go. A line search sees to it that
the objective goes down. For the squared loss the first step is exact.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels import fold_in as kernels
from hogwild.problems.losses import FAINTEST

MOST_STEPS = 200
MOST_HALVINGS = 40
MOST_SWEEPS = 2_000
TOLERANCE = 1e-10
SHARPEST = 1e-6  # the absolute loss is round below this error, as a share of the first ones

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Penalty:
    """The training's own penalty of one user: w (l2/2 |p|^2 + l1 |p|_1 + bias_l2/2 b^2)."""

    l2: float
    bias_l2: float
    l1: float
    weighted: bool
    biases: bool
    nonnegative: bool

    @classmethod
    def of(cls, options: dict[str, Any], loss: str) -> "Penalty":
        """That of a training with these options; none where they say nothing of it."""
        told = {name: value for name, value in options.items() if value is not None}
        l2 = float(told.get("l2", 0.0))
        return cls(
            l2,
            float(told.get("bias_l2", l2)),
            float(told.get("l1", 0.0)),
            bool(told.get("weighted", True)),
            bool(told.get("biases", loss != "kl")),
            bool(told.get("nonnegative", False)) or loss == "kl",
        )


class Bend(NamedTuple):
    """A loss at some scores: its sum (but for a constant), and slopes and curvatures."""

    total: float
    slopes: Doubles
    curvatures: Doubles


def fold_in(
    factors: npt.NDArray[np.float32], offsets: Doubles, values: Doubles, loss: str, penalty: Penalty
) -> tuple[npt.NDArray[np.float32], float]:
    """Factors and bias of a user who gave these values to items with these factors.

    `offsets` are the scores without the user: mean and the items' biases. With the logistic loss,
    values are -1 and 1.
    """
    rank = factors.shape[1]
    weight = float(len(values)) if penalty.weighted else 1.0
    A = factors.astype(np.float64)
    if penalty.biases:
        A = np.column_stack([A, np.ones(len(values))])
    is_factor = np.arange(A.shape[1]) < rank
    D = weight * np.where(is_factor, penalty.l2, penalty.bias_l2)
    l1 = weight * np.where(is_factor, penalty.l1, 0.0)
    least = np.where(is_factor & penalty.nonnegative, 0.0, -np.inf)
    typical = float(np.abs(values - offsets).mean()) or 1.0
    bend_at = partial(LOSSES[loss], values, SHARPEST * typical)
    x = np.zeros(A.shape[1])

    def bend_and_objective(x: Doubles) -> tuple[Bend, float]:
        bend = bend_at(offsets + np.einsum("ij,j->i", A, x))
        return bend, bend.total + float(D @ (x * x) / 2 + l1 @ np.abs(x))

    bend, before = bend_and_objective(x)
    for _ in range(MOST_STEPS):
        H = np.diag(D)
        kernels.add_products(A.ravel(), bend.curvatures, H.ravel())
        downhill = H @ x - D * x - np.einsum("ij,i->j", A, bend.slopes)
        move = _least_point(H, downhill, l1, least, x) - x
        for share in 0.5 ** np.arange(MOST_HALVINGS):
            bend, after = bend_and_objective(x + share * move)
            if after <= before or loss == "squared":
                break
        else:
            break
        x, before = x + share * move, after
        if loss == "squared" or share * np.abs(move).max() <= TOLERANCE * (1 + np.abs(x).max()):
            break
    return x[:rank].astype(np.float32), float(x[rank]) if penalty.biases else 0.0


def _least_point(H: Doubles, g: Doubles, l1: Doubles, least: Doubles, start: Doubles) -> Doubles:
    """Where x'Hx/2 - g'x + l1'|x| is least, of all x >= least."""
    bounded = np.isfinite(least)
    if bounded.any():
        return _nonnegative(H, g - l1, bounded)
    if l1.any():
        x = start.copy()
        kernels.descend(H.ravel(), g, l1, TOLERANCE, MOST_SWEEPS, x)
        return x
    try:
        np.linalg.cholesky(H)
        return np.asarray(np.linalg.solve(H, g), np.float64)
    except np.linalg.LinAlgError:  # several x are as good (few ratings, no penalty): the shortest
        return np.asarray(np.linalg.lstsq(H, g)[0], np.float64)


def _nonnegative(H: Doubles, g: Doubles, bounded: npt.NDArray[np.bool_]) -> Doubles:
    """By least squares with a root M of H = M'M. What may be negative is a difference of two."""
    from scipy.optimize import nnls

    sizes, directions = np.linalg.eigh(H)
    if sizes[-1] <= 0:
        return np.zeros(len(H))
    kept = sizes > len(H) * np.finfo(np.float64).eps * sizes[-1]
    roots = np.sqrt(sizes[kept])
    M = roots[:, None] * directions[:, kept].T
    target = (directions[:, kept].T @ g) / roots
    found, _ = nnls(np.column_stack([M, -M[:, ~bounded]]), target, maxiter=100 * len(H))
    x: Doubles = found[: len(H)]
    x[~bounded] -= found[len(H) :]
    return x


def _squared(values: Doubles, width: float, scores: Doubles) -> Bend:
    errors = scores - values
    return Bend(float((errors**2).sum()) / 2, errors, np.ones_like(errors))


def _absolute(values: Doubles, width: float, scores: Doubles) -> Bend:
    errors = scores - values
    sizes = np.abs(errors)
    curvatures = 1 / np.maximum(sizes, width)
    total = np.where(sizes < width, (sizes * sizes / width + width) / 2, sizes).sum()
    return Bend(float(total), errors * curvatures, curvatures)


def _logistic(values: Doubles, width: float, scores: Doubles) -> Bend:
    from scipy.special import expit

    odds = expit(-values * scores)
    total = float(np.logaddexp(0, -values * scores).sum())
    return Bend(total, -values * odds, odds * (1 - odds))


def _divergence(values: Doubles, width: float, scores: Doubles) -> Bend:
    least = np.where(values > 0, FAINTEST * values, 1.0)  # of 0, the divergence is the score itself
    bends = np.maximum(scores, least)
    slopes = 1 - values / bends
    total = (bends - values * np.log(bends) + slopes * (scores - bends)).sum()
    return Bend(float(total), slopes, values / bends**2)


LOSSES: dict[str, Callable[[Doubles, float, Doubles], Bend]] = {
    "squared": _squared,
    "absolute": _absolute,
    "logistic": _logistic,
    "kl": _divergence,
}
