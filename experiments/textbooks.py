"""The textbooks' experiments on rows of RCV1's shape, with a page that explains them.

Bottou's tables, stochastic against batch descent on growing subsets, learning rates, and orders of
the rows. Each has a config in configs/textbooks/ and a module lesson_*.py. Seconds are those of the
training clock: with the search for a learning rate and the start of workers, without compiling and
evaluating. A gap is the distance to a proved lower bound of the optimum, as a share of it.
"""

import argparse
import sys
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments import (
    lesson,
    lesson_orders,
    lesson_rates,
    lesson_subsets,
    lesson_tables,
    report,
    run_rows,
)
from experiments.experiment import ROWS, Line
from experiments.lesson import Kind, Shown
from hogwild.scaling.page import document, paragraph, table

TESTED = 23_149  # rows to test on, as in Bottou's tables
KINDS: dict[str, Kind] = {
    "rcv1-tables": lesson_tables,
    "growing-subsets": lesson_subsets,
    "step-sizes": lesson_rates,
    "row-orders": lesson_orders,
}


def run(names: Sequence[str], rows: int) -> tuple[list[Line], list[str]]:
    """The lines of the record, and the pieces of the page."""
    chosen = lesson.lessons({name: KINDS[name] for name in names})
    report.say(report.about_machine())
    lines: list[Line] = []
    pieces: list[str] = []
    for options, group in groupby(chosen, key=lambda one: one.data):
        data = run_rows.generate(rows, options, TESTED)
        about = (
            f"Rows: {len(data.train):,} of RCV1's shape, {data.train.columns:,} columns, "
            f"{data.train.nonzeros:,} non-zeros; {len(data.test):,} to test on."
        )
        for one in group:
            kind = KINDS[one.name]
            report.say(f"\n{kind.TITLE}")
            pieces += [f"<h2>{escape(kind.TITLE)}</h2>", paragraph(kind.INTRO), paragraph(about)]
            for problem in one.problems:
                found = kind.shown(problem, data)
                report.say("\n" + "\n".join([report.table(found.head, found.rows), *found.says]))
                pieces += [f"<h3>{escape(problem.name)}</h3>", *piece(found)]
                lines += [{"lesson": one.name} | line for line in found.lines]
            pieces += ["<h3>Why</h3>", paragraph(kind.WHY)]
    return lines, pieces


def piece(found: Shown) -> list[str]:
    """A problem, on the page."""
    plot = [f"<figure>{found.plot}</figure>"] if found.plot else []
    return [*plot, table(found.head, found.rows), *map(paragraph, found.says)]


def page(pieces: Sequence[str]) -> str:
    """All of it, as one HTML file."""
    title = "The textbooks' experiments"
    about = [*report.about_machine().splitlines(), str(__doc__).split("\n\n")[1]]
    return document(title, [f"<h1>{title}</h1>", *map(paragraph, about), *pieces])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=5.0)
    parser.add_argument(
        "--only", nargs="+", choices=list(KINDS), default=list(KINDS), help="[all of them]"
    )
    given = parser.parse_args()
    lines, pieces = run(given.only, given.rows)
    report.record("textbooks", [report.header(vars(given)), *lines])
    path = report.OUT / "textbooks.html"
    path.write_text(page(pieces))
    report.say(f"Page: {path}")


if __name__ == "__main__":
    sys.exit(report.command(main))
