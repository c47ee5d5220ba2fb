"""Weights of rows: weight k is k copies of the row, and weight 0 is none; from arrays and files."""

import subprocess
import sys

import numpy as np
import pytest

import hogwild
from hogwild.cli import main
from hogwild.data.files import load_weights
from hogwild.errors import DataError, OptionError

LOSSES = [("svm", "hinge"), ("logistic", "logistic"), ("regression", "squared")]


def data(seed=0, rows=300, columns=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    score = X @ rng.normal(size=columns) + rng.normal(size=rows)
    return X, score, rng.integers(0, 4, rows)


@pytest.mark.parametrize(("task", "loss"), LOSSES)
def test_the_optimum_and_the_metrics_are_those_of_copies(task, loss):
    X, score, weights = data()
    y = score if task == "regression" else np.sign(score)
    often = np.repeat(np.arange(len(y)), weights)
    weighted = hogwild.Rows(X, y, sample_weight=weights)
    copies = hogwild.Rows(X[often], y[often])
    options = {"task": task, "loss": loss, "l2": 0.01, "epochs": 300, "tol": 0}
    one, other = hogwild.train(weighted, **options), hogwild.train(copies, **options)
    found, expected = one.model.evaluate(weighted), one.model.evaluate(copies)
    assert found.pop("rows") == len(y)
    assert expected.pop("rows") == len(often)
    for name, value in found.items():
        close = None if value is None else pytest.approx(expected[name], rel=1e-5)
        assert value == close, name
    assert one.trace[-1]["objective"] == pytest.approx(found["objective"], rel=1e-5)
    # SGD goes other ways to the same optimum
    assert one.trace[-1]["objective"] == pytest.approx(other.trace[-1]["objective"], rel=3e-3)


def test_rows_of_weight_0_do_not_count_whatever_their_label():
    X, score, weights = data(1)
    y = np.sign(score)
    poisoned = np.where(weights == 0, -y, y)
    models = [
        hogwild.train(hogwild.Rows(X, labels, sample_weight=weights), seed=3).model
        for labels in (y, poisoned)
    ]
    assert models[0].weights.tobytes() == models[1].weights.tobytes()


@pytest.mark.parametrize("strategy", ["hogwild", "combine", "ordered", "locked", "minibatch"])
def test_weights_work_with_every_kind_of_strategy(strategy):
    X, score, weights = data(2, rows=2000)
    rows = hogwild.Rows(X, np.sign(score), sample_weight=weights)
    options = {"task": "logistic", "l2": 0.01, "epochs": 40, "tol": 0}
    alone = hogwild.train(rows, workers=1, **options).trace[-1]["objective"]
    found = hogwild.train(rows, workers=2, strategy=strategy, backend="thread", **options)
    assert found.trace[-1]["objective"] == pytest.approx(alone, rel=0.01)


def test_balanced_is_the_weights_that_make_classes_count_alike():
    X, score, _ = data(3)
    y = np.where(score > 1.5, "rare", "usual")
    rare = np.count_nonzero(y == "rare")
    by_hand = np.where(y == "rare", len(y) / (2 * rare), len(y) / (2 * (len(y) - rare)))
    rows = hogwild.Rows(X, y)
    one = hogwild.train(rows, class_weight="balanced", seed=1)
    given = {"rare": len(y) / (2 * rare), "usual": len(y) / (2 * (len(y) - rare))}
    for other in (
        hogwild.train(rows.weighted(by_hand), seed=1),
        hogwild.train(rows, class_weight=given, seed=1),
    ):
        np.testing.assert_allclose(one.model.weights, other.model.weights, rtol=1e-4, atol=1e-5)
    assert one.trace[-1]["objective"] != hogwild.train(rows, seed=1).trace[-1]["objective"]


@pytest.mark.parametrize("given", ["balanced", {np.str_("usual"): np.float32(0.5), "rare": 3}])
@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_the_objective_of_a_model_has_its_class_weights(given, several, tmp_path):
    X, score, weights = data(3)
    y = np.where(score > 1.5, "rare", "usual")
    if several:
        y = [[label, "other"][: 1 + number % 2] for number, label in enumerate(y)]
    rows = hogwild.Rows(X, y, sample_weight=weights)
    result = hogwild.train(rows, task="logistic", class_weight=given, epochs=3)
    result.model.save(tmp_path / "model.hog")
    plain = hogwild.train(rows, task="logistic", epochs=3).model
    assert plain.class_weights is None
    for model in (result.model, hogwild.load_model(tmp_path / "model.hog")):
        found = model.evaluate(rows)
        assert found["objective"] == pytest.approx(result.trace[-1]["objective"], rel=1e-5)
        # Rows are as they are; only what is learned counts classes differently
        other = model.measured(rows, None)
        assert found["loss"] != other["loss"]
        assert {name: found[name] for name in plain.target.metrics} == {
            name: other[name] for name in plain.target.metrics
        }


@pytest.mark.parametrize(
    ("weights", "complaint"),
    [
        ([1.0, 2.0], "3 rows need 3 numbers"),
        ([1.0, -2.0, 1.0], "weight of row 2 is -2.0"),
        ([1.0, 1.0, np.nan], "weight of row 3 is nan"),
        ([1.0, 1.0, 1e300], "weight of row 3 is 1e+300"),
        ([0, 0, 0], "all sample weights are zero"),
        (["a", "b", "c"], "3 rows need 3 numbers"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, complaint):
    X, y = np.eye(3), [0, 1, 1]
    with pytest.raises(DataError, match=complaint.replace("+", r"\+")):
        hogwild.Rows(X, y, sample_weight=weights)


@pytest.mark.parametrize("given", ["0:1,2:1", "0", "0:-1", "0:x", {"a": 1}, "0:0,1:0"])
def test_class_weights_that_make_no_sense_are_refused(given):
    rows = hogwild.Rows(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(OptionError, match="class_weight"):
        hogwild.train(rows, class_weight=given)


def test_a_file_has_a_number_a_line(tmp_path):
    path = tmp_path / "weights.txt"
    path.write_text("1\n0.5\n 2e1 \n")
    assert load_weights(path).tolist() == [1, 0.5, 20]
    for text, line in [("1\n\n2\n", 2), ("1\n2\n-1\n", 3), ("x\n", 1), ("1\ninf\n", 2)]:
        path.write_text(text)
        with pytest.raises(DataError, match=f"line {line}"):
            load_weights(path)


def test_evaluate_says_which_class_weights_the_objective_has(tmp_path, capsys):
    X, score, _ = data(3)
    file, model = str(tmp_path / "rows.svm"), str(tmp_path / "model.hog")
    hogwild.save(hogwild.Rows(X, np.sign(score)), file)
    assert main(["train", file, "--class-weight", "1:3", "--model", model, "--quiet"]) == 0
    assert main(["evaluate", model, file]) == 0
    printed = capsys.readouterr().out
    assert "(hinge loss, l2 0.0001, class weights)" in printed
    assert "class weights    -1 1, 1 3" in printed


def test_on_the_command_line(tmp_path):
    X, score, weights = data(4, rows=60)
    rows = hogwild.Rows(X, np.sign(score))
    hogwild.save(rows, tmp_path / "rows.svm")
    (tmp_path / "weights.txt").write_text("".join(f"{weight}\n" for weight in weights))

    def train(*more):
        command = [sys.executable, "-m", "hogwild", "train", "rows.svm", "--model", "m.hog", *more]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = train("--sample-weight", "weights.txt", "--quiet")
    assert done.returncode == 0, done.stderr
    expected = hogwild.train(rows.weighted(weights)).model.weights
    assert hogwild.load_model(tmp_path / "m.hog").weights.tobytes() == expected.tobytes()
    wrong = train("--sample-weight", "none.txt")
    assert wrong.returncode == 2
    assert "--sample-weight: there is no file none.txt" in wrong.stderr
