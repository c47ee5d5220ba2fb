"""Early stopping of linear models: what is held out says when to stop, and is not learned from."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import Rows
from hogwild.data.folds import held_out

SIZE, COLUMNS = 1500, 400
OPTIONS: dict[str, Any] = {"task": "logistic", "l2": 1e-7, "epochs": 30, "tol": 0, "workers": 1}
OPTIONS["solver"] = "sgd"  # those that nothing judges are to be trained like the others


def noisy(seed: int = 0, weighted: bool = False) -> Rows:
    """Few rows for as many columns, and much noise: every epoch after the first ones over-fits."""
    random = np.random.default_rng(seed)
    X = sparse.random(SIZE, COLUMNS, 0.05, "csr", np.float32, random)
    scores = X @ random.normal(size=COLUMNS) + 0.8 * random.normal(size=SIZE)
    weights = random.random(SIZE) + 0.1 if weighted else None
    return Rows(X, np.where(scores > 0, 1, -1), sample_weight=weights)


def with_labels(rows: Rows, y: Any) -> Rows:
    return Rows(rows.to_scipy(), y, sample_weight=rows.sample_weight)


def same(one: Any, other: Any) -> bool:
    return bool(one.weights.tobytes() == other.weights.tobytes()) and (
        one.intercept == other.intercept
    )


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_the_best_epoch_is_taken_after_as_many_without_progress(patience: int) -> None:
    rows = noisy()
    result = hogwild.train(rows, early_stopping=0.2, patience=patience, **OPTIONS)
    losses = [row["held_out_loss"] for row in result.trace]
    best = int(np.argmin(losses))
    assert result.reason == "overfitting"
    assert len(losses) == best + 1 + patience
    assert result.model.about["trace"]["last"]["epoch"] == best + 1
    kept = hogwild.train(
        rows, early_stopping=0.2, patience=patience, **(OPTIONS | {"epochs": best + 1})
    )
    assert same(result.model, kept.model)


@pytest.mark.parametrize("options", [{}, {"class_weight": {1: 3.0, -1: 1.0}}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_what_judges_is_the_weighted_mean_loss(weighted: bool, options: Any) -> None:
    rows = noisy(weighted=weighted)
    result = hogwild.train(rows, early_stopping=0.2, seed=3, **options, **OPTIONS)
    held = rows.take(held_out(SIZE, 0.2, 3, rows.y)[1])
    counted = np.ones(len(held)) if held.sample_weight is None else held.sample_weight
    if options:
        counted = counted * np.where(held.y == 1, 3.0, 1.0)
    scores = result.model.decision_function(held).astype(float)
    expected = np.average(np.logaddexp(0, -held.y * scores), weights=counted)
    best = min(row["held_out_loss"] for row in result.trace)
    assert best == pytest.approx(expected, rel=1e-6)


def poisoned(rows: Rows, held: Any) -> Rows:
    """Other values in the rows that are held out, and other labels if there are no classes.

    Which rows of a class are held out depends on where its rows are: labels must stay there.
    """
    X, y = rows.to_scipy().copy(), rows.y.copy()
    for row in held:
        X.data[X.indptr[row] : X.indptr[row + 1]] *= -50
    if len(set(y)) > 2:
        y[held] = 1e6
    return Rows(X, y)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": "combine"},
        {"class_weight": "balanced"},
        {"deterministic": True},
        {"task": "regression"},
    ],
    ids=str,
)
def test_rows_that_are_held_out_change_nothing_that_is_learned(options: Any) -> None:
    """Nor the rate that is searched, nor which means are taken."""
    rows, strata = noisy(), None
    if "task" in options:
        rows = with_labels(rows, rows.y + np.random.default_rng(2).normal(size=SIZE))
    else:
        strata = rows.y
    learned, held = held_out(SIZE, 0.2, 0, strata)
    given = OPTIONS | {"epochs": 6, "patience": 6} | options
    one = hogwild.train(rows, early_stopping=0.2, **given)
    other = hogwild.train(poisoned(rows, held), early_stopping=0.2, **given)
    plain = hogwild.train(rows.take(learned), **given)
    for key in ("objective", "rate", "weights"):
        values = [[row[key] for row in result.trace] for result in (one, other, plain)]
        assert values[0] == values[1] == values[2]
    assert one.header["chosen"]["eta0"] == plain.header["chosen"]["eta0"]
    assert one.trace[-1]["held_out_loss"] != other.trace[-1]["held_out_loss"]
    for some in (one, other):
        assert np.array_equal(some.state.weights["stored"], plain.state.weights["stored"])


def test_the_same_bytes_with_any_number_of_workers() -> None:
    rows = noisy()
    given = OPTIONS | {"deterministic": True, "early_stopping": 0.2}
    models = [hogwild.train(rows, **(given | {"workers": n})).model for n in (1, 2, 3)]
    assert same(models[0], models[1])
    assert same(models[0], models[2])


def test_rows_of_a_file_judge_as_rows_do(tmp_path: Path) -> None:
    rows, judge = noisy(), noisy(seed=1)
    hogwild.save(judge, tmp_path / "judge.svm")
    hogwild.save(rows, tmp_path / "rows.svm")
    one = hogwild.train(rows, validate=judge, **OPTIONS)
    other = hogwild.train(tmp_path / "rows.svm", validate=tmp_path / "judge.svm", **OPTIONS)
    assert one.reason == other.reason == "overfitting"
    assert [row["held_out_loss"] for row in one.trace] == [
        row["held_out_loss"] for row in other.trace
    ]
    plain = hogwild.train(rows, **(OPTIONS | {"epochs": len(one.trace)}))
    assert np.array_equal(one.state.weights["stored"], plain.state.weights["stored"])


def test_a_regression_stops_early_too() -> None:
    rows = noisy()
    random = np.random.default_rng(2)
    numbers = with_labels(rows, rows.y * 3.0 + random.normal(size=SIZE))
    result = hogwild.train(numbers, early_stopping=0.2, **(OPTIONS | {"task": "regression"}))
    assert result.reason == "overfitting"
    best = min(result.trace, key=lambda row: row["held_out_loss"])
    assert best["held_out_loss"] == pytest.approx(best["held_out_rmse"] ** 2 / 2)
    assert result.header["data"]["held_out"] == SIZE // 5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"early_stopping": 0.1, "validate": noisy(1)}, "validate: not together with early_st"),
        ({"objective_every": 0, "validate": noisy(1)}, "validate: it needs an objective_every"),
        ({"objective_every": 0, "early_stopping": 0.1}, "early_stopping: it needs an objective_ev"),
        ({"early_stopping": 0.6}, r"early_stopping: must be at most 0\.5"),
        ({"patience": 0}, "patience: must be at least 1"),
        ({"patience": 3, "solver": "dual"}, "patience: the solver dual stops by what it proves"),
    ],
)
def test_options_that_do_not_go_together(given: Any, words: str) -> None:
    with pytest.raises(hogwild.OptionError, match=words):
        hogwild.train(noisy(), **(OPTIONS | given))


def test_patience_is_an_option_of_sgd_or_of_rows_to_judge_by() -> None:
    options = OPTIONS | {"patience": 3, "epochs": 2}
    assert (
        hogwild.train(noisy(), **options | {"solver": "auto"}).header["chosen"]["solver"] == "sgd"
    )
    options["solver"] = "dual"
    assert len(hogwild.train(noisy(), validate=noisy(1), **options).trace) == 2


def test_ratings_are_not_judged_by_rows() -> None:
    ratings = hogwild.Ratings(sparse.identity(5, format="csr"))
    with pytest.raises(
        hogwild.OptionError, match="validate: not available for the task mf; give early_stopping"
    ):
        hogwild.train(ratings, validate=noisy())
