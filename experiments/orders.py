"""The order of rows by chunks beside a full permutation: the time of an epoch, and the objective.

Also on rows that are sorted by label, where an order that is not random enough would show.
"""

from typing import Any

import numpy as np

from experiments import report
from experiments.measure import Line, best, seconds
from hogwild import Config, Result, Rows
from hogwild.coordinator import Run, Watcher
from hogwild.kernels.compile import Kernel
from hogwild.kernels.order import permute
from hogwild.learn.linear import LinearProblem
from hogwild.learn.problem import Order

EPOCHS = 3


class Permuted(LinearProblem):
    """The same problem, whose rows come in any order with the same probability."""

    def kernels(self) -> list[Kernel]:
        """All that training will call besides the loops."""
        return [*super().kernels(), permute]

    def shuffle(self, order: Order, first: int, seed: int, state: Any) -> None:
        """Fills `order` with the rows from `first` on, permuted."""
        permute(order, first, np.uint64(seed))


def objective(value: float) -> str:
    return f"{value:.6f}"


def lines(rows: Rows, l2: float) -> list[Line]:
    """Both orders, on the rows as they are and sorted by label."""
    by_label = rows.take(np.argsort(rows.targets(), kind="stable"))
    found = []
    for name, some in ("random rows", rows), ("sorted by label", by_label):
        found += _compared(name, some, l2)
    return found


def _compared(name: str, rows: Rows, l2: float) -> list[Line]:
    results: dict[str, Result] = {}

    def epoch(which: str, kind: type[LinearProblem]) -> float:
        results[which] = _trained(kind, rows, l2)
        return float(min(row["epoch_seconds"] for row in results[which].trace))

    took = best(
        {
            "chunks": lambda: epoch("chunks", LinearProblem),
            "permuted": lambda: epoch("permuted", Permuted),
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


def _trained(kind: type[LinearProblem], rows: Rows, l2: float) -> Result:
    config = Config.of(
        {"task": "svm", "l2": l2, "workers": 1, "epochs": EPOCHS, "tol": 0} | {"solver": "sgd"}
    )
    run = Run(kind(rows, None, config), Watcher())
    run.prepare()
    with run.interrupt:
        return report.finished(run.run())
