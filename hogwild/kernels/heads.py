"""K heads: all scores of a row at once, and updates of the weights of all heads.

The weights of all heads for a column are adjacent: `width` numbers, K of them in use. A row is read
once per block of heads, whose scores stay in registers. `register` is the size of the smallest
block. It divides the width, so the arithmetic for a head does not depend on the blocks.

All functions are inlined. A call would copy all the arrays of a task to the stack, which takes as
long as processing sixty non-zeros.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from hogwild.kernels.compile import always_inline
from hogwild.kernels.primitives import U
from hogwild.kernels.vectors import LINE, load, spread, store

BLOCKS = 4, 2, 1  # registers per block: the more, the less often a row is read
MOST_TINY = 8  # heads, at most, that take less than a cache line


def width_of(heads: int) -> int:
    """Numbers stored for a column: whole cache lines, or a part of one that divides it."""
    if heads > MOST_TINY:
        return -(-heads // LINE) * LINE
    return max(2, 1 << (heads - 1).bit_length())


def register_of(width: int) -> int:
    """The number of heads in a register; workers never share one."""
    return min(width, LINE)


@cache
def scorer(register: int) -> Any:
    """(rows, row, weights, shape, out): the inner products with the weights of some heads."""

    def scoring(block: int) -> Any:
        @always_inline
        def score_blocks(rows, row, weights, shape, first, out):
            begin, end = U(rows.begins[row]), U(rows.ends[row])
            last = end - U(end > begin and (end - begin) % U(2) == U(1))
            while first + U(block - register) < shape.end:
                # Two sums run side by side, since each addition waits for the one before
                sums, others = spread(np.float32(0), block), spread(np.float32(0), block)
                for k in range(begin, last, U(2)):
                    place = shape.width * U(rows.columns[k]) + first
                    sums = sums + rows.values[k] * load(weights, place, block)
                    place = shape.width * U(rows.columns[k + U(1)]) + first
                    others = others + rows.values[k + U(1)] * load(weights, place, block)
                if last < end:
                    place = shape.width * U(rows.columns[last]) + first
                    sums = sums + rows.values[last] * load(weights, place, block)
                store(out, first, sums + others)
                first += U(block)
            return first

        return score_blocks

    return _in_blocks(scoring, register)


@cache
def head_adder(register: int) -> Any:
    """(rows, row, weights, shape, factors): weights <- weights + row * factors of some heads."""

    def adding(block: int) -> Any:
        @always_inline
        def add_blocks(rows, row, weights, shape, first, factors):
            while first + U(block - register) < shape.end:
                steps = load(factors, first, block)
                for k in range(U(rows.begins[row]), U(rows.ends[row])):
                    place = shape.width * U(rows.columns[k]) + first
                    new = load(weights, place, block) + rows.values[k] * steps
                    store(weights, place, new)  # races where shared: may get lost
                first += U(block)
            return first

        return add_blocks

    return _in_blocks(adding, register)


def _in_blocks(make: Callable[[int], Any], register: int) -> Any:
    """All heads, in the largest blocks that fit: `make` returns a function for a size of blocks."""
    large, middle, small = (make(block * register) for block in BLOCKS)

    @always_inline
    def divided(rows, row, weights, shape, vector):
        first = shape.first
        if register == LINE:  # else all heads are in one
            first = large(rows, row, weights, shape, first, vector)
            first = middle(rows, row, weights, shape, first, vector)
        small(rows, row, weights, shape, first, vector)

    return divided
