"""Scores of pairs, how good they are, and the best items for each of many users.

score = mean + b_u + b_i + <p_u, q_i>

Items are stored in panels of 64, dimension by dimension, so vector instructions compute 64 scores
together. All 64 are compared with the n-th best score so far. Only the few better ones are sorted
in.
"""

from functools import cache

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numba.types import Tuple, UniTuple, float32, float64, uint32, uint64, uintp, void

from hogwild.kernels.compile import Kernel, always_inline, inline, kernel
from hogwild.kernels.ids import UNKNOWN
from hogwild.kernels.primitives import LINE, U, prefetch, readonly, trailing_zeros, writable
from hogwild.learn.losses import FACTOR_LOSSES, rating_error

PANEL = 64  # items in a panel: the bits of a word
STEP = 4  # dimensions that are added at once; vectors are padded with zeros to a multiple
FEW = 64  # keys
AHEAD = U(8)  # pairs
SIGN = 1 << 31
FILLER = ((1 << 23) - 1) << 32  # the key of a score of -inf, and of no item

FLOATS = readonly(float32)
CODES = readonly(uint32)
# factors, row by row; biases
SIDE = Tuple((FLOATS, FLOATS))
# where each user's items begin, and the items
LISTS = Tuple((readonly(uint64), CODES))
# bits, scores to exceed, scores of panels
SCRATCH = Tuple((writable(uint64), writable(float32), writable(float32)))


@kernel(void(SIDE, SIDE, float64, CODES, CODES, writable(float32)))
def score_pairs(users, items, mean, who, what, scores):
    """The scores of pairs of codes; `UNKNOWN` codes add nothing."""
    P, user_biases = users
    Q, item_biases = items
    unknown = np.uint32(UNKNOWN)
    rank = U(P.size // user_biases.size) if user_biases.size else U(0)
    last = U(who.size) - U(1)
    for k in range(U(0), U(who.size)):
        later = min(k + AHEAD, last)
        _fetch(P, who[later], rank)
        _fetch(Q, what[later], rank)
        score = mean
        if who[k] != unknown:
            score += user_biases[U(who[k])]
        if what[k] != unknown:
            score += item_biases[U(what[k])]
        if who[k] != unknown and what[k] != unknown:
            score += _inner(P, U(who[k]) * rank, Q, U(what[k]) * rank, rank)
        scores[k] = np.float32(score)


@inline
def _fetch(factors, code, rank):
    for k in range(U(0), rank, LINE):
        prefetch(factors, U(code) * rank + k)


@inline
def _inner(P, p, Q, q, rank):
    total = np.float32(0)
    for k in range(U(0), rank):
        total += P[p + k] * Q[q + k]
    return total


@cache
def measurer(loss: str) -> Kernel:
    """The kernel (scores, values) -> the sums of the losses, of the squares and sizes of errors.

    With the logistic loss, values are -1 and 1, and errors are those of probabilities.
    """
    value_of, is_logistic = FACTOR_LOSSES[loss].value, loss == "logistic"

    def measure(scores, values):
        losses, squares, sizes = 0.0, 0.0, 0.0
        for k in range(U(0), U(scores.size)):
            score, value = np.float64(scores[k]), np.float64(values[k])
            losses += value_of(score, value, 0.0)
            error = rating_error(is_logistic, score, value)
            squares += error * error
            sizes += abs(error)
        return losses, squares, sizes

    return Kernel(measure, UniTuple(float64, 3)(FLOATS, FLOATS), fast=False)


@intrinsic
def _above(typing_context, scores, begin, least):  # type: ignore[no-untyped-def]
    """A bit for each of the `PANEL` scores from `begin` on: whether it is above `least`."""

    def emit(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        vector = ir.VectorType(ir.FloatType(), PANEL)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())
        zero = ir.IntType(32)(0)
        single = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], zero)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), PANEL), None)
        bound = builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), zeros)
        bits = builder.fcmp_ordered(">", builder.load(place, align=4), bound)
        return builder.bitcast(bits, ir.IntType(PANEL))

    return uint64(scores, uintp, float32), emit


@kernel(void(FLOATS, SIDE, LISTS, CODES, UniTuple(uintp, 2), uintp, writable(uint64), SCRATCH))
def rank_items(vectors, items, excluded, users, some, n, best, scratch):
    """Finds the n best items for some of the users, begin:end; writes their keys, in no order.

    `vectors`: of all users, row by row; `items`: panels and biases, -inf where a panel has no item;
    `excluded`: the items of all users in CSR form; `best`: the keys of all of `users`, at first
    `FILLER`; `scratch`: a bit for each of end - begin users and each item (zeros before and after),
    the score to exceed for each user, and the scores of two panels.
    """
    panels, biases = items
    starts, seen = excluded
    begin, end = some
    marks, least, scores = scratch
    words = U(biases.size) // U(PANEL)
    rank = U(panels.size) // max(U(biases.size), U(1))
    for k in range(U(0), end - begin):
        least[k] = -np.inf
        user = U(users[begin + k])
        for at in range(U(starts[user]), U(starts[user + U(1)])):
            word = k * words + U(seen[at]) // U(PANEL)
            marks[word] |= np.uint64(1) << np.uint64(U(seen[at]) % U(PANEL))
    for panel in range(U(0), words):
        first = panel * U(PANEL)
        for one in range(U(0), end - begin, U(2)):
            other = min(one + U(1), end - begin - U(1))
            p, r = U(users[begin + one]) * rank, U(users[begin + other]) * rank
            _score_panel(vectors, p, r, panels, biases, first, rank, scores)
            for k in range(one, other + U(1)):
                at = (k - one) * U(PANEL)
                heap = (begin + k) * n
                bits = _above(scores, at, least[k]) & ~marks[k * words + panel]
                while bits != np.uint64(0):
                    j = U(trailing_zeros(bits))
                    bits &= bits - np.uint64(1)
                    if scores[at + j] > least[k]:
                        _replace_least(best, heap, n, _key(scores[at + j], first + j))
                        least[k] = _score_of(best[heap])
    for k in range(U(0), end - begin):
        user = U(users[begin + k])
        for at in range(U(starts[user]), U(starts[user + U(1)])):
            marks[k * words + U(seen[at]) // U(PANEL)] = np.uint64(0)


@always_inline
def _score_panel(vectors, p, r, panels, biases, first, rank, scores):
    """Two users' scores of a panel's items, without the parts that are equal for all items.

    With one user, each addition would wait for the one before.
    """
    width = U(scores.size) // U(2)  # PANEL, as a constant of which LLVM does not vectorize this
    for j in range(U(0), width):
        scores[j] = biases[first + j]
    for j in range(U(0), width):
        scores[width + j] = biases[first + j]
    for k in range(U(0), rank, U(STEP)):
        a, b = vectors[p + k], vectors[p + k + U(1)]
        c, d = vectors[p + k + U(2)], vectors[p + k + U(3)]
        e, f = vectors[r + k], vectors[r + k + U(1)]
        g, h = vectors[r + k + U(2)], vectors[r + k + U(3)]
        q = first * rank + k * U(PANEL)
        for j in range(U(0), U(PANEL)):
            w, x = panels[q + j], panels[q + U(PANEL) + j]
            y, z = panels[q + U(2 * PANEL) + j], panels[q + U(3 * PANEL) + j]
            scores[j] += (a * w + b * x) + (c * y + d * z)
            scores[U(PANEL) + j] += (e * w + f * x) + (g * y + h * z)


# The upper half of a key is the score, so keys sort like scores. The lower half is the complement
# of the item: of equal scores, the first item has the greatest key.


@inline
def _key(score, item):
    bits = np.float32(score).view(np.uint32)
    ordered = ~bits if bits >> np.uint32(31) else bits | np.uint32(SIGN)
    return (np.uint64(ordered) << np.uint64(32)) | np.uint64(~np.uint32(item))


@inline
def _score_of(key):
    ordered = np.uint32(key >> np.uint64(32))
    bits = ordered ^ np.uint32(SIGN) if ordered >> np.uint32(31) else ~ordered
    return np.uint32(bits).view(np.float32)


@inline
def _replace_least(keys, begin, n, key):
    """Replaces the least of n keys, which comes first.

    A few keys are kept in ascending order, without branches to mispredict; many keys are a heap.
    """
    if n > U(FEW):
        _sift(keys, begin, n, key)
        return
    last = begin + n - U(1)
    for k in range(begin, last):
        keys[k] = min(max(keys[k], key), keys[k + U(1)])
    keys[last] = max(keys[last], key)


@inline
def _sift(keys, begin, n, key):
    """Replaces the least key of a heap."""
    k = U(0)
    while True:
        child = U(2) * k + U(1)
        if child >= n:
            break
        if child + U(1) < n and keys[begin + child + U(1)] < keys[begin + child]:
            child += U(1)
        if keys[begin + child] >= key:
            break
        keys[begin + k] = keys[begin + child]
        k = child
    keys[begin + k] = key
