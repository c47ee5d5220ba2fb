"""HogwildClassifier: at home in scikit-learn, and usable without it."""

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import HogwildClassifier
from hogwild.data.synthetic import rcv1


@pytest.fixture(scope="module")
def data() -> tuple[Any, np.ndarray]:
    rows, _ = rcv1(2000, 500, nonzeros=20)
    assert rows.y is not None
    return rows.to_scipy(), rows.y


def test_it_learns_and_says_how(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    classifier = HogwildClassifier(random_state=0).fit(X, y)
    assert classifier.score(X, y) > 0.85
    assert classifier.coef_.shape == (1, 500)
    assert classifier.intercept_.shape == (1,)
    assert classifier.classes_.tolist() == [-1, 1]
    assert classifier.n_features_in_ == 500
    assert classifier.n_iter_ == len(classifier.history_) <= 20
    assert classifier.history_[-1]["objective"] == pytest.approx(
        classifier.model_.evaluate(X, y)["objective"], rel=1e-5
    )
    scores = X @ classifier.coef_[0] + classifier.intercept_[0]
    np.testing.assert_allclose(classifier.decision_function(X), scores, rtol=1e-4, atol=1e-5)


def test_labels_come_back_in_their_own_kind(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    words = np.where(y > 0, "yes", "no")
    classifier = HogwildClassifier(random_state=0).fit(X, words)
    assert classifier.classes_.tolist() == ["no", "yes"]
    assert set(classifier.predict(X)) == {"no", "yes"}
    assert classifier.score(X, words) > 0.85


@pytest.mark.parametrize("loss", ["log_loss", "logistic", "modified_huber"])
def test_probabilities(data: tuple[Any, np.ndarray], loss: str) -> None:
    X, y = data
    classifier = HogwildClassifier(loss, random_state=0).fit(X, y)
    odds = classifier.predict_proba(X)
    assert odds.shape == (2000, 2)
    np.testing.assert_allclose(odds.sum(axis=1), 1)
    decided = odds[:, 1] != odds[:, 0]
    said = classifier.predict(X)[decided]
    assert (classifier.classes_[odds.argmax(axis=1)][decided] == said).all()


def test_hinge_has_no_probabilities() -> None:
    assert not hasattr(HogwildClassifier("hinge"), "predict_proba")
    assert hasattr(HogwildClassifier("log_loss"), "predict_proba")


def test_partial_fit_goes_on_where_it_stopped(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    classifier = HogwildClassifier("log_loss", random_state=0)
    errors = []
    for begin in [*range(0, 2000, 500)] * 4:
        part = slice(begin, begin + 500)
        classifier.partial_fit(X[part], y[part], classes=[-1, 1])
        errors.append(1 - classifier.score(X, y))
    assert classifier.n_iter_ == 16
    assert errors[-1] < errors[0]
    assert errors[-1] < 0.15
    whole = HogwildClassifier("log_loss", random_state=0, max_iter=4, tol=None).fit(X, y)
    objective = classifier.model_.evaluate(X, y)["objective"]
    assert objective == pytest.approx(whole.model_.evaluate(X, y)["objective"], rel=0.05)


def test_partial_fit_on_rows_of_one_class(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    classifier = HogwildClassifier(random_state=0)
    classifier.partial_fit(X[y > 0], y[y > 0], classes=[-1, 1])
    classifier.partial_fit(X[y < 0], y[y < 0])
    assert classifier.classes_.tolist() == [-1, 1]
    with pytest.raises(ValueError, match="classes are"):
        classifier.partial_fit(X, y, classes=[0, 1])


def test_fit_begins_anew(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    once = HogwildClassifier(random_state=0).fit(X, y)
    twice = HogwildClassifier(random_state=0).fit(X[:100], y[:100]).fit(X, y)
    assert once.coef_.tobytes() == twice.coef_.tobytes()


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


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"alpha": -1, "max_iter": 0}, "alpha: must be at least 0, not -1\nmax_iter: must be at"),
        ({"loss": "cubed"}, "loss: 'cubed' is not one of"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_wrong_parameters_are_named_as_they_were_given(
    data: tuple[Any, np.ndarray], params: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        HogwildClassifier(**params).fit(*data)


def test_wrong_data(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    classifier = HogwildClassifier()
    with pytest.raises(ValueError, match="not fitted"):
        classifier.predict(X)
    with pytest.raises(ValueError, match="y is missing"):
        classifier.fit(X)
    classifier.fit(X, y)
    with pytest.raises(ValueError, match="the data has 499 columns and the model 500"):
        classifier.predict(X[:, :499])


def test_scikit_learns_tools(data: tuple[Any, np.ndarray]) -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    X, y = data
    classifier = HogwildClassifier(alpha=1e-3, random_state=0)
    assert clone(classifier).get_params() == classifier.get_params()
    pipeline = make_pipeline(MaxAbsScaler(), classifier).fit(X, y)
    assert pipeline.score(X, y) > 0.85
    grid = GridSearchCV(classifier, {"alpha": [1e-4, 1.0]}, cv=3, scoring="roc_auc").fit(X, y)
    assert grid.best_score_ > 0.9
    assert cross_val_score(HogwildClassifier("log_loss"), X, y, scoring="neg_log_loss").mean() > -1
    assert "alpha=0.001" in repr(classifier)


WITHOUT = """
    import sys
    sys.modules["sklearn"] = None
    import numpy as np
    from hogwild import HogwildClassifier
    X = np.repeat(np.eye(2), 50, axis=0)
    y = np.repeat([0, 1], 50)
    classifier = HogwildClassifier(random_state=0).set_params(alpha=1e-3)
    assert classifier.get_params()["alpha"] == 1e-3
    assert classifier.fit(X, y).score(X, y) == 1
    try:
        HogwildClassifier().predict(X)
    except ValueError as problem:
        print(problem)
"""


def test_without_scikit_learn() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(WITHOUT)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert "not fitted yet" in done.stdout


def test_rows_are_taken_as_they_are() -> None:
    rows, _ = rcv1(500, 400)
    classifier = HogwildClassifier(random_state=0).fit(rows)
    assert classifier.predict(rows).shape == (500,)
    assert isinstance(classifier.model_, hogwild.LinearModel)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("chunk", [50, 100])
def test_a_stream_of_small_chunks_is_learned(loss: str, chunk: int) -> None:
    from scipy import sparse

    X = sparse.random(2000, 300, 0.05, "csr", random_state=0)
    y = np.sign(X @ np.random.default_rng(0).normal(size=300))
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(2000)
        classifier = HogwildClassifier(loss, random_state=seed)
        for begin in range(0, 2000, chunk):
            part = order[begin : begin + chunk]
            classifier.partial_fit(X[part], y[part], classes=[-1, 1])
        assert classifier.score(X, y) > 0.75


def test_classes_keep_what_the_first_rows_do_not_show() -> None:
    X = np.eye(4)
    classifier = HogwildClassifier(random_state=0)
    classifier.partial_fit(X, ["a"] * 4, classes=["a", "bcd"])
    assert classifier.classes_.tolist() == ["a", "bcd"]
    classifier.partial_fit(X, ["bcd"] * 4)
    with pytest.raises(ValueError, match="give them alone"):
        classifier.fit(hogwild.Rows(X, [0, 1, 0, 1]), [0, 1, 0, 1])


@pytest.mark.parametrize("y", [[b"a", b"b"] * 2, [1, "a"] * 2, [1, None] * 2, [1j, 2] * 2])
def test_labels_that_no_model_file_can_hold_are_refused(y: Any) -> None:
    labels = np.array(y, dtype=object) if len({type(v) for v in y}) > 1 else np.array(y)
    with pytest.raises(hogwild.DataError, match="label"):
        HogwildClassifier().fit(np.eye(4), labels)
