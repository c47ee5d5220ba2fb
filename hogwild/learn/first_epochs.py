"""Epochs of stochastic gradient descent that a method of whole passes may begin with.

One thread visits the rows in a random order, so the result is the same for any number of workers.
Far from the optimum an epoch gains more than many products with a Hessian.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels.compile import Kernel
from hogwild.kernels.order import shuffle
from hogwild.kernels.views import Clock, Fetching, Span, Stored, task_of, view
from hogwild.learn.heads import Heads, zeros_on_a_line
from hogwild.learn.problem import Now, Passed
from hogwild.learn.sets import Set
from hogwild.learn.sgd import Sgd
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from hogwild.seeds import seed_of

MOST = 10
ENOUGH = 0.03  # share by which the loss must fall in an epoch, for another one to be of use
# Rows ahead, cache lines of each, and rows ahead whose weights are fetched: on RCV1's shape with 20
# classes an epoch takes 17 ms, and 26 without
FETCHING = view(Fetching, 4, 16, 1)
CURVATURE = 0.5  # of cross-entropy by the scores, at most


class FirstEpochs:
    """The epochs, and what they need."""

    def __init__(self, config: Config, heads: Heads, data: Set, intercept_share: float) -> None:
        known = replace(config, solver="sgd", schedule="inverse")
        self._sgd = Sgd(known, heads, data, intercept_share)
        self._heads, self._data, self._seed = heads, data, config.seed

    @property
    def kernels(self) -> list[Kernel]:
        """All that will be called."""
        return [shared_loop(self._sgd.step), shuffle]

    def learn(self, size: int, passed: Passed) -> npt.NDArray[np.float32]:
        """Weights, with the intercepts behind them, from zero weights on; `size` numbers.

        At twice the rate of 1 / curvature, beyond which steps along a typical row overshoot.
        """
        rows, width = self._data.view, self._heads.width
        stored = zeros_on_a_line(size)
        square = float(np.mean(np.square(rows.values, dtype=np.float64)))
        square *= float((rows.ends - rows.begins).mean())
        rate = 2.0 / (CURVATURE * square) if square > 0.0 else 1.0
        bias, order = np.zeros(width, np.float32), np.empty(len(self._data), np.uint32)
        state = np.empty(0, np.float32)
        before = np.inf
        for epoch in range(MOST):
            done = epoch * len(order)
            shuffle(order, 0, np.uint64(seed_of(self._seed, epoch + 1, 0)))
            plan, shape = self._sgd.plan(done, rate), self._heads.shape(self._data.weighted)
            task = task_of(rows, order, self._heads.scratch(), shape, plan, FETCHING)
            arrays = view(Stored, stored, stored, bias, bias, state)
            span, clock = view(Span, 0, len(order)), view(Clock, done, 1)
            loss = shared_loop(self._sgd.step)(task, span, arrays, clock, NO_SNAPSHOTS)
            # What is stored is divided by what the penalty left, but for the intercepts
            stored[:-width] *= self._sgd.scale(Now(done + len(order), done, rate))
            if not passed() or not loss < (1.0 - ENOUGH) * before:
                break
            before = loss
        return stored
