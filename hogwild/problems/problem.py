"""What a problem is: what is learned, as the coordinator and the workers see it.

`problems/linear.py` is one; another model family is another, and goes through the same coordinator,
workers and strategies.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hogwild.problems.schedules import Clock

Arrays = dict[str, npt.NDArray[Any]]
Order = npt.NDArray[np.uint32]


class Problem(Protocol):
    """What is learned."""

    name: str  # where the data comes from, for messages
    units: int  # examples to learn from
    work: int  # non-zeros in them, by which throughput is counted
    chunk: int  # units between two looks at the control
    moments: int  # of an epoch, at which the weights are added to a mean; 0: none is taken
    seed: int
    notes: list[str]  # what the user should be told before training

    # What the coordinator asks

    def describe(self) -> dict[str, Any]:
        """The shape of the data, for the record."""

    def sharing(self) -> tuple[bool, str]:
        """Whether several workers gain by sharing the weights, and why."""

    def shared(self) -> dict[str, tuple[int, Any]]:
        """The arrays that all workers share: length and type by name."""

    def prepare(self) -> None:
        """Compiles, or loads, all that the workers will call."""

    def has(self, data: str) -> bool:
        """Whether there are examples of this kind: train or test."""

    def size(self, data: str) -> int:
        """How many examples there are to train on, or to test on."""

    def find_rate(self) -> float:
        """A first rate."""

    def left(self, done: int, since: int, eta0: float) -> float:
        """The share of the weights of step `since` that the penalty has left at step `done`."""

    def rate(self, done: int, eta0: float) -> float:
        """The rate of step number `done`."""

    def fold(self, shared: Arrays, left: float) -> None:
        """Makes the weights whole."""

    def end_moments(self, shared: Arrays, early: int, late: int, first: bool) -> None:
        """Makes means of sums over so many moments, and chooses what to take."""

    def learned(self, shared: Arrays) -> Arrays:
        """What training came to: views of the shared arrays."""

    def taken(self, shared: Arrays) -> str:
        """Which weights `learned` gives, as a word for the trace."""

    def objective(self, shared: Arrays, mean_loss: float) -> float:
        """The objective, given the mean loss at the same weights."""

    def model(self, learned: Arrays, about: dict[str, Any]) -> Any:
        """A model of what was learned; it keeps no view of the arrays."""

    # What the workers ask

    def pace(self, clock: Clock) -> int:
        """Steps in which the schedule does not go far."""

    def shuffle(self, order: Order, first: int, seed: int) -> None:
        """Fills `order` with the units from `first` on, in a random order."""

    def learn(self, weights: Arrays, order: Order, begin: int, end: int, clock: Clock) -> float:
        """Learns from the units order[begin:end]; the sum of the losses met on the way."""

    def add_moment(self, shared: Arrays, late: bool, first: bool, clock: Clock) -> None:
        """Adds the weights as they are to a sum; the first begins it."""

    def evaluate(self, shared: Arrays, data: str, begin: int, end: int) -> npt.NDArray[Any]:
        """The sum of the losses of some examples, and of what counts as errors."""
