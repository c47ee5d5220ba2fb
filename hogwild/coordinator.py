"""A training run: shards data, runs epochs, tracks convergence, stops, and says why."""

import time
from contextlib import ExitStack
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np

from hogwild import status
from hogwild.checkpoint import Checkpoint, Checkpoints
from hogwild.errors import (
    DataError,
    DivergenceError,
    HogwildError,
    OptionError,
    WorkerError,
)
from hogwild.interrupt import Interrupt, nothing
from hogwild.kernels.checks import first_bad_value
from hogwild.kernels.compile import ready
from hogwild.lasting import Lasting, Saved, copied
from hogwild.learn.problem import Now, Problem, Share
from hogwild.learn.proof import nearness
from hogwild.loops.choice import choose
from hogwild.loops.shared import FEWEST
from hogwild.loops.strategies import ALL_STRATEGIES, Workers
from hogwild.loops.worker import Learned
from hogwild.machine import Usage, available_memory, usable_cores
from hogwild.model_file import damaged
from hogwild.parallel import pool, processes
from hogwild.parallel.memory import Arrays, Wanted, private_arrays, size_of
from hogwild.parallel.team import Control, Threads, Tick
from hogwild.results import Result, State, Watcher
from hogwild.trace import Row, Stopwatch
from hogwild.trace import header as trace_header

# Weights are stored divided by a scale. They are multiplied by the scale before it gets smaller
# than this. Single precision allows such a scale
LEAST_SCALE = 1e-12
LEAST_HURRIED = 0.75
FINISHED_PARTS = 8  # parts of the weights that workers unscale in parallel
# After this number of passes, and of non-zeros in them (some seconds), a note says that the gap is
# still `FAR` times the wanted one. A pass counts as `LEAST_PASS` non-zeros at least
SLOW, SLOW_NONZEROS, LEAST_PASS, FAR = 100, 3e9, 1e5, 10.0
NEAR = 1e-3  # what is wanted where tol is 0
SHORT = 0.1  # seconds of training; after this time, the load of other programs is measured
HALVINGS = 24  # most halvings of the learning rate; each time, training goes back an epoch
DEATHS = 6  # most deaths of workers in an epoch, after which training ends


class Run(Lasting):
    """A run. Callbacks may read `header` and `trace`, and call `model`, `measured` and `stop`."""

    lasting = (
        *("_done", "_first_step", "_eta0", "_first_eta0", "_best", "_epoch", "_known"),
        *("_to_choose", "_alone", "_told_slow"),
    )

    def __init__(
        self,
        problem: Problem,
        watcher: Watcher,
        start: State | None = None,
        interrupt: Interrupt | None = None,
        checkpoints: Checkpoints | None = None,
        resumed: Checkpoint | None = None,
    ) -> None:
        """`checkpoints`: where to write some; `resumed`: the one to go on from."""
        self.config = problem.config
        self.problem = problem
        self._choice = choose(problem, self.config)
        self._strategy = ALL_STRATEGIES[self._choice.strategy]
        self._kind = self._strategy.workers(problem)
        self.workers = self._choice.workers
        problem.threads = min(self.workers, usable_cores())
        self.watcher = watcher
        self.asked: Row = {}  # for the record: what was asked for
        self.trace: list[Row] = []
        self.header: Row = {}
        self._notes: list[str] = []
        self._clock = Stopwatch()
        self._usage: Usage
        self._control: Control
        self._team: Threads | pool.Hired
        self._shared: Arrays
        self._kept: Arrays = {}
        self._kept_last: Arrays = {}  # the last weights, if the kept weights are means
        self._kept_row: Row = {}  # the row of the epoch that was kept
        self._known: Row = {}  # the last measured numbers of a solver with a proof
        self._asked: str | None = None  # a callback's reason to stop
        self._spent: dict[str, float] = {}  # where a worker's time of an epoch went
        self._to_choose: tuple[Any, bool] | None = None
        self._told_slow = False
        self._now_doing = status.Doing("")  # the epoch
        self._alone = False  # whether a note said that one worker trained alone
        self._whole = False  # whether the shared weights are in a state that may be kept
        self._start = start
        self._done = self._first_step = start.steps if start else 0  # steps since training began
        self._eta0 = self._first_eta0 = 0.0
        self._best = np.inf  # the least objective of an epoch so far
        self.interrupt = interrupt or Interrupt()
        self._epoch = start.epochs if start else 0  # begun since then
        self._checkpoints, self._resumed = checkpoints, resumed
        self._before = 0.0  # seconds of training before it was resumed
        self._holding = ExitStack()  # of the team
        self._saved: Saved = {}  # what the next epoch needs, where it may have to be repeated
        self._copies: Arrays = {}  # arrays of it
        self._pending: Row | None = None  # the row of an epoch whose result was not measured yet
        self._ended: str | None = None  # why the training that is resumed had ended
        self._deaths = 0  # of workers, in this epoch
        self._replaced = 0  # workers that died

    def prepare(self) -> None:
        """Does all that comes before the workers start. Ctrl-C ends it at once."""
        own = self._kind.own_memory(self.problem, self.workers)
        self.problem.check_memory(size_of(self._wanted()), own, available_memory())
        with status.doing("preparing"):
            self.problem.prepare()
            ready(*self._kind.kernels(self.problem))
        self._clock.start()
        started = self._start.eta0 if self._start else None
        known = self.config.eta0 or (None if self.problem.proves else started)
        if self._resumed:
            known = self._resumed.eta0
        with status.doing("preparing" if self.problem.proves else "searching for a learning rate"):
            self._eta0 = self._first_eta0 = known or self.problem.find_rate()
        self._rate_seconds = self._clock.seconds

    def run(self) -> Result:
        """Trains until there is a reason to stop.

        Call it within `interrupt`: then Ctrl-C loses no forked worker and nothing that was learned.
        """
        try:
            self._gather_team()
        except WorkerError as death:
            self._get_others(death, "the preparation")
        self._clock.stop()
        try:
            self._usage = Usage(pool.pids, after=SHORT)
            self.interrupt.check()
            self._set_start()
            for text in self.problem.notes:
                self._note(text)
            if self._resumed:
                self._resume(self._resumed)
            self._save(self._pending, self._ended)
            self._say_start()
            reason = self._ended or self._epochs()
            self._write_checkpoint()
            self._check_learned(reason)
            return self._result(reason)
        except KeyboardInterrupt:
            self._write_checkpoint()
            if self._done == self._first_step:
                raise
            return self._result("interrupted")
        except WorkerError as death:
            self._write_checkpoint()
            raise self._with_kept(death) from None
        except HogwildError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            if self._resumed is None or len(self.trace) > self._resumed.epochs:
                raise
            # A checksum that is right does not make a state right: no training wrote this one
            raise damaged(self._resumed.path, problem) from problem
        finally:
            self._holding.close()

    # For callbacks

    def stop(self, reason: str = "callback") -> None:
        """Ends the run soon, also within an epoch, as a limit does. Any thread may call it."""
        self._asked = reason

    def model(self) -> Any:
        """The model of the last finished epoch, made by this call."""
        if self._whole:
            self._choose()
        learned = self.problem.learned(self._shared) if self._whole else self._kept
        if not learned:
            raise HogwildError("no epoch is finished: there is no model to look at yet")
        return self.problem.model(learned, self._about("unfinished", self.trace[-1]))

    def measured(self) -> Row:
        """The row of the last epoch, with its objective; to be called as the epoch ends.

        If `objective_every` left the objective out, this takes a pass over the data. A solver with
        a proof keeps the weights of its last evaluation until the next one, and so their numbers.
        """
        row = self.trace[-1]
        if row["objective"] is None:
            if self.problem.proves and self._known:
                row.update(self._known | {"evaluation": 0.0})
            else:
                self._measure(row, prove=False)
        return row

    def _wanted(self) -> Wanted:
        return self.problem.shared() | self._kind.arrays(self.problem, self.workers)

    def _gather_team(self) -> None:
        """Gets workers and memory."""
        strategy = self._choice.strategy
        wanted = self._wanted()
        self._kind.prepare(self.problem)
        # If the weights of workers are averaged, each worker counts its own steps
        self._own_time = self.workers if self._strategy.averages else 1
        forks = self.config.backend == "process" and processes.available()
        threads = self._strategy.threads  # of one worker
        if self.workers > 1 and forks and not threads:
            kernels = {*self.problem.kernels(), *self._kind.kernels(self.problem)}
            make = partial(Workers, self.problem, strategy)
            patience = self.config.worker_patience
            hired = pool.hire(make, wanted, kernels, self.workers, self._kind.unzeroed, patience)
            self._team, self._control, self._shared = hired, hired.control, hired.shared
            self._hold_team()
            return
        count = 1 if threads else self.workers
        arrays = private_arrays(wanted | Control.arrays(count))
        self._shared = {name: arrays[name] for name in wanted}
        self._control = Control(arrays, count)
        work = Workers(self.problem, strategy, self._shared, self._control)
        self._team = Threads(work, self._control)
        self._hold_team()

    def _hold_team(self) -> None:
        """Lets `_holding` leave the workers, who may soon work for another training."""
        self._holding.callback(self._team.close)
        self.interrupt.stops.append(self._control.stop)
        self._holding.callback(self.interrupt.stops.remove, self._control.stop)

    def _set_start(self) -> None:
        """Writes the first weights, some of them by the workers."""
        start = self._start.weights if self._start else None
        while True:
            self._clock.start()
            try:
                self.problem.set_start(self._shared, start, self._do_stage)
            except WorkerError as death:
                self._get_others(death, "the preparation")
                continue
            self._clock.stop()
            return

    def _do_stage(self, stage: str) -> None:
        self._do("stage", nothing, stage)
        self.interrupt.check()

    def _note(self, text: str) -> None:
        self._notes.append(text)
        self.watcher.note(text)

    def _say_start(self) -> None:
        chosen = {
            "loss": self.config.loss_name,
            "workers": self.workers,
            "backend": "process" if isinstance(self._team, pool.Hired) else "thread",
            "strategy": self._choice.strategy,
            "why": self._choice.why,
            "eta0": self._first_eta0,
            "eta0_found": self.config.eta0 is None and not (self._start or self._resumed),
            "eta0_seconds": self._rate_seconds,
            "prepare_seconds": self._clock.seconds - self._rate_seconds,
        }
        chosen |= self.problem.chosen() | {"proves": self.problem.proves}
        self.header = trace_header(self.config.as_dict(), chosen, self.problem.describe())
        self.header["asked"] = self.asked
        self.header["shown"] = [shown._asdict() for shown in self.problem.shown]
        self.header["summary"] = self.problem.summary()
        self.header["throughput"] = f"{self.problem.work_name}_per_second"
        self.watcher.start(self.header)

    # Epochs

    def _epochs(self) -> str:
        """Runs epochs. After an epoch that failed, goes back and continues at a smaller rate."""
        most = self.config.epochs
        if most is not None and len(self.trace) >= most and self._pending is None:
            return "epochs"
        for _ in range(HALVINGS):
            try:
                return self._epochs_at(self._eta0)
            except DivergenceError:
                self._go_back(self._eta0 / 2)
        return self._epochs_at(self._eta0)

    def _go_back(self, eta0: float) -> None:
        """Goes back to the last good epoch, or to the start. The first time, a note says so."""
        if self.problem.proves:
            self._note(
                f"the workers' changes overshot together in epoch {self._epoch}. Training "
                f"continues from the epoch before, with steps {1 / eta0:g} times as careful"
            )
        elif self._eta0 == self._first_eta0:
            text = (
                f"the learning rate is too large: the objective rose in epoch {self._epoch}. "
                f"Training continues from the epoch before, with half of eta0 = {self._eta0:g}, "
                "and halves it again if needed"
            )
            hint = self.problem.hint
            self._note(f"{text}. {hint}" if hint else text)
        self._eta0 = eta0
        self._epoch -= 1
        if self._kept:
            self._done = self._kept_row["steps"]
            self.problem.restore(self._shared, self._kept, self._kept_last)
        else:
            self._done = self._first_step
            self._set_start()
        self._save()

    def _epochs_at(self, eta0: float) -> str:
        while True:
            try:
                reason = self._epoch_at(eta0)
            except WorkerError as death:
                self._get_others(death, f"epoch {self._epoch}")
                self._set_start()
                self._put_back(self._saved)
                continue
            if reason:
                return reason

    def _epoch_at(self, eta0: float) -> str | None:
        """Runs an epoch; the reason to stop after it, if there is one."""
        self._epoch += self._pending is None
        self._usage.look()
        self.watcher.begin(self._epoch)
        most = f" of at most {self.config.epochs}" if self.config.epochs else ""
        with status.doing(f"epoch {self._epoch}{most}", forks=True, brief=True) as self._now_doing:
            row, self._pending = self._pending or self._learned_row(eta0), None
            limit = self._limits()
            if limit and not self._control.stopped:
                # Without this limit, it might not be measured how good the weights are now
                self._save(pending=row)
            reason = self._track(row, limit)
        self.trace.append(row)
        self._deaths = 0
        self.watcher.epoch(row)
        if self._asked and not reason:
            reason = self._asked
            if row["objective"] is None:
                self._measure(row)
        self._keep(row)
        if not limit:
            self._save(ended=None if reason == self._asked else reason, is_kept=True)
            if self._checkpoints and self._checkpoints.is_due() and not reason:
                self._write_checkpoint()
        self.interrupt.check()
        return reason

    def _learned_row(self, eta0: float) -> Row:
        """Learns for an epoch; its row, in which what is measured is missing."""
        before = self._done, self._clock.seconds
        rate = eta0 * self.problem.factor(self._epoch)
        return self._row(rate, self._learn(rate), before)

    def _learn(self, eta0: float) -> float:
        """Runs an epoch, which a time limit may end early. Returns the online loss, summed."""
        online = 0.0
        parts = self._parts(eta0)
        self._spent = {}
        self._control.forget_snapshots()
        self._clock.start()
        for number in range(parts):
            share = number / parts, (number + 1) / parts
            numbers = self.problem.numbers()
            online += self._learn_share(Share(self._epoch, *share, self._done, eta0, numbers))
            if self._control.stopped:
                break
        self._clock.stop()
        if not np.isfinite(online):  # an overflow: workers stopped where they were
            raise self._diverged("the weights overflowed")
        return online

    def _learn_share(self, share: Share) -> float:
        self._whole = False
        answers = self._do("learn", self._tick, share)
        with np.errstate(over="ignore", invalid="ignore"):  # `_check_finite` reports it
            self._count_time(answers)
            self._tell_if_alone(answers)
            self._finish(share)
            self._whole = True
        self.interrupt.check()
        # In an order that does not depend on which worker did what
        losses = chain.from_iterable(answer.losses for answer in answers)
        return float(sum(loss for _, loss in sorted(losses)))

    def _do(self, command: str, tick: Tick, *arguments: Any) -> list[Any]:
        """Has the team do a command. Ctrl-C ends the command soon, but in good order."""
        self._control.clear()
        if self.interrupt.happened:  # before `clear`, which cleared its stop, too
            self._control.stop()
        return self._team.run(command, *arguments, tick=tick)

    def _finish(self, share: Share) -> None:
        """Counts the steps that were done, unscales the weights, and chooses which mean to take."""
        problem, stopped = self.problem, self._control.stopped
        done = self._done + self._control.steps()
        at_end = bool(problem.snapshots) and (share.end == 1 or stopped)
        snapshots = self._control.snapshots() if at_end else None
        now = self._now(done, share.eta0)
        if problem.finishes_together:
            # The number of parts is fixed, so that sums do not depend on the number of workers
            answers = self._do("finish", nothing, now, snapshots, FINISHED_PARTS)
            found = list(chain.from_iterable(answers))
            if stopped:
                self._control.stop()
        else:
            found = [problem.finish(self._shared, now, snapshots, 0, 1)]
        self._done = done
        if snapshots is not None:
            self._to_choose = np.sum(found, axis=0), share.epoch == 1
            needed = share.epoch == 1 or stopped or problem.averages_run
            if needed or self._is_due(share.epoch):
                self._choose()

    def _choose(self) -> None:
        """Chooses which weights to take, if that is still open."""
        if self._to_choose is not None:
            found, first = self._to_choose
            self.problem.choose(self._shared, found, first)
            self._to_choose = None

    def _is_due(self, epoch: int) -> bool:
        every = self.config.objective_every
        return every > 0 and epoch % every == 0

    def _now(self, done: int, eta0: float) -> Now:
        each = self._own_time
        return Now(done // each, self._done // each, eta0)

    def _count_time(self, answers: list[Learned]) -> None:
        """Adds up where the time of the epoch went, on average over the workers."""
        for name in ("merging", "waiting"):
            spent = sum(getattr(answer, name) for answer in answers) / len(answers)
            self._spent[name] = self._spent.get(name, 0.0) + spent
        # The time that a worker waits for others that have not ended yet
        slowest = max(answer.seconds for answer in answers)
        idle = sum(slowest - answer.seconds for answer in answers) / len(answers)
        self._spent["waiting"] += idle

    def _tell_if_alone(self, answers: list[Learned]) -> None:
        if self.workers > 1 and not self._alone and answers[0].alone:
            self._alone = True
            self._note(
                f"rows overlap so much that several workers of {self._choice.strategy} would "
                f"overshoot at this learning rate: one worker trained alone in epoch "
                f"{self._epoch}, and does so until the learning rate is small enough"
            )

    def _parts(self, eta0: float) -> int:
        """The number of parts of an epoch, so that the penalty leaves enough of the weights."""
        units = self.problem.units
        # If the penalty acts too fast for looks between workers, they wait for each other
        guesses = self.workers > 1 and not self._strategy.deterministic
        hurried = (
            guesses and self.problem.steady_steps(self._done + units, eta0) < FEWEST * self.workers
        )
        least = LEAST_HURRIED if hurried else LEAST_SCALE
        parts = 1
        while parts < units:
            if self.problem.scale(self._now(self._done + -(-units // parts), eta0)) >= least:
                break
            parts *= 2
        return parts

    def _tick(self) -> None:
        self._usage.look()
        steps = self._done + self._control.steps() - self._first_step
        done = steps / self.problem.units
        share = done - len(self.trace)
        self._now_doing.at(share, self._left(done))
        self.watcher.tick(self._epoch, share, self._clock.seconds)
        limit = self.config.time_limit
        if self._asked or (limit is not None and self._seconds > limit):
            self._control.stop()

    @property
    def _seconds(self) -> float:
        """Of this training, without those before it was resumed."""
        return self._clock.seconds - self._before

    def _left(self, done: float) -> str:
        """The time that is left, estimated from the epochs done so far."""
        spent, epochs, limit = self._clock.seconds, self.config.epochs, self.config.time_limit
        left = [limit - self._seconds] if limit is not None else []
        left += [spent / done * (epochs - done)] if epochs is not None and done > 0 else []
        return f"at most {status.seconds_left(max(0.0, min(left)))}" if left else ""

    # Convergence

    def _row(self, eta0: float, online: float, before: tuple[int, float]) -> Row:
        steps = self._done - before[0]
        seconds = self._clock.seconds - before[1]
        work = self.problem.work * steps / self.problem.units
        return {
            "kind": "epoch",
            "epoch": self._epoch,
            "seconds": self._clock.seconds,
            "epoch_seconds": seconds,
            "objective": None,
            **{shown.key: None for shown in self.problem.shown},
            "online_loss": online / max(1, steps),
            "rate": self.problem.rate(self._done // self._own_time, eta0),
            self.problem.unit_name: steps,
            **self._spent,
            "evaluation": 0.0,
            "weights": self.problem.taken(self._shared),
            self.header["throughput"]: work / max(seconds, 1e-9),
        }

    def _limits(self) -> str | None:
        if self._asked:
            return self._asked
        limit = self.config.time_limit
        if self._control.stopped or (limit is not None and self._seconds >= limit):
            return "time"
        most = self.config.epochs
        return "epochs" if most is not None and len(self.trace) + 1 >= most else None

    def _track(self, row: Row, limit: str | None) -> str | None:
        """Fills in the objective if it is due. Returns a reason to stop, or None.

        Progress is measured by the objective if every epoch has one, else by the online loss.
        """
        if self.problem.proves:
            return self._track_proof(row, limit)
        every = self.config.objective_every
        if every == 1:
            row.update(self._evaluate())
            row["tracked"] = row["objective"]
        else:
            row["tracked"] = self.problem.online(self._shared, row["online_loss"])
        self._check_finite(row["tracked"])
        slow = self._gains_little(row["tracked"])
        due = self._is_due(row["epoch"])
        # The online loss does not prove that an epoch failed: it is only a reason to evaluate
        doubtful = self.problem.went_wrong(row["tracked"], np.inf)
        if row["objective"] is None and (due or limit or slow or doubtful):
            found = self._evaluate()
            row.update(found)
            self._check_finite(found["objective"])
        if row["objective"] is None:
            return None
        if self.problem.went_wrong(row["objective"], self._best):
            raise self._diverged("the objective rose")
        if self.config.target is not None and row["objective"] <= self.config.target:
            return "target"
        converged = slow and not self.problem.has_risen(row["objective"], self._best)
        self._best = min(self._best, row["objective"])
        return limit or self._over_fitted(row) or ("converged" if converged else None)

    def _track_proof(self, row: Row, limit: str | None) -> str | None:
        """As `_track` for a solver with a proof, which decides when to evaluate the objective."""
        problem, steps = self.problem, row[self.problem.unit_name]
        excess = row["online_loss"] * steps
        self._clock.start()
        found = problem.follow(self._shared, excess, steps, self._learns_alone)
        self._clock.stop()
        if found.fell:
            raise self._diverged("the dual objective fell")
        reason = None
        if found.due or limit or problem.judge:
            row.update(self._evaluate())
            self._check_finite(row["objective"])
            reason = problem.proved().reason
            self._tell_if_missed(reason, row["objective"])
        gap = problem.proved().gap
        is_new = row["objective"] is not None and np.isfinite(gap)
        row.update(gap=gap if is_new else None, seconds=self._clock.seconds)
        self._tell_if_slow(reason, gap)
        return reason or limit or self._over_fitted(row)

    def _over_fitted(self, row: Row) -> str | None:
        """A reason to stop if the held-out loss has not decreased for `patience` epochs."""
        judge = self.problem.judge
        if judge is None:
            return None
        values = [before[judge] for before in self.trace] + [row[judge]]
        since = len(values) - 1 - int(np.argmin(values))
        return "overfitting" if since >= self.config.patience else None

    def _check_finite(self, objective: float) -> None:
        if not np.isfinite(objective) or not _finite(self.problem.learned(self._shared)):
            raise self._diverged("the weights overflowed")

    def _diverged(self, what: str) -> DivergenceError:
        first = self._first_eta0
        rates = f"the learning rate eta0 = {first:g} is too large for this data"
        if self._eta0 != first:
            rates += f", and so are smaller ones down to {self._eta0:g}"
        cure = self.problem.advice
        if self.config.eta0 is not None:
            cure = self.problem.hint or "Give a smaller eta0, or none to have one found"
        return DivergenceError(f"{what} in epoch {self._epoch}: {rates}. {cure}")

    def _check_learned(self, reason: str) -> None:
        """Refuses a run that converged without learning: its learning rate became too small."""
        if reason != "converged" or self.problem.proves:
            return
        if not self.problem.learned_nothing(self.trace[-1]["objective"]):
            return
        first, text = self._first_eta0, f"by epoch {self._epoch} nothing was learned"
        if self._eta0 == first:
            self._note(f"{text}. {self.problem.advice}")
            return
        error = DivergenceError(
            f"{text}: the learning rate eta0 = {first:g} is too large for this data, and "
            f"{self._eta0:g} is too small. {self.problem.advice}"
        )
        error.result = self._result(reason)
        raise error

    def _gains_little(self, tracked: float) -> bool:
        patience = self.config.patience
        values = [row["tracked"] for row in self.trace[-patience:]] + [tracked]
        if not self.config.tol or len(values) <= patience:
            return False
        gains = [before - after for before, after in pairwise(values)]
        return all(gain <= self.config.tol * abs(tracked) for gain in gains)  # both may be 0

    def _measure(self, row: Row, prove: bool = True) -> None:
        """Evaluates an epoch that is in the trace. If a worker dies, others do only this again."""
        # Only a proof changes what lasts: without one, there is nothing to note before a death
        noted = self._noted(row) if prove and self.problem.proves else None
        while True:
            try:
                row.update(self._evaluate(prove=prove))
                return
            except WorkerError as death:
                noted = noted or self._noted(row)
                self._get_others(death, f"the evaluation of epoch {self._epoch}")
                self._set_start()
                self._put_back(noted)
                self._pending = None

    def _noted(self, row: Row) -> Saved:
        """What lasts, as it is now; what was noted before stays what a checkpoint has."""
        before = self._saved
        self._save(pending=row)
        found, self._saved = self._saved, before
        return found

    def _evaluate(self, prove: bool = True) -> Row:
        """The objective and the errors, by all workers; the training clock stands still."""
        began = time.monotonic()
        self._now_doing.at(None, "measuring")
        self._choose()
        sums = self._prove() if prove else {}
        for data in [name for name in self.problem.sets() if name not in sums]:
            parts = self._do("evaluate", nothing, data)
            self.interrupt.check()
            # A row for each part, in the order of the parts, whichever worker did them
            sums[data] = np.concatenate([part for part in parts if len(part)]).sum(axis=0)
        found = self.problem.measured(self._shared, sums)
        taken = self.problem.taken(self._shared)
        row = found | {"evaluation": time.monotonic() - began, "weights": taken}
        self._known = row if prove else {}
        return row

    def _tell_if_missed(self, reason: str | None, objective: float) -> None:
        if reason == "unreachable":
            self._note(
                f"the target {self.config.target:g} is below the optimum, as is proved: the "
                f"objective is {objective:g}. Give a larger target"
            )

    def _tell_if_slow(self, reason: str | None, gap: float) -> None:
        """Notes once that the gap is far from the wanted one after much work, or at the end."""
        passes = (self._done - self._first_step) / self.problem.units
        is_late = passes >= SLOW and passes * max(LEAST_PASS, self.problem.effort) >= SLOW_NONZEROS
        is_late &= self.config.target is None
        is_far = gap > FAR * (self.config.tol or NEAR)
        if self._told_slow or not is_far or not (is_late or reason == "stuck"):
            return
        self._told_slow = True
        near = f"is proved to be {nearness(gap)}" if np.isfinite(gap) else "may be far from"
        then = "which gets no better" if reason else "and more may take long"
        endless = self.config.time_limit is None and not reason
        cure = "Give a larger l2 or tol" + ", or a time_limit" * endless
        if self.config.is_descent and self.config.l2:
            cure = "The solver auto comes nearer"
        cure = self.problem.hint or cure
        self._note(f"after {passes:,.0f} passes the objective {near} the optimum, {then}. {cure}")

    @property
    def _learns_alone(self) -> bool:
        """Whether one worker learns from one row after the other."""
        return self.workers == 1 and not self._strategy.deterministic

    def _prove(self) -> dict[str, Any]:
        """What a proof finds. The training clock runs: the proof is a part of training."""
        if not self.problem.proves:
            return {}
        self._clock.start()
        found = self.problem.prove(self._shared)
        self._clock.stop()
        return found

    # What is left of it

    def _keep(self, row: Row) -> None:
        """Keeps the weights of a finished epoch, in case a later one fails or is worse."""
        judge = self.problem.judge
        if judge and self._kept and row[judge] >= self._kept_row[judge]:
            return
        self._kept_row = row | {"steps": self._done}
        _copy(self.problem.learned(self._shared), self._kept)
        _copy(self.problem.goes_on_from(self._shared), self._kept_last)

    def _get_others(self, death: WorkerError, what: str) -> None:
        """Replaces the workers after the death of one, unless too many have died."""
        self._clock.stop()
        self._whole = False
        while True:
            self._deaths += 1
            if not death.from_outside:
                raise death
            if self._deaths > DEATHS:
                raise WorkerError(f"{death}. {self._deaths} workers died in {what}")
            if not self._replaced:
                ended, _, _ = str(death).partition(":")
                self._note(f"{ended}; new workers take over, and {what} begins again")
            self._replaced += 1
            self._holding.close()
            try:
                self._gather_team()
                return
            except WorkerError as another:
                death = another

    def _save(
        self, pending: Row | None = None, ended: str | None = None, is_kept: bool = False
    ) -> None:
        """Notes what the next epoch needs, where it may be needed.

        Args:
            pending: the row of the last epoch, if its result was not measured yet.
            ended: why training ends here.
            is_kept: whether `_keep` was just called.
        """
        if not self._checkpoints and not isinstance(self._team, pool.Hired):
            return
        names = {*self.problem.lasting_arrays(self._shared, self._to_choose is not None)}
        names |= self._shared.keys() & {*self._kind.lasting}
        kept = self._kept, self._kept_last, self._kept_row
        # Copies of some were kept just now, and stay as they are until the next epoch has ended
        known = self._kept_last if is_kept and not self.problem.judge else {}
        others = {name: self._shared[name] for name in sorted(names - known.keys())}
        if pending or self._copies.keys() != others.keys():
            self._copies = {}
        _copy(others, self._copies)
        self._saved = {
            "arrays": self._copies | {name: known[name] for name in sorted(names & known.keys())},
            "problem": self.problem.saved(),
            "run": self.saved(),
            "epochs": len(self.trace),
            "seconds": self._clock.seconds,
            "kept": copied(kept) if pending else kept if self.problem.judge else None,
            "pending": copied(pending),
            "ended": ended,
        }

    def _put_back(self, saved: Saved) -> None:
        """Goes back to what was noted."""
        for name, array in saved["arrays"].items():
            self._shared[name][:] = array
        self.problem.put_back(saved["problem"])
        self.put_back(saved["run"])
        self._pending = copied(saved["pending"])
        self._whole = True

    def _write_checkpoint(self) -> None:
        """Writes what was noted after the last whole epoch, if a checkpoint is wanted."""
        saved = self._saved
        if self._checkpoints is None or not (saved.get("epochs") or saved.get("pending")):
            return
        more = {"trace": self.trace[: saved["epochs"]], "notes": self._notes}
        try:
            with status.doing(f"saving {self._checkpoints.path}"):
                self._checkpoints.write(saved | more)
        except HogwildError as problem:
            self._note(f"no checkpoint: {problem}. Training goes on without")

    def _resume(self, checkpoint: Checkpoint) -> None:
        """Goes on from a checkpoint."""
        saved = checkpoint.state
        self._check_sizes(saved["arrays"])
        self._put_back(saved)
        self.trace, self._before = saved["trace"], saved["seconds"]
        self._clock.go_on_from(self._before)
        self._notes = list(dict.fromkeys([*saved["notes"], *self._notes]))
        self._ended = saved["ended"]
        if saved["kept"] is not None:
            self._kept, self._kept_last, self._kept_row = saved["kept"]
        elif self.trace:
            self._keep(self.trace[-1])
        self.watcher.tell(f"goes on after epoch {self._epoch}, from {checkpoint.path}")

    def _check_sizes(self, arrays: Arrays) -> None:
        """Refuses arrays that do not suit: those of workers have a part for each of them."""
        for name, array in arrays.items():
            mine = self._shared.get(name)
            if mine is not None and mine.shape == array.shape and mine.dtype == array.dtype:
                continue
            if name in self._kind.lasting:
                raise OptionError(
                    f"workers: with the strategy {self._choice.strategy} each has weights of its "
                    "own, so resume with as many as before"
                )
            raise DataError(f"resume: the checkpoint has other {name} than this training needs")

    def _with_kept(self, death: WorkerError) -> WorkerError:
        if not self.trace:
            return WorkerError(f"{death}. No epoch was finished, so this training left no model")
        error = WorkerError(f"{death}. Epoch {self.trace[-1]['epoch']} was the last one finished")
        self._whole = False
        error.result = self._result("died")
        return error

    def _result(self, reason: str) -> Result:
        """The model so far: the present weights if they may be kept, else those last kept."""
        learned = self.problem.learned(self._shared)
        best = self.problem.judge is not None and bool(self._kept)
        if best or not self._whole or not _finite(learned):
            if not self._kept:
                raise self._diverged("the weights overflowed")
            learned = self._kept
        last = self._kept_row if best else self.trace[-1] if self.trace else {}
        state = self._state()
        same = state.weights if state is not None and learned is not self._kept else None
        with status.doing("making the model"):
            model = self.problem.model(learned, self._about(reason, last), same)
        used = self._usage.so_far()
        if self._replaced:
            used["replaced_workers"] = self._replaced
        return Result(model, reason, self.trace, self.header, self._notes, state, used)

    def _about(self, reason: str, last: Row) -> Row:
        """What a model says of its training."""
        epochs = len(self.trace) + (self._start.epochs if self._start else 0)
        return {
            "options": self.config.as_dict() | self.header["chosen"],
            "data": self.header["data"],
            "versions": self.header["versions"],
            "trace": {"reason": reason, "epochs": epochs, "last": last},
        }

    def _state(self) -> State | None:
        """What training can continue from: the present place, or the end of the kept epoch."""
        eta0 = 0.0 if self.problem.proves else self._eta0
        if self._whole:
            return State(self.problem.state(self._shared), self._done, self._epoch, eta0)
        if not self._kept:
            return None
        kept = self.problem.state(self._kept | self._kept_last)
        return State(kept, self._kept_row["steps"], self._kept_row["epoch"], eta0)


def _finite(arrays: Arrays) -> bool:
    return all(int(first_bad_value(array)) == len(array) for array in arrays.values())


def _copy(arrays: Arrays, copies: Arrays) -> None:
    """Copies arrays into those of the same names, or into new ones."""
    for name, array in arrays.items():
        if name in copies:
            copies[name][:] = array
        else:
            copies[name] = array.copy()
