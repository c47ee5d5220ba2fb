"""`ordered` and `minibatch`: rounds over a fixed number of shards.

The result is the same with any number of workers. A round has two parts. First, every shard learns
from some of its rows, on its own copy of the weights. Then the changes of all shards are merged, in
the order of the shards. Workers wait for each other between the two parts. The points at which this
happens depend only on the number of rows done.

The most frequent columns are merged in every round, from lists of their changes; rarer columns are
merged less often (see `kernels/exchange.py`). `width` is the number of values stored for a column.

Exact steps must see the changes of other workers soon, even if the cores are busy with other work.
For such steps, `combine` also goes through rounds, with a shard for each worker.

With `minibatch`, a round is a batch. Weights stay fixed within it: the copies hold changes only.
"""

import time
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types

from hogwild.computed import cached_property
from hogwild.kernels.atomic import LOOKS, SLOT, add_to, look_until
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.compile import Kernel, inline
from hogwild.kernels.exchange import FEWEST, MOST, PIECE, Tiers, rows_until
from hogwild.kernels.primitives import U
from hogwild.kernels.views import (
    Clock,
    Doubles,
    Floats,
    Places,
    Signed,
    Stored,
    Words,
    task_type,
    type_of,
    view,
)
from hogwild.learn.problem import SUMS, RowProblem, Share
from hogwild.loops.combine import TIERS, WARM_UP, places_of, tiers_of
from hogwild.loops.shared import LATE, LoneWorker
from hogwild.loops.visiting import visitor
from hogwild.loops.windows import Windows
from hogwild.loops.worker import NAP, Worker
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.team import Control
from hogwild.seeds import seed_of
from hogwild.steps.step import Step
from hogwild.threads import share_of

SHARDS = 8
# For exact steps, which are merged more often. 400,000 rows of RCV1's shape, logistic, l2 1e-6, one
# worker: a pass takes 95 ms of CPU time with 8 shards, 69 with 4, 61 with 2, at the same gaps
SHARDS_IF_EXACT = 4
SNAPSHOTS = 16  # of an epoch, at most: at each of them all columns are merged
NEAR = 1.0  # how much changes that others have not seen yet may move a slope
AFFORDED = 0.06  # share of the time that merging a tier may take; there are many copies
TOO_FAR = 1.5  # times `NEAR`: beyond it, the shards overshoot together, again and again
NEAR_IF_EXACT, TOO_FAR_IF_EXACT = 0.3, 10.0  # for exact steps, which need no rate, and a check
START = 0  # the phase at whose end workers wait for each other
# Places in the state: rows done per shard, rows of this round, the stage, barriers passed, the half
# of the lists that is written, the number of frequent columns that this round merges, whether it
# merges all columns, early and late snapshots, nanoseconds of merging and of waiting; then the rows
# since each tier was merged
DONE, SIZE, STAGE, MET, HALF, UPTO, WHOLE, EARLY, AFTER, MERGING, WAITING, TIER = range(12)
STATE = 32  # words
LEARNING, MERGING_FREQUENT, ENDING = range(3)
FEWEST_ROWS = 4  # of a shard in a round
FEWEST_TIMES = 16  # merges of all columns in one pass over the rows that are repeated, at least


Part = Annotated[float, types.float32]


class Rounds(NamedTuple):
    """The numbers of a share of an epoch, for one worker.

    `first` to `end`: its shards, of `shards`; `begin` to `stop`: its share of the weights. Then:
    rows of the longest shard, rows per shard in a batch (0: no batches), rows between two snapshots
    (0: no snapshots), and the row after which snapshots are late. Last, the share of a copy's
    change that is merged, for the weights and for the intercept. This share is 1 unless others are
    expected to make similar changes.
    """

    first: int
    end: int
    shards: int
    begin: int
    stop: int
    rank: int
    workers: int
    longest: Signed
    batch: Signed
    gap: Signed
    late_from: Signed
    part: Part
    intercept_part: Part


class Merged(NamedTuple):
    """The arrays of one worker; those marked are shared.

    The base (shared) and all shards' copies (shared), scratch, the frequent columns' weights, lists
    of their changes (shared), sums over snapshots (shared), the state of rows (shared); sums of
    losses by shard, where this worker's shards begin and stop in the order; the state of the
    rounds, the barrier's counter (shared), the stop and all workers' steps (shared).
    """

    base: Floats
    copies: Floats
    scratch: Floats
    frequent: Floats
    lists: Floats
    sums: Floats
    row_state: Floats
    losses: Doubles
    begins: Places
    stops: Places
    state: Words
    barrier: Words
    stop: Words
    steps: Words


@inline
def plan_round(state, rounds, tiers, rate, warmth):
    """Decides how many rows a round has, and which columns are merged at its end."""
    at = state[DONE]
    batch, gap = rounds.batch, rounds.gap
    count = U(tiers.ends.size)
    each = min(MOST, rows_until(U(0), rate, warmth, tiers)) / np.float64(rounds.shards)
    size = batch if batch > 0 else max(np.int64(FEWEST_ROWS), np.int64(each))
    whole = batch > 0
    if gap > 0 and size >= gap - at % gap:
        size, whole = gap - at % gap, True
    if size >= rounds.longest - at:
        size, whole = rounds.longest - at, True
    passed = size * np.int64(rounds.shards)
    # A round is shorter than wanted by less than a row of each shard
    less = np.float64(rounds.shards)
    rows = np.float64(state[U(TIER) + count] + passed) + less
    if rows >= rows_until(count, rate, warmth, tiers):
        whole = True
    due: Any = U(0)
    for tier in range(U(0), count + U(1)):
        state[U(TIER) + tier] += passed
        rows = np.float64(state[U(TIER) + tier]) + less
        if whole or rows >= rows_until(tier, rate, warmth, tiers):
            due = tier
    for tier in range(U(0), due + U(1)):
        state[U(TIER) + tier] = 0
    state[SIZE] = size
    state[WHOLE] = np.int64(whole)
    state[UPTO] = np.int64(tiers.ends[min(due, count - U(1))])


@inline
def first_list(rounds, merged):
    """The start of this round's lists of changes; the last round's may still be read."""
    return U(merged.state[HALF]) * rounds.shards * U(merged.frequent.size)


@inline
def pass_on(copy, columns, width, known, upto, rounds, changes):
    """Writes the changes of the most frequent columns of a copy to a list: the part to be merged.

    The first of them is the intercept.
    """
    part = rounds.intercept_part
    for p in range(U(0), upto):
        for k in range(U(0), width):
            change = copy[width * U(columns[p]) + k] - known[width * p + k]
            changes[width * p + k] = part * change
        part = rounds.part


@inline
def add_lists(rounds, merged, upto):
    """Adds all shards' changes of the first `upto` weights to them, in the order of the shards."""
    first, stride = first_list(rounds, merged), U(merged.frequent.size)
    for shard in range(U(0), rounds.shards):
        for p in range(U(0), upto):
            merged.frequent[p] += merged.lists[first + shard * stride + p]


@inline
def merge_frequent(rounds, merged, columns, width):
    """Merges the most frequent columns alone, into this worker's shards."""
    upto, size = U(merged.state[UPTO]), U(merged.base.size)
    add_lists(rounds, merged, width * upto)
    for shard in range(rounds.first, rounds.end):
        for p in range(U(0), upto):
            for k in range(U(0), width):
                at = shard * size + width * U(columns[p]) + k
                merged.copies[at] = merged.frequent[width * p + k]


@inline
def merge_all(rounds, merged):
    """Adds the changes of all copies to the base, for this worker's share of the weights."""
    base, copies, scratch = merged.base, merged.copies, merged.scratch
    from_zero, size = rounds.batch > 0, U(merged.base.size)
    for first in range(rounds.begin, rounds.stop, PIECE):
        stop = min(first + PIECE, rounds.stop)
        for k in range(first, stop):
            scratch[k - first] = base[k]
        for shard in range(U(0), rounds.shards):
            for k in range(first, stop):
                before = np.float32(0) if from_zero else base[k]
                scratch[k - first] += rounds.part * (copies[shard * size + k] - before)
        for k in range(first, stop):
            base[k] = scratch[k - first]
        for shard in range(U(0), rounds.shards):
            for k in range(first, stop):
                copies[shard * size + k] = np.float32(0) if from_zero else scratch[k - first]


@inline
def set_frequent(rounds, merged, columns, width):
    """Merges all frequent columns from the lists, and corrects what `merge_all` made of them."""
    base, size = merged.base, U(merged.base.size)
    add_lists(rounds, merged, U(merged.frequent.size))
    for p in range(U(0), U(columns.size)):
        for k in range(U(0), width):
            at = width * U(columns[p]) + k
            if at >= rounds.begin and at < rounds.stop:
                base[at] = merged.frequent[width * p + k]
                for shard in range(U(0), rounds.shards):
                    merged.copies[shard * size + at] = base[at]


@inline
def add_snapshot_of(rounds, merged, width, late, scale):
    """Adds a share of the weights, scaled, to a sum; the first snapshot begins it."""
    which = U(AFTER) if late else U(EARLY)
    size = U(merged.base.size)
    offset = U(late) * size
    for k in range(rounds.begin, rounds.stop):
        before = np.float32(0) if merged.state[which] == 0 else merged.sums[offset + k]
        factor = np.float32(1) if k >= size - width else np.float32(scale)
        merged.sums[offset + k] = before + factor * merged.base[k]
    merged.state[which] += 1


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
            stored = Stored(read, copy, read[bias:], copy[bias:], merged.row_state)
            clock = Clock(now, np.float64(rounds.shards))
            merged.losses[shard] += visit(task, span, stored, clock)
            began = nanoseconds()
            changes = merged.lists[first_list(rounds, merged) + shard * listed :]
            pass_on(copy, tiers.columns, width, merged.frequent, upto, rounds, changes)
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

    Rows may overlap so much that shards would overshoot together, or would have to be merged too
    often. In this case the first worker learns from all rows, and the others wait.
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
        self._shards = self.shards(control.workers)
        self._first, self._end = share_of(self._shards, control.workers, rank)
        self._share = share_of(problem.size, control.workers, rank)
        unseen = (self._shards - 1) / self._shards
        near = NEAR_IF_EXACT if problem.step.exact else NEAR
        self._tiers = tiers_of(problem, unseen, near, AFFORDED)
        self._listed = places_of(self._tiers.columns, problem.width)
        self._frequent = np.zeros(len(self._listed), np.float32)
        self._scratch = np.empty(int(PIECE), np.float32)
        self._state = np.zeros(STATE, np.int64)
        # Where shards begin, and the last ends
        ends = [problem.rows_of(self._shards, shard)[1] for shard in range(self._shards)]
        self._bounds = np.array([0, *ends])
        self._order = np.empty(self._bounds[self._end] - self._bounds[self._first], np.uint32)
        inner = self._bounds[self._first + 1 : self._end] - self._bounds[self._first]
        self._windows = Windows(problem.mapped, np.split(self._order, inner))
        self._offsets = np.append(0, inner).astype(np.uint64)

    @staticmethod
    def shards(workers: int) -> int:
        """How many there are."""
        return SHARDS

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        """What it calls."""
        return [cls.kernel(problem.step), *LoneWorker.kernels(problem)]

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """The base, a copy for each shard, and lists of changes."""
        size, shards = problem.size, cls.shards(workers)
        return {
            "base": (size, np.float32),
            "copies": (shards * size, np.float32),
            "lists": (2 * shards * problem.width * TIERS[-1], np.float32),
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
        losses = np.zeros(self._shards)
        if self._wait_for_everyone(START):
            self._windows.begin(map(int, begins - self._offsets))
            try:
                self._go(share, (losses, begins, stops.copy()), longest)
            finally:
                self._windows.rest()
        self._finish(share.end == 1 and self._problem.snapshots > 0)
        done = np.minimum(stops - begins, np.uint64(self._state[DONE]))
        self._control.count(self._rank, int(done.sum()))
        self._control.finish(self._rank)
        return [(shard, float(losses[shard])) for shard in range(self._first, self._end)]

    def _is_for_one(self, share: Share) -> bool:
        """Whether one worker learns alone in this part. This does not depend on their number."""
        if self.batch:
            return False
        problem, tiers = self._problem, self._tiers
        plan = problem.plan(share)
        rate = float(problem.step.reach(plan, share.done + int(WARM_UP * problem.units)))
        far = rate * float((tiers.coupling * np.maximum(FEWEST, tiers.fewest_rows)).max())
        return far > (TOO_FAR_IF_EXACT if problem.step.exact else TOO_FAR)

    @cached_property
    def _lone(self) -> LoneWorker:
        return LoneWorker(self._problem, self._shared, self._control, self._rank)

    def _start(self) -> None:
        """Makes the copies, and its share of the base."""
        whole, mine = self._shared["stored"], slice(*self._share)
        self._shared["base"][mine] = whole[mine]
        copies = self._shared["copies"].reshape(self._shards, -1)
        copies[self._first : self._end] = 0 if self.batch else whole
        self._frequent[:] = whole[self._listed]
        met = self._state[MET]
        self._state[:] = 0
        self._state[MET] = met

    def _places(self, share: Share) -> tuple[Any, Any, int]:
        """Where its shards begin and end in the order; and the rows of the longest shard."""
        if share.begin == 0:
            self._shuffle(share.epoch)
        sizes, mine = np.diff(self._bounds), slice(self._first, self._end)
        begins, ends = ((sizes * part).astype(np.uint64) for part in (share.begin, share.end))
        places = begins[mine] + self._offsets, ends[mine] + self._offsets
        return *places, int((ends - begins).max())

    def _shuffle(self, epoch: int) -> None:
        for shard in range(self._first, self._end):
            begin, end = self._bounds[shard : shard + 2] - self._bounds[self._first]
            seed = seed_of(self._problem.seed, epoch, shard)
            mine = self._order[begin:end]
            self._problem.shuffle_share(mine, self._shards, shard, seed, self._shared["row_state"])

    def _go(self, share: Share, own: tuple[Any, ...], longest: int) -> None:
        """Goes through rounds; `own` are sums of losses, and where its shards begin and stop."""
        problem, control, shared = self._problem, self._control, self._shared
        snapshots = min(SNAPSHOTS, problem.snapshots) if share.end == 1 else 0
        gap = -(-longest // snapshots) if snapshots else 0
        mine = self._first, self._end, self._shards, *self._share, self._rank, control.workers
        steps, _, stop = control.words
        names = ("lists", "sums", "row_state")
        task = problem.task(self._order, share)
        ahead = problem.ahead(share, 1 if self.batch else self._shards)
        task.own.slopes[-2:] = ahead
        batch = self.batch // self._shards
        clock = view(Clock, share.done, max(1.0, WARM_UP * problem.units))
        tiers, numbers = self._tiers_of(share, task.plan), (batch, gap, int(LATE * longest))
        losses, begins, stops = own
        ends, upto = stops.copy(), 0
        arrays = (
            *(shared["base"], shared["copies"], self._scratch, self._frequent),
            *(shared[name] for name in names),
            *(losses, begins, stops, self._state, shared["barrier"], stop, steps),
        )
        merged = view(Merged, *arrays)
        while upto < longest and control.goes_on():
            task, upto = self._windows.open(task, upto, longest)
            np.minimum(ends, begins + np.uint64(upto), out=stops)
            rounds = view(Rounds, *mine, upto, *numbers, 1 / ahead[0], 1 / ahead[1])
            while not self.kernel(problem.step)(task, clock, tiers, rounds, merged):
                if not control.goes_on():
                    break
                began = time.monotonic()
                time.sleep(NAP)
                self._waited += time.monotonic() - began
        self._merged += 1e-9 * int(self._state[MERGING])
        self._waited += 1e-9 * int(self._state[WAITING])

    def _tiers_of(self, share: Share, plan: Any) -> Tiers:
        """How often columns are merged: more often where few rows are repeated."""
        tiers, times = self._tiers, self._problem.repeats(share)
        if times == 1.0:
            return tiers
        most = self._problem.units / (FEWEST_TIMES * times)
        least = 1.0 / (most * float(self._problem.step.reach(plan, share.done)))
        return view(Tiers, *tiers[:2], np.maximum(tiers.coupling, least), tiers.fewest_rows / times)

    def _finish(self, snapshots: bool) -> None:
        """Writes its share of the learned weights to the shared arrays.

        If an epoch goes in parts, the means are over the last part.
        """
        mine = slice(*self._share)
        self._shared["stored"][mine] = self._shared["base"][mine]
        if snapshots:
            for name, sums in zip(SUMS, self._shared["sums"].reshape(2, -1), strict=True):
                self._shared[name][mine] = sums[mine]
            if self._rank == 0:
                self._control.add_snapshots(int(self._state[EARLY]), int(self._state[AFTER]))


class TogetherWorker(OrderedWorker):
    """As `OrderedWorker` with a shard for each worker, for steps that others must see soon."""

    @staticmethod
    def shards(workers: int) -> int:
        return workers


class OrderedExactWorker(OrderedWorker):
    """As `OrderedWorker` with fewer shards."""

    @staticmethod
    def shards(workers: int) -> int:
        return SHARDS_IF_EXACT


class MinibatchWorker(OrderedWorker):
    """Sums the gradients of a batch of rows at the same weights, and then takes one step."""

    @property
    def batch(self) -> int:
        """Rows of a batch."""
        return self._problem.batch
