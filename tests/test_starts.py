"""Trainings that go on from a model, of whatever family, or from its file."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.data.synthetic import rcv1

Options = dict[str, Any]
SGD: Options = {"solver": "sgd", "tol": 0, "deterministic": True}


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    return rcv1(2_000, 2_000)[0]


def several(kind: str) -> hogwild.Rows:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 12))
    scores = X @ rng.normal(size=(12, 4))
    y = scores.argmax(axis=1) if kind == "classes" else scores > 0.5
    return hogwild.Rows(X, scores[:, 0] if kind == "numbers" else y)


@pytest.mark.parametrize("as_file", [True, False])
def test_descent_goes_on_with_its_rate_and_its_epochs(
    rows: hogwild.Rows, tmp_path: Path, as_file: bool
) -> None:
    """Weights in model files are not divided by what the penalty left, as those of states are."""
    path = tmp_path / "m.hog"
    first = hogwild.train(rows, epochs=3, model=path, average=False, **SGD)
    start = path if as_file else first.model
    found = hogwild.train(rows, epochs=3, start=start, model=path, average=False, **SGD)
    whole = hogwild.train(rows, epochs=6, average=False, **SGD)
    assert [row["epoch"] for row in found.trace] == [4, 5, 6]
    assert found.trace[0]["rate"] == pytest.approx(whole.trace[3]["rate"])
    assert found.trace[-1]["objective"] == pytest.approx(whole.trace[-1]["objective"], rel=1e-3)
    assert hogwild.load_model(path).about["trace"]["epochs"] == 6


@pytest.mark.parametrize("solver", ["dual", "newton", "lbfgs"])
@pytest.mark.parametrize("kind", ["classes", "labels", "numbers"])
def test_solvers_with_a_proof_begin_near_the_optimum(solver: str, kind: str) -> None:
    data = several(kind)
    options: Options = {"task": "regression" if kind == "numbers" else "logistic"}
    options |= {"solver": solver, "l2": 1e-2, "tol": 1e-5}
    if kind != "numbers" and solver == "lbfgs":
        return  # it learns one score a row
    first = hogwild.train(data, **options)
    again = hogwild.train(data, start=first.model, **options)
    assert again.reason == "converged"
    assert again.trace[0]["objective"] <= first.trace[-1]["objective"] * (1 + 1e-4)
    assert len(again.trace) <= len(first.trace)


def test_new_columns_begin_with_zeros_and_old_ones_stay(rows: hogwild.Rows) -> None:
    narrow = rows.narrowed(1_500)
    first = hogwild.train(narrow, l2=1e-3)
    wider = hogwild.train(rows, start=first.model, l2=1e-3, tol=1e-4)
    assert wider.model.columns == rows.columns
    back = hogwild.train(narrow, start=wider.model, l2=1e-3, tol=1e-4)
    assert back.model.columns == rows.columns
    assert back.trace[-1]["objective"] == pytest.approx(first.trace[-1]["objective"], rel=2e-3)


def test_raw_text_is_read_as_the_model_was_learned(tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    words = ("bad", "good")
    lines = [f"{k % 2} {words[k % 2]} word{k % 7} very {words[k % 2]}\n" for k in range(40)]
    file.write_text("".join(lines))
    first = hogwild.train(file, format="text", ngrams=2, bits=12, model=tmp_path / "m.hog")
    again = hogwild.train(file, start=tmp_path / "m.hog", model=tmp_path / "m.hog")
    assert again.model.features.settings == first.model.features.settings
    with pytest.raises(hogwild.OptionError, match="features: the model to go on from has them"):
        hogwild.train(file, start=tmp_path / "m.hog", format="text", ngrams=1)


def test_factors_take_new_users_from_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 30, 800), rng.integers(0, 20, 800)
    old = hogwild.Ratings(users, items, rng.integers(1, 6, 800))
    new = hogwild.Ratings(users + 5, items, rng.integers(1, 6, 800))
    path = tmp_path / "m.hog"
    hogwild.train(old, rank=4, epochs=3, model=path)
    found = hogwild.train(new, rank=4, epochs=3, start=path, model=path)
    assert len(found.model.user_ids) == len(new.user_ids)


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ({"loss": "hinge"}, {"loss": "logistic"}, "start: the model was learned with the loss hin"),
        ({}, {"labels": ("a", "b")}, "has the labels a, b, and the model to go on from -1, 1"),
        ({}, {"l1": 1e-4, "solver": "sgd"}, "start: with a rate for each weight"),
        (
            {"strategy": "averaged", "merge": "vote", "workers": 2},
            {},
            "start: a model of votes has the weights of each worker",
        ),
    ],
)
def test_a_model_that_does_not_suit_is_refused(
    rows: hogwild.Rows, first: Options, then: Options, words: str
) -> None:
    model = hogwild.train(rows, epochs=1, **{"solver": "sgd"} | first).model
    data = rows
    if "labels" in then:
        data = rows.labelled(np.array(["a", "b"])[np.arange(len(rows)) % 2])
    with pytest.raises((hogwild.OptionError, hogwild.DataError), match=words):
        hogwild.train(data, start=model, **then)


def test_what_is_no_model_is_refused(rows: hogwild.Rows, tmp_path: Path) -> None:
    with pytest.raises(hogwild.OptionError, match="start: it needs the state of a result"):
        hogwild.train(rows, start=3)  # type: ignore[arg-type]
    with pytest.raises(hogwild.HogwildError, match="cannot read the model"):
        hogwild.train(rows, start=tmp_path / "none.hog")
    ratings = hogwild.Ratings([1, 2, 1, 2], [1, 1, 2, 2], [1, 2, 3, 4])
    factors = hogwild.train(ratings, rank=2, epochs=1).model
    with pytest.raises(hogwild.OptionError, match="holds a factors model, which is for another"):
        hogwild.train(rows, start=factors)
    model = hogwild.train(rows, epochs=1, solver="sgd").model
    with pytest.raises(hogwild.OptionError, match="start: a model holds a linear model"):
        hogwild.train(ratings, start=model)


def test_the_command_line_goes_on_from_the_file_that_it_writes(tmp_path: Path) -> None:
    hogwild.save(rcv1(1_000, 1_000)[0], tmp_path / "t.svm")
    words = "train t.svm --solver sgd --epochs 2 --tol 0 --model m.hog"
    for more in ("", "--start m.hog", "--start m.hog"):
        ran = subprocess.run(
            [sys.executable, "-m", "hogwild", *words.split(), *more.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
    assert hogwild.load_model(tmp_path / "m.hog").about["trace"]["epochs"] == 6
    assert re.search(r"^ +5 .*\n +6 ", ran.stdout, re.M)
    stopped = subprocess.run(
        [sys.executable, "-m", "hogwild", "train", "-", "--start", "m.hog", "--every", "3"],
        cwd=tmp_path,
        input="1 1:1\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert stopped.returncode == 2
    assert "--start: not for a stream" in stopped.stderr
