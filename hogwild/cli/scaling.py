"""`hogwild scaling`."""

import argparse
import dataclasses
from typing import Any

from hogwild.cli.options import add_columns, add_config, add_duplicates, add_index_base
from hogwild.config import Config
from hogwild.data.ratings import Ratings
from hogwild.data.rows import Rows
from hogwild.scaling.plan import DECIDED, REPEATS, STRATEGIES, TARGET, Plan
from hogwild.scaling.record import check_outputs, write
from hogwild.scaling.report import Report
from hogwild.scaling.study import study
from hogwild.scaling.terminal import progress, shown
from hogwild.training import load_data

OUT = "scaling"


def add_options(parser: argparse.ArgumentParser) -> None:
    about = "rows: svmlight text or .npz; with --task mf ratings, as for train"
    parser.add_argument("data", metavar="DATA", help=about)
    add_study(parser)
    add_index_base(parser)
    add_columns(parser)
    add_duplicates(parser)
    add_config(parser, without=DECIDED)


def add_study(parser: argparse.ArgumentParser) -> None:
    """The options of the study itself, which `experiments/scaling.py` has, too."""
    add = parser.add_argument
    rows, ratings = (",".join(STRATEGIES[family]) for family in ("linear", "factors"))
    names = f"strategies, or auto [{rows} for rows; {ratings} for ratings]"
    add("--workers", metavar="N,N,...", help="numbers of workers [1, 2, 4, ... up to the cores]")
    add("--strategies", metavar="A,B,...", help=names)
    add("--target", type=float, default=TARGET, metavar="GAP", help=f"gap to reach [{TARGET:g}]")
    add("--repeat", type=int, default=REPEATS, metavar="N", help=f"runs of each [{REPEATS}]")
    add("--out", default=OUT, metavar="PREFIX", help=f"write PREFIX.jsonl and PREFIX.html [{OUT}]")


def run(parsed: argparse.Namespace) -> int:
    """Trains with every strategy and number of workers; prints and writes what that came to."""
    fields = {known.name: known.default for known in dataclasses.fields(Config)}
    given = {name: getattr(parsed, name) for name in fields if name not in DECIDED}
    changed = {name: value for name, value in given.items() if value != fields[name]}
    plan = planned(parsed, {"task": parsed.task} | changed)
    check_outputs(parsed.out, parsed.data)
    how = parsed.index_base, parsed.columns, parsed.duplicates
    print(measured(load_data(parsed.data, parsed.task, *how), plan, parsed.out), flush=True)
    return 0


def planned(parsed: argparse.Namespace, options: dict[str, Any]) -> Plan:
    """The plan that the options of the study say, for runs with these options."""
    return Plan.of(options, parsed.strategies, parsed.workers, parsed.repeat, parsed.target)


def measured(data: Rows | Ratings, plan: Plan, out: Any) -> str:
    """Runs a study and writes its files; returns what to print."""
    with progress() as tell:
        report = Report.of(study(data, plan, tell))
    return f"{shown(report)}\n\nsaved: {' and '.join(write(report, out))}"
