"""Plots as SVG: lines with markers, and stacked bars. Colours are classes of the page's style.

Everything is told apart twice: lines by colour and by marker or dashes, parts of bars by shade and
by hatching. Pictures are as wide as their place; all text is escaped.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from hogwild.scaling.axes import Axis

WIDTH, HEIGHT = 460.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 66.0, 14.0, 12.0, 46.0  # between the picture's edge and the axes
FONT = 13.0
LETTER = 0.56  # of the font's size: the width of a letter, about
LEGEND_LINE = 20.0
SAMPLE = 30.0  # the width of a line's picture in the legend
GAP = 14.0

COLOURS = 8
INK = COLOURS  # the colour of text
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 4", "9 3 2 3 2 3")
HATCHES = ("none", "right", "left", "dots", "cross")

# Around (0, 0), about 4 in radius
MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",  # disc
    "M-3.6 -3.6h7.2v7.2h-7.2z",  # square
    "M0 -4.8L4.6 3.4H-4.6z",  # triangle
    "M0 -5L5 0L0 5L-5 0z",  # diamond
    "M0 4.8L4.6 -3.4H-4.6z",  # triangle, pointing down
    "M-5 -1.6h3.4v-3.4h3.2v3.4h3.4v3.2h-3.4v3.4h-3.2v-3.4h-3.4z",  # cross
    "M-5 -3.6L5 3.6V-3.6L-5 3.6z",  # bow tie
    "M-3.6 -5L3.6 5H-3.6L3.6 -5z",  # hourglass
)

Point = tuple[float, float]


class Line(NamedTuple):
    """A line of a plot, and what it looks like: a colour, and places in MARKERS and DASHES.

    Beside some points there may be a range: where it is, its least and its greatest.
    """

    name: str
    points: Sequence[Point]
    colour: int
    marker: int | None = 0
    dash: int = 0
    ranges: Sequence[tuple[float, float, float]] = ()


class Bar(NamedTuple):
    """A stacked bar: its parts, and a number that is marked beside it, if any."""

    name: str
    parts: Sequence[float]
    mark: float | None = None


def line_plot(title: str, lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """Lines through points, on two axes, with a legend below."""
    drawn = [_line(line, x, y) for line in lines]
    legend, height = _legend([(line.name, _sample(line)) for line in lines])
    body = [_horizontal_axis(x, HEIGHT), _vertical_axis(y), *drawn, legend]
    return _picture(title, body, HEIGHT + height)


def bar_plot(
    title: str, bars: Sequence[Bar], parts: Sequence[str], x: Axis, mark: str | None = None
) -> str:
    """Bars from left to right, one below the other, each under its name; with a legend below."""
    row, thick = 40.0, 16.0
    bottom = TOP + row * len(bars)
    body = [_horizontal_axis(x, bottom + BOTTOM, left=GAP)]
    for number, bar in enumerate(bars):
        body.append(_bar(bar, parts, x, TOP + row * number + 18.0, thick))
    samples = [(name, _swatch(number)) for number, name in enumerate(parts)]
    if mark:
        samples.append((mark, f'<path class="mark" d="M{SAMPLE / 2} -7v14"/>'))
    legend, height = _legend(samples, top=bottom + BOTTOM)
    return _picture(title, [*body, legend], bottom + BOTTOM + height, hatched=True)


def across(x: Axis, value: float, left: float = LEFT) -> float:
    """Where a number lies, from the left."""
    return left + x.share(value) * (WIDTH - RIGHT - left)


def down(y: Axis, value: float) -> float:
    """Where a number lies, from the top."""
    return HEIGHT - BOTTOM - y.share(value) * (HEIGHT - BOTTOM - TOP)


# Lines


def _line(line: Line, x: Axis, y: Axis) -> str:
    places = [(across(x, a), down(y, b)) for a, b in line.points]
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places) if places else ""
    markers = ""
    if line.marker is not None:
        markers = "".join(
            f'<path class="marker" transform="translate({a:.1f} {b:.1f})" '
            f'd="{MARKERS[line.marker % len(MARKERS)]}"/>'
            for a, b in places
        )
    return (
        f'<g class="line c{line.colour}"><title>{escape(line.name)}</title>'
        f'<path class="stroke" d="{path}"{_dashes(line)}/>{_ranges(line, x, y)}{markers}</g>'
    )


def _ranges(line: Line, x: Axis, y: Axis) -> str:
    spans = [(across(x, at), down(y, low), down(y, high)) for at, low, high in line.ranges]
    path = "".join(f"M{at:.1f} {low:.1f}V{high:.1f}" for at, low, high in spans)
    return f'<path class="range" d="{path}"/>' if path else ""


def _sample(line: Line) -> str:
    """A line's picture in the legend."""
    marker = ""
    if line.marker is not None:
        marker = (
            f'<path class="marker" transform="translate({SAMPLE / 2} 0)" '
            f'd="{MARKERS[line.marker % len(MARKERS)]}"/>'
        )
    stroke = f'<path class="stroke" d="M0 0h{SAMPLE}"{_dashes(line)}/>'
    return f'<g class="line c{line.colour}">{stroke}{marker}</g>'


def _dashes(line: Line) -> str:
    dashes = DASHES[line.dash % len(DASHES)]
    return f' stroke-dasharray="{dashes}"' if dashes else ""


# Bars


def _bar(bar: Bar, parts: Sequence[str], x: Axis, top: float, thick: float) -> str:
    drawn = [_text(GAP, top - 5.0, bar.name, "start")]
    begin = 0.0
    for number, (name, size) in enumerate(zip(parts, bar.parts, strict=True)):
        left, right = across(x, begin, GAP), across(x, begin + size, GAP)
        begin += size
        box = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{thick:.1f}"'
        told = f"<title>{escape(f'{bar.name}: {name} {size:.4g} s')}</title>"
        drawn.append(f'<g>{told}<rect class="part p{number}" {box}/>{_hatch(number, box)}</g>')
    if bar.mark is not None:
        place = across(x, bar.mark, GAP)
        drawn.append(f'<path class="mark" d="M{place:.1f} {top - 2.0:.1f}v{thick + 4.0:.1f}"/>')
    return "".join(drawn)


def _swatch(number: int) -> str:
    box = f'x="0" y="-6" width="{SAMPLE}" height="12"'
    return f'<rect class="part p{number}" {box}/>{_hatch(number, box)}'


def _hatch(number: int, box: str) -> str:
    name = HATCHES[number % len(HATCHES)]
    return "" if name == "none" else f'<rect {box} fill="url(#hatch-{name})"/>'


def _patterns() -> str:
    shapes = {
        "right": "M-1 7L7 -1",
        "left": "M-1 -1L7 7",
        "dots": "M2 3h2",
        "cross": "M3 0v6M0 3h6",
    }
    return "".join(
        f'<pattern id="hatch-{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path class="hatch" d="{path}"/></pattern>'
        for name, path in shapes.items()
    )


# Axes, legend, picture


def _horizontal_axis(x: Axis, bottom: float, left: float = LEFT) -> str:
    foot = bottom - BOTTOM
    drawn = [f'<path class="axis" d="M{left} {foot:.1f}H{WIDTH - RIGHT}"/>']
    for tick in x.ticks:
        place = across(x, tick, left)
        drawn.append(f'<path class="grid" d="M{place:.1f} {TOP}V{foot:.1f}"/>')
        anchor = "end" if place > WIDTH - RIGHT - 10 else "middle"
        drawn.append(_text(place, foot + 16.0, x.label(tick), anchor))
    drawn.append(_text((left + WIDTH - RIGHT) / 2, foot + 36.0, x.title, "middle"))
    return "".join(drawn)


def _vertical_axis(y: Axis) -> str:
    foot = HEIGHT - BOTTOM
    drawn = [f'<path class="axis" d="M{LEFT} {TOP}V{foot}"/>']
    for tick in y.ticks:
        place = down(y, tick)
        drawn.append(f'<path class="grid" d="M{LEFT} {place:.1f}H{WIDTH - RIGHT}"/>')
        drawn.append(_text(LEFT - 6.0, place + 4.5, y.label(tick), "end"))
    middle = (TOP + foot) / 2
    turned = f' transform="rotate(-90 {FONT:.0f} {middle:.1f})"'
    drawn.append(_text(FONT, middle, y.title, "middle", turned))
    return "".join(drawn)


def _legend(entries: Sequence[tuple[str, str]], top: float = HEIGHT) -> tuple[str, float]:
    """A sample and a name for each, in as many lines as they take; and how high that is."""
    drawn = []
    x, y = GAP, top + 6.0
    for name, sample in entries:
        width = SAMPLE + 6.0 + len(name) * FONT * LETTER + GAP
        if x + width > WIDTH and x > GAP:
            x, y = GAP, y + LEGEND_LINE
        drawn.append(f'<g transform="translate({x:.1f} {y:.1f})">{sample}</g>')
        drawn.append(_text(x + SAMPLE + 6.0, y + 4.5, name, "start"))
        x += width
    return "".join(drawn), y + LEGEND_LINE - top


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def _picture(title: str, body: Sequence[str], height: float, hatched: bool = False) -> str:
    patterns = f"<defs>{_patterns()}</defs>" if hatched else ""
    name = escape(title, quote=True)
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" '
        f'width="100%" role="img" aria-label="{name}" font-size="{FONT:.0f}">'
        f"<title>{name}</title>{patterns}{''.join(body)}</svg>"
    )
