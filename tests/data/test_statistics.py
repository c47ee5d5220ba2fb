"""Statistics against a naive count, and the verdicts on the shapes whose speed is known."""

from dataclasses import replace

import numpy as np
import pytest

from hogwild.data import statistics as module
from hogwild.data.rows import Rows
from hogwild.data.statistics import meaning, sharing, statistics
from hogwild.data.synthetic import rcv1


def make_rows(lists, columns, y=None) -> Rows:
    indptr = np.cumsum([0, *map(len, lists)])
    indices = np.array([c for one in lists for c in one], np.uint32)
    values = np.linspace(-2, 3, len(indices)).astype(np.float32)
    return Rows.from_arrays(indptr, indices, values, columns, y)


def random_lists(seed, rows, columns, longest):
    """Rows with repeated columns and with empty ones; small column numbers are commoner."""
    rng = np.random.default_rng(seed)
    return [
        (columns * rng.random(rng.integers(0, longest + 1)) ** 3).astype(int) for _ in range(rows)
    ]


def uniform(rows, columns, nonzeros, seed=0) -> Rows:
    indices = np.random.default_rng(seed).integers(0, columns, rows * nonzeros, dtype=np.uint32)
    indptr = np.arange(rows + 1) * nonzeros
    return Rows.from_arrays(indptr, indices, np.ones(len(indices), np.float32), columns)


def collisions(lists) -> list[int]:
    sets = [set(one) for one in lists]
    return [sum(not a.isdisjoint(b) for b in sets) for a in sets]


def held_by(lists, columns) -> np.ndarray:
    return sum((np.isin(np.arange(columns), one).astype(int) for one in lists), np.zeros(columns))


@pytest.mark.parametrize(
    ("rows", "columns", "longest"),
    [(1, 3, 2), (40, 300, 4), (513, 2_000, 6), (1_100, 9_000, 3), (600, 20_000, 200)],
)
def test_equal_to_a_naive_count(rows, columns, longest):
    lists = random_lists(rows, rows, columns, longest)
    y = np.random.default_rng(1).integers(0, 3, rows)
    found = statistics(make_rows(lists, columns, y))
    lengths = sorted(map(len, lists))
    held = held_by(lists, columns)

    assert (found.rows, found.columns, found.nonzeros) == (rows, columns, sum(lengths))
    assert found.columns_used == np.count_nonzero(held)
    assert found.empty_rows == lengths.count(0)
    assert found.omega == max(lengths)
    ranks = [max(int(np.ceil(q * rows)) - 1, 0) for q in module.QUANTILES]
    assert found.row_lengths == tuple(lengths[rank] for rank in ranks)
    assert found.value_range == ((-2, 3) if sum(lengths) > 1 else (-2, -2))
    assert found.delta == held.max() / rows
    assert found.rho == max(collisions(lists)) / rows
    assert found.rho_exact
    assert found.rho_sample in (rows, 0)
    descending = np.sort(held)[::-1]
    for count, share in found.frequency:
        assert share == pytest.approx(descending[:count].sum() / held.sum())
    assert dict(found.labels) == {k: int(np.sum(y == k)) for k in set(y.tolist())}
    assert found.label_kinds == len(set(y.tolist()))


def test_a_column_that_a_row_repeats_is_held_once():
    found = statistics(make_rows([[1, 1, 1, 2], [0, 3], [2, 0, 2]], 5))
    assert found.delta == 2 / 3
    assert found.omega == 4
    assert found.rho == 1  # row 3 meets both others


def test_every_count_of_collisions_and_not_only_the_greatest():
    lists = random_lists(7, 600, 1_000, 5)
    rows = make_rows(lists, 1_000)
    counts = module.collisions(rows, np.arange(600, dtype=np.uint64))
    assert counts.tolist() == collisions(lists)


def test_a_sample_gives_a_lower_bound(monkeypatch):
    rows, _ = rcv1(3_000, 30_000, nonzeros=4)
    exact = statistics(rows)
    assert exact.rho_exact
    assert exact.rho_sample == 3_000
    monkeypatch.setattr(module, "AFFORDABLE", 0)
    for seed in range(3):
        sampled = statistics(rows, seed)
        assert not sampled.rho_exact
        assert 256 <= sampled.rho_sample <= 320
        assert 0.8 * exact.rho < sampled.rho <= exact.rho
        assert "found among" in meaning(sampled)
    assert "found among" not in meaning(exact)


def test_a_sampled_row_that_meets_all_rows_settles_rho(monkeypatch):
    monkeypatch.setattr(module, "AFFORDABLE", 0)
    lists = [[i] for i in range(999)] + [list(range(1_000))] + [[]]
    found = statistics(make_rows(lists, 1_000))
    assert found.rho == 1_000 / 1_001
    assert found.rho_exact


def test_a_column_in_every_row_settles_rho_without_a_count():
    found = statistics(make_rows([[0, i] for i in range(1, 50)], 50))
    assert (found.delta, found.rho, found.rho_exact, found.rho_sample) == (1, 1, True, 0)


@pytest.mark.parametrize("lists", [[], [[]], [[], [], []]])
def test_nothing_to_count(lists):
    found = statistics(make_rows(lists, 100_000))
    assert (found.rows, found.delta, found.rho, found.omega) == (len(lists), 0, 0, 0)
    assert found.value_range == (0, 0)
    assert not found.sharing.pays
    assert meaning(found)


def test_many_labels_are_cut_to_the_most_frequent():
    y = np.repeat(np.arange(30), np.arange(1, 31))
    found = statistics(make_rows([[0]] * len(y), 1, y))
    assert found.label_kinds == 30
    assert found.labels == tuple((k, k + 1) for k in range(29, 19, -1))
    text = statistics(make_rows([[0]] * 3, 1, np.array(["ham", "spam", "ham"])))
    assert text.labels == (("ham", 2), ("spam", 1))


def one_hot_zipf() -> Rows:
    columns = 2**20
    odds = np.cumsum(1 / np.arange(1, columns + 1))
    rng = np.random.default_rng(2)
    drawn = np.searchsorted(odds, rng.random(4_000 * 39) * odds[-1])
    indices = rng.permutation(columns)[drawn].astype(np.uint32)
    indptr = np.arange(4_001) * 39
    return Rows.from_arrays(indptr, indices, np.ones(len(indices), np.float32), columns)


@pytest.mark.parametrize(
    ("make", "pays"),
    [
        (lambda: uniform(4_000, 2**22, 30), True),
        (lambda: uniform(4_000, 2**22, 3), True),
        (lambda: uniform(4_000, 65_536, 30), False),
        (lambda: uniform(4_000, 2**20, 30), False),
        (lambda: uniform(4_000, 200, 50), False),
        (lambda: rcv1(4_000)[0], False),
        (lambda: rcv1(4_000, 2**20, nonzeros=100)[0], False),
        (one_hot_zipf, False),
    ],
)
def test_where_sharing_pays(make, pays):
    rows = make()
    found = sharing(rows)
    assert found.pays == pays
    assert statistics(rows).sharing == found
    assert ("expect no gain" in meaning(statistics(rows))) != pays


@pytest.mark.parametrize("columns", [2**19, 2**21, 2**23])
@pytest.mark.parametrize("nonzeros", [2, 30, 300])
def test_few_touches_of_a_line_do_not_make_it_hot(columns, nonzeros):
    true = module.PRIVATE_LINES * module.LINE / columns
    found = sharing(uniform(3_000, columns, nonzeros))
    assert found.share == pytest.approx(true, abs=0.03)


def test_hot_columns_are_found_wherever_they_are():
    rows = uniform(3_000, 2**23, 30)
    indices = rows.indices.copy()
    hot = np.random.default_rng(3).integers(0, 2**23, 2_000, dtype=np.uint32)
    indices[::2] = np.resize(hot, len(indices[::2]))
    half = Rows.from_arrays(rows.indptr, indices, rows.values, rows.columns)
    assert sharing(half).share == pytest.approx(0.5 + 0.5 / 32, abs=0.03)


def test_long_rows_are_not_read_in_full():
    rows = uniform(50, 2**22, 20_000)
    assert len(module._sampled_rows(rows)) == module.MOST_SAMPLED // 20_000
    assert sharing(rows).pays


def test_percentages_do_not_round_up_to_all():
    found = statistics(make_rows([[0]], 1))
    assert "in over 99.9 % of" in meaning(replace(found, delta=0.99999))
    assert "in 100 % of" in meaning(found)
