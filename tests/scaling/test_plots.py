"""Where plots put their points, and what axes have for ticks."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from hogwild.scaling import axes, charts
from hogwild.scaling.plots import HEIGHT, Bar, Line, across, bar_plot, down, line_plot
from hogwild.scaling.summary import summaries
from tests.scaling.made_up import run, study

TWO = study(
    run(None, 1, epoch=0.1, objectives=(2.0, 1.1, 1.01, 1.001, 1.0)),
    run("combine", 2, epoch=0.0625, waiting=0.01, objectives=(2.0, 1.1, 1.01, 1.001, 1.001)),
    run("hogwild", 2, epoch=0.2, objectives=(2.0, 1.5, 1.2, 1.1, 1.1)),
)


def groups(svg: str, kind: str) -> dict[str, ET.Element]:
    """Parts of a picture by their titles."""
    root = ET.fromstring(svg)
    found = [part for part in root.iter("g") if kind in (part.get("class") or "")]
    return {part.findtext("title") or "": part for part in found if part.find("title") is not None}


def points(part: ET.Element) -> list[tuple[float, float]]:
    """Of a line."""
    stroke = next(path for path in part.iter("path") if path.get("class") == "stroke")
    pairs = re.findall(r"([\d.]+) ([\d.]+)", stroke.get("d") or "")
    return [(float(x), float(y)) for x, y in pairs]


def test_linear_axes_end_at_round_numbers() -> None:
    axis = axes.linear("x", [0.3, 4.2])
    assert axis.ticks == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    assert [axis.label(tick) for tick in axis.ticks] == ["0", "1", "2", "3", "4", "5"]
    assert axes.linear("x", [0.017]).ticks == pytest.approx((0.0, 0.005, 0.01, 0.015, 0.02))
    assert axes.linear("x", []).ticks[-1] > 0
    assert axes.linear("x", [0.0]).most > 0


def test_logarithmic_axes_have_decades() -> None:
    axis = axes.logarithmic("x", [0.3, 0.002, 0.0])
    assert axis.ticks == pytest.approx((0.001, 0.01, 0.1, 1.0))
    assert [axis.label(tick) for tick in axis.ticks] == ["0.001", "0.01", "0.1", "1"]
    assert axis.share(0.01) - axis.share(0.001) == pytest.approx(axis.share(1) - axis.share(0.1))
    assert axis.share(0.0) == 0.0  # what is beyond the end lies at the end
    assert len(axes.logarithmic("x", [1.0, 1e-30]).ticks) <= 10
    assert len(axes.logarithmic("x", [1.0]).ticks) >= 2
    assert axes.logarithmic("x", []).share(0.5) > 0


def test_axes_of_whole_numbers_have_no_ticks_between() -> None:
    assert axes.whole("workers", [1, 4, 2, 4]).ticks == (1.0, 2.0, 4.0)
    assert axes.counts("epochs", 4).ticks == (1.0, 2.0, 3.0, 4.0)
    assert axes.counts("epochs", 20).ticks == (1.0, 5.0, 10.0, 15.0, 20.0)
    assert axes.counts("epochs", 1).share(1.0) == 0.0


def test_points_lie_where_their_numbers_say() -> None:
    x, y = axes.linear("x", [10.0]), axes.linear("y", [4.0])
    svg = line_plot("plot", [Line("a line", [(0.0, 0.0), (5.0, 2.0), (10.0, 4.0)], 0)], x, y)
    (first, middle, last) = points(groups(svg, "line")["a line"])
    assert middle[0] == pytest.approx((first[0] + last[0]) / 2, abs=0.1)
    assert middle[1] == pytest.approx((first[1] + last[1]) / 2, abs=0.1)
    assert last[0] > first[0]
    assert last[1] < first[1] < HEIGHT  # pictures count from the top


def test_the_ideal_line_is_as_many_times_as_fast_as_there_are_workers() -> None:
    lines = groups(charts.speed_up(TWO, summaries(TWO)), "line")
    assert set(lines) == {"ideal", "combine", "hogwild"}
    (one, two), (same, combine) = points(lines["ideal"]), points(lines["combine"])
    assert same == one
    assert combine[0] == two[0]
    rise = one[1] - two[1]  # of 1, from 1 to 2 times
    assert one[1] - combine[1] == pytest.approx(rise * (0.1 / 0.0625 - 1), abs=0.1)
    assert points(lines["hogwild"])[1][1] > one[1]  # slower than one worker


def test_gaps_go_down_by_equal_steps_for_equal_factors() -> None:
    lines = groups(charts.gaps_by_epoch(TWO, summaries(TWO)), "line")
    one = points(lines["one worker"])
    steps = [after[1] - before[1] for before, after in pairwise(one)]
    assert steps[:3] == pytest.approx([steps[0]] * 3, abs=0.2)
    across_by = [after[0] - before[0] for before, after in pairwise(one)]
    assert across_by == pytest.approx([across_by[0]] * 4, abs=0.2)
    target = points(lines["target 0.001"])
    assert target[0][1] == target[1][1] == pytest.approx(one[3][1], abs=0.2)


def test_gaps_by_time_end_where_training_ends() -> None:
    lines = groups(charts.gaps_by_time(TWO, summaries(TWO)), "line")
    hogwild, one = points(lines["hogwild x 2"]), points(lines["one worker"])
    assert (hogwild[-1][0] - hogwild[0][0]) == pytest.approx(2 * (one[-1][0] - one[0][0]), abs=0.3)


def test_bars_are_as_long_as_their_parts_together() -> None:
    x = axes.linear("s", [4.0])
    bars = [Bar("a", [1.0, 3.0]), Bar("b", [2.0, 0.0], mark=1.0)]
    root = ET.fromstring(bar_plot("bars", bars, ["first", "second"], x, "a mark"))
    boxes = [box for box in root.iter("rect") if (box.get("class") or "").startswith("part")][:4]
    widths = [float(box.get("width") or 0) for box in boxes]
    assert widths == pytest.approx([widths[0], 3 * widths[0], 2 * widths[0], 0.0], abs=0.2)
    assert float(boxes[1].get("x") or 0) == pytest.approx(
        float(boxes[0].get("x") or 0) + widths[0], abs=0.2
    )


def test_every_line_differs_from_every_other_by_more_than_its_colour() -> None:
    runs = [run(None, 1)]
    names = ["auto", "hogwild", "combine", "ordered", "strata", "locked", "roundrobin"]
    names += ["averaged", "mixed", "minibatch"]
    runs += [run(name, count) for name in names for count in (2, 4)]
    svg = charts.gaps_by_epoch(study(*runs), summaries(study(*runs)))
    looks = []
    for line in groups(svg, "line").values():
        stroke, *markers = line.iter("path")
        marker = markers[0].get("d") if markers else None
        looks.append((line.get("class"), stroke.get("stroke-dasharray"), marker))
    assert len(set(looks)) == len(looks) == 22
    shapes = [(dash, marker) for colour, dash, marker in looks if colour == "line c0"]
    assert len(set(shapes)) == len(shapes)


def test_pictures_say_what_they_are() -> None:
    svg = charts.split(TWO, summaries(TWO))
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.findtext("title")
    assert root.get("width") == "100%"
    assert root.get("viewBox")
    words = [text.text for text in root.iter("text")]
    assert "seconds of the median run" in words
    assert "waiting" in words


def test_places_are_within_the_picture() -> None:
    x, y = axes.linear("x", [1.0]), axes.logarithmic("y", [1e-3, 1.0])
    assert 0 < across(x, -5.0) < across(x, 5.0) < 460
    assert 0 < down(y, 100.0) < down(y, 0.0) < HEIGHT
