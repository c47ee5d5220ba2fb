"""The solvers newton and cg: their products, their optimum, and what they prove."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import hogwild
from hogwild.config import Config
from hogwild.errors import OptionError
from hogwild.kernels.views import Span, view
from hogwild.learn import passes
from hogwild.learn.conjugate import conjugate_gradients
from hogwild.learn.heads import heads_of
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import COUNTS, LOSSES, NUMBERS, SIGNS
from hogwild.learn.passes import Passes
from hogwild.learn.sets import Set
from tests import reference
from tests.combinations import each, pairs
from tests.examples import default_of, random_rows, random_weights

COLUMNS = 12
SMOOTH = [name for name, loss in LOSSES.items() if loss.second]
TASKS = {SIGNS: "svm", NUMBERS: "regression", COUNTS: "regression"}


def kind_of(loss):
    """The kind of targets that a loss is tried with."""
    return LOSSES[loss].kinds[-1]


def draw(loss, rows=240, seed=0, sizes=1.0):
    """Rows, as a matrix, with targets for a loss; and weights of the rows, some of them 0."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, COLUMNS)) * (random.random((rows, COLUMNS)) < 0.5)
    scores = X @ random.normal(size=COLUMNS) + random.normal(size=rows) + 0.6
    y = {SIGNS: np.sign, NUMBERS: np.array, COUNTS: lambda s: np.round(np.exp(np.fmin(s, 3)))}
    weights = random.integers(0, 4, rows).astype(np.float32)
    X = (X * sizes).astype(np.float32).astype(float)
    return X, y[kind_of(loss)](scores).astype(np.float32).astype(float), weights


def train(X, y, loss, weights=None, **more):
    options = {"task": TASKS[kind_of(loss)], "loss": loss, "solver": "newton"} | more
    return hogwild.train(hogwild.Rows(X, y, sample_weight=weights), **options)


def best_of(X, y, loss, l2, intercept, weights=None):
    """The least objective, and its place, by another method in double precision."""
    shares = np.ones(len(y)) if weights is None else weights / weights.mean()
    p = default_of(loss)

    def found(v):
        scores = X @ v[:-1] + v[-1]
        slopes = shares * reference.slope(loss, scores, y, p) / len(y)
        value = np.mean(shares * reference.value(loss, scores, y, p)) + l2 / 2 * v[:-1] @ v[:-1]
        return value, np.append(slopes @ X + l2 * v[:-1], intercept * slopes.sum())

    options = {"maxiter": 5000, "maxfun": 10**5, "ftol": 1e-16, "gtol": 1e-11}
    best = minimize(found, np.zeros(COLUMNS + 1), jac=True, method="L-BFGS-B", options=options)
    return best.fun, best.x, lambda model: found(np.append(model.weights, model.intercept))[0]


def passes_of(loss, weighted=False):
    kind = kind_of(loss)
    rows, X = random_rows(90, kind)
    weights = np.ones(90)
    targets = rows.targets
    if weighted:
        weights = np.random.default_rng(3).random(90).astype(np.float32)
        targets = np.column_stack([targets, weights]).ravel()
    data = Set(rows._replace(targets=_frozen(targets)), weighted, 90.0)
    return Passes(heads_of(loss, kind, 1), data, X.shape[1], default_of(loss)), X, rows, weights


def _frozen(array):
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("loss", SMOOTH)
def test_second_derivatives_are_those_of_the_slope(loss):
    second, slope, step = LOSSES[loss].second, LOSSES[loss].slope, 1e-6
    for target in (1.0,) if kind_of(loss) == COUNTS else (-1.0, 1.0):
        for score in (-60.0, -2.7, -0.95, -0.03, 0.02, 0.97, 2.6, 35.0):
            p = default_of(loss)
            near = (slope(score + step, target, p) - slope(score - step, target, p)) / (2 * step)
            scale = max(1.0, abs(slope(score, target, p)))
            assert second(score, target, p) == pytest.approx(near, rel=1e-5, abs=1e-8 * scale)


@pairs(loss=SMOOTH, weighted=[False, True])
def test_gradients_and_products_are_those_of_finite_differences(loss, weighted):
    work, X, rows, weights = passes_of(loss, weighted)
    y, w, b = rows.targets.astype(float), random_weights().astype(float), 0.2
    scores = work.scores(w)
    np.testing.assert_allclose(scores, X @ w, rtol=1e-12, atol=1e-12)
    found = work.slope(scores, b)

    def gradient_at(weights_, bias):
        slopes = weights * reference.slope(loss, X @ weights_ + bias, y, default_of(loss))
        return slopes @ X / len(y), slopes.mean()

    values = weights * reference.value(loss, scores + b, y, default_of(loss))
    np.testing.assert_allclose(found.loss, values.mean(), rtol=1e-8)
    slope_of_w, slope_of_b = gradient_at(w, b)
    np.testing.assert_allclose(found.gradient, slope_of_w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.slope, slope_of_b, rtol=1e-9, atol=1e-12)
    step, way = 1e-6, np.random.default_rng(4).normal(size=len(w))
    dots = np.empty(len(y))
    product = work.product(way, dots)
    np.testing.assert_allclose(dots, X @ way, rtol=1e-12, atol=1e-12)
    above, below = gradient_at(w + step * way, b), gradient_at(w - step * way, b)
    near = (above[0] - below[0]) / (2 * step)
    np.testing.assert_allclose(product, near, rtol=1e-4, atol=1e-6)
    above, below = gradient_at(w, b + step), gradient_at(w, b - step)
    np.testing.assert_allclose(found.border, (above[0] - below[0]) / (2 * step), atol=1e-6)
    np.testing.assert_allclose(found.second, (above[1] - below[1]) / (2 * step), atol=1e-6)
    np.testing.assert_allclose(found.diagonal, work.seconds @ X**2 / len(y), rtol=1e-9, atol=1e-15)
    loss_there, first, second = work.along(scores, dots, step, b, 1.0, 0.5)
    assert loss_there == pytest.approx(found.loss, rel=1e-4, abs=1e-4)
    assert first == pytest.approx(slope_of_w @ way + 0.5 * slope_of_b, rel=1e-3, abs=1e-5)
    expected = way @ product + way @ found.border + 0.25 * found.second
    assert second == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pairs(size=[1, 3, 8, 90], columns=[None, 1, 2, 7, 8], packed=[False, True])
def test_the_hessian_is_one_matrix_however_it_is_made(size, columns, packed, monkeypatch):
    """Rows with and without their zeros; some without curvature, or with a column twice."""
    monkeypatch.setattr(passes, "is_packed", lambda *given: packed)
    rows, X = random_rows(90, "signs")
    columns = columns or X.shape[1]
    monkeypatch.setattr(passes, "_spans", lambda *given: [view(Span, 0, size // 2 + 1)])
    rows = rows._replace(columns=_frozen(rows.columns % columns))
    whole = np.zeros((90, columns + 1))
    for row, (begin, end) in enumerate(zip(rows.begins, rows.ends, strict=True)):
        np.add.at(whole[row], rows.columns[begin:end], rows.values[begin:end])
    whole[:, -1] = 1.0
    work = Passes(heads_of("hinge", "signs", 1), Set(rows, False, 90.0), columns, 0.0)
    work.seconds = np.random.default_rng(5).random(90) * (np.arange(90) % 3 > 0)
    some = whole[: size // 2 + 1]
    expected = some.T @ (work.seconds[: len(some), None] * some) / 90
    np.testing.assert_allclose(work.bordered(), expected, rtol=1e-12, atol=1e-14)


def test_conjugate_gradients_are_exact_after_as_many_products_as_columns():
    random = np.random.default_rng(0)
    A = random.normal(size=(30, 9)) * 10.0 ** np.linspace(-3, 3, 9)
    right, seen = random.normal(size=9), []

    def product(p, dots):
        dots[:] = A @ p
        return A.T @ dots

    def goes_on(now):
        seen.append(now)
        return now.products < 9

    found = conjugate_gradients(product, right, (A**2).sum(axis=0), 30, goes_on)
    exact = np.linalg.solve(A.T @ A, right)
    np.testing.assert_allclose(found.direction, exact, rtol=1e-6)
    np.testing.assert_allclose(found.changes, A @ exact, rtol=1e-6, atol=1e-9)
    assert found.gain == pytest.approx(0.5 * right @ exact)
    assert seen[-1].size < 1e-12
    assert all(one.last > 0 for one in seen)


@pairs(loss=SMOOTH, l2=[1e-1, 1e-3], intercept=[False, True], weighted=[False, True])
def test_training_comes_to_the_optimum_and_knows_how_near_it_is(loss, l2, intercept, weighted):
    X, y, weights = draw(loss)
    weights = weights if weighted else None
    best, place, objective = best_of(X, y, loss, l2, intercept, weights)
    options = {"l2": l2, "intercept": intercept, "tol": 1e-7}
    result = train(X, y, loss, weights, **options)
    assert result.reason == "converged"
    reached = objective(result.model)
    last = result.trace[-1]
    assert last["objective"] == pytest.approx(reached, rel=1e-6, abs=1e-9)
    assert reached - best <= 2e-7 * abs(best) + 1e-9
    for row in result.trace:
        if row["gap"] is not None:
            bound = row["objective"] - row["gap"] * abs(best)
            assert bound <= best + 1e-7 * abs(best)
    np.testing.assert_allclose(result.model.weights, place[:-1], atol=0.02)


@each(solver=["cg", "closed"], intercept=[False, True])
def test_cg_and_closed_solve_the_normal_equations(solver, intercept):
    X, y, _ = draw("squared")
    l2 = 1e-2
    result = train(X, y, "squared", solver=solver, l2=l2, intercept=intercept, tol=1e-12)
    A = np.column_stack([X, np.ones(len(y))]) if intercept else X
    penalty = np.diag([l2 * len(y)] * COLUMNS + [0.0] * intercept)
    exact = np.linalg.solve(A.T @ A + penalty, A.T @ y)
    found = [*result.model.weights, *[result.model.intercept] * intercept]
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("solver", ["cg", "closed"])
def test_without_a_penalty_they_are_least_squares(solver):
    X, y, _ = draw("squared")
    result = train(X, y, "squared", solver=solver, l2=0.0, intercept=False, tol=1e-10)
    assert result.reason == "converged"
    assert result.trace[-1]["gap"] is None
    exact = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(result.model.weights, exact, rtol=1e-4, atol=1e-5)


def test_closed_takes_equal_columns_without_a_penalty_for_one():
    X, y, _ = draw("squared")
    twice = np.column_stack([X, X[:, 0], 0 * X[:, 0]])
    one, other = (
        train(Z, y, "squared", solver="closed", l2=0.0).trace[-1]["objective"] for Z in (X, twice)
    )
    assert other == pytest.approx(one, rel=1e-6)


def test_closed_counts_operations_and_refuses_too_many():
    X, y, weights = draw("squared")
    result = train(X, y, "squared", weights, solver="closed", l2=1e-3, workers=2)
    nonzeros = np.count_nonzero(X)
    expected = nonzeros**2 / len(y) + COLUMNS**3
    assert result.header["chosen"]["operations"] == pytest.approx(expected)
    assert len(result.trace) == 1
    wide = sparse.csr_matrix((y, (range(len(y)), range(len(y)))), shape=(len(y), 10_000))
    with pytest.raises(OptionError, match=r"closed takes 1e\+12 operations here"):
        train(wide, y, "squared", solver="closed")


@pytest.mark.parametrize("loss", ["logistic", "huber", "poisson"])
def test_without_a_penalty_newton_comes_to_the_optimum(loss):
    X, y, _ = draw(loss)
    best, _, objective = best_of(X, y, loss, 0.0, True)
    result = train(X, y, loss, l2=0.0, tol=1e-8)
    assert result.reason == "converged"
    assert objective(result.model) - best <= 1e-7 * max(1.0, abs(best))


@pytest.mark.parametrize("loss", ["logistic", "huber", "poisson", "squared"])
def test_without_a_penalty_weights_do_not_fit_the_rounding_of_values(loss):
    """Rows of rank 1 are of full rank in single precision."""
    draw = np.random.default_rng(0)
    at = draw.normal(size=60)
    y = {SIGNS: np.sign, NUMBERS: np.array, COUNTS: np.abs}[kind_of(loss)](
        at + draw.normal(size=60)
    )
    many = train(np.outer(at, np.arange(1, 9) / 3), y, loss, l2=0.0)
    one = train(at[:, None], y, loss, l2=0.0, tol=1e-8)
    assert many.reason == "converged"
    assert many.trace[-1]["objective"] == pytest.approx(one.trace[-1]["objective"], rel=1e-4)
    assert np.abs(many.model.weights).max() < 1.0


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "poisson"])
def test_columns_of_very_different_sizes_do_no_harm(loss):
    sizes = 10.0 ** np.linspace(-3, 3, COLUMNS)
    X, y, _ = draw(loss, sizes=sizes)
    result = train(X, y, loss, l2=1e-6, tol=1e-5)
    assert result.reason == "converged"
    assert sum(row["rows"] for row in result.trace) < 400 * len(y)


def test_huge_values_in_some_columns_do_not_end_the_training():
    """A step that one row limits to a billionth of its length is found nevertheless."""
    random = np.random.default_rng(1)
    X = sparse.random(2000, 3000, density=50 / 3000, format="csr", random_state=random)
    X.data = random.normal(size=X.nnz)
    y = np.sign(X @ random.normal(size=3000) + random.normal(size=2000))
    X.data[random.integers(0, X.nnz, 100)] = 1e6 * random.choice([-1, 1], 100)
    result = train(X, y, "logistic", l2=1e-4)
    assert result.reason == "converged"
    assert result.trace[-1]["gap"] <= 1e-3


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_any_number_of_workers_learns_the_same_bytes(loss, monkeypatch):
    monkeypatch.setattr(passes, "SHARD", 100)
    X, y, weights = draw(loss)
    results = [
        train(X, y, loss, weights, l2=1e-4, tol=1e-6, workers=workers) for workers in (1, 2, 3, 8)
    ]
    first = results[0]
    assert len(passes._spans(Set(random_rows(90)[0], False, 90.0), 1)) > 1
    for other in results[1:]:
        assert other.model.weights.tobytes() == first.model.weights.tobytes()
        assert other.model.intercept == first.model.intercept
        assert [row["objective"] for row in other.trace] == [
            row["objective"] for row in first.trace
        ]


def test_shards_depend_on_the_non_zeros_and_cover_all_rows(monkeypatch):
    monkeypatch.setattr(passes, "SHARD", 50)
    spans = passes._spans(Set(random_rows(200)[0], False, 200.0), 1)
    assert len(spans) == passes.MOST_SHARDS
    assert [int(one.begin) for one in spans[1:]] == [int(one.end) for one in spans[:-1]]
    assert (int(spans[0].begin), int(spans[-1].end)) == (0, 200)


def test_a_target_ends_the_training_also_where_it_is_out_of_reach():
    X, y, _ = draw("logistic")
    best = best_of(X, y, "logistic", 1e-3, True)[0]
    found = train(X, y, "logistic", l2=1e-3, target=1.01 * best)
    assert found.reason == "target"
    assert found.trace[-1]["objective"] <= 1.01 * best
    found = train(X, y, "logistic", l2=1e-3, target=0.99 * best)
    assert found.reason == "unreachable"


def test_single_precision_ends_a_training_that_is_never_near_enough():
    X, y, _ = draw("logistic")
    result = train(X, y, "logistic", l2=1e-3, tol=0.0)
    assert result.reason == "stuck"
    assert result.trace[-1]["gap"] < 1e-9


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        *(("newton", loss) for loss in ("squared", "huber", "absolute", "logistic")),
        *(("cg", "squared"), ("closed", "squared"), ("lbfgs", "huber")),
    ],
)
def test_values_far_from_0_end_a_training_that_single_precision_does_not_prove(solver, loss):
    """Each step was progress, from weights in single precision to those in double: for ever."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    y = X[:, 0] + random.normal(size=300)
    y = np.sign(y) if loss == "logistic" else y
    result = train(1e5 + X, y, loss, solver=solver, l2=1e-4, tol=1e-8, time_limit=30.0)
    assert result.reason == "stuck"
    assert len(result.trace) < 500
    assert result.trace[-1]["gap"] < 1e-3


def test_training_goes_on_from_what_others_came_to():
    X, y, _ = draw("logistic")
    for solver in ("sgd", "dual", "newton"):
        start = train(X, y, "logistic", solver=solver, l2=1e-3, epochs=3).state
        result = train(X, y, "logistic", l2=1e-3, tol=1e-6, start=start)
        assert result.reason == "converged"
    again = train(X, y, "logistic", l2=1e-3, tol=1e-5, start=result.state)
    assert len(again.trace) == 1


def test_targets_far_from_zero_are_no_reason_to_end_early():
    X, y, _ = draw("squared")
    found = train(X, 300 * y + 1e4, "squared", l2=1e-3, tol=1e-5)
    assert found.reason == "converged"
    best = best_of(X, 300 * y, "squared", 1e-3, True)[0]
    assert objective_of(found.model, X, 300 * y + 1e4, 1e-3) == pytest.approx(best, rel=2e-5)


def objective_of(model, X, y, l2):
    scores = X @ model.weights.astype(float) + model.intercept
    return np.mean((scores - y) ** 2) / 2 + l2 / 2 * np.sum(model.weights.astype(float) ** 2)


@pairs(loss=SMOOTH, far=[0.0, 30.0])
def test_the_intercept_is_where_its_derivative_is_zero(loss, far):
    X, y, weights = draw(loss)
    problem = problem_of(X, y, weights, loss=loss, task=TASKS[kind_of(loss)])
    proof = problem._outcome
    for seed in range(20):
        proof._scores = np.random.default_rng(seed).normal(size=len(y))
        proof._bias = far
        proof._bias = proof._passes.best_bias(proof._scores, proof._bias)
        slopes = weights * reference.slope(loss, proof._scores + proof._bias, y, default_of(loss))
        left = proof._passes.slope(proof._scores, proof._bias).slope
        assert abs(left) <= 1e-12 * np.abs(slopes).mean() + 1e-14


def problem_of(X, y, weights=None, **options):
    config = Config.of({"solver": "newton"} | options)
    return LinearProblem(hogwild.Rows(X, y, sample_weight=weights), None, config)


def test_labels_of_one_class_and_rows_of_nothing_do_no_harm():
    X = np.zeros((20, 3))
    X[::2, 0] = 1
    y = np.sign(np.arange(20) - 9.5)
    for loss in ("logistic", "squared_hinge", "exponential"):
        assert train(X, y, loss, l2=1e-3).reason == "converged"
    X[:, 1] = y
    assert train(X, y, "logistic", l2=1e-9, tol=1e-3).reason == "converged"


def test_a_time_limit_is_heard_between_two_passes():
    X, y, _ = draw("logistic")
    result = train(X, y, "logistic", l2=1e-9, tol=0.0, time_limit=1e-9)
    assert result.reason == "time"
    assert sum(row["rows"] for row in result.trace) <= 4 * len(y)
    assert np.isfinite(result.trace[-1]["objective"])


def test_an_interrupted_iteration_leaves_better_weights_than_before():
    X, y, _ = draw("logistic")
    whole = train(X, y, "logistic", l2=1e-6, tol=1e-6)
    assert len(whole.trace) > 2
    problem = problem_of(X, y, task="logistic", l2=1e-6, tol=1e-6)
    shared = {name: np.zeros(size, kind) for name, (size, kind) in problem.shared().items()}
    reached = []
    for stop in range(1, 8):
        problem.set_start(shared, None, lambda stage: None)
        problem.iterate(shared, partial(next, iter([True] * (stop - 1)), False))
        reached.append(problem.measured(shared, problem.prove(shared))["objective"])
    assert reached[0] <= np.log(2)
    assert reached[1] < reached[0]
    assert max(reached[1:]) < reached[1] + 0.05


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"loss": "perceptron"}, "a loss with a second derivative"),
        ({"loss": "hinge", "l2": 0.0}, "an l2 above 0 and the loss hinge"),
        ({"l1": 1e-3}, "an l1 of 0"),
        ({"strategy": "combine"}, "to be auto with the solvers newton, cg"),
        ({"eta0": 0.1}, "have no learning rate"),
        ({"average": False}, "to be left out with other solvers"),
        ({"solver": "cg"}, "the loss squared to be cg or closed"),
    ],
)
def test_what_newton_cannot_do_is_refused(options, told):
    X, y, _ = draw("logistic")
    with pytest.raises(OptionError, match=told):
        train(X, y, **({"loss": "logistic"} | options))
