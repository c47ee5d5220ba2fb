"""The parameters of estimators: what options they become, and how wrong ones are named."""

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

import hogwild
from hogwild import HogwildClassifier, HogwildRegressor, MatrixFactorization
from hogwild.estimators.parameters import linear_options


def options_of(**parameters: Any) -> dict[str, Any]:
    return linear_options(HogwildClassifier(**parameters))


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        ("l2", {"l2": 0.5}),
        ("l1", {"l1": 0.5, "l2": 0.0}),
        ("elasticnet", {"l1": 0.1, "l2": 0.4}),
        (None, {"l2": 0.0}),
    ],
)
def test_penalties_are_split_as_in_scikit_learn(
    penalty: str | None, expected: dict[str, float]
) -> None:
    options = options_of(penalty=penalty, alpha=0.5, l1_ratio=0.2)
    found = {name: options[name] for name in ("l1", "l2") if name in options}
    assert found == pytest.approx(expected)


def test_without_a_penalty_weights_grow(plane: tuple[np.ndarray, np.ndarray]) -> None:
    penalized, free = (
        HogwildRegressor(penalty=penalty, alpha=10.0, random_state=0).fit(*plane)
        for penalty in ("l2", None)
    )
    assert np.linalg.norm(free.coef_) > 2 * np.linalg.norm(penalized.coef_)


def test_l1_makes_weights_zero(data: tuple[Any, np.ndarray]) -> None:
    few, many = (
        HogwildClassifier(penalty=penalty, alpha=1e-3, random_state=0).fit(*data)
        for penalty in ("l1", "l2")
    )
    assert np.count_nonzero(few.coef_) < 0.8 * np.count_nonzero(many.coef_)
    assert few.score(*data) > 0.85


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
def test_early_stopping_takes_the_best_epoch(kind: Any) -> None:
    random = np.random.default_rng(0)
    X, noise = random.normal(size=(100, 200)), random.normal(size=100) > 0
    stopped = kind(
        alpha=1e-6,
        max_iter=50,
        tol=None,
        early_stopping=True,
        validation_fraction=0.3,
        n_iter_no_change=4,
        random_state=0,
    ).fit(X, noise)
    assert 5 <= stopped.n_iter_ < 50
    with pytest.raises(ValueError, match="early_stopping: True needs all rows at once"):
        stopped.partial_fit(X, noise)


def test_n_iter_no_change_is_how_long_it_waits(data: tuple[Any, np.ndarray]) -> None:
    hasty, patient = (
        HogwildClassifier(
            random_state=0, solver="sgd", tol=0.3, max_iter=50, n_iter_no_change=epochs
        ).fit(*data)
        for epochs in (1, 5)
    )
    assert hasty.n_iter_ + 4 <= patient.n_iter_ < 50


def fit_of(kind: Any, data: tuple[Any, Any], **parameters: Any) -> tuple[bytes, Any]:
    """What an estimator learned, in bytes, and with how many workers."""
    X, y = data
    if kind is MatrixFactorization:
        fitted = kind(4, epochs=2, tol=None, **parameters).fit(X[:50])
        return fitted.item_factors_.tobytes(), fitted.model_.about["options"]["workers"]
    fitted = kind(max_iter=1, tol=None, **parameters).fit(X, y)
    return fitted.coef_.tobytes(), fitted.model_.about["options"]["workers"]


KINDS = [HogwildClassifier, HogwildRegressor, MatrixFactorization]


@pytest.mark.parametrize("kind", KINDS)
def test_random_state_means_the_same_everywhere(kind: Any, data: tuple[Any, np.ndarray]) -> None:
    assert kind().random_state is None

    def bytes_of(state: Any) -> bytes:
        more = {} if kind is MatrixFactorization else {"solver": "sgd"}
        return fit_of(kind, data, random_state=state, **more)[0]

    assert bytes_of(1) == bytes_of(1) != bytes_of(2)
    assert bytes_of(np.random.RandomState(5)) == bytes_of(np.random.RandomState(5))
    np.random.seed(3)
    first = bytes_of(None)
    assert bytes_of(None) != first
    np.random.seed(3)
    assert bytes_of(None) == first
    with pytest.raises(ValueError, match="random_state must be"):
        bytes_of("x")


@pytest.mark.parametrize("jobs", [1, 2, -1, None])
@pytest.mark.parametrize("kind", KINDS)
def test_n_jobs_means_the_same_everywhere(
    kind: Any, jobs: int | None, data: tuple[Any, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def noted(*given: Any, workers: int | None, **options: Any) -> Any:
        asked.append(workers)
        return hogwild.train(*given, workers=workers, **options)

    for module in ("linear", "factorization"):
        monkeypatch.setattr(f"hogwild.estimators.{module}.train", noted)
    assert kind().n_jobs is None
    workers = fit_of(kind, data, n_jobs=jobs)[1]
    wanted = {1: 1, 2: 2, -1: None, None: 1}[jobs]  # for hogwild.train, None is auto
    assert asked == [wanted]
    assert workers == wanted or wanted is None


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
@pytest.mark.parametrize("solver", ["dual", "newton", "sgd"])
def test_every_epoch_has_an_objective(kind: Any, solver: str, data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    loss = "squared_hinge" if kind is HogwildClassifier else "huber"
    fitted = kind(loss, solver=solver, tol=1e-4, max_iter=50, random_state=0).fit(X, y)
    objectives = [row["objective"] for row in fitted.history_]
    assert len(objectives) == fitted.n_iter_ > 1
    assert objectives[-1] < objectives[0]
    found = fitted.model_.evaluate(hogwild.Rows(X, y))["objective"]
    assert objectives[-1] == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit_of_epochs_is_a_convergence_warning(
    kind: Any, data: tuple[Any, np.ndarray]
) -> None:
    X, y = data
    name = "epochs" if kind is MatrixFactorization else "max_iter"
    given = (X[:50],) if kind is MatrixFactorization else (X, y)
    more = {} if kind is MatrixFactorization else {"solver": "sgd"}
    limited = kind(random_state=0, tol=1e-9, **{name: 2}, **more)
    with pytest.warns(ConvergenceWarning, match=f"{name}: training stopped after 2") as warned:
        limited.fit(*given)
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limited.set_params(tol=None).fit(*given)
        limited.set_params(tol=0.5, **{name: 40}).fit(*given)
        limited.partial_fit(*given)


def test_sparsified_weights_predict_and_go_on(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    for kind in (HogwildClassifier, HogwildRegressor):
        with pytest.raises(ValueError, match="not fitted"):
            kind().sparsify()
        fitted = kind(penalty="l1", alpha=1e-3, solver="sgd", random_state=0).fit(X, y)
        dense, predicted = fitted.coef_, fitted.predict(X)
        assert issparse(fitted.sparsify().coef_)
        assert fitted.coef_.nnz == np.count_nonzero(dense) < dense.size
        np.testing.assert_array_equal(fitted.predict(X), predicted)
        np.testing.assert_array_equal(fitted.densify().coef_, dense)
        assert not issparse(fitted.sparsify().partial_fit(X, y).coef_)


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"alpha": -1, "max_iter": 0}, "alpha: must be at least 0, not -1\nmax_iter: must be at"),
        ({"alpha": -1, "penalty": "elasticnet"}, "alpha: must be at least 0, not -1"),
        ({"loss": "huge"}, "loss: 'huge' is not one of"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"penalty": "l3"}, "penalty: 'l3' is not one of l2, l1, elasticnet, None"),
        ({"penalty": "elasticnet", "l1_ratio": 2}, "l1_ratio: must be a number from 0 to 1"),
    ],
)
def test_wrong_parameters_are_named_as_they_were_given(
    plane: tuple[np.ndarray, np.ndarray], kind: Any, parameters: dict[str, Any], words: str
) -> None:
    X, y = plane
    with pytest.raises(hogwild.OptionError, match=words):
        kind(**parameters).fit(X, y > 0)
