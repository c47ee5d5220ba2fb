"""`hogwild scaling`."""

import argparse
import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from hogwild.cli.models import add_columns
from hogwild.cli.options import add_config, add_duplicates, add_index_base, index_base
from hogwild.config import Config
from hogwild.errors import OptionError
from hogwild.scaling.plan import DECIDED, MOST_REPEATS, REPEATS, STRATEGIES, TARGET, Plan

if TYPE_CHECKING:
    from hogwild.scaling.study import Data

OUT = "scaling"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="rows: svmlight text or .npz; with --task mf ratings, as for train",
    )
    add_study(parser)
    add_index_base(parser)
    add_columns(parser)
    add_duplicates(parser)
    add_config(cast(argparse.ArgumentParser, _Some(parser)))


def run(parsed: argparse.Namespace) -> int:
    """Trains with every strategy and number of workers; says what it found, and writes it."""
    plan = _checked(parsed)
    from hogwild.scaling.progress import Progress
    from hogwild.scaling.report import Report, write
    from hogwild.scaling.study import study
    from hogwild.scaling.terminal import shown

    data = _data(parsed)
    with Progress() as progress:
        found = study(data, plan, progress)
    report = Report.of(found)
    files = write(report, parsed.out)
    print(f"{shown(report)}\n\nsaved: {' and '.join(files)}", flush=True)
    return 0


def add_study(parser: argparse.ArgumentParser) -> None:
    """The options of the study itself, which `experiments/scaling.py` has, too."""
    usual = "; ".join(f"{','.join(names)} for {kind}" for kind, names in _usual().items())
    parser.add_argument(
        "--workers", metavar="N,N,...", help="numbers of workers [1, 2, 4, ... up to the cores]"
    )
    parser.add_argument("--strategies", metavar="A,B,...", help=f"strategies, or auto [{usual}]")
    parser.add_argument(
        "--target",
        type=partial(_number, float),
        default=TARGET,
        metavar="GAP",
        help=f"the objective to time: this share above the best, or above --optimum [{TARGET:g}]",
    )
    parser.add_argument(
        "--optimum",
        type=partial(_number, float),
        metavar="X",
        help="what gaps are measured from [the best objective of all runs]",
    )
    parser.add_argument(
        "--repeat",
        type=partial(_number, int),
        default=REPEATS,
        metavar="N",
        help=f"how often each is measured, up to {MOST_REPEATS} [{REPEATS}]",
    )
    parser.add_argument(
        "--own-baseline",
        action="store_true",
        help="compare each strategy with itself with one worker [all with the same run]",
    )
    parser.add_argument(
        "--out",
        default=OUT,
        metavar="PREFIX",
        help=f"where to write: PREFIX.jsonl and PREFIX.html [{OUT}]",
    )


def planned(parsed: argparse.Namespace, options: dict[str, Any]) -> Plan:
    """The plan that the options of the study say, for runs with these options."""
    return Plan.of(
        options,
        parsed.strategies,
        parsed.workers,
        target=parsed.target,
        optimum=parsed.optimum,
        repeats=parsed.repeat,
        own_baseline=parsed.own_baseline,
    )


def _usual() -> dict[str, tuple[str, ...]]:
    return {"rows": STRATEGIES["linear"], "ratings": STRATEGIES["factors"]}


def _number(kind: type, text: str) -> Any:
    """A number where it is one; where not, the plan says what it should be."""
    try:
        return kind(text)
    except ValueError:
        return text


class _Some:
    """A parser to which only those options of a run are added that a study leaves open."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self._parser = parser

    def add_argument(self, *names: str, dest: str, **how: Any) -> None:
        """As a parser's."""
        if dest not in DECIDED:
            self._parser.add_argument(*names, dest=dest, **how)


def _checked(parsed: argparse.Namespace) -> Plan:
    """The plan, if nothing is wrong with the call: all that is, before any file is read."""
    from hogwild.scaling.report import check_outputs

    names = [known.name for known in dataclasses.fields(Config) if known.name not in DECIDED]
    options = {name: getattr(parsed, name) for name in names}
    problems: list[str] = []
    plan = None
    try:
        plan = planned(parsed, options)
    except OptionError as problem:
        problems.append(str(problem))
    try:
        check_outputs(parsed.out, parsed.data)
    except OptionError as problem:
        problems.append(str(problem))
    problems += _misplaced(parsed)
    if problems or plan is None:
        raise OptionError("\n".join(problems))
    return plan


def _misplaced(parsed: argparse.Namespace) -> list[str]:
    """Options for reading another kind of data."""
    from hogwild.data.ratings_files import named_as_ratings

    if parsed.task == "mf":
        return [] if parsed.index_base == "auto" else ["index_base: the task mf has none"]
    found = []
    if parsed.columns:
        found.append(f"columns: the task {parsed.task} has none")
    if parsed.duplicates != "keep":
        found.append(f"duplicates: the task {parsed.task} has none")
    if named_as_ratings(parsed.data):
        found.append(f"task: {parsed.data} holds ratings, by its name; give the task mf")
    return found


def _data(parsed: argparse.Namespace) -> "Data":
    if parsed.task == "mf":
        from hogwild.data.ratings_files import load_ratings

        return load_ratings(parsed.data, columns=parsed.columns, duplicates=parsed.duplicates)
    from hogwild.data.files import load

    return load(parsed.data, index_base=index_base(parsed))
