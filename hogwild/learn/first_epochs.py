"""Epochs of stochastic gradient descent that a method of whole passes may begin with.

One thread visits the rows in a random order, so the result is the same for any number of workers.
Far from the optimum an epoch gains more than many products with a Hessian, or than some quadratic
models of the losses.
"""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels.compile import Kernel
from hogwild.kernels.order import shuffle
from hogwild.kernels.views import Clock, Fetching, Span, Stored, task_of, view
from hogwild.learn.heads import Heads
from hogwild.learn.losses import LOSSES
from hogwild.learn.problem import Now, Passed
from hogwild.learn.sets import Set
from hogwild.learn.sgd import Sgd
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from hogwild.seeds import seed_of

Floats = npt.NDArray[np.float32]

MOST = 10
ENOUGH = 0.03  # share by which the loss must fall in an epoch for another epoch to be useful
# Rows ahead whose weights are fetched, at least: on RCV1's shape with 20 classes an epoch takes
# 17 ms, and 26 without any fetching
WEIGHTS_AHEAD = 1
LONGEST = 2.0  # times 1 / curvature: longer steps along a typical row would overshoot
# With an L1 penalty: half of that, as losses may be squares; rows between two steps along it, which
# may take as long as so many passes; and rows after which the square of the rate is halved
ROWS, AFFORDED, HALVED = 640, 4.0, 1024.0


class FirstEpochs:
    """The epochs, and what they need.

    Attributes:
        bound: a lower bound of the optimum: none is found.
    """

    bound = -math.inf

    def __init__(self, config: Config, heads: Heads, data: Set, intercept_share: float) -> None:
        self._l1, self._l2 = config.l1, float(config.l2 or 0.0)
        known = replace(config, solver="sgd", schedule="inverse")
        if self._l1:
            known = replace(known, l1=0.0, l2=0.0)
        self._sgd = Sgd(known, heads, data, intercept_share)
        self._heads, self._data, self._seed = heads, data, config.seed
        curvature = LOSSES[config.loss_name].curvature * data.typical_square()
        self._rate = LONGEST / curvature if curvature > 0.0 else 1.0

    @property
    def kernels(self) -> list[Kernel]:
        """All that will be called."""
        return [shared_loop(self._sgd.step), shuffle]

    def learn(self, stored: Floats, passed: Passed, fetching: Fetching) -> None:
        """Learns weights, with the intercepts behind them, from zero weights on."""
        size, width, before = len(self._data), self._heads.width, np.inf
        ahead = max(WEIGHTS_AHEAD, fetching.weights_ahead)
        fetching = view(Fetching, fetching.ahead, fetching.lines, ahead)
        for epoch in range(MOST):
            done = epoch * size
            loss = self._visit(stored, self._shuffled(epoch), self._rate, done, fetching)
            # What is stored is divided by what the penalty left, but for the intercepts
            stored[:-width] *= self._sgd.scale(Now(done + size, done, self._rate))
            if not passed() or not loss < (1.0 - ENOUGH) * before:
                break
            before = loss

    def learn_sparse(self, stored: Floats, fetching: Fetching, passed: Passed) -> None:
        """The same in one epoch, with an L1 penalty: many weights are 0.

        The penalty of many rows is applied in one step (Langford, Li and Zhang, "Sparse online
        learning via truncated gradient", 2009): half of it before these rows, half after. The last
        step is a whole one, which leaves more zeros.
        """
        size, order = len(self._data), self._shuffled(0)
        parts = 1 + min(size // ROWS, int(AFFORDED * self._data.nonzeros / len(stored)))
        weights = stored[: -self._heads.width]
        length = 0.0  # of the steps along the gradient of the penalty
        for begin, end in pairwise(size * part // parts for part in range(parts + 1)):
            rate = 0.5 * self._rate / np.sqrt(1.0 + 0.5 * (begin + end) / HALVED)
            half = 0.5 * rate * (end - begin)
            self._shrink(weights, length + half)
            self._visit(stored, order[begin:end], rate, begin, fetching)
            length = half
            if not passed(1.0 / parts):
                break
        self._shrink(weights, 2.0 * length)

    def _shrink(self, weights: Floats, length: float) -> None:
        """Makes a step of this length towards the minimum of the penalty."""
        taken = np.float32(length * self._l1)
        weights -= np.clip(weights, -taken, taken)
        weights *= np.float32(1.0 / (1.0 + length * self._l2))

    def _shuffled(self, epoch: int) -> npt.NDArray[np.uint32]:
        order = np.empty(len(self._data), np.uint32)
        shuffle(order, 0, np.uint64(seed_of(self._seed, epoch + 1, 0)))
        return order

    def _visit(
        self,
        stored: Floats,
        order: npt.NDArray[np.uint32],
        rate: float,
        done: int,
        fetching: Fetching,
    ) -> float:
        """Learns from rows; the sum of their losses before each step."""
        width = self._heads.width
        plan, shape = self._sgd.plan(done, rate), self._heads.shape(self._data.weighted)
        own, bias = self._heads.scratch(), np.zeros(width, np.float32)
        task = task_of(self._data.view, order, own, shape, plan, fetching)
        arrays = view(Stored, stored, stored, bias, bias, stored[:0])
        span, clock = view(Span, 0, len(order)), view(Clock, done, 1)
        return float(shared_loop(self._sgd.step)(task, span, arrays, clock, NO_SNAPSHOTS))
