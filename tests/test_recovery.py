"""Killed workers, Ctrl-C, divergence, full disks: a clear word, the model kept, nothing left."""

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.learn import sample
from hogwild.learn.linear import LinearProblem
from hogwild.loops import choice
from hogwild.loops.shared import RowWorker
from hogwild.parallel.memory import shared_arrays
from hogwild.paths import writing

ROWS = 3000


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    return rcv1(ROWS, 2000)[0]


class At(hogwild.Watcher):
    """Does something at the end of an epoch, or in the middle of one."""

    def __init__(self, do: Any, epoch: int, share: float | None = None) -> None:
        self.do, self.at, self.share = do, epoch, share
        self.when: float | None = None

    def epoch(self, row: dict[str, Any]) -> None:
        if self.share is None and row["epoch"] == self.at:
            self._act()

    def tick(self, epoch: int, share: float, seconds: float) -> None:
        if self.share is not None and epoch == self.at and share >= self.share:
            self._act()

    def _act(self) -> None:
        if self.when is None:
            self.when = time.monotonic()
            self.do()


def kill_a_worker() -> None:
    os.kill(psutil.Process().children()[-1].pid, signal.SIGKILL)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes an epoch of two workers last half a second, in pieces of 5 ms (strategy hogwild)."""
    visit = RowWorker._visit

    def visit_slowly(self: RowWorker, *arguments: Any) -> float:
        time.sleep(0.005)
        return visit(self, *arguments)

    made = LinearProblem.__init__

    def make(self: LinearProblem, *arguments: Any, **more: Any) -> None:
        made(self, *arguments, **more)
        self.chunk = 15

    monkeypatch.setattr(RowWorker, "_visit", visit_slowly)
    monkeypatch.setattr(LinearProblem, "__init__", make)
    monkeypatch.setattr(choice, "_strategy", lambda *_: ("hogwild", "the slow one", True))


def children() -> list[psutil.Process]:
    return list(psutil.Process().children())


@pytest.mark.parametrize(("epoch", "share"), [(1, None), (1, 0.1), (2, 0.1)])
def test_a_killed_worker_is_replaced_and_the_epoch_begins_again(
    rows: hogwild.Rows, epoch: int, share: float | None, slow: None
) -> None:
    killer = At(kill_a_worker, epoch, share)
    with pytest.warns(hogwild.HogwildWarning, match="SIGKILL; new workers take over, and epoch"):
        result = hogwild.train(rows, workers=2, epochs=3, watcher=killer, eta0=0.5, tol=0)
    assert killer.when is not None
    assert (result.reason, [row["epoch"] for row in result.trace]) == ("epochs", [1, 2, 3])
    assert [row["rows"] for row in result.trace] == [ROWS] * 3
    assert result.used["replaced_workers"] == 1
    assert result.trace[-1]["objective"] < 0.3


@pytest.mark.parametrize("stops", [False, True])
def test_a_worker_that_dies_while_a_callback_measures_costs_no_epoch(stops: bool) -> None:
    """The epoch is in the trace already: only its evaluation begins again."""

    class Measuring(hogwild.Callback):
        def __init__(self, kills: bool) -> None:
            self.kills, self.seen = kills, list[float]()

        def epoch(self, row: dict[str, Any]) -> None:
            is_third = row["epoch"] == 3
            if is_third and self.kills:
                kill_a_worker()
            if is_third and stops:
                self.run.stop()  # evaluates this epoch, after the callbacks
            else:
                self.seen.append(self.run.measured()["objective"])

    ratings = movielens(200, 150, 5_000)[0]
    options = {"task": "mf", "rank": 4, "workers": 2, "deterministic": True, "tol": 0, "epochs": 5}
    options |= {"objective_every": 0}
    killed, whole = Measuring(kills=True), Measuring(kills=False)
    word = "SIGKILL; new workers take over, and the evaluation of epoch 3 begins again"
    with pytest.warns(hogwild.HogwildWarning, match=word):
        found = hogwild.train(ratings, callbacks=[killed], **options)
    expected = hogwild.train(ratings, callbacks=[whole], **options)
    assert [row["epoch"] for row in found.trace] == [1, 2, 3] + [4, 5] * (not stops)
    assert [row["objective"] for row in found.trace] == [row["objective"] for row in expected.trace]
    assert killed.seen == whole.seen
    assert found.model.user_factors.tobytes() == expected.model.user_factors.tobytes()


def test_a_worker_that_dies_before_its_first_command_is_replaced(
    rows: hogwild.Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, forked = os.fork, []

    def kill_the_first() -> int:
        pid = fork()
        forked.append(pid)
        if pid and len(forked) == 1:
            os.kill(pid, signal.SIGKILL)
        return pid

    hogwild.close_pool()
    monkeypatch.setattr(os, "fork", kill_the_first)
    with pytest.warns(hogwild.HogwildWarning, match="take over, and the preparation begins again"):
        result = hogwild.train(rows, workers=2, epochs=2, eta0=0.5, tol=0)
    assert result.reason == "epochs"
    assert len(forked) == 4


class Always(At):
    """Does something in every tick of the epochs from this one on."""

    def tick(self, epoch: int, share: float, seconds: float) -> None:
        if epoch >= self.at and share >= 0.05:
            self.when = time.monotonic()
            self.do()


def test_workers_that_die_again_and_again_end_the_run_and_the_last_epoch_is_kept(
    rows: hogwild.Rows, tmp_path: Path, slow: None
) -> None:
    path, checkpoint = tmp_path / "kept.hog", tmp_path / "checkpoint.hog"
    killer = Always(kill_a_worker, 2)
    options: dict[str, Any] = {"workers": 2, "eta0": 0.5, "tol": 0, "checkpoint": checkpoint}
    with (
        pytest.warns(hogwild.HogwildWarning, match="new workers take over"),
        pytest.raises(
            hogwild.WorkerError, match=r"worker . .* SIGKILL.*7 workers died in epoch 2.*Epoch 1"
        ) as told,
    ):
        hogwild.train(rows, epochs=5, model=path, watcher=killer, **options)
    assert killer.when is not None
    assert time.monotonic() - killer.when < 1.0
    assert not children()
    result = told.value.result
    assert [row["epoch"] for row in result.trace] == [1]
    found = result.model.evaluate(rows)
    assert found["objective"] == pytest.approx(result.trace[0]["objective"], rel=1e-5)
    assert hogwild.load_model(path).weights.tobytes() == result.model.weights.tobytes()
    resumed = hogwild.train(rows, epochs=2, resume="auto", **options)
    assert [row["epoch"] for row in resumed.trace] == [1, 2]
    assert resumed.trace[0] == result.trace[0]


def test_workers_that_die_in_the_first_epoch_leave_no_model(
    rows: hogwild.Rows, tmp_path: Path, slow: None
) -> None:
    path, killer = tmp_path / "none.hog", Always(kill_a_worker, 1)
    with (
        pytest.warns(hogwild.HogwildWarning),
        pytest.raises(hogwild.WorkerError, match="No epoch was finished") as told,
    ):
        hogwild.train(rows, workers=2, solver="sgd", model=path, watcher=killer)
    assert told.value.result is None
    assert not list(tmp_path.iterdir())
    assert not children()


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize(("workers", "backend"), [(1, "process"), (2, "process"), (2, "thread")])
def test_an_interrupt_in_the_middle_of_an_epoch_gives_the_model_so_far(
    rows: hogwild.Rows, workers: int, backend: str, slow: None
) -> None:
    at = At(interrupt, 1, 0.3)
    result = hogwild.train(rows, workers=workers, backend=backend, watcher=at, eta0=0.5)
    assert at.when is not None
    assert time.monotonic() - at.when < 0.5
    assert result.reason == "interrupted"
    assert not result.trace
    assert result.model.evaluate(rows)["objective"] < 0.99  # an untrained one has 1
    assert 0 < result.state.steps < ROWS
    hogwild.close_pool()
    assert not children()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Soon(hogwild.Watcher):
    """Interrupts some time after training has begun."""

    def __init__(self, seconds: float) -> None:
        self.timer = threading.Timer(seconds, interrupt)

    def start(self, header: dict[str, Any]) -> None:
        self.timer.start()


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("strategy", ["combine", "ordered", "locked", "roundrobin"])
def test_an_interrupt_within_a_kernel_is_heard(strategy: str) -> None:
    """An epoch takes some 20 ms in one call of a kernel; Ctrl-C comes after some of them."""
    rng = np.random.default_rng(0)
    size, each = 200_000, 40
    columns = rng.integers(0, 3_000, size * each).astype(np.uint32)
    ones = np.ones(size * each, np.float32)
    data = hogwild.Rows.from_arrays(
        np.arange(size + 1) * each, columns, ones, 3_000, np.arange(size) % 2
    )
    options: dict[str, Any] = {"workers": 2, "strategy": strategy, "eta0": 1e-3, "tol": 0}
    hogwild.train(data, epochs=1, **options)
    inside = False
    for attempt in range(10):
        soon = Soon(0.01 + 0.004 * attempt)
        began = time.monotonic()
        result = hogwild.train(data, epochs=10_000, objective_every=0, watcher=soon, **options)
        soon.timer.join()
        assert time.monotonic() - began < 5
        assert result.reason == "interrupted"
        inside = inside or result.state.steps % size > 0
    assert inside


@pytest.mark.usefixtures("listening")
def test_an_interrupt_between_epochs_gives_the_model_of_the_last(rows: hogwild.Rows) -> None:
    result = hogwild.train(rows, workers=2, watcher=At(interrupt, 3), tol=0)
    assert (result.reason, len(result.trace)) == ("interrupted", 3)
    objective = result.model.evaluate(rows)["objective"]
    assert objective == pytest.approx(result.trace[-1]["objective"], rel=1e-5)


@pytest.mark.usefixtures("listening")
def test_an_interrupted_fit_raises_with_the_model_so_far_in_place(
    rows: hogwild.Rows, slow: None
) -> None:
    classifier = hogwild.HogwildClassifier(eta0=0.5)
    timer = threading.Timer(0.3, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        classifier.fit(rows)
    timer.join()
    assert classifier.coef_.any()


def test_a_time_limit_ends_an_epoch_early_and_its_row_says_so(
    rows: hogwild.Rows, slow: None
) -> None:
    result = hogwild.train(rows, workers=2, time_limit=0.2, eta0=0.5)
    assert result.reason == "time"
    last = result.trace[-1]
    assert last["epoch"] == 1
    assert 0 < last["rows"] < ROWS
    assert 0.2 < last["seconds"] < 0.8
    objective = result.model.evaluate(rows)["objective"]
    assert objective == pytest.approx(last["objective"], rel=1e-5)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("schedule", ["constant", "inverse"])
def test_a_rate_that_overflows_is_named_and_nothing_is_saved(
    rows: hogwild.Rows, tmp_path: Path, workers: int, schedule: str
) -> None:
    with pytest.raises(
        hogwild.DivergenceError, match=r"the learning rate eta0 = 1e\+30 is too large"
    ):
        hogwild.train(
            rows,
            loss="squared",
            l2=0,
            eta0=1e30,
            schedule=schedule,
            workers=workers,
            model=tmp_path / "m.hog",
        )
    assert not list(tmp_path.iterdir())


def test_a_found_rate_that_overflows_is_halved_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sample holds none of the few rows that are a thousand times as long as the others."""
    monkeypatch.setattr(sample, "NONZEROS", 3 * 8000)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 3)).astype(np.float32)
    y = np.sign(X[:, 0] + 0.1 * rng.standard_normal(50_000))
    chosen = np.random.default_rng(0).choice(50_000, 8000, replace=False)
    rare = np.setdiff1d(np.arange(50_000), chosen)[:20]
    X[rare] *= 1e3
    with pytest.warns(hogwild.HogwildWarning, match="the objective rose in epoch 1") as told:
        found = hogwild.train(hogwild.Rows(X, y), loss="squared", solver="sgd", epochs=2)
    assert [str(warning.message) for warning in told] == found.notes
    assert found.trace[-1]["objective"] < 0.5  # what it is without a model
    assert found.state.eta0 < found.header["chosen"]["eta0"] / 1000


def test_a_model_that_cannot_be_written_is_rescued(
    rows: hogwild.Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    rescue = tmp_path / "rescue"
    rescue.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rescue))

    class Removing(hogwild.Watcher):
        def epoch(self, row: dict[str, Any]) -> None:
            folder.rmdir()

    with pytest.raises(hogwild.HogwildError, match="it is kept in") as told:
        hogwild.train(rows, epochs=1, model=folder / "m.hog", watcher=Removing())
    kept = next(rescue.iterdir())
    assert str(kept) in str(told.value)
    assert hogwild.load_model(kept).weights.tobytes() == told.value.result.model.weights.tobytes()


SCRIPT = """
    import threading, warnings
    warnings.simplefilter("error")
    import hogwild
    from hogwild.data.synthetic import rcv1

    print("once")
    rows = rcv1(2000, 1000)[0]
    found = []
    def work():
        found.append(hogwild.train(rows, workers=2, epochs=2, seed=3))
    {run}
    print(found[0].reason)
"""


@pytest.mark.parametrize(
    "run", ["work()", "thread = threading.Thread(target=work); thread.start(); thread.join()"]
)
def test_a_script_without_a_main_guard(tmp_path: Path, run: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).format(run=run))
    ran = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("once\nepochs\n", "", 0)


def test_what_would_be_written_over_is_refused(rows: hogwild.Rows, tmp_path: Path) -> None:
    hogwild.save(rows, tmp_path / "d.svm")
    before = (tmp_path / "d.svm").read_bytes()
    with pytest.raises(hogwild.OptionError, match="is an input, too"):
        hogwild.train(tmp_path / "d.svm", model=tmp_path / "d.svm")
    with pytest.raises(hogwild.OptionError, match="is the model, too"):
        hogwild.train(rows, model=tmp_path / "x", trace=tmp_path / "x")
    assert (tmp_path / "d.svm").read_bytes() == before


def test_a_disk_with_too_little_room_is_refused_before_training(
    rows: hogwild.Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with pytest.raises(hogwild.HogwildError, match="100 are free"):
        hogwild.train(rows, model=tmp_path / "m.hog")


def test_a_name_is_on_the_disk_before_a_file_counts_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order that a power cut needs: contents, then the new name, then the folder with it."""
    done: list[str] = []
    sync, link, replace = os.fsync, os.link, Path.replace

    def synced(number: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        sync(number)

    def linked(here: Path, there: Path, **more: Any) -> None:
        link(here, there, **more)
        done.append(there.name)

    def replaced(here: Path, there: Path) -> Path:
        done.append(there.name)
        return replace(here, there)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(Path, "replace", replaced)
    for contents in (b"first", b"second"):
        with writing(tmp_path / "a") as file:
            file.write(contents)
        assert (tmp_path / "a").read_bytes() == contents
    *second_names, last = done[4:]
    assert done[:4] == ["file", "a", "folder", "file"]
    assert (second_names[-1], last) == ("a", "folder")


def test_a_disk_that_fills_up_does_not_cost_the_model(
    rows: hogwild.Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescue = tmp_path / "rescue"
    rescue.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rescue))
    sync, calls = os.fsync, []

    def full_at_first(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full_at_first)
    with pytest.raises(hogwild.HogwildError, match=r"the disk is full.*it is kept in"):
        hogwild.train(rows, epochs=1, model=tmp_path / "m.hog")
    assert {path.name for path in tmp_path.iterdir()} == {"rescue"}
    assert hogwild.load_model(next(rescue.iterdir())).weights.any()


def test_more_columns_than_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = 2**32 - 1
    rows = hogwild.Rows.from_arrays(
        np.array([0, 1, 2]), np.array([0, columns - 1]), np.ones(2), columns, [0, 1]
    )
    monkeypatch.setattr("hogwild.coordinator.available_memory", lambda: 10**10)
    with pytest.raises(hogwild.DataError, match=r"17.18 GB of weights, .* 10.00 GB of memory are"):
        hogwild.train(rows)
    with pytest.raises(hogwild.HogwildError, match=r"no shared memory .*; [\d,]+ are available"):
        shared_arrays({"weights": (2**44, np.float32)})


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "perceptron"])
@pytest.mark.parametrize("average", [True, False])
def test_an_intercept_that_overflows_is_never_in_a_model(loss: str, average: bool) -> None:
    """The hinge of NaN is max(0, NaN), which is 0: the objective alone does not tell."""
    rows = hogwild.Rows(np.zeros((20, 2)), np.arange(20) % 2)
    for eta0 in (1e38, 1e39, 1e300):
        try:
            result = hogwild.train(rows, loss=loss, eta0=eta0, average=average, schedule="constant")
        except hogwild.DivergenceError:
            continue
        assert np.isfinite(result.model.intercept)
    with pytest.raises(hogwild.DivergenceError):
        hogwild.train(rows, loss=loss, eta0=1e300, schedule="constant", average=average)


def test_trainings_side_by_side_do_not_wait_for_each_other(rows: hogwild.Rows) -> None:
    seconds: list[float] = []

    def work() -> None:
        for _ in range(3):
            began = time.monotonic()
            hogwild.train(rows, workers=2, epochs=2, eta0=0.5, tol=0)
            seconds.append(time.monotonic() - began)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seconds) == 6
    assert max(seconds) < 0.9  # a worker that has to be killed takes a second
    hogwild.close_pool()
    assert not children()
