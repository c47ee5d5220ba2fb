"""`hogwild scaling`."""

import argparse
from typing import Any

from hogwild.cli.options import (
    add_columns,
    add_config,
    add_data,
    add_duplicates,
    add_index_base,
    config_options,
    files_in,
)
from hogwild.cli.parser import Parser, group
from hogwild.cli.streams import say
from hogwild.data.ratings import Ratings
from hogwild.data.rows import Rows
from hogwild.data.sets import named
from hogwild.scaling.plan import DECIDED, REPEATS, STRATEGIES, TARGET, Plan
from hogwild.scaling.record import check_outputs, write
from hogwild.scaling.report import Report
from hogwild.scaling.study import study
from hogwild.scaling.terminal import progress, shown
from hogwild.training import load_data, with_task

OUT = "scaling"

EXAMPLES = ("train.svm", "train.svm --workers 1,2 --strategies combine,hogwild")


def add_options(parser: Parser) -> None:
    about = "rows: svmlight text or .npz; with --task mf ratings, as for train"
    add_data(parser, about)
    add_study(parser)
    add_index_base(parser)
    add_columns(parser)
    add_duplicates(parser)
    add_config(parser, without=DECIDED, searches=False)


def add_study(parser: argparse.ArgumentParser) -> None:
    """The options of the study itself, which `experiments/scaling.py` has, too."""
    add = group(parser, "parallel").add_argument
    rows, ratings = (",".join(STRATEGIES[family]) for family in ("linear", "factors"))
    names = f"strategies, or auto [{rows} for rows; {ratings} for ratings]"
    add("--workers", metavar="N,N,...", help="numbers of workers [1, 2, 4, ... up to the cores]")
    add("--strategies", metavar="A,B,...", help=names)
    add = group(parser, "output").add_argument
    add("--target", type=float, default=TARGET, metavar="GAP", help=f"gap to reach [{TARGET:g}]")
    add("--repeat", type=int, default=REPEATS, metavar="N", help=f"runs of each [{REPEATS}]")
    add("--out", default=OUT, metavar="PREFIX", help=f"write PREFIX.jsonl and PREFIX.html [{OUT}]")


def run(parsed: argparse.Namespace) -> int:
    """Trains with every strategy and number of workers; prints and writes the results."""
    given = {name: v for name, v in config_options(parsed).items() if name not in DECIDED}
    data = files_in(parsed)
    _, options = with_task(given, data)
    plan = planned(parsed, options)
    check_outputs(parsed.out, *named(data))
    how = parsed.index_base, parsed.columns, parsed.duplicates
    say(measured(load_data(data, options["task"], *how), plan, parsed.out))
    return 0


def planned(parsed: argparse.Namespace, options: dict[str, Any]) -> Plan:
    """The plan from the options of the study; `options` are those of each run."""
    return Plan.of(options, parsed.strategies, parsed.workers, parsed.repeat, parsed.target)


def measured(data: Rows | Ratings, plan: Plan, out: Any) -> str:
    """Runs a study and writes its files; returns what to print."""
    with progress() as tell:
        report = Report.of(study(data, plan, tell))
    return f"{shown(report)}\n\nsaved: {' and '.join(write(report, out))}"
