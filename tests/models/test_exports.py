"""Models for other programs. `tests/extras/models.py` reads them with the real libraries."""

import sys
from pathlib import Path

import numpy as np
import pytest

import hogwild
from hogwild.cli import main
from hogwild.models.exports import CONSTANT, FORMATS
from hogwild.models.given import given_model
from hogwild.models.linear import LinearModel

random = np.random.default_rng(0)
X = random.normal(size=(200, 6)).astype(np.float32)
SCORES = X @ random.normal(size=(6, 3))
PAIRS = random.integers(0, 9, (50, 2))


def trained(y: np.ndarray, **options: object) -> LinearModel:
    return hogwild.train(hogwild.Rows(X, y), epochs=3, **options).model


TWO = trained(np.sign(SCORES[:, 0]), task="logistic")
THREE = trained(SCORES.argmax(axis=1) + 4, task="logistic")
TEXT = trained(np.array(["a", "b", "c"])[SCORES.argmax(axis=1)], task="softmax")
SEVERAL = trained((SCORES > 0).astype(int), task="logistic")
NUMBERS = trained(SCORES[:, 0], task="regression")
COUNTS = trained(np.abs(SCORES[:, 0]).round(), task="regression", loss="poisson")
PAIR = trained(SCORES[:, 0] > 0, task="softmax")
RATINGS = hogwild.Ratings(PAIRS[:, 0], [f"i{n}" for n in PAIRS[:, 1]], random.normal(size=50))
FACTORS = hogwild.train(RATINGS, rank=3, epochs=3).model


@pytest.mark.parametrize("model", [TWO, THREE, TEXT, SEVERAL, NUMBERS, COUNTS, PAIR])
def test_scikit_learn_has_the_same_scores(model: LinearModel) -> None:
    theirs = model.to_sklearn()
    scores = model.decision_function(X)
    if not model.labels:
        assert theirs.predict(X) == pytest.approx(model.predict(X), rel=1e-5)
        return
    scores = np.diff(scores)[:, 0] if model is PAIR else scores
    assert theirs.decision_function(X) == pytest.approx(scores, rel=1e-5, abs=1e-6)
    assert np.array_equal(theirs.predict(X), model.predict(X))
    assert theirs.predict_proba(X) == pytest.approx(model.predict_proba(X), rel=1e-5, abs=1e-7)


def test_numpy_and_liblinear_files_come_back(tmp_path: Path) -> None:
    for name in ("m.npz", "m.liblinear"):
        TWO.export(tmp_path / name)
        again = given_model(tmp_path / name)
        weights = np.append(again.weights, again.intercept if name == "m.npz" else [])
        ours = np.append(TWO.weights, TWO.intercept)
        assert np.array_equal(weights.astype(np.float32), ours.astype(np.float32))
        assert again.labels == (-1, 1)
    SEVERAL.export(tmp_path / "m.npz")
    arrays = np.load(tmp_path / "m.npz")
    scores = X @ arrays["weights"].T + arrays["intercept"]
    assert scores == pytest.approx(SEVERAL.decision_function(X), rel=1e-5, abs=1e-6)
    assert arrays["labels"].tolist() == [0, 1, 2]


def test_liblinear_has_a_line_for_each_column_and_a_number_for_each_class(tmp_path: Path) -> None:
    THREE.export(tmp_path / "m.liblinear")
    head, body = (tmp_path / "m.liblinear").read_text().split("\nw\n")
    assert head.splitlines() == (
        ["solver_type L2R_LR", "nr_class 3", "label 4 5 6", "nr_feature 6", "bias 1"]
    )
    weights = np.array([line.split() for line in body.splitlines()], np.float32)
    assert np.array_equal(weights, np.vstack([THREE.weights.T, THREE.intercept]))


def test_vw_has_the_weights_where_it_looks_for_them(tmp_path: Path) -> None:
    def places(model: LinearModel) -> tuple[int, dict[int, float]]:
        model.export(tmp_path / "m.vw")
        head, body = (tmp_path / "m.vw").read_text().split("\n:0\n")
        bits = int(head.partition("bits:")[2].split()[0])
        pairs = (line.split(":") for line in body.splitlines())
        return bits, {int(place): float(weight) for place, weight in pairs}

    bits, found = places(TWO)
    assert found[5] == pytest.approx(TWO.weights[5])
    assert found[CONSTANT % 2**bits] == pytest.approx(TWO.intercept)
    bits, found = places(THREE)  # four places for three classes
    assert found[4 * 5 + 2] == pytest.approx(THREE.weights[2, 5])
    assert found[(4 * CONSTANT + 1) % 2**bits] == pytest.approx(THREE.intercept[1])
    wide = LinearModel(np.eye(1, 200_000, 116_060, np.float32)[0], 0.5, (0, 1), "hinge")
    bits, found = places(wide)  # 18 bits would put the intercept onto the weight
    assert (found[116_060], found[CONSTANT % 2**bits]) == (1, 0.5)


def test_factors_of_ratings(tmp_path: Path) -> None:
    FACTORS.export(tmp_path / "f.npz")
    arrays = np.load(tmp_path / "f.npz")
    user, item = int(PAIRS[0, 0]), f"i{PAIRS[0, 1]}"
    u, i = arrays["user_ids"].tolist().index(user), arrays["item_ids"].tolist().index(item)
    biases = arrays["mean"] + arrays["user_biases"][u] + arrays["item_biases"][i]
    score = biases + arrays["user_factors"][u] @ arrays["item_factors"][i]
    assert score == pytest.approx(FACTORS.decision_function(user, item), rel=1e-5)
    with pytest.raises(hogwild.HogwildError, match=r"no model of ratings; those that do: \.npz"):
        FACTORS.export(tmp_path / "f.vw")


def test_what_a_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    for model, words in ((TEXT, "cross_entropy"), (SEVERAL, "labels"), (COUNTS, "poisson")):
        with pytest.raises(hogwild.HogwildError, match=f"LIBLINEAR has no .*{words}"):
            model.export(tmp_path / "m.liblinear")
    named = trained(np.array(["no", "yes"])[(SCORES[:, 0] > 0).astype(int)], task="svm")
    with pytest.raises(hogwild.HogwildError, match=r"whole numbers.*no, yes"):
        named.export(tmp_path / "m.liblinear")
    votes = trained(SCORES[:, 0] > 0, strategy="mixed", merge="vote", workers=2)
    for suffix in FORMATS:
        with pytest.raises(hogwild.HogwildError, match="vote"):
            votes.export(tmp_path / f"m{suffix}")
    far = LinearModel(np.zeros(CONSTANT + 1, np.float32), 0.5, (0, 1), "hinge")
    with pytest.raises(hogwild.HogwildError, match="VW has its intercept in column"):
        far.export(tmp_path / "m.vw")
    with pytest.raises(hogwild.HogwildError, match="no linear model with the loss exponential"):
        trained(SCORES[:, 0] > 0, task="svm", loss="exponential").to_sklearn()
    assert not list(tmp_path.iterdir())


def test_a_library_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    TWO.save(tmp_path / "m.hog")
    for name, package in (("onnx", "onnx"), ("safetensors", "safetensors.numpy")):
        monkeypatch.setitem(sys.modules, package, None)
        assert main(["export", str(tmp_path / "m.hog"), str(tmp_path / f"m.{name}")]) == 1
        assert f'pip install "hogwild[{name}]"' in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "implicit", None)
    with pytest.raises(hogwild.HogwildError, match='pip install "implicit"'):
        FACTORS.to_implicit()
    assert main(["export", str(tmp_path / "m.hog"), str(tmp_path / "m.txt")]) == 2
    assert ".onnx, .npz, .safetensors, .liblinear, .vw" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "m.hog"), str(tmp_path / "m.npz")]) == 0
    assert "saved: " in capsys.readouterr().out
