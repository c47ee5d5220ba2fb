"""The solver against others, its certificate against the truth, and data that are not nice."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import random as random_matrix

from experiments.optimum import LOSSES, Optimum, optimum
from hogwild.data.rows import Rows
from hogwild.errors import OptionError

INTERCEPT = pytest.mark.parametrize("intercept", [False, True])
LOSS = pytest.mark.parametrize("loss", list(LOSSES))


def noisy_rows(n: int, columns: int, shift: float = 0.5, seed: int = 1) -> Rows:
    """Sparse rows with planted weights; a large shift makes one class rare."""
    random = np.random.default_rng(seed)
    X = random_matrix(n, columns, density=0.3, random_state=random, dtype=np.float32).tocsr()
    scores = X @ random.standard_normal(columns) + 0.3 * random.standard_normal(n)
    return Rows(X, np.where(scores > np.quantile(scores, shift), 1, -1))


def objective(rows: Rows, loss: str, l2: float, w: Any, b: float) -> float:
    margins = rows.targets() * (rows.to_scipy().toarray().astype(np.float64) @ w + b)
    losses = {"hinge": np.maximum(0, 1 - margins), "logistic": np.logaddexp(0, -margins)}[loss]
    return float(l2 / 2 * w @ w + losses.mean())


def check(rows: Rows, loss: str, l2: float, found: Optimum, gap: float) -> None:
    """What every certified result has to keep, whoever found it."""
    recomputed = objective(rows, loss, l2, found.weights, found.intercept)
    assert found.objective == pytest.approx(recomputed, rel=1e-12)
    assert found.lower_bound <= found.objective
    assert found.certified
    assert found.gap <= gap


def logistic_by_lbfgs(rows: Rows, l2: float, intercept: bool) -> float:
    X = np.c_[rows.to_scipy().toarray(), np.full(len(rows), float(intercept))].astype(np.float64)
    y = rows.targets().astype(np.float64)
    penalty = np.r_[np.full(rows.columns, l2), 0.0]

    def value(z: Any) -> tuple[float, Any]:
        margins = y * (X @ z)
        slopes = -y / (1 + np.exp(margins)) / len(y)
        return np.mean(np.log1p(np.exp(-margins))) + penalty @ z**2 / 2, X.T @ slopes + penalty * z

    options = {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 20_000}
    start = np.zeros(rows.columns + 1)
    return float(minimize(value, start, jac=True, method="L-BFGS-B", options=options).fun)


def hinge_by_quadratic_program(rows: Rows, l2: float, intercept: bool) -> float:
    """Weights, intercept and one slack s_i a row: least l2/2 |w|^2 + mean s, s >= 0, s >= 1 - m."""
    n, d = len(rows), rows.columns
    y = rows.targets().astype(np.float64)[:, None]
    X = rows.to_scipy().toarray()
    matrix = np.hstack([y * X, y * float(intercept), np.eye(n)])
    penalty = np.r_[np.full(d, l2), np.zeros(n + 1)]
    slack = np.r_[np.zeros(d + 1), np.full(n, 1 / n)]
    result = minimize(
        lambda z: (penalty @ z**2 / 2 + slack @ z, penalty * z + slack),
        np.r_[np.zeros(d + 1), np.ones(n)],
        jac=True,
        method="SLSQP",
        bounds=[(None, None)] * (d + 1) + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda z: matrix @ z - 1, "jac": lambda z: matrix},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return float(result.fun)


@INTERCEPT
@pytest.mark.parametrize("l2", [1e-2, 1e-5])
def test_logistic_agrees_with_lbfgs(l2: float, intercept: bool) -> None:
    rows = noisy_rows(500, 20)
    found = optimum(rows, "logistic", l2, intercept, gap=1e-8)
    check(rows, "logistic", l2, found, 1e-8)
    assert found.objective == pytest.approx(logistic_by_lbfgs(rows, l2, intercept), rel=1e-7)


@INTERCEPT
@pytest.mark.parametrize("l2", [1e-2, 1e-3])
def test_hinge_agrees_with_a_quadratic_program(l2: float, intercept: bool) -> None:
    rows = noisy_rows(60, 5, shift=0.3)
    found = optimum(rows, "hinge", l2, intercept, gap=1e-8)
    check(rows, "hinge", l2, found, 1e-8)
    assert found.objective == pytest.approx(
        hinge_by_quadratic_program(rows, l2, intercept), rel=1e-6
    )


@pytest.mark.parametrize("shift", [0.5, 0.97])
def test_hinge_agrees_with_libsvm(shift: float) -> None:
    """Its linear kernel's intercept has no penalty either."""
    svm = pytest.importorskip("sklearn.svm")
    rows, l2 = noisy_rows(400, 30, shift), 1e-3
    model = svm.SVC(kernel="linear", C=1 / (len(rows) * l2), tol=1e-6)
    model.fit(rows.to_scipy().toarray().astype(np.float64), rows.targets())
    found = optimum(rows, "hinge", l2, True, gap=1e-6)
    check(rows, "hinge", l2, found, 1e-6)
    theirs = objective(rows, "hinge", l2, model.coef_[0], model.intercept_[0])
    assert found.lower_bound <= theirs
    assert found.objective == pytest.approx(theirs, rel=1e-5)


@INTERCEPT
@LOSS
@pytest.mark.parametrize("shift", [0.5, 0.02, 0.995])
def test_no_weights_are_better_than_the_lower_bound(
    loss: str, shift: float, intercept: bool
) -> None:
    """Rough answers, whose bounds differ, against an exact one."""
    rows, l2 = noisy_rows(600, 40, shift), 1e-4
    exact = optimum(rows, loss, l2, intercept, gap=1e-8)
    check(rows, loss, l2, exact, 1e-8)
    for gap in 0.5, 1e-1, 1e-3:
        rough = optimum(rows, loss, l2, intercept, gap=gap)
        check(rows, loss, l2, rough, gap)
        assert rough.lower_bound <= exact.objective
        assert rough.objective >= exact.lower_bound


@LOSS
def test_more_columns_than_rows_and_no_errors(loss: str) -> None:
    rows = noisy_rows(80, 400)
    found = optimum(rows, loss, 1e-6, True, gap=1e-6)
    check(rows, loss, 1e-6, found, 1e-6)
    scores = rows.to_scipy() @ found.weights + found.intercept
    assert np.all(scores * rows.targets() > 0)


@LOSS
def test_columns_of_very_different_size(loss: str) -> None:
    nice = noisy_rows(300, 20)
    X = nice.to_scipy().multiply(10.0 ** np.linspace(-3, 3, 20)).tocsr()
    rows = Rows(X.astype(np.float32), nice.y)
    check(rows, loss, 1e-4, optimum(rows, loss, 1e-4, True, gap=1e-6), 1e-6)


@INTERCEPT
@LOSS
def test_a_column_twice_in_a_row_counts_as_the_sum(loss: str, intercept: bool) -> None:
    whole = noisy_rows(200, 10)
    arrays = whole.indptr * 2, whole.indices.repeat(2), whole.values.repeat(2) / 2
    twice = Rows.from_arrays(*arrays, whole.columns, whole.y)
    found = optimum(twice, loss, 1e-3, intercept, gap=1e-8)
    expected = optimum(whole, loss, 1e-3, intercept, gap=1e-8)
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)


@LOSS
def test_empty_rows_leave_only_the_intercept(loss: str) -> None:
    y = np.array([1] * 30 + [0] * 10)
    rows = Rows(np.zeros((40, 3)), y)
    found = optimum(rows, loss, 1e-3, True, gap=1e-9)
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert found.objective == pytest.approx({"hinge": 0.5, "logistic": entropy}[loss], rel=1e-8)
    assert found.certified
    assert not found.weights.any()


@LOSS
def test_without_an_intercept_it_is_zero(loss: str) -> None:
    assert optimum(noisy_rows(100, 10), loss, 1e-3, False).intercept == 0.0


@LOSS
def test_what_was_not_reached_is_not_certified(loss: str) -> None:
    found = optimum(noisy_rows(600, 40), loss, 1e-6, True, gap=1e-9, seconds=1e-6)
    assert not found.certified
    assert found.lower_bound <= found.objective < np.inf


@INTERCEPT
@LOSS
def test_rounding_never_lifts_the_bound_above_the_objective(loss: str, intercept: bool) -> None:
    found = optimum(noisy_rows(600, 40), loss, 1e-3, intercept, gap=1e-11)
    assert found.lower_bound <= found.objective
    assert found.certified


def test_all_problems_of_the_options_at_once() -> None:
    rows = noisy_rows(20, 3)
    with pytest.raises(OptionError, match=r"loss 'square'.*hinge, logistic; l2 0\.0 .*; gap nan"):
        optimum(rows, "square", 0.0, True, gap=float("nan"))
    with pytest.raises(OptionError, match="float64 cannot"):
        optimum(rows, "hinge", 1e-3, True, gap=1e-15)
