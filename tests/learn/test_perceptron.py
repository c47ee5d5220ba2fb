"""The averaged perceptron: the mean over all steps of all epochs, and what it ends in."""

from dataclasses import replace

import numpy as np
import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from hogwild.kernels.order import shuffle
from hogwild.learn import averages
from hogwild.learn.linear import LinearProblem
from hogwild.loops.strategies import STRATEGIES
from hogwild.seeds import seed_of
from tests import reference

ROWS = [name for name, strategy in STRATEGIES.items() if strategy.rows and name != "strata"]

ALONE = pytest.mark.filterwarnings("ignore:rows overlap so much:hogwild.HogwildWarning")


def table(noise=0.5, size=330, seed=4):
    """Dense rows of two classes, as float64 that float32 can hold."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(size, 12)).astype(np.float32).astype(float)
    score = X @ random.normal(size=12)
    X, score = X[abs(score) > 0.3], score[abs(score) > 0.3]
    return X, np.sign(score + noise * random.normal(size=len(score)))


def trained(X, y, **options):
    options = {"loss": "perceptron", "workers": 1, "tol": 0, "epochs": 3} | options
    return hogwild.train(hogwild.Rows(X, y), **options)


@pytest.fixture
def every_step(monkeypatch):
    """A snapshot after each step."""
    monkeypatch.setattr(averages, "COST", 1e9)
    monkeypatch.setattr(averages, "MOST_SNAPSHOTS", 1_000)


def orders_of(X, y, epochs=3):
    orders = [np.empty(len(y), np.uint32) for _ in range(epochs)]
    for epoch, order in enumerate(orders, start=1):
        shuffle(order, 0, np.uint64(seed_of(0, epoch, 0)))
    share = LinearProblem(hogwild.Rows(X, y), None, hogwild.Config(solver="sgd")).intercept_share
    return orders, share


@pytest.mark.parametrize("strategy", ["hogwild", "locked", "roundrobin"])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_it_is_the_mean_over_all_steps_of_all_epochs(every_step, strategy, noise):
    X, y = table(noise)
    orders, share = orders_of(X, y)
    w, b = reference.averaged_perceptron(X, y, orders, share)
    model = trained(X, y, strategy=strategy).model
    np.testing.assert_allclose([*model.weights, model.intercept], [*w, b], 1e-4, 1e-5)


def test_with_fewer_snapshots_it_is_the_mean_over_these():
    X, y = table()
    orders, share = orders_of(X, y)
    plan = reference.Plan("perceptron", "constant", 1.0, 0.0, share)
    problem = LinearProblem(hogwild.Rows(X, y), None, hogwild.Config(loss="perceptron"))
    means = [
        reference.train(X, y, orders[: epoch + 1], plan, problem.snapshots)["whole mean"]
        for epoch in range(3)
    ]
    model = trained(X, y).model
    np.testing.assert_allclose(model.weights, np.mean([w for w, _ in means], axis=0), 1e-4, 1e-5)
    assert model.intercept == pytest.approx(np.mean([b for _, b in means]), rel=1e-4)


def test_its_defaults_are_those_of_the_perceptron():
    chosen = hogwild.Config(loss="perceptron")
    assert (chosen.l2, chosen.eta0, chosen.schedule) == (0.0, 1.0, "constant")
    other = hogwild.Config(loss="perceptron", l2=1e-3, eta0=0.5, schedule="sqrt")
    assert (other.l2, other.eta0, other.schedule) == (1e-3, 0.5, "sqrt")
    sparse = hogwild.Config(loss="perceptron", l1=1e-3)
    assert (sparse.eta0, sparse.schedule) == (None, "adaptive")


def test_the_rate_changes_no_prediction():
    X, y = table()
    one, other = (trained(X, y, eta0=eta0).model for eta0 in (1.0, 0.25))
    assert np.array_equal(0.25 * one.weights, other.weights)


def test_without_a_mean_it_is_the_plain_perceptron():
    X, y = table()
    result = trained(X, y, average=False)
    assert result.trace[-1]["weights"] == "last"
    assert np.array_equal(result.model.weights, result.state.weights["stored"][:-1])


def test_separable_rows_end_in_convergence():
    X, y = table(noise=0.0)
    result = trained(X, y, epochs=200, tol=1e-3)
    assert result.reason == "converged"
    assert result.trace[-1]["train_error"] == 0
    assert not result.notes


@ALONE
@pytest.mark.parametrize("strategy", ROWS)
@pytest.mark.parametrize("workers", [1, 2])
def test_it_learns_noisy_rows_whatever_the_strategy(strategy, workers):
    options = {"workers": workers, "strategy": strategy, "backend": "thread", "epochs": 5}
    result = hogwild.train(rcv1(4_000, 2_000)[0], loss="perceptron", **options)
    assert result.reason in ("epochs", "converged")
    assert result.trace[-1]["weights"] == "run mean"
    assert result.trace[-1]["train_error"] < 0.1
    assert not [note for note in result.notes if "rate is too large" in note]


@pytest.mark.parametrize("workers", [1, 2])
def test_several_classes_take_the_mean_of_all_epochs_too(workers):
    X, _ = table(0.5, 900)
    y = (X[:, :3] + 0.2 * np.random.default_rng(0).normal(size=(len(X), 3))).argmax(axis=1)
    result, last = (trained(X, y, workers=workers, average=some) for some in (True, False))
    assert result.trace[-1]["weights"] == "run mean"
    assert result.trace[-1]["train_error"] < last.trace[-1]["train_error"]
    assert result.trace[-1]["train_error"] < 0.2


def test_a_penalty_that_is_asked_for_counts():
    X, y = table()
    free, bound = (trained(X, y, l2=l2).model for l2 in (None, 0.1))
    assert np.linalg.norm(bound.weights) < np.linalg.norm(free.weights)
    assert bound.penalty.l2 == 0.1


@ALONE
@pytest.mark.parametrize("workers", [1, 2])
def test_going_on_gives_the_bytes_of_a_run_that_was_not_interrupted(workers):
    rows = rcv1(3_000, 2_000)[0]
    options = {"loss": "perceptron", "tol": 0, "workers": workers, "deterministic": True}
    whole = hogwild.train(rows, epochs=4, **options)
    half = hogwild.train(rows, epochs=2, **options)
    rest = hogwild.train(rows, epochs=2, start=half.state, **options)
    assert rest.model.weights.tobytes() == whole.model.weights.tobytes()


def test_it_goes_on_from_another_loss_with_a_mean_of_its_own():
    X, y = table()
    hinge = trained(X, y, loss="hinge")
    on = trained(X, y, start=replace(hinge.state, eta0=1.0))
    assert on.state.weights["taken"][0] == trained(X, y).state.weights["taken"][0]
    back = trained(X, y, loss="hinge", solver="sgd", start=replace(on.state, eta0=0.01))
    assert set(back.state.weights) == {"stored"}


def test_values_are_compared_by_means_of_their_own():
    X, y = table()
    options = {"loss": "perceptron", "workers": 1, "tol": 0, "epochs": 2, "folds": 2}
    found = hogwild.search(hogwild.Rows(X, y), l2=[1e-2, 1e-3], **options)
    alone = hogwild.search(hogwild.Rows(X, y), l2=[1e-2], **options)
    assert found.table[0]["error"] == alone.table[0]["error"]
    assert found.table[1]["error"] < 0.3


def test_the_estimator_has_no_penalty_unless_asked():
    X, y = table()
    found = hogwild.HogwildClassifier("perceptron", random_state=0).fit(X, y)
    assert found.model_.penalty == (0.0, 0.0)
    assert found.score(X, y) > 0.85
    asked = hogwild.HogwildClassifier("perceptron", alpha=1e-3, random_state=0).fit(X, y)
    assert asked.model_.penalty == (1e-3, 0.0)
    assert hogwild.HogwildClassifier(random_state=0).fit(X, y).model_.penalty == (1e-4, 0.0)


def test_parts_of_the_data_are_averaged_together():
    X, y = table()
    classifier = hogwild.HogwildClassifier("perceptron", random_state=0)
    for part in np.array_split(np.arange(len(y)), 3):
        classifier.partial_fit(X[part], y[part], classes=[-1, 1])
    assert classifier.score(X, y) > 0.85
