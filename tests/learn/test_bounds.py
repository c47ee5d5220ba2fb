"""What solvers prove: no bound lies above an objective that any solver comes to."""

import warnings

import numpy as np
import pytest

import hogwild
from hogwild.learn.linear import LinearProblem

SOLVERS = {
    "hinge": ("dual", "newton", "gd"),
    "squared_hinge": ("dual", "newton", "lbfgs"),
    "logistic": ("dual", "newton", "lbfgs", "gd"),
    "squared": ("dual", "newton", "closed"),
    "huber": ("dual", "newton"),
    "absolute": ("dual", "newton", "gd"),
    "epsilon_insensitive": ("dual", "newton"),
    "quantile": ("dual", "newton"),
}
NUMBERS = ("squared", "huber", "absolute", "epsilon_insensitive", "quantile")
ROUNDED = 2e-6


def problem(random, loss):
    """Rows of any size, classes of any shares, numbers of any mean."""
    n, d = random.integers(8, 200), random.integers(1, 30)
    X = random.normal(size=(n, d)) * 10 ** random.uniform(-3, 2) + random.choice([0.0, 1.0])
    X[random.random(n) < 0.1] = 0.0
    if loss in ("hinge", "squared_hinge", "logistic"):
        y = np.where(random.random(n) < random.choice([0.05, 0.5, 0.9]), 1, -1)
        y[:2] = 1, -1
    else:
        y = X @ random.normal(size=d) + random.normal(size=n) + random.choice([0.0, 3.0, 100.0])
    weight = random.choice([0.0, 1.0, 3.0], n) if random.random() < 0.3 else None
    if weight is not None:
        weight[:2] = 1.0
    return hogwild.Rows(X, y, sample_weight=weight)


@pytest.mark.parametrize("loss", SOLVERS)
def test_no_bound_lies_above_an_objective_that_was_met(loss, monkeypatch):
    bounds = []
    proved = LinearProblem.proved

    def noted(self):
        found = proved(self)
        bounds.append(found.bound)
        return found

    monkeypatch.setattr(LinearProblem, "proved", noted)
    random = np.random.default_rng(len(loss))
    for _ in range(30):
        rows, l2 = problem(random, loss), 10 ** random.uniform(-5, 1)
        task = "regression" if loss in NUMBERS else "svm"
        given = {"task": task, "loss": loss, "l2": l2, "tol": 1e-5, "epochs": 40, "workers": 1}
        bounds.clear()
        least = np.inf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for solver in SOLVERS[loss]:
                result = hogwild.train(rows, solver=solver, **given)
                met = [row["objective"] for row in result.trace if row["objective"] is not None]
                least = min(least, *met)
        assert bounds
        assert max(bounds) <= least + ROUNDED * abs(least)
