"""The solver `dual`: stochastic dual coordinate ascent, which proves how near the optimum it is.

It needs no learning rate. A pass sets each dual variable to its best value (`steps/dual.py`). Now
and then the objective of the weights is compared with the dual objective, which is a lower bound of
the optimum. If the loss has kinks, the weights are bad long after the dual variables are good: so
scaled means of the weights are tried, too.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.config import Config
from hogwild.kernels import dual as kernels
from hogwild.kernels.compile import Kernel
from hogwild.kernels.evaluate import squared_norm
from hogwild.kernels.views import view
from hogwild.lasting import Saved, fit
from hogwild.learn.duals import DUALS
from hogwild.learn.heads import Heads
from hogwild.learn.losses import SIGNS
from hogwild.learn.objectives import Objectives, Point
from hogwild.learn.problem import Doubles, Followed
from hogwild.learn.proof import Proof
from hogwild.learn.sample import Sample
from hogwild.learn.sets import Set
from hogwild.learn.solver import Solver
from hogwild.pace import PROGRESS, Pace
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.steps.dual import NO_LIMIT, STATE, Plan, dual
from hogwild.steps.step import Step

# The squared value of the intercept's column, over the typical squared length of a row: about this
# much, or as much as follows from l2 if that is more or less. With more, rows conflict, above all
# those of several workers (3,000 rows of RCV1's shape, l2 1e-4, fixed order: 25 passes, not 12);
# with less, the multiplier takes long (real RCV1, l2 1e-6: 900 passes, not 200)
INTERCEPT = 0.03
LEAST_BY_PENALTY, MOST_BY_PENALTY, MOST = 30.0, 1000.0, 0.1
RESTART = 1.3  # times the work at which a mean of the weights began, after which the next begins
CLAIM = 1.5  # times the gap that is wanted: from there on weights are made anew for the proof
DRIFT = 1e-5  # share of the objective: how wrong a proof may be for weights that have drifted
ROUNDING = 3e-8  # the same for weights made anew, whose scores are in single precision
ROUNDED = 3e-6  # a gap as small as this may be all that single precision can prove
FINE = 3.0  # times DRIFT: proofs that are finer need weights made anew
REBUILD = 100.0  # passes, after which weights are made anew
# Passes in which a gap becomes smaller by a factor, in theory: where they are so many, only half a
# gap is progress. 1,000 rows, 20 columns, logistic, l2 1e-9: 908 passes, not more than 22,000
HOPELESS, HALF = 1e6, 0.5
FALLEN = 1e-5  # share of the objective that the dual one may fall by, with rounding
COST, COST_OF_MEAN = 1.0, 0.2  # of a proof, in passes


class DualAscent(Solver):
    """Dual coordinate ascent: its step, and the numbers of each pass."""

    def __init__(self, config: Config, heads: Heads, data: Set, intercept_share: float) -> None:
        super().__init__(config, heads, data, intercept_share)
        self._square = data.typical_square()
        self._l2 = float(config.l2 or 0.0)
        usual = max(INTERCEPT, LEAST_BY_PENALTY * self._l2)
        share = min(MOST, MOST_BY_PENALTY * self._l2, usual) if config.intercept else 0.0
        self._intercept = self.intercept_share = share * (self._square or 1.0)

    @property
    def step(self) -> Step:
        return dual(self._config.loss_name, self._data.weighted)

    def outcome(self, columns: int, nonzeros: float) -> "DualProof":
        """The best weights that were looked at, with a lower bound of the optimum."""
        square = self._square + self._intercept
        return DualProof(
            self._config, self._heads.kind, self._data, columns, square, self._intercept
        )

    def plan(self, since: float, eta0: float, *numbers: float) -> Plan:
        growing, limit, _ = numbers or (0.0, NO_LIMIT, 1.0)
        c = 1.0 / (self._l2 * len(self._data))
        square = self._square + self._intercept
        given = growing, limit, 1.0 / eta0, square, self._intercept, self._config.loss_value
        return view(Plan, c, *given)

    def rate(self, done: int, eta0: float) -> float:
        """1 while the changes of copies do not conflict, less when they do."""
        return eta0

    def ahead(self, eta0: float, copies: int) -> tuple[float, float]:
        """Farther where changes conflicted; a factor of the number of copies is always safe.

        The intercept always uses that factor, since all rows have it.
        """
        return min(float(copies), 1.0 / eta0), float(copies)

    def steady_steps(self, done: int, eta0: float) -> int:
        """A whole pass: what a row adds does not depend on the number of steps."""
        return len(self._data)

    def find_rate(self, sample: Sample) -> float:
        """Steps have their best length; they are shorter where the changes of workers conflict."""
        return 1.0


class DualProof(Proof):
    """The best weights that were looked at, beside the best dual variables."""

    kept = ("stored", "row_state", "best")
    lasting = (
        *Proof.lasting,
        *("_objectives", "_pace", "_growing", "_limit", "_active", "_multiplier", "_likely"),
        *("_before", "_excess", "_sums", "_mean_from", "_mean_of", "_older_of", "_older_scores"),
        "_rebuilt_at",
    )

    def __init__(
        self, config: Config, kind: str, data: Set, columns: int, square: float, intercept: float
    ) -> None:
        super().__init__(config)
        self._columns = columns
        self._means = not DUALS[config.loss_name].smooth
        # Of rare classes it is far from 0, and multipliers take long to get there
        self._starts_far = kind == SIGNS and not self._means
        self._intercept = intercept
        given = float(config.l2 or 0.0), config.intercept, config.loss_value
        self._objectives = Objectives(config.loss_name, kind, data, *given)
        self._rows = len(data)
        passes = square / (float(config.l2 or 0.0) * self._rows)
        self._can_grow = DUALS[config.loss_name].grows and passes <= 1.0
        self._is_hopeless = passes > HOPELESS
        self._reset()

    def _reset(self) -> None:
        cost = COST + COST_OF_MEAN * self._means
        self._pace = Pace(cost, not self._means, HALF if self._is_hopeless else PROGRESS)
        self._growing, self._limit, self._active = 0.0, NO_LIMIT, 1.0
        self._multiplier = 0.0
        self._objective, self.bound = math.inf, -math.inf
        self._likely = -math.inf  # the same, if the mean of the dual variables were 0
        self._before: tuple[float, float] | None = None
        self._excess = math.inf
        self._sums: Doubles = np.zeros(3)
        self._mean_from, self._mean_of, self._older_of = 0.0, 0, 0
        self._older_scores: npt.NDArray[np.float32] = np.zeros(0, np.float32)
        self._rebuilt_at = 0.0

    def put_back(self, saved: Saved) -> None:
        super().put_back(saved)
        fit(self._rows, self._older_scores)

    # What is shared

    def shared(self) -> Wanted:
        """The best weights so far, and where the loss has kinks means of the last passes."""
        names = ["best", *["mean", "older"] * self._means]
        return dict.fromkeys(names, (self._columns + 1, np.float32)) | {"has_best": (1, np.int64)}

    def kernels(self, alone: bool) -> list[Kernel]:
        """All that will be called."""
        return self._objectives.kernels([1, 2] if self._means else [1])

    def finish(
        self, shared: Arrays, reading: Any, snapshots: tuple[int, int] | None, part: int, parts: int
    ) -> Doubles:
        """Nothing: what is stored are the weights."""
        return np.zeros(0)

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        """Goes back to an earlier pass, but keeps the best weights: their proof remains true."""
        for name in ("stored", "row_state"):
            shared[name][:] = last[name]
        stored, state = shared["stored"], shared["row_state"]
        balance, _, active = self._objectives.standing(state)
        shift = self._intercept * self._objectives.c * balance
        self._multiplier = float(stored[-1]) - shift
        self._before = self._ascended_to(shared, balance)
        self._active, self._limit, self._growing = active / self._rows, NO_LIMIT, 0.0

    def name(self, shared: Arrays) -> str:
        """The name of the array of the weights: the best that were looked at, if any were."""
        return "best" if shared["has_best"][0] else "stored"

    def word(self, shared: Arrays) -> str:
        """Which weights are taken, as a word for the trace."""
        return "best" if shared["has_best"][0] else "last"

    # The passes

    def suits(self, start: Arrays) -> Arrays:
        """What training can continue from: dual variables are of no use for other rows."""
        known = len(start.get("row_state", ())) == STATE * self._rows
        return {name: start[name] for name in start if name == "stored" or known}

    def begin(self, shared: Arrays, start: Arrays, at_zero: float) -> None:
        """Makes dual variables from what training continues from, and the weights for them."""
        self._reset()
        self._scale = at_zero if math.isfinite(at_zero) else 0.0
        self._growing = float(self._rows) if self._can_grow and not start else 0.0
        if not start:
            if self._starts_far and self._intercept:
                self._balance_intercept(shared["stored"], self._objectives.bias_at_zero(), 0.0)
            return
        state, stored = shared["row_state"], shared["stored"]
        scores = self._objectives.scores([stored[:-1]])[0]
        known = "row_state" in start
        self._objectives.adopt(scores, float(stored[-1]), known, state)
        stored[:-1] = self._objectives.weights_of(state, self._columns)
        self._balance_intercept(stored, float(stored[-1]), self._objectives.standing(state)[0])

    @property
    def numbers(self) -> tuple[float, ...]:
        """Of the next pass: whether c grows, when rows are put aside, and how many are active."""
        return self._growing, self._limit if self.puts_aside else NO_LIMIT, self._active

    def follow(self, shared: Arrays, excess: float, steps: int, alone: bool) -> Followed:
        """Takes note of a pass in which `steps` rows added `excess` to the gap.

        Where workers were not `alone`, their changes together may have been too large.
        """
        stored, state = shared["stored"], shared["row_state"]
        balance, largest, active = self._objectives.standing(state)
        self._active = active / self._rows
        before, self._excess = self._excess, excess * self._active / max(1, steps)
        fell = not alone and self._fell(shared, balance, self._excess > before)
        if not fell:
            self._growing = 0.0
            self._limit = largest or NO_LIMIT
            moved = self._multiplier + self._intercept * self._objectives.c * balance
            self._balance_intercept(stored, moved, balance)
            self._add_to_mean(shared)
        self._pace.passed(steps / self._rows, self._excess)
        return Followed(self._pace.is_due(self._wanted(self._likely)), fell)

    @property
    def excess(self) -> float:
        """What the rows of the last pass added to the gap when they were visited, on average."""
        return self._excess

    def _balance_intercept(
        self, stored: npt.NDArray[np.float32], multiplier: float, balance: float
    ) -> None:
        """Writes the intercept for a multiplier and a sum of the dual variables."""
        if self._intercept:
            self._multiplier = multiplier
            stored[-1] = multiplier + self._intercept * self._objectives.c * balance

    def _move_multiplier(
        self, stored: npt.NDArray[np.float32], state: npt.NDArray[np.float32], best: float
    ) -> None:
        """Continues with the best intercept for the weights: steps from there are short."""
        if self._intercept:
            self._balance_intercept(stored, best, self._objectives.standing(state)[0])
            self._before = None

    def _fell(self, shared: Arrays, balance: float, rises: bool) -> bool:
        """Whether a pass lowered the dual objective (with an intercept, the augmented one).

        Finding out takes time. So this is checked only after a pass whose rows added more to the
        gap than the rows of the pass before; the next pass is then compared with it.
        """
        before, self._before = self._before, None
        if before is None and not rises:
            return False
        now = self._ascended_to(shared, balance)
        self._before = now if rises else None
        if before is None:
            return False
        old, new = (value - self._penalty(was) for value, was in (before, now))
        return not new >= old - FALLEN * max(abs(old), abs(new))

    def _ascended_to(self, shared: Arrays, balance: float) -> tuple[float, float]:
        """The dual objective, and the sum of a."""
        square = float(squared_norm(shared["stored"][:-1]))
        return self._objectives.dual(shared["row_state"], square), balance

    def _penalty(self, balance: float) -> float:
        """What the passes take from the dual objective for a sum of a that is not 0."""
        more = 0.5 * self._intercept * self._objectives.c * balance
        return (self._multiplier + more) * balance / self._rows

    def _add_to_mean(self, shared: Arrays) -> None:
        if not self._means:
            return
        stored, mean = shared["stored"], shared["mean"]
        self._mean_of += 1
        mean += (stored - mean) * np.float32(1 / self._mean_of)
        if self._intercept:  # what the intercept goes on with lies beyond what it has come to
            mean[-1] += np.float32((self._multiplier - float(stored[-1])) / self._mean_of)

    # The proof

    def prove(self, shared: Arrays) -> Doubles:
        """Compares the best weights with the dual variables; sums over the rows for the former."""
        stored, state = shared["stored"], shared["row_state"]
        given, scores = self._candidates(shared)
        squares = [float(squared_norm(one[:-1])) for one in given]
        which = 0
        if len(given) > 1:
            plain = zip(scores, squares, (float(one[-1]) for one in given), strict=True)
            which = int(
                np.argmin([self._objectives.best(*one, scaled=False).objective for one in plain])
            )
        point = self._point(scores[which], squares[which], given[which][-1])
        if point.objective < self._objective:
            self._take(shared["best"], given[which], point)
            shared["has_best"][0] = 1
            self._sums = self._objectives.measured(scores[which], point)
        if DUALS[self._config.loss_name].lean and self._objectives.review(
            scores[0], float(stored[-1]), state
        ):
            self._limit = max(self._limit, self._objectives.standing(state)[1])
        self._raise_bound(stored, state, squares[0])
        self._move_multiplier(stored, state, point.bias)
        self._pace.looked(self._objective - self._likely)
        if self._means and self._pace.work >= RESTART * self._mean_from:
            if self._mean_of:
                shared["older"][:] = shared["mean"]
                older = scores[1 if self._mean_of > 1 else 0]
                older.flags.writeable = False  # so that nobody needs a copy
                self._older_of, self._older_scores = self._mean_of, older
            self._mean_from, self._mean_of = self._pace.work, 0
        return self._sums

    def _candidates(self, shared: Arrays) -> tuple[list[Any], list[npt.NDArray[np.float32]]]:
        """Weights that may be the best, and their scores: the stored weights, and means of passes.

        One mean is over the passes since its last restart, the other since the restart before.
        Which is better varies.
        """
        # The mean of one pass is what is stored
        given = [shared["stored"], *([shared["mean"]] if self._mean_of > 1 else [])]
        scores = list(self._objectives.scores([one[:-1] for one in given]))
        if self._mean_of and self._older_of:
            share = np.float32(self._older_of / (self._older_of + self._mean_of))
            pairs = (shared["mean"], shared["older"]), (scores[-1], self._older_scores)
            both, its_scores = (one + share * (other - one) for one, other in pairs)
            given.append(both)
            scores.append(its_scores)
        return given, scores

    def _point(self, scores: npt.NDArray[np.float32], square: float, bias: Any) -> Point:
        found = self._objectives.best(scores, square, float(bias), self._means)
        if self._means or found.objective <= self._scale:
            return found
        return self._objectives.best(scores, square, float(bias), scaled=True)

    def _take(self, best: npt.NDArray[np.float32], found: Any, point: Point) -> None:
        np.multiply(found, np.float32(point.scale), out=best)
        best[-1] = point.bias
        self._objective = point.objective

    def _raise_bound(
        self, stored: npt.NDArray[np.float32], state: npt.NDArray[np.float32], square: float
    ) -> None:
        """Finds a lower bound of the optimum; an exact one where it may end the training."""
        objectives = self._objectives
        found = objectives.dual(state, square)
        less = DRIFT
        if self._needs_exact(found):
            weights = self._rebuild(stored, state)
            found = objectives.dual(state, float(np.einsum("i,i", weights, weights)))
            less = ROUNDING
        found -= less * abs(self._objective)
        self._likely = max(self._likely, min(found, self._objective))
        self.bound = max(self.bound, found - objectives.residual(state, self._objective))

    def _needs_exact(self, bound: float) -> bool:
        """Whether a bound is near enough to the end of the training to be found exactly."""
        near = DRIFT * abs(self._objective)
        if self._pace.work >= self._rebuilt_at + REBUILD:
            return True
        if self._config.target is not None:
            return bound >= self._config.target - near
        return self._objective - bound <= max(CLAIM * self._wanted(self._likely), FINE * near)

    def _rebuild(
        self, stored: npt.NDArray[np.float32], state: npt.NDArray[np.float32]
    ) -> npt.NDArray[np.float64]:
        """Makes the weights anew from the dual variables, whose sum is made 0 for an intercept."""
        objectives = self._objectives
        if self._intercept:
            objectives.balance(state)
        weights = objectives.weights_of(state, self._columns)
        stored[:-1] = weights
        self._balance_intercept(stored, self._multiplier, objectives.standing(state)[0])
        self._before = None
        self._rebuilt_at = self._pace.work
        return weights

    @property
    def _stuck(self) -> str | None:
        return "stuck" if self._pace.is_stuck(rounded=self.gap <= ROUNDED) else None

    def use(self, threads: int) -> None:
        """The threads that may be used."""
        self._objectives.threads = threads

    def shuffle(
        self, order: npt.NDArray[np.uint32], first: int, seed: int, state: npt.NDArray[np.float32]
    ) -> None:
        """Fills an order with rows that were not put aside, each as often as there is room."""
        if self.puts_aside:
            kernels.arrange(order, first, np.uint64(seed), state)
        else:
            super().shuffle(order, first, seed, state)
