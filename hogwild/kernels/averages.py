"""Sums and means of the weights over snapshots."""

import numpy as np
from numba.types import UniTuple, float32, float64, void

from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, readonly
from hogwild.kernels.views import FLOATS, UINT, Span, type_of


@inline
def add_times(weights, factor, keep, sums):
    """sums <- keep * sums + factor * weights; for keep = 0 the old content of `sums` is ignored."""
    for k in range(U(0), U(sums.size)):
        before = keep * sums[k] if keep > np.float32(0) else np.float32(0)
        sums[k] = before + factor * weights[k]


@inline
def add_whole(weights, scale, keep, scaled, sums):
    """sums <- keep * sums + scale * weights; beyond the first `scaled` of them, scale is 1."""
    add_times(weights[:scaled], scale, keep, sums[:scaled])
    add_times(weights[scaled:], np.float32(1), keep, sums[scaled:])


@kernel(void(readonly(float32), float32, float32, UINT, FLOATS))
def add_scaled(weights, scale, keep, scaled, sums):
    """The same, from Python."""
    add_whole(weights, scale, keep, scaled, sums)


@kernel(
    UniTuple(float64, 3)(UniTuple(FLOATS, 3), float32, UniTuple(float32, 3), UINT, type_of(Span))
)
def finish(arrays, scale, factors, scaled, share):
    """Scales a share of the weights, and turns sums over snapshots into means.

    weights <- scale * weights (the first `scaled` of them)
    tail <- tail / late, or the weights if there were no late snapshots
    whole <- keep * whole + each * tail, before tail is divided
    `arrays`: weights, tail (a sum over late snapshots), whole (a sum over early ones). `factors`:
    late (the number of late snapshots), keep, each. Returns the sums of squares of the first
    `scaled` numbers of all three.
    """
    weights, tails, wholes = arrays
    late, keep, each = factors
    inverse = np.float32(1) / max(late, np.float32(1))
    of_weights, of_tails, of_wholes = 0.0, 0.0, 0.0
    for k in range(share.begin, share.end):
        counts = 1.0 if k < scaled else 0.0
        weight = (scale if k < scaled else np.float32(1)) * weights[k]
        total = tails[k] if late > np.float32(0) else weight
        before = keep * wholes[k] if keep > np.float32(0) else np.float32(0)
        whole, tail = before + each * total, inverse * total
        weights[k], tails[k], wholes[k] = weight, tail, whole
        of_weights += counts * np.float64(weight) * np.float64(weight)
        of_tails += counts * np.float64(tail) * np.float64(tail)
        of_wholes += counts * np.float64(whole) * np.float64(whole)
    return of_weights, of_tails, of_wholes
