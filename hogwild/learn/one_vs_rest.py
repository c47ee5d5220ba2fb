"""Several classes or labels, each against the rest, by the solvers with a proof.

Each head is a problem of two classes on the same rows. Each head is learned independently: it has
its own solver for two classes, with its own weights and dual variables. The objective, its lower
bound and the gap are sums over the heads.

In an epoch, each head whose gap is not small enough yet has an epoch of its solver. Threads share
the heads, and the result does not depend on the number of threads.
"""

import math
from dataclasses import replace
from functools import partial
from threading import Lock, get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels.compile import Kernel
from hogwild.kernels.targets import WORD
from hogwild.kernels.views import Clock, Fetching, RowView, Span, Stored, task_of, view
from hogwild.lasting import Lasting
from hogwild.learn.dual import COST, COST_OF_MEAN
from hogwild.learn.duals import DUALS
from hogwild.learn.heads import Heads, heads_of
from hogwild.learn.iterated import Iterated, IteratedSolver
from hogwild.learn.losses import LABELS, SIGNS
from hogwild.learn.problem import Followed, Passed
from hogwild.learn.sets import Set
from hogwild.learn.solver import Solver
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from hogwild.pace import Pace
from hogwild.parallel.memory import Arrays, Wanted, private_arrays
from hogwild.seeds import seed_of
from hogwild.steps.dual import STATE
from hogwild.threads import side_by_side

Floats = npt.NDArray[np.float32]

# Bytes that a head takes for a row and for a column, about: targets, dual variables and weights,
# with the copies of both that are kept
BYTES_OF_ROW, BYTES_OF_COLUMN = 32, 32


class OneVsRest(IteratedSolver):
    """A solver for each head."""

    def __init__(
        self,
        config: Config,
        heads: Heads,
        data: Set,
        intercept_share: float,
        kind: type[Solver],
    ) -> None:
        super().__init__(config, heads, data, intercept_share)
        self._kind = kind
        self.effort = heads.count / heads.effort

    def outcome(self, columns: int, nonzeros: float) -> "EachHead":
        make = EachAscent if self._config.is_dual else EachHead
        return make(self._config, self, self._heads, len(self._data), columns)

    def head(self, number: int, columns: int, fetching: Fetching) -> "Head":
        """One head with its solver. The target objective is for all heads together."""
        config = self._config
        config = replace(config, target=None, tol=config.tol if config.target is None else 0.0)
        data = against_the_rest(self._data, self._heads.kind, number)
        solver = self._kind(config, heads_of(config.loss_name, SIGNS, 1), data, 0.0)
        make = Ascent if config.is_dual else Head
        return make(config, solver, data, columns, fetching)


class Head(Lasting):
    """One class against the rest: the result of its solver, in its own arrays.

    Attributes:
        outcome: the weights of its solver, with what is proved about them.
        arrays: what the outcome works on.
        reason: why it needs no more epochs, if that is so.
    """

    lasting: tuple[str, ...] = ("arrays", "outcome", "reason")

    def __init__(
        self, config: Config, solver: Solver, data: Set, columns: int, fetching: Fetching
    ) -> None:
        self._config, self._solver, self._data = config, solver, data
        self._fetching = fetching
        self.outcome: Any = solver.outcome(columns, 0.0)
        state = len(data) * solver.step.state
        wanted: Wanted = {"stored": (columns + 1, np.float32), "row_state": (state, np.float32)}
        self.arrays = private_arrays(wanted | self.outcome.shared())
        self.reason: str | None = None

    @property
    def weights(self) -> Floats:
        """The weights so far, with the intercept behind them."""
        found: Floats = self.arrays[self.outcome.name(self.arrays)]
        return found

    def kernels(self) -> list[Kernel]:
        """All that it calls."""
        found: list[Kernel] = self.outcome.kernels(True)
        return found

    def begin(self, start: Arrays, at_zero: float) -> None:
        """Begins with zero weights, or with those of a start."""
        if start:
            self.arrays["stored"][:] = start["stored"]
        self.outcome.begin(self.arrays, start, at_zero)

    def advance(self, passed: Passed) -> float:
        """An epoch; the mean loss before it."""
        loss = float(self.outcome.iterate(self.arrays, passed))
        if self.outcome.reason == "converged":
            self.outcome.polish(self.arrays, passed)
        return loss

    def look(self) -> None:
        """Finds out how good the weights are."""
        if self.outcome.reason is not None:  # else that is known
            self.outcome.prove(self.arrays)
        self.reason = self.outcome.reason


class Ascent(Head):
    """The same by dual coordinate ascent, row by row, as a worker does it that is alone.

    Attributes:
        is_due: whether it may be good enough, so that a look is worth its time.
    """

    lasting = (*Head.lasting, "_epochs", "_steps")

    def begin(self, start: Arrays, at_zero: float) -> None:
        """Begins with zero weights, or with those of a start and its dual variables."""
        self._epochs, self._steps, self.is_due = 0, 0, False
        if "row_state" in start:
            self.arrays["row_state"][::STATE] = start["row_state"]
        super().begin(start, at_zero)

    def kernels(self) -> list[Kernel]:
        return [*super().kernels(), shared_loop(self._solver.step)]

    def advance(self, passed: Passed) -> float:
        """A pass; what rows added to the gap, on average."""
        stored, state = self.arrays["stored"], self.arrays["row_state"]
        size, self._epochs = len(self._data), self._epochs + 1
        order = np.empty(size, np.uint32)
        self.outcome.shuffle(order, 0, seed_of(self._config.seed, self._epochs, 0), state)
        plan = self._solver.plan(self._steps, 1.0, *self.outcome.numbers)
        heads = heads_of(self._config.loss_name, SIGNS, 1)
        shape = heads.shape(self._data.weighted)
        task = task_of(self._data.view, order, heads.scratch(), shape, plan, self._fetching)
        bias = np.zeros(1, np.float32)
        seen, loop = view(Stored, stored, stored, bias, bias, state), shared_loop(self._solver.step)
        total, begin = 0.0, 0
        while begin < size and passed(0.0):
            end = min(begin + self._data.chunk, size)
            clock = view(Clock, self._steps + begin, 1)
            total += float(loop(task, view(Span, begin, end), seen, clock, NO_SNAPSHOTS))
            passed((end - begin) / size)
            begin = end
        self._steps += begin
        if begin:
            self.is_due = self.outcome.follow(self.arrays, total, begin, alone=True).due
        return total / max(1, begin)

    def look(self) -> None:
        """Finds out how good the weights are."""
        self.outcome.prove(self.arrays)
        self.reason = self.outcome.reason


class EachHead(Iterated):
    """The weights of all heads, with sums over them of what is proved."""

    lasting: tuple[str, ...] = (*Iterated.lasting, "_heads")

    def __init__(
        self, config: Config, solver: OneVsRest, heads: Heads, rows: int, columns: int
    ) -> None:
        super().__init__(config)
        self._solver, self._count, self._width = solver, heads.count, heads.width
        self._rows, self._columns = rows, columns
        self.scratch = self._count * (BYTES_OF_ROW * rows + BYTES_OF_COLUMN * columns)
        self.copied = self._head(0).outcome.copied
        self._heads: list[Head] = []
        self._threads = 1

    def kernels(self, alone: bool) -> list[Kernel]:
        return self._head(0).kernels()

    def _head(self, number: int) -> Head:
        return self._solver.head(number, self._columns, self.fetching)

    def use(self, threads: int) -> None:
        self._threads = threads

    def suits(self, start: Arrays) -> Arrays:
        """The weights, whatever solver they come from."""
        return {"stored": start.get("weights", start["stored"])}

    def begin(self, shared: Arrays, start: Arrays, at_zero: float) -> None:
        """Makes all heads anew."""
        self._scale = at_zero if math.isfinite(at_zero) else 0.0
        self._objective, self.bound = math.inf, -math.inf
        self._heads = [self._head(k) for k in range(self._count)]
        for k, head in enumerate(self._heads):
            head.outcome.share(self._heads[0].outcome)
            head.begin(self._start_of(k, shared) if start else {}, at_zero / self._count)

    def _start_of(self, number: int, shared: Arrays) -> Arrays:
        """What a head begins with."""
        return {"stored": self._stored(shared)[:, number]}

    def _stored(self, shared: Arrays) -> Floats:
        """The shared weights: a line for each column, and one for the intercepts."""
        return shared["stored"].reshape(-1, self._width)

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        super().restore(shared, learned, last)
        self.begin(shared, last, self._scale)

    # An epoch

    @property
    def _active(self) -> list[Head]:
        return [head for head in self._heads if head.reason is None]

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        """An epoch of all heads that need it; the sum of what they return."""
        counter, active = Counter(passed, self._count, self._rows), self._active
        for head in active:
            head.outcome.use(max(1, self._threads // len(active)))
        found = side_by_side([partial(head.advance, counter) for head in active], self._threads)
        self._add_up()
        if self.reason == "converged":  # by the sum: the others have not been polished
            for head in active:
                head.outcome.polish(head.arrays, counter)
        counter.tell()
        return sum(found)

    def prove(self, shared: Arrays) -> None:
        """Looks at the heads that had an epoch, and takes their weights."""
        stored = self._stored(shared)

        active = [k for k, head in enumerate(self._heads) if head.reason is None]
        side_by_side([self._heads[k].look for k in active], self._threads)
        self._add_up()
        if self.reason is not None:  # by the sum, while heads have made no claim
            settle = [partial(head.outcome.settle, head.arrays) for head in self._active]
            side_by_side(settle, self._threads)
            self._add_up()
        for k in active:
            stored[:, k] = self._heads[k].weights

    def _add_up(self) -> None:
        self._objective = sum(head.outcome.objective for head in self._heads)
        self.bound = sum(head.outcome.bound for head in self._heads)

    @property
    def _is_near(self) -> bool:
        return super()._is_near or all(head.reason == "converged" for head in self._heads)

    @property
    def _stuck(self) -> str | None:
        return None if self._active else "stuck"


class EachAscent(EachHead):
    """The same by dual coordinate ascent, where proofs take time."""

    kept = ("stored", "row_state")
    lasting = (*EachHead.lasting, "_pace")

    def shared(self) -> Wanted:
        """The dual variables of all heads."""
        return {"row_state": (self._count * self._rows, np.float32)}

    def suits(self, start: Arrays) -> Arrays:
        """What training can continue from: dual variables only suit the rows that they are of."""
        known = len(start.get("row_state", ())) == self._count * self._rows
        return {name: start[name] for name in self.kept if name == "stored" or known}

    def begin(self, shared: Arrays, start: Arrays, at_zero: float) -> None:
        self._known = "row_state" in start
        super().begin(shared, start, at_zero)
        is_smooth = DUALS[self._config.loss_name].smooth
        self._pace = Pace(COST + COST_OF_MEAN * (not is_smooth), is_smooth)

    def _start_of(self, number: int, shared: Arrays) -> Arrays:
        found = super()._start_of(number, shared)
        return found | {"row_state": self._duals(shared)[number]} if self._known else found

    def _duals(self, shared: Arrays) -> Floats:
        return shared["row_state"].reshape(self._count, -1)

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        found = super().iterate(shared, passed)
        for number, (mine, head) in enumerate(zip(self._duals(shared), self._heads, strict=True)):
            if head.reason is None:
                mine[:] = head.arrays["row_state"][::STATE]
            if not math.isfinite(self._objective):  # a callback may ask before the first look
                self._stored(shared)[:, number] = head.weights
        return found

    def follow(self, shared: Arrays, excess: float, steps: int, alone: bool) -> Followed:
        """Whether the gap may be small enough by now."""
        self._pace.passed(1.0, sum(head.outcome.excess for head in self._active))
        return Followed(self._pace.is_due(self._wanted(self.bound)), False)

    def _wanted(self, bound: float) -> float:
        """A gap of the heads that still have epochs, at which the training may end."""
        rest = sum(_gap(head) for head in self._heads if head.reason is not None)
        return super()._wanted(bound) - rest * (self._config.target is None)

    def prove(self, shared: Arrays) -> None:
        active = self._active
        super().prove(shared)
        self._pace.looked(sum(map(_gap, active)))


class Counter:
    """Counts the passes of heads, in any thread, and reports them in the caller's thread.

    The total is a whole number of rows, so it does not depend on the order of the threads.
    """

    def __init__(self, passed: Passed, heads: int, rows: int) -> None:
        self._passed, self._heads, self._rows = passed, heads, rows
        self._caller, self._lock = get_ident(), Lock()
        self._visits, self._told, self._goes_on = 0, 0, True

    def __call__(self, passes: float = 1.0) -> bool:
        """Counts some passes of a head; returns whether to continue."""
        with self._lock:
            self._visits += round(passes * self._rows)
        if get_ident() == self._caller:
            self.tell()
        return self._goes_on

    def tell(self) -> None:
        """Reports how many rows all heads visited since the last report."""
        rows = self._visits // self._heads
        self._goes_on = self._passed((rows - self._told) / self._rows)
        self._told = rows


def against_the_rest(data: Set, kind: str, number: int) -> Set:
    """The rows with 1 as the target of those that belong to a head, and -1 of the others."""
    targets = data.view.targets.reshape(len(data), -1)
    if kind == LABELS:
        word, bit = divmod(number, int(WORD))
        has = targets[:, word].copy().view(np.uint32) >> np.uint32(bit) & np.uint32(1) > 0
    else:
        has = targets[:, 0] == number
    signs = np.where(has, np.float32(1), np.float32(-1))
    if data.weighted:
        signs = np.column_stack([signs, targets[:, -1]])
    return replace(data, view=view(RowView, *data.view[:-1], signs.ravel()))


def _gap(head: Head) -> float:
    return float(head.outcome.objective - head.outcome.bound)
