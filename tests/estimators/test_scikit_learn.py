"""The estimators keep scikit-learn's rules: its checks, cloning, searching, routing, pickling."""

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import hogwild
from hogwild import HogwildClassifier, HogwildRegressor

ONE_STEP = "a row of weight k is one long step of SGD, and its k copies are k steps, elsewhere"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ONE_STEP,
    "check_sample_weight_equivalence_on_sparse_data": ONE_STEP,
}


@parametrize_with_checks(
    [
        HogwildClassifier(),
        HogwildClassifier("log_loss"),
        HogwildClassifier("perceptron"),
        HogwildRegressor(),
    ],
    expected_failed_checks=lambda estimator: EXPECTED,
)
def test_scikit_learns_own_checks(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [HogwildClassifier("cross_entropy")], expected_failed_checks=lambda estimator: EXPECTED
)
def test_scikit_learns_checks_of_several_classes_at_once(
    estimator: BaseEstimator, check: Any
) -> None:
    check(estimator)


def test_its_tools(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    classifier = HogwildClassifier(alpha=1e-3, random_state=0)
    assert clone(classifier).get_params() == classifier.get_params()
    assert make_pipeline(MaxAbsScaler(), classifier).fit(X, y).score(X, y) > 0.85
    grid = GridSearchCV(classifier, {"alpha": [1e-4, 1.0]}, cv=3, scoring="roc_auc").fit(X, y)
    assert grid.best_score_ > 0.9
    assert cross_val_score(HogwildClassifier("log_loss"), X, y, scoring="neg_log_loss").mean() > -1
    assert "alpha=0.001" in repr(classifier)


def test_sample_weights_are_routed(plane: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = plane
    weights = np.where(y > 2, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        regressor = HogwildRegressor(random_state=0, max_iter=3).set_fit_request(sample_weight=True)
        regressor.set_score_request(sample_weight=True)
        found = cross_validate(
            regressor, X, y, params={"sample_weight": weights}, return_estimator=True, cv=2
        )
    half = slice(100, 200)  # the first fold is what was held out
    by_hand = HogwildRegressor(random_state=0, max_iter=3)
    by_hand.fit(X[half], y[half], sample_weight=weights[half])
    assert found["estimator"][0].coef_.tobytes() == by_hand.coef_.tobytes()
    score = by_hand.score(X[:100], y[:100], sample_weight=weights[:100])
    assert found["test_score"][0] == pytest.approx(score)


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
def test_pickles_predict_and_go_on_and_hold_no_data(kind: Any, data: tuple[Any, Any]) -> None:
    X, y = data
    fitted = kind(random_state=0, max_iter=2).fit(X, y, sample_weight=np.ones(len(y)))
    pickled = pickle.dumps(fitted)
    assert len(pickled) < 20_000 < X.data.nbytes
    back = pickle.loads(pickled)
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))
    again = [one.partial_fit(X, y).coef_.tobytes() for one in (back, fitted)]
    assert again[0] == again[1]


@pytest.mark.parametrize("name", ["HogwildClassifier", "HogwildRegressor", "MatrixFactorization"])
def test_without_scikit_learn_an_estimator_says_what_to_install(name: str) -> None:
    code = f"import sys; sys.modules['sklearn'] = None; import hogwild; hogwild.{name}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert message.startswith("ImportError")
    assert 'pip install "hogwild[sklearn]"' in message


def test_training_needs_no_scikit_learn_and_does_not_import_it() -> None:
    code = """
import sys
import numpy as np
import hogwild
hogwild.train(hogwild.Rows(np.repeat(np.eye(2), 50, axis=0), np.repeat([0, 1], 50)))
print("sklearn" in sys.modules, "HogwildRegressor" in dir(hogwild))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "False True\n"
    assert hogwild.HogwildRegressor is HogwildRegressor
