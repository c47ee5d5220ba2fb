"""`ordered` and `minibatch`: rounds over a fixed number of shards; the same outcome on any workers.

In a round, some rows of every shard are learned from, each on the shard's own copy of the weights;
then the changes of all shards are added up, in the order of the shards, and every copy becomes the
sum. Between the two, workers wait for each other. The most frequent columns are merged in every
round, others the less often the rarer they are (see `kernels/exchange.py`), all at points that
depend on the rows done alone. Of the frequent columns, changes are passed on as lists.

In a round of a batch, nobody learns before it ends: the copies hold changes only.
"""

import time
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from hogwild.kernels.atomic import LOOKS, SLOT, add_to, look_until
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.compile import Kernel, inline
from hogwild.kernels.exchange import FEWEST, MOST, PIECE, Tiers, rows_until
from hogwild.kernels.primitives import U, readonly
from hogwild.kernels.views import (
    DOUBLES,
    FLOATS,
    UINT,
    WORDS,
    Clock,
    Floats,
    Stored,
    register,
    task_type,
    type_of,
    view,
)
from hogwild.loops.combine import TIERS, WARM_UP, tiers_of
from hogwild.loops.shared import LATE, LoneWorker
from hogwild.loops.visiting import visitor
from hogwild.loops.worker import NAP, Worker
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.parallel.team import Control
from hogwild.problems.problem import SUMS, RowProblem, Share
from hogwild.seeds import seed_of
from hogwild.steps.step import Step
from hogwild.threads import share_of

SHARDS = 8
SNAPSHOTS = 16  # of an epoch, at most: at each of them all columns are merged
NEAR = 0.75  # how far a slope may be changed by what others do not see yet
AFFORDED = 0.06  # of the time: what merging a tier may take; the copies are many, so often
TOO_FAR = 2.0  # times as far: then the shards together would overshoot, and again on the way back
START = 0  # the phase at whose end workers wait for each other

# The state: rows done of each shard, rows of this round, the stage, how often workers have met,
# which half of the lists is written to, how many of the frequent columns are merged in this round,
# whether all columns are, snapshots taken early and late, nanoseconds of merging and of waiting;
# then the rows since each tier was merged
DONE, SIZE, STAGE, MET, HALF, UPTO, WHOLE, EARLY, AFTER, MERGING, WAITING, TIER = range(12)
STATE = 32  # words
LEARNING, MERGING_FREQUENT, ENDING = range(3)
FEWEST_ROWS = 4  # of a shard in a round


class Shards(NamedTuple):
    """This worker's shards: the first, the one after the last, and how many there are in all."""

    first: int
    end: int
    all: int


class Mine(NamedTuple):
    """Where this worker's share of the weights begins and ends, its number, and that of all."""

    begin: int
    end: int
    rank: int
    workers: int


class Rounds(NamedTuple):
    """Rows of the longest shard, rows of a shard in a batch (0: none), rows between two snapshots
    (0: none), and the row after which snapshots are late."""

    longest: int
    batch: int
    gap: int
    late_from: int


class Merged(NamedTuple):
    """The base and all shards' copies (shared), scratch, this worker's copy of the frequent
    columns' weights, lists of their changes (shared), and sums over snapshots (shared)."""

    base: Floats
    copies: Floats
    scratch: Floats
    frequent: Floats
    lists: Floats
    sums: Floats


class Words(NamedTuple):
    """The state, the barrier's counter, the stop, and all workers' steps."""

    state: npt.NDArray[np.int64]
    barrier: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]


WORD = types.int64
register(Shards, UINT, UINT, UINT)
register(Mine, UINT, UINT, UINT, UINT)
register(Rounds, WORD, WORD, WORD, WORD)
register(Merged, FLOATS, FLOATS, FLOATS, FLOATS, FLOATS, FLOATS)
register(Words, WORDS, WORDS, WORDS, WORDS)
PLACES = readonly(types.uint64)


@inline
def plan_round(state: Any, rounds: Any, shards: Any, tiers: Any, rate: Any, warmth: Any) -> None:
    """Decides how many rows a round has, and which columns are merged at its end."""
    at = state[DONE]
    batch, gap = rounds.batch, rounds.gap
    count = U(tiers.ends.size)
    each = min(MOST, rows_until(U(0), rate, warmth, tiers)) / np.float64(shards)
    size = batch if batch > 0 else max(np.int64(FEWEST_ROWS), np.int64(each))
    whole = batch > 0
    if gap > 0 and size >= gap - at % gap:
        size, whole = gap - at % gap, True
    if size >= rounds.longest - at:
        size, whole = rounds.longest - at, True
    passed = size * np.int64(shards)
    rows = np.float64(state[U(TIER) + count] + passed)
    if rows >= rows_until(count, rate, warmth, tiers):
        whole = True
    due: Any = U(0)
    for tier in range(U(0), count + U(1)):
        state[U(TIER) + tier] += passed
        rows = np.float64(state[U(TIER) + tier])
        if whole or rows >= rows_until(tier, rate, warmth, tiers):
            due = tier
    for tier in range(U(0), due + U(1)):
        state[U(TIER) + tier] = 0
    state[SIZE] = size
    state[WHOLE] = np.int64(whole)
    state[UPTO] = np.int64(tiers.ends[min(due, count - U(1))])


@inline
def pass_on(copy: Any, columns: Any, width: Any, known: Any, upto: Any, lists: Any) -> None:
    """Writes the changes of the most frequent columns of a copy to a list."""
    for p in range(U(0), upto):
        for k in range(U(0), width):
            lists[width * p + k] = copy[width * U(columns[p]) + k] - known[width * p + k]


@inline
def merge_frequent(lists: Any, shards: Any, upto: Any, frequent: Any) -> None:
    """Adds all shards' changes of the first few weights to what they were, in the shards' order."""
    stride = U(frequent.size)
    for shard in range(U(0), shards):
        for p in range(U(0), upto):
            frequent[p] += lists[shard * stride + p]


@inline
def merge_all(base: Any, copies: Any, scratch: Any, mine: Any, from_zero: Any) -> None:
    """Adds the changes of all copies to the base, for a share of the weights."""
    size = U(base.size)
    shards = U(copies.size) // size
    for first in range(mine.begin, mine.end, PIECE):
        stop = min(first + PIECE, mine.end)
        for k in range(first, stop):
            scratch[k - first] = base[k]
        for shard in range(U(0), shards):
            for k in range(first, stop):
                before = np.float32(0) if from_zero else base[k]
                scratch[k - first] += copies[shard * size + k] - before
        for k in range(first, stop):
            base[k] = scratch[k - first]
        for shard in range(U(0), shards):
            for k in range(first, stop):
                copies[shard * size + k] = np.float32(0) if from_zero else scratch[k - first]


@inline
def first_list(merged: Any, shards: Any, state: Any) -> Any:
    """Where this round's lists of changes begin; those of the last one may still be read."""
    return U(state[HALF]) * shards.all * U(merged.frequent.size)


@inline
def merge_lists(merged: Any, shards: Any, columns: Any, width: Any, state: Any) -> None:
    """Merges the most frequent columns alone, into this worker's shards."""
    upto, size = U(state[UPTO]), U(merged.base.size)
    lists = merged.lists[first_list(merged, shards, state) :]
    merge_frequent(lists, shards.all, width * upto, merged.frequent)
    for shard in range(shards.first, shards.end):
        for p in range(U(0), upto):
            for k in range(U(0), width):
                known = merged.frequent[width * p + k]
                merged.copies[shard * size + width * U(columns[p]) + k] = known


@inline
def set_frequent(merged: Any, shards: Any, columns: Any, width: Any, mine: Any, state: Any) -> None:
    """Merges all frequent columns from the lists, and corrects what `merge_all` made of them."""
    base, copies, size = merged.base, merged.copies, U(merged.base.size)
    lists = merged.lists[first_list(merged, shards, state) :]
    merge_frequent(lists, shards.all, U(merged.frequent.size), merged.frequent)
    for p in range(U(0), U(columns.size)):
        for k in range(U(0), width):
            at = width * U(columns[p]) + k
            if at >= mine.begin and at < mine.end:
                base[at] = merged.frequent[width * p + k]
                for shard in range(U(0), U(copies.size) // size):
                    copies[shard * size + at] = base[at]


@inline
def add_snapshot_of(merged: Any, mine: Any, width: Any, late: Any, state: Any, scale: Any) -> None:
    """Adds a share of the weights, made whole, to a sum; the first begins it."""
    which = U(AFTER) if late else U(EARLY)
    size = U(merged.base.size)
    offset = U(late) * size
    for k in range(mine.begin, mine.end):
        before = np.float32(0) if state[which] == 0 else merged.sums[offset + k]
        factor = np.float32(1) if k >= size - width else np.float32(scale)
        merged.sums[offset + k] = before + factor * merged.base[k]
    state[which] += 1


@cache
def shards_of(step: Step) -> Any:
    """Learns from this round's rows of some shards; the nanoseconds of passing changes on."""
    visit, fixed = visitor(step), step.width

    @inline
    def learn_shards(
        task: Any,
        begins: Any,
        stops: Any,
        shards: Any,
        now: Any,
        merged: Any,
        tiers: Any,
        rounds: Any,
        state: Any,
        losses: Any,
        row_state: Any,
    ) -> Any:
        base, copies = merged.base, merged.copies
        from_zero = rounds.batch > 0
        width = U(fixed) if fixed else task.shape.width
        size = U(base.size)
        bias, listed = size - width, U(merged.frequent.size)
        first_of_round = first_list(merged, shards, state)
        upto = U(0) if from_zero else U(state[UPTO])
        merging = np.int64(0)
        for shard in range(shards.first, shards.end):
            limit = np.int64(stops[shard - shards.first])
            first = np.int64(begins[shard - shards.first]) + state[DONE]
            span = U(min(first, limit)), U(min(first + state[SIZE], limit))
            copy = copies[shard * size : (shard + U(1)) * size]
            read = base if from_zero else copy
            stored = Stored(read, copy, read[bias:], copy[bias:], row_state)
            clock = Clock(now, np.float64(shards.all))
            losses[shard] += visit(task, span, stored, clock)
            began = nanoseconds()
            place = first_of_round + shard * listed
            lists = merged.lists[place : place + listed]
            pass_on(copy, tiers.columns, width, merged.frequent, upto, lists)
            merging += nanoseconds() - began
        return merging

    return learn_shards


@cache
def rounds_loop(step: Step) -> Kernel:
    """The kernel that goes through rounds: True when all rows are done or it should stop, False
    where it waited for others too long."""
    learn_shards, fixed = shards_of(step), step.width
    reach, scale_of = step.reach, step.scale

    def learn(
        task: Any,
        begins: Any,
        stops: Any,
        shards: Any,
        clock: Any,
        merged: Any,
        tiers: Any,
        mine: Any,
        rounds: Any,
        words: Any,
        losses: Any,
        row_state: Any,
    ) -> Any:
        # order: the rows of this worker's shards, which begin and stop at `begins` and `stops`
        # clock: steps done before this part, and in how many steps training has warmed up
        state, barrier, stop, steps = words
        from_zero = rounds.batch > 0
        width = U(fixed) if fixed else task.shape.width
        while True:
            at = state[DONE]
            now = clock.done + np.float64(at) * np.float64(shards.all)
            if state[STAGE] == LEARNING:
                if at >= rounds.longest or stop[0] != 0:
                    return True
                rate, warmth = reach(task.plan, max(1.0, now)), min(1.0, now / clock.pace)
                plan_round(state, rounds, shards.all, tiers, rate, warmth)
                state[MERGING] += learn_shards(
                    task,
                    begins,
                    stops,
                    shards,
                    now,
                    merged,
                    tiers,
                    rounds,
                    state,
                    losses,
                    row_state,
                )
                mine_done = (at + state[SIZE]) * np.int64(shards.end - shards.first)
                steps[mine.rank * SLOT] = mine_done
                state[STAGE] = MERGING_FREQUENT
                state[MET] += 1
                add_to(barrier, U(0), np.int64(1))

            began = nanoseconds()
            there = look_until(barrier, U(0), state[MET] * np.int64(mine.workers), LOOKS)
            met_at = nanoseconds()
            state[WAITING] += met_at - began
            if not there:
                return stop[0] != 0
            if state[STAGE] == ENDING or state[WHOLE] == 0:
                if not from_zero and state[STAGE] == MERGING_FREQUENT:
                    merge_lists(merged, shards, tiers.columns, width, state)
                state[HALF] = 1 - state[HALF]
                state[DONE] += state[SIZE]
                state[STAGE] = LEARNING
            else:
                merge_all(merged.base, merged.copies, merged.scratch, mine, from_zero)
                if not from_zero:
                    set_frequent(merged, shards, tiers.columns, width, mine, state)
                after = at + state[SIZE]
                if rounds.gap > 0 and after % rounds.gap == 0:
                    late = after > rounds.late_from
                    t = clock.done + np.float64(after * np.int64(shards.all))
                    add_snapshot_of(merged, mine, width, late, state, scale_of(task.plan, t))
                state[STAGE] = ENDING
                state[MET] += 1
                add_to(barrier, U(0), np.int64(1))
            state[MERGING] += nanoseconds() - met_at

    kinds = (type_of(kind) for kind in (Shards, Clock, Merged, Tiers, Mine, Rounds, Words))
    signature = types.boolean(task_type(step.plan), PLACES, PLACES, *kinds, DOUBLES, FLOATS)
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
        self._shards = view(Shards, *share_of(SHARDS, control.workers, rank), SHARDS)
        share = share_of(problem.size, control.workers, rank)
        self._mine = view(Mine, *share, rank, control.workers)
        self._tiers = tiers_of(problem, (SHARDS - 1) / SHARDS, NEAR, AFFORDED)
        lanes = np.arange(problem.width)
        self._listed = (
            self._tiers.columns[:, None].astype(np.int64) * problem.width + lanes
        ).ravel()
        self._state = np.zeros(STATE, np.int64)
        self._merged_arrays = view(
            Merged,
            shared["base"],
            shared["copies"],
            np.empty(int(PIECE), np.float32),
            np.zeros(len(self._listed), np.float32),
            shared["lists"],
            shared["sums"],
        )
        self._bounds = [share_of(problem.units, SHARDS, shard) for shard in range(SHARDS)]
        bounds = self._bounds[self._shards.first : self._shards.end]
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
            self._go(share, begins, stops, longest, losses)
        self._finish(share.end == 1 and self._problem.snapshots > 0)
        done = np.minimum(stops - begins, np.uint64(self._state[DONE]))
        self._control.count(self._rank, int(done.sum()))
        self._control.finish(self._rank)
        return [(k, float(losses[k])) for k in range(self._shards.first, self._shards.end)]

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
        whole, mine = self._shared["stored"], self._mine
        merged = self._merged_arrays
        merged.base[mine.begin : mine.end] = whole[mine.begin : mine.end]
        copies = merged.copies.reshape(SHARDS, -1)
        copies[self._shards.first : self._shards.end] = 0 if self.batch else whole
        merged.frequent[:] = whole[self._listed]
        met = self._state[MET]
        self._state[:] = 0
        self._state[MET] = met

    def _places(self, share: Share) -> tuple[Any, Any, int]:
        """Where its shards begin and end in the order; and the rows of the longest shard."""
        if share.begin == 0:
            self._shuffle(share.epoch)
        sizes = [end - begin for begin, end in self._bounds]
        ranges = [(int(size * share.begin), int(size * share.end)) for size in sizes]
        mine = slice(self._shards.first, self._shards.end)
        offsets = np.cumsum([0, *sizes[mine]])[:-1].astype(np.uint64)
        begins, ends = (
            np.array([limits[which] for limits in ranges[mine]], np.uint64) + offsets
            for which in (0, 1)
        )
        return begins, ends, max(end - begin for begin, end in ranges)

    def _shuffle(self, epoch: int) -> None:
        place = 0
        for shard in range(self._shards.first, self._shards.end):
            begin, end = self._bounds[shard]
            seed = seed_of(self._problem.seed, epoch, shard)
            self._problem.shuffle(self._order[place : place + end - begin], begin, seed)
            place += end - begin

    def _go(self, share: Share, begins: Any, stops: Any, longest: int, losses: Any) -> None:
        problem, control = self._problem, self._control
        snapshots = min(SNAPSHOTS, problem.snapshots) if share.end == 1 else 0
        gap = -(-longest // snapshots) if snapshots else 0
        steps, _, stop = control.words
        arguments = (
            problem.task(self._order, share),
            begins,
            stops,
            self._shards,
            view(Clock, share.done, max(1.0, WARM_UP * problem.units)),
            self._merged_arrays,
            self._tiers,
            self._mine,
            view(Rounds, longest, self.batch // SHARDS, gap, int(LATE * longest)),
            view(Words, self._state, self._shared["barrier"], stop, steps),
            losses,
            self._shared["row_state"],
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
        mine = slice(self._mine.begin, self._mine.end)
        merged = self._merged_arrays
        self._shared["stored"][mine] = merged.base[mine]
        if snapshots:
            for name, sums in zip(SUMS, merged.sums.reshape(2, -1), strict=True):
                self._shared[name][mine] = sums[mine]
            if self._rank == 0:
                self._control.add_moments(int(self._state[EARLY]), int(self._state[AFTER]))


class MinibatchWorker(OrderedWorker):
    """Sums up the gradients of a batch of rows at one point; then all take one step."""

    @property
    def batch(self) -> int:
        """Rows of a batch."""
        return self._problem.batch
