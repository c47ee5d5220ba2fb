"""Workers that learn on copies of their own and exchange their changes: `combine`."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.kernels import combine as kernels
from hogwild.kernels.compile import Kernel
from hogwild.parallel.memory import Arrays, Wanted, private_arrays
from hogwild.parallel.row_worker import LATE, RowWorker
from hogwild.parallel.team import Control
from hogwild.parallel.worker import Part
from hogwild.problems.problem import SUMS, Problem, RowProblem
from hogwild.threads import share_of

TIERS = (512, 4_096, 32_768)  # the hottest columns, by how often they are exchanged
LEAST_COLD = 4  # times as many columns as in a tier, for it to be one
NEAR = 0.25  # how far a slope may be changed by what others do not see yet
AFFORDED = 0.02  # of the time: what the exchanges of a tier may take in the long run
LISTED, IN_ORDER = 2.5, 0.7  # non-zeros that take as long as exchanging a column
AT_LEAST = 100.0  # non-zeros that take as long as any exchange
FEWEST_TIMES = 16  # an epoch that all columns are exchanged, whatever it takes
CALMING = 0.05  # of an epoch, after which exchanges may not take more than that
LOOK = 50_000_000  # non-zeros between two looks at the parent

FEWEST_MOMENTS = 8  # of an epoch, that a worker takes; two of them are late
EVEN = 4  # moments, so to speak, of an epoch: three early ones and a late one
START, END = range(2)  # phases at whose end workers meet


class Tiers:
    """The hot columns, and how often which of them are exchanged.

    `unseen` is how many rows of others a worker does not see for each that passes, `near` how far
    these may change a slope, `afforded` the share of the time that exchanging a tier may take. The
    intercept is a tier by itself: every row moves it, and it takes next to no time.
    """

    def __init__(
        self,
        problem: RowProblem,
        unseen: float,
        near: float = NEAR,
        afforded: float = AFFORDED,
    ) -> None:
        size = problem.columns + 1  # and the intercept, which is the first of the hot ones
        heat = problem.heat
        ends = [1, *(c for c in TIERS if LEAST_COLD * c <= size and c <= len(heat.columns))]
        self.hot = np.append(np.uint32(problem.columns), heat.columns[: ends[-1] - 1])
        self.ends = np.array(ends, np.uint64)
        # How far a row moves the score of another through the columns of a tier and colder ones
        moves = [
            heat.squares[place:].max(initial=0) + (heat.means[place:] ** 2).sum()
            for place in (0, *(end - 1 for end in ends))
        ]
        moves[0] = max(moves[0], problem.intercept_share)
        self.moves = np.maximum(moves, 1e-30) * unseen * problem.bend / near
        costs = [LISTED * (end - before) for before, end in pairwise([0, *ends])]
        costs[0] = max(costs[0], AT_LEAST)
        affordable = np.array([*costs, size * IN_ORDER]) / afforded
        affordable *= problem.units / max(1, problem.work)
        self.floors = np.minimum(affordable, problem.units / FEWEST_TIMES)

    def __len__(self) -> int:
        return len(self.floors)

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """As the kernels take them."""
        return self.hot, self.ends, self.moves, self.floors


class CombineWorker(RowWorker):
    """A worker with a copy of the weights, to which the changes of the others are added."""

    goes_by_heat = True
    rough = ("slots", "hot_slots", "sums")

    def __init__(self, problem: RowProblem, shared: Arrays, control: Control, rank: int) -> None:
        super().__init__(problem, shared, control, rank)
        self._tiers = Tiers(problem, control.workers - 1)
        self._place = rank, control.workers
        size, hot = problem.columns + 1, len(self._tiers.hot)
        own = private_arrays(dict.fromkeys(("weights", "seen"), (size, np.float32)))
        self._own = (
            own["weights"],
            own["seen"],
            np.zeros(hot, np.float32),
            shared["sums"].reshape(control.workers, -1)[rank],
        )
        self._slots = shared["slots"], shared["hot_slots"][: control.workers * hot]
        self._tally = np.zeros(kernels.TIER + len(self._tiers), np.int64)
        self._rows_between_looks = 1 + LOOK * problem.units // max(1, problem.work)

    @classmethod
    def kernels(cls) -> list[Kernel]:
        """What it calls besides the problem's own kernels."""
        return [
            kernels.learn_combined,
            kernels.hand_in,
            kernels.add_up,
            kernels.add_up_hot,
        ]

    @classmethod
    def arrays(cls, problem: Problem, workers: int) -> Wanted:
        """A slot of every weight for every worker, and its sums over moments."""
        assert isinstance(problem, RowProblem)
        size = workers * (problem.columns + 1)
        return {
            "slots": (size, np.float32),
            "hot_slots": (workers * TIERS[-1], np.float32),
            "sums": (2 * size if problem.moments else workers, np.float32),
        }

    def _go_through(self, part: Part, begin: int, stop: int) -> float:
        total = 0.0
        # Where an epoch goes in parts, the means are over the last of them
        takes_moments = self._problem.moments > 0 and part.end == 1
        if self._start(begin, takes_moments):
            rows, how = self._problem.visiting(part.eta0)
            calming = max(1.0, CALMING * self._problem.units)
            clock = float(part.done), float(part.done), calming
            place = begin
            while place < stop and self._control.goes_on():
                end = min(stop, place + self._rows_between_looks)
                total += kernels.learn_combined(
                    rows,
                    self._order,
                    (begin, place, end),
                    how,
                    clock,
                    self._own,
                    self._slots,
                    self._tiers.arrays,
                    self._place,
                    self._control.words,
                    self._tally,
                )
                place = end
        self._merged += 1e-9 * int(self._tally[kernels.SPENT])
        kernels.hand_in(self._own, self._slots, self._tiers.hot, self._place)
        if takes_moments:
            self._even_out_moments()
        if self._meet(END):
            self._bring_together(takes_moments)
        return total

    def _start(self, begin: int, takes_moments: bool) -> bool:
        """Makes the copy, and the slots: worker 0 holds what there is to begin with."""
        weights, seen, hot_seen, _ = self._own
        weights[:-1], weights[-1] = self._shared["weights"], self._shared["intercept"][0]
        mine = np.float32(self._rank == 0)
        slots, hot_slots = (part.reshape(self._place[1], -1)[self._rank] for part in self._slots)
        hot = self._tiers.hot
        for own, slot, others in ((weights, slots, seen), (weights[hot], hot_slots, hot_seen)):
            np.multiply(own, mine, out=slot)
            np.multiply(own, 1 - mine, out=others)
        slots[hot] = seen[hot] = 0
        self._tally[:] = 0
        if takes_moments:
            each = max(FEWEST_MOMENTS, self._problem.moments // (2 * self._control.workers))
            self._tally[kernels.GAP] = max(1, len(self._order) // each)
            self._tally[kernels.LATE_FROM] = int(LATE * len(self._order)) - begin
        return self._meet(START)

    def _even_out_moments(self) -> None:
        """Makes this worker's sums such as are over a share of the epoch, whatever was counted."""
        sums = self._own[3].reshape(2, -1)
        weights, seen, hot_seen, _ = self._own
        hot = self._tiers.hot
        for which, share in enumerate((LATE, 1 - LATE)):
            count = int(self._tally[kernels.EARLY + which])
            if count == 0:  # what is there is of another epoch
                np.subtract(weights, seen, out=sums[which])
                sums[which][hot] = weights[hot] - hot_seen
            sums[which] *= np.float32(share * EVEN / max(1, count))
        if self._rank == 0:
            self._control.add_moments(int(LATE * EVEN), int((1 - LATE) * EVEN))

    def _bring_together(self, moments: bool) -> None:
        """Makes the shared weights whole: each worker adds up its share of the columns."""
        hot, workers, columns = self._tiers.hot, self._control.workers, self._problem.columns
        share = share_of(columns, workers, self._rank)
        kernels.add_up(self._slots[0], workers, 0, share, self._shared["weights"])
        kernels.add_up_hot(self._slots[1], workers, hot, share, self._shared["weights"])
        intercepts = self._slots[1].reshape(workers, -1)[:, 0]
        if self._rank == 0:
            self._shared["intercept"][0] = intercepts.sum(dtype=np.float32)
        sums = self._shared["sums"]
        for which, prefix in enumerate(SUMS if moments else ()):
            offset = which * (columns + 1)
            kernels.add_up(sums, workers, offset, share, self._shared[prefix + "weights"])
            if self._rank == 0:
                intercepts = sums.reshape(workers, -1)[:, offset + columns]
                self._shared[prefix + "intercept"][0] = intercepts.sum(dtype=np.float32)
