"""The solvers gd and lbfgs: their directions, their optimum, and what they prove."""

import numpy as np
import pytest

import hogwild
from hogwild import coordinator
from hogwild.config import Config
from hogwild.errors import HogwildWarning, OptionError
from hogwild.learn import passes
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import CLASSES, LOSSES
from tests import reference
from tests.combinations import pairs
from tests.examples import default_of
from tests.learn.test_newton import TASKS, best_of, draw, kind_of, train

SMOOTH = [name for name, loss in LOSSES.items() if loss.second]
KINKED = [
    name
    for name, loss in LOSSES.items()
    if not loss.second and name != "perceptron" and loss.kinds != (CLASSES,)
]


def least_of(X, y, loss, l2, intercept, weights):
    """The least objective of a loss with kinks, by the solver with another proof."""
    solver = "newton" if loss == "hinge" else "dual"
    found = train(X, y, loss, weights, solver=solver, l2=l2, intercept=intercept, tol=1e-7)
    return found.trace[-1]["objective"]


@pairs(
    loss=SMOOTH,
    solver=["gd", "lbfgs"],
    l2=[1e-1, 1e-3],
    intercept=[False, True],
    weighted=[False, True],
)
def test_smooth_losses_come_to_the_optimum_and_know_how_near_it_is(
    loss, solver, l2, intercept, weighted
):
    X, y, weights = draw(loss)
    weights = weights if weighted else None
    best, _, objective = best_of(X, y, loss, l2, intercept, weights)
    options = {"solver": solver, "l2": l2, "intercept": intercept, "tol": 1e-5}
    result = train(X, y, loss, weights, **options)
    assert result.reason == "converged"
    assert objective(result.model) - best <= 1e-5 * abs(best) + 1e-9
    assert_bounds_hold(result, best)


@pytest.mark.parametrize("l2", [0.0, 1e-4])
def test_an_objective_of_zero_is_the_least(l2):
    X, _, _ = draw("absolute")
    result = train(X, np.full(len(X), 3.0), "absolute", solver="gd", l2=l2)
    assert (result.reason, result.trace[-1]["objective"]) == ("converged", 0.0)


@pairs(loss=KINKED, l2=[1e-1, 1e-2], intercept=[False, True], weighted=[False, True])
def test_subgradients_prove_how_near_the_optimum_they_came(loss, l2, intercept, weighted):
    X, y, weights = draw(loss)
    weights = weights if weighted else None
    best = least_of(X, y, loss, l2, intercept, weights)
    options = {"solver": "gd", "l2": l2, "intercept": intercept, "tol": 3e-3}
    result = train(X, y, loss, weights, **options)
    assert result.reason == "converged"
    assert best * (1 - 1e-6) <= result.trace[-1]["objective"] <= best * 1.0031
    assert_bounds_hold(result, best)
    objectives = [row["objective"] for row in result.trace]
    assert np.all(np.diff(objectives) <= 1e-7 * abs(best))  # the best so far, but for rounding


def assert_bounds_hold(result, best):
    """A gap is a share of the lower bound, which is not above the optimum."""
    for row in result.trace:
        if row["gap"] is not None:
            objective, sign = row["objective"], np.sign(row["objective"])
            assert objective / (1 + sign * row["gap"]) <= best + 1e-6 * abs(best) + 1e-9


@pytest.mark.parametrize(("solver", "loss"), [("lbfgs", "poisson"), ("gd", "logistic")])
def test_without_a_penalty_a_loss_comes_to_its_optimum(solver, loss):
    X, y, _ = draw(loss)
    best, _, objective = best_of(X, y, loss, 0.0, True)
    result = train(X, y, loss, solver=solver, l2=0.0, tol=1e-6)
    assert result.reason == "converged"
    assert result.trace[-1]["gap"] is None
    assert objective(result.model) - best <= 1e-5 * max(1.0, abs(best))


def test_without_a_penalty_subgradients_end_where_they_gain_little():
    X, y, _ = draw("absolute")
    result = train(X, y, "absolute", solver="gd", l2=0.0, tol=1e-3)
    assert result.reason == "converged"
    objectives = [row["objective"] for row in result.trace]
    assert objectives[len(objectives) // 2] - objectives[-1] <= 1e-3 * objectives[-1]
    found = hogwild.train(hogwild.Rows(X, y), task="regression", loss="absolute", epochs=100)
    assert objectives[-1] <= 1.02 * found.trace[-1]["objective"]


def test_lbfgs_is_that_of_dense_matrices():
    """Its directions are -B g, with the B that the textbooks' formula for pairs makes."""
    X, y, _ = draw("squared")
    options = {"task": "regression", "solver": "lbfgs", "l2": 1e-2}
    problem = LinearProblem(hogwild.Rows(X, y), None, Config.of(options))
    proof, random = problem._outcome, np.random.default_rng(0)
    columns = X.shape[1]
    half = random.normal(size=(columns, columns))
    hessian, place = half @ half.T, random.normal(size=columns)
    shared = {"stored": np.zeros(columns + 1, np.float32)}
    proof.begin(shared, {}, 1.0)
    before, pairs_made, inverse = None, [], np.eye(columns)
    for _ in range(6):
        proof._weights = place
        downhill = -hessian @ place
        if before is not None:
            s, r = place - before[0], before[1] - downhill
            pairs_made.append((s, r))
            inverse = np.eye(columns) * (s @ r) / (r @ r)
            for s, r in pairs_made:
                left = np.eye(columns) - np.outer(s, r) / (s @ r)
                inverse = left @ inverse @ left.T + np.outer(s, s) / (s @ r)
        way = proof._way(downhill)
        np.testing.assert_allclose(way, inverse @ downhill, rtol=1e-9, atol=1e-9)
        before = place, downhill
        place = place + 0.1 * way + 0.01 * random.normal(size=columns)


@pairs(loss=KINKED, weighted=[False, True])
def test_subgradients_are_those_of_the_loss_and_their_mean_is_0(loss, weighted):
    X, y, weights = draw(loss)
    weights = weights if weighted else None
    options = {"task": TASKS[kind_of(loss)], "loss": loss, "solver": "gd", "l2": 0.1}
    problem = LinearProblem(hogwild.Rows(X, y, sample_weight=weights), None, Config.of(options))
    work, random = problem._outcome._passes, np.random.default_rng(1)
    scores = random.normal(size=len(y))
    bias = work.best_bias(scores, 0.0)
    found = work.subgradient(scores, bias)
    assert abs(found.slope) < 1e-12
    shares = np.ones(len(y)) if weights is None else weights / weights.mean()
    p = default_of(loss)

    def loss_at(at):
        return np.mean(shares * reference.value(loss, at, y, p))

    # A loss is nowhere below what a subgradient says
    here = loss_at(scores + bias)
    for step in (1e-3, 0.1, 1.0):
        w = step * random.normal(size=X.shape[1])
        other = loss_at(scores + bias + X @ w + step * random.normal())
        assert other >= here + found.gradient @ w - 1e-6


@pytest.mark.parametrize(("solver", "loss"), [("lbfgs", "logistic"), ("gd", "hinge")])
def test_any_number_of_workers_learns_the_same_bytes(solver, loss, monkeypatch):
    monkeypatch.setattr(passes, "SHARD", 100)
    X, y, weights = draw(loss)
    options = {"solver": solver, "l2": 1e-2, "tol": 1e-3, "epochs": 60}
    first, *others = (
        train(X, y, loss, weights, **options, workers=workers) for workers in (1, 2, 3, 8)
    )
    for other in others:
        assert other.model.weights.tobytes() == first.model.weights.tobytes()
        assert [row["gap"] for row in other.trace] == [row["gap"] for row in first.trace]


@pytest.mark.parametrize(("solver", "loss"), [("lbfgs", "logistic"), ("gd", "hinge")])
def test_training_goes_on_from_where_it_ended(solver, loss):
    X, y, _ = draw(loss)
    options = {"solver": solver, "l2": 1e-2, "tol": 1e-3}
    half = train(X, y, loss, **options, epochs=4)
    on = train(X, y, loss, **options, start=half.state)
    assert on.trace[0]["objective"] <= half.trace[-1]["objective"] + 1e-7
    assert on.reason == "converged"
    cold = train(X, y, loss, **options)
    assert len(on.trace) <= len(cold.trace) + 4
    started = train(X, y, loss, **options, start=train(X, y, loss, solver="sgd").state)
    assert started.reason == "converged"


def test_class_weights_count():
    X, y, _ = draw("hinge")
    given = {"class_weight": {-1.0: 3.0, 1.0: 1.0}, "l2": 0.1}
    one, other = (
        train(X, y, "hinge", solver=solver, tol=1e-3, **given).trace[-1]["objective"]
        for solver in ("gd", "newton")
    )
    assert one == pytest.approx(other, rel=2e-3)


def test_a_time_limit_is_heard():
    X, y, _ = draw("hinge")
    for solver, loss in (("gd", "hinge"), ("gd", "logistic"), ("lbfgs", "logistic")):
        result = train(X, y, loss, solver=solver, l2=1e-9, tol=0.0, time_limit=1e-9)
        assert result.reason == "time"
        assert np.isfinite(result.trace[-1]["objective"])


def test_single_precision_ends_a_training_that_is_never_near_enough():
    X, y, _ = draw("logistic")
    for solver in ("gd", "lbfgs"):
        assert train(X, y, "logistic", solver=solver, l2=1e-1, tol=0.0).reason == "stuck"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"loss": "hinge", "solver": "lbfgs"}, "a loss with a derivative to be lbfgs"),
        ({"loss": "perceptron", "solver": "gd"}, "one of these losses to be gd"),
        ({"solver": "gd", "l1": 1e-3}, "an l1 of 0"),
        ({"solver": "gd", "strategy": "combine"}, "gd and lbfgs, which make whole passes"),
        ({"solver": "lbfgs", "eta0": 0.1}, "have no learning rate"),
    ],
)
def test_what_they_cannot_do_is_refused(options, told):
    X, y, _ = draw("logistic")
    with pytest.raises(OptionError, match=told):
        train(X, y, **({"loss": "logistic"} | options))


def test_subgradients_are_not_called_stuck_while_they_get_nearer(monkeypatch):
    """Few rows, many times each: the best one rests for long. A note tells what is faster."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 10)).astype(np.float32)
    y = np.sign(X @ random.normal(size=10) + random.normal(size=400))
    X, y = np.vstack([X[:20]] * 20), np.tile(y[:20], 20)
    monkeypatch.setattr(coordinator, "SLOW_NONZEROS", 0.0)
    with pytest.warns(HogwildWarning, match="The solver auto comes nearer"):
        result = train(X, y, "hinge", solver="gd", l2=1e-4, tol=1e-3, epochs=5000)
    assert result.reason == "epochs"
