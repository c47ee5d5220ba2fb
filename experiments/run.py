"""`make run-experiment`: every experiment of configs/, with one worker and with all cores.

Each is trained REPEATS times with each number of workers, in turn. A table shows the quickest
run; million non-zeros or ratings a second and the speed-up are those of the quickest epoch of all
runs.
"""

import argparse
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments import report, run_ratings, run_rows
from experiments.experiment import REPEATS, ROWS, Kind, Line, experiments
from hogwild.machine import usable_cores

KINDS: dict[str, Kind] = {"rows": run_rows, "ratings": run_ratings}


def run(rows: int) -> list[Line]:
    """Runs all experiments, those on the same data together; the lines of the record."""
    chosen = experiments(KINDS)
    report.say(report.about_machine())
    workers = sorted({1, usable_cores()})
    record = [report.header({"rows": rows, "repeats": REPEATS})]
    tables: list[str] = []
    summaries: list[Line] = []
    for _, group in groupby(chosen, key=lambda one: (one.kind, one.data)):
        some = list(group)
        kind = KINDS[some[0].kind]
        data = kind.generate(rows, some[0].data)
        found = []
        for experiment in some:
            shown, lines = kind.measure(experiment, data, workers)
            found += shown
            record += lines
        tables.append(kind.shown(data, found))
        summaries += [{"kind": "summary"} | row.record() for row in found]
    for table in tables:
        report.say(f"\n{table}")
    return record + summaries


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=2.0)
    report.record("run-experiment", run(parser.parse_args().rows))


if __name__ == "__main__":
    sys.exit(report.command(main))
