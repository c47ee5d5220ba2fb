"""The parameters of estimators: what options they become, and how wrong ones are named."""

from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import HogwildClassifier, HogwildRegressor
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


def test_random_state(data: tuple[Any, np.ndarray]) -> None:
    X, y = data

    def bytes_of(state: Any) -> bytes:
        return bytes(HogwildClassifier(random_state=state, max_iter=1).fit(X, y).coef_.tobytes())

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
def test_n_jobs(data: tuple[Any, np.ndarray], jobs: int | None) -> None:
    X, y = data
    assert HogwildClassifier(n_jobs=jobs, random_state=0).fit(X, y).score(X, y) > 0.85


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
