"""The ranking kernels and what spreads them over cores: their best items are those of sorting."""

from typing import Any

import numpy as np
import pytest

from hogwild.data.ids import UNKNOWN, Ids
from hogwild.data.ratings import Ratings
from hogwild.kernels import ranking as kernels
from hogwild.learn.losses import FACTOR_LOSSES
from hogwild.models import ranking


def drawn(users: int, items: int, rank: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Users' and items' factors and items' biases: small whole numbers, so that sums are exact."""
    random = np.random.default_rng(seed)
    shapes = (users, rank), (items, rank), (items,)
    return tuple(random.integers(-3, 4, shape).astype(np.float32) for shape in shapes)  # type: ignore[return-value]


def sorted_out(scores: Any, n: int) -> Any:
    return np.argsort(-scores, axis=1, kind="stable")[:, :n].astype(np.uint32)


@pytest.mark.parametrize("items", [1, 63, 64, 65, 1000])
@pytest.mark.parametrize("rank", [1, 4, 7, 32, 130])
@pytest.mark.parametrize("n", [1, 2, 10, 64, 65, 700])
def test_the_best_are_those_of_sorting(items: int, rank: int, n: int) -> None:
    n = min(n, items)
    P, Q, biases = drawn(67, items, rank)
    chosen = np.arange(67, dtype=np.uint32)
    codes, scores = ranking.best(ranking.vectors(P), ranking.panels(Q, biases), n, chosen)
    whole = P @ Q.T + biases
    assert codes.tolist() == sorted_out(whole, n).tolist()
    assert scores.tolist() == np.take_along_axis(whole, codes.astype(int), 1).tolist()


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
@pytest.mark.parametrize("users", [1, 64, 65, 501])
def test_any_number_of_cores_finds_the_same(
    cores: int, users: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "usable_cores", lambda: cores)
    monkeypatch.setattr(ranking, "WORTH", 1)
    P, Q, biases = drawn(1001, 130, 4)
    chosen = np.random.default_rng(0).integers(0, 1001, users).astype(np.uint32)
    seen = ranking.lists(
        Ratings.from_codes(
            np.arange(1001, dtype=np.uint32),
            (np.arange(1001) % 130).astype(np.uint32),
            None,
            Ids.numbered(1001),
            Ids.numbered(130),
        ),
        Ids.numbered(1001),
        Ids.numbered(130),
    )
    codes, _ = ranking.best(P, ranking.panels(Q, biases), 5, chosen, seen)
    whole = P @ Q.T + biases
    whole[np.arange(1001), np.arange(1001) % 130] = -np.inf
    assert codes.tolist() == sorted_out(whole[chosen], 5).tolist()


def test_all_but_a_few_items_are_left_out() -> None:
    P, Q, biases = drawn(3, 200, 4)
    starts = np.array([0, 200, 399, 399], np.uint64)
    items = np.array([*range(200), *range(199)], np.uint32)
    chosen = np.arange(3, dtype=np.uint32)
    codes, scores = ranking.best(
        P, ranking.panels(Q, biases), 2, chosen, ranking.Lists(starts, items)
    )
    assert codes[0].tolist() == [UNKNOWN, UNKNOWN]
    assert codes[1].tolist() == [199, UNKNOWN]
    assert scores[:2].tolist() == [[-np.inf, -np.inf], [scores[1, 0], -np.inf]]
    assert np.isfinite(scores[1, 0])
    assert codes[2].tolist() == sorted_out(P @ Q.T + biases, 2)[2].tolist()


def test_scores_of_all_sizes_are_in_order() -> None:
    sizes = np.float32([0, -0.0, 1e-45, -1e-45, 1e-30, 3e38, -3e38, 1, -1, 0.5])
    biases = np.concatenate([sizes, sizes])
    codes, scores = ranking.best(
        np.full((1, 4), -1, np.float32),  # times 0 is -0
        ranking.panels(np.zeros((20, 4), np.float32), biases),
        20,
        np.zeros(1, np.uint32),
    )
    assert scores[0].tolist() == sorted(biases.tolist(), reverse=True)
    assert codes.tolist() == sorted_out(biases[None, :], 20).tolist()


def test_no_users_and_no_items() -> None:
    P, Q, biases = drawn(3, 5, 4)
    items = ranking.panels(Q, biases)
    assert ranking.best(P, items, 2, np.empty(0, np.uint32))[0].shape == (0, 2)
    none = ranking.panels(Q[:0], biases[:0])
    assert ranking.best(P, none, 0, np.zeros(1, np.uint32))[0].shape == (1, 0)


def test_lists_keep_repeated_pairs_and_drop_strangers() -> None:
    ratings = Ratings([5, 7, 5, 9, 5], ["a", "b", "c", "a", "a"])
    lists = ranking.lists(ratings, Ids.of([7, 5])[0], Ids.of(["c", "a"])[0])
    assert lists.starts.tolist() == [0, 3, 3]  # ids in ascending order: 5, 7
    assert lists.items.tolist() == [1, 0, 1]


def test_scores_of_pairs() -> None:
    P, Q, item_biases = drawn(20, 30, 9)
    user_biases = P[:, 0].copy()
    random = np.random.default_rng(1)
    who, what = (random.integers(0, size, 100).astype(np.uint32) for size in (20, 30))
    scores = np.empty(100, np.float32)
    sides = (P.ravel(), user_biases), (Q.ravel(), item_biases)
    kernels.score_pairs(*sides, 0.5, who, what, scores)
    wanted = 0.5 + user_biases[who] + item_biases[what] + (P[who] * Q[what]).sum(axis=1)
    assert scores.tolist() == wanted.tolist()
    who[::2] = UNKNOWN
    what[::3] = UNKNOWN
    kernels.score_pairs(*sides, 0.5, who, what, scores)
    known = (who != UNKNOWN).astype(float), (what != UNKNOWN).astype(float)
    who, what = who % 20, what % 30
    inner = (P[who] * Q[what]).sum(axis=1) * known[0] * known[1]
    wanted = 0.5 + user_biases[who] * known[0] + item_biases[what] * known[1] + inner
    assert scores.tolist() == wanted.tolist()


@pytest.mark.parametrize("loss", FACTOR_LOSSES)
def test_sums_of_losses_and_errors(loss: str) -> None:
    random = np.random.default_rng(0)
    scores = random.normal(size=50).astype(np.float32)
    values = random.integers(0, 2, 50).astype(np.float32)
    if loss == "logistic":
        values = 2 * values - 1
    found = kernels.measurer(loss)(scores, values)
    value = FACTOR_LOSSES[loss].value
    losses = sum(value(float(s), float(v), 0.0) for s, v in zip(scores, values, strict=True))
    errors = scores.astype(float) - values
    if loss == "logistic":
        errors = 1 / (1 + np.exp(-scores.astype(float))) - (values > 0)
    assert found == pytest.approx((losses, (errors**2).sum(), abs(errors).sum()), rel=1e-6)
