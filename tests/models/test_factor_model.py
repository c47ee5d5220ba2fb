"""FactorModel: what it expects, ranks and folds in is what the formulas say, and files keep it."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hogwild
from hogwild.data.ids import Ids
from hogwild.data.ratings import Ratings
from hogwild.models.factors import FactorModel

LOSSES = ["squared", "absolute", "logistic", "kl"]


def a_model(
    users: int = 9, items: int = 13, rank: int = 5, loss: str = "squared", **options: Any
) -> FactorModel:
    """Random factors; user ids are text ("u0", "u1" ...), item ids numbers (100, 103 ...)."""
    random = np.random.default_rng(users * items + rank)

    def draw(*shape: int) -> Any:
        drawn = random.normal(size=shape).astype(np.float32)
        return np.abs(drawn) if loss == "kl" else drawn

    return FactorModel(
        draw(users, rank),
        draw(items, rank),
        draw(users),
        draw(items),
        3.5,
        Ids.of([f"u{k}" for k in range(users)])[0],
        Ids.of(np.arange(100, 100 + 3 * items, 3))[0],
        loss,
        {"options": options, "penalty": 0.25},
    )


def all_scores(model: FactorModel) -> Any:
    P, Q = model.user_factors.astype(float), model.item_factors.astype(float)
    return model.mean + model.user_biases[:, None] + model.item_biases + P @ Q.T


# Predicting


@pytest.mark.parametrize("rank", [1, 3, 8, 32, 50])
def test_predictions_are_the_formula(rank: int) -> None:
    model = a_model(rank=rank)
    scores = all_scores(model)
    users = ["u3", "u0", "u8", "u3"]
    items = [100, 136, 103, 100]
    found = model.predict(users, items)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, scores[[3, 0, 8, 3], [0, 12, 1, 0]], rtol=1e-5)
    one = model.predict("u8", 136)
    assert isinstance(one, float)
    assert one == pytest.approx(scores[8, 12], rel=1e-5)
    np.testing.assert_allclose(model.predict("u2", items), scores[2, [0, 12, 1, 0]], rtol=1e-5)
    np.testing.assert_allclose(model.predict(users, 103), scores[[3, 0, 8, 3], 1], rtol=1e-5)
    pairs = Ratings(users, items)
    assert model.predict(pairs).tobytes() == found.tobytes()


def test_the_logistic_loss_gives_probabilities() -> None:
    model = a_model(loss="logistic")
    scores = model.decision_function(["u1", "u2"], [100, 103])
    np.testing.assert_allclose(model.predict(["u1", "u2"], [100, 103]), 1 / (1 + np.exp(-scores)))
    assert 0 < model.predict("u1", 100) < 1


def test_of_unknown_ids_what_is_known_is_used_and_told_once() -> None:
    model = a_model()
    with pytest.warns(hogwild.HogwildWarning) as told:
        found = model.predict(["u1", "x", "x", "u1"], [100, 100, 7, 7])
    assert len(told) == 1
    assert "of 4 pairs 2 have an unknown user and 2 have an unknown item" in str(told[0].message)
    wanted = [
        all_scores(model)[1, 0],
        3.5 + model.item_biases[0],
        3.5,
        3.5 + model.user_biases[1],
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    with pytest.raises(hogwild.DataError, match="does not know the user 'x' of pair 2"):
        model.predict(["u1", "x", "x", "u1"], [100, 100, 7, 7], strict=True)
    with pytest.raises(hogwild.DataError, match="does not know the item 7 of pair 1"):
        model.predict("u1", 7, strict=True)
    pairs = Ratings(["u1", "u2"], np.array([100, 7]), name="new.csv")
    with pytest.raises(hogwild.DataError, match=r"new.csv: .* the item 7 of pair 2"):
        model.predict(pairs, strict=True)


@pytest.mark.parametrize(
    ("users", "items", "words"),
    [
        (["u1", "u2"], [100], "2 users and 1 items"),
        (["u1"], None, "items are missing"),
        ([1.5], [100], "ids must all be|whole numbers or"),
        (["u1"], [None], "missing"),
    ],
)
def test_pairs_that_are_none(users: Any, items: Any, words: str) -> None:
    with pytest.raises(hogwild.DataError, match=words):
        a_model().predict(users, items)


def test_no_pairs_at_all() -> None:
    assert a_model().predict([], []).shape == (0,)


# Recommending


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 200),
    st.integers(1, 9),
    st.integers(1, 300),
    st.integers(0, 400),
    st.integers(0, 10),
)
def test_recommendations_are_those_of_sorting(
    users: int, items: int, rank: int, n: int, seen: int, seed: int
) -> None:
    """Factors are small whole numbers, so that scores are exact and many of them equal."""
    random = np.random.default_rng(seed)
    P, Q = (random.integers(-1, 2, (size, rank)).astype(np.float32) for size in (users, items))
    biases = [random.integers(-1, 2, size).astype(np.float32) for size in (users, items)]
    ids = Ids.numbered(users), Ids.numbered(items)
    model = FactorModel(P, Q, *biases, 0.5, *ids, "squared")
    pairs = [random.integers(0, size, seen).astype(np.uint32) for size in (users, items)]
    exclude = Ratings.from_codes(*pairs, None, *ids)
    scores = all_scores(model)
    scores[pairs[0], pairs[1]] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    wanted = np.take_along_axis(scores, order, 1)
    found, values = model.recommend(None, n, exclude=exclude)
    assert values.tolist() == wanted.tolist()
    assert found.tolist() == np.where(np.isfinite(wanted), order, -1).tolist()
    some = [users - 1, 0, users - 1]
    again, values = model.recommend(some, n, exclude=exclude)
    assert again.tolist() == found[some].tolist()
    single, values = model.recommend(0, n, exclude=exclude)
    assert single.tolist() == found[0][np.isfinite(wanted[0])].tolist()
    assert np.isfinite(values).all()


def test_recommendations_carry_ids_and_whole_scores() -> None:
    model = a_model()
    scores = all_scores(model)
    order = np.argsort(-scores, axis=1)
    ids, values = model.recommend("u4", 5)
    assert ids.tolist() == (100 + 3 * order[4, :5]).tolist()
    np.testing.assert_allclose(values, scores[4][order[4, :5]], rtol=1e-5)
    ids, values = model.recommend(["u4", "u0"], 3)
    assert ids.tolist() == (100 + 3 * order[[4, 0], :3]).tolist()
    assert model.recommend(n=4)[0].shape == (9, 4)
    assert model.recommend(np.array(["u4"]), 3)[0].shape == (1, 3)
    assert model.recommend("u4", 1000)[0].shape == (13,)
    assert model.recommend([], 3)[0].shape == (0, 3)


def test_short_rows_are_filled_up() -> None:
    model = a_model()
    seen = Ratings(["u1"] * 12, np.arange(100, 136, 3))
    ids, values = model.recommend(["u1", "u2"], 3, exclude=seen)
    assert ids[0].tolist() == [136, -1, -1]
    assert values[0, 1:].tolist() == [-np.inf, -np.inf]
    assert (ids[1] > 0).all()
    turned = FactorModel(
        model.item_factors,
        model.user_factors,
        model.item_biases,
        model.user_biases,
        0.0,
        model.item_ids,
        model.user_ids,
        "squared",
    )
    seen = Ratings(np.full(8, 100), [f"u{k}" for k in range(8)])
    assert turned.recommend([100], 3, exclude=seen)[0].tolist() == [["u8", "", ""]]
    assert turned.recommend(100, 3, exclude=seen)[0].tolist() == ["u8"]


def test_exclusions_may_speak_of_other_users_and_items() -> None:
    model = a_model()
    best = int(model.recommend("u1", 1)[0][0])
    exclude = Ratings(["x", "u1", "u1"], np.array([best, 5, best]))
    assert best not in model.recommend("u1", 13, exclude=exclude)[0]
    assert best in model.recommend("u2", 13, exclude=exclude)[0]
    other = Ratings(["u2"], np.array([best]))  # not mixed up with the one before
    assert best in model.recommend("u1", 13, exclude=other)[0]
    assert best not in model.recommend("u2", 13, exclude=other)[0]


@pytest.mark.parametrize("n", [0, -1, 2.0, "3", True, None])
def test_numbers_of_items_that_make_no_sense(n: Any) -> None:
    for call in (a_model().recommend, a_model().similar_users):
        with pytest.raises(hogwild.OptionError, match="n: must be a whole number of 1 or more"):
            call("u1", n)


def test_nobody_recommends_to_strangers() -> None:
    with pytest.raises(hogwild.DataError, match="does not know the user 'x'; fold_in"):
        a_model().recommend("x")
    with pytest.raises(hogwild.DataError, match="does not know the user 7"):
        a_model().recommend([7, 8])
    with pytest.raises(hogwild.DataError, match="exclude must be"):
        a_model().recommend("u1", exclude=[1])  # type: ignore[arg-type]


# What is alike


def test_similar_is_the_cosine() -> None:
    model = a_model(rank=6)
    Q = model.item_factors.astype(float)
    unit = Q / np.linalg.norm(Q, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    ids, found = model.similar_items(106, 4)
    order = np.argsort(-cosines[2])[:4]
    assert ids.tolist() == (100 + 3 * order).tolist()
    np.testing.assert_allclose(found, cosines[2, order], rtol=1e-5)
    ids, found = model.similar_items(n=100)
    assert ids.shape == (13, 12)
    np.testing.assert_allclose(found, -np.sort(-cosines, axis=1)[:, :12], rtol=1e-4, atol=1e-6)
    names, _ = model.similar_users("u3", 100)
    assert sorted(names) == [f"u{k}" for k in range(9) if k != 3]
    with pytest.raises(hogwild.DataError, match="does not know the item 5; only items of the"):
        model.similar_items(5)


def test_an_item_without_factors_is_like_none() -> None:
    model = FactorModel(
        np.ones((1, 2), np.float32),
        np.array([[0, 0], [1, 1], [2, 2]], np.float32),
        np.zeros(1, np.float32),
        np.zeros(3, np.float32),
        0.0,
        Ids.numbered(1),
        Ids.numbered(3),
        "squared",
    )
    assert model.similar_items(0)[1].tolist() == [0, 0]
    assert model.similar_items(1)[0].tolist() == [2, 0]
    assert 0.999999 < model.similar_items(1)[1][0] <= 1
    assert model.similar_users(0)[0].tolist() == []


def test_cosines_of_the_same_direction_are_not_above_1() -> None:
    half = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    zeros = np.zeros(600, np.float32)
    ids, both = Ids.numbered(600), np.concatenate([half, 3 * half])
    model = FactorModel(both, both, zeros, zeros, 0.0, ids, ids, "squared")
    found, cosines = model.similar_items(n=1)
    assert found[:300, 0].tolist() == list(range(300, 600))
    assert (cosines > 0.999999).all()
    assert (cosines <= 1).all()


# Folding in


def a_users_ratings(model: FactorModel, count: int = 11) -> tuple[Any, Any, Any]:
    """Codes, ids and values."""
    random = np.random.default_rng(count)
    codes = random.integers(0, len(model.item_ids), count)
    values: Any = random.integers(1, 6, count).astype(float)
    if model.loss == "logistic":
        values = (values > 3).astype(float)
    return codes, model.item_ids.take(codes), values


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_folding_in_is_ridge_regression(weighted: bool, biases: bool, count: int) -> None:
    options = {"l2": 0.05, "bias_l2": 0.02, "weighted": weighted, "biases": biases}
    model = a_model(items=30, **options)
    codes, items, values = a_users_ratings(model, count)
    factors, bias = model.fold_in(items, values)
    weight = count if weighted else 1
    A = np.column_stack([model.item_factors[codes], np.full(count, float(biases))]).astype(float)
    D = weight * np.diag([0.05] * 5 + [0.02])
    wanted = np.linalg.solve(A.T @ A + D, A.T @ (values - 3.5 - model.item_biases[codes]))
    np.testing.assert_allclose([*factors, bias], wanted, rtol=1e-4, atol=1e-6)
    assert factors.dtype == np.float32
    assert isinstance(bias, float)


def objective(model: FactorModel, codes: Any, values: Any, x: Any) -> float:
    """What folding in minimises, written as the formula is."""
    options = model.about["options"]
    weight = len(values) if options["weighted"] else 1
    scores = model.mean + model.item_biases[codes] + model.item_factors[codes] @ x[:-1] + x[-1]
    loss = {
        "squared": lambda s, v: (s - v) ** 2 / 2,
        "absolute": lambda s, v: abs(s - v),
        "logistic": lambda s, v: np.logaddexp(0, -(2 * v - 1) * s),
        "kl": lambda s, v: v * np.log(v / s) - v + s if (s > v / 10).all() else np.inf,
    }[model.loss](scores.astype(float), values)
    p, b = x[:-1].astype(float), float(x[-1])
    penalty = (
        options["l2"] / 2 * p @ p + options["l1"] * abs(p).sum() + options["bias_l2"] / 2 * b * b
    )
    return float(np.sum(loss) + weight * penalty)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("l1", [0.0, 0.05])
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("count", [5, 30])
def test_folding_in_finds_the_least_objective(
    loss: str, weighted: bool, l1: float, nonnegative: bool, count: int
) -> None:
    options = {"l2": 0.1, "bias_l2": 0.2, "l1": l1, "weighted": weighted, "biases": True}
    model = a_model(items=40, loss=loss, nonnegative=nonnegative, **options)
    codes, items, values = a_users_ratings(model, count)
    factors, bias = model.fold_in(items, values)
    nonnegative = nonnegative or loss == "kl"  # which always is
    assert not nonnegative or (factors >= 0).all()
    x = np.append(factors.astype(float), bias)
    least = objective(model, codes, values, x)
    random = np.random.default_rng(0)
    for size in (1e-4, 1e-3, 1e-2, 0.1, 1.0):
        for _ in range(100):
            other = x + size * random.normal(size=6) * random.integers(0, 2, 6)
            if nonnegative:
                other[:-1] = np.maximum(other[:-1], 0)
            assert objective(model, codes, values, other) >= least - 2e-5 * abs(least)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_gradient_vanishes_where_folding_in_ends(loss: str) -> None:
    options = {"l2": 0.1, "bias_l2": 0.2, "l1": 0.0, "weighted": True, "biases": True}
    model = a_model(items=40, loss=loss, **options)
    codes, items, values = a_users_ratings(model, 30)
    factors, bias = model.fold_in(items, values)
    x = np.append(factors.astype(float), bias)
    for k in range(6):
        step = np.eye(6)[k] * 1e-5
        up, down = (objective(model, codes, values, x + s) for s in (step, -step))
        assert abs(up - down) / 2e-5 < 1e-3


def test_folding_in_does_not_stick_to_ratings_that_fit_from_the_start() -> None:
    """With the absolute loss these have a kink just where folding in begins."""
    model = a_model(items=40, loss="absolute")
    options = {"l2": 0.01, "bias_l2": 0.0, "l1": 0.0, "weighted": False, "biases": True}
    plain = FactorModel(
        model.user_factors,
        model.item_factors,
        model.user_biases,
        np.zeros(40, np.float32),
        3.0,
        model.user_ids,
        model.item_ids,
        "absolute",
        {"options": options},
    )
    codes = np.arange(12)
    values = np.array([3.0, 3, 3, 5, 5, 5, 4, 5, 5, 4, 5, 5])
    factors, bias = plain.fold_in(model.item_ids.take(codes), values)
    x = np.append(factors.astype(float), bias)
    least = objective(plain, codes, values, x)
    random = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(500):
            other = x + size * random.normal(size=6)
            assert objective(plain, codes, values, other) >= least - 2e-5


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_folding_in_is_the_same_in_any_unit(loss: str, unit: float) -> None:
    model = a_model(items=40, loss=loss, l2=0.1, nonnegative=True, biases=True)
    _, items, values = a_users_ratings(model, 20)
    scale = np.float32(unit)
    squares = unit if loss == "absolute" else unit * unit
    other = FactorModel(
        model.user_factors * scale,
        model.item_factors,
        model.user_biases * scale,
        model.item_biases * scale,
        model.mean * unit,
        model.user_ids,
        model.item_ids,
        loss,
        {"options": {"l2": 0.1 * squares / unit**2, "nonnegative": True, "biases": True}},
    )
    factors, bias = model.fold_in(items, values)
    scaled, scaled_bias = other.fold_in(items, values * unit)
    np.testing.assert_allclose(scaled / unit, factors, rtol=1e-3, atol=1e-4)
    assert scaled_bias / unit == pytest.approx(bias, rel=1e-3, abs=1e-4)


def test_nonnegative_folding_in_is_nonnegative_least_squares() -> None:
    from scipy.optimize import nnls

    model = a_model(items=40, l2=0.05, weighted=True, biases=False, nonnegative=True)
    codes, items, values = a_users_ratings(model, 25)
    factors, bias = model.fold_in(items, values)
    A = np.vstack([model.item_factors[codes], np.sqrt(25 * 0.05) * np.eye(5)])
    target = np.concatenate([values - 3.5 - model.item_biases[codes], np.zeros(5)])
    np.testing.assert_allclose(factors, nnls(A.astype(float), target)[0], rtol=1e-5, atol=1e-6)
    assert (factors == 0).any()
    assert bias == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_folding_in_without_any_penalty_and_few_ratings(loss: str) -> None:
    model = a_model(loss=loss)
    codes, items, values = a_users_ratings(model, 2)
    factors, bias = model.fold_in(items, values)
    assert np.isfinite(factors).all()
    scores = model.mean + model.item_biases[codes] + model.item_factors[codes] @ factors + bias
    if loss == "logistic":
        assert ((scores > 0) == (values > 0)).all()
    elif loss != "kl":  # factors below 0 would be needed
        np.testing.assert_allclose(scores, values, rtol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_items_without_factors_teach_none(loss: str, nonnegative: bool, l1: float) -> None:
    zeros = np.zeros((3, 2), np.float32), np.zeros(3, np.float32)
    ids = Ids.numbered(3)
    options = {"biases": False, "nonnegative": nonnegative, "l1": l1}
    model = FactorModel(
        zeros[0], zeros[0], zeros[1], zeros[1], 0.0, ids, ids, loss, {"options": options}
    )
    factors, bias = model.fold_in([0, 1, 2], [1, 0, 1])
    assert (factors.tolist(), bias) == ([0, 0], 0)


def test_what_was_folded_in_is_recommended_for() -> None:
    model = a_model(l2=0.05)
    _, items, values = a_users_ratings(model, 4)
    factors, bias = model.fold_in(items, values)
    ids, scores = model.recommend_for(factors, bias, 20, exclude_items=[*items, 5])
    assert set(ids) == set(model.item_ids.tolist()) - set(items)
    codes = model.item_ids.codes_of(ids)
    wanted = 3.5 + bias + model.item_biases[codes] + model.item_factors[codes] @ factors
    np.testing.assert_allclose(scores, wanted, rtol=1e-5)
    assert (np.diff(scores) <= 0).all()
    assert model.recommend_for(factors)[0].shape == (10,)
    with pytest.raises(hogwild.DataError, match="must be 5 finite numbers"):
        model.recommend_for(factors[:3])


def test_folding_in_leaves_out_unknown_items() -> None:
    model = a_model(l2=0.05)
    with pytest.warns(hogwild.HogwildWarning, match="1 of 3 items are unknown"):
        factors, bias = model.fold_in([100, 5, 103], [1, 2, 3])
    same, same_bias = model.fold_in([100, 103], [1, 3])
    assert (factors.tobytes(), bias) == (same.tobytes(), same_bias)
    model.fold_in(100, 3)
    with (
        pytest.warns(hogwild.HogwildWarning),
        pytest.raises(hogwild.DataError, match="at least one"),
    ):
        model.fold_in([5], [1])


@pytest.mark.parametrize(
    ("loss", "items", "values", "words"),
    [
        ("squared", [], [], "at least one rating|need"),
        ("squared", [100, 103], [1], "2 items need 2 values"),
        ("squared", [100, 103], [1, np.nan], "rating 2 is nan; the loss squared takes finite"),
        ("squared", [100], ["a"], "1 items need 1 values"),
        ("logistic", [100, 103], [0, 5], "rating 2 is 5; the loss logistic takes 0 and 1"),
        ("kl", [100], [-1.0], "takes none below 0"),
    ],
)
def test_ratings_that_cannot_be_folded_in(loss: str, items: Any, values: Any, words: str) -> None:
    with pytest.raises(hogwild.DataError, match=words):
        a_model(loss=loss).fold_in(items, values)


# Evaluating


@pytest.mark.parametrize("loss", LOSSES)
def test_evaluation_is_the_formula(loss: str) -> None:
    model = a_model(loss=loss)
    random = np.random.default_rng(1)
    codes = random.integers(0, 9, 50), random.integers(0, 13, 50)
    values = random.integers(0, 2, 50).astype(float)
    ratings = Ratings([f"u{k}" for k in codes[0]], 100 + 3 * codes[1], values)
    found = model.evaluate(ratings)
    scores = all_scores(model)[codes]
    c = np.maximum(scores, np.where(values > 0, values / 10, 1))
    known = np.where(values > 0, values * np.log(np.maximum(values, 1e-9) / c), 0)
    losses = {
        "squared": (scores - values) ** 2 / 2,
        "absolute": abs(scores - values),
        "logistic": np.logaddexp(0, -(2 * values - 1) * scores),
        "kl": known - values + c + (1 - values / c) * (scores - c),
    }[loss]
    expected = 1 / (1 + np.exp(-scores)) if loss == "logistic" else scores
    assert found["ratings"] == 50
    assert found["unknown"] == 0
    assert found["objective"] == pytest.approx(losses.mean() + 0.25, rel=1e-5)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((expected - values) ** 2)), rel=1e-5)
    assert found["mae"] == pytest.approx(np.mean(abs(expected - values)), rel=1e-5)
    if loss == "logistic":
        assert found["log_loss"] == pytest.approx(losses.mean(), rel=1e-5)
        assert 0 < found["auc"] < 1
    assert model.evaluate(ratings) == model.evaluate(
        *[list(ratings.user_ids.take(ratings.users)), ratings.item_ids.take(ratings.items), values]
    )


def test_evaluation_counts_what_is_unknown() -> None:
    ratings = Ratings(["u1", "x", "u2"], np.array([100, 100, 7]), [1, 2, 3])
    assert a_model().evaluate(ratings)["unknown"] == 2


def test_what_cannot_be_evaluated() -> None:
    with pytest.raises(hogwild.DataError, match="no ratings to evaluate on"):
        a_model().evaluate([], [], [])
    with pytest.raises(hogwild.DataError, match="pairs without values"):
        a_model().evaluate(Ratings(["u1"], [100]))
    with pytest.raises(hogwild.DataError, match="takes 0 and 1"):
        a_model(loss="logistic").evaluate(["u1"], [100], [3])


# Files


@pytest.mark.parametrize("rank", [1, 5, 16])
@pytest.mark.parametrize("users", [0, 1, 9])
def test_everything_comes_back_bit_for_bit(tmp_path: Path, rank: int, users: int) -> None:
    model = a_model(users, rank=rank, loss="absolute", l2=0.1, weighted=True)
    model.save(tmp_path / "m.hog")
    back = hogwild.load_model(tmp_path / "m.hog")
    assert isinstance(back, FactorModel)
    for name in ("user_factors", "item_factors", "user_biases", "item_biases"):
        mine, theirs = getattr(model, name), getattr(back, name)
        assert (mine.tobytes(), mine.shape, theirs.dtype) == (
            theirs.tobytes(),
            theirs.shape,
            np.float32,
        )
    for name in ("mean", "loss", "about", "user_ids", "item_ids", "rank"):
        assert getattr(back, name) == getattr(model, name)
    back.save(tmp_path / "again.hog")
    assert (tmp_path / "again.hog").read_bytes() == (tmp_path / "m.hog").read_bytes()
    if users:
        assert back.recommend("u0", 3)[0].tolist() == model.recommend("u0", 3)[0].tolist()


@pytest.mark.parametrize(
    "ids", [Ids.numbered(3), Ids.of([-5, 7, 2**62])[0], Ids.of(["ü", "日", "a b"])[0]]
)
def test_all_kinds_of_ids_are_kept(tmp_path: Path, ids: Ids) -> None:
    zeros = np.zeros((3, 2), np.float32), np.zeros(3, np.float32)
    model = FactorModel(zeros[0], zeros[0], zeros[1], zeros[1], 0.1, ids, ids, "kl")
    model.save(tmp_path / "m.hog")
    back = hogwild.load_model(tmp_path / "m.hog")
    assert back.user_ids.tolist() == ids.tolist() == back.item_ids.tolist()


def test_arrays_that_do_not_fit_are_refused() -> None:
    two, three = np.zeros((2, 4), np.float32), np.zeros((3, 4), np.float32)
    ids = Ids.numbered(2), Ids.numbered(3)
    biases = np.zeros(2, np.float32), np.zeros(3, np.float32)
    FactorModel(two, three, *biases, 0.0, *ids, "squared")
    with pytest.raises(hogwild.DataError, match="item_factors: the shape is"):
        FactorModel(two, two, *biases, 0.0, *ids, "squared")
    with pytest.raises(hogwild.DataError, match="item_factors: the shape is"):
        FactorModel(two, three[:, :3].copy(), *biases, 0.0, *ids, "squared")
    with pytest.raises(hogwild.DataError, match="user_biases: the shape is"):
        FactorModel(two, three, biases[1], biases[1], 0.0, *ids, "squared")
    with pytest.raises(hogwild.DataError, match="item_biases: number 2 is nan"):
        FactorModel(two, three, biases[0], np.array([0, np.nan, 0]), 0.0, *ids, "squared")
    with pytest.raises(hogwild.OptionError, match="loss: 'hinge' is not one of squared"):
        FactorModel(two, three, *biases, 0.0, *ids, "hinge")
    with pytest.raises(hogwild.DataError, match="mean is nan"):
        FactorModel(two, three, *biases, np.nan, *ids, "squared")


def test_the_models_arrays_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        a_model().user_factors[0, 0] = 1


def test_repr_says_what_it_is() -> None:
    assert repr(a_model()) == "<FactorModel squared, rank 5, 9 users, 13 items>"


def test_known_pairs_are_no_cause_for_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a_model().predict(["u1"], [100])
        a_model().evaluate(["u1"], [100], [3])
