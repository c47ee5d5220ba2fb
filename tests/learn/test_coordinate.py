"""The solver coordinate: columns of rows, the optimum with an L1 penalty, and what is proved."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

import hogwild
from hogwild.config import Config
from hogwild.data.synthetic import rcv1
from hogwild.errors import DataError, OptionError
from hogwild.kernels.columns import curve_along
from hogwild.kernels.views import RowView, view
from hogwild.learn import columns, coordinate
from hogwild.learn.columns import column_spans, columns_of
from hogwild.learn.coordinate import Descent, highest
from hogwild.learn.heads import heads_of
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import NUMBERS, SIGNS
from hogwild.learn.needs import ON_COLUMNS
from hogwild.learn.sets import Set
from tests import reference
from tests.combinations import pairs

COLUMNS = 12
TASKS = {"squared": "regression", "squared_hinge": "svm", "logistic": "logistic"}


def draw(loss, rows=240, seed=0, sizes=1.0):
    """Rows, as a matrix, with targets for a loss; and weights of the rows, some of them 0."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, COLUMNS)) * (random.random((rows, COLUMNS)) < 0.5)
    truth = random.normal(size=COLUMNS) * (np.arange(COLUMNS) % 2)
    scores = X @ truth + random.normal(size=rows) + 0.6
    y = scores if loss == "squared" else np.sign(scores)
    weights = random.integers(0, 4, rows).astype(np.float32)
    X = (X * sizes).astype(np.float32).astype(float)
    return X, y.astype(np.float32).astype(float), weights


def train(X, y, loss, weights=None, **more):
    task = TASKS.get(loss, "svm")
    options = {"task": task, "loss": loss, "solver": "coordinate", "l1": 0.02} | more
    return hogwild.train(hogwild.Rows(X, y, sample_weight=weights), **options)


def best_of(X, y, loss, l1, l2, intercept, weights=None):
    """The least objective and its place, by another method: weights are differences, u - v."""
    shares = np.ones(len(y)) if weights is None else weights / weights.mean()
    d = X.shape[1]

    def objective(w, b):
        losses = np.mean(shares * reference.value(loss, X @ w + b, y))
        return losses + l2 / 2 * w @ w + l1 * np.abs(w).sum()

    def found(v):
        w = v[:d] - v[d:-1]
        scores = X @ w + v[-1]
        slopes = shares * reference.slope(loss, scores, y) / len(y)
        value = np.mean(shares * reference.value(loss, scores, y)) + l2 / 2 * w @ w
        gradient = slopes @ X + l2 * w
        both = np.concatenate([gradient + l1, l1 - gradient, [intercept * slopes.sum()]])
        return value + l1 * v[:-1].sum(), both

    options = {"maxiter": 10_000, "maxfun": 10**5, "ftol": 1e-16, "gtol": 1e-11}
    bounds = [(0, None)] * (2 * d) + [(None, None)]
    start = np.zeros(2 * d + 1)
    best = minimize(found, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return best.fun, best.x[:d] - best.x[d:-1], objective


def set_of(X, y, weights=None):
    rows = hogwild.Rows(X, y)
    targets = np.asarray(y, np.float32)
    if weights is not None:
        weights = (weights / weights.mean()).astype(np.float32)
        targets = np.column_stack([targets, weights]).ravel()
    arrays = rows.begins, rows.ends, rows.indices, rows.values, np.ascontiguousarray(targets)
    return Set(view(RowView, *arrays), weights is not None, float(len(y)))


def descent_of(X, y, loss, l1, l2=0.0, intercept=True, weights=None):
    heads = heads_of(loss, NUMBERS if loss == "squared" else SIGNS, 1)
    data = set_of(X, y, weights)
    columns = columns_of(data.view, X.shape[1], intercept)
    found = Descent(heads, data, columns, (l1, l2), intercept)
    found.start(np.zeros(X.shape[1] + 1))
    return found


def dense(found, rows):
    """Columns as a matrix."""
    X = np.zeros((rows, len(found.bounds) - 1))
    for column, (begin, end) in enumerate(pairwise(found.bounds)):
        X[found.rows[begin:end], column] = found.values[begin:end]
    return X


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("intercept", [False, True])
def test_columns_have_the_values_of_the_rows_in_their_order(intercept, threads, monkeypatch):
    monkeypatch.setattr(columns, "ROWS", 50)
    X, y, _ = draw("squared")
    X[:, 3] = 0.0
    X[17] = 0.0
    found = columns_of(set_of(X, y).view, COLUMNS, intercept, threads)
    expected = np.column_stack([X, np.full(len(X), float(intercept))])
    np.testing.assert_array_equal(dense(found, len(X)), expected)
    for begin, end in pairwise(found.bounds):
        assert (np.diff(found.rows[begin:end].astype(int)) > 0).all()


def test_shards_of_columns_cover_all_of_them(monkeypatch):
    monkeypatch.setattr(columns, "VALUES", 100)
    X, y, _ = draw("squared")
    spans = column_spans(columns_of(set_of(X, y).view, COLUMNS, True))
    assert len(spans) == columns.SHARDS
    assert [int(one.begin) for one in spans[1:]] == [int(one.end) for one in spans[:-1]]
    assert (int(spans[0].begin), int(spans[-1].end)) == (0, COLUMNS + 1)


@pairs(loss=ON_COLUMNS, l2=[0.0, 0.1], intercept=[False, True], weighted=[False, True])
def test_no_bound_is_above_the_optimum_and_the_last_one_is_next_to_it(
    loss, l2, intercept, weighted
):
    X, y, weights = draw(loss)
    weights = weights if weighted else None
    best = best_of(X, y, loss, 0.02, l2, intercept, weights)[0]
    descent = descent_of(X, y, loss, 0.02, l2, intercept, weights)
    descent.start(np.append(np.random.default_rng(1).normal(size=COLUMNS), float(intercept)))
    looks = [descent.look()]
    for _ in range(12):
        descent.improve()
        looks.append(descent.look())
    assert all(one.bound <= best * (1 + 1e-10) for one in looks)
    assert all(one.objective >= best * (1 - 1e-10) for one in looks)
    assert looks[-1].objective - looks[-1].bound < 1e-9 * best
    assert all(
        after.objective <= before.objective * (1 + 1e-12) for before, after in pairwise(looks)
    )


@pairs(
    loss=ON_COLUMNS,
    l1=[1e-1, 1e-3],
    l2=[0.0, 1e-2],
    intercept=[False, True],
    weighted=[False, True],
)
def test_training_comes_to_the_optimum_and_knows_how_near_it_is(loss, l1, l2, intercept, weighted):
    X, y, weights = draw(loss)
    weights = weights if weighted else None
    best, place, objective = best_of(X, y, loss, l1, l2, intercept, weights)
    options = {"l1": l1, "l2": l2, "intercept": intercept, "tol": 1e-8}
    result = train(X, y, loss, weights, **options)
    assert result.reason == "converged"
    reached = objective(result.model.weights.astype(float), result.model.intercept)
    last = result.trace[-1]
    assert last["objective"] == pytest.approx(reached, rel=1e-6)
    assert reached - best <= 1e-7 * best
    assert last["nonzero_weights"] == np.count_nonzero(result.model.weights)
    np.testing.assert_allclose(result.model.weights, place, atol=1e-3)
    np.testing.assert_array_equal(result.model.weights == 0, np.abs(place) < 1e-5)
    for row in result.trace:
        if row["gap"] is not None:
            assert row["objective"] / (1 + row["gap"]) <= best * (1 + 1e-7)


@pairs(loss=ON_COLUMNS, intercept=[False, True], weighted=[False, True], densely=[False, True])
def test_products_with_the_hessian_are_those_of_differences(loss, intercept, weighted, densely):
    X, y, weights = draw(loss)
    descent = descent_of(X, y, loss, 0.02, 0.1, intercept, weights if weighted else None)
    model, count = descent._model, COLUMNS + intercept
    chosen, way = np.arange(count, dtype=np.uint32)[::-1].copy(), np.random.default_rng(2)
    way = way.normal(size=count)
    if densely:
        product = descent._hessian(chosen) @ way + 0.1 * len(y) * way * (chosen < COLUMNS)
    else:
        product, moves, pulls = np.empty(count), np.empty(len(y)), np.empty(len(y))
        curve_along(descent._columns, chosen, model, way, moves, pulls, product)
        np.testing.assert_allclose(moves, np.column_stack([X, np.ones(len(y))])[:, chosen] @ way)

    def derivatives(step):
        v = descent.weights.copy()
        v[chosen] += step * way
        shares = weights / weights.mean() if weighted else np.ones(len(y))
        slopes = shares * reference.slope(loss, X @ v[:-1] + v[-1], y)
        found = np.append(slopes @ X + 0.1 * len(y) * v[:-1], slopes.sum())
        return found[chosen]

    near = (derivatives(1e-5) - derivatives(-1e-5)) / 2e-5
    np.testing.assert_allclose(product, near, rtol=1e-4, atol=1e-3)


@pairs(loss=ON_COLUMNS, intercept=[False, True], densely=[False, True])
def test_columns_that_depend_on_each_other_do_no_harm(loss, intercept, densely, monkeypatch):
    if not densely:
        monkeypatch.setattr(coordinate, "MOST_DENSE", 0)
    X, y, _ = draw(loss)
    fields = np.eye(6)[np.random.default_rng(1).integers(0, 6, len(y))]  # with a sum of 1
    X = np.column_stack([X, X[:, 1], -X[:, 3], fields, fields[:, ::2], X[:, 0] + X[:, 1]])
    best, _, objective = best_of(X, y, loss, 1e-3, 0.0, intercept)
    result = train(X, y, loss, l1=1e-3, intercept=intercept, tol=1e-7)
    assert result.reason == "converged"
    found = objective(result.model.weights.astype(float), result.model.intercept)
    assert found <= best * (1 + 2e-7)


def test_with_so_large_a_penalty_all_weights_are_zero():
    X, y, _ = draw("logistic")
    p = (y > 0).mean()
    l1 = np.abs(X.T @ ((y > 0) - p)).max() / len(y)
    for share in (1.001, 0.999):
        result = train(X, y, "logistic", l1=share * l1, tol=1e-9)
        assert np.count_nonzero(result.model.weights) == (0 if share > 1 else 1)
        assert result.model.intercept == pytest.approx(np.log(p / (1 - p)), rel=1e-2)


@pytest.mark.parametrize("tol", [1e-3, 0.0])
def test_where_nothing_is_to_be_learned_training_ends_at_once(tol):
    X, y, _ = draw("logistic")
    result = train(X, y, "logistic", l1=100.0, intercept=False, tol=tol)
    assert len(result.trace) <= 2
    assert result.trace[-1]["objective"] == pytest.approx(np.log(2))
    assert not result.model.weights.any()


def test_exponents_of_columns_do_not_matter_where_the_penalty_is_small():
    X, y, _ = draw("logistic", sizes=10.0 ** np.linspace(-3, 3, COLUMNS))
    result = train(X, y, "logistic", l1=1e-6, tol=1e-6)
    assert result.reason == "converged"
    assert len(result.trace) < 30


@pytest.mark.parametrize("loss", ON_COLUMNS)
def test_any_number_of_workers_learns_the_same_bytes(loss, monkeypatch):
    monkeypatch.setattr(columns, "ROWS", 50)
    monkeypatch.setattr(columns, "VALUES", 100)
    X, y, weights = draw(loss)
    results = [train(X, y, loss, weights, tol=1e-8, workers=count) for count in (1, 2, 3, 8)]
    first = results[0]
    for other in results[1:]:
        assert other.model.weights.tobytes() == first.model.weights.tobytes()
        assert other.model.intercept == first.model.intercept
        assert [row["gap"] for row in other.trace] == [row["gap"] for row in first.trace]


def test_class_weights_are_weights_of_rows():
    X, y, _ = draw("logistic")
    weights = np.where(y > 0, 3.0, 1.0)
    best, _, objective = best_of(X, y, "logistic", 0.02, 0.0, True, weights)
    found = train(X, y, "logistic", class_weight={-1.0: 1, 1.0: 3}, tol=1e-8).model
    assert objective(found.weights.astype(float), found.intercept) <= best * (1 + 1e-7)


def test_a_target_ends_the_training_also_where_it_is_out_of_reach():
    X, y, _ = draw("logistic")
    best = best_of(X, y, "logistic", 0.02, 0.0, True)[0]
    found = train(X, y, "logistic", target=1.001 * best)
    assert found.reason == "target"
    assert found.trace[-1]["objective"] <= 1.001 * best
    assert train(X, y, "logistic", target=0.99 * best).reason == "unreachable"


@pytest.mark.parametrize("loss", ON_COLUMNS)
def test_single_precision_ends_a_training_that_is_never_near_enough(loss):
    X, y, _ = draw(loss)
    result = train(X, y, loss, tol=0.0)
    assert result.reason == "stuck"
    assert result.trace[-1]["gap"] < 1e-9


@pairs(loss=ON_COLUMNS, l2=[0.0, 0.1], scaled=[True, False])
def test_an_epoch_of_descent_comes_first_unless_it_does_harm(loss, l2, scaled):
    X, y, _ = draw(loss, rows=4000, sizes=1.0 if scaled else 10.0 ** np.linspace(-3, 3, COLUMNS))
    given = {"task": TASKS[loss], "loss": loss, "solver": "coordinate", "l1": 0.05, "l2": l2}
    problem = LinearProblem(hogwild.Rows(X, y), None, Config.of(given))
    shared = {name: np.zeros(size, kind) for name, (size, kind) in problem.shared().items()}
    problem.set_start(shared, None, lambda stage: None)
    problem.iterate(shared, lambda share: False)
    reached = problem.measured(shared, problem.prove(shared))["objective"]
    assert reached <= best_of(0.0 * X, y, loss, 0.05, l2, True)[0] * (1 + 1e-6)
    if scaled and loss == "logistic":  # for squares its steps are too long here, too
        assert reached < 1.1 * best_of(X, y, loss, 0.05, l2, True)[0]
        assert np.count_nonzero(shared["stored"]) < COLUMNS


def test_training_goes_on_from_what_others_came_to():
    X, y, _ = draw("logistic")
    options = {"l1": 0.02, "tol": 1e-8}
    for solver in ("sgd", "coordinate"):
        start = train(X, y, "logistic", solver=solver, l1=0.02, epochs=3).state
        result = train(X, y, "logistic", start=start, **options)
        assert result.reason == "converged"
    again = train(X, y, "logistic", start=result.state, **options)
    assert len(again.trace) == 1
    assert again.model.weights.tobytes() == result.model.weights.tobytes()


def test_a_time_limit_is_heard_within_an_epoch():
    X, y, _ = draw("logistic")
    result = train(X, y, "logistic", l1=1e-5, tol=0.0, time_limit=1e-9)
    assert result.reason == "time"
    assert len(result.trace) == 1  # of many
    assert np.isfinite(result.trace[-1]["objective"])


def test_an_interrupted_iteration_leaves_better_weights_than_before():
    X, y, _ = draw("logistic")
    config = Config.of({"task": "logistic", "solver": "coordinate", "l1": 1e-4})
    problem = LinearProblem(hogwild.Rows(X, y), None, config)
    shared = {name: np.zeros(size, kind) for name, (size, kind) in problem.shared().items()}
    reached = []
    for stop in range(1, 8):
        problem.set_start(shared, None, lambda stage: None)
        answers = iter([True] * (stop - 1))
        problem.iterate(shared, lambda share, left=answers: next(left, False))
        reached.append(problem.measured(shared, problem.prove(shared))["objective"])
    assert reached[0] <= np.log(2)
    assert reached[0] == reached[1]  # after an epoch of descent, and a look
    assert max(reached[2:]) < reached[1]


def test_rows_and_columns_of_nothing_or_alike_do_no_harm():
    X = np.zeros((20, 4))
    X[::2, 0] = X[::2, 3] = 1
    y = np.sign(np.arange(20) - 9.5)
    for loss in ON_COLUMNS:
        assert train(X, y, loss, tol=1e-6).reason == "converged"
    X[:, 1] = y  # classes that can be told apart
    for loss in ON_COLUMNS:
        result = train(X, y, loss, l1=1e-6, tol=1e-3)
        assert result.reason == "converged"
        assert np.isfinite(result.model.weights).all()


def test_the_highest_place_of_a_concave_function_is_found():
    for place in (-1.0, 0.0, 0.3, 0.99, 2.0):
        found = highest(lambda at, place=place: -abs(at - place), 0.0, 1.0)
        expected = -abs(np.clip(place, 0, 1) - place)
        assert expected - 0.02 <= found <= expected


def test_data_that_cannot_be_copied_is_refused(monkeypatch):
    X, y, _ = draw("logistic")
    monkeypatch.setattr(coordinate, "BYTES", 10**12)
    with pytest.raises(DataError, match="copies the data into"):
        train(X, y, "logistic")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"loss": "hinge"}, "the loss squared, squared_hinge or logistic to be coordinate"),
        ({"l1": 0.0}, "an l1 above 0"),
        ({"strategy": "combine"}, "to be auto with the solvers newton, cg, closed, coordinate"),
        ({"eta0": 0.1}, "others have no learning rate"),
        ({"average": False}, "to be left out with other solvers"),
    ],
)
def test_what_it_cannot_do_is_refused(options, told):
    X, y, _ = draw("logistic")
    with pytest.raises(OptionError, match=told):
        train(X, y, **({"loss": "logistic"} | options))


@pairs(loss=ON_COLUMNS, intercept=[False, True], l2=[0.0, 1e-5])
def test_text_like_rows_come_to_a_gap_of_1e_8(loss, intercept, l2):
    rows, _ = rcv1(20_000, seed=1)
    options = {"task": "svm", "loss": loss, "solver": "coordinate", "intercept": intercept}
    for l1 in (1e-3, 1e-4):
        result = hogwild.train(rows, l1=l1, l2=l2, tol=1e-8, **options)
        assert result.reason == "converged"
        assert result.trace[-1]["gap"] <= 1.1e-8
