"""How far from 0 the intercept of an optimum, which is not penalized, can be.

Dual variables a whose mean is not 0 prove less: with the intercept b of an optimum, the objective
is D(a) - b * mean of a at least. For the losses with a dual form, some row keeps b from going on:

    hinge and squared hinge: one of each class has a margin of at most 1
    losses of numbers: b lies between the least and the largest error of the weights alone, but
        for the width of a tube
    logistic: as many slopes on both sides, so b is at most log(2 * the share of the classes) more

so |b| is at most a number of the data plus |<w, x>|, and |w| follows from the objective, since no
loss is below 0: l2/2 |w|^2 <= P.
"""

import math

import numpy as np

from hogwild.computed import cached_property
from hogwild.kernels.dual import longest
from hogwild.kernels.views import Span, view
from hogwild.learn.sets import Set

ROUNDED = 1.001  # a squared length, which is found in single precision


class Farthest:
    """How far from 0 the best intercept can be."""

    def __init__(self, loss: str, data: Set, l2: float, parameter: float) -> None:
        self._loss, self._data, self._l2, self._parameter = loss, data, l2, parameter

    def less(self, mean: float, objective: float) -> float:
        """By how much a dual objective proves less if a has this mean.

        `objective` is that of any weights.
        """
        if mean == 0.0:
            return 0.0
        if not math.isfinite(objective):
            return math.inf
        length = math.sqrt(2.0 * max(0.0, objective) / self._l2)
        return abs(mean) * (self._alone + self._longest * length)

    @cached_property
    def _longest(self) -> float:
        found = 0.0
        for rows, span in self._data.pieces(view(Span, 0, len(self._data))):
            mine = slice(int(span.begin), int(span.end))
            some = rows._replace(begins=rows.begins[mine], ends=rows.ends[mine])
            found = max(found, float(longest(some)))
        return math.sqrt(ROUNDED * found)

    @cached_property
    def _alone(self) -> float:
        """Where weights are 0."""
        known = self._data.view.targets.reshape(len(self._data), -1).astype(np.float64)
        weights = known[:, 1] if self._data.weighted else np.ones(len(known))
        found = float(np.max(np.abs(known[:, 0]) * (weights > 0.0)))
        found += 1.0 + abs(self._parameter)
        if self._loss != "logistic":
            return found
        sides = [float(weights[known[:, 0] * sign > 0.0].sum()) for sign in (-1.0, 1.0)]
        return found + math.log(2.0 * max(sides) / min(sides)) if min(sides) else math.inf
