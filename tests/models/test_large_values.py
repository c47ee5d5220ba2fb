"""Scores that overflow are refused, never made labels or rankings of."""

from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.data.ids import Ids
from hogwild.learn.targets import Classes, Counts, Numbers
from hogwild.models.factors import FactorModel
from hogwild.models.heads import HeadsModel
from hogwild.models.linear import LinearModel
from hogwild.models.votes import VoteModel

# The second score is infinite in single precision, and below 0; the third is 0, and becomes NaN
X = np.array([[1, 0, 0, 0, 0], [3e37, -1e37, -1e37, -1e37, -1e37], [3e38, -3e38, 0, 0, 0]])
LARGE = np.full(5, 30, np.float32)
SIGNS = LinearModel(LARGE, 0, (-1, 1), "logistic")
MODELS = {
    "signs": SIGNS,
    "numbers": LinearModel(LARGE, 0, Numbers(), "squared"),
    "heads": HeadsModel(np.stack([LARGE, -LARGE, LARGE]), np.zeros(3), Classes((1, 2, 3)), "hinge"),
    "votes": VoteModel(np.stack([LARGE, LARGE]), np.zeros(2), (-1, 1), "hinge"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("row", [1, 2])
def test_scores_that_overflow(name: str, row: int) -> None:
    model: Any = MODELS[name]
    assert np.isfinite(model.decision_function(X[:1])).all()
    given = hogwild.Rows(X[[0, row]], [1, -1], name="a.svm")
    for work in (model.decision_function, model.predict, model.evaluate):
        with pytest.raises(hogwild.DataError, match=r"a\.svm: the score of row 2 is too large"):
            work(given)


def test_expected_counts_that_overflow() -> None:
    model = LinearModel(LARGE, 0, Counts(), "poisson")
    assert np.isfinite(model.predict(X[:1])).all()
    with pytest.raises(hogwild.DataError, match="row 1 is too large"):
        model.predict(100 * X[:1])


def test_factors_whose_products_overflow() -> None:
    factors, biases = np.full((2, 2), 1e20, np.float32), np.zeros(2, np.float32)
    ids = Ids.numbered(2)
    model = FactorModel(factors, factors, biases, biases, 0.0, ids, ids, "squared")
    for work in (
        lambda: model.predict([0], [1]),
        lambda: model.recommend(0),
        model.recommend,
        lambda: model.evaluate([0], [1], [1.0]),
    ):
        with pytest.raises(hogwild.DataError, match="too large for single precision"):
            work()
