"""Workers that train on blocks of ratings: `strata`, and `hogwild` for factorization."""

from collections.abc import Callable

import numpy as np

from hogwild.learn.problem import BlockProblem, Share
from hogwild.loops.worker import Worker
from hogwild.seeds import seed_of

Phase = list[tuple[int, int]]  # tasks that may run at the same time: two bands each
Phases = Callable[[int, int, int], list[Phase]]  # (bands, seed, epoch)


def any_order(bands: int, seed: int, epoch: int) -> list[Phase]:
    """All tasks in one phase, in a random order: two may touch the same rows at the same time."""
    order = np.random.default_rng(seed_of(seed, epoch)).permutation(bands * bands)
    return [[(int(task) // bands, int(task) % bands) for task in order]]


def diagonals(bands: int, seed: int, epoch: int) -> list[Phase]:
    """As many phases as bands, in a random order: no two tasks of a phase touch the same rows.

    A worker that does neighboring tasks finds most of their rows in its cache in the next phase.
    """
    order = np.random.default_rng(seed_of(seed, epoch)).permutation(bands).tolist()
    return [
        [(band, order[(band + phase) % bands]) for band in range(bands)] for phase in range(bands)
    ]


class BlockWorker(Worker):
    """A worker that takes tasks of a phase until all are done.

    Which worker does a task is random. The result is still deterministic if no two tasks of a
    phase touch the same rows.
    """

    _problem: BlockProblem
    phases: Phases

    def _learn(self, share: Share) -> list[tuple[int, float]]:
        phases = self.phases(self._problem.bands, self._problem.seed, share.epoch)
        losses = []
        done = 0
        for number, tasks in enumerate(phases):
            for mine in self._tasks(number, len(tasks)):
                units, loss = self._problem.learn(
                    self._shared, tasks[mine], share.epoch, share.eta0
                )
                losses.append((number * len(tasks) + mine, loss))
                done += units
                self._control.count(self._rank, done)
            if number + 1 < len(phases):
                self._wait_for_all(number, len(tasks))
        self._control.finish(self._rank)
        return losses


class StrataWorker(BlockWorker):
    """Takes blocks that share no rows with those of other workers (Gemulla et al. 2011)."""

    phases = staticmethod(diagonals)


class RacingBlockWorker(BlockWorker):
    """Takes any block, even if another worker is at the same rows."""

    phases = staticmethod(any_order)
