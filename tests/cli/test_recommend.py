"""Commands about models of ratings: recommend, similar, predict and evaluate."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild.cli import main, recommend
from hogwild.data.ids import Ids
from hogwild.data.ratings import Ratings
from hogwild.data.ratings_files import save_ratings
from hogwild.models.factors import FactorModel
from hogwild.models.linear import LinearModel

Run = Callable[..., tuple[int, str, str]]


def a_model(loss: str = "squared") -> FactorModel:
    """Users 10, 20, ... and items "a", "b", ..."""
    random = np.random.default_rng(0)
    P, Q = (random.normal(size=(count, 4)).astype(np.float32) for count in (6, 8))
    biases = [random.normal(size=count).astype(np.float32) for count in (6, 8)]
    ids = Ids.of(np.arange(10, 70, 10))[0], Ids.of([*"abcdefgh"])[0]
    return FactorModel(P, Q, *biases, 0.5, *ids, loss)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models and ratings, where the commands run."""
    a_model().save(tmp_path / "m.hog")
    a_model("logistic").save(tmp_path / "odds.hog")
    LinearModel(np.zeros(3, np.float32), 0.0, (-1, 1), "hinge").save(tmp_path / "linear.hog")
    ratings = Ratings([10, 20, 10, 60], [*"abca"], [1, 0, 1, 0])
    save_ratings(ratings, tmp_path / "r.csv")
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    (tmp_path / "odd.csv").write_text("what,x,who\na,1,10\nb,2,20\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command: its exit code, and what it wrote to both outputs."""

    def call(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        return code, *capsys.readouterr()

    return call


def fields(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_recommend_prints_what_the_model_recommends(run: Run) -> None:
    code, out, said = run("recommend", "m.hog", "--user", 20, "--user", 10, "-n", 3)
    assert (code, said) == (0, "")
    ids, scores = a_model().recommend([20, 10], 3)
    lines = fields(out)
    assert [line[0] for line in lines] == ["20"] * 3 + ["10"] * 3
    assert [line[1] for line in lines] == ids.ravel().tolist()
    np.testing.assert_allclose([float(line[2]) for line in lines], scores.ravel(), rtol=1e-5)


def test_all_users_without_what_they_have_seen(run: Run, folder: Path) -> None:
    words = ["recommend", "m.hog", "--all-users", "--n", 8, "--exclude-seen", "r.csv"]
    code, out, _ = run(*words)
    assert code == 0
    shown = {(user, item) for user, item, _ in fields(out)}
    assert len(shown) == 6 * 8 - 4
    assert not shown & {("10", "a"), ("20", "b"), ("10", "c"), ("60", "a")}
    assert run(*words, "--output", "o.tsv")[:2] == (0, "")
    assert (folder / "o.tsv").read_text() == out


@pytest.mark.parametrize("at_a_time", [1, 4, 100])
def test_recommend_as_json(run: Run, monkeypatch: pytest.MonkeyPatch, at_a_time: int) -> None:
    monkeypatch.setattr(recommend, "USERS", at_a_time)
    _, out, _ = run("recommend", "m.hog", "--all-users", "-n", 2, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    ids, scores = a_model().recommend(None, 2)
    assert [row["user"] for row in rows] == [10, 20, 30, 40, 50, 60]
    assert [row["items"] for row in rows] == ids.tolist()
    assert [row["scores"] for row in rows] == scores.tolist()


def test_columns_name_users_and_items(run: Run) -> None:
    words = ["recommend", "m.hog", "--user", 10, "-n", 8, "--exclude-seen", "odd.csv"]
    _, out, _ = run(*words, "--columns", "who,what")
    assert "a" not in [line[1] for line in fields(out)]
    _, predicted, said = run("predict", "m.hog", "odd.csv", "--columns", "who,what,x")
    assert said == ""
    assert len(predicted.split()) == 2
    code, _, said = run("evaluate", "m.hog", "odd.csv", "--columns", "who,what,x")
    assert (code, said) == (0, "")


@pytest.mark.parametrize("role", ["item", "user"])
def test_similar(run: Run, role: str) -> None:
    asked: Any = "c" if role == "item" else 30
    code, out, said = run("similar", "m.hog", f"--{role}", asked, "-n", 3)
    assert (code, said) == (0, "")
    model = a_model()
    ids, cosines = (model.similar_items if role == "item" else model.similar_users)(asked, 3)
    assert [line[:2] for line in fields(out)] == [[str(asked), str(other)] for other in ids]
    np.testing.assert_allclose([float(line[2]) for line in fields(out)], cosines, rtol=1e-5)
    row = json.loads(run("similar", "m.hog", f"--{role}", asked, "-n", 3, "--json")[1])
    assert row[role] == asked
    assert row[f"{role}s"] == ids.tolist()
    assert row["similarities"] == cosines.tolist()


def test_predict_writes_a_rating_for_each_pair(run: Run, folder: Path) -> None:
    code, out, said = run("predict", "m.hog", "r.csv")
    assert (code, said) == (0, "")
    wanted = a_model().predict([10, 20, 10, 60], [*"abca"])
    assert np.array(out.split(), np.float32).tobytes() == wanted.tobytes()
    odds = np.array(run("predict", "odds.hog", "r.csv")[1].split(), float)
    scores = np.array(run("predict", "odds.hog", "r.csv", "--score")[1].split(), float)
    np.testing.assert_allclose(odds, 1 / (1 + np.exp(-scores)), rtol=1e-5)
    assert run("predict", "m.hog", "r.csv", "--output", "p.txt")[:2] == (0, "")
    assert (folder / "p.txt").read_text() == out


def test_predict_tells_of_unknown_ids_or_refuses_them(run: Run, folder: Path) -> None:
    (folder / "new.csv").write_text("user,item\n10,a\n11,a\n")
    code, out, said = run("predict", "m.hog", "new.csv")
    assert code == 0
    assert said.count("new.csv: of 2 pairs 1 have an unknown user") == 1
    assert len(out.split()) == 2
    code, out, said = run("predict", "m.hog", "new.csv", "--strict")
    assert (code, out) == (1, "")
    assert "new.csv: the model does not know the user 11 of pair 2" in said


def test_evaluate(run: Run) -> None:
    code, out, said = run("evaluate", "odds.hog", "r.csv", "--json")
    assert (code, said) == (0, "")
    wanted = a_model("logistic").evaluate([10, 20, 10, 60], [*"abca"], [1, 0, 1, 0])
    assert json.loads(out) == wanted
    shown = run("evaluate", "odds.hog", "r.csv")[1]
    for name in ("objective", "rmse", "mae", "log_loss", "auc"):
        assert f"{wanted[name]:.6f}" in shown
    assert "log loss" not in run("evaluate", "m.hog", "r.csv")[1]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("recommend linear.hog --user 10", 1, "linear.hog holds a linear model; recommend needs"),
        ("similar linear.hog --item a", 1, "linear.hog holds a linear model; similar needs"),
        ("recommend rows.svm --user 10", 1, "rows.svm is not a model of hogwild"),
        ("recommend none.hog --user 10", 1, "cannot read the model none.hog"),
        ("recommend m.hog", 2, "--user: give --user ID or --all-users"),
        ("recommend m.hog --user 10 --all-users", 2, "--user: give --user ID"),
        ("recommend m.hog --user 11", 1, "does not know the user '11'"),
        ("recommend m.hog --user 010", 1, "does not know the user '010'"),
        ("recommend m.hog --user 10 -n 0", 2, "--n: must be a whole number of 1 or more, not 0"),
        ("recommend m.hog --user 10 -n x", 2, "invalid int value: 'x'"),
        ("recommend m.hog --user 10 --exclude-seen none.csv", 1, "none.csv: there is no such file"),
        ("recommend m.hog --user 10 --columns 1,2", 2, "--columns: it needs --exclude-seen"),
        ("recommend m.hog --user 10 --output m.hog", 2, "--output: m.hog is an input, too"),
        ("recommend m.hog --user 10 --output no/o", 2, "there is no folder"),
        ("similar m.hog", 2, "--item: name items with --item ID, or users"),
        ("similar m.hog --item a --user 10", 2, "--item: name items"),
        ("similar m.hog --item x", 1, "does not know the item 'x'"),
        ("similar m.hog --user 10 -n -3", 2, "--n: must be"),
        ("predict m.hog r.csv --proba", 2, "--proba: not for a factors model"),
        ("predict linear.hog rows.svm --strict", 2, "--strict: not for a linear model"),
        ("predict linear.hog rows.svm --columns 1,2", 2, "--columns: not for a linear model"),
        ("evaluate linear.hog rows.svm --columns 1,2", 2, "--columns: not for a linear model"),
        ("predict m.hog none.csv", 1, "none.csv"),
        ("evaluate m.hog odd.csv", 1, "columns"),
    ],
)
def test_mistakes_are_named(run: Run, words: str, code: int, said: str) -> None:
    ended, out, problems = run(*words.split())
    assert (ended, out) == (code, "")
    assert said in problems


def test_values_that_the_loss_cannot_take(run: Run, folder: Path) -> None:
    (folder / "five.csv").write_text("10,a,5\n")
    code, _, said = run("evaluate", "odds.hog", "five.csv")
    assert code == 1
    assert "five.csv: rating 1 is 5; the loss logistic takes 0 and 1" in said
