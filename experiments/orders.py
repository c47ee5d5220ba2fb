"""Orders of the rows in an epoch; and that by chunks beside a full permutation.

Of the latter the time of an epoch, and the objective; also on rows that are sorted by label, where
an order that is not random enough would show.
"""

from typing import Any

import numpy as np

from experiments import report
from experiments.measure import Line, best, seconds
from hogwild import Config, Result, Rows
from hogwild.coordinator import Run
from hogwild.kernels.compile import Kernel
from hogwild.kernels.order import permute
from hogwild.learn.linear import LinearProblem
from hogwild.learn.problem import Order
from hogwild.results import Quiet

EPOCHS = 3


class Permuted(LinearProblem):
    """The same problem, whose rows come in any order with the same probability."""

    def kernels(self) -> list[Kernel]:
        """All that training will call besides the loops."""
        return [*super().kernels(), permute]

    def shuffle(self, order: Order, first: int, seed: int, state: Any) -> None:
        """Fills `order` with the rows from `first` on, permuted."""
        permute(order, first, np.uint64(seed))


class PermutedOnce(Permuted):
    """In such an order, but in the same one in all epochs."""

    def shuffle(self, order: Order, first: int, seed: int, state: Any) -> None:
        """Fills `order` with the rows from `first` on, permuted."""
        super().shuffle(order, first, self.seed, state)


class Stored(LinearProblem):
    """In the order in which they are stored."""

    def shuffle(self, order: Order, first: int, seed: int, state: Any) -> None:
        """Fills `order` with the rows from `first` on."""
        order[:] = np.arange(first, first + len(order))


class Replaced(LinearProblem):
    """Each is any of the rows: in an epoch some come twice, and a third never."""

    def shuffle(self, order: Order, first: int, seed: int, state: Any) -> None:
        """Fills `order` with rows from `first` on, drawn with replacement."""
        order[:] = np.random.default_rng(seed).integers(first, first + len(order), len(order))


ORDERS: dict[str, type[LinearProblem]] = {
    "chunks": LinearProblem,
    "permuted": Permuted,
    "once": PermutedOnce,
    "stored": Stored,
    "replacement": Replaced,
}


def trained(order: str, rows: Rows, options: dict[str, Any]) -> Result:
    """What `hogwild.train` would come to with one of ORDERS."""
    run = Run(ORDERS[order](rows, None, Config.of(options)), Quiet())
    run.prepare()
    with run.interrupt:
        return report.finished(run.run())


def objective(value: float) -> str:
    return f"{value:.6f}"


def lines(rows: Rows, l2: float) -> list[Line]:
    """Both orders, on the rows as they are and sorted by label."""
    found = []
    for name, some in ("random rows", rows), ("sorted by label", by_label(rows)):
        found += _compared(name, some, l2)
    return found


def by_label(rows: Rows) -> Rows:
    """A copy of the rows, the negative ones first."""
    return rows.take(np.argsort(rows.targets(), kind="stable"))


def _compared(name: str, rows: Rows, l2: float) -> list[Line]:
    results: dict[str, Result] = {}
    options = {"task": "svm", "l2": l2, "solver": "sgd", "workers": 1, "epochs": EPOCHS, "tol": 0}

    def epoch(order: str) -> float:
        results[order] = trained(order, rows, options)
        return float(min(row["epoch_seconds"] for row in results[order].trace))

    took = best(
        {
            "chunks": lambda: epoch("chunks"),
            "permuted": lambda: epoch("permuted"),
        }
    )
    ends = {which: float(result.trace[-1]["objective"]) for which, result in results.items()}
    beside = "a permutation"
    return [
        Line(f"chunks: epoch, {name}", took["chunks"], took["permuted"], seconds, beside),
        Line(
            *(f"objective after {EPOCHS}, {name}", ends["chunks"], ends["permuted"]),
            *(objective, beside),
        ),
    ]
