"""Linear models: score = <w, x> + b, and the objective l2/2 |w|^2 + l1 |w|_1 + mean(loss).

The intercept is not penalized. It learns like a column that holds a typical value of the data.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.computed import cached_property
from hogwild.config import ADAPTIVE, NORMALIZED, VOTE, Config
from hogwild.data.mapped_rows import MappedRows
from hogwild.data.rows import Labels, Rows
from hogwild.data.rows_file import StoredRows
from hogwild.data.statistics import largest_columns
from hogwild.data.used_columns import KERNELS
from hogwild.errors import DataError, OptionError
from hogwild.kernels.compile import Kernel
from hogwild.kernels.evaluate import absolute_sum, scores, squared_norm
from hogwild.kernels.order import shuffle
from hogwild.kernels.primitives import LINE
from hogwild.kernels.rows import gather_rows
from hogwild.kernels.views import Clock, Fetching, Span, Stored, Task, task_of, view
from hogwild.learn import column_sizes, fetching, progress
from hogwild.learn.cholesky import operations
from hogwild.learn.choosing import (
    CG,
    CLOSED,
    COORDINATE,
    DUAL,
    GD,
    LBFGS,
    NEWTON,
    by_blocks,
    by_data,
    is_unscaled,
)
from hogwild.learn.closed import Closed
from hogwild.learn.coordinate import CoordinateDescent
from hogwild.learn.descent import GradientDescent, Lbfgs
from hogwild.learn.dual import DualAscent
from hogwild.learn.ftrl import Ftrl, schedule_of
from hogwild.learn.heads import heads_of, zeros_on_a_line
from hogwild.learn.iterated import Iterated
from hogwild.learn.losses import CLASSES, LOSSES, SIGNS
from hogwild.learn.needs import KINKED, unmet
from hogwild.learn.newton import Newton
from hogwild.learn.one_vs_rest import OneVsRest
from hogwild.learn.penalties import Penalty
from hogwild.learn.placing import needed, placed
from hogwild.learn.problem import (
    Arrays,
    Doubles,
    Followed,
    Now,
    Passed,
    Proved,
    RowProblem,
    Share,
    Shown,
    Sums,
)
from hogwild.learn.proof import Proof
from hogwild.learn.sample import FEW_COLUMNS, Sample
from hogwild.learn.sets import CHUNK_NONZEROS, Set, class_weights, hold_out, row_weights
from hogwild.learn.sgd import Sgd
from hogwild.learn.smoothed import Kinked
from hogwild.learn.solver import Solver
from hogwild.learn.targets import Target, target_for
from hogwild.learn.used_columns import UsedColumns
from hogwild.loops.shared import NO_SNAPSHOTS, shared_loop
from hogwild.loops.strategies import AUTO
from hogwild.machine import available_memory, usable_cores
from hogwild.models.heads import HeadsModel
from hogwild.models.linear import LinearModel
from hogwild.models.votes import VoteModel, votes
from hogwild.steps.step import Step

BATCH = 256
HELD_OUT = "held_out"  # the set that says when to stop
MANY_WEIGHTS = 1 << 18  # a pass over them takes longer than telling the workers to make it
AHEAD = 2, 20  # rows ahead that are fetched into the cache, at least and at most
# Cache lines that are fetched of each row: enough for a share `MOST_ROWS` of the rows, and at most
# `MOST_LINES`. The lengths of `LENGTHS` rows decide
LENGTHS, MOST_ROWS, MOST_LINES = 1_000, 0.85, 16
# How far ahead their weights are, where there are more than caches hold: those of the machine, or
# of a core where others write to the same weights. Fewer are at hand without being asked for
NEAR_NONZEROS = 64
CACHED, CACHED_BY_ONE = 1 << 21, 1 << 18
CACHED_OF_MANY = 1 << 23  # the same of several heads: whole cache lines of each column
# By the option solver, or by the schedule; all other schedules are those of Sgd
SOLVERS: dict[str, type[Solver]] = {
    DUAL: DualAscent,
    NEWTON: Newton,
    CG: Newton,
    CLOSED: Closed,
    COORDINATE: CoordinateDescent,
    GD: GradientDescent,
    LBFGS: Lbfgs,
    ADAPTIVE: Ftrl,
    NORMALIZED: Ftrl,
}
CENTER = "center"  # of targets, in a state
MANY_CLASSES = 50  # more classes than that, with fewer than two rows each, may be numbers
TINY = 1e-12  # a rate, where a loop is only timed
WORTH_IT = 0.99  # of the objective: lower than that, steps that take twice as long are


class LinearProblem(RowProblem):
    """The training rows (and test rows), and the work of the workers."""

    work_name = "nonzeros"
    unit_name = "rows"
    ours_alone = ("_given", "_columns", "sample", "_start", "notes")
    lasting = ("_outcome",)

    def __init__(
        self,
        rows: Rows,
        test: Rows | None,
        config: Config,
        labels: Labels | None = None,
        validate: Rows | None = None,
        start: Arrays | None = None,
        compact: bool = False,
        centers: bool = True,
    ) -> None:
        """`start`: the state that training continues from, if any; it may have another schedule.

        `compact`: whether it may learn weights of the used columns only, as if the others' were
        zero at the start. `centers`: whether numbers to learn may get a center by these rows.
        """
        self._penalty = Penalty.of(config.as_dict())
        if not len(rows):
            raise DataError(f"{rows.name} has no rows to learn from")
        self.target = _target(config, rows, labels, start, centers)
        self.votes = config.merge == VOTE
        if self.votes and self.target.kind != SIGNS:
            raise OptionError(
                f"merge: to be vote it needs two classes, and {rows.name} has "
                f"{len(self.target.labels)}; leave it out"
            )
        self.heads = heads_of(config.loss_name, self.target.kind, self.target.heads)
        rows, note = placed(rows, config)
        self.notes: list[str] = [
            *rows.notes,
            *([note] if note else []),
            *_class_notes(self.target, rows),
        ]
        if isinstance(rows, MappedRows):
            self.mapped = rows.bare()
            test, validate = (
                MappedRows.of(some) if isinstance(some, StoredRows) else some
                for some in (test, validate)
            )
        threads = min(config.workers or usable_cores(), usable_cores())
        self._columns = UsedColumns(rows, threads, self.mapped is not None or not compact)
        rows = self._columns.narrowed(rows)
        is_open = config.leaves_schedule
        config = self.config = self._settled(config, rows, judged=validate is not None)
        self.groups = self.heads.groups
        if config.early_stopping is not None:
            rows, validate = hold_out(rows, self.target, config.early_stopping, config.seed)
        self.name, self.units = rows.name, len(rows)
        self.work, self.columns = rows.nonzeros, rows.columns
        self.batch = config.batch or BATCH
        self.seed = config.seed
        self._given = rows
        self._sets = self._sets_of(rows, validate, test)
        self.shown = tuple(
            Shown(f"{data}_{shown.key}", f"{data.replace('_', ' ')} {shown.title}", shown.form)
            for shown in self.target.shown
            for data in dict.fromkeys(["train", *self._sets, "test"])
        )
        if config.zeroes:
            self.shown += (Shown("nonzero_weights", "non-zero", ",d"),)
        self._mean_length = max(1.0, rows.nonzeros / len(rows))
        self.chunk = max(1, int(CHUNK_NONZEROS / self._mean_length / self.heads.effort))
        self._lines = _lines(rows)
        self._weighted = self._sets["train"].weighted
        self._parameter = config.loss_value
        self.curvature = LOSSES[config.loss_name].curvature
        self._start: Arrays = {}  # what training goes on from, if anything
        self._at_zero = self._objective_at_zero()
        self._choose_solver(is_open and not config.proves, rows, start)
        self.intercept_share = self._solver.intercept_share
        self._refuse_heads()
        self.width = self._solver.step.width or self.heads.width
        self._outcome = self._solver.outcome(self.columns, self.effort)
        if self.mapped is not None:
            self._outcome.chunk, self._outcome.puts_aside = self.mapped.file.each, False
        if isinstance(self._outcome, Iterated):
            self._outcome.fetching = self._fetching_of_one()
        self.snapshots, self.averages_run = self._outcome.snapshots, self._outcome.over_run

    def _sets_of(self, rows: Rows, validate: Rows | None, test: Rows | None) -> dict[str, Set]:
        """The rows as kernels take them; class weights apply to the training rows only."""
        by_label = self._class_weights = class_weights(self.config, rows, self.target)
        found = {"train": Set.of(rows, self.target, row_weights(by_label, rows, self.target))}
        if validate is not None:
            judged = self._narrowed(validate)
            factors = row_weights(by_label, judged, self.target)
            found[HELD_OUT] = Set.of(judged, self.target, factors)
            self.judge = f"{HELD_OUT}_loss"
        if test is not None:
            found["test"] = Set.of(self._narrowed(test), self.target)
        return found

    def _made_solver(self, config: Config, rows: Rows) -> Solver:
        # With l1 it is Ftrl by its schedule, as steps along a gradient make no zeros
        share = _intercept_share(rows) if config.intercept else 0.0
        kind = _solver_for(self._choice[0], config)
        given = config, self.heads, self._sets["train"], share
        if self.heads.several and config.proves and not self.heads.coupled:
            return OneVsRest(*given, kind)
        return kind(*given)

    def _choose_solver(self, is_open: bool, rows: Rows, start: Arrays | None) -> None:
        """Makes the solver; if the schedule is open, a trial decides.

        If columns are unscaled, steps by the size of columns are tried. If training continues from
        an earlier one, it takes the schedule of that one.
        """
        self._solver = self._made_solver(self.config, rows)
        other = schedule_of(start) if start else NORMALIZED
        if not is_open or other is None or self.heads.several:
            return
        if not start and not is_unscaled(rows):
            return
        config = replace(self.config, schedule=other)
        if unmet(config):
            return
        solver = self._made_solver(config, rows)
        if start or solver.tried(self.sample) < WORTH_IT * self._solver.tried(self.sample):
            self.config, self._solver = config, solver

    def _settled(self, config: Config, rows: Rows, judged: bool) -> Config:
        """The options, with the solver that is best for the rows."""
        self._choice = by_data(config, rows, self.heads, judged)
        if self.mapped is not None:
            limit = config.memory_bytes or available_memory()
            room = needed(self.mapped, self.heads, True, config.workers or usable_cores())
            self._choice = by_blocks(self._choice, config, self.heads, room <= limit)
        solver = self._choice[0]
        return config if solver == config.choice[0] else replace(config, solver=solver)

    @property
    def _proof(self) -> Proof | None:
        return self._outcome if isinstance(self._outcome, Proof) else None

    @property
    def passes(self) -> str:
        """What workers share, where a solver makes whole passes over the rows; else nothing."""
        if isinstance(self._solver, OneVsRest):
            return f"{self.heads.count:,} {self.heads.kind}"
        return "sums over all rows" if isinstance(self._outcome, Iterated) else ""

    @property
    def proves(self) -> bool:
        """Whether it is known how near the optimum the result is."""
        return self._proof is not None

    def _refuse_heads(self) -> None:
        """Refuses several heads where a solver knows one, and strategies where it needs none."""
        if not self.heads.several:
            return
        if isinstance(self._solver, OneVsRest):
            if self.config.strategy != AUTO:
                raise OptionError(
                    f"strategy: it needs to be auto where the solver {self.config.solver} learns "
                    "several classes, which workers share; leave it out"
                )
            return
        able = self.heads.coupled or not self.config.makes_passes
        if able and not self._solver.step.width:
            return
        options = {"l1": self.config.zeroes, "solver": self.config.proves, "schedule": True}
        option = next(name for name, is_why in options.items() if is_why)
        raise OptionError(
            f"{option}: it needs one score a row, of two classes or of numbers; leave it out, or "
            "train one class against the rest"
        )

    def _objective_at_zero(self) -> float:
        """The objective at zero weights; infinity for a loss that is 0 there and tells nothing."""
        rows = self._sets["train"].view
        nothing = rows._replace(ends=rows.begins)  # rows without columns: all scores are 0
        span, zeros = view(Span, 0, self.units), zeros_on_a_line(self.heads.width)
        given = nothing, self._weighted, span, zeros, self._parameter
        total, _, _ = self.heads.evaluate(*given)
        return float(total) / self.units or math.inf

    def _narrowed(self, test: Rows) -> Rows:
        known = self._columns.total
        if test.columns > known:
            unseen = int(np.count_nonzero(test.indices >= known))
            test = test.narrowed(known)
            self.notes.append(
                f"{test.name}: {unseen:,} values are in columns that training never saw; "
                "they are ignored"
            )
        return self._columns.narrowed(test)

    # What the coordinator asks

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": self.units,
            "columns": self._columns.total,
            "nonzeros": self.work,
            **{data: len(self._sets[data]) for data in self._sets if data == HELD_OUT},
        }

    def summary(self) -> list[str]:
        held = f", and {len(self._sets[HELD_OUT]):,} rows held out" if self.judge else ""
        held += ", which stay on the disk" if self.mapped is not None else ""
        few = f" ({self.columns:,} in use)" if self.columns < self._columns.total else ""
        return [
            f"{self.name}: {self.units:,} rows, {self._columns.total:,} columns{few}, "
            f"{self.work:,} non-zeros{held}",
            self.target.summary + f"{self.config.loss_name} loss, {self._penalty}"
            f"{', errors of the vote, objective of the mean' if self.votes else ''}",
        ]

    def chosen(self) -> dict[str, Any]:
        """The solver; class weights, where there are some; the operations of `closed`."""
        solver, why = self._choice
        found: dict[str, Any] = {"solver": solver, "solver_why": why}
        if self._class_weights is not None:
            found["class_weights"] = self._class_weights.tolist()
        if solver == CLOSED:
            found["operations"] = operations(self.work, self.units, self.columns)
        return found

    @property
    def model_bytes(self) -> int:
        members = (self.config.workers or usable_cores()) if self.votes else 1
        return 4 * self._columns.total * self.heads.count * members

    def check_memory(self, shared: int, own: int, available: int) -> None:
        """Refuses to begin where the weights of all heads, with all copies, do not fit."""
        copied = self._outcome.copied
        if copied > available:
            raise DataError(
                f"{self.name}: the solver {self.config.solver} copies the data into "
                f"{copied / 1e9:,.2f} GB, and {available / 1e9:,.2f} GB of memory are available. "
                "Take the solver sgd"
            )
        if self.mapped is not None:
            self._check_limit(shared, own, available)
        scratch = self._outcome.scratch
        if scratch and scratch + 2 * shared > available:
            raise DataError(
                f"{self.name}: with {self.heads.count:,} classes the solver {self.config.solver} "
                f"needs {(scratch + 2 * shared) / 1e9:,.2f} GB for scores of {self.units:,} rows "
                f"and weights of {self.columns:,} columns, and {available / 1e9:,.2f} GB of memory "
                "are available. Take the solver sgd, or fewer columns"
            )
        # What is kept and returned takes as much again, or more where it has all columns
        needed = shared + own + max(shared, self.model_bytes)
        several = self.heads.width > 1
        if (several or self.columns < self._columns.total) and needed > available:
            weights = 4 * (self._columns.total + 1) * self.width / 1e9
            each = f"{self.heads.count:,} {self.target.kind} x " if several else ""
            more = (
                ", or fewer labels at a time, or average=False; if labels are quantities, use the "
                "task regression"
            )
            raise DataError(
                f"{self.name}: {each}{self._columns.total:,} columns are {weights:,.2f} GB of "
                f"weights, and {needed / 1e9:,.2f} GB with all copies; {available / 1e9:,.2f} GB "
                "of memory are available. Take fewer columns (leave out rare ones, or hash them)"
                f"{more if several else ''}"
            )

    def _check_limit(self, shared: int, own: int, available: int) -> None:
        """Refuses a limit of memory below what is kept for rows that stay on the disk."""
        assert self.mapped is not None
        limit = self.config.memory_bytes
        least = needed(self.mapped, self.heads, self.step.state > 0, self.threads)
        least += 2 * (shared - 4 * self.units * self.step.state) + own
        if least > (limit or available):
            raise DataError(
                f"{self.name}: {self.units:,} rows and {self.columns:,} columns need "
                f"{least / 2**20:,.0f} MB beside the rows' values; "
                + (
                    f"give a memory of {-(-least // 2**20)}M or more"
                    if limit
                    else f"{available / 2**20:,.0f} MB are available. Get more memory"
                )
                + ", or train with fewer workers"
            )

    @property
    def effort(self) -> float:
        """The work of an epoch; the unit is the time of a non-zero with plain descent."""
        return self.work * self._solver.effort * self.heads.effort

    def shared(self) -> dict[str, tuple[int, Any]]:
        stored = {"stored": (self.size, np.float32)}
        state = {"row_state": (self.units * self.step.state, np.float32)}
        return stored | state | self._outcome.shared()

    def kernels(self) -> list[Kernel]:
        """All that training will call besides the loops."""
        evaluators = [self.heads.kernels(data.weighted)[0] for data in self._sets.values()]
        always = [shuffle, *dict.fromkeys(evaluators), squared_norm, *[scores] * self.votes]
        if self._penalty.l1:
            always.append(absolute_sum)
        few, compare = self.heads.few(), self.heads.kernels(self._weighted)[1]
        trying = [*self._solver.kernels(), few.kernels(self._weighted)[1]]
        trying = [] if self.config.eta0 else trying
        sampled = [compare, gather_rows]
        if self.columns * self.width > FEW_COLUMNS:
            sampled += KERNELS
        always += self._outcome.kernels(self.threads == 1)
        if self.proves:
            return always
        needs_sample = self.snapshots or not self.config.eta0
        return always + trying + (sampled if needs_sample else [])

    def set_start(self, shared: Arrays, start: Any, do: Callable[[str], None]) -> None:
        """Writes the first weights into the shared array: zeros, or given ones."""
        for name in self.shared():
            shared[name][:] = 0
        state = self._columns.suited(self._centered_state(start)) if start else {}
        has, needs = ("weights" in names for names in (state, self._outcome.kept))
        if state and ((needs and not has) or (has and not needs and not self.config.zeroes)):
            raise OptionError(
                "l1, schedule: what to go on from was learned with others; an l1, or a rate for "
                "each weight, is for both or for none"
            )
        self._start = self._outcome.suits(state) if state else {}
        for name in self._outcome.kept:
            array = self._start.get(name, shared[name])
            if len(array) != len(shared[name]):
                needed, given = (len(some) // self.width - 1 for some in (shared["stored"], array))
                raise DataError(
                    f"{self.name} needs {needed:,} weights, and what to go on from has {given:,}"
                )
            shared[name][:] = array
        if self.votes:  # the members go on from what was learned together
            shared["members"].reshape(-1, self.size)[:] = self.learned(shared)["weights"]
        self._solver.start(shared["stored"])
        self._outcome.begin(shared, self._start, self._at_zero)

    def _centered_state(self, start: Arrays) -> Arrays:
        """A state whose intercept is for targets with this problem's center."""
        state = _given_state(start)
        further = _center_of(state) - self.target.center
        state = {name: array for name, array in state.items() if name != CENTER}
        if further:
            state["stored"] = state["stored"].copy()
            state["stored"][-1] += np.float32(further)
        return state

    @property
    def step(self) -> Step:
        return self._solver.step

    def plan(self, share: Share) -> Any:
        return self._solver.plan_of(share)

    def numbers(self) -> tuple[float, ...]:
        """What the plan of the next share needs besides its rate."""
        return self._outcome.numbers

    def shuffle(
        self,
        order: npt.NDArray[np.uint32],
        first: int,
        seed: int,
        state: npt.NDArray[np.float32],
    ) -> None:
        """Fills `order` with the rows from `first` on, in a random order."""
        self._outcome.shuffle(order, first, seed, state)

    def follow(self, shared: Arrays, excess: float, steps: int, alone: bool) -> Followed:
        """Takes note of an epoch, with what its rows added to the gap when they were visited."""
        assert self._proof is not None
        self._proof.use(self.threads)
        return self._proof.follow(shared, excess, steps, alone)

    def iterate(self, shared: Arrays, passed: Passed) -> float:
        """Makes a step of a method of whole passes; the mean loss before it."""
        assert isinstance(self._outcome, Iterated)
        self._outcome.use(self.threads)
        loss = self._outcome.iterate(shared, passed)
        if self._outcome.reason == "converged":
            self._outcome.polish(shared, passed)
        return loss

    def prove(self, shared: Arrays) -> Sums:
        """Measures how good the weights are; returns the sums over the training rows."""
        found = self._proof.prove(shared) if self._proof else None
        return {} if found is None else {"train": found}

    def proved(self) -> Proved:
        """What was proved last."""
        assert self._proof is not None
        return Proved(self._proof.gap, self._proof.reason, self._proof.bound)

    def scale(self, now: Now) -> float:
        return self._solver.scale(now)

    def rate(self, done: int, eta0: float) -> float:
        return self._solver.rate(done, eta0)

    def factor(self, epoch: int) -> float:
        return self._solver.factor(epoch)

    def finish(
        self, shared: Arrays, now: Now, snapshots: tuple[int, int] | None, part: int, parts: int
    ) -> Doubles:
        return self._outcome.finish(shared, self._solver.reading(now), snapshots, part, parts)

    @property
    def finishes_together(self) -> bool:
        return self.size > MANY_WEIGHTS

    def choose(self, shared: Arrays, found: Doubles, first: bool) -> None:
        self._outcome.choose(shared, found, first, self.sample)

    def learned(self, shared: Arrays) -> Arrays:
        """The weights that training found, followed by the intercept; views.

        Where workers vote, also the weights of each worker.
        """
        found = {"weights": shared[self._outcome.name(shared)]}
        return found | {"members": shared["members"]} if self.votes else found

    def goes_on_from(self, shared: Arrays) -> Arrays:
        """What is stored, and not a mean of it."""
        return {name: shared[name] for name in self._outcome.kept}

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        self._outcome.restore(shared, learned, last)

    def state(self, shared: Arrays) -> Arrays:
        """The arrays to go on from, and the columns that they are for, if not for all."""
        found = {name: array.copy() for name, array in self.goes_on_from(shared).items()}
        if self.target.center:
            found[CENTER] = np.array([self.target.center])
        return self._columns.marked(found)

    def lasting_arrays(self, shared: Arrays, is_open: bool) -> Iterable[str]:
        return self._outcome.lasting_arrays(shared, is_open)

    def fingerprints(self) -> dict[str, str]:
        """Of the rows to learn from, and of those to judge by."""
        names = {"train": "data", HELD_OUT: "validate"}
        found = {
            names[data]: its.fingerprint() for data, its in self._sets.items() if data in names
        }
        found["data"] += self._columns.fingerprint()
        return found

    def taken(self, shared: Arrays) -> str:
        return self._outcome.word(shared)

    def sets(self) -> list[str]:
        return list(self._sets)

    def measured(self, shared: Arrays, sums: Sums) -> dict[str, float]:
        found = {"objective": self.online(shared, sums["train"][0] / self.units)}
        for data, (loss, first, second) in sums.items():
            weight = self._sets[data].weight
            if data == HELD_OUT:
                found[f"{data}_loss"] = float(loss) / weight
            errors = self.target.measured(float(first) / weight, float(second) / weight)
            found |= {f"{data}_{name}": error for name, error in errors.items()}
        found["nonzero_weights"] = int(
            np.count_nonzero(self.learned(shared)["weights"][: -self.heads.width])
        )
        return found

    def online(self, shared: Arrays, mean_loss: float) -> float:
        weights = self.learned(shared)["weights"][: -self.heads.width]
        return float(self._penalty.value(weights) + mean_loss)

    def went_wrong(self, objective: float, best: float) -> bool:
        """Whether an epoch undid too much of what was gained since the start."""
        if not progress.went_wrong(objective, best, self._at_zero):
            return False
        return progress.went_wrong(objective, best, max(self._at_zero, self._at_start))

    def has_risen(self, objective: float, best: float) -> bool:
        """Whether an objective is above the best one so far, or that of zero weights."""
        return progress.has_risen(objective, min(best, self._at_zero))

    def learned_nothing(self, objective: float) -> bool:
        """Whether it is hardly below that of zero weights, likely because values are large."""
        return objective > (1 - progress.LEAST) * self._at_zero and bool(self.hint)

    @cached_property
    def _at_start(self) -> float:
        """The objective of what training continues from, computed when first needed."""
        if not self._start:
            return self._at_zero
        start = self._start["weights" if "weights" in self._start else "stored"]
        weights = zeros_on_a_line(len(start))
        weights[:] = start
        arrays: Arrays = dict.fromkeys(("stored", "weights", "best"), weights)  # whatever is taken
        arrays |= dict.fromkeys(("chosen", "taken", "has_best"), np.zeros(1, np.int64))
        parts = [self.evaluate(arrays, "train", part) for part in range(self.parts("train"))]
        return self.measured(arrays, {"train": np.sum(parts, axis=0)})["objective"]

    @cached_property
    def _largest(self) -> list[tuple[int, float]]:
        found = largest_columns(self._given, column_sizes.NAMED)
        return [(self._columns.given(column), size) for column, size in found]

    @property
    def advice(self) -> str:
        """Advice to scale the columns; it names the largest."""
        return column_sizes.advice(self._largest, self._given.index_base)

    @property
    def hint(self) -> str:
        """The same, where values are large."""
        return self.advice if column_sizes.are_large(self._largest) else ""

    def model(
        self, learned: Arrays, about: dict[str, Any], state: Arrays | None = None
    ) -> LinearModel:
        model = self._model(learned, about)
        model.features = self._given.features
        return model

    def _model(self, learned: Arrays, about: dict[str, Any]) -> LinearModel:
        weights = self._columns.widened(learned["weights"])
        if self._given.feature_names:
            about = about | {"feature_names": self._given.feature_names}
        target = self.target.with_center(0.0)
        given = target, self.config.loss_name, self._given.index_base, about
        if self.votes:
            of_each = learned["members"].reshape(-1, self.size)
            members = np.array([self._columns.widened(one) for one in of_each])
            return VoteModel(members[:, :-1], members[:, -1], *given, parameter=self._parameter)
        if self.heads.width > 1:
            by_column = weights.reshape(-1, self.heads.width)[:, : self.heads.count]
            return HeadsModel(by_column[:-1].T, by_column[-1], *given, parameter=self._parameter)
        intercept = float(weights[-1]) + self.target.center
        return LinearModel(weights[:-1], intercept, *given, parameter=self._parameter)

    @cached_property
    def sample(self) -> Sample:
        """A few of the rows, always the same ones; they are copied when first asked for."""
        return Sample(self._given, self._sets["train"], self.heads, self.config, self.threads)

    def prepare(self) -> None:
        """Compiles what training will call, and finds how far ahead rows are fetched."""
        super().prepare()
        if not self.passes:
            self._distance  # noqa: B018

    def find_rate(self) -> float:
        if self.proves:  # it has none, and a sample would take time
            return 1.0
        return self._solver.find_rate(self.sample)

    def goes_on_with(self, rows: Rows) -> None:
        """Takes other training rows, with the same target and maybe with more columns."""
        self._sets = {"train": Set.of(rows, self.target)}
        self._given, self.units, self.work = rows, len(rows), rows.nonzeros
        self.columns = max(self.columns, rows.columns)

    # What the workers ask

    def task(
        self,
        order: npt.NDArray[np.uint32],
        share: Share,
        writers: int = 1,
        groups: tuple[int, int] | None = None,
    ) -> Task:
        shape = self.heads.shape(self._weighted, groups)
        rows, fetching = self._sets["train"].view, self._fetching(writers)
        return task_of(
            rows, order, self.heads.scratch(self.width), shape, self.plan(share), fetching
        )

    def repeats(self, share: Share) -> float:
        """One in how many rows is visited in this share; the others were put aside."""
        return 1.0 / max(share.numbers[-1], 1.0 / self.units) if share.numbers else 1.0

    def ahead(self, share: Share, copies: int) -> tuple[float, float]:
        """How much farther weights, and the intercept, move on one of several copies."""
        return self._solver.ahead(share.eta0, copies)

    def _fetching(self, writers: int) -> Fetching:
        cached = CACHED if writers == 1 else CACHED_BY_ONE
        if self.heads.width > 1:
            cached = CACHED_OF_MANY
        return self._rows_ahead(self._distance, self._near if self.size > cached else 0)

    def _fetching_of_one(self) -> Fetching:
        """The same for one head of several, which learns alone."""
        is_small = self._given.nbytes < fetching.SMALLEST
        near = self._near if self.columns > CACHED else 0
        return self._rows_ahead(0 if is_small else fetching.DISTANCES[0], near)

    @property
    def _near(self) -> int:
        return int(min(AHEAD[1] // 2, max(1, NEAR_NONZEROS / self._mean_length)))

    def _rows_ahead(self, nonzeros: int, near: int = 0) -> Fetching:
        least, most = AHEAD
        ahead = int(min(most, max(least, nonzeros / self._mean_length))) if nonzeros else 0
        return view(Fetching, ahead, self._lines, near)

    @cached_property
    def _distance(self) -> int:
        """How many non-zeros ahead rows are fetched, on this machine."""
        # Of several heads the rows are the least of it; and what is measured is kept for all
        if self.heads.width > 1 or self.mapped is not None:
            return fetching.DISTANCES[0]
        rows, weights = self._sets["train"].view, np.zeros(self.size, np.float32)
        bias = np.zeros(self.width, np.float32)
        state = np.zeros(self.units * self.step.state, np.float32)
        stored = view(Stored, weights, weights, bias, bias, state)
        shape, plan = self.heads.shape(self._weighted), self._solver.plan(0.0, TINY)
        size = min(self.units, max(1, int(fetching.PROBED / self._mean_length)))

        def pieces() -> Iterator[npt.NDArray[np.uint32]]:
            order = np.empty(self.units, np.uint32)
            shuffle(order, 0, np.uint64(self.seed))
            yield from cycle(order[k : k + size] for k in range(0, self.units - size + 1, size))

        visited = pieces()

        def seconds_with(nonzeros: int) -> float:
            ahead = self._rows_ahead(nonzeros)
            task = task_of(rows, next(visited), self.heads.scratch(self.width), shape, plan, ahead)
            loop, span = shared_loop(self.step), view(Span, 0, size)
            began = time.perf_counter()
            loop(task, span, stored, view(Clock, 0, 1), NO_SNAPSHOTS)
            return time.perf_counter() - began

        return fetching.distance(self._given.nbytes, seconds_with)

    def steady_steps(self, done: int, eta0: float) -> int:
        return self._solver.steady_steps(done, eta0)

    def add_snapshot(self, shared: Arrays, late: bool, first: bool, scale: float) -> None:
        self._outcome.add(shared, late, first, scale)

    def parts(self, data: str) -> int:
        return -(-len(self._sets[data]) // self.chunk)

    def evaluate(self, shared: Arrays, data: str, part: int) -> Doubles:
        """The sums over some rows of the losses and of the two errors of the kind of target."""
        weights, rows = self.learned(shared)["weights"], self._sets[data]
        span = view(Span, part * self.chunk, min((part + 1) * self.chunk, len(rows)))
        found = np.zeros(3)
        for some, part_of in rows.pieces(span):
            given = some, rows.weighted, part_of, weights, self._parameter
            found += self.heads.evaluate(*given)
        if self.votes:
            members = shared["members"].reshape(-1, self.size)
            found[1] = rows.errors(lambda some: votes(some, members), span)
        return found


def _solver_for(name: str, config: Config) -> type[Solver]:
    if name == NEWTON and config.loss_name in KINKED:
        return Kinked
    return SOLVERS.get(name) or SOLVERS.get(str(config.schedule), Sgd)


def _target(
    config: Config, rows: Rows, labels: Labels | None, start: Arrays | None, centers: bool
) -> Target:
    """The target with its center: that of the start, or one for these rows."""
    target = target_for(config, rows, labels)
    if start:
        return target.with_center(_center_of(start))
    return target.centered(rows) if config.intercept and centers else target


def _class_notes(target: Target, rows: Rows) -> list[str]:
    """A note if the classes look like numbers."""
    count = len(target.labels)
    if target.kind != CLASSES or count <= max(MANY_CLASSES, len(rows) // 2):
        return []
    words = f"{rows.name} has {count:,} classes in {len(rows):,} rows"
    return [f"{words}; if they are numbers, use the task regression"]


def _center_of(state: Arrays) -> float:
    center = state.get(CENTER, np.zeros(1))
    if len(center) != 1:
        raise DataError("start: its center is not one number; give the state of a result as it is")
    return float(center[0])


def _given_state(start: Arrays) -> Arrays:
    """The weights of a state; of the first release, which had the intercept in another array."""
    if "stored" in start:
        return start
    if not {"weights", "intercept"} <= start.keys():
        raise DataError(f"the state to go on from has {', '.join(start)}, and no weights")
    return {"stored": np.append(start["weights"], start["intercept"]).astype(np.float32)}


def _lines(rows: Rows) -> int:
    """Cache lines that are to be fetched of each row, whatever its length."""
    places = np.random.default_rng(0).integers(0, len(rows), LENGTHS)
    return min(
        MOST_LINES, 1 + int(np.sort(rows.lengths(places))[int(MOST_ROWS * LENGTHS)]) // int(LINE)
    )


def _intercept_share(rows: Rows) -> float:
    """The intercept's rate over that of the weights.

    Like a column of a typical size in unnormalised data, slower where rows are normed: found on
    RCV1-shaped rows (0.1 best), on a9a and on binary rows (1 best).
    """
    if not rows.nonzeros:
        return 1.0
    typical = float(np.median(np.abs(rows.some_values())))
    return max(1e-6, min(typical, typical**2 * rows.nonzeros / len(rows)))
