"""No knobs: with defaults, awkward data is learned to a proved optimum."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

import hogwild
from hogwild import coordinator
from hogwild.errors import HogwildWarning
from tests import reference
from tests.combinations import each

L2, SIZE, COLUMNS = 1e-4, 4000, 20
AWKWARD = {
    "sizes of columns": "columns are of sizes from 1e-6 to 1e6",
    "skewed": "columns are as frequent as Zipf's law with the exponent 1.5 says",
    "rare": "1 % of the rows are positive",
    "copies": "columns are there twice, or constant",
    "outliers": "20 values are 1e6",
    "wide outliers": "10 of 100,000 values are 1e6, in 6,000 columns",
    "long": "rows have 2,000 values",
    "short": "rows have one value",
    "dense": "each row has all 300 columns, with a mean of 1",
    "separable": "no row is on the wrong side",
    "noisy": "40 % of the labels are wrong",
    "one-hot": "rows have 5 of 250 columns, with a 1",
    "ten": "there are 10 rows and 20 columns",
}


def sparse(indices, columns, values=1.0):
    """Rows with a value in the columns that a matrix of numbers says."""
    rows = np.repeat(np.arange(len(indices)), indices.shape[1])
    values = np.full(indices.size, values)
    return csr_matrix((values, (rows, indices.ravel())), (len(indices), columns))


def labels(X, random, wrong=0.05):
    scores = X @ random.normal(size=X.shape[1])
    return np.where((scores > np.median(scores)) ^ (random.random(X.shape[0]) < wrong), 1.0, -1.0)


@cache
def awkward(name):
    random = np.random.default_rng(0)
    X = random.normal(size=(SIZE, COLUMNS))
    y = labels(X, random, wrong=0.4 if name == "noisy" else 0.05)
    if name == "sizes of columns":
        X = X * 10.0 ** np.linspace(-6, 6, COLUMNS)
    elif name == "skewed":
        X = sparse(np.minimum(random.zipf(1.5, (SIZE, 30)), 5000) - 1, 5000, 0.2)
        y = labels(X, random)
    elif name == "rare":
        scores = X @ random.normal(size=COLUMNS) + random.normal(size=SIZE)
        y = np.where(scores > np.quantile(scores, 0.99), 1.0, -1.0)
    elif name == "copies":
        X = np.hstack([X, X, np.ones((SIZE, 2)), np.full((SIZE, 1), 7.0)])
    elif name == "outliers":
        X[random.integers(0, SIZE, 20), random.integers(0, COLUMNS, 20)] = 1e6
    elif name == "wide outliers":
        X = sparse(random.integers(0, 6000, (1000, 100)), 6000)
        X.data = random.normal(size=len(X.data))
        y = labels(X, random)
        X.data[random.integers(0, len(X.data), 10)] = 1e6
    elif name == "long":
        X = random.normal(size=(2000, 5000)) * (random.random((2000, 5000)) < 0.4)
        y = labels(X, random)
    elif name == "short":
        X = sparse(random.integers(0, 3000, (8000, 1)), 3000)
        y = labels(X, random)
    elif name == "dense":
        X = random.normal(size=(SIZE, 300)) + 1
        y = labels(X, random)
    elif name == "separable":
        y = np.sign(X @ random.normal(size=COLUMNS))
    elif name == "one-hot":
        X = sparse(random.integers(0, 50, (SIZE, 5)) + 50 * np.arange(5), 250)
        y = labels(X, random)
    elif name == "ten":
        X, y = X[:10], y[:10]
    return csr_matrix(X).astype(np.float32), y


def objective(w, b, X, y, loss):
    """In double precision."""
    w = np.asarray(w, float)
    return L2 / 2 * w @ w + np.mean(reference.value(loss, X.astype(float) @ w + b, y, 0.0))


def known_best(X, y, loss):
    """An objective that an independent method reaches, in double precision.

    For the hinge it minimizes one that is rounded over a width of 2e-3.
    """
    X, width = X.astype(float), 2e-3
    sizes = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel()) + 1e-12
    scaled = csr_matrix(X.multiply(1 / sizes))  # other units make no other optimum

    def found(v):
        w, margins = v[:-1] / sizes, y * (scaled @ v[:-1] + v[-1])
        value, slope = np.logaddexp(0, -margins), -expit(-margins)
        if loss == "hinge":
            missing = np.maximum(0, 1 - margins)
            value = np.where(missing > width, missing - width / 2, missing**2 / (2 * width))
            slope = -np.minimum(missing / width, 1)
        pull = y * slope / len(y)
        gradient = np.append(scaled.T @ pull + L2 * w / sizes, pull.sum())
        return L2 / 2 * w @ w + value.mean(), gradient

    options = {"maxiter": 1000, "ftol": 1e-10, "gtol": 1e-9, "maxcor": 30}
    start = np.zeros(X.shape[1] + 1)
    v = minimize(found, start, jac=True, method="L-BFGS-B", options=options).x
    return objective(v[:-1] / sizes, v[-1], X, y, loss)


@cache
def trained(name, loss):
    return hogwild.train(hogwild.Rows(*awkward(name)), loss=loss, l2=L2)


ALL = each(name=AWKWARD, loss=["hinge", "logistic"])


@ALL
def test_defaults_come_to_a_proved_optimum(name, loss):
    result = trained(name, loss)
    model, last = result.model, result.trace[-1]
    assert result.reason == "converged"
    assert last["gap"] <= 1.01e-3
    assert np.isfinite(model.weights).all()
    assert np.isfinite(model.intercept)
    found = objective(model.weights, model.intercept, *awkward(name), loss)
    assert last["objective"] == pytest.approx(found, rel=1e-4)


TOLD = "the objective .* the optimum, .* Scale the columns"


@each(name=["sizes of columns", "outliers"])
def test_slow_training_says_so_once_and_names_the_columns_to_scale(name, monkeypatch):
    monkeypatch.setattr(coordinator, "SLOW", 2)
    monkeypatch.setattr(coordinator, "SLOW_NONZEROS", 0.0)
    given = {"loss": "hinge", "l2": L2, "solver": "dual", "epochs": 5}
    with pytest.warns(HogwildWarning, match=TOLD) as notes:
        result = hogwild.train(hogwild.Rows(*awkward(name)), **given)
    assert len(notes) == 1
    assert np.isfinite(result.model.weights).all()


def test_a_proof_that_gets_no_better_says_so():
    given = {"loss": "hinge", "l2": L2, "solver": "dual"}
    with pytest.warns(HogwildWarning, match="gets no better. Scale the columns"):
        result = hogwild.train(hogwild.Rows(*awkward("sizes of columns")), **given)
    assert result.reason == "stuck"


@pytest.mark.slow
@ALL
def test_defaults_come_to_the_optimum_of_another_method(name, loss):
    last, best = trained(name, loss).trace[-1], known_best(*awkward(name), loss)
    assert last["objective"] <= 1.01 * best
    assert last["objective"] <= (1 + last["gap"]) * best * (1 + 1e-6)  # the proof is true
