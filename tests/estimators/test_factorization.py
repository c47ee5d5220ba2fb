"""MatrixFactorization: learns, goes on learning, and is at home in scikit-learn."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import hogwild
from hogwild import MatrixFactorization
from hogwild.data.ids import Ids
from hogwild.data.ratings import Ratings
from hogwild.data.synthetic_ratings import movielens
from hogwild.models.factors import FactorModel


@pytest.fixture(scope="module")
def data() -> tuple[Ratings, Ratings]:
    return movielens(600, 370, 40_000)[0].split(0.1)


@pytest.fixture(scope="module")
def fitted(data: tuple[Ratings, Ratings]) -> MatrixFactorization:
    return MatrixFactorization(8, random_state=0).fit(data[0])


def test_it_learns_and_says_how(data: tuple[Ratings, Ratings], fitted: MatrixFactorization) -> None:
    train, test = data
    assert train.values is not None
    assert test.values is not None
    mean_only = np.sqrt(np.mean((test.values - train.values.mean()) ** 2))
    assert -fitted.score(test) < 0.95 * mean_only
    users, items = train.shape
    assert fitted.user_factors_.shape == (users, 8)
    assert fitted.item_factors_.shape == (items, 8)
    assert fitted.user_biases_.shape == (users,)
    assert fitted.item_biases_.shape == (items,)
    assert fitted.mean_ == pytest.approx(float(train.values.mean()), rel=1e-5)
    assert (fitted.user_ids_, fitted.item_ids_) == (train.user_ids, train.item_ids)
    assert fitted.n_iter_ == len(fitted.history_) <= 20
    assert isinstance(fitted.model_, FactorModel)
    objective = fitted.history_[-1]["objective"]
    assert fitted.model_.evaluate(train)["objective"] == pytest.approx(objective, rel=1e-5)
    assert fitted.score(test) == -fitted.model_.evaluate(test)["rmse"]


def test_it_is_train_by_another_name(
    data: tuple[Ratings, Ratings], fitted: MatrixFactorization
) -> None:
    result = hogwild.train(data[0], task="mf", rank=8)
    assert result.model.user_factors.tobytes() == fitted.user_factors_.tobytes()


def test_all_forms_of_ratings_are_the_same(data: tuple[Ratings, Ratings]) -> None:
    ratings = data[0].deduplicated("mean")
    assert ratings.values is not None
    by_row = np.lexsort((ratings.items, ratings.users))
    users, items, values = ratings.users[by_row], ratings.items[by_row], ratings.values[by_row]
    ordered = Ratings.from_codes(users, items, values, ratings.user_ids, ratings.item_ids)
    learner = MatrixFactorization(4, epochs=2, tol=None, random_state=0)
    whole = learner.fit(ordered).item_factors_.tobytes()
    matrix = learner.fit(ratings.to_scipy())
    assert matrix.item_factors_.tobytes() == whole
    assert matrix.score(ratings.to_scipy()) == learner.fit(ordered).score(ordered)
    names = [f"u{user}" for user in users]
    named = learner.fit(names, items.astype(int), values)
    assert named.item_ids_.tolist() == sorted(set(items.tolist()))
    assert named.predict(names[0], int(items[0])) == pytest.approx(values[0], abs=2.5)


def test_predictions_and_rankings_are_the_models(
    data: tuple[Ratings, Ratings], fitted: MatrixFactorization
) -> None:
    train, _ = data
    model = fitted.model_
    assert fitted.predict(train).tobytes() == model.predict(train).tobytes()
    for users in (5, [5, 7], None):
        ids, scores = fitted.recommend(users, 5)
        wanted = model.recommend(users, 5, exclude=train)
        assert (ids.tolist(), scores.tolist()) == (wanted[0].tolist(), wanted[1].tolist())
        everything = fitted.recommend(users, 5, exclude_seen=False)[0]
        assert everything.tolist() == model.recommend(users, 5)[0].tolist()
    assert fitted.similar_items(3, 4)[0].tolist() == model.similar_items(3, 4)[0].tolist()
    assert fitted.similar_users(3, 4)[0].tolist() == model.similar_users(3, 4)[0].tolist()
    assert fitted.fold_in([1, 2], [3, 4])[1] == model.fold_in([1, 2], [3, 4])[1]


# Going on


def test_partial_fit_goes_on_from_where_it_was(data: tuple[Ratings, Ratings]) -> None:
    train, _ = data
    learner = MatrixFactorization(8, epochs=3, tol=None)
    objectives = [learner.partial_fit(train).history_[-1]["objective"] for _ in range(4)]
    assert learner.n_iter_ == 12
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] < 0.95 * objectives[0]


def test_partial_fit_adds_users_and_items() -> None:
    random = np.random.default_rng(0)
    users, items = random.integers(0, 40, 900), random.integers(0, 30, 900)
    values = (users + items) % 5 + 1.0
    names = [f"item {k}" for k in items]
    old = users < 30
    learner = MatrixFactorization(4, l2=0.01, epochs=5)
    learner.fit(users[old], [n for n, there in zip(names, old, strict=True) if there], values[old])
    before = learner.model_
    learner.set_params(eta0=1e-9, epochs=1)  # hardly moves what it has
    new_names = [*names[:500], *["new item"] * 50]
    new_users = np.concatenate([users[:500], np.arange(550, 600)])
    learner.partial_fit(new_users, new_names, [*values[:500], *[3.0] * 50])
    assert learner.user_ids_.tolist()[: len(before.user_ids)] == before.user_ids.tolist()
    assert set(learner.user_ids_.tolist()) == set(users[old]) | set(new_users.tolist())
    assert learner.item_ids_.tolist()[: len(before.item_ids)] == before.item_ids.tolist()
    assert learner.item_ids_[len(learner.item_ids_) - 1] == "new item"
    kept = learner.user_factors_[: len(before.user_ids)]
    np.testing.assert_allclose(kept, before.user_factors, atol=1e-5)
    assert (learner.user_factors_[len(before.user_ids) :] != 0).all()
    assert (learner.item_factors_[len(before.item_ids) :] != 0).all()
    assert learner.mean_ == before.mean
    assert np.isfinite(learner.predict(550, "new item"))


def test_what_was_learned_from_earlier_is_not_recommended_again() -> None:
    learner = MatrixFactorization(2, epochs=1)
    learner.fit([1, 1, 2], [*"abc"], [1, 2, 3])
    learner.partial_fit([1, 3], [*"cd"], [1, 2])
    assert learner.recommend(1)[0].tolist() == ["d"]
    assert sorted(learner.recommend(1, exclude_seen=False)[0]) == [*"abcd"]
    assert sorted(learner.recommend(3)[0]) == [*"abc"]


def test_fit_begins_anew(data: tuple[Ratings, Ratings], fitted: MatrixFactorization) -> None:
    train, test = data
    again = MatrixFactorization(8, random_state=0).fit(test).partial_fit(test).fit(train)
    assert again.user_factors_.tobytes() == fitted.user_factors_.tobytes()
    assert len(again.history_) == len(fitted.history_)


# Folding in, by the objective of the training


def objective(model: FactorModel, ratings: Ratings) -> float:
    """The mean loss and the penalty, as the formula is."""
    assert ratings.values is not None
    options = model.about["options"]
    u, i = ratings.users, ratings.items
    P, Q = model.user_factors.astype(float), model.item_factors.astype(float)
    total = 0.0
    for factors, biases, codes in ((P, model.user_biases, u), (Q, model.item_biases, i)):
        counts = np.bincount(codes, minlength=len(factors))
        w = counts if options["weighted"] else counts > 0
        row = options["l2"] / 2 * (factors**2).sum(1) + options["l1"] * abs(factors).sum(1)
        row += (options["bias_l2"] or 0) / 2 * biases.astype(float) ** 2
        total += float(w @ row) / len(ratings)
    s = model.mean + model.user_biases[u] + model.item_biases[i] + (P[u] * Q[i]).sum(1)
    v = ratings.values.astype(float)
    c = np.maximum(s, 0.01)
    loss = {
        "squared": lambda: (s - v) ** 2 / 2,
        "absolute": lambda: abs(s - v),
        "logistic": lambda: np.logaddexp(0, -(2 * v - 1) * s),
        "kl": lambda: v * np.log(np.maximum(v, 1e-30) / c) - v + c + (1 - v / c) * (s - c),
    }[model.loss]()
    return float(loss.mean()) + total


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"weighted": False, "l2": 1.0},
        {"biases": False},
        {"nonnegative": True},
        {"l1": 0.02},
        {"loss": "absolute"},
        {"loss": "logistic"},
        {"loss": "kl", "l2": 0.005},
    ],
    ids=str,
)
def test_folding_in_a_user_lowers_the_objective(
    data: tuple[Ratings, Ratings], params: dict[str, Any]
) -> None:
    """With the items as they are, nothing is better for a user than what folding in finds."""
    given = data[0]
    assert given.values is not None
    values = given.values
    if params.get("loss") == "logistic":
        values = (values > 3.5).astype(np.float32)
    ratings = Ratings.from_codes(given.users, given.items, values, given.user_ids, given.item_ids)
    model = MatrixFactorization(4, epochs=15, **params).fit(ratings).model_
    before = objective(model, ratings)
    assert model.evaluate(ratings)["objective"] == pytest.approx(before, rel=1e-4)
    factors, biases = model.user_factors.copy(), model.user_biases.copy()
    for user in range(0, 600, 20):
        mine = ratings.users == user
        items = ratings.item_ids.take(ratings.items[mine])
        factors[user], biases[user] = model.fold_in(items, values[mine])
        folded = FactorModel(
            factors,
            model.item_factors,
            biases,
            model.item_biases,
            model.mean,
            model.user_ids,
            model.item_ids,
            model.loss,
            model.about,
        )
        after = objective(folded, ratings)
        assert after < before + 1e-7
        before = after


# Parameters


def test_random_state(data: tuple[Ratings, Ratings]) -> None:
    def bytes_of(state: Any) -> bytes:
        learner = MatrixFactorization(4, epochs=1, random_state=state)
        return bytes(learner.fit(data[0]).user_factors_.tobytes())

    assert bytes_of(1) == bytes_of(1) != bytes_of(2)
    assert bytes_of(np.random.RandomState(5)) == bytes_of(np.random.RandomState(5))
    with pytest.raises(ValueError, match="random_state must be"):
        bytes_of("x")


@pytest.mark.parametrize("jobs", [1, 2, -1])
def test_n_jobs(data: tuple[Ratings, Ratings], fitted: MatrixFactorization, jobs: int) -> None:
    learner = MatrixFactorization(8, n_jobs=jobs).fit(data[0])
    assert learner.score(data[1]) == pytest.approx(fitted.score(data[1]), rel=0.02)


def test_early_stopping(data: tuple[Ratings, Ratings]) -> None:
    learner = MatrixFactorization(16, l2=0.0, epochs=60, tol=None, early_stopping=0.1)
    assert learner.fit(data[0]).n_iter_ < 60


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"l2": -1, "epochs": 0}, "l2: must be at least 0, not -1\nepochs: must be at"),
        ({"loss": "hinge"}, "loss: 'hinge' is not one of|loss: the task mf takes squared"),
        ({"rank": 0}, "rank: must be at least 1"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"n_jobs": 5000}, "n_jobs: must be at most"),
        ({"random_state": -1}, "random_state: must be at least 0"),
        ({"early_stopping": 0.9}, "early_stopping: must be at most"),
    ],
)
def test_wrong_parameters_are_named_as_they_were_given(
    data: tuple[Ratings, Ratings], params: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        MatrixFactorization(**params).fit(data[0])


def test_wrong_data(data: tuple[Ratings, Ratings], fitted: MatrixFactorization) -> None:
    learner = MatrixFactorization()
    for call in (learner.predict, learner.recommend, learner.similar_items, learner.score):
        with pytest.raises(ValueError, match="not fitted"):
            call([1], [1])
    with pytest.raises(hogwild.DataError, match="give them alone"):
        learner.fit(data[0], [1], [2])
    with pytest.raises(hogwild.DataError, match="has no values, only pairs"):
        learner.fit([1], [2])
    with pytest.raises(hogwild.DataError, match="no ratings to learn from"):
        learner.fit([], [], [])
    with pytest.raises(hogwild.DataError, match="not finite"):
        learner.fit([1], [1], [np.nan])
    with pytest.raises(hogwild.DataError, match="every rating needs one of each"):
        learner.fit([1, 2], [1], [3])
    with pytest.raises(hogwild.DataError, match="expected users and items"):
        learner.fit(np.eye(3))
    assert not hasattr(learner, "model_")
    grown = MatrixFactorization(8).fit(data[0]).set_params(rank=4)
    with pytest.raises(hogwild.DataError, match="rank 8"):
        grown.partial_fit(data[0])


def test_pickles_are_whole_but_for_the_ratings(
    data: tuple[Ratings, Ratings], fitted: MatrixFactorization
) -> None:
    best = fitted.recommend(5)[0].tolist()
    pickled = pickle.dumps(fitted)
    factors = (fitted.user_factors_.nbytes + fitted.item_factors_.nbytes) * 2
    assert len(pickled) < factors + 60_000 < data[0].users.nbytes
    for part in (data[0].users, data[0].items, data[0].values):
        assert part is not None
        assert part.tobytes()[:2000] not in pickled
    back = pickle.loads(pickled)
    assert back.model_.about == fitted.model_.about
    assert back.recommend(5, exclude=data[0])[0].tolist() == best
    assert back.recommend(5, exclude_seen=False)[0].tolist() != best
    assert back.partial_fit(data[1]).n_iter_ > fitted.n_iter_
    with pytest.raises(hogwild.DataError, match="give those to leave out as exclude"):
        back.recommend(5)


def test_text_ids_survive_it_all(tmp_path: Any) -> None:
    users = Ids.of([f"ü{k % 7}" for k in range(60)], "users")[0]
    learner = MatrixFactorization(3, epochs=2)
    values = [k % 5 for k in range(60)]
    learner.fit([f"ü{k % 7}" for k in range(60)], [f"i{k % 11}" for k in range(60)], values)
    assert learner.user_ids_ == users
    learner.model_.save(tmp_path / "m.hog")
    back = hogwild.load_model(tmp_path / "m.hog")
    assert (
        back.recommend("ü3", 2)[0].tolist()
        == learner.recommend("ü3", 2, exclude_seen=False)[0].tolist()
    )


def test_scikit_learns_tools() -> None:
    learner = MatrixFactorization(5, l2=0.1, random_state=3)
    copied = clone(learner)
    assert copied.get_params() == learner.get_params()
    assert copied.set_params(rank=6).rank == 6
    assert "l2=0.1" in repr(learner)
