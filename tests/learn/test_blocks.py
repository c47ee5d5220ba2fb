"""Grids of blocks: nothing is lost, and nothing is shared where two work at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild.learn import blocks
from hogwild.learn.blocks import BANDS, BEYOND, MOST_ROWS, Grid, Sorting
from hogwild.loops.blocks import any_order, diagonals
from tests.combinations import each

SHAPES = [
    (1, 1),
    (2, 1),
    (1, 2),
    (3, BANDS),
    (BANDS - 1, BANDS + 1),
    (100, 1),
    (1, 1000),
    (1000, 700),
    (BANDS * MOST_ROWS + 1, 5),
    (3, BANDS * MOST_ROWS + 9),
]


def grid_of(shape, ratings=1000, row_bytes=136, seed=4):
    return Grid(shape, ratings, row_bytes, seed)


def drawn(shape, size, seed=0):
    random = np.random.default_rng(seed)
    users, items = (random.integers(0, count, size).astype(np.uint32) for count in shape)
    return users, items, np.arange(size, dtype=np.float32)  # a value names its rating


def sort(grid, users, items, values, seed=7, order=None):
    """The sorted ratings, and where blocks begin; chunks and bands are done in any order."""
    sorting = Sorting(grid, users, items, values, seed, "some")
    arrays = {name: np.zeros(size, kind) for name, (size, kind) in sorting.shared().items()}
    random = np.random.default_rng(order)
    for stage in ("count", "begin", "sort", "mix"):
        if stage == "begin":
            sorting.begin(arrays)
            continue
        pieces = np.arange(sorting.pieces(stage))
        for piece in pieces if order is None else random.permutation(pieces):
            getattr(sorting, stage)(piece, arrays)
    return arrays["some_ratings"], arrays["some_starts"]


def told(grid, ratings, starts):
    """Rows of users and of items, values and block of each sorted rating."""
    size = int(starts[-1])
    assert not ratings[size:].any()
    assert len(ratings) - size == BEYOND
    pairs, values = ratings.view(np.uint16), ratings.view(np.float32)
    block = np.repeat(np.arange(grid.blocks), np.diff(starts.astype(np.int64)))
    columns, user_height, item_height = grid.shape
    users = block // columns * user_height + pairs[0 : 4 * size : 4]
    items = block % columns * item_height + pairs[1 : 4 * size : 4]
    assert (pairs[0 : 4 * size : 4] < user_height).all()
    assert (pairs[1 : 4 * size : 4] < item_height).all()
    return users, items, values[1 : 2 * size : 2], block


@each(shape=SHAPES, ratings=[0, 3, 10**6], row_bytes=[72, 16_392])
def test_every_id_has_a_row_and_every_row_a_place(shape, row_bytes, ratings):
    grid = grid_of(shape, ratings, row_bytes)
    for side, count in zip((grid.users, grid.items), shape, strict=True):
        assert side.count == len(side.rows) == count
        assert len(np.unique(side.rows)) == count
        assert side.rows.max() < count <= side.size
        assert 1 <= side.height <= MOST_ROWS
        assert side.strips % BANDS == 0
        # No band more than is needed
        assert side.size - count < BANDS * side.strips
        np.testing.assert_array_equal(
            (side.places >> 16) * side.height + (side.places & 0xFFFF), side.rows
        )
        assert ((side.places & 0xFFFF) < side.height).all()
        assert (side.places >> 16).max() < side.strips
    assert grid.blocks == grid.users.strips * grid.items.strips


def test_rows_are_a_random_order_of_the_ids():
    rows = grid_of((5000, 10)).users.rows.astype(float)
    assert abs(np.corrcoef(rows, np.arange(5000))[0, 1]) < 0.05
    assert not np.array_equal(rows, grid_of((5000, 10), seed=5).users.rows)
    np.testing.assert_array_equal(rows, grid_of((5000, 10)).users.rows)


@pytest.mark.parametrize("shape", [(10_000, 5000), (200_000, 30_000), (300, 10**6)])
@pytest.mark.parametrize("row_bytes", [72, 520])
def test_with_many_ratings_a_block_fits_into_the_cache(shape, row_bytes):
    grid = grid_of(shape, 10**8, row_bytes)
    assert (grid.users.height + grid.items.height) * row_bytes <= blocks.CACHE
    rather_few = grid_of(shape, 10**5, row_bytes)
    most = max(BANDS**2, 10**5 // blocks.FEWEST_RATINGS)
    assert rather_few.blocks <= most or rather_few.users.height == MOST_ROWS


@pytest.mark.parametrize("shape", [*SHAPES, (20_000, 9_000)])
def test_tasks_are_all_blocks_once_and_share_no_strip_with_another_band(shape):
    grid = grid_of(shape, 10**8, 1032)
    visited = []
    for user_band in range(BANDS):
        for item_band in range(BANDS):
            task = grid.task(user_band, item_band)
            assert task.dtype == np.uint32
            strips = np.divmod(task, grid.columns)
            for strip, side, band in zip(
                strips, (grid.users, grid.items), (user_band, item_band), strict=True
            ):
                assert (strip // (side.strips // BANDS) == band).all()
            steps = [np.abs(np.diff(strip.astype(int))) for strip in strips]
            assert (steps[0] + steps[1] == 1).all()  # neighbours share a strip
            visited.append(task)
    np.testing.assert_array_equal(np.sort(np.concatenate(visited)), np.arange(grid.blocks))


@pytest.mark.parametrize("epoch", [1, 2, 17])
@pytest.mark.parametrize("bands", [1, 2, BANDS])
def test_a_phase_of_strata_shares_no_band_and_an_epoch_has_all_tasks(bands, epoch):
    phases = diagonals(bands, 3, epoch)
    for tasks in phases:
        assert len(tasks) == bands
        for side in zip(*tasks, strict=True):
            assert sorted(side) == list(range(bands))
    every = sorted((user, item) for user in range(bands) for item in range(bands))
    assert sorted(task for tasks in phases for task in tasks) == every
    (tasks,) = any_order(bands, 3, epoch)
    assert sorted(tasks) == every


@pytest.mark.parametrize(("phases", "orders"), [(any_order, 64), (diagonals, 64)])
def test_epochs_and_seeds_differ_in_the_order_of_the_tasks_and_none_is_left_out(phases, orders):
    """Of eight bands there are 40,320 orders."""
    found = [str(phases(BANDS, seed, epoch)) for seed in range(8) for epoch in range(8)]
    assert found == [str(phases(BANDS, seed, epoch)) for seed in range(8) for epoch in range(8)]
    assert len(set(found)) == orders
    for n in range(8):
        assert len(set(found[8 * n : 8 * n + 8])) > 1  # the epochs of a seed
        assert len(set(found[n::8])) > 1  # the seeds of an epoch


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    size=st.integers(0, 400),
    row_bytes=st.sampled_from([72, 16_392, 131_080]),
    seed=st.integers(0, 99),
)
def test_sorting_loses_nothing(shape, size, row_bytes, seed):
    check_sorting(grid_of(shape, size, row_bytes, seed), *drawn(shape, size, seed))


@pytest.mark.parametrize("shape", SHAPES)
def test_sorting_loses_nothing_of_any_shape(shape):
    check_sorting(grid_of(shape), *drawn(shape, 5000))


def check_sorting(grid, users, items, values):
    u, i, v, _ = told(grid, *sort(grid, users, items, values))
    order = np.argsort(v)
    np.testing.assert_array_equal(v[order], values)
    np.testing.assert_array_equal(u[order], grid.users.rows[users])
    np.testing.assert_array_equal(i[order], grid.items.rows[items])


@pytest.mark.parametrize("chunk", [100, 999, 10**6])
def test_the_outcome_does_not_depend_on_who_sorts_when(chunk, monkeypatch):
    ratings = drawn((300, 200), 5000)
    grid = grid_of((300, 200), 5000, 16_392)
    expected, _ = sort(grid, *ratings)
    monkeypatch.setattr(blocks, "CHUNK", chunk)
    assert Sorting(grid, *ratings, 7, "").chunks == min(blocks.CHUNKS, max(1, 5000 // chunk))
    for order in (None, 1, 2):
        np.testing.assert_array_equal(sort(grid, *ratings, order=order)[0], expected)


def test_within_a_block_the_order_is_random():
    """Not that of the input, another one for another seed, and each as likely as any other."""
    size = 6 * BANDS**2 * 50
    ratings = drawn((64, 64), size)
    grid = grid_of((64, 64), size)
    _, _, values, block = told(grid, *sort(grid, *ratings))
    ranks = [np.argsort(np.argsort(values[block == b])) for b in range(grid.blocks)]
    alike = [np.corrcoef(rank, np.arange(len(rank)))[0, 1] for rank in ranks if len(rank) > 1]
    assert abs(np.mean(alike)) < 5 / size**0.5
    # Where the first of the input comes to lie: uniformly
    firsts = np.array([np.argmin(rank) / (len(rank) - 1) for rank in ranks if len(rank) > 1])
    assert firsts.mean() == pytest.approx(0.5, abs=5 / 12**0.5 / len(firsts) ** 0.5)
    assert firsts.std() == pytest.approx(12**-0.5, rel=0.25)
    other = told(grid, *sort(grid, *ratings, seed=8))[2]
    assert (values == other).mean() < 0.1
