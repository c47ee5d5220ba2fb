"""`combine`: each worker trains a private copy of the weights, and workers exchange changes."""

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.kernels.atomic import SLOT
from hogwild.kernels.clock import nanoseconds
from hogwild.kernels.compile import Kernel
from hogwild.kernels.exchange import (
    MOST,
    Copy,
    Place,
    Slots,
    Tiers,
    add_snapshot,
    add_up,
    add_up_frequent,
    exchange_all,
    exchange_frequent,
    hand_in,
    rows_until,
)
from hogwild.kernels.primitives import U
from hogwild.kernels.views import (
    FLOAT,
    FLOATS,
    WORDS,
    Clock,
    Span,
    Stored,
    task_type,
    type_of,
    view,
)
from hogwild.learn.problem import SUMS, RowProblem, Share
from hogwild.loops.shared import LATE, RowWorker
from hogwild.loops.visiting import visitor
from hogwild.parallel.memory import Arrays, Wanted, private_arrays
from hogwild.parallel.team import Control
from hogwild.steps.step import Step
from hogwild.threads import share_of

TIERS = (512, 4_096, 32_768)  # the most frequent columns, by how often they are exchanged
LEAST_RARE = 4  # a tier is used if the data has at least this many times its columns
NEAR = 0.4  # how much changes that others have not seen yet may move a slope
AFFORDED = 0.006  # share of the time that the exchanges of a tier may take in the long run
LISTED, IN_ORDER = 2.5, 0.7  # non-zeros that take as long as exchanging a column
AT_LEAST = 100.0  # non-zeros that take as long as any exchange
FEWEST_TIMES = 16  # exchanges of all columns in an epoch, at least, however long they take
WARM_UP = 0.05  # share of an epoch, after which `AFFORDED` holds
LOOK = 10_000_000  # non-zeros between two looks whether to go on

FEWEST_SNAPSHOTS = 8  # that a worker takes in an epoch; two of them are late
EVEN = 4  # number of snapshots that each worker's sums are rescaled to; one of them is late
START, END = range(2)  # phases at whose end workers wait for each other

# Places in a worker's counters; from TIER on, one for each tier
GAP, LATE_FROM, EARLY, AFTER, SPENT, TIER = range(6)


class Part(NamedTuple):
    """Where the worker's part of the order begins, where to continue, and where to end."""

    begin: int
    at: int
    end: int


@cache
def combining_loop(step: Step) -> Kernel:
    """The kernel that goes through rows on a copy; it returns the sum of their losses."""
    visit, fixed, reach, scale = visitor(step), step.width, step.reach, step.scale

    def learn(task, part, clock, copy, slots, tiers, place, steps, at_work, stop, counters, state):
        # clock: steps done before this part, and in how many steps training has warmed up
        # counters: rows between two snapshots (0: none are taken), the place after which they are
        # late, how many were early and late, nanoseconds spent on exchanging; then the rows since
        # the last exchange of each tier. Rows are counted here or at other workers, whichever is
        # more: a worker that had to leave its core has missed many of their changes
        width = U(fixed) if fixed else task.shape.width
        bias = U(copy.weights.size) - width
        lists = U(tiers.ends.size)
        gap = counters[GAP]
        intercept = copy.weights[bias:]
        stored = Stored(copy.weights, copy.weights, intercept, intercept, state)
        total, at, before = 0.0, part.at, -1.0
        while at < part.end and stop[0] == 0:
            now, pace = clock.done, 0.0
            for worker in range(U(0), place.workers):
                now += np.float64(steps[worker * SLOT])
                pace += np.float64(at_work[worker * SLOT])
            others = now - np.float64(steps[place.rank * SLOT])
            missed = others - before if before >= 0.0 else 0.0
            missed, before = missed / max(1.0, np.float64(place.workers) - 1.0), others
            rate = reach(task.plan, max(1.0, now))
            warmth = min(1.0, now / clock.pace)
            size = min(U(min(MOST, rows_until(U(0), rate, warmth, tiers))), part.end - at)
            if gap > 0:
                size = min(size, U(gap) - (at - part.begin) % U(gap))
            span = at, at + size
            times = Clock(now, max(1.0, pace))
            total += visit(task, span, stored, times)
            at += size
            steps[place.rank * SLOT] = np.int64(at - part.begin)

            began = nanoseconds()
            first = U(0)
            for tier in range(U(0), lists + U(1)):
                passed = U(TIER) + tier
                counters[passed] += max(np.int64(size), np.int64(missed))
                if np.float64(counters[passed]) >= rows_until(tier, rate, warmth, tiers):
                    counters[passed] = 0
                    end = U(tiers.ends[tier]) if tier < lists else U(tiers.columns.size)
                    begin = first if tier < lists else U(0)
                    exchange_frequent(copy, slots.frequent, tiers.columns, width, place, begin, end)
                    if tier == lists:
                        exchange_all(copy, slots, tiers.columns, width, place)
                if tier < lists:
                    first = U(tiers.ends[tier])
            counters[SPENT] += nanoseconds() - began
            if gap > 0 and (at - part.begin) % U(gap) == 0:
                late = U(np.int64(at) > counters[LATE_FROM])
                count = U(EARLY) + late
                now = clock.done + np.float64(steps[place.rank * SLOT]) * np.float64(place.workers)
                is_first = counters[count] == 0
                add_snapshot(
                    copy, tiers, width, place.workers, scale(task.plan, now), late, is_first
                )
                counters[count] += 1
        return total

    kinds = (type_of(kind) for kind in (Part, Clock, Copy, Slots, Tiers, Place))
    arrays = WORDS, WORDS, WORDS, WORDS, FLOATS
    return Kernel(learn, FLOAT(task_type(step.plan), *kinds, *arrays), name=f"combine-{step.name}")


def tiers_of(
    problem: RowProblem, unseen: float, near: float = NEAR, afforded: float = AFFORDED
) -> Any:
    """The frequent columns, and how often each tier of them is exchanged.

    `unseen` is the number of other workers' rows that a worker misses per row of its own. `near` is
    how far the missed rows may change a slope. `afforded` is the share of the time that exchanging
    a tier may take. The intercept is a tier of its own: every row moves it, and exchanging it takes
    almost no time.
    """
    size = problem.columns + 1  # with the intercept, which is the first of the frequent columns
    frequency = problem.frequency
    ends = [1, *(c for c in TIERS if LEAST_RARE * c <= size and c <= len(frequency.columns))]
    columns = np.append(np.uint32(problem.columns), frequency.columns[: ends[-1] - 1])
    # How far a row moves the score of another through the columns of a tier and all rarer ones
    coupling = [
        frequency.squares[place:].max(initial=0) + (frequency.means[place:] ** 2).sum()
        for place in (0, *(end - 1 for end in ends))
    ]
    coupling[0] = max(coupling[0], problem.intercept_share)
    couplings = np.maximum(coupling, 1e-30) * unseen * problem.curvature / near
    costs = [LISTED * (end - before) for before, end in pairwise([0, *ends])]
    costs[0] = max(costs[0], AT_LEAST)
    affordable = problem.width * np.array([*costs, size * IN_ORDER]) / afforded
    affordable *= problem.units / max(1, problem.effort)
    fewest_rows = np.minimum(affordable, problem.units / FEWEST_TIMES)
    return view(Tiers, columns, np.array(ends, np.uint64), couplings, fewest_rows)


def places_of(columns: npt.NDArray[np.uint32], width: int) -> npt.NDArray[np.int64]:
    """Where the weights of some columns stand, one after the other."""
    return (columns[:, None].astype(np.int64) * width + np.arange(width)).ravel()


class CombineWorker(RowWorker):
    """A worker with a copy of the weights, to which the changes of the others are added."""

    uses_frequency = True
    unzeroed = "slots", "frequent_slots", "sums"
    kernel = staticmethod(combining_loop)

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        workers, size = control.workers, len(shared["stored"])
        self._tiers = tiers_of(problem, workers - 1)
        self._place = view(Place, rank, workers)
        self._width = np.uintp(problem.width)
        frequent = problem.width * len(self._tiers.columns)
        own = private_arrays(dict.fromkeys(("weights", "others"), (size, np.float32)))
        sums = shared["sums"].reshape(workers, -1)[rank]
        others = np.zeros(frequent, np.float32)
        self._copy = view(Copy, own["weights"], own["others"], others, sums)
        self._slots = view(Slots, shared["slots"], shared["frequent_slots"][: workers * frequent])
        self._listed = places_of(self._tiers.columns, problem.width)
        self._counters = np.zeros(TIER + len(self._tiers.fewest_rows), np.int64)
        self._rows_between_looks = 1 + LOOK * problem.units // max(1, problem.work)

    @classmethod
    def kernels(cls, problem: RowProblem) -> list[Kernel]:
        return [*super().kernels(problem), hand_in, add_up, add_up_frequent]

    @classmethod
    def arrays(cls, problem: RowProblem, workers: int) -> Wanted:
        """A slot of every weight for every worker, and its sums over snapshots."""
        size = workers * problem.size
        return {
            "slots": (size, np.float32),
            "frequent_slots": (workers * problem.width * TIERS[-1], np.float32),
            "sums": (2 * size if problem.snapshots else workers, np.float32),
        }

    def _go_through(self, share: Share, begin: int, stop: int) -> float:
        total = 0.0
        # If an epoch goes in parts, the means are over the last part
        takes_snapshots = self._problem.snapshots > 0 and share.end == 1
        if self._start(begin, takes_snapshots):
            task = self._task(share)
            clock = view(Clock, share.done, max(1.0, WARM_UP * self._problem.units))
            place = begin
            while place < stop and self._goes_on(total):
                end = min(stop, place + self._rows_between_looks)
                task, end = self._windows.open(task, place, end)
                total += self.kernel(self._problem.step)(
                    task,
                    view(Part, begin, place, end),
                    clock,
                    self._copy,
                    self._slots,
                    self._tiers,
                    self._place,
                    *self._control.words,
                    self._counters,
                    self._shared["row_state"],
                )
                place = end
        self._merged += 1e-9 * int(self._counters[SPENT])
        hand_in(self._copy, self._slots, self._tiers.columns, self._width, self._place)
        if takes_snapshots:
            self._even_out_snapshots()
        if self._wait_for_everyone(END):
            self._bring_together(takes_snapshots)
        return total

    def _start(self, begin: int, takes_snapshots: bool) -> bool:
        """Fills the copy and the slots: worker 0 holds the initial weights."""
        copy, slots, listed = self._copy, self._slots, self._listed
        copy.weights[:] = self._shared["stored"]
        first = np.float32(self._rank == 0)
        mine, mine_frequent = (
            part.reshape(self._control.workers, -1)[self._rank] for part in slots
        )
        for weights, slot, others in (
            (copy.weights, mine, copy.others),
            (copy.weights[listed], mine_frequent, copy.frequent_others),
        ):
            np.multiply(weights, first, out=slot)
            np.multiply(weights, 1 - first, out=others)
        mine[listed] = copy.others[listed] = 0
        self._counters[:] = 0
        if takes_snapshots:
            each = max(FEWEST_SNAPSHOTS, self._problem.snapshots // (2 * self._control.workers))
            self._counters[GAP] = max(1, len(self._order) // each)
            self._counters[LATE_FROM] = int(LATE * len(self._order)) - begin
        return self._wait_for_everyone(START)

    def _even_out_snapshots(self) -> None:
        """Rescales this worker's sums to `EVEN` snapshots, whatever their number was."""
        copy, listed = self._copy, self._listed
        sums = copy.sums.reshape(2, -1)
        for which, share in enumerate((LATE, 1 - LATE)):
            count = int(self._counters[EARLY + which])
            if count == 0:  # the sums are those of another epoch
                np.subtract(copy.weights, copy.others, out=sums[which])
                sums[which][listed] = copy.weights[listed] - copy.frequent_others
            sums[which] *= np.float32(share * EVEN / max(1, count))
        if self._rank == 0:
            self._control.add_snapshots(int(LATE * EVEN), int((1 - LATE) * EVEN))

    def _bring_together(self, snapshots: bool) -> None:
        """Computes the shared weights: each worker adds up the slots for its share of them."""
        workers, size = self._control.workers, self._problem.size
        columns, slots = self._tiers.columns, self._slots
        share = view(Span, *share_of(size, workers, self._rank))
        out = self._shared["stored"]
        add_up(slots.all, workers, 0, share, out)
        add_up_frequent(slots.frequent, workers, columns, self._width, share, out)
        for which, name in enumerate(SUMS if snapshots else ()):
            add_up(self._shared["sums"], workers, which * size, share, self._shared[name])
