"""Softmax by the solvers newton, lbfgs and gd: products, optimum, and what is proved."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import hogwild
from hogwild.config import Config
from hogwild.errors import DataError, OptionError
from hogwild.kernels.views import NO_FETCHING
from hogwild.learn import choosing, first_epochs, newton, passes
from hogwild.learn.linear import LinearProblem
from tests.combinations import pairs

COLUMNS, CLASSES, ROWS = 7, 4, 150


def draw(classes=CLASSES, seed=0, sizes=1.0, rows=ROWS):
    """Rows, their classes, and weights of the rows, some of them 0."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, COLUMNS)) * (random.random((rows, COLUMNS)) < 0.6)
    X = (X * sizes).astype(np.float32).astype(float)
    scores = X / sizes @ random.normal(size=(COLUMNS, classes)) + random.normal(size=classes)
    y = (scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    y[:classes] = np.arange(classes)
    return X, y, random.integers(0, 4, rows).astype(np.float32)


def train(X, y, weights=None, **more):
    options = {"task": "softmax", "solver": "newton"} | more
    return hogwild.train(hogwild.Rows(X, y.astype(float), sample_weight=weights), **options)


def objective_of(X, y, weights, l2):
    """(K x columns weights, K intercepts) -> the objective, and its derivatives."""
    shares = np.ones(len(y)) if weights is None else weights / weights.mean()

    def found(W, b):
        scores = X @ W.T + b
        slopes = softmax(scores, axis=1)
        slopes[np.arange(len(y)), y] -= 1
        slopes *= shares[:, None] / len(y)
        losses = -log_softmax(scores, axis=1)[np.arange(len(y)), y]
        value = np.mean(shares * losses) + l2 / 2 * np.sum(W**2)
        return value, slopes.T @ X + l2 * W, slopes.sum(axis=0)

    return found


def best_of(X, y, weights, l2, intercept, classes=CLASSES):
    """The least objective by another method in double precision."""
    found = objective_of(X, y, weights, l2)

    def flat(v):
        W, b = v[:-classes].reshape(classes, -1), v[-classes:]
        value, of_weights, of_bias = found(W, b)
        return value, np.append(of_weights, intercept * of_bias)

    options = {"maxiter": 5000, "maxfun": 10**5, "ftol": 1e-16, "gtol": 1e-11}
    start = np.zeros(classes * (X.shape[1] + 1))
    return minimize(flat, start, jac=True, method="L-BFGS-B", options=options).fun


def model_objective(X, y, weights, l2, model):
    weights_of_model = np.asarray(model.weights, float)
    return objective_of(X, y, weights, l2)(weights_of_model, np.asarray(model.intercept, float))[0]


def passes_of(classes, weighted, intercept=False):
    X, y, weights = draw(classes)
    weights = weights if weighted else None
    rows = hogwild.Rows(X, y.astype(float), sample_weight=weights)
    config = Config.of({"task": "softmax", "solver": "newton", "intercept": intercept})
    return LinearProblem(rows, None, config)._outcome._passes, X, y, weights


@pairs(classes=[2, 3, 9, 20], weighted=[False, True], intercept=[False, True])
def test_gradients_and_products_are_those_of_finite_differences(classes, weighted, intercept):
    work, X, y, weights = passes_of(classes, weighted, intercept)
    random = np.random.default_rng(5)
    W, b = random.normal(size=(classes, COLUMNS)), random.normal(size=classes)
    if intercept:
        b = work.best_bias(work.scores(np.ascontiguousarray(W.T).ravel()), b)
    objective = objective_of(X, y, weights, 0.0)

    def flat(W):
        return np.ascontiguousarray(W.T).ravel()

    scores = work.scores(flat(W))
    np.testing.assert_allclose(scores.reshape(-1, classes), X @ W.T, rtol=1e-5, atol=1e-5)
    value, of_weights, of_bias = objective(W, b)
    found = work.slope(scores, b)
    assert found.loss == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found.gradient, flat(of_weights), atol=2e-6)
    np.testing.assert_allclose(found.slope, of_bias, atol=2e-6)

    # With an intercept, the Hessian is that of the objective with the best intercept
    way, step, dots = random.normal(size=W.shape), 1e-4, np.empty(ROWS * classes)
    product = work.product(flat(way), dots)
    np.testing.assert_allclose(dots.reshape(-1, classes), X @ way.T, rtol=1e-5, atol=1e-5)
    turn = work.turn(dots)
    assert bool(turn.any()) == intercept
    if intercept:
        np.testing.assert_allclose(objective(W, b)[2], 0.0, atol=1e-6)
    above = objective(W + step * way, b + step * turn)
    below = objective(W - step * way, b - step * turn)
    np.testing.assert_allclose(product, flat(above[1] - below[1]) / (2 * step), atol=1e-5)
    if intercept:
        np.testing.assert_allclose(above[2], below[2], atol=1e-7)

    loss, first, second = work.along(scores, dots, step, b + step * turn, 1.0, turn)
    assert loss == pytest.approx(above[0], rel=1e-6)
    assert first == pytest.approx((above[0] - value) / step, rel=1e-2, abs=1e-4)
    assert second == pytest.approx(flat(way) @ product, rel=1e-2)


@pairs(
    solver=["newton", "lbfgs", "gd"],
    l2=[1e-1, 1e-2],
    intercept=[False, True],
    weighted=[False, True],
    classes=[2, 4, 17],
)
def test_training_comes_to_the_optimum_and_knows_how_near_it_is(
    solver, l2, intercept, weighted, classes
):
    X, y, weights = draw(classes)
    weights = weights if weighted else None
    best = best_of(X, y, weights, l2, intercept, classes)
    result = train(X, y, weights, solver=solver, l2=l2, intercept=intercept, tol=1e-5)
    assert result.reason == "converged"
    reached = model_objective(X, y, weights, l2, result.model)
    assert result.trace[-1]["objective"] == pytest.approx(reached, rel=1e-6)
    assert -1e-7 * best <= reached - best <= 1.2e-5 * best
    for row in result.trace:
        if row["gap"] is not None:
            assert row["objective"] / (1 + row["gap"]) <= best * (1 + 1e-6)


def test_newton_proves_small_gaps():
    X, y, _ = draw()
    result = train(X, y, l2=1e-3, tol=1e-7)
    assert result.reason == "converged"
    assert result.trace[-1]["objective"] == pytest.approx(best_of(X, y, None, 1e-3, True), rel=2e-7)


@pytest.mark.parametrize("l2", [1e-6, 1e-8])
def test_easy_rows_sorted_by_class_are_learned_to_the_end(l2):
    """Their slopes are tiny beside their probabilities, and their sums cancel at the end only."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(CLASSES), 5_000)
    X = 1.0 + 0.1 * random.normal(size=(len(y), COLUMNS)) + 2.0 * np.eye(CLASSES, COLUMNS)[y]
    for solver in ("newton", "lbfgs"):
        assert train(X, y, solver=solver, l2=l2, tol=1e-4).reason == "converged"


def test_two_classes_are_those_of_the_logistic_loss():
    """Weights w / 2 and -w / 2 cost half as much as w, so the penalty of w is half of theirs."""
    X, y, _ = draw(2)
    one = train(X, y, l2=2e-2, tol=1e-7)
    other = train(X, y, task="logistic", l2=1e-2, tol=1e-7)
    assert one.trace[-1]["objective"] == pytest.approx(other.trace[-1]["objective"], rel=1e-6)
    both = np.asarray(one.model.weights)
    np.testing.assert_allclose(both[1] - both[0], other.model.weights, atol=1e-3)
    between = one.model.intercept[1] - one.model.intercept[0]
    assert between == pytest.approx(other.model.intercept, abs=1e-3)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_any_number_of_workers_learns_the_same_bytes(solver, monkeypatch):
    monkeypatch.setattr(passes, "SHARD", 100)
    X, y, weights = draw()
    results = [
        train(X, y, weights, solver=solver, l2=1e-3, tol=1e-6, workers=workers)
        for workers in (1, 2, 3, 8)
    ]
    for other in results[1:]:
        assert np.array_equal(other.model.weights, results[0].model.weights)
        assert np.array_equal(other.model.intercept, results[0].model.intercept)
        assert [row["gap"] for row in other.trace] == [row["gap"] for row in results[0].trace]


def test_class_weights_are_weights_of_the_rows():
    X, y, _ = draw()
    by_class = {0.0: 3.0, 1.0: 0.5, 2.0: 1.0, 3.0: 2.0}
    one = train(X, y, l2=1e-2, tol=1e-6, class_weight=by_class)
    weights = np.array([by_class[k] for k in y], np.float32)
    other = train(X, y, weights, l2=1e-2, tol=1e-6)
    np.testing.assert_allclose(one.model.weights, other.model.weights, atol=1e-4)


def test_columns_of_very_different_sizes_do_no_harm():
    X, y, _ = draw(sizes=10.0 ** np.linspace(-3, 3, COLUMNS))
    result = train(X, y, l2=1e-6, tol=1e-4)
    assert result.reason == "converged"
    assert sum(row["rows"] for row in result.trace) < 400 * ROWS


def test_a_class_that_no_weight_counts_does_no_harm():
    X, y, _ = draw()
    weights = (y != 2).astype(np.float32)
    result = train(X, y, weights, l2=1e-2, tol=1e-4)
    assert np.isfinite(result.model.weights).all()
    best = best_of(X, y, weights, 1e-2, True)
    assert result.trace[-1]["objective"] == pytest.approx(best, rel=1e-3)


def test_training_goes_on_from_what_others_came_to():
    X, y, _ = draw()
    for solver in ("sgd", "lbfgs"):
        start = train(X, y, solver=solver, l2=1e-3, epochs=3).state
        result = train(X, y, l2=1e-3, tol=1e-6, start=start)
        assert result.reason == "converged"
    again = train(X, y, l2=1e-3, tol=1e-5, start=result.state)
    assert again.trace[-1]["rows"] <= 3 * ROWS


def test_without_a_penalty_softmax_comes_to_its_optimum():
    X, y, _ = draw()
    result = train(X, y, l2=0.0, tol=1e-6)
    assert result.reason == "converged"
    assert result.trace[-1]["objective"] == pytest.approx(best_of(X, y, None, 0.0, True), rel=1e-4)


@pytest.mark.parametrize("sizes", [1.0, 10.0 ** np.linspace(-3, 3, COLUMNS)])
def test_epochs_of_descent_come_first_and_do_no_harm(sizes, monkeypatch):
    X, y, weights = draw(sizes=sizes)
    plain = train(X, y, weights, l2=1e-3, tol=1e-6)
    monkeypatch.setattr(newton, "FEW_COLUMNS", 0)
    one, other = (
        train(X, y, weights, l2=1e-3, tol=1e-6, workers=workers, intercept=True)
        for workers in (1, 2)
    )
    assert one.reason == "converged"
    assert np.array_equal(one.model.weights, other.model.weights)
    reached = one.trace[-1]["objective"]
    assert reached == pytest.approx(plain.trace[-1]["objective"], rel=3e-6)


def test_epochs_of_descent_come_near_the_optimum(monkeypatch):
    """And leave the weights whole, by what the penalty took."""
    X, y, _ = draw(rows=2000)
    rows = hogwild.Rows(X, y.astype(float))
    config = Config.of({"task": "softmax", "solver": "newton", "l2": 1e-2})
    monkeypatch.setattr(newton, "FEW_COLUMNS", 0)
    proof = LinearProblem(rows, None, config)._outcome
    seen = []
    stored = np.zeros(16 * (COLUMNS + 1) // 4, np.float32)
    proof.first.learn(stored, lambda: bool(seen.append(1)) or True, NO_FETCHING)
    assert 1 < len(seen) <= first_epochs.MOST
    W, b = proof._passes.read(stored)
    W = W.reshape(COLUMNS, CLASSES).T
    reached = objective_of(X, y, None, 1e-2)(W, b)[0]
    assert reached < 1.1 * best_of(X, y, None, 1e-2, True)


def test_auto_takes_newton_for_softmax_unless_scores_take_too_much_memory(monkeypatch):
    X, y, _ = draw()
    chosen = train(X, y, solver="auto").header["chosen"]
    assert chosen["solver"] == "newton"
    assert train(X, y, solver="auto", eta0=0.1).header["chosen"]["solver"] == "sgd"
    monkeypatch.setattr(choosing, "MOST_NUMBERS", (ROWS + 2 * COLUMNS) * CLASSES - 1)
    chosen = train(X, y, solver="auto").header["chosen"]
    assert (chosen["solver"], "memory" in chosen["solver_why"]) == ("sgd", True)


def test_errors_and_test_rows_are_counted():
    X, y, _ = draw()
    rows = hogwild.Rows(X, y.astype(float))
    result = hogwild.train(rows, task="softmax", solver="newton", l2=1e-3, test=rows)
    wrong = np.mean(result.model.predict(rows) != y)
    assert result.trace[-1]["train_error"] == pytest.approx(wrong)
    assert result.trace[-1]["test_error"] == pytest.approx(wrong)


def test_memory_that_does_not_suffice_is_said_before_training():
    X, y, _ = draw()
    config = Config.of({"task": "softmax", "solver": "newton"})
    problem = LinearProblem(hogwild.Rows(X, y.astype(float)), None, config)
    needed = problem._outcome.scratch
    assert needed > 28 * CLASSES * ROWS
    problem.check_memory(0, 0, needed)
    with pytest.raises(DataError, match=r"4 classes the solver newton needs .* Take the solver"):
        problem.check_memory(0, 0, needed - 1)


@pytest.mark.parametrize("solver", ["cg", "closed", "dual", "coordinate"])
def test_solvers_that_do_not_know_softmax_are_refused(solver):
    X, y, _ = draw()
    with pytest.raises(OptionError, match=f"needs .* to be .*{solver}"):
        train(X, y, solver=solver)


def test_the_best_intercepts_are_found_from_far():
    work, *_ = passes_of(CLASSES, False, True)
    for far in (0.0, 5.0, 40.0):
        scores = np.random.default_rng(1).normal(size=ROWS * CLASSES) * (1 + far)
        bias = work.best_bias(scores, far * np.arange(CLASSES, dtype=float))
        assert abs(bias.sum()) < 1e-9
        left = work.slope(scores, bias).slope
        assert np.abs(left).max() < 1e-7
