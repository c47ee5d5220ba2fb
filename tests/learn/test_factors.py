"""The problem of factorization: what it takes and refuses, what it reports, what it visits."""

import numpy as np
import pytest

import hogwild
from hogwild.config import Config
from hogwild.data.ids import Ids
from hogwild.kernels.factors import MOST_AT_ONCE
from hogwild.learn.blocks import BANDS
from hogwild.learn.factors import FactorProblem
from hogwild.learn.losses import FACTOR_LOSSES
from hogwild.learn.schedules import EPOCH_SCHEDULES
from hogwild.loops.blocks import diagonals
from hogwild.parallel.memory import shared_arrays
from tests import reference_factors as reference

Ratings = hogwild.Ratings

SHAPES = [(1, 1), (1, 40), (40, 1), (3, 3), (BANDS - 1, 2), (150, 90), (BANDS * 65_536 + 5, 20)]


def values_for(loss, values):
    """Numbers around 3 as the loss takes them."""
    if loss == "logistic":
        return (values > np.median(values)).astype(np.float32)
    return np.maximum(values, 0.1) if loss == "kl" else values


def ratings_for(loss, users=150, items=90, size=2500, seed=0):
    random = np.random.default_rng(seed)
    u, i = random.integers(0, users, size), random.integers(0, items, size)
    noise = 0.3 * random.normal(size=size)
    values = 3 + random.normal(size=users)[u] * 0.5 + random.normal(size=items)[i] * 0.5 + noise
    ids = Ids.numbered(users), Ids.numbered(items)
    values = values_for(loss, values).astype(np.float32)
    return Ratings.from_codes(u.astype(np.uint32), i.astype(np.uint32), values, *ids)


def config(**options):
    return Config.of({"task": "mf", **options})


def set_up(problem, start=None, parts=1):
    """The shared arrays, as they are when training begins."""
    problem.prepare()
    shared = shared_arrays(problem.shared())

    def do(stage):
        for part in range(parts):
            problem.stage(shared, stage, part, parts)

    problem.set_start(shared, start, do)
    return shared


def measure(problem, shared):
    sums = {
        data: sum(problem.evaluate(shared, data, part) for part in range(problem.parts(data)))
        for data in problem.sets()
    }
    return problem.measured(shared, sums)


# What is visited


@pytest.mark.parametrize("size", [1, 3, 700])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("parts", [1, 3])
def test_an_epoch_visits_each_rating_once(shape, size, parts, monkeypatch):
    """With slopes of -1 and a rate of 1 a bias is the number of the row's visits."""
    plan = tuple(map(np.float32, (0, 1, 1, 0, 0, 0, 0, -np.inf)))
    monkeypatch.setattr(FactorProblem, "_plan", lambda *_: plan)
    monkeypatch.setattr(FactorProblem, "_draw", lambda *_: None)
    random = np.random.default_rng(size)
    codes = [random.integers(0, count, size).astype(np.uint32) for count in shape]
    ids = map(Ids.numbered, shape)
    ratings = Ratings.from_codes(*codes, np.full(size, 1e6, np.float32), *ids)
    problem = FactorProblem(ratings, None, config(loss="absolute", rank=1))
    shared = set_up(problem, parts=parts)
    done = [
        problem.learn(shared, task, 1, 1.0)[0]
        for tasks in diagonals(problem.bands, 0, 1)
        for task in tasks
    ]
    assert sum(done) == size
    model = problem.model(problem.learned(shared), {})
    for biases, some, count in zip(
        (model.user_biases, model.item_biases), codes, shape, strict=True
    ):
        np.testing.assert_array_equal(biases, np.bincount(some, minlength=count))
    assert not model.user_factors.any()


def test_tasks_of_a_phase_write_different_rows():
    problem = FactorProblem(ratings_for("squared"), None, config(rank=3))
    shared = set_up(problem)
    for tasks in diagonals(problem.bands, 0, 1)[:3]:
        written = {name: np.zeros(shared[name].size, int) for name in ("users", "items")}
        for task in tasks:
            before = {name: shared[name].copy() for name in written}
            problem.learn(shared, task, 1, 0.1)
            for name in written:
                written[name] += shared[name] != before[name]
        assert all(count.max() == 1 for count in written.values())


@pytest.mark.parametrize("parts", [2, 5, 64, 100])
def test_the_start_does_not_depend_on_how_many_prepare_it(parts):
    ratings = ratings_for("squared")
    one, many = (
        set_up(FactorProblem(ratings, ratings, config(rank=5)), parts=number)
        for number in (1, parts)
    )
    assert one.keys() == many.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, many[name], err_msg=name)


@pytest.mark.parametrize("data", ["train", "test", "held_out"])
def test_every_part_of_every_set_is_evaluated(data):
    test = ratings_for("squared", size=400, seed=5)
    problem = FactorProblem(ratings_for("squared"), test, config(early_stopping=0.2))
    shared = set_up(problem)
    before = measure(problem, shared)
    sizes = {"train": problem.units, "test": 400, "held_out": 2500 - problem.units}
    # One value changed by 1000 changes the mean by that: whichever it is, it is looked at
    for place in (0, sizes[data] // 2, sizes[data] - 1):
        values = shared[f"{data}_ratings"].view(np.float32)[1::2]
        kept = values[place]
        values[place] = 1e4
        changed = measure(problem, shared)
        values[place] = kept
        rise = changed[f"{data}_rmse"] ** 2 - before[f"{data}_rmse"] ** 2
        assert rise == pytest.approx(1e8 / sizes[data], rel=0.01)
    assert measure(problem, shared) == before


# What is reported

OPTIONS = {
    "defaults": {},
    "once a row": {"weighted": False},
    "l1": {"l1": 0.02},
    "l1 once a row": {"l1": 2.0, "weighted": False, "l2": 0.5},
    "nonnegative": {"nonnegative": True},
    "no biases": {"biases": False},
    "no penalty": {"l2": 0.0},
    "early stopping": {"early_stopping": 0.3, "epochs": 12, "l2": 0.001},
    "a wide rank": {"rank": MOST_AT_ONCE + 5},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_what_is_told_is_what_the_model_does(loss, name):
    options = {"rank": 6, "epochs": 4, "tol": 0, "loss": loss, "workers": 1, "seed": 2}
    options |= OPTIONS[name]
    if loss == "kl" and not options.get("biases", True):
        options.pop("biases")
    ratings, test = ratings_for(loss), ratings_for(loss, size=300, seed=8)
    result = hogwild.train(ratings, test=test, **options)
    model, train = result.model, ratings
    row = result.trace[-1]
    if "early_stopping" in options:
        train, held_out = ratings.split(options["early_stopping"], 2)
        row = min(result.trace, key=lambda row: row["held_out_loss"])
        assert row["held_out_rmse"] == pytest.approx(rmse(model, held_out), rel=1e-4)
    assert row["objective"] == pytest.approx(reference.model_objective(model, train), rel=1e-4)
    assert row["train_rmse"] == pytest.approx(rmse(model, train), rel=1e-4)
    assert row["test_rmse"] == pytest.approx(rmse(model, test), rel=1e-4)
    told = model.evaluate(train)
    assert row["objective"] == pytest.approx(told["objective"], rel=1e-4)
    assert row["train_rmse"] == pytest.approx(told["rmse"], rel=1e-4)
    if options.get("nonnegative") or loss == "kl":
        assert (model.user_factors >= 0).all()
        assert (model.item_factors >= 0).all()
    if options.get("biases") is False or loss == "kl":
        assert model.mean == 0
        assert not model.user_biases.any()
        assert not model.item_biases.any()
    if loss == "kl":
        assert (model.predict(ratings.users, ratings.items) > 0).all()


def rmse(model, ratings):
    """As a user finds it out; of the logistic loss, of probabilities."""
    found = model.predict(ratings.users, ratings.items).astype(float)
    return np.mean((found - ratings.values) ** 2) ** 0.5


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_the_loss_met_on_the_way_is_about_the_objective(loss):
    """At a rate at which next to nothing is learned, they are the same."""
    row = hogwild.train(ratings_for(loss), loss=loss, eta0=1e-7, epochs=1, workers=1).trace[0]
    assert row["online_loss"] == pytest.approx(row["train_loss"], rel=1e-3)


# Where training begins


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
@pytest.mark.parametrize("biases", [None, False])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_first_scores_are_about_the_mean_and_first_factors_are_small(loss, biases, nonnegative):
    if loss == "kl":
        biases = None
    options = config(loss=loss, biases=biases, nonnegative=nonnegative, rank=20)
    ratings = ratings_for(loss)
    problem = FactorProblem(ratings, None, options)
    model = problem.model(problem.learned(set_up(problem)), {})
    scores = model._scores(ratings.users, ratings.items)
    if loss != "logistic":
        assert scores.mean() == pytest.approx(ratings.values.mean(), rel=0.15)
        assert scores.std() < ratings.values.std()
    elif biases is None:
        chance = 1 / (1 + np.exp(-scores))
        assert chance.mean() == pytest.approx(ratings.values.mean(), abs=0.05)
    assert (model.user_factors.std(axis=1) > 0).all()  # no two factors are alike
    if nonnegative or loss == "kl":
        assert (model.user_factors >= 0).all()


def test_the_first_factors_are_those_of_the_seed():
    def drawn(seed):
        problem = FactorProblem(ratings_for("squared"), None, config(seed=seed, rank=3))
        return problem.model(problem.learned(set_up(problem)), {})

    one, again, other = drawn(1), drawn(1), drawn(2)
    assert np.array_equal(one.user_factors, again.user_factors)
    assert not np.isin(one.user_factors, other.user_factors).any()
    assert not np.isin(one.user_factors, one.item_factors).any()


def test_padding_and_the_row_of_the_unknown_stay_0():
    test = Ratings([10**6, 3], [4, 10**6], [3.0, 3.0])
    problem = FactorProblem(ratings_for("squared"), test, config(rank=5))
    shared = set_up(problem)
    for tasks in diagonals(problem.bands, 0, 1):
        for task in tasks:
            problem.learn(shared, task, 1, 0.1)
    for name, side in (("users", problem._grid.users), ("items", problem._grid.items)):
        rows = shared[name].reshape(side.size, -1)
        assert not rows[:, 5:].any()
        used = side.rows[:-1]
        assert rows[used, :5].all()
        unused = np.setdiff1d(np.arange(side.size), used)
        assert not rows[unused].any()
        assert not shared[name[:-1] + "_sides"].reshape(-1, 2)[unused, 0].any()


def test_going_back_to_the_start_is_the_start():
    """Also after everything overflowed, padding included."""
    problem = FactorProblem(ratings_for("squared"), None, config(rank=5))
    shared = set_up(problem)
    first = {name: array.copy() for name, array in problem.learned(shared).items()}
    for array in problem.learned(shared).values():
        array[:] = np.nan
    problem.set_start(shared, None, lambda stage: problem.stage(shared, stage, 0, 1))
    for name, array in first.items():
        np.testing.assert_array_equal(shared[name], array, err_msg=name)


@pytest.mark.parametrize("scale", [1e-3, 1e3, 1e6])
@pytest.mark.parametrize("loss", [loss for loss in FACTOR_LOSSES if loss != "logistic"])
def test_the_unit_of_the_values_makes_no_difference(loss, scale):
    """Rates and penalties are chosen by their size."""
    ratings = ratings_for(loss)
    ids = ratings.user_ids, ratings.item_ids
    codes = ratings.users, ratings.items
    scaled = Ratings.from_codes(*codes, ratings.values * np.float32(scale), *ids)
    found = [
        hogwild.train(some, loss=loss, rank=6, epochs=5, tol=0, workers=1, early_stopping=0.2)
        for some in (ratings, scaled)
    ]
    one, other = (result.trace[-1]["held_out_rmse"] for result in found)
    assert other == pytest.approx(scale * one, rel=0.03)


def test_the_divergences_factors_are_never_below_0_whatever_the_values():
    """Most values are 0, which draws scores down."""
    ratings = ratings_for("kl")
    values = np.where(np.arange(len(ratings)) % 10, np.float32(0), ratings.values)
    ids = ratings.user_ids, ratings.item_ids
    some = Ratings.from_codes(ratings.users, ratings.items, values, *ids)
    result = hogwild.train(some, loss="kl", rank=6, workers=1, epochs=5, l2=0.0)
    assert result.header["chosen"]["nonnegative"] is True
    for factors in (result.model.user_factors, result.model.item_factors):
        assert factors.min() >= 0


def test_rates_of_rows_go_down_by_the_formula_of_a_schedule_that_adapts():
    """With slopes of -1 or 1 a row's own rate tells how many they were."""
    ratings = ratings_for("squared")
    for schedule in EPOCH_SCHEDULES:
        result = hogwild.train(
            ratings,
            loss="absolute",
            schedule=schedule,
            eta0=1e-9,
            epochs=1,
            workers=1,
            biases=False,
        )
        rates = result.state.weights["user_sides"][1::2]
        if not EPOCH_SCHEDULES[schedule].adapts:
            assert (rates == 1).all()
            continue
        counts = np.bincount(ratings.users, minlength=150)
        growth = FactorProblem(ratings, None, config(loss="absolute", biases=False))._scale.growth
        np.testing.assert_allclose(rates, (1 + 2 * growth * counts) ** -0.5, 1e-2)


# What is refused, and what is told


def test_ratings_and_pairs():
    pairs = Ratings([1, 2], [1, 2])
    with pytest.raises(hogwild.DataError, match="no values, only pairs"):
        hogwild.train(pairs)
    with pytest.raises(hogwild.DataError, match="no values, only pairs"):
        hogwild.train(ratings_for("squared"), test=pairs)


@pytest.mark.parametrize("where", ["train", "test"])
@pytest.mark.parametrize(
    ("loss", "value", "message"),
    [
        ("kl", -0.5, r"rating 2 is -0\.5; the loss kl takes none below 0"),
        ("logistic", 2.0, r"rating 2 is 2; the loss logistic takes 0 and 1"),
        ("logistic", -1.0, r"rating 2 is -1; the loss logistic takes 0 and 1"),
    ],
)
def test_values_that_a_loss_does_not_take_are_named(loss, value, message, where):
    good = Ratings([1, 2, 3], [1, 2, 3], [1, 0, 1])
    bad = Ratings([1, 2, 3], [1, 2, 3], [1, value, value], name="the bad one")
    sets = (bad, None) if where == "train" else (good, bad)
    with pytest.raises(hogwild.DataError, match=f"the bad one: {message}"):
        hogwild.train(sets[0], test=sets[1], loss=loss)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_never_get_here(value):
    with pytest.raises(hogwild.DataError, match=r"rating 2.*not finite"):
        Ratings([1, 2], [1, 2], [1, value])


def test_nothing_to_learn_from_and_nothing_to_test_on():
    ratings = ratings_for("squared")
    nothing = Ratings.from_codes(
        *(np.empty(0, np.uint32) for _ in range(2)),
        np.empty(0, np.float32),
        ratings.user_ids,
        ratings.item_ids,
    )
    with pytest.raises(hogwild.DataError, match="no ratings to learn from"):
        hogwild.train(nothing)
    with pytest.raises(hogwild.DataError, match="no ratings to test on"):
        hogwild.train(ratings, test=nothing)


def test_early_stopping_needs_something_held_out():
    few = Ratings(range(5), range(5), [0.0, 1, 2, 3, 4])
    for seed in range(5):
        if len(few.split(0.01, seed)[1]) == 0:
            with pytest.raises(hogwild.DataError, match="held out"):
                hogwild.train(few, early_stopping=0.01, seed=seed)


@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_unknown_users_and_items_of_a_test_are_counted_and_told_once(ids):
    kind = str if ids == "text" else int
    random = np.random.default_rng(0)
    u, i = random.integers(0, 9, 200), random.integers(0, 9, 200)
    values = random.normal(size=200) + u
    ratings = Ratings([kind(n) for n in u], [kind(n) for n in i], values)
    test = Ratings(
        [kind(n) for n in (1, 77, 2, 88)], [kind(n) for n in (1, 2, 99, 99)], [1.0, 2, 3, 4]
    )
    with pytest.warns(
        hogwild.HogwildWarning, match="3 of 4 ratings involve users or items not in the training"
    ) as w:
        result = hogwild.train(ratings, test=test, epochs=2, workers=1)
    assert len(w) == 1
    assert len(result.notes) == 1
    with pytest.warns(hogwild.HogwildWarning):
        told = result.model.evaluate(test)
        scores = result.model.predict(test)
    assert result.trace[-1]["test_rmse"] == pytest.approx(told["rmse"], rel=1e-5)
    assert scores[3] == pytest.approx(result.model.mean)


def test_a_test_in_another_order_of_ids_is_the_same_test():
    ratings, test = ratings_for("squared"), ratings_for("squared", size=300, seed=8)
    order = np.random.default_rng(0).permutation(300)
    other = Ratings(test.users[order], test.items[order], test.values[order])
    shared_users = Ratings.from_codes(
        test.users, test.items, test.values, ratings.user_ids, Ids.numbered(90)
    )
    found = [
        hogwild.train(ratings, test=some, epochs=1, workers=1).trace[0]["test_rmse"]
        for some in (test, other, shared_users)
    ]
    assert found == pytest.approx([found[0]] * 3, rel=1e-6)
    assert shared_users.users.max() < 150  # what was given is as it was


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 0}, "rank: must be at least 1"),
        ({"rank": 2.5}, "rank: expected a whole number"),
        ({"rank": 10**6}, "rank: must be at most"),
        ({"l1": -1}, "l1: must be at least 0"),
        ({"bias_l2": -1.0}, "bias_l2: must be at least 0"),
        ({"early_stopping": 0.0}, "early_stopping: must be above 0"),
        ({"early_stopping": 0.9}, r"early_stopping: must be at most 0\.5"),
        ({"early_stopping": 0.1, "objective_every": 2}, "needs an objective_every of 1"),
        (
            {"loss": "hinge"},
            r"'hinge' is not one of squared, absolute, logistic, kl \(for the task mf\)",
        ),
        ({"loss": "kl", "biases": True}, "biases: it needs a loss other than kl"),
        ({"loss": "kl", "bias_l2": 0.1}, "bias_l2: it needs biases"),
        ({"biases": False, "bias_l2": 0.1}, "bias_l2: it needs biases"),
        ({"schedule": "constant", "beta": 0.9}, "beta: it needs the schedule"),
        ({"intercept": False}, "intercept: only for the task svm or logistic"),
    ],
)
def test_options_that_do_not_go_are_told_with_the_cure(options, message):
    with pytest.raises(hogwild.OptionError, match=message):
        hogwild.train(ratings_for("squared"), **options)


def test_linear_tasks_have_no_factors():
    for options in ({"rank": 5}, {"nonnegative": True}, {"loss": "kl"}):
        with pytest.raises(hogwild.OptionError):
            Config.of({"task": "svm", **options})


def test_the_data_is_described():
    problem = FactorProblem(ratings_for("squared"), None, config(l1=0.5, weighted=False))
    described = {"name": "the data", "users": 150, "items": 90, "ratings": 2500}
    assert problem.describe() == described
    first, second = problem.summary()
    assert "2,500 ratings of 90 items by 150 users" in first
    for part in ("32 factors", "squared loss", "l1 0.5", "once a row"):
        assert part in second
    assert problem.chosen()["biases"] is True
    assert "no biases" in FactorProblem(ratings_for("kl"), None, config(loss="kl")).summary()[1]
