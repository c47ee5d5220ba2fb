"""HogwildClassifier: what it learns, says of rows, and goes on from."""

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import hogwild
from hogwild import HogwildClassifier

TO_THE_END = {"max_iter": 200, "tol": None, "random_state": 0}


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
    weights = np.where(classifier.predict(X) == words, 0.0, 1.0)
    assert classifier.score(X, words, sample_weight=weights) == 0


@pytest.mark.parametrize("loss", ["log_loss", "logistic", "modified_huber"])
def test_probabilities(data: tuple[Any, np.ndarray], loss: str) -> None:
    X, y = data
    classifier = HogwildClassifier(loss, random_state=0).fit(X, y)
    odds = classifier.predict_proba(X)
    assert odds.shape == (2000, 2)
    np.testing.assert_allclose(odds.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(classifier.predict_log_proba(X)), odds)
    decided = odds[:, 1] != odds[:, 0]
    said = classifier.predict(X)[decided]
    assert (classifier.classes_[odds.argmax(axis=1)][decided] == said).all()


def test_hinge_has_no_probabilities() -> None:
    assert not hasattr(HogwildClassifier("hinge"), "predict_proba")
    assert hasattr(HogwildClassifier("log_loss"), "predict_proba")


def test_logistic_regression_is_that_of_scikit_learn(plane: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = plane
    found = HogwildClassifier("log_loss", alpha=0.1, **TO_THE_END).fit(X, y > 2)
    known = LogisticRegression(C=1 / (0.1 * len(y)), tol=1e-8).fit(X, y > 2)
    np.testing.assert_allclose(found.coef_, known.coef_, atol=0.005)
    np.testing.assert_allclose(found.intercept_, known.intercept_, atol=0.005)


@pytest.mark.parametrize(
    "loss",
    ["log_loss", *(pytest.param(s, marks=pytest.mark.slow) for s in ("squared_hinge", "hinge"))],
)
def test_a_weight_of_k_is_k_copies(loss: str, plane: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = plane[0], plane[1] > 2
    weights = np.arange(len(y)) % 4
    copies = X.repeat(weights, axis=0), y.repeat(weights)
    weighted = HogwildClassifier(loss, alpha=0.1, **TO_THE_END).fit(X, y, sample_weight=weights)
    copied = HogwildClassifier(loss, alpha=0.1, **TO_THE_END).fit(*copies)
    objectives = [one.model_.evaluate(*copies)["objective"] for one in (weighted, copied)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-3 if loss == "hinge" else 1e-4)
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=0.02)


@pytest.mark.parametrize("class_weight", [{False: 3.0, True: 1.0}, "balanced"])
def test_class_weights_are_sample_weights(
    class_weight: Any, plane: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = plane[0], plane[1] > 4
    counts = {label: np.mean(y == label) for label in (False, True)}
    by_class = {c: 0.5 / counts[c] for c in counts} if class_weight == "balanced" else class_weight
    given = np.where(y, by_class[True], by_class[False])
    weighted = HogwildClassifier("log_loss", random_state=0, class_weight=class_weight).fit(X, y)
    known = HogwildClassifier("log_loss", random_state=0).fit(X, y, sample_weight=given)
    np.testing.assert_allclose(weighted.coef_, known.coef_, rtol=1e-3, atol=1e-4)
    plain = HogwildClassifier("log_loss", random_state=0).fit(X, y)
    assert not np.allclose(weighted.coef_, plain.coef_, rtol=0.05)


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


def test_partial_fit_takes_sample_weights(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    flipped = np.concatenate([y, -y])
    twice = hogwild.Rows(X, y).to_scipy()[np.r_[0:2000, 0:2000]]
    only_the_first = np.repeat([1.0, 0.0], 2000)
    classifier = HogwildClassifier(random_state=0)
    for _ in range(3):
        classifier.partial_fit(twice, flipped, sample_weight=only_the_first)
    assert classifier.score(X, y) > 0.85


def test_partial_fit_on_rows_of_one_class(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    classifier = HogwildClassifier(random_state=0)
    classifier.partial_fit(X[y > 0], y[y > 0], classes=[-1, 1])
    classifier.partial_fit(X[y < 0], y[y < 0])
    assert classifier.classes_.tolist() == [-1, 1]
    with pytest.raises(ValueError, match="the model was trained for"):
        classifier.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="balanced"):
        HogwildClassifier(class_weight="balanced").partial_fit(X, y)


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
@pytest.mark.parametrize("chunk", [50, 100])
def test_a_stream_of_small_chunks_is_learned(loss: str, chunk: int) -> None:
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
    assert classifier.n_iter_ == 2


def test_fit_begins_anew_unless_it_is_warm(data: tuple[Any, np.ndarray]) -> None:
    X, y = data
    once = HogwildClassifier(random_state=0).fit(X, y)
    twice = HogwildClassifier(random_state=0).fit(X[:100], y[:100]).fit(X, y)
    assert once.coef_.tobytes() == twice.coef_.tobytes()
    warm = HogwildClassifier(random_state=0, solver="sgd", warm_start=True, max_iter=1, tol=None)
    parts = HogwildClassifier(random_state=0)
    for _ in range(3):
        warm.fit(X, y)
        parts.partial_fit(X, y)
    assert warm.n_iter_ == 3
    assert warm.coef_.tobytes() == parts.coef_.tobytes()
    with pytest.raises(ValueError, match="the label 0"):
        warm.fit(X, np.where(y > 0, 1, 0))
    with pytest.raises(ValueError, match="499 features"):
        warm.fit(X[:, :499], y)


@pytest.mark.parametrize("y", [[b"a", b"b"] * 2, [1, "a"] * 2, [1, None] * 2])
def test_labels_that_no_model_file_can_hold_are_refused(y: Any) -> None:
    labels = np.array(y, dtype=object) if len({type(v) for v in y}) > 1 else np.array(y)
    with pytest.raises(hogwild.DataError, match="label"):
        HogwildClassifier().fit(np.eye(4), labels)


def test_there_must_be_two_classes() -> None:
    with pytest.raises(hogwild.DataError, match="not one class"):
        HogwildClassifier().fit(np.eye(4), [1, 1, 1, 1])


def of_five_classes() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, a class for each, and the labels that each has."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 12)).astype(np.float32)
    scores = X @ random.normal(size=(12, 5))
    return X, np.array(list("edcba"))[scores.argmax(axis=1)], (scores > 1).astype(int)


@pytest.mark.parametrize("loss", ["log_loss", "cross_entropy"])
def test_many_classes_have_a_score_each(loss: str) -> None:
    X, y, _ = of_five_classes()
    classifier = HogwildClassifier(loss, random_state=0).fit(X, y)
    assert classifier.classes_.tolist() == list("abcde")
    assert (classifier.coef_.shape, classifier.intercept_.shape) == ((5, 12), (5,))
    assert classifier.score(X, y) > 0.8
    scores = X @ classifier.coef_.T + classifier.intercept_
    np.testing.assert_allclose(classifier.decision_function(X), scores, rtol=1e-4, atol=1e-4)
    odds = classifier.predict_proba(X)
    np.testing.assert_allclose(odds.sum(axis=1), 1)
    assert (classifier.classes_[odds.argmax(axis=1)] == classifier.predict(X)).all()


def test_softmax_is_that_of_scikit_learn() -> None:
    X, y, _ = of_five_classes()
    found = HogwildClassifier("cross_entropy", alpha=0.1, **TO_THE_END).fit(X, y)
    known = LogisticRegression(C=1 / (0.1 * len(y)), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(found.coef_, known.coef_, atol=0.01)
    np.testing.assert_allclose(found.predict_proba(X), known.predict_proba(X), atol=0.01)


def test_softmax_of_two_classes_has_one_score() -> None:
    X, y, _ = of_five_classes()
    classifier = HogwildClassifier("cross_entropy", random_state=0).fit(X, y == "a")
    assert (classifier.coef_.shape, classifier.intercept_.shape) == ((1, 12), (1,))
    scores = X @ classifier.coef_[0] + classifier.intercept_[0]
    np.testing.assert_allclose(classifier.decision_function(X), scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(classifier.predict_proba(X)[:, 1], expit(scores), atol=1e-4)
    assert (classifier.predict(X) == (scores > 0)).all()


def test_several_labels_are_predicted_as_a_matrix() -> None:
    X, y, labels = of_five_classes()
    classifier = HogwildClassifier("log_loss", random_state=0).fit(X, labels)
    assert classifier.classes_.tolist() == [0, 1, 2, 3, 4]
    assert np.mean(classifier.predict(X) == labels) > 0.9
    assert ((classifier.predict_proba(X) > 0.5) == classifier.predict(X)).all()
    same = HogwildClassifier("log_loss", random_state=0).fit(X, sparse.csr_matrix(labels))
    assert same.coef_.tobytes() == classifier.coef_.tobytes()
    with pytest.raises(ValueError, match="one label a row, but the model was trained for several"):
        classifier.partial_fit(X, y)


def test_partial_fit_knows_classes_that_come_later() -> None:
    X, y, _ = of_five_classes()
    classifier = HogwildClassifier("log_loss", random_state=0)
    for classes in ("ab", "cde", "abcde", "abcde"):
        some = np.isin(y, list(classes))
        classifier.partial_fit(X[some], y[some], classes=list("abcde"))
    assert classifier.score(X, y) > 0.7


def test_a_pickle_of_many_classes_predicts_and_goes_on() -> None:
    X, y, _ = of_five_classes()
    fitted = HogwildClassifier(random_state=0, max_iter=2).fit(X, y)
    for back in [pickle.loads(pickle.dumps(fitted)) for _ in range(8)]:  # wherever these lie
        np.testing.assert_array_equal(back.predict(X), fitted.predict(X))
    assert back.partial_fit(X, y).coef_.tobytes() == fitted.partial_fit(X, y).coef_.tobytes()
