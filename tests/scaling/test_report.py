"""What a study is shown as: text, a page that needs nothing else, JSON lines."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from urllib.parse import unquote

import pytest

from hogwild.scaling.page import page
from hogwild.scaling.record import lines
from hogwild.scaling.report import Report
from hogwild.scaling.terminal import shown
from tests.scaling.made_up import LOOK, run, study

NAMES = ["auto", "hogwild", "combine", "ordered", "roundrobin"]


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


def words_of(made: str) -> str:
    """All text of a page, which must be well-formed."""
    return "".join(ET.fromstring(made).itertext())


def test_the_page_needs_nothing_else_and_has_a_style_for_all_that_is_drawn(report: Report) -> None:
    made = page(report)
    within = re.sub(r'href="data:text/csv,[^"]*"', "", made)
    assert not re.search(r"https?:|//|@import|src=|href=|url\(|<script|<link|<img", within)
    assert '<meta name="viewport"' in made
    assert "color-scheme: light dark" in made
    style, body = made.split("</style>")
    classes = set(re.findall(r'class="(\w+)"', body)) - {"plain"}
    assert classes == set(re.findall(r"\.([a-z]+)", style))


def test_the_page_shows_everything(report: Report) -> None:
    made = page(report)
    words = words_of(made)
    for one in report.summaries:
        assert words.count(one.name) >= 5  # in three figures and two tables
    assert made.count("<figure>") == 4
    said = [report.short, LOOK.meaning, "abacus", "min ms", "efficiency", *report.why]
    said += [text for finding in report.findings for text in finding]
    assert [text for text in said if text not in words] == []
    notes = [words.index(note) for note in report.notes]
    assert 0 < min(notes) <= max(notes) < words.index("Speed-up of an epoch")


def test_the_page_has_its_numbers_as_csv(report: Report) -> None:
    found = re.findall(r'<a download="(\w+).csv" href="data:text/csv,([^"]*)"', page(report))
    files = {name: list(csv.DictReader(io.StringIO(unquote(text)))) for name, text in found}
    assert [row["configuration"] for row in files["tables"]] == [o.name for o in report.summaries]
    assert files["tables"][0]["epoch median"] == "100.00"
    curves = [row for row in files["curves"] if row["configuration"] == "one worker"]
    assert [(row["epoch"], float(row["objective"])) for row in curves][:2] == [("1", 2), ("2", 1.1)]


def test_the_page_escapes_what_comes_from_outside() -> None:
    name = '<script>alert("&")</script>'
    look = replace(LOOK, name=name, sharing=name)
    made = page(Report.of(study(run(None, 1), run("hogwild", 2, epoch=0.2), look=look)))
    assert "<script" not in made
    assert words_of(made).count(name) == 4  # two titles, a finding, the data


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
