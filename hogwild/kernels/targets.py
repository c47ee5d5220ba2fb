"""The target of a row, and its weight where rows have weights.

For several heads, the target is the number of the row's class, or a bit for each head. The weight
comes after the target.
"""

from functools import cache
from typing import Any

import numpy as np

from hogwild.kernels.compile import always_inline, inline
from hogwild.kernels.primitives import U, bits_of, trailing_zeros

WORD = U(32)  # labels per number of a row's targets, a bit each


@cache
def target_of(weighted: bool) -> Any:
    """(rows, row) -> target, weight: float64, adjacent where rows have weights."""
    if weighted:

        @inline
        def target_and_weight(rows, row):
            place = U(2) * row
            return np.float64(rows.targets[place]), np.float64(rows.targets[place + U(1)])

        return target_and_weight

    @inline
    def target_alone(rows, row):
        return np.float64(rows.targets[row]), 1.0

    return target_alone


@cache
def weight_of(weighted: bool) -> Any:
    """(rows, row, shape) -> the weight of a row of several heads."""
    if weighted:

        @always_inline
        def last(rows, row, shape):
            return np.float64(rows.targets[shape.targets * (row + U(1)) - U(1)])

        return last

    @always_inline
    def one(rows, row, shape):
        return 1.0

    return one


@always_inline
def class_of(rows, row, shape):
    """The number of a row's class."""
    return U(rows.targets[shape.targets * row])


@always_inline
def mark_class(rows, row, shape, sign, signs):
    """Writes a sign for the head of a row's class, if it is learned."""
    head = class_of(rows, row, shape)
    if head >= shape.first and head < shape.end:
        signs[head] = sign


@always_inline
def mark_labels(rows, row, shape, sign, signs):
    """Writes a sign for those heads of a row's labels that are learned."""
    for word in range(shape.first // WORD, (shape.end + WORD - U(1)) // WORD):
        left = np.uint64(bits_of(rows.targets[shape.targets * row + word]))
        while left != np.uint64(0):
            head = WORD * word + U(trailing_zeros(left))
            left &= left - np.uint64(1)
            if head >= shape.first and head < shape.end:
                signs[head] = sign
