"""Learning curves of traces, and curves of scores, on pages; and what is refused."""

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve, roc_curve

import hogwild
from hogwild.cli import main
from hogwild.plots import class_curves, learning_curves

random = np.random.default_rng(0)
X = random.normal(size=(120, 5)).astype(np.float32).round(1)
NOISY = X[:, :3] + random.normal(size=(120, 3))
CLASSES = NOISY.argmax(axis=1) + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of a run with a proof and of one without, a model, and its rows."""
    folder = tmp_path_factory.mktemp("plots")
    rows = hogwild.Rows(X, CLASSES)
    hogwild.save(rows, folder / "rows.svm")
    hogwild.save(hogwild.Rows(X, NOISY[:, 0]), folder / "numbers.svm")
    options = {"task": "logistic", "epochs": 6, "tol": 0}
    known = {"trace": folder / "newton.jsonl", "model": folder / "m.hog"}
    hogwild.train(rows, solver="newton", **known, **options)
    hogwild.train(rows, solver="sgd", test=rows, trace=folder / "sgd.jsonl", **options)
    hogwild.train(folder / "numbers.svm", task="regression", model=folder / "n.hog")
    return folder


def rows_of(path: Path) -> list[dict[str, object]]:
    rows = map(json.loads, path.read_text().splitlines())
    return [row for row in rows if row["kind"] == "epoch"]


def test_learning_curves_are_the_numbers_of_the_traces(folder: Path) -> None:
    paths = folder / "newton.jsonl", folder / "sgd.jsonl"
    newton, sgd = map(rows_of, paths)
    plots = {plot.y.title: plot for plot in learning_curves(paths, "epochs")}
    assert list(plots) == ["objective", "gap", "error (%)"]
    assert {line.name for line in plots["objective"].lines} == {"newton", "sgd"}
    (gap,) = plots["gap"].lines  # of the one that proves it
    assert gap.points == [(row["epoch"], row["gap"]) for row in newton if row["gap"] is not None]
    assert plots["gap"].y.log
    errors = {line.name: line for line in plots["error (%)"].lines}
    assert set(errors) == {"newton, train", "sgd, train", "sgd, test"}
    assert errors["sgd, test"].points == [(row["epoch"], 100 * row["test_error"]) for row in sgd]
    assert errors["sgd, test"].color == errors["sgd, train"].color != errors["newton, train"].color
    by_time = learning_curves(paths)[0].lines[1]
    assert by_time.points == [(row["seconds"], row["objective"]) for row in sgd]
    assert {line.name for line in learning_curves(paths[1:])[-1].lines} == {"train", "test"}


def test_a_page_has_a_plot_for_each_number(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert main(["plot", "newton.jsonl", "sgd.jsonl"]) == 0
    assert capsys.readouterr().out == "saved: curves.html\n"
    page = ET.fromstring(Path("curves.html").read_text().partition("\n")[2])
    figures = list(page.iter("figure"))
    assert [figure.findtext("figcaption").split()[0] for figure in figures] == (
        ["objective", "gap", "error"]
    )
    assert main(["evaluate", "m.hog", "rows.svm", "--plot", "roc.html"]) == 0
    assert len(re.findall("<figure>", Path("roc.html").read_text())) == 2


@pytest.mark.parametrize("kind", ["two", "classes", "labels"])
def test_curves_of_scores_are_those_of_scikit_learn(kind: str) -> None:
    y = {"two": CLASSES == 2, "classes": CLASSES, "labels": (NOISY > 0.5).astype(int)}[kind]
    weight = random.integers(0, 3, len(y)).astype(np.float32)
    rows = hogwild.Rows(X, y, sample_weight=weight)
    model = hogwild.train(rows, task="logistic").model
    (_, *roc), recall = (plot.lines for plot in class_curves(model, rows))
    scores = model.decision_function(X).reshape(len(X), -1)
    truths = y.reshape(len(X), -1) if kind != "classes" else CLASSES[:, None] == [1, 2, 3]
    assert len(roc) == len(recall) == scores.shape[1]
    for one, two, truth, score in zip(roc, recall, truths.T, scores.T, strict=True):
        false, true, _ = roc_curve(truth, score, sample_weight=weight, drop_intermediate=False)
        assert np.allclose(one.points, np.column_stack([false, true]))
        precision, found, _ = precision_recall_curve(truth, score, sample_weight=weight)
        theirs = np.column_stack([found, precision])[::-1][1:]  # theirs begins at precision 1
        assert np.allclose(two.points[1:], theirs[: len(two.points) - 1])


def test_many_classes_and_many_rows_leave_the_frequent_ones_and_some_points() -> None:
    y = random.geometric(0.2, 3_000)
    y[y > 12] = 1
    X = random.normal(size=(3_000, 3)).astype(np.float32)
    rows = hogwild.Rows(X, y)
    roc, recall = class_curves(hogwild.train(rows, task="logistic", epochs=1).model, rows)
    assert "8 of 12 classes" in roc.title
    assert [line.name for line in recall.lines] == list("12345678")
    assert all(len(line.points) < 300 for line in recall.lines)
    assert all(line.points[-1] == (1.0, 1.0) for line in roc.lines)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        ("plot sgd.jsonl --output c.gif", 2, "must end with .html, .png, .svg"),
        ("plot sgd.jsonl --output c.png", 1, 'pip install "hogwild[plot]"'),
        ("evaluate m.hog rows.svm --plot c.svg", 1, 'pip install "hogwild[plot]"'),
        ("plot none.jsonl", 1, "no such file"),
        ("plot rows.svm", 1, "no trace: name a file that train --trace wrote"),
        ("plot sgd.jsonl --output sgd.jsonl", 2, "an input"),
        ("plot empty.jsonl", 1, "no epoch was finished"),
        ("evaluate n.hog numbers.svm --plot c.html", 1, "the model predicts numbers"),
        ("evaluate m.hog one.svm --plot c.html", 1, "one class only"),
        ("evaluate m.hog rows.svm --plot c.html --certify", 2, "--plot: not together with certify"),
    ],
)
def test_what_cannot_be_plotted_is_refused(
    folder: Path,
    words: str,
    code: int,
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.chdir(folder)
    header = (folder / "sgd.jsonl").read_text().splitlines()[0]
    Path("empty.jsonl").write_text(f"{header}\n")
    Path("one.svm").write_text("1 1:1\n1 2:1\n")
    assert main(words.split()) == code
    assert complaint in capsys.readouterr().err
    assert not list(folder.glob("c.*"))
