"""K heads: scores of a row for all of them at once, and what is added to all their weights.

Of a column, the weights of all heads lie side by side: `width` numbers, K of them in use. A row is
gone through once for a block of them, whose scores stay in registers. `register` is how many
numbers the smallest block has; it divides the width, so a head that is learned in one block, or
with other heads beside it, goes through the same arithmetic.

All functions are `hot`: a call would copy all the arrays of a task to the stack, which takes as
long as sixty non-zeros.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from hogwild.kernels.compile import always_inline
from hogwild.kernels.primitives import U
from hogwild.kernels.vectors import LINE, load, spread, store

BLOCKS = 4, 2, 1  # registers to a block: the more, the fewer times a row is gone through
MOST_TINY = 8  # heads that take less than a cache line


def width_of(heads: int) -> int:
    """Numbers stored for a column: whole cache lines, or a part of one that divides it."""
    if heads > MOST_TINY:
        return -(-heads // LINE) * LINE
    return max(2, 1 << (heads - 1).bit_length())


def register_of(width: int) -> int:
    """How many heads one register has; several workers never share one."""
    return min(width, LINE)


@cache
def scorer(register: int) -> Any:
    """(rows, row, weights, shape, out): the inner products with the weights of some heads."""

    def scoring(block: int) -> Any:
        @always_inline
        def score_blocks(
            rows: Any, row: Any, weights: Any, shape: Any, first: Any, out: Any
        ) -> Any:
            begin, end = U(rows.begins[row]), U(rows.ends[row])
            last = end - U(end > begin and (end - begin) % U(2) == U(1))
            while first + U(block - register) < shape.end:
                # Two sums, since each addition waits for the one before it
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
        def add_blocks(
            rows: Any, row: Any, weights: Any, shape: Any, first: Any, factors: Any
        ) -> Any:
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
    """All heads, in blocks that are as large as fit: `make` gives what goes through such blocks."""
    large, middle, small = (make(block * register) for block in BLOCKS)

    @always_inline
    def divided(rows: Any, row: Any, weights: Any, shape: Any, vector: Any) -> None:
        first = large(rows, row, weights, shape, shape.first, vector)
        first = middle(rows, row, weights, shape, first, vector)
        small(rows, row, weights, shape, first, vector)

    return divided if register == LINE else _for_one(small)


def _for_one(blocks: Any) -> Any:
    """Where all heads are in one register, there is nothing to divide."""

    @always_inline
    def of_one(rows: Any, row: Any, weights: Any, shape: Any, numbers: Any) -> None:
        blocks(rows, row, weights, shape, shape.first, numbers)

    return of_one
