"""A part of rows: the same to training and evaluation as a copy of it, and not a copy."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild import Rows
from hogwild.data.components import parts_apart
from hogwild.data.statistics import frequency, sharing

SIZE, COLUMNS = 900, 120


@pytest.fixture(scope="module")
def rows() -> Rows:
    random = np.random.default_rng(0)
    X = sparse.random(SIZE, COLUMNS, 0.05, "csr", np.float32, random)
    scores = X @ random.normal(size=COLUMNS)
    return Rows(X, np.where(scores > 0, "yes", "no"), sample_weight=random.random(SIZE) + 0.1)


NUMBERS = np.random.default_rng(1).permutation(SIZE)[:600]


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1},
        {"workers": 1, "strategy": "combine"},
        {"workers": 1, "strategy": "locked"},
        {"workers": 2, "strategy": "minibatch"},
        {"workers": 2, "deterministic": True, "class_weight": "balanced"},
    ],
    ids=str,
)
def test_training_on_a_part_is_training_on_a_copy_of_it(rows: Rows, options: Any) -> None:
    results = [
        hogwild.train(some, task="logistic", epochs=4, l2=1e-3, **options)
        for some in (rows.part(NUMBERS), rows.take(NUMBERS))
    ]
    one, other = (result.model for result in results)
    assert one.weights.tobytes() == other.weights.tobytes()
    assert one.intercept == other.intercept
    one, other = ([row["objective"] for row in result.trace] for result in results)
    assert one == other


def test_evaluating_and_describing_a_part_is_that_of_a_copy(rows: Rows) -> None:
    model = hogwild.train(rows, task="logistic", workers=1, epochs=2).model
    part, taken = rows.part(NUMBERS), rows.take(NUMBERS)
    assert model.evaluate(part) == model.evaluate(taken)
    assert (len(part), part.nonzeros, part.nbytes) == (len(taken), taken.nonzeros, taken.nbytes)
    assert part.labels == taken.labels
    assert sharing(part) == sharing(taken)
    for one, other in zip(frequency(part), frequency(taken), strict=True):
        assert np.array_equal(one, other)
    for most in (0, 7, 10**6):
        assert np.array_equal(part.some_values(most), taken.some_values(most))


def test_parts_that_share_no_column_are_found_among_the_rows_of_a_part() -> None:
    # Rows k and k + 40 hold column k, and the rows that are left out hold all columns
    columns = [[k % 40] for k in range(80)] + [list(range(40))] * 5
    indptr = np.concatenate([[0], np.cumsum([len(some) for some in columns])])
    X = sparse.csr_matrix((np.ones(indptr[-1]), np.concatenate(columns), indptr), (85, 40))
    part = Rows(X, np.arange(85) % 2).part(np.arange(80))
    parts = parts_apart(part, 4)
    assert sorted(np.concatenate(parts).tolist()) == list(range(80))
    assert all(
        {row % 40 for row in some} == {row % 40 for row in some[some < 40]} for some in parts
    )


def test_nothing_of_a_part_is_copied_so_it_has_no_matrix(rows: Rows) -> None:
    part = rows.part(NUMBERS)
    assert np.shares_memory(part.values, rows.values)
    assert np.shares_memory(part.indices, rows.indices)
    with pytest.raises(hogwild.DataError, match=r"take\(slice\(None\)\) copies"):
        part.to_scipy()
    copied = part.take(slice(None)).to_scipy()
    assert (copied != rows.take(NUMBERS).to_scipy()).nnz == 0


def test_a_part_of_a_part_counts_within_it(rows: Rows) -> None:
    nested = rows.part(NUMBERS).part(np.arange(100, 300))
    assert (nested.take(slice(None)).to_scipy() != rows.take(NUMBERS[100:300]).to_scipy()).nnz == 0
    assert np.array_equal(nested.y, rows.y[NUMBERS[100:300]])
