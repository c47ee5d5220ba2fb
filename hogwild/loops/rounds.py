"""`ordered` and `minibatch`: rounds over a fixed number of shards; the same outcome on any workers.

In a round, some rows of every shard are learned from, each on the shard's own copy of the weights;
then the changes of all shards are merged (see `kernels/merging.py`). Between the two, workers wait
for each other. All happens at points that depend on the rows done alone.

In a round of a batch, nobody learns before it ends: the copies hold changes only.
"""

import time
from functools import cache, cached_property
from typing import Any

import numpy as np
from numba import types

from hogwild.kernels.atomic import LOOKS, SLOT, add_to, look_until
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.compile import Kernel, inline
from hogwild.kernels.exchange import FEWEST, PIECE, Tiers
from hogwild.kernels.merging import (
    AFTER,
    DONE,
    EARLY,
    ENDING,
    HALF,
    LEARNING,
    MERGING,
    MERGING_FREQUENT,
    MET,
    SIZE,
    STAGE,
    STATE,
    UPTO,
    WAITING,
    WHOLE,
    Merged,
    Rounds,
    add_snapshot_of,
    first_list,
    merge_all,
    merge_frequent,
    pass_on,
    plan_round,
    set_frequent,
)
from hogwild.kernels.primitives import U
from hogwild.kernels.views import Clock, Stored, task_type, type_of, view
from hogwild.learn.problem import SUMS, RowProblem, Share
from hogwild.loops.combine import TIERS, WARM_UP, places_of, tiers_of
from hogwild.loops.shared import LATE, LoneWorker
from hogwild.loops.visiting import visitor
from hogwild.loops.worker import NAP, Worker
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.team import Control
from hogwild.seeds import seed_of
from hogwild.steps.step import Step
from hogwild.threads import share_of

SHARDS = 8
SNAPSHOTS = 16  # of an epoch, at most: at each of them all columns are merged
NEAR = 0.75  # how far a slope may be changed by what others do not see yet
AFFORDED = 0.06  # of the time: what merging a tier may take; the copies are many, so often
TOO_FAR = 2.0  # times as far: then the shards together would overshoot, and again on the way back
START = 0  # the phase at whose end workers wait for each other


@cache
def shards_loop(step: Step) -> Any:
    """Learns from this round's rows of some shards; the nanoseconds of passing changes on."""
    visit, fixed = visitor(step), step.width

    @inline
    def learn_shards(task, now, tiers, rounds, merged):
        base, copies, state = merged.base, merged.copies, merged.state
        from_zero = rounds.batch > 0
        width = U(fixed) if fixed else task.shape.width
        size = U(base.size)
        bias, listed = size - width, U(merged.frequent.size)
        upto = U(0) if from_zero else U(state[UPTO])
        merging = np.int64(0)
        for shard in range(rounds.first, rounds.end):
            limit = np.int64(merged.stops[shard - rounds.first])
            first = np.int64(merged.begins[shard - rounds.first]) + state[DONE]
            span = U(min(first, limit)), U(min(first + state[SIZE], limit))
            copy = copies[shard * size : (shard + U(1)) * size]
            read = base if from_zero else copy
            stored = Stored(read, copy, read[bias:], copy[bias:])
            clock = Clock(now, np.float64(rounds.shards))
            merged.losses[shard] += visit(task, span, stored, clock)
            began = nanoseconds()
            changes = merged.lists[first_list(rounds, merged) + shard * listed :]
            pass_on(copy, tiers.columns, width, merged.frequent, upto, changes)
            merging += nanoseconds() - began
        return merging

    return learn_shards


@cache
def rounds_loop(step: Step) -> Kernel:
    """The kernel that goes through rounds: True when all rows are done or it should stop, False
    where it waited for others too long."""
    learn_shards, fixed = shards_loop(step), step.width
    reach, scale_of = step.reach, step.scale

    def learn(task, clock, tiers, rounds, merged):
        # The task's order has the rows of this worker's shards, one shard after the other;
        # clock: steps done before this part, and in how many steps training has warmed up
        state, from_zero = merged.state, rounds.batch > 0
        width = U(fixed) if fixed else task.shape.width
        while True:
            at = state[DONE]
            now = clock.done + np.float64(at) * np.float64(rounds.shards)
            if state[STAGE] == LEARNING:
                if at >= rounds.longest or merged.stop[0] != 0:
                    return True
                rate, warmth = reach(task.plan, max(1.0, now)), min(1.0, now / clock.pace)
                plan_round(state, rounds, tiers, rate, warmth)
                state[MERGING] += learn_shards(task, now, tiers, rounds, merged)
                done = (at + state[SIZE]) * np.int64(rounds.end - rounds.first)
                merged.steps[rounds.rank * SLOT] = done
                state[STAGE] = MERGING_FREQUENT
                state[MET] += 1
                add_to(merged.barrier, U(0), np.int64(1))

            began = nanoseconds()
            wanted = state[MET] * np.int64(rounds.workers)
            there = look_until(merged.barrier, U(0), wanted, LOOKS)
            met_at = nanoseconds()
            state[WAITING] += met_at - began
            if not there:
                return merged.stop[0] != 0
            if state[STAGE] == ENDING or state[WHOLE] == 0:
                if not from_zero and state[STAGE] == MERGING_FREQUENT:
                    merge_frequent(rounds, merged, tiers.columns, width)
                state[HALF] = 1 - state[HALF]
                state[DONE] += state[SIZE]
                state[STAGE] = LEARNING
            else:
                merge_all(rounds, merged)
                if not from_zero:
                    set_frequent(rounds, merged, tiers.columns, width)
                after = at + state[SIZE]
                if rounds.gap > 0 and after % rounds.gap == 0:
                    late = after > rounds.late_from
                    t = clock.done + np.float64(after * np.int64(rounds.shards))
                    add_snapshot_of(rounds, merged, width, late, scale_of(task.plan, t))
                state[STAGE] = ENDING
                state[MET] += 1
                add_to(merged.barrier, U(0), np.int64(1))
            state[MERGING] += nanoseconds() - met_at

    kinds = (type_of(kind) for kind in (Clock, Tiers, Rounds, Merged))
    signature = types.boolean(task_type(step.plan), *kinds)
    return Kernel(learn, signature, name=f"rounds-{step.name}")


class OrderedWorker(Worker):
    """Learns from some of the shards; all shards' changes are merged in order, at fixed points.

    If rows overlap so much that shards would overshoot together, unless they were merged too often
    to be worth it, the first worker learns from all rows, and the others wait.
    """

    _problem: RowProblem
    uses_frequency = True
    kernel = staticmethod(rounds_loop)

    @property
    def batch(self) -> int:
        """Rows of a batch; 0: learning goes on within a round."""
        return 0

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._first, self._end = share_of(SHARDS, control.workers, rank)
        self._share = share_of(problem.size, control.workers, rank)
        self._tiers = tiers_of(problem, (SHARDS - 1) / SHARDS, NEAR, AFFORDED)
        self._listed = places_of(self._tiers.columns, problem.width)
        self._frequent = np.zeros(len(self._listed), np.float32)
        self._scratch = np.empty(int(PIECE), np.float32)
        self._state = np.zeros(STATE, np.int64)
        self._bounds = [share_of(problem.units, SHARDS, shard) for shard in range(SHARDS)]
        bounds = self._bounds[self._first : self._end]
        self._order = np.empty(sum(end - begin for begin, end in bounds), np.uint32)

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        """What it calls."""
        return [cls.kernel(problem.step), *LoneWorker.kernels(problem)]

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """The base, a copy for each shard, and lists of changes."""
        size = problem.size
        return {
            "base": (size, np.float32),
            "copies": (SHARDS * size, np.float32),
            "lists": (2 * SHARDS * problem.width * TIERS[-1], np.float32),
            "sums": (2 * size if problem.snapshots else 1, np.float32),
            "barrier": (8, np.int64),
        }

    def _learn(self, share: Share) -> list[tuple[int, float]]:
        self._alone = self._is_for_one(share)
        if self._alone:
            if self._rank == 0:
                return self._lone._learn(share)
            self._control.finish(self._rank)
            return []
        self._start()
        begins, stops, longest = self._places(share)
        losses = np.zeros(SHARDS)
        if self._wait_for_everyone(START):
            self._go(share, (losses, begins, stops), longest)
        self._finish(share.end == 1 and self._problem.snapshots > 0)
        done = np.minimum(stops - begins, np.uint64(self._state[DONE]))
        self._control.count(self._rank, int(done.sum()))
        self._control.finish(self._rank)
        return [(shard, float(losses[shard])) for shard in range(self._first, self._end)]

    def _is_for_one(self, share: Share) -> bool:
        """Whether one worker learns alone in this part: not a matter of how many there are."""
        if self.batch:
            return False
        problem, tiers = self._problem, self._tiers
        plan = problem.plan(share)
        rate = float(problem.step.reach(plan, share.done + int(WARM_UP * problem.units)))
        far = rate * float((tiers.coupling * np.maximum(FEWEST, tiers.fewest_rows)).max())
        return far > TOO_FAR

    @cached_property
    def _lone(self) -> LoneWorker:
        return LoneWorker(self._problem, self._shared, self._control, self._rank)

    def _start(self) -> None:
        """Makes the copies, and its share of the base."""
        whole, mine = self._shared["stored"], slice(*self._share)
        self._shared["base"][mine] = whole[mine]
        copies = self._shared["copies"].reshape(SHARDS, -1)
        copies[self._first : self._end] = 0 if self.batch else whole
        self._frequent[:] = whole[self._listed]
        met = self._state[MET]
        self._state[:] = 0
        self._state[MET] = met

    def _places(self, share: Share) -> tuple[Any, Any, int]:
        """Where its shards begin and end in the order; and the rows of the longest shard."""
        if share.begin == 0:
            self._shuffle(share.epoch)
        sizes = [end - begin for begin, end in self._bounds]
        ranges = [(int(size * share.begin), int(size * share.end)) for size in sizes]
        mine = slice(self._first, self._end)
        offsets = np.cumsum([0, *sizes[mine]])[:-1].astype(np.uint64)
        begins, ends = (
            np.array([limits[which] for limits in ranges[mine]], np.uint64) + offsets
            for which in (0, 1)
        )
        return begins, ends, max(end - begin for begin, end in ranges)

    def _shuffle(self, epoch: int) -> None:
        place = 0
        for shard in range(self._first, self._end):
            begin, end = self._bounds[shard]
            seed = seed_of(self._problem.seed, epoch, shard)
            self._problem.shuffle(self._order[place : place + end - begin], begin, seed)
            place += end - begin

    def _go(self, share: Share, own: tuple[Any, ...], longest: int) -> None:
        """Goes through rounds; `own` are sums of losses, and where its shards begin and stop."""
        problem, control, shared = self._problem, self._control, self._shared
        snapshots = min(SNAPSHOTS, problem.snapshots) if share.end == 1 else 0
        gap = -(-longest // snapshots) if snapshots else 0
        mine = self._first, self._end, SHARDS, *self._share, self._rank, control.workers
        steps, _, stop = control.words
        arguments = (
            problem.task(self._order, share),
            view(Clock, share.done, max(1.0, WARM_UP * problem.units)),
            self._tiers,
            view(Rounds, *mine, longest, self.batch // SHARDS, gap, int(LATE * longest)),
            view(
                Merged,
                shared["base"],
                shared["copies"],
                self._scratch,
                self._frequent,
                shared["lists"],
                shared["sums"],
                *own,
                self._state,
                shared["barrier"],
                stop,
                steps,
            ),
        )
        while not self.kernel(problem.step)(*arguments) and control.goes_on():
            began = time.monotonic()
            time.sleep(NAP)
            self._waited += time.monotonic() - began
        self._merged += 1e-9 * int(self._state[MERGING])
        self._waited += 1e-9 * int(self._state[WAITING])

    def _finish(self, snapshots: bool) -> None:
        """Writes its share of what was learned to where everyone looks for it.

        Where an epoch goes in parts, the means are over the last of them.
        """
        mine = slice(*self._share)
        self._shared["stored"][mine] = self._shared["base"][mine]
        if snapshots:
            for name, sums in zip(SUMS, self._shared["sums"].reshape(2, -1), strict=True):
                self._shared[name][mine] = sums[mine]
            if self._rank == 0:
                self._control.add_snapshots(int(self._state[EARLY]), int(self._state[AFTER]))


class MinibatchWorker(OrderedWorker):
    """Sums up the gradients of a batch of rows at one point; then all take one step."""

    @property
    def batch(self) -> int:
        """Rows of a batch."""
        return self._problem.batch
