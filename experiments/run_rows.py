"""Experiments on rows of RCV1's shape: how near linear models come to the optimum, and how fast."""

import inspect
import textwrap
from typing import Any, NamedTuple

from experiments import report
from experiments.experiment import (
    Experiment,
    Line,
    check_names,
    epochs,
    quickest,
    speeds,
    trained,
)
from experiments.optimum import Optimum, optimum
from hogwild import Rows
from hogwild.data.synthetic import rcv1

FAMILY = "linear"
TEST_SHARE = 0.2
CERTAINTY = 1e-6  # relative, of the optimum

HEAD = [
    *("experiment", "workers", "seconds", "epochs", "objective", "1st gap", "last gap"),
    *("test err", "M nnz/s", "speed-up"),
]
LEGEND = """\
seconds of training; gap: of the objective to the optimum, relative, after the first epoch and the
last; million non-zeros a second of the quickest epoch; speed-up: of that, against one worker"""


class Data(NamedTuple):
    """Rows to train on and rows to test on."""

    train: Rows
    test: Rows


class Summary(NamedTuple):
    """A row of the table."""

    experiment: str
    workers: int
    seconds: float
    epochs: int
    objective: float
    first_gap: float | None  # None: it was not asked for
    gap: float
    test_error: float
    nonzeros_per_second: float
    speed_up: float
    strategy: str
    why: str

    def cells(self) -> list[str]:
        """As printed."""
        return [
            *(self.experiment, str(self.workers), f"{self.seconds:.3f}", str(self.epochs)),
            *(f"{self.objective:.6f}", _short(self.first_gap), _short(self.gap)),
            f"{100 * self.test_error:.2f} %",
            *(f"{self.nonzeros_per_second / 1e6:.0f}", f"{self.speed_up:.2f}"),
        ]

    def record(self) -> Line:
        """As recorded."""
        return self._asdict()


def check(options: dict[str, Any]) -> None:
    """Refuses what `rcv1` does not take."""
    check_names(options, [name for name in inspect.signature(rcv1).parameters if "row" not in name])


def generate(rows: int, options: dict[str, Any], tested: int = 0) -> Data:
    """Rows to train on, and the rows after them to test on: `tested` of them, or a share."""
    train, _ = rcv1(rows, **options)
    test, _ = rcv1(tested or max(1, int(rows * TEST_SHARE)), first_row=rows, **options)
    report.say(
        f"Data      {train.name}: {len(train):,} rows, and {len(test):,} to test on;\n"
        f"          {train.columns:,} columns, {train.nonzeros / len(train):.0f} non-zeros a row, "
        f"{train.nbytes / 1e6:,.0f} MB"
    )
    return Data(train, test)


def measure(
    experiment: Experiment, data: Data, workers: list[int]
) -> tuple[list[Summary], list[Line]]:
    """A row of the table for each number of workers, and what goes into the record."""
    best = find_optimum(experiment, data.train)
    results = trained(experiment, data, workers)
    speed = speeds(results, "nonzeros_per_second")
    rows = []
    for count, runs in results.items():
        trace, chosen = quickest(runs), runs[0].header["chosen"]
        rows.append(
            Summary(
                experiment=experiment.name,
                workers=count,
                seconds=trace[-1]["seconds"],
                epochs=len(trace),
                objective=trace[-1]["objective"],
                first_gap=_gap(trace[0]["objective"], best),
                gap=_gap(trace[-1]["objective"], best) or 0.0,
                test_error=trace[-1]["test_error"],
                nonzeros_per_second=speed[count],
                speed_up=speed[count] / speed[1],
                strategy=chosen["strategy"],
                why=chosen["why"],
            )
        )
    return rows, [_optimum_line(experiment, best), *epochs(experiment, results)]


def find_optimum(experiment: Experiment, rows: Rows) -> Optimum:
    """What the gaps are measured from."""
    config = experiment.config
    l2 = float(config.l2 or 0)
    found = optimum(rows, config.loss_name, l2, config.intercept, CERTAINTY)
    sure = "" if found.certified else ", NOT proved as near as it should be"
    report.say(
        f"Optimum   {experiment.name}: {found.objective:.6f}, proved to {found.gap:.0e}{sure} "
        f"({found.seconds:.1f} s)"
    )
    return found


def _gap(objective: float | None, best: Optimum) -> float | None:
    return None if objective is None else (objective - best.objective) / best.objective


def _short(gap: float | None) -> str:
    return "-" if gap is None else f"{gap:.1e}"


def _optimum_line(experiment: Experiment, best: Optimum) -> Line:
    return {
        "kind": "optimum",
        **experiment.about(),
        "objective": best.objective,
        "lower_bound": best.lower_bound,
        "certified": best.certified,
    }


def shown(data: Data, summaries: list[Summary]) -> str:
    """The table, and what it says of more workers."""
    table = report.table(HEAD, [row.cells() for row in summaries])
    return f"{table}\n{LEGEND}\n\n{verdict(summaries)}"


def verdict(rows: list[Summary]) -> str:
    """What the table says of more workers on this data, how they shared the weights, and why so."""
    more = [row for row in rows if row.workers > 1]
    if not more:
        return "Only one core may be used here, so there are no runs with more workers."
    factors = ", ".join(f"{row.speed_up:.2f} ({row.experiment})" for row in more)
    faster = [row.speed_up > 1 for row in more]
    so = "faster" if all(faster) else "faster in some experiments only" if any(faster) else "slower"
    return textwrap.fill(
        f"More workers were {so}: {more[0].workers} went through an epoch {factors} times as fast "
        f"as one, with the strategy {more[0].strategy}: {more[0].why}. What bounds them, and other "
        "strategies: hogwild scaling, or make scaling.",
        width=100,
    )
