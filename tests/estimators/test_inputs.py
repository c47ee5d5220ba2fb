"""What estimators take as X, y and weights, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import HogwildClassifier, HogwildRegressor
from hogwild.estimators import linear

FORMS = [
    sparse.csr_matrix,
    sparse.csc_matrix,
    sparse.coo_matrix,
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    lambda X: X.toarray(),
    lambda X: X.toarray().astype(np.float64),
    lambda X: X.astype(np.float64),
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_x_gives_the_same_model(data: tuple[Any, np.ndarray], form: Any) -> None:
    X, y = data
    other = form(X)
    known = HogwildClassifier(random_state=0, max_iter=2).fit(X, y)
    found = HogwildClassifier(random_state=0, max_iter=2).fit(other, y)
    assert found.coef_.tobytes() == known.coef_.tobytes()
    np.testing.assert_array_equal(found.decision_function(other), known.decision_function(X))


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
def test_rows_are_taken_as_they_are(data: tuple[Any, np.ndarray], kind: Any) -> None:
    X, y = data
    weights = np.linspace(0, 2, len(y))
    rows = hogwild.Rows(X, y)
    known = kind(random_state=0, max_iter=2).fit(X, y, sample_weight=weights)
    for found in (
        kind(random_state=0, max_iter=2).fit(rows, sample_weight=weights),
        kind(random_state=0, max_iter=2).fit(rows.weighted(weights)),
    ):
        assert found.coef_.tobytes() == known.coef_.tobytes()
        assert found.n_features_in_ == 500
        np.testing.assert_array_equal(found.predict(rows), known.predict(X))
    with pytest.raises(ValueError, match="give them alone"):
        kind().fit(rows, y)
    with pytest.raises(ValueError, match="have weights already"):
        kind().fit(rows.weighted(weights), sample_weight=weights)
    with pytest.raises(ValueError, match=r"has no (labels|targets)"):
        kind().fit(hogwild.Rows(X))


def test_float32_csr_is_not_copied(
    data: tuple[Any, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data
    given = []

    def train(rows: hogwild.Rows, **options: Any) -> Any:
        given.append(rows)
        return hogwild.train(rows, **options)

    monkeypatch.setattr(linear, "train", train)
    HogwildClassifier(max_iter=1).fit(X, y)
    assert np.shares_memory(given[0].values, X.data)
    assert np.shares_memory(given[0].indices, X.indices)


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
def test_other_columns_of_a_frame_are_refused(kind: Any) -> None:
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    X = pandas.DataFrame(random.normal(size=(50, 3)), columns=["age", "height", "weight"])
    y = (X["age"] > 0).astype(int)
    fitted = kind(random_state=0).fit(X, y)
    assert fitted.feature_names_in_.tolist() == ["age", "height", "weight"]
    bare = kind(random_state=0).fit(X.to_numpy(), y.to_numpy())
    assert fitted.coef_.tobytes() == bare.coef_.tobytes()
    assert not hasattr(bare, "feature_names_in_")
    with pytest.raises(ValueError, match="must be in the same order"):
        fitted.predict(X[["height", "age", "weight"]])
    renamed = X.rename(columns={"age": "years"})
    for refused in (fitted.predict, lambda X: fitted.partial_fit(X, y)):
        with pytest.raises(ValueError, match=r"(?s)unseen at fit time:\n- years.*missing:\n- age"):
            refused(renamed)
    rows = hogwild.Rows(X.to_numpy(), y.to_numpy())
    assert not hasattr(fitted.fit(rows), "feature_names_in_")


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
def test_wrong_data(data: tuple[Any, np.ndarray], kind: Any) -> None:
    X, y = data
    with pytest.raises(ValueError, match="not fitted"):
        kind().predict(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        kind().fit(X)
    fitted = kind().fit(X, y)
    with pytest.raises(ValueError, match=r"X has 499 features, but .* is expecting 500"):
        fitted.predict(X[:, :499])
    holed = X.astype(np.float64)
    holed.data[3] = np.nan
    with pytest.raises(hogwild.DataError, match=r"X: the value nan in row 1.* is NaN or infinite"):
        fitted.predict(holed)
    holed.data[3] = 1e300
    with pytest.raises(hogwild.DataError, match="is too large for float32"):
        fitted.fit(holed, y)
    with pytest.raises(ValueError, match="not fitted"):
        fitted.predict(X)


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(3), "2,000 rows need 2,000 numbers"),
        (np.full(2000, -1.0), "must be finite and not negative"),
        (np.zeros(2000), "all sample weights are zero"),
    ],
)
def test_wrong_weights(
    data: tuple[Any, np.ndarray], kind: Any, weights: np.ndarray, words: str
) -> None:
    with pytest.raises(hogwild.DataError, match=words):
        kind().fit(*data, sample_weight=weights)
