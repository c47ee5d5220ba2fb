"""`make run-experiment`: every experiment of configs/, with one worker and with all cores.

Each is trained REPEATS times with each number of workers, in turn. The table shows the quickest
run; million non-zeros a second and the speed-up are those of the quickest epoch of all runs.
"""

import argparse
import inspect
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hogwild
from experiments import report
from experiments.optimum import Optimum, optimum
from hogwild import Config, HogwildError, OptionError, Result, Rows
from hogwild.data.statistics import sharing
from hogwild.data.synthetic import rcv1
from hogwild.machine import usable_cores

ROWS = 200_000
TEST_SHARE = 0.2
REPEATS = 5
CERTAINTY = 1e-6  # relative, of the optimum

HEAD = [
    *("experiment", "workers", "seconds", "epochs", "objective", "1st gap", "last gap"),
    *("test err", "M nnz/s", "speed-up"),
]
LEGEND = """\
seconds of training; gap: of the objective to the optimum, relative, after the first epoch and the
last; million non-zeros a second of the quickest epoch; speed-up: of that, against one worker"""


class Experiment(NamedTuple):
    """A file of configs/."""

    name: str
    data: dict[str, Any]
    options: dict[str, Any]
    loss: str
    l2: float
    intercept: bool


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
    first_gap: float
    gap: float
    test_error: float
    nonzeros_per_second: float
    speed_up: float

    def cells(self) -> list[str]:
        """As printed."""
        return [
            *(self.experiment, str(self.workers), f"{self.seconds:.3f}", str(self.epochs)),
            *(f"{self.objective:.6f}", f"{self.first_gap:.1e}", f"{self.gap:.1e}"),
            f"{100 * self.test_error:.2f} %",
            *(f"{self.nonzeros_per_second / 1e6:.0f}", f"{self.speed_up:.2f}"),
        ]


def experiments() -> list[Experiment]:
    """All files of configs/, checked."""
    return [experiment(path) for path in sorted((report.FOLDER / "configs").glob("*.toml"))]


def experiment(path: Path) -> Experiment:
    """The experiment in a file."""
    try:
        found = tomllib.loads(path.read_text())
        _check_names(found, ["data", "options"])
        data, options = found.get("data", {}), found.get("options", {})
        _check_names(data, [n for n in inspect.signature(rcv1).parameters if "row" not in n])
        config = Config.of(options)
    except (tomllib.TOMLDecodeError, OptionError) as problem:
        raise OptionError(f"{path}: {problem}") from None
    return Experiment(path.stem, data, options, config.loss_name, config.l2, config.intercept)


def _check_names(found: dict[str, Any], known: list[str]) -> None:
    for name in found:
        if name not in known:
            raise OptionError(f"{name} is unknown; there are {', '.join(known)}")


def generate(rows: int, options: dict[str, Any]) -> Data:
    """The first rows to train on, those after them to test on."""
    train, _ = rcv1(rows, **options)
    test, _ = rcv1(max(1, int(rows * TEST_SHARE)), first_row=rows, **options)
    report.say(
        f"Data      {train.name}: {len(train):,} rows, and {len(test):,} to test on;\n"
        f"          {train.columns:,} columns, {train.nonzeros / len(train):.0f} non-zeros a row, "
        f"{train.nbytes / 1e6:,.0f} MB"
    )
    return Data(train, test)


def run(experiment: Experiment, data: Data, workers: list[int]) -> dict[int, list[Result]]:
    """The experiment's runs by number of workers, measured in turn."""
    results: dict[int, list[Result]] = {count: [] for count in workers}
    for _ in range(REPEATS):
        for count in workers:
            result = hogwild.train(
                data.train, test=data.test, **(experiment.options | {"workers": count})
            )
            results[count].append(report.finished(result))
    return results


def find_optimum(experiment: Experiment, rows: Rows) -> Optimum:
    """What the gaps are measured from."""
    found = optimum(rows, experiment.loss, experiment.l2, experiment.intercept, CERTAINTY)
    sure = "" if found.certified else ", NOT proved as near as it should be"
    report.say(
        f"Optimum   {experiment.name}: {found.objective:.6f}, proved to {found.gap:.0e}{sure} "
        f"({found.seconds:.1f} s)"
    )
    return found


def summaries(
    experiment: Experiment, results: dict[int, list[Result]], best: Optimum
) -> list[Summary]:
    """A row of the table for each number of workers."""
    speeds = {count: max(map(_speed, runs)) for count, runs in results.items()}
    rows = []
    for count, runs in results.items():
        quickest = min(runs, key=lambda result: result.trace[-1]["seconds"]).trace
        last = quickest[-1]
        rows.append(
            Summary(
                experiment=experiment.name,
                workers=count,
                seconds=last["seconds"],
                epochs=len(quickest),
                objective=last["objective"],
                first_gap=_gap(quickest[0]["objective"], best),
                gap=_gap(last["objective"], best),
                test_error=last["test_error"],
                nonzeros_per_second=speeds[count],
                speed_up=speeds[count] / speeds[1],
            )
        )
    return rows


def _speed(result: Result) -> float:
    return float(max(row["nonzeros_per_second"] for row in result.trace))


def _gap(objective: float | None, best: Optimum) -> float:
    if objective is None:
        raise HogwildError("objective_every: an experiment needs an objective after every epoch")
    return (objective - best.objective) / best.objective


def verdict(rows: list[Summary], data: Data) -> str:
    """What the table says of more workers on this data, and why."""
    more = [row for row in rows if row.workers > 1]
    if not more:
        return "Only one core may be used here, so there are no runs with more workers."
    factors = ", ".join(f"{row.speed_up:.2f} ({row.experiment})" for row in more)
    faster = [row.speed_up > 1 for row in more]
    so = "faster" if all(faster) else "faster in some experiments only" if any(faster) else "slower"
    found = sharing(data.train)
    expected = "was" if found.pays else "was not"
    return textwrap.fill(
        f"More workers were {so}: {more[0].workers} went through an epoch {factors} times as fast "
        f"as one. A gain {expected} to be expected from this data: {found.reason}.",
        width=100,
    )


def lines(experiment: Experiment, results: dict[int, list[Result]], best: Optimum) -> list[Any]:
    """What goes into the record: the optimum, and every epoch of every run."""
    about = {"experiment": experiment.name, "data": experiment.data, "options": experiment.options}
    found: list[dict[str, Any]] = [
        {
            "kind": "optimum",
            **about,
            "objective": best.objective,
            "lower_bound": best.lower_bound,
            "certified": best.certified,
        }
    ]
    for count, runs in results.items():
        for repeat, result in enumerate(runs):
            run = {"experiment": experiment.name, "workers": count, "repeat": repeat}
            found += [row | run for row in result.trace]
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=2.0)
    rows = parser.parse_args().rows

    chosen = experiments()
    report.say(report.about_machine())
    workers = sorted({1, usable_cores()})
    record = [report.header({"rows": rows, "repeats": REPEATS})]
    made: list[tuple[dict[str, Any], Data, list[Summary]]] = []
    for experiment in sorted(chosen, key=lambda chosen: str(chosen.data)):
        if not made or made[-1][0] != experiment.data:
            made.append((experiment.data, generate(rows, experiment.data), []))
        _, data, shown = made[-1]
        best = find_optimum(experiment, data.train)
        results = run(experiment, data, workers)
        shown += summaries(experiment, results, best)
        record += lines(experiment, results, best)
    for _, data, shown in made:
        report.say(f"\n{report.table(HEAD, [row.cells() for row in shown])}\n{LEGEND}\n")
        report.say(verdict(shown, data))
        record += [{"kind": "summary"} | row._asdict() for row in shown]
    report.record("run-experiment", record)


if __name__ == "__main__":
    sys.exit(report.command(main))
