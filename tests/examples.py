"""Small rows for kernels, and what kernels take besides."""

import numpy as np

from hogwild.kernels.views import (
    Clock,
    Fetching,
    Own,
    RowView,
    Shape,
    Span,
    Stored,
    task_of,
    view,
)
from hogwild.learn.losses import LOSSES
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from hogwild.steps.sgd import Plan

COLUMNS = 20
FETCHING = 8, 1, 2  # rows ahead, lines of each, and rows ahead whose weights are
# Targets of each kind, and the score that a target belongs to
TARGETS = {
    "signs": np.sign,
    "numbers": lambda score: score,
    "counts": lambda score: np.round(np.exp(np.fmin(score, 3))),
}


def default_of(loss):
    """The default of a loss's parameter; 0 where it has none."""
    own = LOSSES[loss].parameter
    return own.default if own else 0.0


def random_rows(rows, kind="signs", seed=0):
    """Sparse rows, some empty, with targets: as kernels see them, and as a matrix."""
    random = np.random.default_rng(seed)
    dense = random.normal(size=(rows, COLUMNS)) * (random.random((rows, COLUMNS)) < 0.25)
    X = dense.astype(np.float32)
    X[:: rows // 4] = 0
    score = X @ random.normal(size=COLUMNS) + 0.5 * random.normal(size=rows) + 0.3
    starts = np.concatenate([[0], np.cumsum(np.count_nonzero(X, axis=1))]).astype(np.uint64)
    columns = np.nonzero(X)[1].astype(np.uint32)
    targets = TARGETS[kind](score).astype(np.float32)
    return view(RowView, starts[:-1], starts[1:], columns, X[X != 0], targets), X.astype(np.float64)


def random_order(rows, seed=1):
    return np.random.default_rng(seed).permutation(rows).astype(np.uint32)


def random_weights(columns=COLUMNS, seed=2):
    return (np.random.default_rng(seed).normal(size=columns) / 4).astype(np.float32)


def plan_of(eta0=0.05, l2=1e-2, since=0.0, share=0.3, parameter=0.0, epoch=300.0):
    """The numbers of an epoch, as `sgd` takes them."""
    return view(Plan, eta0, l2, since, share, parameter, since + epoch, epoch)


def arguments_of(rows, order, plan, stored, span, clock=(0, 1), fetching=FETCHING):
    """What a loop on shared weights takes: `stored` are the weights and the intercept."""
    bias = np.zeros(1, np.float32)
    own = view(Own, bias.copy(), np.zeros(2), bias.copy(), bias.copy())
    weights = view(Stored, stored, stored, bias, bias, stored[:0])
    shape, ahead = view(Shape, 1, 0, 1, 1), view(Fetching, *fetching)
    task = task_of(rows, order, own, shape, plan, ahead)
    return task, view(Span, *span), weights, view(Clock, *clock), NO_SNAPSHOTS


def learn(step, *arguments, **more):
    """Goes through rows on shared weights; the sum of the losses."""
    return shared_loop(step)(*arguments_of(*arguments, **more))


def learn_in_python(step, *arguments, **more):
    """The same, not compiled."""
    with np.errstate(all="ignore"):
        return shared_loop(step).function(*arguments_of(*arguments, **more))
