"""The estimators keep scikit-learn's rules: its checks, cloning, searching, routing, pickling."""

import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.callback import ScoringMonitor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import hogwild
from hogwild import HogwildClassifier, HogwildRegressor, MatrixFactorization

# Why a row of weight k is not to 1e-7 the same as k rows. The objectives are: see
# test_a_weight_of_k_is_k_copies
UNEQUAL = {
    "log_loss": "weights of rows, scaled to a mean of 1, are rounded to single precision",
    "cross_entropy": "scores of classes together are in single precision on the way",
    "perceptron": "a row of weight k is one long step, and its k copies are k steps, elsewhere",
}


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn's checks leave files until Python exits, and workers of pytest-xdist do not."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def expected(estimator: Any) -> dict[str, str]:
    """The checks that an estimator cannot pass; each of them must fail."""
    if estimator.loss not in UNEQUAL:
        return {}
    kinds = ("dense", "sparse")
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in kinds]
    return dict.fromkeys(names, UNEQUAL[estimator.loss])


@parametrize_with_checks(
    [
        HogwildClassifier(),
        HogwildClassifier("log_loss"),
        HogwildClassifier("perceptron"),
        HogwildClassifier("squared_hinge"),
        HogwildRegressor(),
    ],
    expected_failed_checks=expected,
    xfail_strict=True,
)
def test_scikit_learns_own_checks(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [HogwildClassifier("cross_entropy")], expected_failed_checks=expected, xfail_strict=True
)
def test_scikit_learns_checks_of_several_classes_at_once(
    estimator: BaseEstimator, check: Any
) -> None:
    check(estimator)


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "exponential", "modified_huber"])
def test_small_data_has_one_answer_whatever_the_order_and_the_copies(loss: str) -> None:
    random = np.random.default_rng(0)
    X, y = random.random((16, 30)), random.integers(0, 3, 16)
    weights = np.repeat([1, 3], 8)  # of mean 2, by which all can be divided without rounding
    order = random.permutation(16)
    given = HogwildClassifier(loss).fit(X[order], y[order], sample_weight=weights[order])
    copied = HogwildClassifier(loss).fit(X.repeat(weights, axis=0), y.repeat(weights))
    assert given.coef_.tobytes() == copied.coef_.tobytes()
    assert given.n_iter_ < 15  # steps that cost nothing are not counted as epochs


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


def test_sample_weights_are_routed_through_a_search_over_a_pipeline(
    data: tuple[Any, np.ndarray],
) -> None:
    X, y = data
    upside_down = np.concatenate([y[:1000], -y[1000:]])
    weights = np.repeat([1.0, 0.0], 1000)  # only rows with the right label count
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = HogwildClassifier(random_state=0).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(MaxAbsScaler(), classifier.set_score_request(sample_weight=True))
        splits = KFold(3, shuffle=True, random_state=0)
        grid = GridSearchCV(pipeline, {"hogwildclassifier__alpha": [1e-4, 1e-3]}, cv=splits)
        grid.fit(X, upside_down, sample_weight=weights)
    assert min(grid.best_score_, grid.score(X, y)) > 0.8  # a half without weights


class Follows:
    """A callback of scikit-learn's; returns True after so many epochs."""

    def __init__(self, enough: int = 1000, **more: Any) -> None:
        self.enough = enough
        self.seen: list[tuple[str, str]] = []
        self.__dict__.update(more)

    def setup(self, estimator: Any, context: Any) -> None:
        self.seen.append(("setup", context.task_name))

    def teardown(self, estimator: Any, context: Any) -> None:
        self.seen.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.seen.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any) -> bool:
        self.seen.append(("end", context.task_name))
        self.fitted = fitted_estimator
        return context.task_name == "epoch" and context.task_id + 1 == self.enough


@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_scikit_learns_callbacks_follow_and_stop(solver: str, data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    scores = ScoringMonitor(scoring="accuracy")
    stops = Follows(2)
    classifier = HogwildClassifier(random_state=0, tol=1e-9, solver=solver, max_iter=50)
    classifier.set_callbacks(scores, stops).fit(X, np.where(y > 0, "yes", "no"))
    assert classifier.n_iter_ == 2
    epoch = [("begin", "epoch"), ("end", "epoch")]
    fit = [("begin", "fit"), *epoch, *epoch, ("end", "fit")]
    assert stops.seen == [("setup", "fit"), *fit, ("teardown", "fit")]
    logged = [row for row in scores.get_logs().data if row["task_name"] == "epoch"]
    score = classifier.score(X, np.where(y > 0, "yes", "no"))
    assert len(logged) == 2
    assert logged[-1]["accuracy"] == score
    assert stops.fitted.predict(X).tolist() == classifier.predict(X).tolist()


def test_scikit_learns_callbacks_follow_other_estimators(
    data: tuple[Any, np.ndarray], plane: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    scores = ScoringMonitor(scoring="r2")
    weights = np.ones(len(plane[1]))
    HogwildRegressor().set_callbacks(scores).fit(*plane, sample_weight=weights)
    assert all("r2" in row for row in scores.get_logs().data)
    scores = ScoringMonitor(scoring="accuracy")
    HogwildClassifier().set_callbacks(scores).fit(hogwild.Rows(X, y))
    assert all("accuracy" in row for row in scores.get_logs().data)
    stops = Follows(3)
    factors = MatrixFactorization(4, tol=None).set_callbacks(stops).fit(X[:50])
    assert factors.n_iter_ == 3
    with pytest.raises(ValueError, match="alpha"):
        HogwildClassifier(alpha=-1).set_callbacks(failed := Follows()).fit(X, y)
    assert failed.seen == [("setup", "fit"), ("begin", "fit"), ("teardown", "fit")]
    whole = Follows(max_propagation_depth=None)  # of a search, down to the epochs
    grid = GridSearchCV(HogwildClassifier(max_iter=2, tol=None), {"alpha": [1e-4, 1e-3]}, cv=2)
    grid.set_callbacks(whole).fit(X, y)
    assert whole.seen.count(("end", "epoch")) == 2 * (2 * 2 + 1)


@pytest.mark.parametrize("kind", [HogwildClassifier, HogwildRegressor])
def test_pickles_predict_and_go_on_and_hold_no_data(kind: Any, data: tuple[Any, Any]) -> None:
    X, y = data
    fitted = kind(random_state=0, max_iter=2, tol=None).fit(X, y, sample_weight=np.ones(len(y)))
    pickled = pickle.dumps(fitted)
    assert len(pickled) < 20_000 < X.data.nbytes
    for part in (X.data, X.indices, y.astype(np.float32)):
        assert part.tobytes()[:400] not in pickled
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
