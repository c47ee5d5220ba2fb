"""Time to the answer: hogwild's defaults beside other trainers of linear models.

    l2/2 |w|^2 + l1 |w|_1 + mean(loss),    no intercept, since some penalize it and some do not

For hogwild the time is that of a whole call of `hogwild.train` on rows in memory, with the problem,
a `target` (where it says proved, a `tol`) and defaults; kernels are compiled before. Each of the
others lives in a virtual environment of its own (`--install` makes them). There `linear_peer.py`
runs it with every setting of a sweep. The fastest setting counts that comes near enough. A gap is
the distance to the optimum relative to it, computed from the weights for all in the same way.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import hogwild
from experiments import measure, report, shapes
from experiments.environments import Environment
from experiments.linear_peer import PACKAGES, Data, Problem, timed
from experiments.optimum import optimum
from hogwild import OptionError, Rows
from hogwild.data.synthetic import rcv1
from hogwild.machine import usable_cores
from hogwild.scaling.page import document, paragraph, table
from hogwild.scaling.svg import COLORS, Line, line_plot, logarithmic

FOLDER = Path(__file__).resolve().parent
VERSIONS = FOLDER / "peers-linear.txt"

ROWS = 100_000
BUDGET = 5.0
PENALTIES = (1e-4, 1e-6)
SHARES = (30, 300)  # of the least l1 that makes all weights zero
SLACK = 1.01  # of a gap, for the rounding of objectives
CERTAINTY = 1e-7  # relative, of the optimum
PATIENCE = 60.0  # seconds, for the optimum and for one call of ours
OVERRUN = 20.0  # budgets, after which a peer is ended: a call may last far longer than its budget

OURS = "hogwild"
HEAD = ["seconds to a gap of", "1e-02", "1e-03", "1e-04", "1e-06", "least gap", "s", "setting"]
GAPS = (1e-2, 1e-3, 1e-4, 1e-6)

Row = dict[str, Any]


class Goal(NamedTuple):
    """How near the optimum, whether it has to be proved, and how many times faster than all."""

    gap: float
    least: float
    proved: bool = False

    def __str__(self) -> str:
        return f"{self.gap:.0e}{', proved' * self.proved}"


GOALS = [Goal(1e-2, 2), Goal(1e-3, 2), Goal(1e-4, 2), Goal(1e-6, 1.5), Goal(1e-6, 1.5, True)]
GOALS_L1 = [Goal(1e-3, 2), Goal(1e-6, 2)]


class Run(NamedTuple):
    """What a setting came to."""

    trainer: str
    setting: str
    seconds: float
    gap: float


class Best(NamedTuple):
    """The least objective, how far from the optimum it can be (relative), and its weights."""

    objective: float
    gap: float
    weights: Any

    def gap_of(self, objective: float) -> float:
        """How far an objective is from it, relative to it."""
        return (objective - self.objective) / self.objective


class Case(NamedTuple):
    """A problem on given rows."""

    rows: Rows
    data: Data
    problem: Problem

    def __str__(self) -> str:
        loss, l2, l1 = self.problem
        penalty = f"l1 {l1:.3g}" if l1 else f"l2 {l2:.0e}"
        return f"{Path(self.rows.name).name}, {loss}, {penalty}"

    def train(self, **more: Any) -> hogwild.Result:
        """hogwild's defaults; more than PATIENCE seconds are too many."""
        asked = self.problem._asdict() | {"time_limit": PATIENCE} | more
        return report.finished(hogwild.train(self.rows, intercept=False, **asked))

    def objective(self, weights: Any) -> float:
        """Of weights, in float64."""
        return self.problem.objective(self.data.X, self.data.y, np.asarray(weights, np.float64))


# What is to be had, and by whom


def environment(name: str) -> Environment:
    """A peer's virtual environment."""
    packages = (PACKAGES[name], "scipy")
    # Its build imports them and does not ask for them
    builders = ("numpy<2", "cython", "setuptools<70", "wheel", "scikit-learn")
    how = "python experiments/peers_linear.py --install"
    return Environment(
        name, packages, VERSIONS, how, builders=builders if name == "lightning" else ()
    )


def problems(data: Data) -> Iterator[Problem]:
    """Those that are compared: two losses with two penalties, and two sparse ones."""
    for loss in ("hinge", "logistic"):
        for l2 in PENALTIES:
            yield Problem(loss, l2)
    largest = float(np.abs(data.X.T @ data.y).max()) / 2 / len(data.y)
    for share in SHARES:
        yield Problem("logistic", 0.0, largest / share)


def best_known(case: Case) -> Best:
    """hogwild's own, and where it proves too little, that of an independent solver, too."""
    result = case.train(tol=CERTAINTY / 10)
    weights = result.model.weights
    objective = case.objective(weights)
    bound = objective * (1 - result.trace[-1]["gap"])
    if objective - bound > CERTAINTY * objective and not case.problem.l1:
        other = optimum(
            case.rows, case.problem.loss, case.problem.l2, False, CERTAINTY, seconds=PATIENCE
        )
        bound = other.lower_bound
        if other.objective < objective:
            objective, weights = other.objective, other.weights
    return Best(objective, (objective - bound) / objective, weights)


def ours(case: Case, best: Best) -> tuple[list[Run], float | None]:
    """hogwild's time to each goal, and for how many columns it agrees with the optimum on zero."""
    goals = GOALS_L1 if case.problem.l1 else GOALS
    runs = []
    for goal in goals[::-1]:  # the last goal needs all the compiled code
        limit = {"tol": goal.gap} if goal.proved else {"target": best.objective * (1 + goal.gap)}
        begun = time.perf_counter()
        result = case.train(**limit)
        if time.perf_counter() - begun < PATIENCE:
            seconds, result = timed(partial(case.train, **limit))
            if result.reason in ("target", "converged"):
                gap = best.gap_of(case.objective(result.model.weights))
                runs.append(Run(OURS, str(goal), seconds, gap))
        if goal == goals[-1]:
            zeros = np.mean((result.model.weights == 0) == (best.weights == 0))
    return runs[::-1], float(zeros) if case.problem.l1 else None


def theirs(name: str, case: Case, best: Best, budget: float) -> tuple[list[Run], list[str]]:
    """A peer's runs, and what went wrong."""
    request = {
        "folder": str(case.data.folder),
        "columns": case.rows.columns,
        "problem": case.problem,
        "enough": best.objective * (1 + GAPS[-1]),
        "budget": budget,
    }
    script, seconds = FOLDER / "linear_peer.py", OVERRUN * budget
    answer = environment(name).ask(script, request, usable_cores(), seconds)
    failed = [f"{row['trainer']}: {row['problem']}" for row in answer.rows if "problem" in row]
    failed += [f"{name}: {answer.problem}"] if answer.problem else []
    runs = [
        Run(row["trainer"], f"{row['setting']:g}", row["seconds"], best.gap_of(row["objective"]))
        for row in answer.rows
        if "objective" in row
    ]
    return runs, failed


# What the numbers say


def seconds_to(gap: float, runs: Iterable[Run]) -> Run | None:
    """The fastest that came near enough."""
    near = (run for run in runs if run.gap <= gap * SLACK)
    return min(near, key=lambda run: run.seconds, default=None)


def cells(name: str, runs: list[Run]) -> list[str]:
    """A row of the table of a problem."""
    reached = [seconds_to(gap, runs) for gap in GAPS]
    nearest = min(runs, key=lambda run: run.gap)
    return [
        name,
        *("-" if run is None else f"{run.seconds:.3f}" for run in reached),
        *(f"{nearest.gap:.1e}", f"{nearest.seconds:.3f}", nearest.setting),
    ]


def shown(seconds: float) -> str:
    """As printed, where infinity stands for what is not reached."""
    return measure.seconds(seconds) if np.isfinite(seconds) else "never"


def verdicts(case: Case, mine: list[Run], others: list[Run]) -> list[measure.Line]:
    """Ours beside the best peer's, for each goal."""
    lines = []
    for goal in GOALS_L1 if case.problem.l1 else GOALS:
        at = seconds_to(goal.gap, [run for run in mine if run.setting == str(goal)])
        other = seconds_to(goal.gap, others)
        lines.append(
            measure.Line(
                f"{case}: {goal}",
                at.seconds if at else np.inf,
                other.seconds if other else np.inf,
                shown,
                other.trainer if other else "all of them",
                least=goal.least,
            )
        )
    return lines


def drawn(case: Case, runs: dict[str, list[Run]]) -> str:
    """Gap against time: for each trainer, the least gap so far of its settings."""
    every = [run for some in runs.values() for run in some]
    x = logarithmic("seconds", [run.seconds for run in every])
    y = logarithmic("gap", [max(run.gap, GAPS[-1] / 10) for run in every])
    lines = []
    for number, (name, some) in enumerate(runs.items()):
        points: list[tuple[float, float]] = []
        for run in sorted(some, key=lambda run: run.seconds):
            if not points or run.gap < points[-1][1]:
                points.append((run.seconds, run.gap))
        look = (COLORS[number % len(COLORS)], number, number // len(COLORS))
        lines.append(Line(name, points, *(look if name != OURS else ("currentColor", 0, 0))))
    return f"<figure>{line_plot(f'{case}: gap against time', lines, x, y)}</figure>"


class Comparison:
    """Prints tables as they are measured, and keeps what the record and the page say."""

    def __init__(self, names: list[str], budget: float) -> None:
        self.names = names
        self.budget = budget
        self.lines: list[Row] = []
        self.verdicts: list[measure.Line] = []
        self.plots: list[str] = []

    def compare(self, case: Case) -> None:
        """One problem."""
        best = best_known(case)
        about = f"optimum {best.objective:.8f}, proved to {best.gap:.0e}"
        report.say(f"\n{case}: {about}")
        mine, zeros = ours(case, best)
        runs: dict[str, list[Run]] = {OURS: mine} if mine else {}
        for name in self.names:
            found, failed = theirs(name, case, best, self.budget)
            for run in found:
                runs.setdefault(run.trainer, []).append(run)
            for problem in failed:
                report.say(f"Failed    {problem}")
        # A busy minute hits all of ours, and few of a peer's many settings
        mine += ours(case, best)[0]
        report.say(report.table(HEAD, [cells(name, some) for name, some in runs.items()]))
        if zeros is not None:
            report.say(f"hogwild and the optimum agree on zero for {zeros:.2%} of the columns")
        others = [run for name, some in runs.items() if name != OURS for run in some]
        self.verdicts += verdicts(case, mine, others)
        self.plots.append(f"<h2>{escape(str(case))}</h2>{paragraph(about)}{drawn(case, runs)}")
        known = {"data": case.rows.name} | case.problem._asdict()
        self.lines.append({"kind": "optimum", "objective": best.objective, "gap": best.gap} | known)
        self.lines += [
            {"kind": "run"} | known | run._asdict() for some in runs.values() for run in some
        ]

    def page(self) -> str:
        """The table of verdicts and all curves, as one HTML file."""
        title = "Time to the answer, beside other trainers"
        return document(
            title,
            [
                f"<h1>{title}</h1>",
                *map(paragraph, report.about_machine().splitlines()),
                paragraph(str(__doc__).split("\n\n")[2]),
                table(measure.HEAD, [line.cells() for line in self.verdicts]),
                '<div class="plots">',
                *(f"<section>{plot}</section>" for plot in self.plots),
                "</div>",
            ],
        )


def in_memory(rows: Rows, folder: Path) -> Data:
    """The rows for scipy, and as files for the peers."""
    X = rows.to_scipy()
    data = Data(X, rows.targets().astype(np.float64), folder)
    arrays = {"values": X.data, "indices": X.indices, "indptr": X.indptr, "targets": data.y}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return data


def run(names: list[str], sets: Iterable[Rows], budget: float) -> None:
    """Everything, its record and its page."""
    comparison = Comparison(names, budget)
    for rows in sets:
        report.say(
            f"\nData      {rows.name}: {len(rows):,} rows, {rows.columns:,} columns, "
            f"{rows.nonzeros:,} non-zeros"
        )
        with tempfile.TemporaryDirectory(prefix="hogwild-peers-") as folder:
            data = in_memory(rows, Path(folder))
            for problem in problems(data):
                comparison.compare(Case(rows, data, problem))
    report.say("\n" + measure.table(comparison.verdicts))
    held = [
        {"kind": "verdict"} | dict(zip(measure.HEAD, line.cells(), strict=True))
        for line in comparison.verdicts
    ]
    header = report.header({"peers": names, "budget": budget})
    report.record("peers-linear", [header, *comparison.lines, *held])
    page = report.OUT / "peers-linear.html"
    page.write_text(comparison.page())
    report.say(f"Page: {page}")
    measure.check(comparison.verdicts)


def positive(text: str) -> float:
    """A number above 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--install", action="store_true", help="the others, and nothing else")
    report.rows_option(parser, ROWS, copies=6.0)
    report.data_option(parser)
    parser.add_argument(
        "--table",
        type=int,
        metavar="COLUMNS",
        help="rows of a dense table with columns of very different sizes, not of RCV1's shape",
    )
    parser.add_argument(
        "--budget",
        type=positive,
        default=BUDGET,
        metavar="SECONDS",
        help=f"for each sweep [{BUDGET:g}]",
    )
    parsed = parser.parse_args()
    if parsed.data and parsed.rows != ROWS:
        raise OptionError("--rows says how many rows to generate, and --data not to; choose one")
    if parsed.data and parsed.table:
        raise OptionError("--table says what rows to generate, and --data not to; choose one")
    if parsed.install:
        for name in PACKAGES:
            report.say(f"{name:<19} {environment(name).install() or 'installed'}")
        return
    report.say(report.about_machine())
    absent = {name: why for name in PACKAGES if (why := environment(name).missing())}
    for name, why in absent.items():
        report.say(f"Missing   {name}: {why}")
    names = [name for name in PACKAGES if name not in absent]
    if parsed.data:
        sets: Iterable[Rows] = map(hogwild.load, parsed.data)
    elif parsed.table:
        sets = [shapes.table(parsed.rows, parsed.table, 0)]
    else:
        sets = [rcv1(parsed.rows)[0]]
    run(names, sets, parsed.budget)


if __name__ == "__main__":
    sys.exit(report.command(main))
