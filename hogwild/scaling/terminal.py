"""A study in text, and the progress of one on a terminal."""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

from hogwild import status
from hogwild.scaling.report import SPEED, SPLIT, Columns, Report
from hogwild.scaling.study import Tell


def shown(report: Report) -> str:
    """The tables and all findings, up to 100 columns wide."""
    look = report.study.look
    parts = [
        f"Data: {look.name}: {look.shape}.",
        *report.about,
        *(f"Note: {note}" for note in report.notes),
        _table(report, SPEED),
        _table(report, SPLIT),
        f"{look.sharing} {look.meaning}",
        *(f"{one.title}. {one.measured} {one.means} {one.do}" for one in report.findings),
        *report.why,
        f"In short: {report.short}",
    ]
    filled = (part if "\n" in part else textwrap.fill(part, 100) for part in parts)
    return "\n\n".join(filled)


def _table(report: Report, columns: Columns) -> str:
    """Columns as wide as their cells, flush right except for the first."""
    lines = [""] * (2 + len(report.summaries))
    for head, cell in columns.items():
        cells = [*head.split("|"), *(cell(report.study, one) for one in report.summaries)]
        width = max(map(len, cells))
        aligned = [f"  {text:>{width}}" if lines[2] else f"{text:<{width}}" for text in cells]
        lines = [line + text for line, text in zip(lines, aligned, strict=True)]
    return "\n".join(line.rstrip() for line in lines)


@contextmanager
def progress() -> Iterator[Tell]:
    """Yields a function that is called with how far the study is."""
    with status.doing("measuring", over=True, forks=True) as now:

        def tell(done: int, total: int, what: str) -> None:
            now.counted(done, total, f"run {done + 1} of {total}: {what}")

        yield tell
