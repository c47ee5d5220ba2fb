"""Workers that go in rounds over a fixed number of shards: `ordered`, and `minibatch`."""

import time
from functools import cached_property
from typing import Any

import numpy as np

from hogwild.kernels import rounds as kernels
from hogwild.kernels.combine import FEWEST, PIECE
from hogwild.kernels.compile import Kernel
from hogwild.parallel.combine_worker import CALMING, TIERS, Tiers
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.row_worker import LATE, LoneWorker
from hogwild.parallel.team import Control
from hogwild.parallel.worker import NAP, Part, Worker
from hogwild.problems.problem import SUMS, Problem, RowProblem
from hogwild.seeds import seed_of
from hogwild.threads import share_of

SHARDS = 8
MOMENTS = 16  # of an epoch, at most: at each of them all columns are merged
STATE = 32  # words
NEAR = 0.75  # how far a slope may be changed by what others do not see yet
AFFORDED = 0.06  # of the time: what merging a tier may take; the copies are many, so often
TOO_FAR = 2.0  # times as far: then the shards together would overshoot, and again on the way back

START = 0  # the phase at whose end workers meet


class OrderedWorker(Worker):
    """Learns from some of the shards; all shards' changes are merged in order, at fixed points.

    Where rows move each other's scores so far that shards would overshoot together, unless they
    were merged too often to be worth it, the first worker learns from all rows, and alone.
    """

    _problem: RowProblem
    goes_by_heat = True

    @property
    def batch(self) -> int:
        """Rows of a batch; 0: learning goes on within a round."""
        return 0

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._shards = share_of(SHARDS, control.workers, rank)
        self._tiers = Tiers(problem, (SHARDS - 1) / SHARDS, NEAR, AFFORDED)
        self._hot_base = np.zeros(len(self._tiers.hot), np.float32)
        self._state = np.zeros(STATE, np.int64)
        self._scratch = np.empty(int(PIECE), np.float32)
        self._bounds = [share_of(problem.units, SHARDS, shard) for shard in range(SHARDS)]
        mine = self._bounds[slice(*self._shards)]
        self._order = np.empty(sum(end - begin for begin, end in mine), np.uint32)

    @classmethod
    def kernels(cls) -> list[Kernel]:
        """What it calls besides the problem's own kernels."""
        return [kernels.learn_in_rounds]

    @classmethod
    def arrays(cls, problem: Problem, workers: int) -> Wanted:
        """The base, a copy for each shard, and lists of changes."""
        assert isinstance(problem, RowProblem)
        size = problem.columns + 1
        return {
            "base": (size, np.float32),
            "copies": (SHARDS * size, np.float32),
            "lists": (2 * SHARDS * TIERS[-1], np.float32),
            "sums": (2 * size if problem.moments else 1, np.float32),
            "barrier": (8, np.int64),
        }

    def _learn(self, part: Part) -> list[tuple[int, float]]:
        self._alone = self._is_for_one(part)
        if self._alone:
            if self._rank == 0:
                return self._lone._learn(part)
            self._control.finish(self._rank)
            return []
        share = self._start()
        parts, longest = self._parts(part)
        losses = np.zeros(SHARDS)
        if self._meet(START):
            self._go(part, share, parts, longest, losses)
        self._finish(share, part.end == 1 and self._problem.moments > 0)
        done = np.minimum(parts[1] - parts[0], np.uint64(self._state[kernels.DONE]))
        self._control.count(self._rank, int(done.sum()))
        self._control.finish(self._rank)
        return [(shard, float(losses[shard])) for shard in range(*self._shards)]

    def _is_for_one(self, part: Part) -> bool:
        """Whether one worker learns alone in this part: not a matter of how many there are."""
        if self.batch:
            return False
        problem, tiers = self._problem, self._tiers
        rate = problem.rate(part.done + int(CALMING * problem.units), part.eta0)
        return rate * float((tiers.moves * np.maximum(FEWEST, tiers.floors)).max()) > TOO_FAR

    @cached_property
    def _lone(self) -> LoneWorker:
        return LoneWorker(self._problem, self._shared, self._control, self._rank)

    def _start(self) -> tuple[int, int]:
        """Makes the copies, and its share of the base. The intercept is the last of the columns."""
        shared, columns = self._shared, self._problem.columns
        whole = np.append(shared["weights"], shared["intercept"])
        begin, end = share_of(columns + 1, self._control.workers, self._rank)
        shared["base"][begin:end] = whole[begin:end]
        copies = shared["copies"].reshape(SHARDS, -1)
        copies[slice(*self._shards)] = 0 if self.batch else whole
        self._hot_base[:] = whole[self._tiers.hot]
        met = self._state[kernels.MET]
        self._state[:] = 0
        self._state[kernels.MET] = met
        return begin, end

    def _parts(self, part: Part) -> tuple[tuple[Any, Any], int]:
        """Where its shards begin and end in the order; and the rows of the longest shard."""
        if part.begin == 0:
            self._shuffle(part.epoch)
        sizes = [end - begin for begin, end in self._bounds]
        ranges = [(int(size * part.begin), int(size * part.end)) for size in sizes]
        mine = slice(*self._shards)
        offsets = np.cumsum([0, *sizes[mine]])[:-1]
        begins, ends = (
            np.array([limits[which] for limits in ranges[mine]], np.uint64)
            + offsets.astype(np.uint64)
            for which in (0, 1)
        )
        return (begins, ends), max(end - begin for begin, end in ranges)

    def _shuffle(self, epoch: int) -> None:
        place = 0
        for shard in range(*self._shards):
            begin, end = self._bounds[shard]
            seed = seed_of(self._problem.seed, epoch, shard)
            self._problem.shuffle(self._order[place : place + end - begin], begin, seed)
            place += end - begin

    def _go(self, part: Part, share: Any, parts: Any, longest: int, losses: Any) -> None:
        rows, how = self._problem.visiting(part.eta0)
        shared, control = self._shared, self._control
        clock = float(part.done), float(part.done), max(1.0, CALMING * self._problem.units)
        names = ("base", "copies", "lists", "sums")
        base, copies, lists, sums = (shared[name] for name in names)
        moments = min(MOMENTS, self._problem.moments) if part.end == 1 else 0
        gap = -(-longest // moments) if moments else 0
        arguments = (
            rows,
            self._order,
            parts,
            (*self._shards, SHARDS),
            how,
            clock,
            (base, copies, self._scratch, self._hot_base, lists, sums),
            self._tiers.arrays,
            (*share, self._rank, control.workers),
            (longest, self.batch // SHARDS, gap, int(LATE * longest)),
            (self._state, shared["barrier"], control.words[2], control.words[0]),
            losses,
        )
        while not kernels.learn_in_rounds(*arguments) and control.goes_on():
            began = time.monotonic()
            time.sleep(NAP)
            self._waited += time.monotonic() - began
        self._merged += 1e-9 * int(self._state[kernels.MERGING])
        self._waited += 1e-9 * int(self._state[kernels.WAITING])

    def _finish(self, share: tuple[int, int], moments: bool) -> None:
        """Writes its share of what was learned to where everyone looks for it.

        Where an epoch goes in parts, the means are over the last of them.
        """
        self._write(self._shared["base"], "", share)
        if moments:
            size = self._problem.columns + 1
            for which, prefix in enumerate(SUMS):
                self._write(self._shared["sums"][which * size :], prefix, share)
            if self._rank == 0:
                counts = self._state[[kernels.EARLY, kernels.LATE]]
                self._control.add_moments(*(int(count) for count in counts))

    def _write(self, source: Any, prefix: str, share: tuple[int, int]) -> None:
        begin, end = share
        columns = self._problem.columns
        weights = slice(begin, min(end, columns))
        self._shared[prefix + "weights"][weights] = source[weights]
        if end == columns + 1:
            self._shared[prefix + "intercept"][0] = source[columns]


class MinibatchWorker(OrderedWorker):
    """Sums up the gradients of a batch of rows at one point; then all take one step."""

    @property
    def batch(self) -> int:
        """Rows of a batch."""
        return self._problem.batch
