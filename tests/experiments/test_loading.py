"""What the table of reading measures, on little data."""

import json
from pathlib import Path

import pytest

from experiments import loading
from experiments.environments import Answer
from experiments.loading import Given, as_vw, by_tables
from hogwild import HogwildError, load


def test_text_is_written_read_and_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loading, "REPEATS", 1)
    quick = Answer([{"seconds": 0.001}])
    monkeypatch.setattr(loading.Environment, "missing", lambda _: None)
    monkeypatch.setattr(loading.Environment, "ask", lambda *_: quick)
    here = Path(loading.__file__).resolve().parent.parent
    lines = loading.svmlight(Given(tmp_path, 300, 0, here))
    beside = ["1 core", "scikit-learn", "baseline", "Vowpal Wabbit"]
    assert [line.beside for line in lines[1:]] == beside
    assert all(line.ours > 0 and line.least for line in lines[1:])
    assert lines[-1].other == 0.001
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "rows.vw"]
    assert "rows.svm: 0 MB" in capsys.readouterr().out


def test_a_vowpal_wabbit_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading.Environment, "ask", lambda *_: Answer([], "no such option"))
    with pytest.raises(HogwildError, match="vowpalwabbit failed: no such option"):
        loading.by_vw(tmp_path / "a.vw", tmp_path / "model")


def test_rows_as_vowpal_wabbit_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "a.svm"
    file.write_text("-1 3:0.5 7:1\n1\n")
    as_vw(file, tmp_path / "a.vw")
    assert (tmp_path / "a.vw").read_text() == "-1 | 3:0.5 7:1\n1\n"


def test_a_reader_that_reads_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"seconds": 2.0, "lines": 3, "last": [1.0, 2.0, 3.0]}]
    answer = Answer(json.loads(json.dumps([{"version": "1"}, *rows, rows[0] | {"seconds": 1.0}])))
    monkeypatch.setattr(loading.Environment, "ask", lambda *_: answer)
    assert by_tables("polars", tmp_path / "a.csv", 3, [1, 2, 3]) == 1.0
    for lines, last in ((4, [1, 2, 3]), (3, [1, 2, 4])):
        with pytest.raises(HogwildError, match="polars read something else"):
            by_tables("polars", tmp_path / "a.csv", lines, last)


def test_the_rows_have_as_many_digits_as_text_has(tmp_path: Path) -> None:
    rows = loading.tf_idf(100)
    loading.hogwild.save(rows, tmp_path / "a.svm")
    values = [
        word.split(":")[1] for word in (tmp_path / "a.svm").read_text().split() if ":" in word
    ]
    assert max(map(len, values)) <= len("0.") + loading.DECIMALS
    assert load(tmp_path / "a.svm").values.tobytes() == rows.values.tobytes()


def test_packed_files_are_read_with_one_core_and_with_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "REPEATS", 1)
    one, several = loading.packed(Given(tmp_path, 400, 0, None))
    assert one.measured.startswith("rows-0.svm.gz read")
    assert several.measured.startswith("4 such files read")
    assert not list(tmp_path.iterdir())
