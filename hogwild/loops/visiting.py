"""The innermost loop, which visits rows. All loops share it."""

import math
from functools import cache
from typing import Any

import numpy as np

from hogwild.kernels.compile import inline
from hogwild.kernels.primitives import U
from hogwild.kernels.rows import fetch_ahead, fetch_weights
from hogwild.steps.step import Step


@cache
def visitor(step: Step) -> Any:
    """(task, span, stored, clock) -> the sum of the losses.

    Visits the rows at some places of an order, with one step on each. Meanwhile, later rows are
    fetched into the cache, so a random order costs little.
    """
    look, write, targets, fixed = step.look, step.write, step.targets, step.width

    @inline
    def visit(task, span, stored, clock):
        begin, end = span
        rows, order, fetching = task.rows, task.order, task.fetching
        width = U(fixed) if fixed else task.shape.width
        learned = (U(0), width) if fixed else (task.shape.first, task.shape.end)
        numbers = U(targets) if targets else task.shape.targets
        last = U(order.size) - U(1)
        near = fetching.weights_ahead
        sums = 0.0, 1.0
        for i in range(begin, end):
            if near > U(0):  # weights before rows, which come from farther away: a third faster
                row = U(order[min(i + near, last)])
                fetch_weights(rows, row, stored.read, width, learned[0], learned[1])
            if fetching.ahead > U(0):
                fetch_ahead(rows, order, i, fetching, numbers)
            row = U(order[i])
            t = clock.done + clock.pace * np.float64(i - begin + U(1))
            sums = look(task, row, stored, t, sums)
            write(task, row, stored, t)
        total, product = sums
        return total + math.log(product)

    return visit
