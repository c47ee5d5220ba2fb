"""Every strategy: what it promises not to lose is not lost, and the same bytes are the same."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import psutil
import pytest
from scipy import sparse

import hogwild
from hogwild import coordinator
from hogwild.data.components import parts_apart
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.learn.losses import FACTOR_LOSSES
from hogwild.loops.rounds import OrderedWorker
from hogwild.loops.strategies import STRATEGIES
from hogwild.results import State, Watcher
from tests.combinations import each, pairs

ROWS = [name for name, strategy in STRATEGIES.items() if strategy.rows and name != "strata"]
EXACT = ["combine", "ordered", "locked", "roundrobin"]
SAME_BYTES = [name for name in ROWS if STRATEGIES[name].deterministic]
COUNTS = [1, 2, 3, 8]


def digest(result: Any) -> str:
    model = result.model
    arrays = [model.weights, np.float64(model.intercept)]
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    return rcv1(3_000, columns=20_000)[0]


def counted(strategy: str, workers: int, columns: int = 300, **options: Any) -> None:
    """Rows that add whole multiples of the rate to columns that all share: no addition is lost."""
    rng = np.random.default_rng(0)
    held = np.minimum(rng.zipf(1.3, (4_000, 12)), columns) - 1
    ones, places = np.ones(held.size, np.float32), (np.repeat(np.arange(4_000), 12), held.ravel())
    X = sparse.csr_matrix((ones, places), shape=(4_000, columns))
    y = np.where(np.arange(4_000) % 3, 1, -1)
    rate = 2.0**-23
    fixed = {"l2": 0.0, "eta0": rate, "schedule": "constant", "loss": "hinge", "tol": 0}
    chosen = {"workers": workers, "strategy": strategy, "epochs": 3, "average": False}
    result = hogwild.train(hogwild.Rows(X, y), **(fixed | chosen | options))
    assert np.array_equal(result.model.weights / rate, 3 * (X.T @ y))


@pairs(
    strategy=EXACT,
    workers=[1, 2, 4],
    columns=[300, 3_000, 20_000],  # no tier of hot ones, one, and two
    backend=["process", "thread"],
)
def test_no_update_is_lost(strategy: str, workers: int, backend: str, columns: int) -> None:
    counted(strategy, workers, columns, backend=backend, intercept=False)


def test_no_update_is_lost_in_a_batch() -> None:
    for batch in (8, 256, 10_000 - 10_000 % 8):
        counted("minibatch", 3, intercept=False, batch=batch)


@pytest.mark.parametrize("strategy", EXACT)
def test_the_intercept_is_not_lost_either(strategy: str) -> None:
    X, y = np.ones((2_000, 1), np.float32), np.where(np.arange(2_000) % 4, 1, -1)
    options = {"l2": 0.0, "eta0": 2.0**-22, "schedule": "constant", "epochs": 1, "average": False}
    result = hogwild.train(hogwild.Rows(X, y), workers=4, strategy=strategy, **options)
    assert result.model.intercept == result.model.weights[0] == 1000 * 2.0**-22


@pairs(strategy=SAME_BYTES, loss=["hinge", "logistic", "squared_hinge"], average=[True, False])
def test_the_same_bytes_for_any_number_of_workers(
    rows: hogwild.Rows, strategy: str, loss: str, average: bool
) -> None:
    options: dict[str, Any] = {"strategy": strategy, "average": average, "loss": loss}
    options["eta0"] = 0.05  # at the rates found, some losses leave it to one worker
    found = [hogwild.train(rows, workers=w, epochs=3, tol=0, **options) for w in COUNTS]
    assert len({digest(result) for result in found}) == 1
    traces = [[row["objective"] for row in result.trace] for result in found]
    assert all(trace == traces[0] for trace in traces)
    losses = [[row["online_loss"] for row in result.trace] for result in found]
    assert all(some == losses[0] for some in losses)


@each(strategy=SAME_BYTES, schedule=["constant", "sqrt", "backoff"])
def test_the_same_bytes_where_the_penalty_is_quick(
    rows: hogwild.Rows, strategy: str, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the weights is gone at every step, and an epoch goes in parts."""
    monkeypatch.setattr("hogwild.coordinator.LEAST_SCALE", 0.1)
    options: dict[str, Any] = {"strategy": strategy, "schedule": schedule, "l2": 0.1, "eta0": 1.0}
    found = {digest(hogwild.train(rows, workers=w, epochs=2, tol=0, **options)) for w in COUNTS}
    assert len(found) == 1


def crowded() -> hogwild.Rows:
    """Rows that nearly all hold the same columns, as tables of categories do, and not normed."""
    rng = np.random.default_rng(0)
    held = rng.random((6_000, 100)) < np.linspace(0.02, 0.9, 100)
    score = held @ rng.normal(size=100) + rng.normal(size=6_000)
    return hogwild.Rows(sparse.csr_matrix(held, dtype=np.float32), score > np.median(score))


def even() -> hogwild.Rows:
    """Rows whose columns are all used alike, and seldom: they share little but the intercept."""
    rng = np.random.default_rng(0)
    places = np.repeat(np.arange(60_000), 10), rng.integers(0, 60_000, 600_000)
    X = sparse.csr_matrix((np.full(600_000, 10**-0.5, np.float32), places))
    score = X @ rng.normal(size=60_000)
    return hogwild.Rows(X, score + 0.1 > 0)


@pairs(make=[crowded, even], loss=["hinge", "logistic", "squared_hinge"], l2=[1e-3, 1e-6])
@pytest.mark.filterwarnings("ignore:rows overlap so much")
def test_rounds_come_as_far_as_one_worker(make: Any, loss: str, l2: float) -> None:
    rows = make()
    options: dict[str, Any] = {"loss": loss, "l2": l2, "epochs": 3, "tol": 0, "solver": "sgd"}
    one = hogwild.train(rows, workers=1, **options)
    rounds = hogwild.train(rows, workers=2, strategy="ordered", **options)
    for mine, theirs in zip(rounds.trace, one.trace, strict=True):
        assert mine["objective"] < 1.1 * theirs["objective"]


def test_one_worker_goes_alone_while_rates_are_too_large_for_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first epoch here; whoever else there is, the bytes are the same."""
    alone = []
    is_for_one = OrderedWorker._is_for_one

    def noted(worker: Any, part: Any) -> bool:
        alone.append(is_for_one(worker, part))
        return alone[-1]

    monkeypatch.setattr(OrderedWorker, "_is_for_one", noted)
    rows = crowded()
    options: dict[str, Any] = {"l2": 0.05, "epochs": 3, "tol": 0, "strategy": "ordered"}
    found = {digest(hogwild.train(rows, workers=1, **options))}
    assert alone == [True, False, False]
    for workers in COUNTS[1:]:
        with pytest.warns(hogwild.HogwildWarning, match="trained alone in epoch 1,") as told:
            found.add(digest(hogwild.train(rows, workers=workers, **options)))
        assert len(told) == 1
    assert len(found) == 1


@pytest.mark.parametrize("strategy", ["combine", "ordered"])
def test_means_are_right_where_an_epoch_goes_in_parts(
    rows: hogwild.Rows, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights that stay as they are are their own mean."""
    start = State({"stored": np.append(np.full(20_000, 0.5), 1).astype(np.float32)}, 0, 0, 1.0)
    options: dict[str, Any] = {"eta0": 1e-12, "l2": 0, "schedule": "constant", "tol": 0}
    monkeypatch.setattr("hogwild.coordinator.Run._parts", lambda *_: 3)
    for workers in (2, 3):
        result = hogwild.train(
            rows, start=start, workers=workers, strategy=strategy, epochs=3, **options
        )
        np.testing.assert_allclose(result.model.weights, 0.5, 1e-5)
        assert result.model.intercept == pytest.approx(1, rel=1e-5)


def in_parts(rows: int = 4_000, groups: int = 50, each: int = 20) -> hogwild.Rows:
    """Rows in groups of different sizes, each group with columns of its own."""
    rng = np.random.default_rng(3)
    group = np.minimum(rng.geometric(0.05, rows) - 1, groups - 1)
    columns = group[:, None] * each + rng.integers(0, each, (rows, 6))
    values = rng.normal(size=rows * 6).astype(np.float32)
    X = sparse.csr_matrix((values, columns.ravel(), np.arange(rows + 1) * 6))
    planted = rng.normal(size=X.shape[1])
    return hogwild.Rows(X, np.where(X @ planted > 0.1, 1, -1))


@each(loss=["hinge", "logistic"], backend=["process", "thread"])
def test_strata_of_rows_give_the_same_bytes(loss: str, backend: str) -> None:
    data = in_parts()
    options: dict[str, Any] = {"strategy": "strata", "loss": loss, "tol": 0, "backend": backend}
    found = [hogwild.train(data, workers=w, epochs=4, eta0=0.05, **options) for w in COUNTS]
    assert len({digest(result) for result in found}) == 1
    assert [row["rows"] for row in found[1].trace] == [len(data)] * 4
    alone = hogwild.train(data, workers=1, epochs=4, tol=0, loss=loss, eta0=0.05)
    objectives = [result.trace[-1]["objective"] for result in (found[1], alone)]
    assert objectives[0] == pytest.approx(objectives[1], rel=0.1, abs=0.01)


def test_parts_share_no_column_and_leave_no_row_out() -> None:
    data = in_parts()
    parts = parts_apart(data, 8)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(data)))
    held = [set(data.take(part).indices.tolist()) for part in parts]
    assert sum(map(len, held)) == len(set.union(*held))
    sizes = [data.take(part).nonzeros for part in parts]
    assert max(sizes) < 1.5 * min(sizes)


def test_rows_that_hang_together_are_refused_as_strata(rows: hogwild.Rows) -> None:
    with pytest.raises(hogwild.DataError, match="100 % of the data hangs together: take the str"):
        hogwild.train(rows, strategy="strata", workers=2)


def test_another_seed_gives_other_bytes(rows: hogwild.Rows) -> None:
    found = {digest(hogwild.train(rows, deterministic=True, seed=s, epochs=1)) for s in (0, 1)}
    assert len(found) == 2


def busy() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


@pytest.mark.parametrize("backend", ["process", "thread"])
@pytest.mark.parametrize("runs", [8, pytest.param(50, marks=pytest.mark.slow)])
def test_many_runs_beside_a_busy_process_give_the_same_bytes(
    rows: hogwild.Rows, runs: int, backend: str
) -> None:
    beside = busy()
    try:
        options: dict[str, Any] = {"strategy": "ordered", "epochs": 2, "tol": 0, "eta0": 0.5}
        found = {
            digest(hogwild.train(rows, workers=COUNTS[k % 4], backend=backend, **options))
            for k in range(runs)
        }
    finally:
        beside.kill()
        beside.wait()
    assert len(found) == 1


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_ratings_give_the_same_bytes_beside_a_busy_process(loss: str) -> None:
    ratings = movielens(300, 200, 20_000)[0]
    if loss == "logistic":
        values = (ratings.values > 3.5).astype(np.float32)
        codes = ratings.users, ratings.items, values, ratings.user_ids, ratings.item_ids
        ratings = hogwild.Ratings.from_codes(*codes)
    beside = busy()
    try:
        found = set()
        for workers in COUNTS:
            result = hogwild.train(
                ratings, deterministic=True, workers=workers, loss=loss, rank=8, epochs=2
            )
            assert result.header["chosen"]["strategy"] == "strata"
            found.add(hashlib.sha256(result.model.user_factors.tobytes()).hexdigest())
    finally:
        beside.kill()
        beside.wait()
    assert len(found) == 1


def test_going_on_gives_the_bytes_of_a_run_that_was_not_interrupted(rows: hogwild.Rows) -> None:
    options: dict[str, Any] = {"deterministic": True, "tol": 0, "average": False}
    whole = hogwild.train(rows, workers=2, epochs=4, **options)
    half = hogwild.train(rows, workers=3, epochs=2, **options)
    rest = hogwild.train(rows, workers=1, epochs=2, start=half.state, **options)
    assert digest(rest) == digest(whole)


class KillsAWorker(Watcher):
    def __init__(self, epoch: int) -> None:
        self._epoch, self.when = epoch, 0.0

    def epoch(self, row: Any) -> None:
        if row["epoch"] == self._epoch:
            self.when = time.monotonic()
            psutil.Process().children()[0].kill()


def test_what_a_killed_worker_left_goes_on_to_the_same_bytes(
    rows: hogwild.Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"deterministic": True, "tol": 0, "solver": "sgd"}
    whole = hogwild.train(rows, workers=2, epochs=4, **options)
    with pytest.warns(hogwild.HogwildWarning, match="new workers take over"):
        replaced = hogwild.train(rows, workers=2, epochs=4, watcher=KillsAWorker(2), **options)
    assert digest(replaced) == digest(whole)
    monkeypatch.setattr(coordinator, "DEATHS", 0)
    with pytest.raises(hogwild.WorkerError) as death:
        hogwild.train(rows, workers=2, epochs=4, watcher=KillsAWorker(2), **options)
    state = death.value.result.state
    assert state.epochs == 2
    rest = hogwild.train(rows, workers=4, epochs=2, start=state, **options)
    assert digest(rest) == digest(whole)


@each(strategy=ROWS, backend=["process", "thread"])
def test_seven_rows_and_three_workers(strategy: str, backend: str) -> None:
    X, y = np.eye(7, dtype=np.float32), np.arange(7) % 2
    options: dict[str, Any] = {"epochs": 5, "tol": 0, "eta0": 0.1, "intercept": False}
    for workers in (3, 8):
        result = hogwild.train(
            hogwild.Rows(X, y), workers=workers, strategy=strategy, backend=backend, **options
        )
        assert [row["rows"] for row in result.trace] == [7] * 5
        assert np.all(result.model.weights * (2 * y - 1) > 0)  # a column for each row


@pytest.mark.parametrize("strategy", ROWS)
def test_a_worker_that_stalls_holds_nobody_for_ever(rows: hogwild.Rows, strategy: str) -> None:
    if strategy == "heads":  # of one class, that one worker learns
        rows = rows.labelled(np.arange(len(rows)) % 40)

    def stall() -> None:
        deadline = time.monotonic() + 5
        while not psutil.Process().children() and time.monotonic() < deadline:
            time.sleep(0.001)
        pid = psutil.Process().children()[0].pid
        for _ in range(5):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.05)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.005)

    options: dict[str, Any] = {"eta0": 0.5, "tol": 0, "epochs": 20}
    hogwild.train(rows, workers=3, strategy=strategy, **(options | {"epochs": 1}))
    staller = threading.Thread(target=stall)
    staller.start()
    result = hogwild.train(rows, workers=3, strategy=strategy, **options)
    staller.join()
    assert [row["rows"] for row in result.trace] == [len(rows)] * 20


@pytest.mark.parametrize("strategy", ROWS)
def test_a_worker_that_dies_is_replaced(rows: hogwild.Rows, strategy: str) -> None:
    if strategy == "heads":  # of one class, that one worker learns
        rows = rows.labelled(np.arange(len(rows)) % 40)
    options: dict[str, Any] = {"eta0": 0.5, "tol": 0, "epochs": 4, "workers": 3}
    killer = KillsAWorker(2)
    with pytest.warns(hogwild.HogwildWarning, match="SIGKILL; new workers take over"):
        found = hogwild.train(rows, strategy=strategy, watcher=killer, **options)
    assert time.monotonic() - killer.when < 10
    assert [row["rows"] for row in found.trace] == [len(rows)] * 4
    whole = hogwild.train(rows, strategy=strategy, **options)
    wanted = whole.trace[-1]["objective"]
    assert found.trace[-1]["objective"] == pytest.approx(wanted, rel=0.05)
    if STRATEGIES[strategy].deterministic or STRATEGIES[strategy].averages:
        assert digest(found) == digest(whole)
