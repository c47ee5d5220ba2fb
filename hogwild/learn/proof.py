"""The outcome of a solver with a proof: it knows how near the optimum it is."""

import math
from abc import abstractmethod
from typing import Any

from hogwild.config import Config
from hogwild.learn.problem import Doubles, Followed, Passed
from hogwild.learn.solver import Outcome
from hogwild.parallel.memory import Arrays

ROUNDED = 1e-6  # share of the objective: a bound may be above it by rounding
TOWARDS = 0.25  # share of the way from the bound to a target: a gap that may reach it
NOTHING = 1e-6  # share of the objective at zero weights; one below it counts as no more


def gap_of(objective: float, bound: float) -> float:
    """How much an objective may be above the least one, as a share of the bound of that.

    Infinite where that tells nothing.
    """
    if not math.isfinite(bound):
        return math.inf
    rest = max(0.0, objective - bound)
    if rest > 0.0 and bound <= 0.0 <= objective:
        return math.inf
    return rest / abs(bound) if rest else 0.0


def nearness(gap: float) -> str:
    """A gap in words, before "the optimum"; shares above 1 are hard to read."""
    return f"within {100 * gap:.2g} % of" if gap < 1.0 else f"at most {1.0 + gap:.2g} times"


class Proof(Outcome):
    """Weights with a proof of how good they are.

    Attributes:
        bound: a lower bound of the optimum.
    """

    lasting: tuple[str, ...] = ("_scale", "_objective", "bound")

    def __init__(self, config: Config) -> None:
        self._config = config
        self._scale = 0.0  # the objective at zero weights
        self._objective, self.bound = math.inf, -math.inf

    @abstractmethod
    def follow(self, shared: Arrays, excess: float, steps: int, alone: bool) -> Followed:
        """Takes note of an epoch in which `steps` rows added `excess` to the gap.

        Where workers were not `alone`, their changes together may have been too large.
        """

    @abstractmethod
    def prove(self, shared: Arrays) -> Doubles | None:
        """Finds out how good the weights are; sums over the rows of losses and errors, if known."""

    def settle(self, shared: Arrays) -> Any:
        """Before a claim, finds the objective of the weights as they are stored."""

    def polish(self, shared: Arrays, passed: Passed) -> None:
        """Makes weights that have converged exact, where that takes next to no time."""

    def share(self, other: "Proof") -> None:
        """Takes what depends on the rows alone from the outcome of another head on the same."""

    @abstractmethod
    def use(self, threads: int) -> None:
        """The threads of this process that may be used."""

    @property
    def objective(self) -> float:
        """Of the best weights that were looked at; infinite if none were."""
        return self._objective

    @property
    def gap(self) -> float:
        """The proved gap as a share of the lower bound; infinite where that tells nothing."""
        return math.inf if self._is_contradiction else gap_of(self._objective, self.bound)

    @property
    def _is_contradiction(self) -> bool:
        """Whether the bound lies above an objective that weights have: then it proves nothing."""
        return self.bound > self._objective + ROUNDED * abs(self._objective)

    @property
    def reason(self) -> str | None:
        """Why training may end now, if it may."""
        target = self._config.target
        if self._is_contradiction:
            return self._stuck
        if target is not None:
            if self._objective <= target:
                return "target"
            return "unreachable" if self.bound > target else self._stuck
        return "converged" if self._is_near else self._stuck

    @property
    def _is_near(self) -> bool:
        """Whether the weights are as near the optimum as is wanted."""
        tol = self._config.tol
        return tol > 0 and self._objective - self.bound <= tol * self._size

    def _wanted(self, bound: float) -> float:
        """A gap that would end the training."""
        if self._config.target is not None:
            # The optimum lies above the bound, which gets better, too
            return TOWARDS * (self._config.target - bound)
        return self._config.tol * self._size

    @property
    @abstractmethod
    def _stuck(self) -> str | None:
        """The word "stuck" if the gap cannot be made smaller."""

    @property
    def _size(self) -> float:
        """What a gap is small beside."""
        known = math.isfinite(self._objective)
        return max(abs(self._objective) if known else self._scale, NOTHING * self._scale)
