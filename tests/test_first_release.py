"""What the first release wrote is still read, and says the same."""

import json

import numpy as np
import pytest

import hogwild
from hogwild.results import State
from tests.fixtures.release_1 import FOLDER, NAMES, labeled, ratings

TOLD = json.loads((FOLDER / "release-1.json").read_text())


def test_a_linear_model_says_the_same():
    model = hogwild.load_model(FOLDER / NAMES["linear"])
    X, y = labeled()
    np.testing.assert_allclose(model.decision_function(X[:20]), TOLD["scores"], 1e-5)
    assert model.predict(X[:20]).tolist() == TOLD["labels"]
    found = model.evaluate(X, y)
    for name, value in TOLD["evaluated"].items():
        assert found[name] == pytest.approx(value, rel=1e-6)


def test_a_factor_model_says_the_same():
    model = hogwild.load_model(FOLDER / NAMES["factors"])
    users, items, values = ratings()
    np.testing.assert_allclose(model.predict(users[:20], items[:20]), TOLD["expected"], 1e-5)
    ranked, scores = model.recommend("user 3", n=5)
    assert list(ranked) == TOLD["recommended"][0]
    np.testing.assert_allclose(scores, TOLD["recommended"][1], 1e-5)
    rmse = model.evaluate(users, items, values)["rmse"]
    assert rmse == pytest.approx(TOLD["rmse"], rel=1e-6)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.filterwarnings("ignore:rows overlap so much")
def test_a_state_with_an_intercept_of_its_own_goes_on(workers):
    model = hogwild.load_model(FOLDER / NAMES["linear"])
    intercept = np.array([model.intercept], np.float32)
    then = {"weights": model.weights, "intercept": intercept}
    now = {"stored": np.append(model.weights, intercept)}
    options = {"loss": "logistic", "l2": 1e-3, "epochs": 2, "tol": 0}
    options |= {"workers": workers, "deterministic": True}
    first, second = (
        hogwild.train(hogwild.Rows(*labeled()), start=State(weights, 600, 3, 0.05), **options)
        for weights in (then, now)
    )
    assert first.trace[-1]["epoch"] == 5
    assert first.trace[-1]["objective"] < TOLD["evaluated"]["objective"]
    assert first.model.weights.tobytes() == second.model.weights.tobytes()
    assert first.model.intercept == second.model.intercept


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"weights": {"stored": np.array([1, np.nan])}}, "number 2 of its stored is nan"),
        ({"weights": {"stored": np.array([1, -np.inf])}}, "number 2 of its stored is -inf"),
        ({"weights": {"stored": [1.0, 2.0]}}, "its stored are not an array of numbers"),
        ({"weights": {"stored": np.array(["a"])}}, "its stored are not an array of numbers"),
        ({"weights": {"others": np.zeros(30)}}, "has others, and no weights"),
        ({"weights": 3}, "no arrays by name"),
        ({"weights": {}}, "no arrays by name"),
        ({"epochs": None}, "epochs is None"),
        ({"steps": -1}, "steps is -1"),
        ({"eta0": float("nan")}, "eta0 is nan"),
    ],
)
def test_a_state_that_no_training_ends_with_is_refused(changed, words):
    good = {"weights": {"stored": np.zeros(30, np.float32)}, "steps": 0, "epochs": 0, "eta0": 1.0}
    with pytest.raises(hogwild.DataError, match=words):
        hogwild.train(hogwild.Rows(*labeled()), start=State(**(good | changed)))


def test_a_state_of_other_columns_is_refused():
    state = State(
        {"weights": np.zeros(7, np.float32), "intercept": np.zeros(1, np.float32)}, 0, 0, 1.0
    )
    with pytest.raises(hogwild.DataError, match="needs 30 weights, and what to go on from has 7"):
        hogwild.train(hogwild.Rows(*labeled()), start=state)
