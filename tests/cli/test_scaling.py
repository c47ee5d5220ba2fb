"""`hogwild scaling`, end to end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import hogwild
from experiments import scaling as experiment
from hogwild.cli import main
from hogwild.data.synthetic import rcv1
from hogwild.scaling import probe as probes
from hogwild.scaling import study as studies

BRIEF = ["--epochs", "2", "--repeat", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With rows, and with ratings."""
    folder = tmp_path_factory.mktemp("scaling")
    hogwild.save(rcv1(2000, 1000)[0], folder / "rows.svm")
    lines = [f"{user},{item},{(user * item) % 5 + 1}" for user in range(40) for item in range(30)]
    (folder / "ratings.csv").write_text("\n".join(lines))
    return folder


@pytest.fixture(autouse=True)
def quick(monkeypatch, folder):
    """The machine is measured in no time, and the folder is the current one."""
    monkeypatch.setattr(probes, "STREAMED", 16 << 20)
    monkeypatch.setattr(studies, "probe", lambda workers: probes.probe(workers, 0.001))
    monkeypatch.chdir(folder)


def wrong(capsys, *words: str) -> str:
    """What is said of a call that is refused as wrong usage."""
    assert main(["scaling", *words]) == 2
    return capsys.readouterr().err


def test_rows_from_the_file_to_the_page(folder: Path, capsys) -> None:
    words = ["--strategies", "combine,hogwild", "--workers", "1,2", "--out", "first"]
    assert main(["scaling", "rows.svm", *words, *BRIEF]) == 0
    said, problems = capsys.readouterr()
    assert problems == ""  # no terminal, no progress
    for text in (
        "one worker",
        "combine x 2",
        "hogwild x 2",
        "In short: ",
        "The most frequent column is in",
    ):
        assert text in said
    assert said.endswith("saved: first.jsonl and first.html\n")
    rows = [json.loads(line) for line in (folder / "first.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["header", *["run"] * 3, *["summary"] * 3, "findings"]
    assert all(len(row["trace"]) == 2 for row in rows[1:4])
    assert rows[0]["data"]["rows"] == 2000
    assert "hogwild x 2" in (folder / "first.html").read_text()


def test_ratings_too(capsys) -> None:
    words = ["--rank", "4", "--workers", "2", "--out", "second"]
    assert main(["scaling", "ratings.csv", *words, *BRIEF]) == 0
    said = capsys.readouterr().out
    assert "auto x 2 (strata)" in said
    assert "1,200 ratings of 30 items by 40 users" in said
    assert "rank 4" in said


def test_help_has_every_option_of_a_study_and_none_that_it_sets(capsys) -> None:
    assert main(["scaling", "--help"]) == 0
    said = capsys.readouterr().out
    for name in ("workers", "strategies", "target", "repeat", "epochs", "l2", "out"):
        assert f"--{name} " in said
    for name in ("tol", "strategy", "deterministic", "time-limit", "early-stopping"):
        assert f"\n  --{name} " not in said


def test_all_that_is_wrong_is_said_at_once_and_nothing_is_read(folder, capsys) -> None:
    words = "--workers 2,x --strategies stratum,hogwild --repeat 0 --target 0 --rank 3"
    said = wrong(capsys, "none.svm", *words.split())
    for text in (
        "--workers: expected a whole number, not 'x'",
        "--strategies: 'stratum' is not one of auto, hogwild",
        "--repeat: must be",
        "--target: must be a number above 0, not 0.0",
        "--rank: only for the task mf",
    ):
        assert text in said
    assert "invalid float value: 'far'" in wrong(capsys, "none.svm", "--target", "far")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("rows.svm --out none/x", "there is no folder"),
        ("page.html --out page", "--out: page.html is an input, too"),
        ("ratings.csv --task svm", "--task: ratings.csv holds ratings"),
        ("none.csv --task mf --index-base 1", "--index-base: not available for the task mf"),
        ("none.csv --task mf --index-base 0", "--index-base: not available for the task mf"),
        ("none.svm --columns a,b,c", "--columns: not available for the task svm"),
        ("none.svm --duplicates last", "--duplicates: not available for the task svm"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_read(folder, capsys, words, problem) -> None:
    (folder / "page.html").write_text("1 1:1\n-1 2:1\n")
    assert problem in wrong(capsys, *words.split())
    assert (folder / "page.html").read_text() == "1 1:1\n-1 2:1\n"


def test_a_file_that_is_not_there_is_a_failure(capsys) -> None:
    assert main(["scaling", "none.svm"]) == 1
    assert capsys.readouterr().err == "hogwild: none.svm: there is no such file\n"


def test_ctrl_c_leaves_nothing(folder: Path, start: Callable[..., "subprocess.Popen[str]"]) -> None:
    words = ["rows.svm", "--workers", "2", "--epochs", "1000000", "--out", "fifth"]
    process = start([sys.executable, "-m", "hogwild", "scaling", *words], cwd=folder)
    before = time.monotonic()
    while not psutil.Process(process.pid).children() and time.monotonic() - before < 10:
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    said, problems = process.communicate(timeout=10)
    assert process.returncode == 130, problems
    assert (said, problems) == ("", "hogwild: interrupted\n")
    assert not list(folder.glob("fifth*"))
    assert not list(folder.glob("*.part"))


def test_the_experiment_is_the_same_on_generated_data(folder, capsys, monkeypatch) -> None:
    monkeypatch.setattr(experiment.report, "OUT", folder / "out")
    words = "--shape dense --rows 1000 --workers 2 --strategies combine --epochs 2 --repeat 1"
    monkeypatch.setattr(sys, "argv", ["scaling.py", *words.split()])
    assert experiment.report.command(experiment.main) == 0
    said = capsys.readouterr().out
    assert "synthetic dense (seed 0): 1,000 rows, 200 columns" in said
    assert (folder / "out" / "scaling-dense.html").exists()
    monkeypatch.setattr(sys, "argv", ["scaling.py", "--strategies", "none"])
    assert experiment.report.command(experiment.main) == 2
