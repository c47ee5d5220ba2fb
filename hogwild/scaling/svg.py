"""Line plots as SVG, and stacked bars, each with a legend. All text is escaped.

Lines differ in color and in marker or dashes, parts of bars in lightness. Colors of lines have a
contrast of 3 or more on white and on black.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import combinations
from typing import NamedTuple

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 66, 20, 12, 46  # between the edges of the picture and the axes
SAME = 2.0  # distance of points at which two lines look like one
DECADES = 8  # most powers of ten on a logarithmic axis

COLORS = ("#0072b2", "#c24a00", "#009e73", "#c8609a", "#a87400", "#3d8fd1", "#767676", "#a05ac8")
PARTS = ("#0072b2", "#f0c040", "#8b2c5a", "#a0a0a0", "#e4e4e4")  # of bars
DASHES = ("none", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 4")
MARKERS = (  # around (0, 0)
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",  # disc
    "M-3.6 -3.6h7.2v7.2h-7.2z",  # square
    "M0 -4.8L4.6 3.4H-4.6z",  # triangle
    "M0 -5L5 0L0 5L-5 0z",  # diamond
    "M0 4.8L4.6 -3.4H-4.6z",  # triangle, pointing down
)

Point = tuple[float, float]


class Axis(NamedTuple):
    """A range of numbers along a line; numbers outside the range are drawn at its ends."""

    title: str
    least: float
    most: float
    ticks: Sequence[float]
    log: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a number lies, from 0 to 1."""
        value = min(max(value, self.least), self.most)
        if self.log:
            return math.log(value / self.least) / math.log(self.most / self.least)
        return (value - self.least) / (self.most - self.least)


class Line(NamedTuple):
    """A line: its points, its look, and spans (place, least, greatest) around some points."""

    name: str
    points: Sequence[Point]
    color: str = "currentColor"
    marker: int | None = None
    dash: int = 0
    spans: Sequence[tuple[float, float, float]] = ()


def linear(title: str, values: Iterable[float], least_step: float = 0.0) -> Axis:
    """From 0 to a round number, with about 5 ticks."""
    most = max(values) or 1.0
    return _with_steps(title, 0.0, most, max(_round_step(most), least_step))


def around(title: str, values: Iterable[float]) -> Axis:
    """From a round number below all values to one above them, with about 5 ticks."""
    some = list(values)
    return _with_steps(title, min(some), max(some), _round_step(max(some) - min(some) or 1.0))


def _round_step(length: float) -> float:
    power = 10.0 ** math.floor(math.log10(length / 5))
    return next(power * factor for factor in (1, 2, 5, 10) if 5 * power * factor >= 0.999 * length)


def _with_steps(title: str, least: float, most: float, step: float) -> Axis:
    first, last = math.floor(least / step + 0.001), math.ceil(most / step - 0.001)
    ticks = [step * number for number in range(first, last + 1)]
    return Axis(title, ticks[0], ticks[-1], ticks)


def logarithmic(title: str, values: Iterable[float]) -> Axis:
    """Powers of ten around all values above 0, but not too far below the greatest."""
    logs = [math.log10(value) for value in values if value > 0]
    top = math.ceil(max(logs) - 1e-9)
    bottom = min(top - 1, max(top - DECADES, math.floor(min(logs) + 1e-9)))
    ticks = [10.0**power for power in range(bottom, top + 1)]
    return Axis(title, ticks[0], ticks[-1], ticks, log=True)


def line_plot(title: str, lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """Lines through points on two axes."""
    drawn, places_of = [_axes(x, y)], {}
    for line in lines:
        places = places_of[line.name] = [(across(x, a), down(y, b)) for a, b in line.points]
        spans = "".join(
            f"M{across(x, at):.1f} {down(y, least):.1f}V{down(y, greatest):.1f}"
            for at, least, greatest in line.spans
        )
        values = [f"{x.title} {a:.4g}, {y.title} {b:.4g}" for a, b in line.points]
        drawn.append(_line(line, places, places, spans, values))
    under = _covered(places_of)
    samples = {
        line.name
        + under.get(line.name, ""): f'<svg viewBox="0 0 30 14" class="sample" aria-hidden="true">'
        f"{_line(line, [(0, 7), (30, 7)], [(15, 7)])}</svg>"
        for line in lines
    }
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(drawn)}</svg>{_legend(samples)}"
    )


def _covered(places: Mapping[str, Sequence[Point]]) -> dict[str, str]:
    """Words for each line that lies on an earlier line along their common length."""
    found: dict[str, str] = {}
    for (one, some), (other, more) in combinations(places.items(), 2):
        both = list(zip(some, more, strict=False))
        if len(both) > 1 and all(math.dist(a, b) <= SAME for a, b in both):
            found.setdefault(other, f" (on {one})")
    return found


def bars(rows: Mapping[str, Sequence[float]], parts: Sequence[str]) -> str:
    """Stacked bars of seconds, each with its sum, in a table."""
    longest = max(map(sum, rows.values()))
    drawn = []
    for name, sizes in rows.items():
        boxes = (
            f'<i style="width:{90 * size / longest:.2f}%;background:{color}" '
            f'title="{part}: {size:.4g} s"></i>'
            for size, part, color in zip(sizes, parts, PARTS, strict=True)
        )
        bar = f"{''.join(boxes)} {sum(sizes):.3g} s"
        drawn.append(f'<tr><th scope="row">{escape(name)}</th><td>{bar}</td></tr>')
    samples = {
        part: f'<i class="sample" style="background:{color}"></i>'
        for part, color in zip(parts, PARTS, strict=True)
    }
    return f'<table class="bars">{"".join(drawn)}</table>{_legend(samples)}'


def across(x: Axis, value: float) -> float:
    """Where a number lies, from the left."""
    return LEFT + x.share(value) * (WIDTH - RIGHT - LEFT)


def down(y: Axis, value: float) -> float:
    """Where a number lies, from the top."""
    return HEIGHT - BOTTOM - y.share(value) * (HEIGHT - BOTTOM - TOP)


def _line(
    line: Line,
    places: Sequence[Point],
    marked: Sequence[Point],
    spans: str = "",
    values: Sequence[str] = (),
) -> str:
    """A line with its markers. A point shows its values under the pointer."""
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    markers = [
        f'<path class="marker" transform="translate({a:.1f} {b:.1f})" '
        f'd="{MARKERS[line.marker % len(MARKERS)]}"/>'
        for a, b in marked
        if line.marker is not None
    ]
    shown = [
        f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="6">'
        f"<title>{escape(f'{line.name}: {text}')}</title></circle>"
        for (a, b), text in zip(places, values, strict=False)
    ]
    dashes = DASHES[line.dash % len(DASHES)]
    return (
        f'<g class="line" style="color:{line.color}"><title>{escape(line.name)}</title>'
        f'<polyline points="{points}" stroke-dasharray="{dashes}"/>'
        f'<path class="span" d="{spans}"/>{"".join(markers)}{"".join(shown)}</g>'
    )


def _axes(x: Axis, y: Axis) -> str:
    foot, middle = HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2
    title = _text(13, middle, y.title, "middle")
    drawn = [f'<g transform="rotate(-90 13 {middle})">{title}</g>']
    drawn.append(_text((LEFT + WIDTH - RIGHT) / 2, foot + 36, x.title, "middle"))
    for tick in x.ticks:
        place = across(x, tick)
        drawn.append(f'<path class="grid" d="M{place:.1f} {TOP}V{foot}"/>')
        drawn.append(_text(place, foot + 16, f"{tick:g}", "middle"))
    for tick in y.ticks:
        place = down(y, tick)
        drawn.append(f'<path class="grid" d="M{LEFT} {place:.1f}H{WIDTH - RIGHT}"/>')
        drawn.append(_text(LEFT - 6, place + 4.5, f"{tick:g}", "end"))
    return "".join(drawn)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(samples: Mapping[str, str]) -> str:
    entries = (f"<li>{sample} {escape(name)}</li>" for name, sample in samples.items())
    return f'<ul class="legend">{"".join(entries)}</ul>'
