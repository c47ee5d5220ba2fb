"""One worker: the same bytes whenever and wherever it runs, and what the naive twin does."""

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from hogwild.kernels.compile import cache_folder
from hogwild.kernels.order import shuffle
from hogwild.learn.averages import CANDIDATES
from hogwild.learn.linear import LinearProblem
from hogwild.learn.losses import SIGNS, names_for
from hogwild.learn.sample import DOUBT, Sample
from hogwild.learn.schedules import SCHEDULES
from hogwild.loops.shared import RowWorker
from hogwild.seeds import seed_of
from tests import reference

ROOT = Path(__file__).parent.parent
SOME_LOSSES = ["hinge", "logistic", "squared"]


def digest(model):
    return hashlib.sha256(
        model.weights.tobytes() + np.float64(model.intercept).tobytes()
    ).hexdigest()


def digests(losses):
    """What a fresh process prints, to be compared with what this one finds."""
    rows, _ = rcv1(1_000, 5_000)
    return [
        digest(hogwild.train(rows, loss=loss, seed=5, epochs=3, workers=1).model) for loss in losses
    ]


@pytest.fixture(scope="module")
def rows():
    return rcv1(1_000, 5_000)[0]


@pytest.mark.parametrize("loss", names_for(SIGNS))
@pytest.mark.parametrize("average", [True, False], ids=["mean", "last"])
def test_the_same_seed_gives_the_same_bytes_and_another_one_others(rows, loss, average):
    def train(seed):
        options = {"loss": loss, "average": average, "epochs": 3, "workers": 1, "tol": 0}
        options["solver"] = "sgd"
        return hogwild.train(rows, seed=seed, **options)

    first, again, other = train(5), train(5), train(6)
    assert digest(first.model) == digest(again.model) != digest(other.model)
    told = [(row["objective"], row["online_loss"]) for row in first.trace]
    assert told == [(row["objective"], row["online_loss"]) for row in again.trace]


@pytest.mark.parametrize("backend", ["process", "thread"])
def test_the_backend_of_one_worker_makes_no_difference(rows, backend):
    result = hogwild.train(rows, seed=5, epochs=3, workers=1, backend=backend)
    assert digest(result.model) == digest(hogwild.train(rows, seed=5, epochs=3, workers=1).model)


def test_looking_on_makes_no_difference(rows):
    """The objective and the errors are computed beside the training, not in it."""
    often = hogwild.train(rows, test=rows, epochs=4, workers=1, tol=0)
    never = hogwild.train(rows, epochs=4, workers=1, tol=0, objective_every=0)
    assert digest(often.model) == digest(never.model)


@pytest.mark.parametrize("compiled", ["before", "anew"])
def test_a_fresh_process_makes_the_same_bytes(compiled, tmp_path):
    environment = dict(os.environ)
    losses = SOME_LOSSES if compiled == "before" else SOME_LOSSES[:1]
    if compiled == "anew":
        environment.pop("NUMBA_CACHE_DIR", None)
        environment["XDG_CACHE_HOME"] = str(tmp_path)
    code = f"""
from hogwild.kernels.compile import cache_folder
from tests.test_determinism import digests
print(cache_folder(), *digests({losses}))
"""
    command = [sys.executable, "-c", code]
    told = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    folder, *found = told.stdout.split()
    assert found == digests(losses)
    if compiled == "anew":
        assert list(tmp_path.rglob("learn-*.kernel"))
    assert (folder == str(cache_folder())) == (compiled == "before")


def test_the_estimator_makes_the_same_bytes(rows):
    X, y = rows.to_scipy(), rows.y

    def fit(**options):
        found = hogwild.HogwildClassifier(max_iter=3, **options).fit(X, y)
        return found.coef_.tobytes() + found.intercept_.tobytes()

    assert fit(n_jobs=1, random_state=5) == fit(n_jobs=1, random_state=5)
    assert fit(n_jobs=1, random_state=5) != fit(n_jobs=1, random_state=6)
    assert fit(random_state=5) == fit(n_jobs=1, random_state=5)
    assert fit(random_state=5, fit_intercept=False)[-8:] == bytes(8)
    trained = hogwild.train(rows, seed=5, epochs=3, workers=1).model
    assert fit(random_state=5)[:-8] == trained.weights.tobytes()


@pytest.mark.parametrize("loss", SOME_LOSSES)
def test_a_saved_model_is_loaded_bit_for_bit(rows, loss, tmp_path):
    result = hogwild.train(rows, loss=loss, epochs=2, workers=1, model=tmp_path / "model.hog")
    loaded = hogwild.load_model(tmp_path / "model.hog")
    assert digest(loaded) == digest(result.model)
    assert loaded.weights.dtype == np.float32
    loaded.save(tmp_path / "again.hog")
    assert (tmp_path / "again.hog").read_bytes() == (tmp_path / "model.hog").read_bytes()


# One worker is the naive twin


def small():
    """Dense rows of two classes, as float64 that float32 can hold."""
    random = np.random.default_rng(4)
    X = random.normal(size=(330, 12)).astype(np.float32).astype(float)
    return X, np.sign(X @ random.normal(size=12) + 0.5 * random.normal(size=330))


def order_of(epoch, seed, size):
    order = np.empty(size, np.uint32)
    shuffle(order, 0, np.uint64(seed_of(seed, epoch, 0)))
    return order


def take(number, monkeypatch):
    """Has a candidate seem the best."""
    monkeypatch.setattr(Sample, "sure_gains", lambda *_: np.eye(len(CANDIDATES))[number])


@pytest.mark.parametrize("taken", range(len(CANDIDATES)))
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_run_of_one_worker_is_what_the_reference_does(schedule, epochs, taken, monkeypatch):
    take(taken, monkeypatch)
    X, y = small()
    rows = hogwild.Rows(X, y)
    options = {"schedule": schedule, "eta0": 0.02, "l2": 0.05, "loss": "logistic", "epochs": epochs}
    if SCHEDULES[schedule].backs_off:
        options["beta"] = 0.5
    result = hogwild.train(rows, workers=1, tol=0, seed=9, **options)
    problem = LinearProblem(rows, None, hogwild.Config(**options))
    assert problem.snapshots > 50  # so many that the means are other things than the last weights
    orders = [order_of(epoch, 9, len(y)) for epoch in range(1, epochs + 1)]
    plan = reference.plan_of(problem, 0.02)
    expected = reference.train(X, y, orders, plan, problem.snapshots, options.get("beta", 1.0))
    w, b = expected[result.trace[-1]["weights"]]
    np.testing.assert_allclose(result.model.weights, w, 1e-4, 1e-6)
    assert result.model.intercept == pytest.approx(b, rel=1e-4)
    last_w, last_b = expected["last"]
    np.testing.assert_allclose(result.state.weights["stored"], [*last_w, last_b], 1e-4, 1e-6)
    others = [other for name, (other, _) in expected.items() if name != result.trace[-1]["weights"]]
    assert all(np.max(np.abs(w - other)) > 1e-3 for other in others)


@pytest.mark.parametrize("loss", [name for name in names_for(SIGNS) if name != "perceptron"])
@pytest.mark.parametrize("eta0", [1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("epochs", [1, 2])
def test_another_candidate_is_taken_where_it_is_better_beyond_doubt(
    loss, eta0, epochs, monkeypatch
):
    """By a share of the gain's error. There are so few rows that all are looked at.

    Candidates are compared at the rate given, also where it is too large for one of them.
    """
    monkeypatch.setattr(LinearProblem, "went_wrong", lambda *_: False)
    X, y = small()
    options = {"loss": loss, "eta0": eta0, "l2": 0.01, "epochs": epochs, "workers": 1, "tol": 0}
    taken = hogwild.train(hogwild.Rows(X, y), **options).trace[-1]["weights"]
    losses, penalties = {}, {}
    for number in range(len(CANDIDATES)):
        take(number, monkeypatch)
        result = hogwild.train(hogwild.Rows(X, y), **options)
        w, b = result.model.weights.astype(float), result.model.intercept
        name = result.trace[-1]["weights"]
        losses[name] = reference.value(loss, X @ w + b, y)
        penalties[name] = 0.005 * w @ w
    default = "tail mean" if epochs == 1 else "whole mean"
    gains = {default: 0.0}
    for other in losses.keys() - gains.keys():
        gain = losses[default] - losses[other]
        doubt = DOUBT * np.std(gain) / np.sqrt(len(y))
        gains[other] = np.mean(gain) + penalties[default] - penalties[other] - doubt
    assert len(gains) == len(CANDIDATES)
    assert gains[taken] >= max(gains.values()) - 1e-6  # rounding


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("loss", names_for(SIGNS))
def test_a_gain_is_sure_if_it_is_more_than_a_share_of_its_error(loss, threads):
    X, y = small()
    random, l2 = np.random.default_rng(1), 0.1
    some = [random.normal(size=12).astype(np.float32) for _ in range(2)]
    biases = 0.5, -0.5
    problem = LinearProblem(hogwild.Rows(X, y), None, hogwild.Config(loss=loss, l2=l2))
    candidates = [np.append(w, np.float32(b)) for w, b in zip(some, biases, strict=True)]
    squares = np.array([float(w @ w) for w in some])
    problem.threads = threads
    gains = problem.sample.sure_gains(candidates, squares, 0)
    (v, a), (w, b) = ((w.astype(float), b) for w, b in zip(some, biases, strict=True))
    gain = reference.value(loss, X @ v + a, y) - reference.value(loss, X @ w + b, y)
    expected = np.mean(gain) - DOUBT * np.std(gain) / len(y) ** 0.5 + l2 / 2 * (v @ v - w @ w)
    assert gains.tolist() == pytest.approx([0, expected], rel=1e-4)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_epoch_in_several_parts_is_the_same_epoch(schedule, monkeypatch):
    """Making the weights whole oftener changes their rounding, and the snapshots a little."""
    rows, found = hogwild.Rows(*small()), []
    for least in (1e-6, 0.9):
        monkeypatch.setattr("hogwild.coordinator.LEAST_SCALE", least)
        options = {"schedule": schedule, "eta0": 0.02, "l2": 0.1, "epochs": 2}
        found.append(hogwild.train(rows, workers=1, tol=0, **options))
    for mine, other in zip(*(result.state.weights.values() for result in found), strict=True):
        np.testing.assert_allclose(mine, other, 1e-4, 1e-6)
    np.testing.assert_allclose(found[0].model.weights, found[1].model.weights, 0.05, 0.005)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_going_on_is_the_same_as_not_having_stopped(rows, schedule):
    options = {"schedule": schedule, "workers": 1, "tol": 0, "eta0": 0.5}
    at_once = hogwild.train(rows, epochs=2, **options)
    first = hogwild.train(rows, epochs=1, **options)
    second = hogwild.train(rows, epochs=1, start=first.state, **options)
    assert second.state.steps == at_once.state.steps == 2 * len(rows)
    assert digest(second.model) == digest(at_once.model)


@pytest.fixture
def interrupted(monkeypatch):
    """Has Ctrl-C come at a call of the kernel, of 6 rows each; gives what it was called with."""
    monkeypatch.setattr("hogwild.learn.linear.CHUNK_NONZEROS", 72)
    visit, calls = RowWorker._visit, []

    def at(number):
        def interrupted_visit(self, *arguments):
            calls.append(arguments)
            if len(calls) == number:
                signal.raise_signal(signal.SIGINT)
            return visit(self, *arguments)

        monkeypatch.setattr(RowWorker, "_visit", interrupted_visit)
        return calls

    return at


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("piece", [1, 14, 27, 28, 29, 56])
def test_ctrl_c_at_any_piece_leaves_the_mean_of_the_snapshots_so_far(
    piece, interrupted, monkeypatch
):
    """An epoch here has two parts of 28 pieces each; Ctrl-C comes in the second epoch."""
    calls = interrupted(56 + piece)
    take(CANDIDATES.index("whole"), monkeypatch)
    monkeypatch.setattr("hogwild.coordinator.LEAST_SCALE", 0.8)
    options = {"schedule": "constant", "eta0": 0.02, "l2": 0.05, "tol": 0, "workers": 1}
    result = hogwild.train(hogwild.Rows(*small()), epochs=3, **options)
    assert (result.reason, len(result.trace)) == ("interrupted", 1)
    assert len(calls) == 56 + piece
    assert [end for _, _, end, *_ in calls[56 + 27 :]][:1] in ([], [165])
    mean, last = result.model.weights, result.state.weights["stored"][:-1]
    assert np.linalg.norm(mean - last) < 0.3 * np.linalg.norm(last)


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize("least_scale", [1e-12, 0.8], ids=["whole epochs", "epochs in parts"])
def test_ctrl_c_soon_after_the_start_leaves_the_last_weights(least_scale, interrupted, monkeypatch):
    calls = interrupted(5)
    monkeypatch.setattr("hogwild.coordinator.LEAST_SCALE", least_scale)
    options = {"schedule": "constant", "eta0": 0.02, "l2": 0.05, "workers": 1}
    result = hogwild.train(hogwild.Rows(*small()), **options)
    assert (result.reason, len(result.trace), len(calls)) == ("interrupted", 0, 5)
    assert np.count_nonzero(result.model.weights)
    last = np.append(result.model.weights, np.float32(result.model.intercept))
    assert np.array_equal(last, result.state.weights["stored"])
