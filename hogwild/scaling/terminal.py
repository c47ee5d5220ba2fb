"""A study in text: tables of up to 100 columns, and the findings in words."""

import textwrap

from hogwild.scaling.notes import about_data, about_machine, about_options
from hogwild.scaling.report import Report
from hogwild.scaling.study import Study
from hogwild.scaling.tables import SPEED, SPLIT, Groups, speed, split
from hogwild.scaling.text import BLANK, unbroken

WIDTH = 100


def shown(report: Report) -> str:
    """All of it, for the terminal."""
    study, summaries = report.study, report.summaries
    parts = [
        "\n".join(_head(study)),
        "\n".join(_filled(f"Note: {note}") for note in report.notes),
        _table(SPEED, [speed(one) for one in summaries]),
        _table(SPLIT, [split(study, one) for one in summaries]),
        "\n".join(_data(study)),
        *(_filled(f"{one.title}. {one.text}") for one in report.findings),
        *(_filled(text) for text in report.why),
        _filled(f"In short: {report.short}"),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(study: Study) -> list[str]:
    machine, gains = about_machine(study)
    return [
        f"Data     {about_data(study)}",
        _filled(f"Trained  {about_options(study)}", 9),
        f"Machine  {machine}",
        _filled(f"         {gains}", 9),
    ]


def _data(study: Study) -> list[str]:
    width = max(len(label) for label, _ in study.look.numbers)
    lines = [f"{label:<{width}}  {text}" for label, text in study.look.numbers]
    return ["What the data looks like to the cores:", *lines, _filled(study.look.meaning)]


def _table(groups: Groups, rows: list[list[str]]) -> str:
    """Columns as wide as what is in them, flush right but for the first."""
    every = [[name for _, names in groups for name in names], *rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    over, first = [], 0
    for title, names in groups:
        span = sum(widths[first : first + len(names)]) + 2 * (len(names) - 1)
        widths[first] += max(0, len(title) - span)
        span = max(span, len(title))
        dashes = f" {title} ".center(span, "-") if len(names) > 1 else title.rjust(span)
        over.append(dashes)
        first += len(names)
    lines = ["  ".join(over)]
    for name, *numbers in every:
        cells = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:], strict=True)]
        lines.append("  ".join([f"{name:<{widths[0]}}", *cells]))
    return "\n".join(line.rstrip() for line in lines)


def _filled(text: str, indent: int = 0) -> str:
    filled = textwrap.fill(
        unbroken(text),
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace(BLANK, " ")
