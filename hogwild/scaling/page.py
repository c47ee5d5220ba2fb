"""A study as one HTML page that needs nothing else: no network, no script, no other file."""

from collections.abc import Sequence
from html import escape

from hogwild.scaling import charts
from hogwild.scaling.finding import Finding
from hogwild.scaling.notes import about_machine, about_options
from hogwild.scaling.report import Report
from hogwild.scaling.style import sheet
from hogwild.scaling.summary import Summary
from hogwild.scaling.tables import SPEED, SPLIT, Groups, speed, split
from hogwild.scaling.text import sentence, unbroken

HOW = """Each configuration was trained several times, all of them in turn and in another order each
time, after an unmeasured epoch of the same kind. An epoch's time is the mean over the epochs of a
run; least, median and most are of the repeats. The gap is that of the objective to the best one,
as a share of it. The time to the target is what the training clock says at the end of the first
epoch whose gap is small enough: with the search for a rate and the start of workers, without the
objectives. Waiting and merging are what workers say they spent on it, on average; computing is the
rest of the epoch. The work of all of them together, as a multiple of one worker's, is "all / one":
above 1, workers slow each other down."""


def page(report: Report) -> str:
    """The whole page."""
    study, summaries = report.study, report.summaries
    title = f"How training scales: {study.look.name}"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>\n{sheet()}\n</style>\n</head>",
            f"<body>\n<main>\n<h1>{escape(title)}</h1>",
            _paragraph(f"In short: {report.short}", "short"),
            *(_paragraph(f"Note: {note}", "note") for note in report.notes),
            _paragraph(sentence(about_options(study)) + "."),
            *_why(report),
            "<h2>Plots</h2>",
            _plots(report),
            "<h2>How fast</h2>",
            _table(SPEED, [speed(one) for one in summaries], "How fast each configuration is"),
            "<h2>Where the time goes</h2>",
            _table(SPLIT, [split(study, one) for one in summaries], "Where the time goes"),
            "<h2>The objective after each epoch</h2>",
            _objectives(summaries),
            "<h2>What the data looks like to the cores</h2>",
            _pairs(study.look.numbers, "The data"),
            _paragraph(study.look.meaning),
            "<h2>How it was measured</h2>",
            _paragraph(HOW),
            _pairs(_circumstances(report), "The machine and the options"),
            "</main>\n</body>\n</html>\n",
        ]
    )


# Words


def _why(report: Report) -> list[str]:
    most = max((n for n in report.study.plan.workers if n <= report.study.cores), default=1)
    title = f"Why is it not {most} times as fast?" if most > 1 else "What bounds it"
    return [
        f"<h2>{title}</h2>",
        *(_paragraph(text) for text in report.why),
        *(_finding(finding) for finding in report.findings),
    ]


def _finding(finding: Finding) -> str:
    return (
        f"<article><h3>{escape(finding.title)}</h3>{_paragraph(finding.measured)}"
        f"{_paragraph(finding.means)}{_paragraph(finding.do, 'do')}</article>"
    )


def _paragraph(text: str, kind: str = "") -> str:
    if not text:
        return ""
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{escape(unbroken(text))}</p>"


# Plots


def _plots(report: Report) -> str:
    study, summaries = report.study, report.summaries
    floor = "On the lower edge no gap is left."
    figures = [
        (
            charts.speed_up(study, summaries),
            "Speed-up of an epoch, by medians; upright strokes go from the slowest to the quickest "
            "repeat.",
        ),
        (
            charts.gaps_by_time(study, summaries),
            "The gap of the objective against the training clock, a marker for each epoch. "
            f"{floor}",
        ),
        (
            charts.gaps_by_epoch(study, summaries),
            "The same against epochs: what lies above one worker's line lost updates, or learned "
            f"from old weights. {floor}",
        ),
        (
            charts.split(study, summaries),
            "Where the time of the median run goes, the mean over its workers.",
        ),
    ]
    return (
        '<div class="plots">'
        + "\n".join(
            f"<figure>{plot}<figcaption>{escape(caption)}</figcaption></figure>"
            for plot, caption in figures
        )
        + "</div>"
    )


# Tables


def _table(groups: Groups, rows: list[list[str]], name: str, kind: str = "") -> str:
    """A table that scrolls within itself. The first column names the rows."""
    over = "".join(_over(title, names) for title, names in groups)
    heads = "".join(
        f'<th scope="col">{escape(head)}</th>'
        for _, names in groups
        if len(names) > 1
        for head in names
    )
    body = "\n".join(_row(row) for row in rows)
    return _scrolling(
        f"<table><thead><tr>{over}</tr><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table>",
        name,
        kind,
    )


def _over(title: str, names: list[str]) -> str:
    """The head of several columns, or all of the head of one."""
    if len(names) > 1:
        return f'<th class="group" colspan="{len(names)}" scope="colgroup">{escape(title)}</th>'
    # Where a word is broken for the terminal, it is whole here
    whole = f"{title.removesuffix('-')}{'' if title.endswith('-') else ' '}{names[0]}".strip()
    return f'<th rowspan="2" scope="col">{escape(whole)}</th>'


def _row(cells: list[str]) -> str:
    name, *others = cells
    numbers = "".join(f"<td>{escape(cell)}</td>" for cell in others)
    return f'<tr><th scope="row">{escape(name)}</th>{numbers}</tr>'


def _pairs(pairs: Sequence[tuple[str, str]], name: str) -> str:
    body = "".join(_row([label, text]) for label, text in pairs)
    return _scrolling(f'<table class="pairs"><tbody>{body}</tbody></table>', name)


def _scrolling(table: str, name: str, kind: str = "") -> str:
    named = f"scroll {kind}".strip()
    return (
        f'<div class="{named}" role="region" tabindex="0" aria-label="{escape(name, quote=True)}">'
        f"{table}</div>"
    )


def _objectives(summaries: Sequence[Summary]) -> str:
    groups: Groups = [("", ["epoch"]), *((one.name, ["objective", "s"]) for one in summaries)]
    longest = max(len(one.objectives) for one in summaries)
    rows = []
    for epoch in range(longest):
        cells = [str(epoch + 1)]
        for one in summaries:
            there = epoch < len(one.objectives)
            cells.append(f"{one.objectives[epoch]:.6g}" if there else "-")
            cells.append(f"{one.times[epoch]:.3f}" if there else "-")
        rows.append(cells)
    return _table(groups, rows, "The objective and the time after each epoch", "long")


def _circumstances(report: Report) -> list[tuple[str, str]]:
    header, plan = report.study.header, report.study.plan
    machine, gains = about_machine(report.study)
    return [
        ("machine", machine),
        ("what it gave to threads", gains),
        ("versions", ", ".join(f"{name} {v}" for name, v in header["versions"].items())),
        ("started", str(header["started"])),
        ("task", str(plan.options.get("task", "svm"))),
        ("options", ", ".join(f"{name} {v}" for name, v in plan.given.items()) or "the defaults"),
        ("target", f"a gap of {plan.target:g}"),
        ("repeats", str(plan.repeats)),
    ]
