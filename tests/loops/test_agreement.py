"""Many workers learn what one learns: the objective agrees, and no row is missed or met twice."""

import numpy as np
import pytest

import hogwild
from hogwild.config import BACKENDS
from hogwild.data.synthetic import rcv1
from hogwild.learn.averages import CANDIDATES
from hogwild.learn.linear import LinearProblem
from hogwild.learn.problem import Now, Share
from hogwild.learn.schedules import SCHEDULES
from hogwild.loops.strategies import STRATEGIES, Workers
from hogwild.parallel.memory import shared_arrays
from hogwild.parallel.team import Control
from hogwild.results import State
from tests import reference
from tests.combinations import pairs

EPOCHS = 3
# So few rows are not many epochs: what learns from old weights, or from a share, is behind
WORSE = {"ordered": 0.05, "averaged": 0.2, "mixed": 0.2, "minibatch": 0.2}
MEANS = ("averaged", "mixed")
ROWS = [name for name, strategy in STRATEGIES.items() if strategy.rows and name != "strata"]


@pytest.fixture(scope="module")
def articles():
    return rcv1(20_000)[0]


@pytest.fixture(scope="module")
def serial(articles):
    return hogwild.train(articles, workers=1, solver="sgd", epochs=EPOCHS, tol=0)


@pairs(strategy=[name for name in ROWS if name != "heads"], backend=BACKENDS, workers=[2, 3])
def test_the_objective_is_that_of_one_worker(articles, serial, workers, backend, strategy):
    options = {"workers": workers, "backend": backend, "strategy": strategy}
    result = hogwild.train(articles, epochs=EPOCHS, tol=0, **options)
    assert result.header["chosen"]["workers"] == workers
    objective, expected = (run.trace[-1]["objective"] for run in (result, serial))
    assert objective == pytest.approx(expected, rel=WORSE.get(strategy, 0.02))
    assert result.state.steps == EPOCHS * len(articles)
    assert [row["rows"] for row in result.trace] == [len(articles)] * EPOCHS
    # what was reported, of all the workers' shares together, is true of the model
    X, y = articles.to_scipy().astype(float), articles.targets().astype(float)
    w, b = result.model.weights.astype(float), result.model.intercept
    true = reference.objective(X, y, w, b, "hinge", hogwild.Config().l2)
    assert objective == pytest.approx(true, rel=1e-5)
    assert result.trace[-1]["train_error"] == np.mean((X @ w + b > 0) != (y > 0))


# Every row once


def visits(rows, epochs, **options):
    """How often each row was met: each has a column of its own, and the hinge adds the rate."""
    rate = 2.0**-6
    y = np.where(np.arange(rows) % 3, 1, -1)
    options = {"l2": 0.0, "intercept": False, "eta0": rate, "schedule": "constant"} | options
    data = hogwild.Rows(np.eye(rows, dtype=np.float32), y)
    result = hogwild.train(data, epochs=epochs, tol=0, objective_every=0, **options)
    return result.state.weights["stored"][:-1] * y / rate


@pairs(
    strategy=ROWS,
    workers=[1, 2, 3, 7],
    backend=BACKENDS,
    average=[True, False],  # in two pieces, or at once
)
def test_every_row_is_visited_once_an_epoch(workers, backend, average, strategy):
    options = {"workers": workers, "backend": backend, "strategy": strategy, "average": average}
    each = 1 / workers if strategy in MEANS else 1  # of a row's visit, in the mean
    for epochs in (1, 4):
        found = visits(500, epochs, **options)
        np.testing.assert_allclose(found, np.full(500, epochs * each), 1e-6)


@pytest.mark.parametrize("workers", [1, 3])
def test_every_row_is_visited_once_where_an_epoch_has_pieces_and_parts(workers, monkeypatch):
    monkeypatch.setattr("hogwild.learn.linear.CHUNK_NONZEROS", 7)
    assert np.array_equal(visits(100, 2, workers=workers), np.full(100, 2))
    # now with a penalty: what it leaves is asked of the schedule, and no visit is missing
    monkeypatch.setattr("hogwild.coordinator.LEAST_SCALE", 0.999)
    found = visits(100, 1, workers=workers, l2=0.01, backend="thread")
    assert np.all((found > 0.95) & (found <= 1.001))


@pytest.mark.parametrize("backend", BACKENDS)
def test_more_workers_than_rows(backend):
    for rows in (2, 3):
        assert np.array_equal(visits(rows, 5, workers=7, backend=backend), np.full(rows, 5))
    X, y = np.eye(3, dtype=np.float32), [0, 1, 1]
    result = hogwild.train(
        hogwild.Rows(X, y),
        workers=7,
        backend=backend,
        epochs=50,
        tol=0,
        eta0=0.1,
        test=hogwild.Rows(X, y),
    )
    assert list(result.model.predict(X)) == y
    assert result.trace[-1]["train_error"] == result.trace[-1]["test_error"] == 0
    w, b = result.model.weights.astype(float), result.model.intercept
    objective = reference.objective(np.eye(3), np.array([-1, 1, 1]), w, b, "hinge", 1e-4)
    assert result.trace[-1]["objective"] == pytest.approx(objective, rel=1e-5)


def one_after_the_other(rows, workers, config):
    """An epoch in which no worker begins before the one before has ended: the worst of luck.

    Returns the weights that it may come to, and the steps that were counted.
    """
    problem = LinearProblem(rows, None, config)
    shared = shared_arrays(problem.shared() | Control.arrays(workers))
    control = Control(shared, workers)
    work = Workers(problem, "hogwild", shared, control)
    share = Share(1, 0.0, 1.0, 0, config.eta0)
    for rank in range(workers):
        work(rank, "learn", (share,))
    now = Now(control.steps(), 0, config.eta0)
    snapshots = control.snapshots() if problem.snapshots else None
    found = problem.finish(shared, now, snapshots, 0, 1)
    if snapshots:
        problem.choose(shared, found, True)
    return [shared[name][:-1] for name in CANDIDATES if name in shared], control.steps()


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_workers_that_do_not_keep_pace_still_make_steps_of_the_right_size(schedule, average):
    """Each row has a column of its own and is met once: its weight is at most the rate."""
    size, workers = 2000, 2
    rows = hogwild.Rows(np.eye(size, dtype=np.float32), np.where(np.arange(size) % 3, 1, -1))
    options = {"intercept": False, "schedule": schedule, "average": average}
    config = hogwild.Config(l2=1e-2, eta0=1.0, workers=workers, **options)
    candidates, steps = one_after_the_other(rows, workers, config)
    assert steps == size
    assert len(candidates) == (len(CANDIDATES) if average else 1)
    for weights in candidates:
        assert np.all(weights * rows.targets() >= 0)
        assert np.max(np.abs(weights)) <= 1.5 * config.eta0


@pytest.mark.parametrize("first", [True, False], ids=["first epoch", "later"])
@pytest.mark.parametrize(("early", "late"), [(3, 2), (0, 2), (3, 0), (0, 0)])
def test_means_are_of_the_snapshots_that_there_were(early, late, first):
    size, snapshots = 32, np.random.default_rng(0).normal(size=(6, 33)).astype(np.float32)
    rows = hogwild.Rows(np.eye(size, dtype=np.float32), np.arange(size) % 2)
    problem = LinearProblem(rows, None, hogwild.Config(solver="sgd"))
    shared = shared_arrays(problem.shared())
    shared["stored"][:] = snapshots[5]
    sums = {"whole": snapshots[:early], "tail": snapshots[3 : 3 + late]}
    for name, some in sums.items():
        shared[name][:] = some.sum(axis=0) if len(some) else np.nan
    now = Now(0, 0, 1.0)  # nothing is left of the penalty to take
    found = sum(problem.finish(shared, now, (early, late), part, 3) for part in range(3))
    problem.choose(shared, found, first)
    lately = snapshots[3 : 3 + late] if late else snapshots[5:]  # or the last ones
    expected = {"tail": lately, "whole": np.vstack([snapshots[:early], lately])}
    for name, some in expected.items():
        np.testing.assert_allclose(shared[name], some.mean(axis=0), 1e-5, 1e-6)
    assert np.array_equal(shared["stored"], snapshots[5])


@pytest.mark.parametrize("backend", ["process", "thread"])
def test_every_snapshot_is_taken_once_however_many_workers_come_to_it(backend):
    """Weights that stay as they are: their mean is themselves, if no sum lost or doubled one."""
    rows = rcv1(3000, 500)[0]
    start = State({"stored": np.append(np.full(500, 0.5), 1).astype(np.float32)}, 0, 0, 1.0)
    options = {"eta0": 1e-12, "l2": 0, "schedule": "constant", "backend": backend, "tol": 0}
    for workers in (1, 2, 4):
        result = hogwild.train(rows, start=start, workers=workers, epochs=5, **options)
        np.testing.assert_allclose(result.model.weights, 0.5, 1e-5)
        assert result.model.intercept == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("workers", [2, 4])
def test_a_penalty_that_is_too_quick_for_workers_to_look_up_is_waited_for(workers):
    """A tenth of the weights is gone at every step: what one worker guesses of another is wrong."""
    rows = rcv1(1000)[0]
    options = {"l2": 0.1, "eta0": 1.0, "schedule": "constant", "epochs": 3, "tol": 0}
    serial, parallel = (hogwild.train(rows, workers=w, **options) for w in (1, workers))
    objectives = serial.trace[-1]["objective"], parallel.trace[-1]["objective"]
    assert objectives[1] < 1.2 * objectives[0]
