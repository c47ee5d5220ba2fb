"""Generated rows have the shape that they are named for."""

import numpy as np
import pytest

from experiments.shapes import DEFAULT_ROWS, GENERATED, NOISE, SHAPES, VALUES, ratings

ROWS = 4000


@pytest.fixture(scope="module")
def drawn():
    return {name: make(ROWS, 1) for name, make in SHAPES.items()}


@pytest.mark.parametrize("name", SHAPES)
def test_rows_have_the_norm_1_and_no_column_twice(drawn, name) -> None:
    rows = drawn[name]
    starts = rows.indptr[:-1].astype(int)
    norms = np.add.reduceat(rows.values.astype(float) ** 2, starts)
    assert norms == pytest.approx(np.ones(ROWS), abs=1e-5)
    steps = np.diff(rows.indices.astype(np.int64))
    within = np.ones(len(steps), bool)
    within[starts[1:] - 1] = False
    assert (steps[within] > 0).all()
    assert (rows.values.dtype, len(rows)) == (np.float32, ROWS)


@pytest.mark.parametrize("name", SHAPES)
def test_both_classes_are_there_about_equally(drawn, name) -> None:
    assert set(np.unique(drawn[name].y)) == {-1, 1}
    assert 0.4 < (drawn[name].y > 0).mean() < 0.6


@pytest.mark.parametrize("name", GENERATED)
def test_a_row_is_the_same_however_many_there_are_and_another_with_another_seed(name) -> None:
    few, more, other = (SHAPES[name](*how) for how in ((20, 1), (40, 1), (20, 2)))
    assert (few.indices == more.indices[: few.nonzeros]).all()
    assert (few.values == more.values[: few.nonzeros]).all()
    assert (few.y == more.y[:20]).all()
    assert (few.indices != other.indices).any()


@pytest.mark.parametrize("name", GENERATED)
def test_rows_are_as_long_and_as_wide_as_is_said(drawn, name) -> None:
    shape, rows = GENERATED[name], drawn[name]
    assert set(np.diff(rows.indptr)) == {shape.nonzeros}
    assert rows.columns == shape.columns
    assert shape.values in VALUES


def holders(rows):
    return np.sort(np.bincount(rows.indices, minlength=rows.columns))[::-1] / len(rows)


def test_columns_are_as_hot_as_is_said(drawn) -> None:
    assert holders(drawn["wide"])[0] == pytest.approx(0.36, abs=0.05)
    for name in ("uniform", "sparse"):
        expected = ROWS * GENERATED[name].nonzeros / GENERATED[name].columns
        counts = ROWS * holders(drawn[name])
        assert counts.max() < expected + 8 * (1 + expected**0.5)  # as chance has it
    dense = holders(drawn["dense"])
    assert dense == pytest.approx(np.full(200, 0.25), abs=0.04)


def test_wide_columns_follow_zipf_s_law(drawn) -> None:
    found = holders(drawn["wide"])
    # -log(1 - share) is what is drawn of a column; odds go down as 1 / (20.5 + rank)
    drawn_of = -np.log1p(-found[:100])
    assert drawn_of[0] / drawn_of[60] == pytest.approx(80.5 / 20.5, rel=0.2)


def test_every_row_of_onehot_has_a_value_of_each_field(drawn) -> None:
    rows = drawn["onehot"]
    assert rows.values == pytest.approx(np.full(rows.nonzeros, 39**-0.5), abs=1e-6)
    # The four values of the smallest field: each row has just one of them
    found = np.bincount(rows.indices, minlength=rows.columns)
    assert 0.35 < found.max() / ROWS < 0.5
    assert len(np.unique(rows.indices)) > 20_000


def test_labels_can_be_learned_but_for_the_noise() -> None:
    rows = SHAPES["dense"](20_000, 0)
    X, y = rows.to_scipy(), rows.targets()
    weights = np.linalg.lstsq(X.toarray().astype(float), y, rcond=None)[0]
    wrong = ((X @ weights > 0) != (y > 0)).mean()
    assert NOISE - 0.01 < wrong < NOISE + 0.03


def test_ratings_and_defaults() -> None:
    drawn = ratings(20_000, 0)
    assert len(drawn) == 20_000
    assert DEFAULT_ROWS["rcv1"] == 781_265
    assert set(DEFAULT_ROWS) == set(SHAPES)
