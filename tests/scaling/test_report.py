"""What a study is shown as: text, a page that needs nothing else, JSON lines."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hogwild import OptionError
from hogwild.scaling.page import page
from hogwild.scaling.record import check_outputs, lines, write
from hogwild.scaling.report import Report
from hogwild.scaling.terminal import shown
from tests.scaling.made_up import LOOK, run, study

NAMES = ["auto", "hogwild", "combine", "ordered", "roundrobin"]
EMPTY = {"meta", "br", "link", "img", "input"}


@pytest.fixture(scope="module")
def report() -> Report:
    """Of five strategies with two numbers of workers each, with repeats and a note."""
    slow = {"epoch": 0.07, "waiting": 0.012, "merging": 0.03, "notes": ("the <rate> was large",)}
    runs = [run(None, 1, repeat=n) for n in range(2)]
    runs += [
        run(name, count, repeat=n, ran="combine" if name == "auto" else None, **slow)
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
        self.words = ""
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
        self.words += text


def test_the_page_is_well_formed_and_needs_nothing_else(report: Report) -> None:
    made = page(report)
    checked = Checked(made)
    assert checked.open == checked.loaded == []
    assert not re.search(r"https?:|//|@import|src=|url\(", made)
    assert made.startswith("<!doctype html>")
    assert '<meta name="viewport"' in made
    assert "color-scheme: light dark" in made
    # Every class that is drawn has a style, and no other
    style, body = made.split("</style>")
    classes = set(re.findall(r'class="(\w+)"', body)) - {"plain"}
    assert classes == set(re.findall(r"\.([a-z]+)", style))


def test_the_page_shows_everything(report: Report) -> None:
    made = page(report)
    words = Checked(made).words
    for one in report.summaries:
        assert words.count(one.name) >= 5  # in three figures and two tables
    assert made.count("<figure>") == 4
    said = [report.short, LOOK.meaning, "abacus", *report.why]
    said += [text for finding in report.findings for text in finding]
    assert [text for text in said if text not in words] == []
    notes = [words.index(note) for note in report.notes]
    assert 0 < min(notes) <= max(notes) < words.index("Speed-up of an epoch")
    assert "min ms" in words  # heads are in one line
    assert "efficiency" in words


def test_the_page_escapes_what_comes_from_outside() -> None:
    name = '<script>alert("&")</script>'
    look = replace(LOOK, name=name, sharing=name)
    made = page(Report.of(study(run(None, 1), run("hogwild", 2, epoch=0.2), look=look)))
    checked = Checked(made)
    assert checked.loaded == []
    assert "<script" not in made
    assert name in checked.words


def test_the_text_fits_and_begins_with_the_notes(report: Report) -> None:
    said = shown(report)
    assert max(map(len, said.splitlines())) <= 100
    flat = " ".join(said.split())
    assert flat.index("only 2 cores may be used") < flat.index("min ms")
    assert "the <rate> was large" in flat
    assert [f.title for f in report.findings if f.measured not in flat] == []
    assert said.split("\n\n")[-1].startswith("In short: ")
    rows = [line for line in said.splitlines() if line.startswith("auto x 4 (combine) ")]
    assert rows[0].split()[4:10] == ["70.00", "70.00", "70.00", "1.43", "36", "%"]
    assert rows[1].split()[4:10] == ["17", "43", "0.300", "0.020", "0.040", "1.12"]


def test_the_record_is_lines_of_json(report: Report) -> None:
    rows = [json.loads(json.dumps(line, allow_nan=False)) for line in lines(report)]
    kinds = [row["kind"] for row in rows]
    assert kinds == ["header"] + ["run"] * 22 + ["summary"] * 11 + ["findings"]
    header, first, summary, last = rows[0], rows[1], rows[24], rows[-1]
    assert header["machine"]["cpu"] == "abacus"
    assert (header["study"]["strategies"], header["study"]["workers"]) == (NAMES, [1, 2, 4])
    assert header["probe"]["arithmetic"] == {"1": 100.0, "2": 200.0, "4": 400.0}
    assert [row["objective"] for row in first["trace"]] == [2.0, 1.1, 1.01, 1.0]
    assert summary["configuration"] == {"strategy": "auto", "workers": 2}
    assert summary["epoch"] == {"least": 0.07, "median": 0.07, "greatest": 0.07}
    assert (summary["name"], summary["cause"]) == ("auto x 2 (combine)", "merging")
    assert (last["short"], last["notes"]) == (report.short, report.notes)
    assert [finding["title"] for finding in last["findings"]] == [f.title for f in report.findings]


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
