"""Metrics against their definitions, counted pair by pair."""

import numpy as np
import pytest

from hogwild.learn.metrics import CLASS_METRICS, NUMBER_METRICS, auc, confusion, error, log_loss

RNG_ROWS = 60
ONES = np.ones(RNG_ROWS)


@pytest.fixture(params=[0, 1, 2])
def data(request: pytest.FixtureRequest) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(request.param)
    scores = rng.integers(-4, 5, RNG_ROWS).astype(float)  # many ties, some zeros
    return scores, rng.choice([-1.0, 1.0], RNG_ROWS)


def test_error_and_confusion(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, targets = data
    said = [1 if score > 0 else -1 for score in scores]
    wrong = sum(s != t for s, t in zip(said, targets, strict=True))
    assert error(scores, targets, ONES, "hinge") == wrong / len(scores)
    counts = confusion(scores, targets, ONES, "hinge")
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
    assert auc(scores, targets, ONES, "hinge") == pytest.approx(np.mean(pairs))


def test_auc_of_one_class_is_none() -> None:
    assert auc(np.arange(3.0), np.ones(3), np.ones(3), "hinge") is None


def test_log_loss_is_finite_however_sure_and_wrong() -> None:
    assert log_loss(np.array([-1000.0]), np.array([1.0]), np.ones(1), "logistic") == 1000.0
    assert np.isfinite(
        log_loss(np.array([-5.0]), np.array([1.0]), np.ones(1), "modified_huber") or 0
    )
    assert log_loss(np.array([1.0]), np.array([1.0]), np.ones(1), "hinge") is None
    assert log_loss(np.zeros(2), np.array([1.0, -1.0]), np.ones(2), "logistic") == pytest.approx(
        np.log(2)
    )


def test_the_registry_is_whole() -> None:
    assert {"error", "log_loss", "auc", "confusion"} <= set(CLASS_METRICS)


def test_a_weight_counts_like_so_many_rows(data: tuple[np.ndarray, np.ndarray]) -> None:
    scores, targets = data
    weights = np.random.default_rng(9).integers(0, 4, RNG_ROWS)
    often = np.repeat(np.arange(RNG_ROWS), weights)
    for name, metric in (CLASS_METRICS | NUMBER_METRICS).items():
        loss = "poisson" if name == "deviance" else "logistic"
        given = np.abs(targets) if name == "deviance" else targets
        found = metric(scores, given, weights.astype(float), loss)
        assert found == pytest.approx(
            metric(scores[often], given[often], np.ones(len(often)), loss)
        )
