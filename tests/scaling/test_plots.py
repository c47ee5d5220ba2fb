"""Where plots put their points, and what axes have for ticks."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from hogwild.scaling import page
from hogwild.scaling.summary import summaries
from hogwild.scaling.svg import bars, linear, logarithmic
from tests.scaling.made_up import run, study

FALLING = (2.0, 1.1, 1.01, 1.001)
TWO = study(
    run(None, 1, epoch=0.1, objectives=(*FALLING, 1.0)),
    run("combine", 2, epoch=0.0625, waiting=0.01, objectives=(*FALLING, 1.001)),
    run("hogwild", 2, epoch=0.2, objectives=(2.0, 1.5, 1.2, 1.1, 1.1)),
)


def drawn(plot, made=TWO) -> dict[str, ET.Element]:
    """The lines of a plot, by name."""
    figure = ET.fromstring(f"<figure>{plot(made, summaries(made))}</figure>")
    picture = figure.find("svg")
    lines = [part for part in picture.iter("g") if part.get("class") == "line"]
    return {line.findtext("title"): line for line in lines}


def points(line: ET.Element) -> list[tuple[float, float]]:
    pairs = [pair.split(",") for pair in line.find("polyline").get("points").split()]
    return [(float(x), float(y)) for x, y in pairs]


def test_linear_axes_end_at_round_numbers_and_logarithmic_ones_have_decades() -> None:
    assert linear("x", [0.3, 4.2]).ticks == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert linear("x", [0.017]).ticks == pytest.approx([0.0, 0.005, 0.01, 0.015, 0.02])
    assert linear("epochs", [3], least_step=1).ticks == [0, 1, 2, 3]
    assert linear("x", [0.0]).most > 0
    axis = logarithmic("x", [0.3, 0.002, 0.0])
    assert axis.ticks == pytest.approx([0.001, 0.01, 0.1, 1.0])
    assert axis.share(0.01) - axis.share(0.001) == pytest.approx(axis.share(1) - axis.share(0.1))
    assert axis.share(0.0) == 0.0  # what is beyond the end lies at the end
    assert len(logarithmic("x", [1.0, 1e-30]).ticks) <= 10
    assert len(logarithmic("x", [1.0]).ticks) >= 2


def test_the_ideal_line_is_as_many_times_as_fast_as_there_are_workers() -> None:
    lines = drawn(page.speed_up)
    assert set(lines) == {"ideal", "combine", "hogwild"}
    (one, two), (same, combine) = points(lines["ideal"]), points(lines["combine"])
    assert same == one
    assert combine[0] == two[0]
    rise = one[1] - two[1]  # of 1, from 1 to 2 times
    assert one[1] - combine[1] == pytest.approx(rise * (0.1 / 0.0625 - 1), abs=0.1)
    assert points(lines["hogwild"])[1][1] > one[1]  # slower than one worker


def test_points_show_their_values_and_lines_that_coincide_are_called_so() -> None:
    lines = drawn(page.speed_up)
    shown = [point.findtext("title") for point in lines["combine"].findall("circle")]
    assert shown[1] == "combine: workers 2, speed-up (times one worker) 1.6"
    assert " (on " not in page.gaps_by_epoch(TWO, summaries(TWO)).replace("(on one worker)", "", 1)
    same = study(
        run(None, 1), run("auto", 2, ran="hogwild", epoch=0.05), run("combine", 2, epoch=0.0501)
    )
    legend = page.speed_up(same, summaries(same)).split('<ul class="legend">')[1]
    assert "auto (on ideal)" in legend
    assert "combine (on ideal)" in legend


def test_strokes_span_the_repeats() -> None:
    repeats = [run("combine", 2, repeat=n, epoch=time) for n, time in enumerate((0.1, 0.05))]
    lines = drawn(page.speed_up, study(run(None, 1, epoch=0.1), *repeats))
    span = lines["combine"].find("path[@class='span']").get("d")
    x, low, high = map(float, re.findall(r"[\d.]+", span))
    (_, one), (at, two) = points(lines["ideal"])
    assert (x, low, high) == pytest.approx((at, one, two), abs=0.1)


def test_gaps_go_down_by_equal_steps_for_equal_factors() -> None:
    lines = drawn(page.gaps_by_epoch)
    one = points(lines["one worker"])
    steps = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(one)]
    assert [x for x, _ in steps] == pytest.approx([steps[0][0]] * 4, abs=0.2)
    assert [y for _, y in steps[:3]] == pytest.approx([steps[0][1]] * 3, abs=0.2)
    target = points(lines["target 0.001"])
    assert target[0][1] == target[1][1] == pytest.approx(one[3][1], abs=0.2)


def test_gaps_by_time_end_where_training_ends() -> None:
    lines = drawn(page.gaps_by_time)
    hogwild, one = points(lines["hogwild x 2"]), points(lines["one worker"])
    assert (hogwild[-1][0] - hogwild[0][0]) == pytest.approx(2 * (one[-1][0] - one[0][0]), abs=0.3)


def test_bars_are_as_long_as_their_parts_together() -> None:
    rows = {"a": [1.0, 3.0, 0.0, 0.0, 0.0], "b": [2.0, 0.0, 0.0, 0.0, 0.0]}
    made = bars(rows, ["v", "w", "x", "y", "z"])
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", made)]
    assert widths[:2] + widths[5:7] == pytest.approx([22.5, 67.5, 45.0, 0.0])
    assert "</i> 4 s<" in made


def test_every_line_differs_from_every_other_by_more_than_its_color() -> None:
    names = ["auto", "hogwild", "combine", "ordered", "strata", "locked", "roundrobin"]
    names += ["averaged", "mixed", "minibatch"]
    runs = [run(name, n, ran="hogwild") for name in names for n in (2, 4)]
    lines = drawn(page.gaps_by_epoch, study(run(None, 1), *runs))
    looks = []
    for line in lines.values():
        marker = line.find("path[@class='marker']")
        dashes = line.find("polyline").get("stroke-dasharray")
        looks.append((line.get("style"), dashes, None if marker is None else marker.get("d")))
    assert len(set(looks)) == len(looks) == 22
    shapes = [shape for color, *shape in looks if color == looks[2][0]]
    assert len(set(map(tuple, shapes))) == len(shapes) == 4
