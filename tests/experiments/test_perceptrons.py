"""What experiments/perceptrons.py trains, prints and refuses."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import hogwild
from experiments import perceptrons, report
from hogwild.data.synthetic import rcv1

WAYS = 1 + len(perceptrons.WORKERS) * (1 + len(perceptrons.MERGED))


def ran(monkeypatch: pytest.MonkeyPatch, out: Path, *arguments: Any) -> int:
    """The exit code."""
    monkeypatch.setattr(sys, "argv", ["perceptrons.py", *map(str, arguments)])
    monkeypatch.setattr(report, "OUT", out)
    return report.command(perceptrons.main)


def test_every_way_is_trained_and_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("--rows", 400, "--epochs", 4, "--seeds", 2)
    assert ran(monkeypatch, tmp_path, *small) == 0
    head, *lines = map(json.loads, (tmp_path / "perceptrons.jsonl").read_text().splitlines())
    assert head["options"]["epochs"] == 4
    assert len(lines) == 2 * 2 * WAYS  # of each data set, plain and averaged
    assert all(len(line["errors"]) == 4 and max(line["errors"]) < 1 for line in lines)
    # Two workers that disagree are a tie, which the sum decides as their mean does
    by_way = {(x["data"], x["perceptrons"], x["name"], x["workers"]): x["errors"] for x in lines}
    for data in perceptrons.GENERATED:
        pair = (by_way[data, "plain", f"averaged, {merge}", 2] for merge in ("mean", "vote"))
        assert next(pair) == pytest.approx(next(pair), abs=0.01)
    shown = capsys.readouterr().out
    assert shown.count("test error, % after epoch  workers") == 4
    assert "rcv1, 320 rows, 80 to test on, mean of 2 seeds: averaged perceptrons" in shown


def test_a_file_is_learned_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = rcv1(300, 500)[0]
    hogwild.save(rows, tmp_path / "rows.npz")
    given = ("--data", tmp_path / "rows.npz", "--epochs", 1, "--seeds", 1)
    assert ran(monkeypatch, tmp_path, *given, "--test", tmp_path / "rows.npz") == 0
    _, first, *_ = map(json.loads, (tmp_path / "perceptrons.jsonl").read_text().splitlines())
    options = {"loss": "perceptron", "average": False, "workers": 1, "epochs": 1}
    assert first["errors"] == [hogwild.train(rows, **options).trace[-1]["train_error"]]


def test_wrong_usage_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hogwild.save(rcv1(90, 500)[0].labelled(list("abc") * 30), tmp_path / "three.npz")
    assert ran(monkeypatch, tmp_path, "--data", tmp_path / "three.npz") == 2
    assert "votes are between two classes" in capsys.readouterr().err
    assert ran(monkeypatch, tmp_path, "--data", tmp_path / "none.npz") == 1
    for words in (("--seeds", "0"), ("--test", "x"), ("--epochs", "many")):
        with pytest.raises(SystemExit) as ended:
            ran(monkeypatch, tmp_path, *words)
        assert ended.value.code == 2
