"""Many classes and several labels by descent: optima, bytes, models, and what is refused."""

import numpy as np
import psutil
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.metrics import accuracy_score, f1_score, hamming_loss, log_loss

import hogwild
from hogwild import DataError, OptionError, Rows
from hogwild.learn import heads as heads_module
from hogwild.learn.linear import LinearProblem
from hogwild.loops.heads import HeadsWorker
from hogwild.loops.strategies import STRATEGIES
from tests import reference
from tests.combinations import each

COLUMNS = 12


def draw(rows=400, heads=5, seed=0):
    """Sparse rows, a class for each, and label sets as a matrix."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, COLUMNS)) * (random.random((rows, COLUMNS)) < 0.5)
    X = X.astype(np.float32)
    scores = X @ random.normal(size=(COLUMNS, heads)) + random.normal(size=(rows, heads))
    return X, scores.argmax(axis=1), (scores > 1.5).astype(np.int8)


def signs_of(y, heads):
    return np.where(y, 1.0, -1.0) if y.ndim == 2 else 2.0 * (y[:, None] == range(heads)) - 1


def solve(X, signs, loss, l2):
    """The optimum that L-BFGS-B finds."""
    heads, start = signs.shape[1], np.zeros((signs.shape[1], COLUMNS + 1))

    def both(flat):
        Wb = flat.reshape(start.shape)
        place = X, signs, Wb[:, :-1], Wb[:, -1], loss, l2
        slopes = reference.heads_gradient(*place)
        return reference.heads_objective(*place), np.column_stack(slopes).ravel()

    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(both, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    assert found.x.size == heads * (COLUMNS + 1)
    return found.fun


def train(X, y, **options):
    given = {"solver": "sgd", "epochs": 4, "tol": 0, "workers": 1, "objective_every": 0} | options
    return hogwild.train(Rows(X, y), **given).model


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "cross_entropy"])
def test_the_references_gradient_is_that_of_its_objective(loss):
    X, y, _ = draw(rows=40)
    signs, random, h = signs_of(y, 5), np.random.default_rng(1), 1e-6
    W, b = random.normal(size=(5, COLUMNS)), random.normal(size=5)
    of_weights, of_intercepts = reference.heads_gradient(X, signs, W, b, loss, 0.1)

    def rise(dW, db):
        up, down = ((X, signs, W + s * dW, b + s * db, loss, 0.1) for s in (h, -h))
        return (reference.heads_objective(*up) - reference.heads_objective(*down)) / (2 * h)

    for head in range(5):
        for column in range(COLUMNS):
            one = np.zeros_like(W)
            one[head, column] = 1
            assert rise(one, 0) == pytest.approx(of_weights[head, column], rel=1e-5, abs=1e-6)
        assert rise(0, np.eye(5)[head]) == pytest.approx(of_intercepts[head], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", ["classes", "labels"])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "cross_entropy"])
def test_the_optimum_is_reached(loss, kind):
    if (loss, kind) == ("cross_entropy", "labels"):
        return
    X, y, Y = draw()
    signs = signs_of(y if kind == "classes" else Y, 5)
    model = train(X, y if kind == "classes" else Y, loss=loss, l2=1e-2, epochs=200)
    place = X, signs, model.weights.astype(float), model.intercept.astype(float), loss, 1e-2
    best = solve(X.astype(float), signs, loss, 1e-2)
    assert best * (1 - 1e-6) <= reference.heads_objective(*place) <= best * (1 + 2e-3)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_heads_learned_together_are_heads_learned_apart(loss):
    """To the byte, with other heads beside them, and in registers of other widths."""
    X, _, Y = draw(heads=40)
    options = {"loss": loss, "deterministic": True, "eta0": 0.1, "average": False}
    together = train(X, Y, **options)
    for chosen in ([0, 1], [3, 17, 39], list(range(5, 25))):
        some = train(X, Y[:, chosen], strategy="heads", **options)
        assert np.array_equal(some.weights, together.weights[chosen])
        assert np.array_equal(some.intercept, together.intercept[chosen])


def test_one_head_of_many_is_the_model_of_two_classes():
    X, _, Y = draw(heads=20)
    options = {"loss": "logistic", "strategy": "heads", "eta0": 0.1, "average": False}
    many, one = train(X, Y, **options), train(X, Y[:, 7], **options)
    np.testing.assert_allclose(many.weights[7], one.weights, 1e-4, 1e-5)
    assert many.intercept[7] == pytest.approx(one.intercept, abs=1e-5)


@pytest.mark.parametrize(
    ("heads", "options", "strategy"),
    [
        (40, {"loss": "hinge"}, "heads"),
        (40, {"loss": "logistic", "eta0": 0.1}, "heads"),
        (40, {"loss": "logistic", "average": False}, "heads"),
        (40, {"schedule": "constant", "eta0": 0.5, "l2": 0.2}, "heads"),  # epochs of four shares
        (40, {"loss": "perceptron", "strategy": "heads"}, "heads"),
        (101, {"loss": "hinge", "backend": "thread"}, "heads"),
        (5, {"loss": "logistic"}, "ordered"),
        (20, {"task": "softmax", "solver": "sgd"}, "ordered"),
    ],
)
def test_any_number_of_workers_learns_the_same_bytes(heads, options, strategy):
    X, y, _ = draw(rows=1000, heads=heads)
    found = []
    for workers in (1, 2, 3, 8):
        given = {"solver": "sgd", "deterministic": True, "workers": workers, "epochs": 3} | options
        result = hogwild.train(Rows(X, y), **given)
        assert result.header["chosen"]["strategy"] == strategy
        trace = [(row["objective"], row["online_loss"]) for row in result.trace]
        found.append((result.model.weights.tobytes(), result.model.intercept.tobytes(), trace))
    assert all(some == found[0] for some in found)


@each(
    strategy=[name for name, s in STRATEGIES.items() if s.rows and name not in ("heads", "strata")],
    task=["logistic", "softmax"],
)
def test_strategies_that_deal_rows_come_near_the_optimum(task, strategy):
    X, y, _ = draw(rows=1000)
    options = {"task": task, "strategy": strategy, "workers": 2, "epochs": 60, "l2": 1e-1}
    model = train(X, y, backend="thread", **options)
    loss = "logistic" if task == "logistic" else "cross_entropy"
    signs = signs_of(y, 5)
    place = X, signs, model.weights.astype(float), model.intercept.astype(float), loss, 1e-1
    best = solve(X.astype(float), signs, loss, 1e-1)
    assert reference.heads_objective(*place) <= best * 1.03


def test_stopped_early_all_heads_have_learned_from_the_same_rows():
    """Heads of two workers that learn the same label are the same, wherever they were stopped."""
    X, _, Y = draw(rows=20_000, heads=16)
    options = {"loss": "logistic", "eta0": 0.1, "strategy": "heads", "tol": 0, "workers": 2}
    rows = Rows(X, np.column_stack([Y, Y]))
    stopped = hogwild.train(rows, epochs=10**6, time_limit=0.3, objective_every=0, **options)
    assert stopped.reason == "time"
    assert np.array_equal(stopped.model.weights[:16], stopped.model.weights[16:])
    assert np.array_equal(stopped.model.intercept[:16], stopped.model.intercept[16:])


@each(given=[(True, 1), (True, 40), (False, 1), (False, 7)], workers=[2, 3])
def test_what_was_learned_when_an_epoch_is_stopped_does_not_depend_on_workers(
    given, workers, monkeypatch
):
    """Weights, and sums of them, are handed in from the memory of each worker."""
    (average, pieces), (X, _, Y) = given, draw(rows=4000, heads=50)
    monkeypatch.setattr("hogwild.learn.linear.CHUNK_NONZEROS", 24_000)  # for pieces of 500 rows
    visit, visits = HeadsWorker._visit, {}

    def visit_and_stop(self, *given):
        found = visit(self, *given)
        visits[self] = visits.get(self, 0) + 1
        if visits[self] == pieces:
            self._control.stop()
        return found

    monkeypatch.setattr(HeadsWorker, "_visit", visit_and_stop)
    options = {"loss": "logistic", "eta0": 0.1, "strategy": "heads", "backend": "thread"}
    one, several = (
        hogwild.train(Rows(X, Y), average=average, workers=count, **options)
        for count in (1, workers)
    )
    assert 0 < one.trace[0]["rows"] == several.trace[0]["rows"]
    assert one.trace[0]["rows"] < 4000
    assert one.model.weights.any(axis=1).all()
    assert np.array_equal(several.model.weights, one.model.weights)
    assert np.array_equal(several.model.intercept, one.model.intercept)


@pytest.mark.parametrize("labels", [list("edcba"), [4.5, 3, 2, 1, 0], [10, 20, 30, 40, 50]])
def test_labels_of_any_kind_are_predicted_as_they_were_given(labels, tmp_path):
    X, y, _ = draw()
    given = np.array(labels)[y]
    model = train(X, given, epochs=10)
    assert list(model.labels) == sorted(labels)
    assert np.mean(model.predict(X) == given) > 0.6
    model.save(tmp_path / "m.hog")
    loaded = hogwild.load_model(tmp_path / "m.hog")
    assert loaded.labels == model.labels
    assert np.array_equal(loaded.weights, model.weights)
    assert np.array_equal(loaded.intercept, model.intercept)
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, "lists", "sets"])
def test_several_labels_may_be_given_as_a_matrix_or_as_lists(form):
    X, _, Y = draw()
    expected = train(X, Y, loss="logistic")
    if isinstance(form, str):
        kind = {"lists": list, "sets": set}[form]
        y = [kind(np.flatnonzero(row).tolist()) for row in Y]
    else:
        y = form(Y)
    model = train(X, y, loss="logistic")
    assert model.labels == (0, 1, 2, 3, 4)
    assert np.array_equal(model.weights, expected.weights)
    assert np.array_equal(model.predict(X), expected.predict(X))


def test_scores_and_probabilities_are_those_of_the_weights():
    X, y, Y = draw()
    for model, odds in (
        (train(X, y, loss="logistic"), lambda s: expit(s) / expit(s).sum(axis=1, keepdims=True)),
        (train(X, y, task="softmax"), lambda s: softmax(s, axis=1)),
        (train(X, Y, loss="logistic"), expit),
    ):
        scores = X @ model.weights.T + model.intercept
        np.testing.assert_allclose(model.decision_function(X), scores, 1e-4, 1e-5)
        np.testing.assert_allclose(model.predict_proba(X), odds(scores), 1e-4, 1e-5)


def test_metrics_of_classes_are_those_of_scikit_learn():
    X, y, _ = draw(heads=8)
    weights = np.random.default_rng(3).random(len(y)).astype(np.float32)
    rows = Rows(X, y, sample_weight=weights)
    model = train(X, y, task="softmax")
    found, said = model.evaluate(rows), model.predict(X)
    assert found["error"] == pytest.approx(1 - accuracy_score(y, said, sample_weight=weights))
    for average in ("macro", "micro"):
        expected = f1_score(y, said, average=average, sample_weight=weights)
        assert found[f"{average}_f1"] == pytest.approx(expected)
    expected = log_loss(y, model.predict_proba(X), sample_weight=weights)
    assert found["log_loss"] == pytest.approx(expected, rel=1e-6)
    ranks = (-model.decision_function(X)).argsort(axis=1)
    among = (ranks[:, :5] == y[:, None]).any(axis=1)
    assert found["top_5_error"] == pytest.approx(1 - np.average(among, weights=weights))
    missed = [1 - np.average(said[y == k] == k, weights=weights[y == k]) for k in range(8)]
    assert found["class_errors"] == pytest.approx(missed)
    assert found["confusion"]["table"][2][3] == pytest.approx(weights[(y == 2) & (said == 3)].sum())


def test_metrics_of_labels_are_those_of_scikit_learn():
    X, _, Y = draw()
    model = train(X, Y, loss="logistic")
    found, said = model.evaluate(X, Y), model.predict(X)
    assert found["hamming_loss"] == pytest.approx(hamming_loss(Y, said))
    assert found["subset_accuracy"] == pytest.approx(accuracy_score(Y, said))
    for average in ("macro", "micro"):
        assert found[f"{average}_f1"] == pytest.approx(f1_score(Y, said, average=average))


def test_the_largest_confusions_of_many_classes_are_given():
    X, y, _ = draw(rows=2000, heads=30)
    model = train(X, y, task="softmax")
    true, predicted, count = model.evaluate(X, y)["confusion"]["largest"][0]
    assert count == np.sum((y == true) & (model.predict(X) == predicted))


@pytest.mark.parametrize("options", [{"loss": "logistic"}, {"task": "softmax"}])
def test_the_trace_has_the_numbers_of_the_model(options):
    X, y, Y = draw()
    for labels, names in ((y, {"error": "error"}), (Y, {"hamming_loss": "hamming_loss"})):
        if "task" in options and labels is Y:
            continue
        rows = Rows(X, labels)
        result = hogwild.train(rows, test=rows, epochs=3, workers=1, **options)
        found = result.model.evaluate(rows)
        for name, metric in names.items():
            assert result.trace[-1][f"test_{name}"] == pytest.approx(found[metric], abs=1e-9)
        assert result.trace[-1]["objective"] == pytest.approx(found["objective"], rel=1e-5)


def test_rows_weigh_as_many_copies_and_classes_as_their_rows():
    X, y, Y = draw()
    twice = np.where(y == 2, 2.0, 1.0)
    kept = {"loss": "logistic", "eta0": 0.1}
    weighted = hogwild.train(Rows(X, y, sample_weight=twice), workers=1, epochs=3, **kept).model
    by_class = train(X, y, class_weight={2: 2}, epochs=3, **kept)
    assert np.array_equal(weighted.weights, by_class.weights)
    balanced = train(X, Y, class_weight="balanced", **kept)
    assert not np.array_equal(balanced.weights, train(X, Y, **kept).weights)


def test_classes_that_a_model_does_not_know_are_refused():
    X, y, Y = draw()
    model = train(X, y)
    with pytest.raises(DataError, match="row 3 has the label 9; the model knows 0, 1, 2, 3, 4"):
        model.evaluate(X, np.where(np.arange(len(y)) == 2, 9, y))
    with pytest.raises(DataError, match="several labels in a row"):
        model.evaluate(X, Y)
    with pytest.raises(DataError, match="row 1 has the label 7"):
        train(X, Y).evaluate(X[:2], [[7], [1]])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array([1, 2, "a", 3], object), "several kinds"),
        ([1, 1, 1, 1], "the label is 1 in every row"),
        ([[1], ["a"], [2], []], "two kinds"),
        ([[], [], [], []], "no row has a label"),
        (np.array([[0, 1], [2, 0], [0, 0], [1, 1]]), "1 where a row has a label, and else 0"),
        ([[1], [2]], "4 rows need 4 sets of labels, not 2"),
    ],
)
def test_labels_that_make_no_sense_are_refused(y, words):
    with pytest.raises(DataError, match=words):
        hogwild.train(Rows(np.eye(4, dtype=np.float32), y), epochs=1)


@pytest.mark.parametrize("chosen", [[5, 0, 5, 3], slice(2, 9), np.arange(40) % 3 == 0])
def test_label_sets_of_some_rows_are_those_of_the_rows(chosen):
    X, _, Y = draw(rows=40)
    found, numbers = Rows(X, Y).take(chosen), np.arange(40)[chosen]
    assert np.array_equal(found.to_scipy().toarray(), X[numbers])
    has = np.zeros_like(Y[numbers])
    has[found.y.rows, found.y.numbers] = 1
    assert np.array_equal(has, Y[numbers])


def test_softmax_wants_one_label_a_row():
    X, _, Y = draw()
    with pytest.raises(DataError, match="softmax chooses one: use the task svm or logistic"):
        hogwild.train(Rows(X, Y), task="softmax")
    with pytest.raises(OptionError, match="'hinge' is not one of cross_entropy"):
        hogwild.train(Rows(X, Y), task="softmax", loss="hinge")


def test_weights_that_do_not_fit_into_memory_are_refused_before_training(monkeypatch):
    X, y, _ = draw()
    monkeypatch.setattr("hogwild.coordinator.available_memory", lambda: 10_000)
    with pytest.raises(DataError, match=r"5 classes x 12 columns are .* Take fewer columns"):
        hogwild.train(Rows(X, y), solver="sgd")


def test_the_memory_of_workers_with_heads_counts(monkeypatch):
    asked = []
    monkeypatch.setattr(LinearProblem, "check_memory", lambda self, *given: asked.append(given[:2]))
    X, y, _ = draw(heads=20)
    for workers in (1, 2):
        for average in (True, False):
            options = {"strategy": "heads", "backend": "thread", "average": average}
            hogwild.train(Rows(X, y), epochs=1, workers=workers, **options)
    of_weights = 4 * (COLUMNS + 1) * 32
    assert [own for _, own in asked] == [0, 0, 3 * of_weights, of_weights]
    assert all(shared > own for shared, own in asked)


def test_few_heads_stand_for_many_where_rates_are_tried():
    many = heads_module.heads_of("hinge", "labels", 101)
    assert many.few().count == heads_module.TRIED
    assert many.few().shape(False).targets == many.shape(False).targets
    together = heads_module.heads_of("cross_entropy", "classes", 101)
    assert together.few() == together


class KillsAWorker(hogwild.Watcher):
    """Kills one of the workers after the first epoch."""

    def epoch(self, row):
        if row["epoch"] == 1:
            psutil.Process().children()[0].kill()


def test_a_worker_with_heads_that_dies_is_replaced():
    X, y, _ = draw(rows=2000, heads=40)
    options = {"workers": 2, "strategy": "heads", "eta0": 0.1, "tol": 0, "epochs": 5}
    whole = hogwild.train(Rows(X, y), **options)
    with pytest.warns(hogwild.HogwildWarning, match="SIGKILL; new workers take over"):
        found = hogwild.train(Rows(X, y), watcher=KillsAWorker(), **options)
    assert found.model.weights.tobytes() == whole.model.weights.tobytes()
