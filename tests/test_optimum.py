"""Training reaches the optimum, says another solver, the gradient, and a bound for the hinge."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import hogwild
from experiments.optimum import optimum
from hogwild.data.synthetic import rcv1
from hogwild.learn.losses import SIGNS, names_for
from hogwild.learn.schedules import SCHEDULES
from hogwild.loops.strategies import STRATEGIES
from tests import reference

COLUMNS = 20


def is_smooth(loss, step=1e-7):
    """Whether its slope jumps nowhere that a loss may be expected to bend."""
    bends = np.array([-50.0, -2.0, -1.0, 0.0, 1.0, 2.0, 50.0])
    below, above = (reference.slope(loss, bends + side, np.ones(7)) for side in (-step, step))
    return np.allclose(below, above, rtol=1e-5, atol=1e-5)


LOSSES = names_for(SIGNS)
SMOOTH = [loss for loss in LOSSES if is_smooth(loss)]


def draw(rows=300, seed=0, shift=0.8):
    """Sparse rows (as a matrix) and labels of a noisy plane that does not go through zero."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, COLUMNS)) * (random.random((rows, COLUMNS)) < 0.3)
    X = X.astype(np.float32).astype(float)
    scores = X @ random.normal(size=COLUMNS) + shift
    return X, np.sign(scores + 0.7 * random.normal(size=rows))


def solve(X, y, loss, l2, intercept):
    """The optimum that L-BFGS-B finds: weights, intercept, objective."""

    def both(v):
        place = X, y, v[:-1], v[-1] * intercept, loss, l2
        weights, bias = reference.gradient(*place)
        return reference.objective(*place), np.append(weights, bias * intercept)

    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(both, np.zeros(COLUMNS + 1), jac=True, method="L-BFGS-B", options=options)
    return found.x[:-1], found.x[-1] * intercept, found.fun


def gradient_size(X, y, w, b, loss, l2, intercept):
    weights, bias = reference.gradient(X, y, w, b, loss, l2)
    return np.hypot(np.linalg.norm(weights), bias * intercept)


def learn_to_the_end(X, y, **options):
    """All epochs on one worker: weights, intercept."""
    given = {"epochs": 200, "tol": 0, "workers": 1, "objective_every": 0} | options
    model = hogwild.train(hogwild.Rows(X, y), **given).model
    return model.weights.astype(float), model.intercept


@pytest.fixture(scope="module")
def articles():
    return rcv1(20_000)[0]


def test_smooth_losses_are_seen():
    assert {"logistic", "squared", "squared_hinge", "modified_huber", "exponential"} <= set(SMOOTH)
    assert not {"hinge", "perceptron"} & set(SMOOTH)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_references_gradient_is_that_of_its_objective(loss):
    X, y = draw()
    w, b, h = np.random.default_rng(1).normal(size=COLUMNS), 0.3, 1e-7
    weights, bias = reference.gradient(X, y, w, b, loss, 0.1)

    def rise(dw, db):
        up, down = ((X, y, w + s * dw, b + s * db, loss, 0.1) for s in (h, -h))
        return (reference.objective(*up) - reference.objective(*down)) / (2 * h)

    np.testing.assert_allclose([rise(e, 0) for e in np.eye(COLUMNS)], weights, 1e-6, 1e-6)
    assert rise(0 * w, 1) == pytest.approx(bias, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("l2", [1e-2, 1e-1])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_reached(loss, l2, intercept):
    X, y = draw()
    is_perceptron = loss == "perceptron"  # whose own options descend no objective
    options = {"schedule": "inverse", "eta0": 0.05, "average": False} if is_perceptron else {}
    w, b = learn_to_the_end(X, y, loss=loss, l2=l2, intercept=intercept, **options)
    *_, best = solve(X, y, loss, l2, intercept)
    # The perceptron's optimum is zero, at w = 0, and no step is too short for it
    near = 1e-3 if is_perceptron else 1e-6
    assert reference.objective(X, y, w, b, loss, l2) <= best * (1 + 1e-3) + near
    if loss in SMOOTH:
        assert reference.objective(X, y, w, b, loss, l2) >= best * (1 - 1e-6)
        size = gradient_size(X, y, w, b, loss, l2, intercept)
        assert size < 0.03 * gradient_size(X, y, 0 * w, 0.0, loss, l2, intercept)
    if not intercept:
        assert b == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("average", [True, False], ids=["mean", "last"])
def test_every_schedule_comes_near_the_optimum(schedule, average):
    X, y = draw()
    eta0 = {"eta0": 0.02} if schedule == "constant" else {}
    options = {"schedule": schedule, "average": average} | eta0
    w, b = learn_to_the_end(X, y, loss="logistic", l2=1e-1, **options)
    *_, best = solve(X, y, "logistic", 1e-1, True)
    tolerance = 1e-3 if average or schedule != "constant" else 2e-2  # that never comes to rest
    assert reference.objective(X, y, w, b, "logistic", 1e-1) <= best * (1 + tolerance)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_the_hinge_comes_to_where_no_weights_can_be_much_better(intercept):
    """The lower bound is a dual one: it needs no solver to be trusted."""
    X, y = draw()
    w, b = learn_to_the_end(X, y, loss="hinge", l2=1e-2, intercept=intercept)
    found = optimum(hogwild.Rows(X, y), "hinge", 1e-2, intercept)
    objective = reference.objective(X, y, w, b, "hinge", 1e-2)
    assert found.certified
    assert found.lower_bound <= objective <= found.lower_bound * (1 + 1e-3)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_the_intercept_is_not_penalised(loss):
    """A strong penalty leaves next to no weights, and the intercept that the classes ask for."""
    X, y = draw(shift=4.0)
    positive = np.mean(y > 0)
    assert positive > 0.9
    w, b = learn_to_the_end(X, y, loss=loss, l2=30.0, schedule="constant", eta0=0.003)
    assert np.linalg.norm(w) < 0.05
    assert (expit(b) if loss == "logistic" else (b + 1) / 2) == pytest.approx(positive, abs=0.01)


def test_a_run_without_any_options_ends_near_the_optimum(articles):
    result = hogwild.train(articles)
    assert result.header["chosen"]["solver"] == "dual"
    best = optimum(articles, "hinge", hogwild.Config().l2, intercept=True, gap=1e-3)
    last = result.trace[-1]
    assert result.reason == "converged"
    assert best.lower_bound <= last["objective"] <= (1 + last["gap"]) * best.objective
    assert last["gap"] <= 1e-3


def test_descent_without_any_other_options_ends_near_the_optimum(articles):
    result = hogwild.train(articles, solver="sgd")
    best = optimum(articles, "hinge", hogwild.Config().l2, intercept=True, gap=1e-3)
    objectives = np.array([row["objective"] for row in result.trace])
    assert result.reason == "converged"
    assert objectives[-1] >= best.lower_bound
    left = (objectives - best.objective) / (1 - best.objective)  # of the way; 1 is where all start
    assert left[0] <= 0.06
    assert left[2] <= 0.02
    assert left[-1] <= 0.005


# What is reported is what was descended


@pytest.mark.parametrize("average", [True, False], ids=["mean", "last"])
@pytest.mark.parametrize(
    ("loss", "strategy"),
    [(loss, "hogwild") for loss in LOSSES]
    + [("logistic", name) for name in STRATEGIES if name not in ("hogwild", "strata")],
)
def test_the_trace_tells_the_objective_and_the_errors_of_the_model(loss, average, strategy):
    (X, y), (Z, labels) = draw(seed=1), draw(rows=101, seed=2)
    rows, test = (
        hogwild.Rows(X, np.where(y > 0, "yes", "no")),
        (Z, np.where(labels > 0, "yes", "no")),
    )
    for workers in (1, 2):
        result = hogwild.train(
            rows,
            test=hogwild.Rows(*test),
            loss=loss,
            l2=0.03,
            epochs=2,
            average=average,
            workers=workers,
            strategy=strategy,
            eta0=0.05,
        )
        w, b, last = result.model.weights.astype(float), result.model.intercept, result.trace[-1]
        objective = reference.objective(X, y, w, b, loss, 0.03)
        assert last["objective"] == pytest.approx(objective, rel=1e-5)
        assert last["train_error"] == np.mean((X @ w + b > 0) != (y > 0))
        assert last["test_error"] == np.mean((Z @ w + b > 0) != (labels > 0))
        assert result.model.evaluate(rows)["objective"] == pytest.approx(objective, rel=1e-5)


def test_the_trace_tells_the_objective_of_a_large_model_too(articles):
    result = hogwild.train(articles, epochs=2, loss="logistic", l2=1e-5, workers=1)
    X, y = articles.to_scipy().astype(float), articles.targets().astype(float)
    w, b = result.model.weights.astype(float), result.model.intercept
    objective = reference.objective(X, y, w, b, "logistic", 1e-5)
    assert result.trace[-1]["objective"] == pytest.approx(objective, rel=1e-5)
    assert result.trace[-1]["train_error"] == np.mean((X @ w + b > 0) != (y > 0))
