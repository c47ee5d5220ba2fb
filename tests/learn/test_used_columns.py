"""Columns that no row uses make no difference, whatever learns."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import Rows, search, train
from hogwild.data import used_columns
from hogwild.data.used_columns import FEWEST, WORTH, Numbering, renumbered
from hogwild.errors import DataError
from hogwild.results import State

SIZE, USED, ALL = 400, 70, FEWEST + 1234
PLACES = np.sort(np.random.default_rng(5).choice(ALL, USED, replace=False))
PLACES[-1] = ALL - 1
USUAL: dict[str, Any] = {"deterministic": True, "epochs": 6, "tol": 0}
TRAININGS: dict[str, dict[str, Any]] = {
    "dual": {"solver": "dual"},
    "newton": {"solver": "newton", "task": "logistic"},
    "interior points": {"solver": "newton", "loss": "hinge"},
    "interior points, numbers": {"task": "regression", "solver": "newton", "loss": "absolute"},
    "coordinate": {"task": "logistic", "l1": 1e-2, "l2": 0.0},
    "closed": {"task": "regression", "solver": "closed"},
    "sgd": {"solver": "sgd"},
    "hogwild": {"strategy": "hogwild", "workers": 1, "deterministic": False},
    "two workers": {"strategy": "ordered", "workers": 2},
    "early": {"solver": "sgd", "early_stopping": 0.2},
    "adaptive": {"solver": "sgd", "schedule": "adaptive"},
    "ftrl": {"solver": "sgd", "l1": 1e-3},
    "perceptron": {"loss": "perceptron", "l2": 0.0},
    "vote": {"merge": "vote", "workers": 2, "strategy": "averaged", "deterministic": False},
    "classes": {"classes": 4},
    "softmax": {"task": "softmax", "classes": 4},
    "classes by sgd": {"classes": 4, "solver": "sgd"},
}


def few(size: int = SIZE, classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    """Rows of the used columns, each of which occurs, and labels."""
    random = np.random.default_rng(seed)
    X = sparse.random(size, USED, 0.2, "csr", np.float32, random)
    X = sparse.vstack([np.ones((1, USED), np.float32), X[1:]], format="csr")
    w = np.random.default_rng(3).normal(size=(USED, classes))
    scores = X @ w + 0.5 * random.normal(size=(size, classes))
    y = np.where(scores[:, 0] > 0, 1, -1) if classes == 2 else scores.argmax(axis=1)
    return sparse.csr_matrix(X), y


def spread(X: Any, columns: int = ALL) -> Any:
    """The same rows among many columns."""
    return sparse.csr_matrix((X.data, PLACES[X.indices], X.indptr), shape=(X.shape[0], columns))


def numbers_of(model: Any) -> Any:
    return np.atleast_2d(model.members[:, :-1] if hasattr(model, "members") else model.weights)


@pytest.mark.parametrize("name", TRAININGS)
def test_weights_are_those_of_the_used_columns_to_the_bit(name: str) -> None:
    options = USUAL | TRAININGS[name]
    X, y = few(classes=options.pop("classes", 2))
    T, targets = few(90, len(np.unique(y)), seed=1)
    wide, narrow = (
        train(Rows(change(X), y), test=Rows(change(T), targets), **options)
        for change in (spread, sparse.csr_matrix)
    )
    found, expected = numbers_of(wide.model), numbers_of(narrow.model)
    assert found.shape[-1] == ALL
    if name != "vote":  # whose workers write to their own copies as they come
        assert found[..., PLACES].tobytes() == expected.tobytes()
        assert wide.trace[-1]["objective"] == narrow.trace[-1]["objective"]
        shown = next(key for key in wide.trace[-1] if key.startswith("test_"))
        assert wide.trace[-1][shown] == narrow.trace[-1][shown]
    assert np.count_nonzero(np.delete(found, PLACES, axis=-1)) == 0
    assert f"{ALL:,} columns ({USED:,} in use)" in wide.header["summary"][0]


def test_no_copy_is_made_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = few()
    options = USUAL | {"solver": "dual"}
    expected = train(Rows(spread(X), y), **options).model.weights
    rows = Rows(spread(X), y)
    memory = 4 * rows.nonzeros - 1
    monkeypatch.setattr("hogwild.learn.used_columns.available_memory", lambda: memory)
    result = train(rows, **options)
    assert "in use" not in result.header["summary"][0]
    np.testing.assert_allclose(result.model.weights, expected, 1e-4, 1e-6)


@pytest.mark.parametrize("name", ["dual", "newton", "sgd", "adaptive", "classes by sgd"])
def test_training_goes_on_from_a_state_whatever_columns_the_next_rows_use(name: str) -> None:
    options = USUAL | TRAININGS[name]
    X, y = few(classes=options.pop("classes", 2))
    results = []
    for change in (spread, sparse.csr_matrix):
        rows = Rows(change(X), y)
        state = train(rows, **options).state
        assert state is not None
        state.weights.pop("row_state", None)
        # Newton's method has other steps with few columns, and ends at the same optimum
        more = options | {"epochs": 60 if name == "newton" else 2}
        results.append(train(rows.part(np.arange(50)), start=state, **more).model)
    found, expected = map(numbers_of, results)
    np.testing.assert_allclose(found[..., PLACES], expected, 2e-4, 2e-5)


def test_states_that_no_training_ended_with_are_refused() -> None:
    X, y = few()
    rows = Rows(spread(X), y)
    state = train(rows, **USUAL).state
    assert state is not None and len(state.weights["used"]) == USED + 1
    used = state.weights["used"]
    for wrong in (used[::-1].copy(), used[:-1], used.astype(np.float64), used[:0], used - ALL):
        with pytest.raises(DataError, match="columns are damaged"):
            train(rows, start=State(state.weights | {"used": wrong}, 0, 0, 0.0), **USUAL)
    with pytest.raises(DataError, match=f"needs {ALL + 7:,} weights"):
        train(rows.widened(ALL + 7), start=state, **USUAL)


def test_a_checkpoint_is_for_the_same_columns(tmp_path: Any) -> None:
    X, y = few()
    rows, file = Rows(spread(X), y), tmp_path / "run.ckpt"
    whole = train(rows, **USUAL | {"epochs": 9})
    train(rows, checkpoint=file, **USUAL)
    resumed = train(rows, resume=file, **USUAL | {"epochs": 9})
    assert resumed.model.weights.tobytes() == whole.model.weights.tobytes()
    X_moved = spread(X)
    X_moved.indices += 1 - (X_moved.indices == ALL - 1)
    with pytest.raises(hogwild.OptionError, match="data"):
        train(Rows(X_moved, y), resume=file, **USUAL)


def test_a_search_has_the_same_table_and_pick() -> None:
    X, y = few()
    found = [
        search(Rows(change(X), y), task="logistic", l2=[1e-2, 1e-3, 1e-4], folds=3, workers=1)
        for change in (spread, sparse.csr_matrix)
    ]
    for wide, narrow in zip(*(one.table for one in found), strict=True):
        assert wide["loss"] == pytest.approx(narrow["loss"], 1e-3)
    assert found[0].model.weights[PLACES].tobytes() == found[1].model.weights.tobytes()


def test_an_estimator_continues_with_other_columns() -> None:
    X, y = few()
    model = hogwild.HogwildClassifier(loss="log_loss", solver="sgd", warm_start=True)
    before = model.fit(spread(X), y).score(spread(X), y)
    assert before > 0.7
    assert model.partial_fit(spread(X)[:100], y[:100]).score(spread(X), y) > before - 0.05
    assert model.coef_.shape == (1, ALL)


def test_columns_are_named_as_they_were_given() -> None:
    X, y = few()
    X.data[X.indices == 7] *= 1e5
    with pytest.raises(hogwild.HogwildError, match=f"{PLACES[7]} "):
        train(Rows(spread(X), y), solver="sgd", schedule="constant", eta0=1e9, l2=1e-4)


def test_parts_of_rows_share_one_numbering_and_changed_rows_are_refused() -> None:
    X, y = few()
    X = spread(X)
    X.indices = X.indices.astype(np.uint32)
    rows = Rows(X, y)
    first, second = (renumbered(rows.part(np.arange(k, k + 9))) for k in (0, 99))
    assert first is second
    assert first is not None
    assert np.array_equal(first[0].columns, PLACES)
    known = len(used_columns._known)
    X.indices[:] = 0
    with pytest.raises(DataError, match="changed"):
        renumbered(rows)
    del rows, first, second
    assert len(used_columns._known) == known - 1


def test_rows_keep_their_columns_where_few_are_unused() -> None:
    values = 2 * FEWEST
    X = sparse.csr_matrix(
        (np.ones(values, np.float32), np.arange(values) // 2, [0, values]), shape=(1, FEWEST)
    )
    assert renumbered(Rows(X)) is None  # all are used
    half = sparse.csr_matrix((X.data, X.indices // 2, X.indptr), shape=X.shape)
    assert renumbered(Rows(half)) is not None
    many = sparse.vstack([half] * (WORTH + 1), format="csr")
    assert renumbered(Rows(many)) is None  # with this many values, numbering would gain little
    assert renumbered(Rows(sparse.csr_matrix(half[:, : FEWEST - 1]))) is None


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_numbering_is_that_of_numpy_for_any_number_of_threads(threads: int) -> None:
    indices = np.random.default_rng(0).integers(0, ALL, 3_000).astype(np.uint32)
    columns, places = np.unique(indices, return_inverse=True)
    found = Numbering.of(indices, ALL, threads=threads)
    assert found is not None
    assert np.array_equal(found.columns, columns)
    assert np.array_equal(found.places(indices, threads), places)
    X = sparse.random(30, ALL, 1e-3, "csr", np.float32, np.random.default_rng(1))
    other = Rows(X).part(np.array([3, 29, 3, 0]))
    narrowed = found.narrowed(other, threads).to_scipy()
    assert np.array_equal(narrowed.toarray(), X[[3, 29, 3, 0]][:, columns].toarray())
    assert Numbering.of(indices, ALL, len(columns) - 1, threads) is None
    assert Numbering.of(indices, ALL, len(columns), threads) is not None
