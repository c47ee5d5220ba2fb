"""What is demanded of solvers with a proof: of two workers, of fixed orders, and beside others.

Rows of RCV1's shape; whole calls of hogwild.train, from arrays in memory to a proved gap, the best
of several, in turn; the pool of workers is warm.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import hogwild
from experiments import measure, report
from experiments.measure import Line, best, seconds, timed
from hogwild import Rows
from hogwild.data.synthetic import rcv1
from hogwild.machine import usable_cores

ROWS, ROWS_OF_SQUARES = 781_265, 100_000
REPEATS = 5
GAPS = (1e-3, 1e-5)
LEAST = {1e-4: 1.6, 1e-6: 1.3}  # by l2: of all cores over one worker
MOST_ORDERED = 1.3  # of the seconds in a fixed order, over those of the free one
LEAST_SQUARES = 4.0
GAP_OF_SQUARES = 1e-6
RIDGE_TOLS = 10.0 ** np.arange(-1, -9, -1)


def train(rows: Rows, **options: Any) -> hogwild.Result:
    """A run without an intercept, which peers do not all have."""
    return report.finished(hogwild.train(rows, intercept=False, **options))


def quickest(rows: Rows, ways: dict[str, dict[str, Any]], **options: Any) -> dict[str, float]:
    """The least seconds of whole calls, for each of some ways to train."""
    calls: dict[str, Callable[[], float]] = {
        name: partial(timed, partial(train, rows, **options, **way)) for name, way in ways.items()
    }
    return best(calls, REPEATS)


def of_workers(rows: Rows, cores: int) -> list[Line]:
    """All cores beside one worker, and a fixed order beside the free one."""
    lines = []
    for solver, loss in (("dual", "hinge"), ("dual", "logistic"), ("newton", "logistic")):
        for l2, least in LEAST.items():
            for gap in GAPS:
                options: dict[str, Any] = {"solver": solver, "loss": loss, "l2": l2, "tol": gap}
                ways: dict[str, dict[str, Any]] = {"one": {"workers": 1}, "all": {"workers": cores}}
                if solver == "dual":
                    ways["ordered"] = ways["all"] | {"deterministic": True}
                found = quickest(rows, ways, **options)
                name = f"{solver}, {loss}, l2 {l2:g}, to {gap:g}"
                pair = name, found["all"], found["one"], seconds, "one worker"
                lines.append(Line(*pair, least=least))
                if "ordered" in found:
                    pair = f"{name}, fixed", found["ordered"], found["all"], seconds, "free order"
                    lines.append(Line(*pair, least=1 / MOST_ORDERED))
    return lines


def on(rows: Rows, cores: int) -> list[Line]:
    """Given rows: the defaults, and all cores, beside one worker."""
    lines = []
    for loss in ("hinge", "logistic"):
        for l2 in LEAST:
            options: dict[str, Any] = {"task": "svm", "loss": loss, "l2": l2}
            chosen = train(rows, **options).header["chosen"]
            ways: dict[str, dict[str, Any]] = {
                "one": {"workers": 1},
                "all": {"workers": cores},
                "defaults": {},
            }
            found = quickest(rows, ways, **options)
            name = f"{Path(rows.name).name}, {loss}, l2 {l2:g}, {chosen['solver']}"
            for way, workers in ("all", cores), ("defaults", chosen["workers"]):
                label = f"{name}, {way}: {workers}"
                lines.append(Line(label, found[way], found["one"], seconds, "one worker"))
    return lines


def squares(rows: Rows) -> list[Line]:
    """The squared loss by default, beside scikit-learn's conjugate gradients, at their best."""
    from sklearn.linear_model import Ridge

    X, y = rows.to_scipy(), rows.targets()
    rows = hogwild.Rows(X, y.astype(float))
    lines = []
    for l2 in LEAST:
        options: dict[str, Any] = {"task": "regression", "l2": l2}
        exact = train(rows, **options, tol=1e-8)
        target = float(exact.trace[-1]["objective"]) * (1 + GAP_OF_SQUARES)

        def reaches(tol: float, l2: float = l2, target: float = target) -> bool:
            w = ridge(tol, l2).coef_
            return bool(np.mean((X @ w - y) ** 2) / 2 + l2 / 2 * (w @ w) <= target)

        def ridge(tol: float, l2: float = l2) -> Any:
            known = Ridge(l2 * len(y), fit_intercept=False, solver="sparse_cg", tol=tol)
            return known.fit(X, y)

        tol = next((tol for tol in RIDGE_TOLS if reaches(tol)), RIDGE_TOLS[-1])
        calls: dict[str, Callable[[], float]] = {
            "ours": partial(timed, partial(train, rows, **options, target=target)),
            "ridge": partial(timed, partial(ridge, tol)),
        }
        found = best(calls, REPEATS)
        name = f"squared, l2 {l2:g}, to {GAP_OF_SQUARES:g}"
        pair = name, found["ours"], found["ridge"], seconds, "Ridge, sparse_cg"
        lines.append(Line(*pair, least=LEAST_SQUARES))
    return lines


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=2.0)
    report.data_option(parser)
    parsed = parser.parse_args()
    report.say(report.about_machine())
    cores = usable_cores()
    if parsed.data:
        lines = [line for path in parsed.data for line in on(hogwild.load(path), cores)]
    else:
        lines = of_workers(rcv1(parsed.rows)[0], cores) if cores > 1 else []
        lines += squares(rcv1(min(parsed.rows, ROWS_OF_SQUARES))[0])
    if parsed.rows < ROWS:
        lines = measure.undemanded(lines)
        report.say(f"With fewer than {ROWS:,} rows nothing is demanded.")
    report.say("\n" + measure.table(lines))
    report.record(
        "speed-solvers",
        [report.header({"rows": parsed.rows, "data": parsed.data}), *map(Line.record, lines)],
    )
    measure.check(lines)


if __name__ == "__main__":
    sys.exit(report.command(main))
