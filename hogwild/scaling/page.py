"""A study as one HTML page without scripts, other files or network."""

import csv
import io
from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

from hogwild.scaling.findings import Summaries
from hogwild.scaling.report import SPEED, SPLIT, Columns, Report
from hogwild.scaling.study import Study
from hogwild.scaling.svg import COLORS, Axis, Line, bars, line_plot, linear, logarithmic

HOW = """Configurations run in turn, in another order for each repeat, each after a brief run that
is not measured. The time of an epoch is the mean over the epochs of a run; min, median and max are
those of the repeats. The gap is the difference between the objective and the one that gaps are
measured from, relative to it. The time to the target is that on the training clock after the first
epoch whose gap is small enough. It includes the search for a learning rate and the start of the
workers, but not the evaluation. Workers measure their waiting and merging; computing is the rest of
an epoch, on average over the workers. "All / one" is the computing of all workers together over
that of one worker alone: above 1, workers slow each other down."""

PARTS = ("computing", "waiting", "merging", "start", "evaluation (not on the training clock)")

STYLE = """
:root { color-scheme: light dark; background: Canvas; color: CanvasText; }
body { max-width: 72rem; margin: 0 auto; padding: 1rem; font: 100%/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.2; margin: 1.5rem 0 .3rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; }
p { max-width: 46rem; margin: .3rem 0; }
.short, .note { border-left: .3rem solid #0072b2; padding-left: .8rem; }
.short { font-size: 1.15rem; }
.note { border-color: #c24a00; }
.do { font-style: italic; }
.plots { display: grid; gap: 1.5rem; margin-top: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); }
figure { margin: 0; min-width: 0; break-inside: avoid; }
figcaption, .legend { font-size: .9rem; opacity: .8; }
.legend { display: flex; flex-wrap: wrap; gap: 0 1rem; margin: 0; padding: 0; list-style: none; }
.sample { display: inline-block; width: 30px; height: 14px; vertical-align: middle; }
svg { width: 100%; max-width: 44rem; font-size: 13px; fill: none; }
text, .marker { fill: currentColor; }
.grid { stroke: #8886; }
.line { stroke: currentColor; stroke-width: 2; }
.span { stroke-width: 1; }
.marker { stroke: Canvas; stroke-width: .8; }
.point { fill: transparent; stroke: none; }
.bars { width: 100%; }
.bars td { width: 80%; padding-right: 3.5rem; text-align: left; }
i { display: inline-block; height: 1em; vertical-align: middle; print-color-adjust: exact; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; }
tr:first-child th { vertical-align: bottom; white-space: normal; }
th[scope=row] { text-align: left; font-weight: normal; }
@media print { body { max-width: none; padding: 0; } table { font-size: 8pt; } }
"""


def page(report: Report) -> str:
    study, look = report.study, report.study.look
    title = f"How training scales: {escape(look.name)}"
    versions = ", ".join(f"{name} {version}" for name, version in study.header["versions"].items())
    body = [
        f"<h1>{title}</h1>",
        paragraph(f"In short: {report.short}", "short"),
        *(paragraph(f"Note: {note}", "note") for note in report.notes),
        '<div class="plots">',
    ]
    for plot, text in PLOTS.items():
        drawn = plot(study, report.summaries)
        body.append(f"<figure>{drawn}<figcaption>{escape(text)}</figcaption></figure>")
    body += [
        "</div>",
        "<h2>How fast</h2>",
        _table(report, SPEED),
        "<h2>Where the time goes</h2>",
        _table(report, SPLIT),
        f"<p>As CSV: {_download('tables.csv', _tables_csv(report))}, "
        f"{_download('curves.csv', _curves_csv(report))}</p>",
        "<h2>What bounds it</h2>",
        *map(paragraph, report.why),
    ]
    for finding in report.findings:
        body += [f"<h3>{escape(finding.title)}</h3>", paragraph(finding.measured)]
        body += [paragraph(finding.means), paragraph(finding.do, "do")]
    body += [
        "<h2>The data</h2>",
        *map(paragraph, (look.shape, look.sharing, look.meaning)),
        "<h2>How it was measured</h2>",
        *map(paragraph, (HOW, *report.about, f"{versions}; started {study.header['started']}")),
    ]
    return document(title, body)


def document(title: str, body: Iterable[str]) -> str:
    """A page with this title and these pieces, all of them HTML, in the style of the study."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def paragraph(text: str, kind: str = "plain") -> str:
    """Text, as HTML."""
    return f'<p class="{kind}">{escape(text)}</p>'


def _table(report: Report, columns: Columns) -> str:
    # The page does not break a word that the terminal breaks
    heads = [head.replace("-|", "").replace("|", " ") for head in columns]
    rows = [[cell(report.study, one) for cell in columns.values()] for one in report.summaries]
    return table(heads, rows)


def _tables_csv(report: Report) -> list[list[str]]:
    """Both tables: their cells as they are shown, a line for each configuration."""
    columns = SPEED | dict(list(SPLIT.items())[1:])
    heads = [head.replace("-|", "").replace("|", " ").strip() for head in columns]
    lines = [[cell(report.study, one) for cell in columns.values()] for one in report.summaries]
    return [["configuration", *heads[1:]], *lines]


def _curves_csv(report: Report) -> list[list[str]]:
    """What the plots of gaps show."""
    lines = [["configuration", "epoch", "seconds", "objective", "gap"]]
    for one in report.summaries:
        for epoch, found in enumerate(zip(one.times, one.objectives, one.gaps, strict=True), 1):
            lines.append([one.name, str(epoch), *(f"{number:.9g}" for number in found)])
    return lines


def _download(name: str, lines: list[list[str]]) -> str:
    """A link to a file that is within the page."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return f'<a download="{name}" href="data:text/csv,{quote(text.getvalue())}">{name}</a>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that scrolls sideways where the page is too narrow; names are in its first column."""
    lines = ["".join(f'<th scope="col">{escape(head)}</th>' for head in heads)]
    for name, *cells in rows:
        numbers = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f'<th scope="row">{escape(name)}</th>{numbers}')
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f'<div class="scroll" tabindex="0"><table>{body}</table></div>'


def speed_up(study: Study, summaries: Summaries) -> str:
    """Of an epoch against workers, a line for each strategy."""
    counts = sorted({one.configuration.workers for one in summaries})
    lines = [Line("ideal", [(count, count) for count in counts], dash=1)]
    for strategy in study.plan.strategies:
        points, spans = [(1, 1.0)], []
        for one in summaries:
            if one.configuration.strategy == strategy:
                workers, base = one.configuration.workers, one.base.epoch.median
                points.append((workers, one.speed_up))
                spans.append((workers, base / one.epoch.greatest, base / one.epoch.least))
        lines.append(Line(strategy, sorted(points), *_look(study, strategy), spans=spans))
    margin = max(0.25, 0.05 * (counts[-1] - counts[0]))
    x = Axis("workers", counts[0] - margin, counts[-1] + margin, counts)
    tops = [top for line in lines for _, _, top in line.spans]
    y = linear("speed-up (times one worker)", [*counts, *tops])
    return line_plot("Speed-up of an epoch", lines, x, y)


def gaps_by_time(study: Study, summaries: Summaries) -> str:
    return _gaps(study, summaries, "training time (s)", [one.times for one in summaries])


def gaps_by_epoch(study: Study, summaries: Summaries) -> str:
    epochs = [[number + 1.0 for number in range(len(one.gaps))] for one in summaries]
    return _gaps(study, summaries, "epochs", epochs, least_step=1)


def time_split(study: Study, summaries: Summaries) -> str:
    """The parts of the median run of each configuration."""
    rows = {}
    for one in summaries:
        epochs = (one.training - one.startup) / one.split.epoch
        rows[one.name] = [*(epochs * part for part in one.split), one.startup, one.evaluation]
    return bars(rows, PARTS)


def _gaps(
    study: Study, summaries: Summaries, title: str, places: list[list[float]], least_step: float = 0
) -> str:
    target = study.plan.target
    x = linear(title, [along[-1] for along in places], least_step)
    y = logarithmic("gap", [target, *(gap for one in summaries for gap in one.gaps)])
    lines = [Line(f"target {target:g}", [(x.least, target), (x.most, target)], dash=2)]
    for one, at in zip(summaries, places, strict=True):
        points = list(zip(at, one.gaps, strict=True))
        lines.append(Line(one.name, points, *_look(study, *one.configuration)))
    return line_plot(f"Gap of the objective against {title}", lines, x, y)


def _look(study: Study, strategy: str | None, workers: int = 1) -> tuple[str, int, int]:
    """Color and marker stand for the strategy, dashes for the number of workers."""
    if strategy is None:
        return "currentColor", 0, 0
    number, counts = study.plan.strategies.index(strategy), [1, *study.plan.workers]
    return COLORS[number % len(COLORS)], number + 1, counts.index(workers)


PLOTS = {
    speed_up: "Speed-up of an epoch, by medians. The vertical strokes span the repeats.",
    gaps_by_time: "Gap against the training clock. On the lower edge the gap is 0.",
    gaps_by_epoch: "Gap against epochs. Above the line of one worker, updates were lost or "
    "came from outdated weights.",
    time_split: "Where the time of the median run goes, on average over its workers.",
}
