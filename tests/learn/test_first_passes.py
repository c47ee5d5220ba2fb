"""Passes of dual ascent that Newton's method begins with: chosen, handed over, and proved."""

import time

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild.learn import choosing, first_passes, passes
from hogwild.learn.first_passes import FirstPasses
from tests.combinations import pairs

ROWS, COLUMNS = 600, choosing.FEW_COLUMNS + 500
WEAK = 0.01 / ROWS


def data(seed=0, rows=ROWS):
    """Sparse rows of length 1, of which a tenth has the wrong label."""
    random = np.random.default_rng(seed)
    X = sparse.random(rows, COLUMNS, 0.01, "csr", random_state=random, dtype=np.float64)
    X = sparse.diags(1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X
    y = np.sign(X @ random.normal(size=COLUMNS) + 1e-9)
    y[: rows // 10] *= -1
    return X.tocsr().astype(np.float32), y


def train(X, y, weights=None, **more):
    options = {"loss": "logistic", "l2": WEAK} | more
    return hogwild.train(hogwild.Rows(X, y, sample_weight=weights), **options)


@pytest.mark.parametrize(
    ("solver", "more"),
    [
        ("newton", {}),
        ("newton", {"intercept": False}),
        ("dual", {"l2": 2.0 / ROWS}),
        ("dual", {"loss": "squared_hinge"}),
        ("dual", {"loss": "hinge"}),
    ],
)
def test_it_is_chosen_where_the_penalty_is_weak(solver, more):
    chosen = train(*data(), **more).header["chosen"]
    assert chosen["solver"] == solver
    assert ("passes of dual ascent" in chosen["solver_why"]) == (solver == "newton")


def test_many_non_zeros_are_left_to_workers_of_dual(monkeypatch):
    X, y = data()
    monkeypatch.setattr(choosing, "MOST_FIRST", X.nnz)
    assert train(X, y).header["chosen"]["solver"] == "dual"


def test_several_classes_are_learned_by_dual():
    chosen = train(data()[0], np.arange(ROWS) % 3, task="logistic").header["chosen"]
    assert chosen["solver"] == "dual"


@pairs(intercept=[False, True], weighted=[False, True], tol=[1e-2, 1e-4, 1e-6])
def test_the_optimum_is_that_of_dual_ascent_alone(intercept, weighted, tol):
    X, y = data()
    weights = np.random.default_rng(1).integers(0, 3, ROWS) if weighted else None
    options = {"weights": weights, "intercept": intercept}
    exact = train(X, y, solver="newton", tol=1e-9, **options).trace[-1]["objective"]
    result = train(X, y, tol=tol, **options)
    last = result.trace[-1]
    assert result.reason == "converged"
    assert (last["objective"] - exact) / exact <= last["gap"] + 1e-7
    assert last["gap"] <= tol


@pytest.mark.parametrize(("rows", "slower"), [(600, "newton"), (20_000, "dual")])
def test_they_take_half_the_passes_of_a_method_that_is_slow_there(rows, slower, monkeypatch):
    X, y = data(rows=rows)
    options = {"l2": 0.01 / rows, "tol": 1e-6}
    both = train(X, y, **options)
    monkeypatch.setattr(choosing, "MOST_FIRST", 0)
    alone = train(X, y, solver=slower, **options)
    used, needed = (sum(row["rows"] for row in one.trace) for one in (both, alone))
    assert used < 0.5 * needed


def test_a_target_that_the_passes_reach_ends_the_training():
    X, y = data()
    exact = train(X, y, tol=1e-8).trace[-1]["objective"]
    result = train(X, y, target=1.05 * exact)
    assert result.reason == "target"
    assert len(result.trace) == 1
    assert train(X, y, target=0.99 * exact).reason == "unreachable"


def test_the_bytes_do_not_depend_on_the_number_of_workers(monkeypatch):
    monkeypatch.setattr(passes, "SHARD", 100)
    monkeypatch.setattr(passes, "SHARD_OF_COLUMNS", 1)
    X, y = data()
    first, *others = (train(X, y, workers=workers, tol=1e-5).model for workers in (1, 2, 3))
    for other in others:
        assert other.weights.tobytes() == first.weights.tobytes()


def test_a_time_limit_ends_the_passes(monkeypatch):
    calls = []
    advance = first_passes.Ascent.advance
    monkeypatch.setattr(first_passes, "FEWEST", 10**6)  # no look ends them

    def slow(self, passed):
        calls.append(1)
        time.sleep(0.05)
        return advance(self, passed)

    monkeypatch.setattr(first_passes.Ascent, "advance", slow)
    result = train(*data(), time_limit=0.08)
    assert result.reason == "time"
    assert len(calls) > 1
    assert np.isfinite(result.model.weights).all()


def test_weights_worse_than_none_are_not_begun_with(monkeypatch):
    def bad(self, stored, passed, fetching):
        stored[:] = 1e3

    monkeypatch.setattr(FirstPasses, "learn", bad)
    result = train(*data(), tol=1e-4)
    assert result.reason == "converged"
    assert np.abs(result.model.weights).max() < 1e3
