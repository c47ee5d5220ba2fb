"""What a training comes to, what it goes on from, and who follows it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hogwild.errors import DataError, warn
from hogwild.notebook import result_html
from hogwild.trace import Row


@dataclass(frozen=True)
class State:
    """What training continues from: the last weights (not their mean), steps and epochs.

    `weights` may be a factor model. `eta0` is the first learning rate; 0: not known yet.
    """

    weights: Any
    steps: int
    epochs: int
    eta0: float

    def check(self) -> None:
        """Refuses a state that no training ends with: wrong types, or numbers that are not finite.

        Raises:
            DataError: names what is wrong.
        """
        numbers = {"steps": self.steps, "epochs": self.epochs, "eta0": self.eta0}
        for name, value in numbers.items():
            kinds = (int, np.integer) if name != "eta0" else (int, float, np.number)
            if not isinstance(value, kinds) or not 0 <= value < np.inf:
                raise DataError(f"start: {name} is {value!r}; give the state of a result as it is")
        if hasattr(self.weights, "kind"):  # a model, whose arrays were checked
            return
        arrays = self.weights if isinstance(self.weights, dict) else {}
        if not arrays:
            raise DataError("start: its weights are no arrays by name; give the state of a result")
        for name, array in arrays.items():
            known = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "fiu"
            if not known:
                raise DataError(f"start: its {name} are not an array of numbers in one dimension")
            if not np.isfinite(array).all():
                at = int(np.argmin(np.isfinite(array)))
                raise DataError(
                    f"start: number {at + 1:,} of its {name} is {array[at]}; all must be finite"
                )


@dataclass(frozen=True, repr=False)
class Result:
    """The result of a run.

    Attributes:
        model: the trained model; a `hogwild.LinearModel` or a `hogwild.FactorModel`.
        reason: why training stopped: epochs, converged, target, time, overfitting (the loss on
            held-out data no longer decreases), stuck (a proved gap no longer decreases: single
            precision proves no more), interrupted, or what a callback said.
        trace: a dict for every epoch.
        header: options, chosen values, data, versions and machine.
        notes: what was left out or done differently from what was asked.
        state: for ``hogwild.train(rows, start=result.state)``, which continues this run. After the
            death of a worker, the run continues from the last finished epoch (None if there was
            none).
        used: `peak_memory`, the most bytes of memory of this process; and `other_load`, the number
            of cores that other programs kept busy (None if training was too short to measure it).
    """

    model: Any
    reason: str
    trace: list[Row]
    header: Row
    notes: list[str]
    state: State | None
    used: Row

    def __repr__(self) -> str:
        last = self.trace[-1] if self.trace else {}
        known = [name for name in ("objective", "gap") if last.get(name) is not None]
        numbers = "".join(f", {name} {last[name]:.6g}" for name in known)
        count = f"{len(self.trace)} {'epoch' if len(self.trace) == 1 else 'epochs'}"
        return f"<{type(self).__name__} {self.reason}, {count}{numbers}, {self.model}>"

    def _repr_html_(self) -> str:
        return result_html(self)

    def records(self) -> list[Row]:
        """The record of the run: the header, a row for every epoch, and the end."""
        end = {"kind": "end", "reason": self.reason, "notes": self.notes} | self.used
        return [self.header, *self.trace, end]


class Watcher:
    """Follows a run: its methods are called as it goes. The command line's display is one."""

    def note(self, text: str) -> None:
        """Something was left out or done differently from what was asked."""
        warn(text)

    def tell(self, text: str) -> None:
        """Something was done that the user may want to know."""

    def start(self, header: Row) -> None:
        """Training begins."""

    def begin(self, epoch: int) -> None:
        """An epoch begins, or begins again after it failed."""

    def tick(self, epoch: int, share: float, seconds: float) -> None:
        """Called now and then within an epoch; `share` of it is done."""

    def epoch(self, row: Row) -> None:
        """An epoch is done."""

    def search(self, row: Row) -> None:
        """Called with what a search compares, each row of its table, and its choice."""

    def end(self, result: Result) -> None:
        """Training is done, and all files are written."""


class Quiet(Watcher):
    """Prints no notes; they are in the result."""

    def note(self, text: str) -> None:
        pass
