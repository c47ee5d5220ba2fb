"""What a study is shown as: text, a page that needs nothing else, JSON lines."""

import json
import re
from html.parser import HTMLParser

import pytest

from hogwild import HogwildError, OptionError
from hogwild.scaling.look import Look
from hogwild.scaling.page import page
from hogwild.scaling.record import lines
from hogwild.scaling.report import Report, check_outputs, write
from hogwild.scaling.style import LINES, PARTS
from hogwild.scaling.terminal import shown
from tests.scaling.made_up import LOOK, run, study

NAMES = ["auto", "hogwild", "combine", "ordered", "roundrobin"]
EMPTY = {"meta", "br", "link", "img", "input"}


@pytest.fixture(scope="module")
def report() -> Report:
    """Of five strategies with two numbers of workers each, with repeats and a note."""
    runs = [run(None, 1, repeat=n) for n in range(2)]
    runs += [
        run(
            name,
            count,
            repeat=n,
            ran="combine" if name == "auto" else None,
            epoch=0.07,
            waiting=0.02,
            merging=0.012,
            notes=("the <rate> was too large",),
        )
        for name in NAMES
        for count in (2, 4)
        for n in range(2)
    ]
    return Report.of(study(*runs, cores=2))


class Checked(HTMLParser):
    """Finds elements that are not closed in order, and what would be loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in EMPTY:
            self.open.append(tag)
        self.loaded += [name for name, _ in attributes if name in ("src", "href", "xlink:href")]
        self.loaded += [tag] if tag in ("script", "link", "iframe", "object", "img") else []

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        self.words.append(text)


def test_the_page_is_well_formed_and_needs_nothing_else(report: Report) -> None:
    made = page(report)
    checked = Checked(made)
    assert checked.open == []
    assert checked.loaded == []
    assert not re.search(r"https?:|//|@import|src=|url\((?!#)", made)
    assert set(re.findall(r"url\(#([\w-]+)\)", made)) <= set(re.findall(r'id="([\w-]+)"', made))
    assert made.startswith("<!doctype html>")
    assert '<meta name="viewport"' in made
    assert "prefers-color-scheme: dark" in made
    assert "@media print" in made


def test_the_page_shows_every_strategy_plot_and_table(report: Report) -> None:
    made = page(report)
    words = " ".join(Checked(made).words).replace("\N{NO-BREAK SPACE}", " ")
    for one in report.summaries:
        assert words.count(one.name) >= 4  # in the legends and in the tables
    assert made.count("<figure>") == made.count("<svg") == 4
    for text in (report.short, LOOK.meaning, *report.why):
        assert text in words
    for finding in report.findings:
        assert finding.title in words
        assert finding.measured in words
    assert "abacus" in words


def test_the_page_escapes_what_comes_from_outside() -> None:
    name = '<script>alert("&")</script>'
    look = Look(**(LOOK.__dict__ | {"name": name, "numbers": [(name, name)], "heat": name}))
    made = page(Report.of(study(run(None, 1), run("hogwild", 2, epoch=0.2), look=look)))
    checked = Checked(made)
    assert checked.loaded == []
    assert "<script" not in made
    assert name in "".join(checked.words).replace("\N{NO-BREAK SPACE}", " ")


def test_the_style_has_a_colour_for_everything_that_is_drawn(report: Report) -> None:
    made = page(report)
    drawn = set(re.findall(r'class="(?:line|part) ([cp]\d+)"', made))
    style = made[made.index("<style>") : made.index("</style>")]
    assert drawn
    assert all(re.search(rf"\.{name}[ ,]", style) for name in drawn)
    variables = set(re.findall(r"var\(--(\w+)\)", style))
    assert variables <= set(re.findall(r"--(\w+):", style))
    assert len(set(LINES)) == len(set(LINES.values())) == 8
    assert len(set(PARTS)) == 5


def test_the_text_fits_and_begins_with_the_notes(report: Report) -> None:
    said = shown(report)
    assert max(map(len, said.splitlines())) <= 100
    flat = " ".join(said.split())
    assert flat.index("2 cores may be used") < flat.index("ms an epoch")
    assert "the <rate> was too large" in flat
    assert "In short: " in said.split("\n\n")[-1]
    rows = [line for line in said.splitlines() if line.startswith("auto x 4 (combine) ")]
    assert rows[0].split()[4:7] == ["70.00", "70.00", "70.00"]
    assert rows[0].split()[7:10] == ["1.43", "1.43", "36"]


def test_the_record_is_lines_of_json(report: Report) -> None:
    rows = [json.loads(json.dumps(line, allow_nan=False)) for line in lines(report)]
    kinds = [row["kind"] for row in rows]
    assert kinds == ["header"] + ["run"] * 22 + ["summary"] * 11 + ["findings"]
    header, first = rows[0], rows[1]
    assert header["machine"]["cpu"] == "abacus"
    assert header["study"]["strategies"] == NAMES
    assert header["study"]["workers"] == [1, 2, 4]
    assert header["probes"][0]["arithmetic"] == {"1": 100.0, "2": 200.0, "4": 400.0}
    assert [row["objective"] for row in first["epochs"]] == [2.0, 1.1, 1.01, 1.0]
    summary = next(row for row in rows if row["kind"] == "summary" and row["asked"] == "auto")
    assert summary["epoch"] == {"least": 0.07, "median": 0.07, "greatest": 0.07}
    assert summary["split"]["waiting"] == pytest.approx(0.02)
    assert (summary["asked_workers"], summary["strategy"]) == (2, "combine")
    findings = rows[-1]
    assert findings["short"] == report.short
    assert {one["kind"] for one in findings["findings"]} >= {"oversubscribed", "waiting", "merging"}
    assert all(case["number"] is not None for one in findings["findings"] for case in one["cases"])


def test_both_files_are_written(report: Report, tmp_path) -> None:
    files = write(report, tmp_path / "out")
    assert files == [str(tmp_path / "out.jsonl"), str(tmp_path / "out.html")]
    assert (tmp_path / "out.html").read_text() == page(report)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 35


def test_outputs_are_refused_before_any_work(tmp_path) -> None:
    data = tmp_path / "x.html"
    data.write_text("1 1:1\n")
    with pytest.raises(OptionError, match="is an input, too"):
        check_outputs(tmp_path / "x", data)
    with pytest.raises(OptionError, match="there is no folder"):
        check_outputs(tmp_path / "none" / "x")
    check_outputs(tmp_path / "y", data)


def test_a_study_in_which_nothing_ended_says_why() -> None:
    failed = run("combine", 1, failure="the weights overflowed")
    with pytest.raises(HogwildError, match="the weights overflowed"):
        Report.of(study(failed, own_baseline=True))
