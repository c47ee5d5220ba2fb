"""Kept workers: the same ones for the next training, with the right data, and none left over."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
import pytest
from scipy import sparse

import hogwild
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.parallel import pool

OPTIONS: dict[str, Any] = {"workers": 2, "epochs": 2, "eta0": 0.5, "tol": 0}


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    return rcv1(3_000, columns=70_000)[0]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    hogwild.close_pool()
    yield
    hogwild.close_pool()


def pids() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def fitted(rows: hogwild.Rows, **options: Any) -> Any:
    return hogwild.train(rows, **(OPTIONS | options))


def test_the_next_training_has_the_same_workers(rows: hogwild.Rows) -> None:
    fitted(rows)
    first = pids()
    assert len(first) == 2
    for options in ({"eta0": 0.5}, {"l2": 0.01, "seed": 3}, {"average": False}):
        fitted(rows, **options)
    assert pids() == first
    fitted(rows, loss="logistic")  # whose kernels they lack
    assert not pids() & first


def test_data_that_workers_lack_is_sent_to_them(rows: hogwild.Rows) -> None:
    fitted(rows)
    first = pids()
    other = rcv1(2_000, columns=90_000, seed=5)[0]
    strata = {"task": "mf", "workers": 2, "epochs": 2, "rank": 4}
    result = fitted(other)
    assert pids() == first
    alone = hogwild.train(other, workers=1, epochs=2, eta0=0.5, tol=0)
    assert result.trace[-1]["objective"] == pytest.approx(alone.trace[-1]["objective"], rel=0.3)
    assert result.trace[-1]["rows"] == 2_000
    # A kind of problem whose kernels they lack: others take their place
    ratings = movielens(300, 200, 20_000)[0]
    kept = hogwild.train(ratings, **strata)
    assert not pids() & first
    again = hogwild.train(ratings, **strata)
    assert np.array_equal(again.model.user_factors, kept.model.user_factors)


def test_equal_data_elsewhere_is_known_again_and_other_data_is_not(
    rows: hogwild.Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MOST_COPIED", 1 << 17)  # the labels, but not the rows
    X = rows.to_scipy().copy()
    fitted(hogwild.Rows(X, rows.y))
    first = pids()
    fitted(hogwild.Rows(X.copy(), rows.y.copy()))
    assert pids() == first
    X.data *= 2
    fitted(hogwild.Rows(X, rows.y))
    assert not pids() & first


def test_what_is_learned_is_of_the_data_given_and_not_of_what_workers_had() -> None:
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.normal(size=(4_000, 30)).astype(np.float32))
    weights = rng.normal(size=30)
    y = np.where(X @ weights > 0, 1, -1)
    assert fitted(hogwild.Rows(X, y)).trace[-1]["train_error"] < 0.1
    X.data[:] = -X.data  # where it lies
    second = fitted(hogwild.Rows(X, y))
    assert second.model.weights @ weights < 0
    assert second.trace[-1]["train_error"] < 0.1


def test_data_that_was_changed_under_rows_is_refused() -> None:
    X = sparse.csr_matrix(np.random.default_rng(0).normal(size=(4_000, 30)).astype(np.float32))
    rows = hogwild.Rows(X, np.arange(4_000) % 2)
    fitted(rows)
    X.data *= 2
    with pytest.raises(hogwild.DataError, match="create a new object after every change"):
        fitted(rows)
    fitted(hogwild.Rows(X, np.arange(4_000) % 2))


def test_a_worker_that_died_between_trainings_is_replaced(rows: hogwild.Rows) -> None:
    fitted(rows)
    first = pids()
    os.kill(min(first), signal.SIGKILL)
    assert fitted(rows).reason == "epochs"
    assert len(pids()) == 2
    assert not pids() & first


def test_another_number_of_workers_replaces_them(rows: hogwild.Rows) -> None:
    fitted(rows)
    first = pids()
    fitted(rows, workers=3)
    assert len(pids()) == 3
    assert not pids() & first


def test_they_end_after_idle_time(rows: hogwild.Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE", 0.05)
    fitted(rows)
    deadline = time.monotonic() + 5
    while pids() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not pids()
    fitted(rows)


def test_they_end_at_once_where_no_thread_can_wait_for_their_idle_time(
    rows: hogwild.Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under a limit of memory (`ulimit -v`) that training has used up."""

    class Refused(threading.Timer):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    hogwild.close_pool()
    monkeypatch.setattr(threading, "Timer", Refused)
    for _ in range(2):
        assert hogwild.train(rows, workers=2, epochs=1, solver="sgd").reason == "epochs"
        assert not pool.pids()
        assert not psutil.Process().children()


def test_two_threads_train_at_once(rows: hogwild.Rows) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(fitted(rows))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.reason for result in found] == ["epochs"] * 3
    assert len(pids()) <= 2


def test_a_forked_program_has_workers_of_its_own(rows: hogwild.Rows) -> None:
    fitted(rows)
    mine = pids()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fitted(rows)
            code = 0 if not pids() & mine and len(pids()) == 2 else 2
            hogwild.close_pool()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pids() == mine
    fitted(rows)
    assert pids() == mine


def test_they_end_with_the_program() -> None:
    script = """
import hogwild, psutil
from hogwild.data.synthetic import rcv1
hogwild.train(rcv1(500)[0], workers=2, epochs=1, eta0=0.5)
print(*(child.pid for child in psutil.Process().children()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    found = [int(pid) for pid in done.stdout.split()]
    assert len(found) == 2
    assert not any(psutil.pid_exists(pid) for pid in found)


def test_memory_grows_and_is_zeroed() -> None:
    arena = pool.Arena()
    small = arena.arrays({"a": (8, np.int64)})["a"]
    small[:] = 7
    large = arena.arrays({"a": (8, np.int64), "b": (100_000, np.float32)})
    assert not large["a"].any()
    assert not large["b"].any()
    arena.close()
