"""Numbers far from 0: what all have in common is subtracted, and the intercept gets it back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.learn.targets import Counts, Numbers
from tests.combinations import pairs

ROWS, FAR = 300, 2.0**20
NUMBERS = ["squared", "huber", "absolute", "quantile", "epsilon_insensitive"]
DETERMINISTIC: dict[str, Any] = {"task": "regression", "l2": 1e-3, "deterministic": True}


def draw(far: float = FAR, rows: int = ROWS) -> hogwild.Rows:
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 5))
    y = (X @ random.normal(size=5) + random.normal(size=rows)).astype(np.float32)
    return hogwild.Rows(X, far + y.astype(np.float64), sample_weight=random.integers(0, 3, rows))


@pairs(loss=NUMBERS, solver=["auto", "sgd", "dual", "newton"])
def test_it_is_learned_as_fast_and_as_well(loss, solver, tmp_path: Path) -> None:
    given = DETERMINISTIC | {"loss": loss, "solver": solver}
    near = hogwild.train(draw(0.0), test=draw(0.0, 100), **given)
    far = hogwild.train(draw(), test=draw(rows=100), **given)
    assert far.reason == near.reason
    assert far.model.intercept - FAR == pytest.approx(near.model.intercept, abs=1e-4)
    for name in ("objective", "test_rmse"):
        told = [[row[name] for row in one.trace if row[name]] for one in (far, near)]
        assert told[0] == pytest.approx(told[1], rel=1e-4)
    last = far.trace[-1]["objective"]
    far.model.save(tmp_path / "m.hog")
    model = hogwild.load_model(tmp_path / "m.hog")
    assert model.evaluate(draw())["objective"] == pytest.approx(last, rel=1e-5)
    assert hogwild.certify(model, draw()).objective == pytest.approx(last, rel=1e-5)
    assert np.abs(model.predict(draw()) - draw().y).max() < 6
    for start in (far.state, tmp_path / "m.hog"):
        on = hogwild.train(draw(), start=start, **given)
        assert on.trace[-1]["objective"] < last * 1.01


def test_other_rows_with_another_center_go_on_from_a_state() -> None:
    given = DETERMINISTIC | {"loss": "squared"}
    first = hogwild.train(draw(), **given)
    for far in (0.0, FAR + 5.0, -FAR):
        found = hogwild.train(draw(far), start=first.state, **given)
        expected = hogwild.train(draw(far), **given)
        assert found.model.intercept == pytest.approx(expected.model.intercept, rel=1e-6, abs=0.2)


def test_batches_of_an_estimator() -> None:
    rows = draw()
    X = np.random.default_rng(0).normal(size=(ROWS, 5))
    regressor = hogwild.HogwildRegressor()
    for part in (slice(0, 100), slice(100, 200), slice(200, 300)) * 5:
        regressor.partial_fit(X[part], rows.y[part])
    assert regressor.score(X, rows.y) > 0.5


def test_rows_that_do_not_fit_the_model_are_refused(tmp_path: Path) -> None:
    """Also where the evaluation moves the model's intercept."""
    text = "".join(f"{FAR + k:g} 1:{k} 2:1\n" for k in range(1, 40))
    (tmp_path / "far.svm").write_text(text.replace(" 1:", " 0:"))
    model = hogwild.train(hogwild.load(tmp_path / "far.svm", index_base=0), task="regression").model
    (tmp_path / "far.svm").write_text(text)
    with pytest.raises(hogwild.DataError, match="was read with columns from 1 on"):
        model.evaluate(hogwild.load(tmp_path / "far.svm", index_base=1))


def test_what_has_no_center() -> None:
    assert Numbers().centered(draw(50.0)).center == 0.0
    assert Counts().centered(draw()).center == 0.0
    X = np.ones((4, 1))
    for y in ([7.0] * 4, ["a"] * 4):
        assert Numbers().centered(hogwild.Rows(X, np.array(y))).center == 0.0
    heavy = hogwild.Rows(X, np.array([1e9, 1e9 + 1, 1e9 + 3, -5.0]), sample_weight=[1, 1, 1, 0])
    assert Numbers().centered(heavy).center == pytest.approx(1e9, abs=2)
    found = hogwild.train(draw(), intercept=False, **DETERMINISTIC)
    assert found.model.intercept == 0.0
    assert found.trace[-1]["objective"] > 0.4 * FAR**2


def test_a_stream_sees_no_number_before_it_is_predicted() -> None:
    given: dict[str, Any] = {"task": "regression", "eta0": 0.1}
    learned = [hogwild.train_stream(parts, **given) for parts in ([draw()], pieces())]
    assert learned[0].model.intercept == learned[1].model.intercept


def pieces() -> list[hogwild.Rows]:
    rows = draw()
    return [rows.part(np.arange(first, first + 50)) for first in range(0, ROWS, 50)]


def test_numbers_that_were_taken_for_classes_are_doubted_at_the_line_that_trains() -> None:
    rows = hogwild.Rows(np.ones((120, 1)), np.arange(120) / 7)
    with pytest.warns(
        hogwild.HogwildWarning, match="120 classes in 120 rows; .* regression"
    ) as said:
        hogwild.train(rows, epochs=1)
    assert said[0].filename == __file__


def test_a_center_of_several_numbers_is_refused() -> None:
    state = hogwild.train(draw(), **DETERMINISTIC).state
    for wrong in (np.zeros(0), np.zeros(2)):
        state.weights["center"] = wrong
        with pytest.raises(hogwild.DataError, match="its center is not one number"):
            hogwild.train(draw(), start=state, **DETERMINISTIC)
