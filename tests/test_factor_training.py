"""Factorization as a whole: the same bytes for any workers, planted factors found, good ends."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import hogwild
from hogwild import coordinator
from hogwild.config import Config
from hogwild.coordinator import HALVINGS
from hogwild.data.ids import Ids
from hogwild.data.synthetic_ratings import movielens
from hogwild.learn.blocks import BANDS, Grid
from hogwild.learn.factors import FactorProblem
from hogwild.learn.losses import FACTOR_LOSSES
from hogwild.learn.schedules import EPOCH_SCHEDULES
from tests import reference_factors as reference
from tests.combinations import each, pairs
from tests.test_recovery import At, children, interrupt, kill_a_worker

ROOT = Path(__file__).parent.parent
Ratings = hogwild.Ratings
ARRAYS = ("user_factors", "item_factors", "user_biases", "item_biases")
TIMES = ("seconds", "epoch_seconds", "merging", "waiting", "evaluation", "ratings_per_second")


def small(loss="squared", size=4000, seed=0):
    ratings, _ = movielens(200, 120, size, seed, rank=4)
    return as_taken(ratings, loss)


def as_taken(ratings, loss):
    """With values as the loss takes them."""
    if loss != "logistic":
        return ratings
    values = (ratings.values > 3.5).astype(np.float32)
    return Ratings.from_codes(
        ratings.users, ratings.items, values, ratings.user_ids, ratings.item_ids
    )


def digest(result):
    """Of the model, and of all that the trace tells but times."""
    found = hashlib.sha256()
    for name in ARRAYS:
        found.update(getattr(result.model, name).tobytes())
    told = [{k: v for k, v in row.items() if k not in TIMES} for row in result.trace]
    found.update(json.dumps([result.model.mean, result.reason, told]).encode())
    return found.hexdigest()


def train(ratings, **options):
    return hogwild.train(ratings, **{"workers": 1, "tol": 0, "rank": 8} | options)


@pytest.fixture(scope="module")
def ratings():
    return small()


# The same bytes

WORKERS = [(2, "process"), (3, "thread"), (4, "process"), (8, "thread"), (13, "process")]
USUAL = {"epochs": 4, "seed": 5}


def runs(loss):
    """Options that bring all kernels and all ends."""
    return [
        USUAL | {"loss": loss},
        USUAL | {"loss": loss, "early_stopping": 0.2, "epochs": 8, "l2": 1e-3},
        USUAL | {"loss": loss, "weighted": False, "l1": 0.1, "objective_every": 3},
        USUAL | {"loss": loss, "strategy": "strata", "nonnegative": True, "schedule": "sqrt"},
    ]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_any_number_of_workers_makes_the_same_bytes(loss, number):
    options = runs(loss)[number]
    ratings, test = small(loss), small(loss, 800, 1)
    expected = digest(train(ratings, test=test, **options))
    for workers, backend in WORKERS[number::2]:
        found = train(ratings, test=test, workers=workers, backend=backend, **options)
        assert digest(found) == expected, (workers, backend)


@pytest.mark.parametrize("backend", ["process", "thread"])
def test_under_load_and_again_and_again_the_bytes_are_the_same(ratings, backend):
    expected = digest(train(ratings, epochs=3))
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        for repeat in range(6):
            found = train(ratings, epochs=3, workers=2 + repeat % 4, backend=backend)
            assert digest(found) == expected
    finally:
        busy.kill()
        busy.wait()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["process", "thread"])
@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_the_bytes_are_the_same_of_many_runs_of_more_ratings(loss, backend):
    ratings = as_taken(movielens(6000, 3000, 400_000)[0], loss)
    expected = digest(train(ratings, epochs=3, loss=loss, rank=32))
    for repeat in range(10):
        found = train(
            ratings, epochs=3, loss=loss, rank=32, workers=2 + repeat % 7, backend=backend
        )
        assert digest(found) == expected


def test_a_delay_anywhere_makes_no_difference(ratings, monkeypatch):
    """Whoever is late with a task: the others wait for it at the end of the phase."""
    expected = digest(train(ratings, epochs=2))
    learn, random = FactorProblem.learn, np.random.default_rng(0)

    def learn_unevenly(self, *arguments):
        time.sleep(random.choice([0, 0, 0, 0.003]))
        return learn(self, *arguments)

    monkeypatch.setattr(FactorProblem, "learn", learn_unevenly)
    for workers in (2, 3, 8):
        assert digest(train(ratings, epochs=2, workers=workers, backend="thread")) == expected


@pytest.mark.parametrize("backend", ["process", "thread"])
def test_tasks_done_at_once_share_no_row(ratings, backend, monkeypatch, tmp_path):
    """As it happens, by the clock: each task writes down its bands, its beginning and its end."""
    learn = FactorProblem.learn

    def learn_and_tell(self, shared, task, *arguments):
        began = time.monotonic()
        time.sleep(0.002)
        found = learn(self, shared, task, *arguments)
        name = f"{os.getpid()}-{threading.get_ident()}"
        with (tmp_path / name).open("a") as file:
            file.write(f"{arguments[0]} {task[0]} {task[1]} {began} {time.monotonic()}\n")
        return found

    monkeypatch.setattr(FactorProblem, "learn", learn_and_tell)
    train(ratings, workers=4, backend=backend, epochs=2)
    told = np.concatenate([np.loadtxt(path, ndmin=2) for path in tmp_path.iterdir()])
    assert len(told) == 2 * BANDS**2
    assert len(np.unique(told[:, :3], axis=0)) == 2 * BANDS**2
    workers = len(list(tmp_path.iterdir()))  # all of them had something to do
    assert workers == 4 or (workers > 4 and backend == "thread")  # helper threads end when idle
    together = 0
    for epoch, user, item, began, ended in told:
        at_once = told[(told[:, 3] < ended) & (told[:, 4] > began)]
        together += len(at_once) - 1
        assert np.sum(at_once[:, 1] == user) == np.sum(at_once[:, 2] == item) == 1
        assert (at_once[:, 0] == epoch).all()
    assert together > len(told)


def test_another_seed_makes_other_bytes(ratings):
    assert len({digest(train(ratings, epochs=2, seed=seed)) for seed in (1, 1, 2, 3)}) == 3


def test_looking_on_makes_no_difference(ratings):
    often = train(ratings, test=small("squared", 800, 1), epochs=4)
    never = train(ratings, epochs=4, objective_every=0)
    assert all(np.array_equal(getattr(often.model, n), getattr(never.model, n)) for n in ARRAYS)
    assert often.trace[-1]["objective"] == never.trace[-1]["objective"]


def test_hogwild_with_one_worker_makes_the_same_bytes_too(ratings):
    found = {digest(train(ratings, epochs=3, strategy="hogwild")) for _ in range(3)}
    assert len(found) == 1
    assert found != {digest(train(ratings, epochs=3))}  # its tasks come in another order


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("backend", ["process", "thread"])
def test_hogwild_comes_close_to_strata(ratings, workers, backend):
    options = {"epochs": 10, "workers": workers, "backend": backend}
    strata, racing = (
        train(ratings, strategy=strategy, **options).trace for strategy in ("strata", "hogwild")
    )
    assert racing[-1]["ratings"] == strata[-1]["ratings"] == len(ratings)
    assert racing[-1]["objective"] == pytest.approx(strata[-1]["objective"], rel=0.03)


def digests():
    return [digest(train(small(), **options)) for options in runs("squared")]


def test_a_fresh_process_makes_the_same_bytes():
    code = "from tests.test_factor_training import digests\nprint(*digests())"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == digests()


# A run is what the naive twin does


@pytest.mark.parametrize("schedule", EPOCH_SCHEDULES)
@pytest.mark.parametrize("weighted", [True, False])
def test_a_run_is_the_twins_steps_in_the_order_of_the_blocks(schedule, weighted, monkeypatch):
    """Block by block and rating by rating, as the shared memory has them."""
    calls = []
    learn = FactorProblem.learn

    def learn_and_tell(self, shared, task, epoch, eta0):
        if not calls:
            calls.append((self, {name: array.copy() for name, array in shared.items()}))
        calls.append((task, eta0))
        return learn(self, shared, task, epoch, eta0)

    monkeypatch.setattr(FactorProblem, "learn", learn_and_tell)
    ratings = small(size=1000)
    options = {"epochs": 2, "rank": 5, "schedule": schedule, "weighted": weighted, "eta0": 0.05}
    if EPOCH_SCHEDULES[schedule].adapts or schedule == "backoff":
        options["beta"] = 0.5
    result = train(ratings, **options)
    (problem, shared), tasks = calls[0], calls[1:]
    sides = []
    for side in problem._sides:
        rows = shared[side.factors].reshape(side.size, -1)[:, :5].astype(float)
        sides.append(
            reference.Side(rows, *shared[side.beside].astype(float).reshape(-1, 2).T.copy())
        )
    shares = None if weighted else [1 / np.fmax(n, 1.0) for n in problem._row_counts]
    columns, user_height, item_height = problem._grid.shape
    starts, memory = shared["train_starts"].astype(int), shared["train_ratings"]
    pairs, values = memory.view(np.uint16).astype(int), memory.view(np.float32).astype(float)
    for task, eta0 in tasks:
        numbers = map(float, problem._plan(float(shared["mean"][0]), eta0))
        plan = reference.Plan(*numbers)
        for block in problem._grid.task(*task).astype(int):
            first = block // columns * user_height, block % columns * item_height
            some = [
                (first[0] + pairs[4 * k], first[1] + pairs[4 * k + 1], values[2 * k + 1])
                for k in range(*starts[block : block + 2])
            ]
            reference.learn(*sides, some, plan, "squared", shares)
    expected = [factor * 0.05 for factor in FACTORS_OF_TWO_EPOCHS[schedule]]
    assert [tasks[0][1], tasks[-1][1]] == pytest.approx(expected)
    ours = (ratings.users, "user"), (ratings.items, "item")
    for side, twin, (codes, kind) in zip(problem._sides, sides, ours, strict=True):
        rows, rated = side.rows[:-1], np.isin(np.arange(side.count - 1), codes)
        twin.factors[rows[~rated]] = 0  # what was drawn for whoever has no rating says nothing
        mine = getattr(result.model, f"{kind}_factors"), getattr(result.model, f"{kind}_biases")
        np.testing.assert_allclose(mine[0], twin.factors[rows], 1e-3, 1e-4)
        np.testing.assert_allclose(mine[1], twin.biases[rows], 1e-3, 1e-4)


FACTORS_OF_TWO_EPOCHS = {
    "adaptive": (1, 0.5),
    "constant": (1, 1),
    "inverse": (1, 0.5),
    "sqrt": (1, 0.5**0.5),
    "backoff": (1, 0.5),
}


# Recovery of planted factors


def planted(biases, rank):
    """Exact products of normal factors, and biases; a tenth of them to test on."""
    random = np.random.default_rng(rank)
    users, items, size = 200, 120, 12_000
    u, i = np.divmod(random.choice(users * items, size, replace=False), items)
    P, Q = (random.normal(size=(count, rank)) * rank**-0.25 for count in (users, items))
    values = np.einsum("nk,nk->n", P[u], Q[i])
    if biases:
        values += 3 + 0.5 * random.normal(size=users)[u] + 0.5 * random.normal(size=items)[i]
    ids = Ids.numbered(users), Ids.numbered(items)
    codes = u.astype(np.uint32), i.astype(np.uint32)
    return Ratings.from_codes(*codes, values.astype(np.float32), *ids).split(0.1, 0)


@each(schedule=[None, "constant", "sqrt", "backoff"], rank=[3, 8], biases=[True, False])
def test_planted_factors_without_noise_are_found_again(biases, rank, schedule):
    """On entries that were not seen; without a penalty, at the rate that is found."""
    ratings, test = planted(biases, rank)
    options = {"biases": biases, "l2": 0.0, "epochs": 150, "workers": 2, "schedule": schedule}
    if biases:
        options["bias_l2"] = 0.0
    if schedule in (None, "backoff"):
        options["beta"] = 0.99
    result = train(ratings, test=test, rank=rank, **options)
    assert result.trace[-1]["test_rmse"] < 1e-3 * test.values.std()


@pytest.mark.parametrize("biases", [True, False])
def test_defaults_find_most_of_planted_factors(biases):
    ratings, test = planted(biases, 4)
    result = hogwild.train(ratings, test=test, biases=biases)
    assert result.trace[-1]["test_rmse"] < 0.25 * test.values.std()


def test_planted_ratings_like_movielens_are_found_again():
    ratings, _ = movielens(400, 200, 24_000, rank=3, noise=0, half_stars=False)
    given, test = ratings.split(0.1, 3)
    options = {"l2": 0.0, "bias_l2": 0.0, "epochs": 150, "beta": 1.0}
    result = train(given, test=test, rank=3, workers=2, **options)
    assert result.trace[-1]["test_rmse"] < 1e-3 * test.values.std()


@pytest.mark.parametrize("strategy", ["strata", "hogwild"])
def test_a_planted_signal_is_found_under_noise(strategy):
    """The error on what was not seen comes near the noise: 0.3 of a spread of 0.9."""
    ratings, _ = movielens(600, 300, 40_000, rank=3, noise=0.3, half_stars=False)
    given, test = ratings.split(0.1, 3)
    options = {"early_stopping": 0.1, "epochs": 60, "strategy": strategy, "workers": 2}
    result = train(given, test=test, rank=4, **options)
    found = result.model.evaluate(test)["rmse"]
    assert 0.29 < found < 0.42


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_every_loss_learns(loss):
    """What was held out is predicted better than by the mean."""
    given, test = as_taken(movielens(300, 200, 20_000)[0], loss).split(0.2, 1)
    model = train(given, loss=loss, epochs=20).model
    found = model.evaluate(test)["rmse"]
    assert found < 0.97 * np.sqrt(np.mean((test.values - given.values.mean()) ** 2))


# Saving, and going on


@pytest.mark.parametrize("kind", ["numbers", "text"])
@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_a_saved_model_is_loaded_bit_for_bit_with_the_users_own_ids(loss, kind, tmp_path):
    given = small(loss, 1500)
    names = [f"user {n}" if kind == "text" else 1000 - 3 * n for n in range(200)]
    users = [names[code] for code in given.users]
    ratings = Ratings(users, [f"é{code}" for code in given.items], given.values)
    result = train(ratings, loss=loss, epochs=2, workers=2, model=tmp_path / "m.hog")
    loaded = hogwild.load_model(tmp_path / "m.hog")
    for name in ARRAYS:
        assert getattr(loaded, name).tobytes() == getattr(result.model, name).tobytes()
    who, what = [users[0], users[-1], users[5]], ["é3", "é5", "é3"]
    assert np.array_equal(loaded.predict(who, what), result.model.predict(who, what))
    assert loaded.mean == result.model.mean
    assert loaded.user_ids.tolist() == list(ratings.user_ids.tolist())
    loaded.save(tmp_path / "again.hog")
    assert (tmp_path / "again.hog").read_bytes() == (tmp_path / "m.hog").read_bytes()
    for n in range(0, 1500, 300):  # in the user's own order
        p = loaded.user_factors[loaded.user_ids.codes_of([users[n]])[0]].astype(float)
        q = loaded.item_factors[loaded.item_ids.codes_of([f"é{given.items[n]}"])[0]]
        b = loaded.user_biases[loaded.user_ids.codes_of([users[n]])[0]]
        c = loaded.item_biases[loaded.item_ids.codes_of([f"é{given.items[n]}"])[0]]
        score = loaded.mean + b + c + p @ q
        found = loaded.predict(users[n], f"é{given.items[n]}")
        expected = 1 / (1 + np.exp(-score)) if loss == "logistic" else score
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("schedule", EPOCH_SCHEDULES)
def test_going_on_from_a_state_is_the_same_as_not_having_stopped(ratings, schedule, workers):
    options = {"schedule": schedule, "workers": workers}
    at_once = train(ratings, epochs=4, **options)
    first = train(ratings, epochs=1, **options)
    second = train(ratings, epochs=3, start=first.state, **options)
    assert second.state.steps == at_once.state.steps == 4 * len(ratings)
    assert [row["epoch"] for row in second.trace] == [2, 3, 4]
    for name in ARRAYS:
        assert np.array_equal(getattr(second.model, name), getattr(at_once.model, name))


def test_going_on_with_another_seed_loses_nothing(ratings):
    """Rows then lie elsewhere; the state does not mind."""
    first = train(ratings, epochs=5)
    second = train(ratings, epochs=1, start=first.state, seed=99)
    assert second.trace[0]["objective"] < first.trace[-1]["objective"] * 1.01


@pytest.mark.parametrize(("rank", "size"), [(5, 4000), (9, 4000), (17, 4000), (8, 3900)])
def test_a_state_of_other_sizes_is_refused(ratings, rank, size):
    state = train(ratings, epochs=1).state
    if size != len(ratings):
        ratings = Ratings(ratings.users[:100], ratings.items[:100], ratings.values[:100])
    with pytest.raises(hogwild.DataError, match="Use the same users, items and rank"):
        train(ratings, rank=rank, start=state)


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
@pytest.mark.parametrize("workers", [1, 3])
def test_a_model_is_gone_on_from_with_new_users_and_items(loss, workers):
    everything = small(loss)
    users, items, values = everything.users, everything.items, everything.values
    old = (users < 150) & (items < 100)
    first = train(Ratings(users[old], items[old], values[old]), loss=loss, epochs=15)
    # In another order of ids, too
    grown = Ratings([f"{n}" for n in users[::-1]], [f"{n}" for n in items[::-1]], values[::-1])
    known = train(grown, loss=loss, epochs=1, eta0=1e-9, start=first.model, workers=workers).model
    assert known.mean == first.model.mean
    some = [3, 40, 149, 7], [0, 99, 5, 60]
    np.testing.assert_allclose(known.predict(*some), first.model.predict(*some), 1e-4, 1e-5)
    assert len(known.user_ids) == len(np.unique(users))
    result = train(grown, loss=loss, epochs=5, start=first.model, workers=workers)
    assert result.trace[-1]["objective"] == pytest.approx(
        reference.model_objective(result.model, grown), rel=1e-4
    )
    fresh = train(grown, loss=loss, epochs=1)
    assert result.trace[0]["objective"] < fresh.trace[0]["objective"]


@pytest.mark.parametrize("backend", ["process", "thread"])
def test_with_a_start_any_number_of_workers_makes_the_same_bytes(ratings, backend):
    """The model's mean is not that of the data; all workers must know."""
    higher = Ratings(ratings.users, ratings.items, ratings.values + 2)
    model = train(ratings, epochs=3).model
    expected = digest(train(higher, epochs=2, start=model))
    for workers in (2, 5):
        found = train(higher, epochs=2, start=model, workers=workers, backend=backend)
        assert digest(found) == expected
        assert found.model.mean == model.mean


def test_a_model_of_another_rank_or_loss_is_refused(ratings):
    model = train(ratings, epochs=1).model
    for options in ({"rank": 9}, {"loss": "absolute"}):
        with pytest.raises(hogwild.DataError, match=r"rank 8 and the loss squared"):
            train(ratings, start=model, **options)


# Reasons to stop


def test_the_epochs_are_as_many_as_asked(ratings):
    result = train(ratings, epochs=7)
    assert (result.reason, len(result.trace)) == ("epochs", 7)
    assert [row["epoch"] for row in result.trace] == list(range(1, 8))
    assert all(row["ratings"] == len(ratings) for row in result.trace)


def test_no_progress_is_a_reason(ratings):
    result = train(ratings, epochs=500, tol=1e-2)
    objectives = [row["objective"] for row in result.trace]
    assert result.reason == "converged"
    gains = -np.diff(objectives)
    assert (gains[-Config.patience :] < 1e-2 * objectives[-1]).all()
    assert len(result.trace) < 200


def test_a_target_is_a_reason(ratings):
    objectives = [row["objective"] for row in train(ratings, epochs=6).trace]
    result = train(ratings, epochs=6, target=objectives[3])
    assert (result.reason, len(result.trace)) == ("target", 4)


@pytest.mark.parametrize("every", [0, 1, 3])
def test_the_objective_is_told_as_often_as_asked(ratings, every):
    result = train(ratings, epochs=7, objective_every=every)
    told = [row["epoch"] for row in result.trace if row["objective"] is not None]
    assert told == {0: [7], 1: list(range(1, 8)), 3: [3, 6, 7]}[every]
    assert [row["epoch"] for row in result.trace if row["train_rmse"] is not None] == told
    assert all(row["tracked"] is not None for row in result.trace)


def test_with_few_objectives_progress_is_seen_on_the_way(ratings):
    result = train(ratings, epochs=500, objective_every=0, tol=1e-2)
    assert result.reason == "converged"
    assert len(result.trace) < 200


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
@pytest.mark.parametrize("workers", [1, 2])
def test_early_stopping_takes_the_best_epoch(loss, workers):
    ratings = small(loss)
    options = {"early_stopping": 0.25, "epochs": 200, "l2": 1e-6, "rank": 16, "loss": loss}
    result = train(ratings, workers=workers, schedule="constant", **options)
    assert result.reason == "overfitting"
    losses = [row["held_out_loss"] for row in result.trace]
    best = int(np.argmin(losses))
    assert best == len(losses) - 1 - Config.patience
    kept, held_out = ratings.split(0.25, 0)
    assert result.trace[0]["ratings"] == len(kept)
    told = result.trace[best]
    assert result.model.evaluate(held_out)["rmse"] == pytest.approx(told["held_out_rmse"], rel=1e-4)
    assert result.model.evaluate(kept)["objective"] == pytest.approx(told["objective"], rel=1e-4)
    assert result.model.about["trace"]["last"]["epoch"] == best + 1
    assert result.state.epochs == len(losses)


def test_early_stopping_keeps_to_the_seed_and_leaves_the_last_epoch_if_it_is_the_best(ratings):
    result = train(ratings, early_stopping=0.2, epochs=3, seed=4)
    assert result.reason == "epochs"
    kept, _ = ratings.split(0.2, 4)
    losses = [row["held_out_loss"] for row in result.trace]
    assert losses[-1] == min(losses)
    told = result.model.evaluate(kept)["rmse"]
    assert told == pytest.approx(result.trace[-1]["train_rmse"], rel=1e-5)


# Small, plain and odd data


@pairs(
    pair=[([5], [7]), ([1, 2], [1, 2]), ([1, 1], [2, 3]), ([1, 1, 1], [2, 2, 2])],
    loss=FACTOR_LOSSES,
    workers=[1, 3],
)
def test_one_rating_two_or_three(pair, loss, workers):
    users, items = pair
    values = np.arange(len(users)) % 2 if loss == "logistic" else 1.0 + np.arange(len(users))
    result = train(Ratings(users, items, values), loss=loss, workers=workers, epochs=5)
    assert result.reason == "epochs"
    assert np.isfinite(result.model.predict(users, items)).all()


@pytest.mark.parametrize("value", [0.0, 1.0, 4.0, 1e-6, 1e9])
@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_values_that_are_all_equal(loss, value):
    if loss == "logistic" and value not in (0, 1):
        pytest.skip("logistic takes 0 and 1")
    given = small()
    ratings = Ratings(given.users, given.items, np.full(len(given), value))
    result = train(ratings, loss=loss, epochs=8)
    found = result.model.predict(given.users, given.items)
    np.testing.assert_allclose(found, value, rtol=0.2, atol=0.1 * (value == 0) + 1e-30)


@pytest.mark.parametrize("shift", [-100.0, -3.6, 0.0, 100.0])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_values_around_any_number_with_biases(ratings, shift, nonnegative):
    moved = Ratings(ratings.users, ratings.items, ratings.values + shift)
    here, there = (
        train(some, nonnegative=nonnegative, epochs=8).trace[-1]["train_rmse"]
        for some in (ratings, moved)
    )
    assert there == pytest.approx(here, rel=0.02)


@pytest.mark.parametrize("shift", [-7.0, -3.6, 0.0, 5.0])
@pytest.mark.parametrize("schedule", ["adaptive", "constant"])
def test_values_around_any_number_without_biases(ratings, shift, schedule):
    moved = Ratings(ratings.users, ratings.items, ratings.values + shift)
    result = train(moved, biases=False, epochs=30, schedule=schedule)
    assert result.trace[-1]["train_rmse"] < 1.05 * ratings.values.std()
    assert not result.notes


def test_a_test_of_the_same_users_and_of_other_items(ratings):
    """The users' codes are then those of the test itself, which nobody may write to."""
    names = [*ratings.item_ids.tolist()[1:], "nobody's"]
    codes = np.arange(len(names), dtype=np.uint32)
    parts = ratings.users[: len(codes)], codes, ratings.values[: len(codes)]
    test = Ratings.from_codes(*parts, ratings.user_ids, Ids.of([str(name) for name in names])[0])
    with pytest.warns(hogwild.HogwildWarning, match=rf": 1 of {len(codes)} ratings"):
        result = train(ratings, test=test, epochs=2)
        found = result.model.evaluate(test)
    assert found["unknown"] == 1
    assert result.trace[-1]["test_rmse"] == pytest.approx(found["rmse"], rel=1e-5)


def test_values_below_0_without_factors_below_0(ratings):
    """The best there are are factors of 0."""
    below = Ratings(ratings.users, ratings.items, ratings.values - 7)
    model = train(below, biases=False, nonnegative=True, epochs=5).model
    assert model.predict(below.users, below.items).max() < 0.1


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_a_rank_above_both_sides(loss):
    given = small(loss)
    few = (given.users < 6) & (given.items < 60)
    ratings = Ratings(given.users[few], given.items[few], given.values[few])
    result = train(ratings, rank=70, loss=loss, epochs=5, workers=2)
    assert result.model.user_factors.shape[1] == 70
    assert result.trace[-1]["objective"] < result.trace[0]["objective"] * 1.001


def test_users_and_items_with_one_rating_each():
    random = np.random.default_rng(0)
    values = random.normal(size=500)
    result = train(Ratings(range(500), range(500), values), epochs=5, workers=2)
    assert result.trace[-1]["objective"] < np.var(values) / 2


def test_more_rows_than_strips_of_16_bits_hold():
    random = np.random.default_rng(0)
    users = random.permutation(BANDS * 65_536 + 500).astype(np.uint32)
    items = random.integers(0, 3, len(users)).astype(np.uint32)
    bias = np.array([1.0, 3.0, 8.0], np.float32)
    ids = Ids.numbered(len(users)), Ids.numbered(3)
    ratings = Ratings.from_codes(users, items, bias[items], *ids)
    assert Grid((len(users), 4), len(users), 72, 0).users.strips > BANDS
    one, three = (train(ratings, workers=workers, rank=1, epochs=1, l2=0.0) for workers in (1, 3))
    assert digest(one) == digest(three)
    assert one.trace[0]["train_rmse"] < 0.3 * ratings.values.std()


def test_the_same_pair_many_times(ratings):
    again = Ratings(*(np.tile(a, 5) for a in (ratings.users, ratings.items, ratings.values)))
    assert train(again, epochs=3).trace[-1]["ratings"] == 5 * len(ratings)
    once = train(again, epochs=3, duplicates="last").trace[-1]
    assert once["ratings"] == len(ratings)


# Rates that are too large


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("eta0", [10.0, 30.0])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_rate_too_large_is_halved_and_told_once(loss, eta0, workers):
    ratings = small(loss)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = train(ratings, eta0=eta0, loss=loss, workers=workers, epochs=25)
    assert len(told) == len(result.notes) <= 1
    if loss == "squared":
        assert "the learning rate is too large: the objective rose in epoch 1" in result.notes[0]
        assert result.state.eta0 in eta0 / 2.0 ** np.arange(1, HALVINGS + 1)
    assert [row["epoch"] for row in result.trace] == list(range(1, 26))
    usual = train(ratings, loss=loss, epochs=25)
    assert result.trace[-1]["objective"] < 1.1 * usual.trace[-1]["objective"]
    assert result.state.steps == 25 * len(ratings)


def test_a_later_epoch_that_goes_wrong_is_done_again(ratings, monkeypatch):
    """From the end of the epoch before it."""
    learn, spoilt = FactorProblem.learn, []

    def learn_or_spoil(self, shared, task, epoch, eta0):
        if epoch == 3 and not spoilt:
            spoilt.append(eta0)
            shared["users"][:] = 1e30
        return learn(self, shared, task, epoch, eta0)

    plain = train(ratings, epochs=2)
    monkeypatch.setattr(FactorProblem, "learn", learn_or_spoil)
    with pytest.warns(hogwild.HogwildWarning, match="the objective rose in epoch 3"):
        result = train(ratings, epochs=5)
    assert [row["epoch"] for row in result.trace] == [1, 2, 3, 4, 5]
    assert result.state.steps == 5 * len(ratings)
    for mine, theirs in zip(result.trace, plain.trace, strict=False):
        assert mine["objective"] == theirs["objective"]
    monkeypatch.undo()
    half = plain.state.__class__(plain.state.weights, plain.state.steps, 2, plain.state.eta0 / 2)
    on = train(ratings, epochs=3, start=half)
    assert [row["objective"] for row in on.trace] == [row["objective"] for row in result.trace[2:]]


def test_a_run_that_never_gets_better_says_so(ratings, monkeypatch, tmp_path):
    def spoil(self, shared, task, epoch, eta0):
        shared["users"][:] = np.nan
        return 1, 1.0

    monkeypatch.setattr(FactorProblem, "learn", spoil)
    with (
        pytest.warns(hogwild.HogwildWarning),
        pytest.raises(hogwild.DivergenceError, match="overflowed in epoch 1"),
    ):
        train(ratings, model=tmp_path / "m.hog")
    assert not list(tmp_path.iterdir())


# Ctrl-C, time limits, dead workers


@pytest.fixture
def slow(monkeypatch):
    """Makes an epoch of two workers last a third of a second, in pieces of 10 ms."""
    learn = FactorProblem.learn

    def learn_slowly(self, *arguments):
        time.sleep(0.01)
        return learn(self, *arguments)

    monkeypatch.setattr(FactorProblem, "learn", learn_slowly)


@pytest.mark.usefixtures("slow", "listening")
@pytest.mark.parametrize("strategy", ["strata", "hogwild"])
@pytest.mark.parametrize(("workers", "backend"), [(1, "process"), (2, "process"), (3, "thread")])
def test_an_interrupt_in_an_epoch_gives_the_model_so_far(ratings, workers, backend, strategy):
    at = At(interrupt, 2, 0.3)
    result = train(ratings, workers=workers, backend=backend, strategy=strategy, watcher=at)
    assert at.when is not None
    assert time.monotonic() - at.when < 0.5
    assert (result.reason, len(result.trace)) == ("interrupted", 1)
    assert len(ratings) < result.state.steps < 2 * len(ratings)
    told = result.model.evaluate(ratings)
    assert told["objective"] < 1.02 * result.trace[0]["objective"]
    assert told["objective"] == pytest.approx(
        reference.model_objective(result.model, ratings), rel=1e-4
    )
    hogwild.close_pool()
    assert not children()


@pytest.mark.usefixtures("slow", "listening")
def test_an_interrupt_in_an_epoch_of_early_stopping_gives_the_best_epoch(ratings):
    at = At(interrupt, 3, 0.3)
    result = train(ratings, workers=2, early_stopping=0.2, watcher=at)
    _, held_out = ratings.split(0.2, 0)
    best = min(row["held_out_rmse"] for row in result.trace)
    assert (result.reason, len(result.trace)) == ("interrupted", 2)
    assert result.model.evaluate(held_out)["rmse"] == pytest.approx(best, rel=1e-4)


@pytest.mark.usefixtures("listening")
def test_an_interrupt_between_epochs_gives_the_model_of_the_last(ratings, tmp_path):
    path = tmp_path / "m.hog"
    result = train(ratings, workers=2, watcher=At(interrupt, 3), model=path)
    assert (result.reason, len(result.trace)) == ("interrupted", 3)
    assert digest(result) != digest(train(ratings, epochs=3))  # by the reason
    expected = train(ratings, epochs=3).model
    loaded = hogwild.load_model(path)
    assert all(np.array_equal(getattr(loaded, n), getattr(expected, n)) for n in ARRAYS)


@pytest.mark.usefixtures("listening")
def test_an_interrupt_before_training_is_one(ratings, monkeypatch):
    stage = FactorProblem.stage

    def interrupted(self, *arguments):
        signal.raise_signal(signal.SIGINT)
        return stage(self, *arguments)

    monkeypatch.setattr(FactorProblem, "stage", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(ratings)
    hogwild.close_pool()
    assert not children()


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("share", [None, 0.2])
@pytest.mark.parametrize("strategy", ["strata", "hogwild"])
def test_a_killed_worker_is_replaced_or_ends_the_run_and_the_last_epoch_is_kept(
    ratings, tmp_path, share, strategy, monkeypatch
):
    """Also while the others wait for it at the end of a phase."""
    path, options = tmp_path / "kept.hog", {"workers": 3, "strategy": strategy}
    killer = At(kill_a_worker, 1 if share is None else 2, share)
    with pytest.warns(hogwild.HogwildWarning, match="SIGKILL; new workers take over"):
        replaced = train(ratings, watcher=killer, epochs=3, **options)
    assert [row["ratings"] for row in replaced.trace] == [len(ratings)] * 3
    if strategy == "strata":
        wanted = train(ratings, epochs=3, **options).model
        assert all(np.array_equal(getattr(replaced.model, n), getattr(wanted, n)) for n in ARRAYS)
    monkeypatch.setattr(coordinator, "DEATHS", 0)
    killer = At(kill_a_worker, 1 if share is None else 2, share)
    with pytest.raises(
        hogwild.WorkerError, match=r"worker 2 .* SIGKILL.*Epoch 1 was the last"
    ) as told:
        train(ratings, workers=3, model=path, watcher=killer, strategy=strategy)
    assert time.monotonic() - killer.when < 1.0
    hogwild.close_pool()
    assert not children()
    result = told.value.result
    assert [row["epoch"] for row in result.trace] == [1]
    found = result.model.evaluate(ratings)["objective"]
    assert found == pytest.approx(result.trace[0]["objective"], rel=1e-5)
    loaded = hogwild.load_model(path)
    assert all(np.array_equal(getattr(loaded, n), getattr(result.model, n)) for n in ARRAYS)


@pytest.mark.usefixtures("slow")
def test_a_worker_killed_in_the_first_epoch_leaves_no_model(ratings, tmp_path, monkeypatch):
    monkeypatch.setattr(coordinator, "DEATHS", 0)
    with pytest.raises(hogwild.WorkerError, match="No epoch was finished"):
        train(ratings, workers=2, model=tmp_path / "m.hog", watcher=At(kill_a_worker, 1, 0.1))
    assert not list(tmp_path.iterdir())
    hogwild.close_pool()
    assert not children()


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_time_limit_ends_an_epoch_early_and_its_row_says_so(ratings, workers):
    result = train(ratings, workers=workers, time_limit=0.15)
    last = result.trace[-1]
    assert (result.reason, last["epoch"]) == ("time", 1)
    assert 0 < last["ratings"] < len(ratings)
    assert 0.15 < last["seconds"] < 0.8
    told = result.model.evaluate(ratings)["objective"]
    assert told == pytest.approx(last["objective"], rel=1e-5)


def test_a_time_limit_between_epochs(ratings):
    result = train(ratings, epochs=10**6, time_limit=0.2)
    assert result.reason == "time"
    assert result.trace[-1]["seconds"] < 0.5


def test_trainings_side_by_side(ratings):
    expected, found = digest(train(ratings, epochs=3)), []

    def work():
        found.append(digest(train(ratings, epochs=3, workers=2)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
    hogwild.close_pool()
    assert not children()
