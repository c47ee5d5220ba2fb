"""Metrics against their definitions, counted pair by pair."""

import numpy as np
import pytest

from hogwild.problems.metrics import METRICS, auc, confusion, error, log_loss

RNG_ROWS = 60


@pytest.fixture(params=[0, 1, 2])
def data(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(request.param)
    scores = rng.integers(-4, 5, RNG_ROWS).astype(float)  # many ties, some zeros
    return scores, rng.choice([-1.0, 1.0], RNG_ROWS)


def test_error_and_confusion(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, targets = data
    said = [1 if score > 0 else -1 for score in scores]
    wrong = sum(s != t for s, t in zip(said, targets, strict=True))
    assert error(scores, targets, "hinge") == wrong / len(scores)
    counts = confusion(scores, targets, "hinge")
    assert sum(counts.values()) == len(scores)
    assert counts["false_positive"] + counts["false_negative"] == wrong
    assert counts["true_positive"] == sum(s == t == 1 for s, t in zip(said, targets, strict=True))


def test_auc_counts_pairs(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, targets = data
    pairs = [
        1.0 if p > n else 0.5 if p == n else 0.0
        for p in scores[targets > 0]
        for n in scores[targets < 0]
    ]
    assert auc(scores, targets, "hinge") == pytest.approx(np.mean(pairs))


def test_auc_of_one_class_is_none() -> None:
    assert auc(np.arange(3.0), np.ones(3), "hinge") is None


def test_log_loss_is_finite_however_sure_and_wrong() -> None:
    assert log_loss(np.array([-1000.0]), np.array([1.0]), "logistic") == 1000.0
    assert np.isfinite(log_loss(np.array([-5.0]), np.array([1.0]), "modified_huber") or 0)
    assert log_loss(np.array([1.0]), np.array([1.0]), "hinge") is None
    assert log_loss(np.zeros(2), np.array([1.0, -1.0]), "logistic") == pytest.approx(np.log(2))


def test_the_registry_is_whole() -> None:
    assert set(METRICS) == {"error", "log_loss", "auc", "confusion"}
