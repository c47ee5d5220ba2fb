"""Rows: what is taken as it lies, what is copied, and what is refused."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import Rows


def a_matrix(dtype: Any = np.float32, index: Any = np.int32) -> sparse.csr_matrix:
    X = sparse.random(20, 30, 0.2, "csr", dtype, np.random.default_rng(0))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


Y = np.where(np.arange(20) % 3 == 0, 1, -1)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_comes_back_as_it_was(dtype: Any, index: Any) -> None:
    X = a_matrix(dtype, index)
    rows = Rows(X, Y)
    assert (rows.indptr.dtype, rows.indices.dtype, rows.values.dtype) == (
        np.uint64,
        np.uint32,
        np.float32,
    )
    np.testing.assert_array_equal(rows.to_scipy().toarray(), X.toarray().astype(np.float32))
    assert (len(rows), rows.columns, rows.nonzeros) == (20, 30, X.nnz)


def test_what_fits_is_not_copied() -> None:
    X = a_matrix()
    rows = Rows(X, Y)
    assert np.shares_memory(rows.values, X.data)
    assert np.shares_memory(rows.indices, X.indices)
    wide = a_matrix(index=np.int64)
    assert np.shares_memory(Rows(wide, Y).indptr, wide.indptr)


def test_the_arrays_cannot_be_written() -> None:
    rows = Rows(a_matrix(), Y)
    for array in (rows.indptr, rows.indices, rows.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("make", [sparse.csc_matrix, sparse.coo_matrix, lambda X: X.toarray()])
def test_other_matrices_are_turned_into_rows(make: Any) -> None:
    X = a_matrix()
    np.testing.assert_array_equal(Rows(make(X), Y).to_scipy().toarray(), X.toarray())


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (Y, (-1, 1)),
        ((Y > 0).astype(int), (0, 1)),
        (Y > 0, (False, True)),
        (np.where(Y > 0, "spam", "ham"), ("ham", "spam")),
        (np.where(Y > 0, "spam", "ham").astype(object), ("ham", "spam")),
        (np.where(Y > 0, 0.5, 7.0), (0.5, 7.0)),
        (Y.reshape(-1, 1), (-1, 1)),
        (Y.tolist(), (-1, 1)),
    ],
)
def test_two_labels_of_any_kind(y: Any, labels: tuple[Any, Any]) -> None:
    rows = Rows(a_matrix(), y)
    assert rows.labels == labels
    positive = np.asarray(y).reshape(-1) == labels[1]
    np.testing.assert_array_equal(rows.targets(), np.where(positive, 1, -1))
    assert rows.targets().dtype == np.float32


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.ones(20), "the label is 1.0 in every row"),
        (np.ones(19), "20 rows need 20 labels"),
        (np.where(Y > 0, np.nan, 1), "the label of row 1 is nan"),
        (None, "has no labels"),
    ],
)
def test_labels_that_cannot_be_learned(y: Any, words: str) -> None:
    with pytest.raises(hogwild.DataError, match=words):
        Rows(a_matrix(), y).labels  # noqa: B018


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "nan in row 4, column 7, is NaN or infinite"),
        (-np.inf, "-inf in row 4, column 7, is NaN or infinite"),
        (1e300, r"1e\+300 in row 4, column 7, is too large for float32"),
    ],
)
def test_a_bad_value_is_found(value: float, words: str) -> None:
    X = np.zeros((5, 8))
    X[0, 1] = 1
    X[3, 7] = value
    with pytest.raises(hogwild.DataError, match=words):
        Rows(X, np.arange(5) % 2)


@pytest.mark.parametrize("indptr", [[], [0, 2], [1, 4], [0, 3, 2, 4], [0, 5]])
def test_damaged_row_pointers_are_refused(indptr: list[int]) -> None:
    with pytest.raises(hogwild.DataError, match="damaged CSR arrays"):
        Rows.from_arrays(np.array(indptr, int), np.arange(4), np.ones(4, np.float32), 5)


def test_more_columns_than_indices_can_name() -> None:
    empty = np.empty(0)
    with pytest.raises(hogwild.DataError, match="at most 2\\^32"):
        Rows.from_arrays(np.zeros(1, int), empty.astype(int), empty, 2**32 + 1)


@pytest.mark.parametrize("X", [np.zeros(3), np.array([["a"]]), np.zeros((2, 2, 2))])
def test_what_is_no_matrix_is_refused(X: Any) -> None:
    with pytest.raises(hogwild.DataError, match="two dimensions"):
        Rows(X)


def test_taking_and_narrowing() -> None:
    X = a_matrix()
    rows = Rows(X, Y)
    chosen = np.array([3, 0, 3, 19])
    np.testing.assert_array_equal(rows.take(chosen).to_scipy().toarray(), X.toarray()[chosen])
    np.testing.assert_array_equal(rows.take(chosen).y, Y[chosen])
    np.testing.assert_array_equal(rows.narrowed(7).to_scipy().toarray(), X.toarray()[:, :7])
    assert len(rows.take(np.empty(0, int))) == 0


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_gathered_arrays_are_those_of_the_rows_taken(threads):
    rows = Rows(a_matrix(), Y)
    numbers = np.array([2, 0, 2, 1], np.uint64)
    taken = rows.take(numbers)
    expected = taken.indptr, taken.indices, taken.values
    for mine, theirs in zip(rows.gather(numbers, threads), expected, strict=True):
        assert mine.tobytes() == theirs.tobytes() and mine.dtype == theirs.dtype


def test_empty_rows_are_rows() -> None:
    rows = Rows(sparse.csr_matrix((4, 3), dtype=np.float32), [0, 1, 0, 1])
    assert (len(rows), rows.nonzeros) == (4, 0)
    result = hogwild.train(rows, epochs=2)
    assert result.model.predict(rows).tolist() in ([0] * 4, [1] * 4)
