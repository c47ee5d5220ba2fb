"""Data that the tests of estimators share."""

from typing import Any

import numpy as np
import pytest

from hogwild.data.synthetic import rcv1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Short trainings may end at their limit."""
    for item in items:
        if "tests/estimators" in item.nodeid:
            item.add_marker(
                pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
            )


@pytest.fixture(scope="session")
def data() -> tuple[Any, np.ndarray]:
    """A sparse matrix, and the labels -1 and 1."""
    rows, _ = rcv1(2000, 500, nonzeros=20)
    assert rows.y is not None
    return rows.to_scipy(), rows.y


@pytest.fixture(scope="session")
def plane() -> tuple[np.ndarray, np.ndarray]:
    """Dense rows, and targets near a plane."""
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 10))
    return X, X @ random.normal(size=10) + 2 + random.normal(size=200)
