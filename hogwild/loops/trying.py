"""A trial of a learning rate on a few rows, with the mean of the weights over the later half."""

from functools import cache

import numpy as np
from numba import types

from hogwild.kernels.averages import add_times
from hogwild.kernels.compile import Kernel
from hogwild.kernels.primitives import U
from hogwild.kernels.views import FLOATS, UINT, Clock, Stored, task_type, type_of
from hogwild.loops.shared import going_through
from hogwild.steps.step import Step


@cache
def trial_loop(step: Step) -> Kernel:
    """The kernel that learns from rows in pieces, and averages the weights after later pieces."""
    go_through, scale_of, fixed = going_through(step), step.scale, step.width

    def try_out(task, stored, pieces, mean):
        weights = stored.read
        width = U(fixed) if fixed else task.shape.width
        size, last = U(task.order.size), U(weights.size) - width
        scale = 1.0
        for piece in range(U(0), pieces):
            span = size * piece // pieces, size * (piece + U(1)) // pieces
            clock = Clock(np.float64(span[0]), 1.0)
            go_through(task, span, stored, clock)
            scale = scale_of(task.plan, np.float64(span[1]))
            if U(2) * piece >= pieces:
                share = 2.0 / np.float64(pieces)
                add_times(weights[:last], np.float32(share * scale), np.float32(1), mean[:last])
                add_times(weights[last:], np.float32(share), np.float32(1), mean[last:])
        for k in range(U(0), last):
            weights[k] *= np.float32(scale)

    signature = types.void(task_type(step.plan), type_of(Stored), UINT, FLOATS)
    return Kernel(try_out, signature, name=f"try-{step.name}")
