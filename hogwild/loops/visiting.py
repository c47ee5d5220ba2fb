"""Visiting rows: the innermost loop, which all loops share."""

import math
from functools import cache
from typing import Any

import numpy as np

from hogwild.kernels.compile import inline
from hogwild.kernels.primitives import U
from hogwild.kernels.rows import fetch_ahead, fetch_weights
from hogwild.steps.step import Step


@cache
def width_of(step: Step) -> Any:
    """task -> numbers stored for a column: a constant where the step has one."""
    width = step.width
    if width:
        return _constant(width)

    @inline
    def variable(task: Any) -> Any:
        return task.shape.width

    return variable


@cache
def learned_of(step: Step) -> Any:
    """task -> the first of the numbers of a column that are learned, and the one after the last."""
    width = step.width
    if width:

        @inline
        def constant(task: Any) -> Any:
            return U(0), U(width)

        return constant

    @inline
    def variable(task: Any) -> Any:
        return task.shape.first, task.shape.end

    return variable


@cache
def _targets_of(step: Step) -> Any:
    """task -> numbers in the targets for each row: a constant where the step has one."""
    if step.targets:
        return _constant(step.targets)

    @inline
    def variable(task: Any) -> Any:
        return task.shape.targets

    return variable


@cache
def _constant(number: int) -> Any:
    @inline
    def constant(task: Any) -> Any:
        return U(number)

    return constant


@cache
def _fetcher(step: Step) -> Any:
    """(task, row, weights): asks for the weights of a row that are learned."""
    width, learned = width_of(step), learned_of(step)

    @inline
    def fetch_near(task: Any, row: Any, weights: Any) -> None:
        first, end = learned(task)
        fetch_weights(task.rows, row, weights, width(task), first, end)

    return fetch_near


@cache
def visitor(step: Step) -> Any:
    """(task, span, stored, clock) -> the sum of the losses.

    Visits the rows at some places of an order, one step on each. Rows that come later are fetched
    into the cache meanwhile: a random order costs little.
    """
    look, write, fetch_near, targets = step.look, step.write, _fetcher(step), _targets_of(step)

    @inline
    def visit(task: Any, span: Any, stored: Any, clock: Any) -> Any:
        begin, end = span
        rows, order, fetching = task.rows, task.order, task.fetching
        last = U(order.size) - U(1)
        near = fetching.weights_ahead
        sums = 0.0, 1.0
        for i in range(begin, end):
            if near > U(0):  # before the rows, which come from farther away: a third faster
                row = U(order[min(i + near, last)])
                fetch_near(task, row, stored.read)
            if fetching.ahead > U(0):
                fetch_ahead(rows, order, i, fetching, targets(task))
            row = U(order[i])
            t = clock.done + clock.pace * np.float64(i - begin + U(1))
            sums = look(task, row, stored, t, sums)
            write(task, row, stored, t)
        total, product = sums
        return total + math.log(product)

    return visit
