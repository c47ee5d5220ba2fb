"""The result of an epoch: the last weights, or their mean over its end or all of it.

Which one is best depends on the noise of the steps and on the distance to the optimum. A sample of
the rows decides.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from hogwild.kernels import averages as kernels
from hogwild.kernels.compile import Kernel
from hogwild.kernels.views import Span, view
from hogwild.learn.problem import Doubles
from hogwild.learn.sample import Sample
from hogwild.learn.solver import Outcome
from hogwild.parallel.memory import Arrays, Wanted
from hogwild.threads import share_of

MOST_SNAPSHOTS = 64  # of an epoch, that means of the weights are taken over
COST = 0.2  # weights added to a mean, per non-zero of one head visited: some 3 % of the time
CANDIDATES = ("stored", "tail", "whole")
WORDS = ("last", "tail mean", "whole mean")  # the same, for people


class Averages(Outcome):
    """Means of the weights over snapshots, and the choice among them."""

    def __init__(self, columns: int, width: int, effort: float, wanted: bool) -> None:
        self._columns = columns
        self._size = (columns + 1) * width
        self._scaled = columns * width
        affordable = int(COST * effort / self._size)
        self.snapshots = min(MOST_SNAPSHOTS, max(2, affordable)) if wanted else 0

    def shared(self) -> Wanted:
        sums = CANDIDATES[1:] if self.snapshots else ()
        return dict.fromkeys(sums, (self._size, np.float32)) | {"chosen": (1, np.int64)}

    def kernels(self, alone: bool) -> list[Kernel]:
        adding = [] if alone else [kernels.add_scaled]
        return [*adding, kernels.finish] if self.snapshots else []

    def add(self, shared: Arrays, late: bool, first: bool, scale: float) -> None:
        sums, keep = shared["tail" if late else "whole"], 0.0 if first else 1.0
        scaled = len(sums) // (self._columns + 1) * self._columns
        kernels.add_scaled(shared["stored"], scale, keep, scaled, sums)

    def finish(
        self, shared: Arrays, reading: Any, snapshots: tuple[int, int] | None, part: int, parts: int
    ) -> Doubles:
        """Scales a share of the stored weights, and turns sums over snapshots into means.

        Early snapshots come before the last quarter of an epoch. Where there were no late ones, the
        present weights take their place. Returns the squared lengths of the share of all
        candidates.
        """
        scale: float = reading
        begin, end = share_of(self._size, parts, part)
        if "members" in shared and not self.over_run:  # each worker's copy, made whole
            members, copies = (shared[n].reshape(-1, self._size) for n in ("members", "copies"))
            members[:, begin:end] = copies[:, begin:end]
            members[:, begin : min(end, self._scaled)] *= np.float32(scale)
        if snapshots is None:
            if scale != 1.0:
                shared["stored"][begin : min(end, self._scaled)] *= np.float32(scale)
            return np.zeros(len(CANDIDATES))
        early, late = snapshots
        each = 1.0 / (early + max(late, 1))
        factors = float(late), each if early else 0.0, each
        share = view(Span, begin, end)
        arrays = tuple(shared[name] for name in CANDIDATES)
        return np.array(kernels.finish(arrays, scale, factors, self._scaled, share))

    def choose(self, shared: Arrays, found: Doubles, first: bool, sample: Sample) -> None:
        """Chooses among the candidates, given their squared lengths.

        In the first epoch, whose beginning is far off, the mean over all of it is not expected to
        be best.
        """
        default = CANDIDATES.index("tail" if first else "whole")
        candidates = [shared[name] for name in CANDIDATES]
        # The default, unless another is better beyond doubt on a few rows
        gains = sample.sure_gains(candidates, found, default)
        shared["chosen"][0] = np.argmax(gains)

    def lasting_arrays(self, shared: Arrays, is_open: bool) -> Iterable[str]:
        """Sums over snapshots begin anew, but for the one that was taken."""
        if is_open:
            return super().lasting_arrays(shared, is_open)
        return {*self.kept, "chosen", self.name(shared)}

    def restore(self, shared: Arrays, learned: Arrays, last: Arrays) -> None:
        """Goes back to a mean, where one was taken: the last weights may be far worse."""
        shared["stored"][:] = learned["weights"]

    def name(self, shared: Arrays) -> str:
        return CANDIDATES[shared["chosen"][0]]

    def word(self, shared: Arrays) -> str:
        return WORDS[shared["chosen"][0]]


class RunAverages(Averages):
    """The mean of the weights over all epochs, as an averaged perceptron takes it.

    The mean is over snapshots; each epoch has the same number of them (Freund and Schapire 1999,
    Collins 2002). `taken` is the number of snapshots so far.
    """

    kept = ("stored", "mean", "taken")
    over_run = True

    def shared(self) -> Wanted:
        return super().shared() | {"mean": (self._size, np.float32), "taken": (1, np.int64)}

    def finish(
        self, shared: Arrays, reading: Any, snapshots: tuple[int, int] | None, part: int, parts: int
    ) -> Doubles:
        """Adds the snapshots of an epoch to the mean; returns a share of their number."""
        found = super().finish(shared, reading, snapshots, part, parts)
        if snapshots is None:
            return found
        taken = snapshots[0] + max(1, snapshots[1])  # without late ones, one of the present weights
        factor = np.float32(taken / (int(shared["taken"][0]) + taken))
        mine = slice(*share_of(self._size, parts, part))
        with np.errstate(all="ignore"):  # where weights overflow, which the coordinator tells
            shared["mean"][mine] += factor * (shared["whole"][mine] - shared["mean"][mine])
            if "members" in shared:  # whose means are over as many snapshots together
                members, sums = (shared[n].reshape(-1, self._size) for n in ("members", "sums"))
                of_each = np.float32(len(members) / taken)
                members[:, mine] += factor * (of_each * sums[:, mine] - members[:, mine])
        return np.array([taken / parts])

    def choose(self, shared: Arrays, found: Doubles, first: bool, sample: Sample) -> None:
        """Nothing is left to choose; counts the snapshots of the epoch."""
        shared["taken"][0] += round(float(found[0]))

    def name(self, shared: Arrays) -> str:
        return "mean" if shared["taken"][0] else "stored"

    def word(self, shared: Arrays) -> str:
        return "run mean"
