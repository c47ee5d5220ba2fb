"""HogwildRegressor: every loss comes to its optimum, and what was learned has the right shape."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import random as random_sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.metrics import d2_tweedie_score

import hogwild
from hogwild import HogwildRegressor
from hogwild.estimators import linear
from hogwild.learn.losses import LOSSES

ALPHA = 0.1
TO_THE_END = {
    "alpha": ALPHA,
    "max_iter": 200,
    "tol": None,
    "random_state": 0,
}


def test_squares_are_those_of_ridge(plane: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = plane
    found = HogwildRegressor(**TO_THE_END).fit(X, y)
    known = Ridge(ALPHA * len(y)).fit(X, y)
    np.testing.assert_allclose(found.coef_, known.coef_, atol=0.005)
    np.testing.assert_allclose(found.intercept_, [known.intercept_], atol=0.005)
    assert found.coef_.shape == (10,)
    assert found.score(X, y) == pytest.approx(known.score(X, y), abs=1e-3)
    assert found.predict(X) == pytest.approx(X @ found.coef_ + found.intercept_, abs=1e-4)
    assert found.n_iter_ == len(found.history_) <= 200


@pytest.mark.parametrize(
    ("loss", "own"),
    [
        ("huber", {"epsilon": 0.5}),
        ("epsilon_insensitive", {"epsilon": 0.5}),
        ("quantile", {"quantile": 0.8}),
        ("absolute_error", {}),
    ],
)
def test_other_losses_come_to_the_optimum(
    loss: str, own: dict[str, float], plane: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = plane
    name = loss.removesuffix("_error")
    parameter = next(iter(own.values()), 0.0)

    def objective(v: np.ndarray) -> float:
        scores = X @ v[:-1] + v[-1]
        value = LOSSES[name].value
        losses = [value(*pair, parameter) for pair in zip(scores, y, strict=True)]
        return float(0.5 * ALPHA * v[:-1] @ v[:-1] + np.mean(losses))

    found = HogwildRegressor(loss, **own, **TO_THE_END).fit(X, y)
    best = minimize(objective, np.append(found.coef_, found.intercept_), method="Powell").fun
    assert found.history_[-1]["objective"] == pytest.approx(best, rel=5e-3)


def test_counts_are_predicted_by_poisson() -> None:
    random = np.random.default_rng(0)
    X = random.random(size=(500, 5))
    y = random.poisson(np.exp(X @ [1.0, -1.0, 0.5, 0.0, 1.0]))
    found = HogwildRegressor("poisson", max_iter=100, random_state=0).fit(X, y)
    scores = X @ found.coef_ + found.intercept_
    np.testing.assert_allclose(found.predict(X), np.exp(scores), rtol=1e-4)
    known = PoissonRegressor(alpha=1e-4, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(found.predict(X), known.predict(X), rtol=0.2)
    with pytest.raises(ValueError, match="targets that are not negative"):
        found.fit(X, y - 5)


@pytest.mark.parametrize("mean", [1, 100])
@pytest.mark.parametrize("jobs", [1, 2])
def test_steep_counts_are_learned_nearly_to_the_optimum(mean: int, jobs: int) -> None:
    random = np.random.default_rng(0)
    X = random_sparse(5000, 200, 0.05, "csr", random_state=0, data_rvs=random.standard_normal)
    y = random.poisson(mean * np.exp(0.5 * X @ random.normal(size=200)))
    found = HogwildRegressor("poisson", random_state=0, n_jobs=jobs).fit(X, y)
    known = PoissonRegressor(alpha=1e-4, max_iter=1000).fit(X, y)
    explained = [d2_tweedie_score(y, one.predict(X), power=1) for one in (found, known)]
    assert explained[0] > 0.95 * explained[1]


@pytest.mark.parametrize(
    ("loss", "schedule"),
    [("squared_error", "inverse"), pytest.param("huber", "backoff", marks=pytest.mark.slow)],
)
def test_a_weight_of_k_is_k_copies(
    loss: str, schedule: str, plane: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = plane
    weights = np.arange(len(y)) % 4
    copies = X.repeat(weights, axis=0), y.repeat(weights)
    options: dict[str, Any] = TO_THE_END | {"schedule": schedule}
    weighted = HogwildRegressor(loss, **options).fit(X, y, sample_weight=weights)
    copied = HogwildRegressor(loss, **options).fit(*copies)
    objectives = [one.model_.evaluate(*copies)["objective"] for one in (weighted, copied)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-4)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=0.02)


def test_partial_fit_and_warm_start_go_on(plane: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = plane
    parts: Any = HogwildRegressor(random_state=0)
    more: Any = {"random_state": 0, "solver": "sgd", "max_iter": 1, "tol": None}
    warm: Any = HogwildRegressor(warm_start=True, **more)
    scores = [parts.partial_fit(X, y).score(X, y) for _ in range(5)]
    assert scores[-1] > scores[0]
    for _ in range(5):
        warm.fit(X, y)
    assert warm.coef_.tobytes() == parts.coef_.tobytes()


def test_parameters_that_the_loss_does_not_have_do_not_matter(
    plane: tuple[np.ndarray, np.ndarray],
) -> None:
    found = [
        HogwildRegressor(random_state=0, epsilon=epsilon).fit(*plane).coef_.tobytes()
        for epsilon in (0.1, 5.0)
    ]
    assert found[0] == found[1]
    with pytest.raises(ValueError, match=r"quantile: must be below 1, not 1\.5"):
        HogwildRegressor("quantile", quantile=1.5).fit(*plane)


def test_where_nothing_was_learned_it_warns_and_keeps_the_model(
    plane: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches and scikit-learn's own checks fit noise, too."""

    def train(rows: hogwild.Rows, **options: Any) -> Any:
        error = hogwild.DivergenceError("nothing was learned")
        error.result = hogwild.train(rows, **options)
        raise error

    known = HogwildRegressor(random_state=0).fit(*plane)
    monkeypatch.setattr(linear, "train", train)
    with pytest.warns(ConvergenceWarning, match="nothing was learned"):
        found = HogwildRegressor(random_state=0).fit(*plane)
    assert found.coef_.tobytes() == known.coef_.tobytes()
