"""The solver newton for losses with kinks: its optimum is that of dual ascent."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

import hogwild
from hogwild.kernels import smoothed as smooth_kernels
from hogwild.learn import choosing, interior, newton, passes, smoothed
from hogwild.learn.duals import DUALS
from tests.combinations import each, pairs

ROWS, COLUMNS = 400, 12
NUMBERS = "absolute", "quantile", "epsilon_insensitive"


def draw(seed=0, sizes=1.0):
    """Rows, some of them empty, labels, and weights of the rows, some of them 0."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS, COLUMNS)) * (random.random((ROWS, COLUMNS)) < 0.5)
    X[::19] = 0
    y = np.where(X @ random.normal(size=COLUMNS) + random.normal(size=ROWS) > -0.6, 1.0, -1.0)
    return csr_matrix(X * sizes).astype(np.float32), y, random.integers(0, 4, ROWS)


def draw_numbers():
    X, _, weights = draw()
    return X, np.random.default_rng(1).normal(size=ROWS) + 2.0 * X[:, :3].sum(axis=1).A1, weights


def train(X, y, weights=None, **more):
    options = {"task": "svm", "loss": "hinge", "solver": "newton", "l2": 1e-3} | more
    return hogwild.train(hogwild.Rows(X, y, sample_weight=weights), **options)


@pytest.fixture(params=["smooth", "smooth iterated", "interior", "interior iterated"])
def way(request, monkeypatch):
    """Losses are made smooth, or learned by interior points; with the matrix, or without it."""
    monkeypatch.setattr(smoothed, "is_smoothed", lambda *given: "smooth" in request.param)
    if "iterated" in request.param:
        monkeypatch.setattr(newton, "MOST_COLUMNS", 0)
    return request.param


@pairs(l2=[1e-1, 1e-3, 1e-5], intercept=[False, True], weighted=[False, True])
def test_the_optimum_is_that_of_dual_ascent(way, l2, intercept, weighted):
    X, y, weights = draw()
    given = {"weights": weights if weighted else None, "l2": l2, "intercept": intercept}
    tol = 1e-4
    one, other = (train(X, y, **given, solver=s, tol=tol) for s in ("newton", "dual"))
    assert one.reason == other.reason == "converged"
    found, expected = one.trace[-1], other.trace[-1]
    assert 0 <= found["gap"] <= 1.01 * tol
    assert found["objective"] == pytest.approx(expected["objective"], rel=1.01 * tol)


@pairs(
    loss=["hinge", *NUMBERS],
    l2=[1e-1, 1e-3, 1e-5],
    intercept=[False, True],
    weighted=[False, True],
)
def test_equations_by_rows_have_the_same_solution(loss, l2, intercept, weighted, monkeypatch):
    """Where conjugate gradients do not get on, and rows are fewer than columns."""
    monkeypatch.setattr(smoothed, "is_smoothed", lambda *given: False)
    monkeypatch.setattr(newton, "MOST_COLUMNS", 0)
    monkeypatch.setattr(interior, "MOST_PRODUCTS", 1)
    monkeypatch.setattr(interior, "IDLE", 0)
    X, y, weights = draw() if loss == "hinge" else draw_numbers()
    l2 *= 1 if loss == "hinge" else 100  # else numbers are fitted but for rounding
    random = np.random.default_rng(1)
    X = csr_matrix(np.hstack([X.toarray(), random.normal(size=(ROWS, 2 * ROWS)) / 10]))
    given = {"weights": weights if weighted else None, "l2": l2, "intercept": intercept}
    given |= {"task": "svm" if loss == "hinge" else "regression", "loss": loss, "tol": 1e-4}
    one, other = (train(X, y, **given, solver=s) for s in ("newton", "dual"))
    assert one.reason == other.reason == "converged"
    assert len(one.trace) < 40
    found, expected = one.trace[-1]["objective"], other.trace[-1]["objective"]
    assert found == pytest.approx(expected, rel=1.01e-4)


@pytest.mark.parametrize("loss", NUMBERS)
def test_a_weight_of_0_is_a_row_that_is_not_there(way, loss):
    """Whatever its target."""
    X, y, _ = draw_numbers()
    odd = np.arange(ROWS) % 10 == 0
    given = {"task": "regression", "loss": loss, "tol": 1e-5}
    found = train(X, np.where(odd, 1e15, y), np.where(odd, 0, 1), **given)
    expected = train(X[~odd], y[~odd], **given)
    assert found.reason == expected.reason == "converged"
    objectives = [one.trace[-1]["objective"] for one in (found, expected)]
    assert objectives[0] == pytest.approx(objectives[1], rel=1.01e-5)


@each(kind=["some values", "some rows"])
def test_values_far_larger_than_others_do_no_harm(kind):
    """Smooth losses would get stuck: the kinks of such rows are of other widths."""
    random = np.random.default_rng(1)
    X = random.normal(size=(4000, 50)) * (random.random((4000, 50)) < 0.3)
    y = np.sign(X @ random.normal(size=50) + random.normal(size=4000))
    X[random.random(X.shape if kind == "some values" else 4000) < 1e-2] *= 1e6
    result = train(csr_matrix(X).astype(np.float32), y, l2=1e-4)
    assert result.reason == "converged"
    assert result.trace[-1]["gap"] <= 1e-3


@pairs(
    loss=NUMBERS, l2=[1e-1, 1e-3], intercept=[False, True], weighted=[False, True], exponent=[0, 4]
)
def test_losses_of_numbers(way, loss, l2, intercept, weighted, exponent):
    """Columns of other sizes are an equal problem, but for the penalty: so they have none."""
    X, y, weights = draw_numbers()
    sizes = 10.0 ** np.linspace(-exponent, exponent, COLUMNS)
    given = {"task": "regression", "loss": loss, "l2": l2, "intercept": intercept}
    given |= {"weights": weights if weighted else None, "tol": 1e-5}
    found = train(csr_matrix(X.multiply(sizes)).astype(np.float32), y, **given)
    assert found.reason == "converged"
    assert 0 <= found.trace[-1]["gap"] <= 1.01e-5
    if not exponent:
        other = train(X, y, **given, solver="dual").trace[-1]
        assert found.trace[-1]["objective"] == pytest.approx(other["objective"], rel=2.1e-5)


@pytest.mark.parametrize("loss", NUMBERS)
def test_wide_tables_that_nobody_scaled_are_learned_by_default(loss):
    """More columns than rows, of sizes from 0.01 to 10,000: dual ascent would not get there."""
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 300)) * 10.0 ** random.integers(-2, 5, 300)
    y = 100.0 + X[:, 0] / np.std(X[:, 0]) + random.standard_t(2, size=150)
    given = {"task": "regression", "loss": loss, "solver": "auto", "l2": 1.0}
    found = train(csr_matrix(X.astype(np.float32)), y, **given)
    assert found.reason == "converged"
    assert found.trace[-1]["gap"] <= 1e-3


@pytest.mark.parametrize("loss", ["hinge", *NUMBERS])
def test_slopes_of_smooth_losses_are_those_of_their_values(loss):
    """And curvatures those of slopes, but at the few places where these jump."""
    random, width, step = np.random.default_rng(0), 0.7, 1e-6
    point = smooth_kernels.point_of(loss)
    for score, share in random.normal(size=(200, 2)):
        target = math.copysign(1.0, share) if loss == "hinge" else share
        parameter = {"quantile": 0.3, "epsilon_insensitive": 0.2}.get(loss, 0.0)
        center = 0.5 * sum(DUALS[loss].bounds(target, parameter))
        below, at, above = (
            point(score + move, target, center, width, parameter) for move in (-step, 0, step)
        )
        assert (above[1] - below[1]) / (2 * step) == pytest.approx(-at[0], abs=1e-5)
        if below[2] == above[2]:
            assert (below[0] - above[0]) / (2 * step) == pytest.approx(at[2], abs=1e-5)


@each(exponent=[0, 3, 6])
def test_sizes_of_columns_do_no_harm(way, exponent):
    X, y, _ = draw()
    sizes = 10.0 ** np.linspace(-exponent, exponent, COLUMNS)
    X = csr_matrix(X.multiply(sizes)).astype(np.float32)
    result = train(X, y, tol=1e-3)
    assert result.reason == "converged"
    assert len(result.trace) <= 40


@pytest.mark.parametrize("l2", [1e-9, 1e-14])
def test_columns_that_are_multiples_of_one_do_no_harm(l2):
    """For the smaller l2, rounding leaves the matrix without factors."""
    random = np.random.default_rng(0)
    X = np.outer(random.normal(size=300), random.normal(size=100)).astype(np.float32)
    y = np.where(X[:, 0] + 0.3 * random.normal(size=300) > 0, 1.0, -1.0)
    result = train(X, y, l2=l2)
    assert result.reason == "converged"


@each(kind=["one label", "nothing but zeros", "opposite labels of equal rows", "separable"])
def test_odd_rows_do_no_harm(way, kind):
    X, y, _ = draw()
    labels = None
    if kind == "one label":
        y, labels = np.ones(ROWS), (-1, 1)
    elif kind == "nothing but zeros":
        X = csr_matrix(X.shape, dtype=np.float32)
    elif kind == "opposite labels of equal rows":
        X, y = csr_matrix(np.vstack([X.toarray()] * 2)), np.append(y, -y)
    else:
        y = np.sign(X @ np.arange(1.0, COLUMNS + 1) + 1e-3)
    result = train(X, y, labels=labels)
    assert result.reason == "converged"
    assert np.isfinite(result.model.weights).all()


def test_rows_of_weight_0_do_not_count_whatever_their_label():
    X, y, weights = draw()
    poisoned = np.where(weights == 0, -y, y)
    models = [train(X, labels, weights).model for labels in (y, poisoned)]
    assert models[0].weights.tobytes() == models[1].weights.tobytes()


def test_any_number_of_workers_learns_the_same_bytes(way, monkeypatch):
    monkeypatch.setattr(passes, "SHARD", 100)
    monkeypatch.setattr(passes, "SHARD_OF_COLUMNS", 1)
    X, y, weights = draw()
    results = [train(X, y, weights, tol=1e-6, workers=count) for count in (1, 2, 3)]
    assert len({result.model.weights.tobytes() for result in results}) == 1


def test_it_goes_on_from_an_earlier_result():
    X, y, _ = draw()
    start = train(X, y, epochs=5)
    result = train(X, y, start=start.state, epochs=1)
    assert result.trace[-1]["objective"] <= start.trace[-1]["objective"] * (1 + 1e-6)
    again = train(X, y, start=result.state)
    assert again.reason == "converged"


def test_what_single_precision_does_not_prove_ends_the_training():
    X, y, _ = draw()
    result = train(X, y, tol=1e-14)
    assert result.reason == "stuck"
    assert result.trace[-1]["gap"] < 1e-6


def table(rows=600, seed=0):
    """Columns as tables have them: a running number, a year, an amount, and ones and zeros."""
    random = np.random.default_rng(seed)
    number, year = np.arange(rows) + 1.0, random.integers(1990, 2020, rows)
    amount = np.exp(random.normal(8.0, 2.0, rows)).round()
    ones = random.random((rows, 8)) < 0.3
    return np.column_stack([number, year, amount, ones]).astype(np.float32), random


@pytest.mark.parametrize("l2", [1e-4, 1e-6])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_table_that_nobody_scaled(l2, intercept):
    """The optimum without a penalty, which linear programming finds, is a lower bound."""
    X, random = table()
    y = np.where(X[:, 3] + X[:, 4] + random.normal(size=len(X)) > 0.8, 1.0, -1.0)
    result = train(csr_matrix(X), y, l2=l2, intercept=intercept, solver="auto")
    found = result.trace[-1]
    assert result.reason == "converged"
    assert len(result.trace) < 40
    size, columns = X.shape
    scaled = X / np.abs(X).max(0).astype(np.float64)
    lack = np.hstack([-y[:, None] * scaled, -intercept * y[:, None], -np.eye(size)])
    free, least = [(None, None)] * (columns + 1), [(0.0, None)] * size
    costs = np.append(np.zeros(columns + 1), np.full(size, 1.0 / size))
    alone = linprog(costs, lack, -np.ones(size), bounds=free + least)
    assert found["objective"] >= alone.fun * (1 - 1e-9)
    weights = alone.x[:columns] / np.abs(X).max(0)
    other = alone.fun + 0.5 * l2 * weights @ weights
    assert found["objective"] / (1.0 + found["gap"]) <= other * (1 + 1e-9)
    assert found["objective"] <= other * (1 + 1e-3)


def test_rounding_of_a_large_intercept_costs_next_to_nothing():
    """The year separates the classes, so the loss is 0; rounding weights would make it larger."""
    X, _ = table(seed=1)
    y = np.where(X[:, 1] < 2005, -1.0, 1.0)
    result = train(csr_matrix(X), y, l2=1e-4)
    model = result.model
    assert result.reason == "converged"
    scores = X.astype(np.float64) @ model.weights.astype(np.float64) + float(model.intercept)
    lack = np.maximum(0.0, 1.0 - y * scores).mean()
    square = float(np.sum(model.weights.astype(np.float64) ** 2))
    assert lack + 0.5e-4 * square == pytest.approx(result.trace[-1]["objective"], rel=1e-6)
    assert result.trace[-1]["gap"] < 1e-3


def test_heads_have_the_weights_whose_objective_is_told():
    X, _ = table(seed=2)
    y = 2 * (X[:, 1] < 2005) + X[:, 3]
    result = train(csr_matrix(X), y, l2=1e-4)
    assert result.reason == "converged"
    scores = (
        X.astype(np.float64) @ result.model.weights.T.astype(np.float64) + result.model.intercept
    )
    signs = np.where(y[:, None] == result.model.labels, 1.0, -1.0)
    lack = np.maximum(0.0, 1.0 - signs * scores).mean(0).sum()
    square = float(np.sum(result.model.weights.astype(np.float64) ** 2))
    # The objective of several heads is computed in single precision
    assert lack + 0.5e-4 * square == pytest.approx(result.trace[-1]["objective"], rel=1e-4)


def test_auto_chooses_it_where_columns_are_few_and_no_class_is_rare(monkeypatch):
    monkeypatch.setattr(choosing, "SMALL", 0)
    X, y, _ = draw()
    many = csr_matrix((X.data, X.indices * 1000, X.indptr), (ROWS, 1000 * COLUMNS))
    rare = np.where(np.arange(ROWS) < 20, 1, -1)
    chosen = [
        train(*given, solver="auto", l2=1e-2).header["chosen"]["solver"]
        for given in ((X, y), (many, y), (X, rare))
    ]
    assert chosen == ["newton", "dual", "dual"]


@pairs(loss=("hinge", "absolute", "quantile"), l2=[1e-4, 1e-6], tol=[1e-3, 1e-5])
def test_hundreds_of_unscaled_dense_columns(loss, l2, tol):
    """A width that leaves curvature to fewer rows than columns would end the training stuck."""
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 100)) * np.exp(2 * random.normal(size=100)) + 1.0
    scores = X @ (random.normal(size=100) / X.std(axis=0)) + 5 * random.normal(size=1500)
    y = np.sign(scores - np.median(scores)) if loss == "hinge" else scores
    given = {"task": "svm" if loss == "hinge" else "regression", "loss": loss}
    found = train(csr_matrix(X.astype(np.float32)), y, **given, l2=l2, tol=tol)
    assert found.reason == "converged"
    assert found.trace[-1]["gap"] <= tol
