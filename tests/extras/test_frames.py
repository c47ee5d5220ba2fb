"""Parquet files, Arrow tables, data frames of pandas and polars: all the same rows as the CSV."""

import numpy as np
import pandas as pd
import pytest

import hogwild
from hogwild import DataError, Features

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pl = pytest.importorskip("polars")

ROWS = 5_000
draw = np.random.default_rng(0)
COLUMNS = {
    "click": draw.integers(0, 2, ROWS).tolist(),
    "site": draw.choice(["a", "b,c", 'say "x"', "é"], ROWS).tolist(),
    "zip": draw.choice(["01234", "98765", "00001"], ROWS).tolist(),
    "price": [None if k % 7 == 0 else k / 3 for k in range(ROWS)],
    "age": draw.integers(18, 90, ROWS).tolist(),
    "text": [f"row number {k}\nof {ROWS} rows" for k in range(ROWS)],
}
KINDS = {"label": "click", "numeric": "price,age", "categorical": "site,zip", "text": "text"}


def assert_same(one: hogwild.Rows, other: hogwild.Rows) -> None:
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-6)
    np.testing.assert_array_equal(one.begins, other.begins)
    np.testing.assert_array_equal(one.y, other.y)


@pytest.fixture
def rows(tmp_path):
    pd.DataFrame(COLUMNS).to_csv(tmp_path / "t.csv", index=False)
    return hogwild.load(tmp_path / "t.csv", **KINDS)


def test_tables_in_memory(rows):
    table = pa.table(COLUMNS)
    frames = [table, pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)]
    frames.append(pd.DataFrame(COLUMNS).astype({"site": "category"}))
    frames.append(table.set_column(1, "site", table["site"].dictionary_encode()))
    for frame in frames:
        assert_same(Features(**KINDS).rows(frame), rows)
    trained = hogwild.train(frames[1], task="logistic", **KINDS).model
    without = pl.DataFrame(COLUMNS).drop("click")
    assert trained.predict(without).tolist() == trained.predict(rows).tolist()


def test_parquet(tmp_path, rows):
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table(COLUMNS), file, row_group_size=700)
    assert_same(hogwild.load(file, **KINDS), rows)
    # What is text is no number, whatever it looks like
    guessed = hogwild.load(file, label="click")
    assert dict(guessed.features.table) == {
        "click": "label",
        "site": "categorical",
        "zip": "categorical",
        "price": "numeric",
        "age": "numeric",
        "text": "text",
    }


def test_what_is_wrong_is_named(tmp_path):
    file = tmp_path / "t.parquet"
    file.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match="is no Parquet file, or damaged"):
        hogwild.load(file, label="y")
    with pytest.raises(DataError, match="the column 'b' holds list"):
        Features(label="a").rows(pa.table({"a": [1], "b": [[1, 2]]}))
    with pytest.raises(DataError, match="expected a list of text, an Arrow table or a data frame"):
        Features(label="a").rows(3)
