"""Which features a model uses, and what a row's values add to its score."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hogwild
from hogwild import HogwildClassifier
from hogwild.cli import main

NAMES = ["height", "width", "depth", "age"]
random = np.random.default_rng(0)
X = random.normal(size=(300, 4)).astype(np.float32)
FRAME = pd.DataFrame(X, columns=NAMES)
CLASSES = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]


def test_names_come_from_a_data_frame_and_stay_in_the_file(tmp_path: Path) -> None:
    model = HogwildClassifier(loss="log_loss").fit(FRAME, CLASSES).model_
    alone = hogwild.train(hogwild.Rows(FRAME, CLASSES), task="logistic").model
    alone.save(tmp_path / "m.hog")
    again = hogwild.load_model(tmp_path / "m.hog")
    assert model.feature_names == alone.feature_names == again.feature_names == NAMES
    assert HogwildClassifier().fit(X, CLASSES).model_.feature_names is None


def test_top_features_are_the_largest_weights_of_each_class() -> None:
    model = HogwildClassifier(loss="log_loss").fit(FRAME, CLASSES).model_
    top = model.top_features(2)
    assert list(top) == ["a", "b", "c"]
    for (label, pairs), weights in zip(top.items(), model.weights, strict=True):
        assert pairs[0][0] == NAMES["abc".index(label)]
        assert [weight for _, weight in pairs] == sorted(weights, key=abs)[:-3:-1]
    assert model.top_features(1, ["h", "w", "d", "g"])["c"][0][0] == "d"
    with pytest.raises(hogwild.OptionError, match="1 or more"):
        model.top_features(0)
    with pytest.raises(hogwild.DataError, match="2 names for 4 columns"):
        model.top_features(1, ["h", "w"])


def test_zeros_are_no_top_features_and_columns_count_as_in_the_file() -> None:
    rows = hogwild.Rows(X, X[:, 2])
    model = hogwild.train(rows, task="regression", l1=0.1).model
    (name, pairs), *_ = model.top_features(3).items()
    assert (name, [feature for feature, _ in pairs]) == ("score", [2])
    model.index_base = 1
    assert model.top_features(3)["score"][0][0] == 3


@pytest.mark.parametrize("task", ["logistic", "softmax"])
@pytest.mark.parametrize("y", [CLASSES, CLASSES == "a", (X > 0).astype(int)], ids=[3, 2, "many"])
def test_what_is_explained_adds_up_to_the_score(task: str, y: np.ndarray) -> None:
    if task == "softmax" and y.ndim == 2:
        return
    sparse = np.where(X > 0.5, X, 0)
    model = hogwild.train(hogwild.Rows(sparse, y), task=task).model
    for given in (sparse[7], sparse[7:8], sparse[7].tolist(), hogwild.Rows(sparse[7:8])):
        found = model.explain(given)
        sums = [sum(added for _, added in pairs) for pairs in found.values()]
        assert sums == pytest.approx(np.ravel(model.decision_function(sparse[7:8])), rel=1e-5)
        assert all(pairs[-1][0] == "intercept" for pairs in found.values())
        assert all(len(pairs) == np.count_nonzero(sparse[7]) + 1 for pairs in found.values())
    with pytest.raises(hogwild.DataError, match="300 rows; give one"):
        model.explain(sparse)


def test_votes_cannot_be_explained() -> None:
    rows = hogwild.Rows(X, CLASSES == "a")
    model = hogwild.train(rows, strategy="mixed", merge="vote", workers=2, epochs=2).model
    assert model.top_features(1)[True][0][0] == 0
    with pytest.raises(hogwild.HogwildError, match="merge mean"):
        model.explain(X[0])


def test_inspect_shows_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def inspect(*words: object) -> str:
        assert main(["inspect", *map(str, words)]) == 0
        return capsys.readouterr().out

    path, names = tmp_path / "m.hog", tmp_path / "names.txt"
    hogwild.train(hogwild.Rows(X, CLASSES == "a", name="X.svm"), task="logistic", model=path)
    names.write_text("".join(f"{name}\n" for name in NAMES))
    said = inspect(path, "--top", 2, "--features", names)
    for words in (
        "logistic loss",
        "False, True",
        "columns 4",
        "X.svm: rows 300, columns 4, nonzeros 1,200",
        "proved",
    ):
        assert words in said
    weights = said.partition("largest weights of True\n")[2].split()
    assert weights[1] == "height"
    assert len(weights) == 4
    found = json.loads(inspect(path, "--top", 1, "--json"))
    assert (found["data"]["nonzeros"], found["top"]["True"][0][0]) == (1200, 0)
    assert found["bytes"] == path.stat().st_size
    pairs = hogwild.Ratings([1, 2, 1], ["x", "y", "y"], [1.0, 2.0, 3.0])
    hogwild.train(pairs, rank=3, model=path)
    assert "users 2, items 2, rank 3" in inspect(path)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("rows.svm --top 3", "--top: only for models"),
        ("m.hog --features names.txt", "--top"),
        ("m.hog --top 3 --features few.txt", "1 names for 4 columns"),
        ("m.hog --top 0", "1 or more"),
        ("m.hog --top 3 --features none.txt", "no such file"),
    ],
)
def test_inspect_refuses(
    words: str,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = hogwild.Rows(X, CLASSES == "a")
    hogwild.train(rows, model="m.hog")
    hogwild.save(hogwild.Rows(X, X[:, 0]), "rows.svm")
    Path("few.txt").write_text("one\n")
    assert main(["inspect", *words.split()]) in (1, 2)
    assert complaint in capsys.readouterr().err
