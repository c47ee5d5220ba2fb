"""Synthetic rows: what they look like, and that they depend on nothing but seed and number."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from hogwild.data.rows import Rows
from hogwild.data.synthetic import _odds, alias_table, columns_by_frequency, rcv1, rcv1_numbers
from hogwild.errors import OptionError

COLUMNS = 5_000


def digest(rows: Rows, weights: np.ndarray) -> str:
    arrays = (rows.indptr, rows.indices, rows.values, rows.y, weights)
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


def same_rows(a: Rows, b: Rows) -> bool:
    pairs = ((a.indptr, b.indptr), (a.indices, b.indices), (a.values, b.values), (a.y, b.y))
    return all(np.array_equal(x, y) for x, y in pairs)


def part(rows: Rows, begin: int, end: int) -> Rows:
    at = slice(int(rows.indptr[begin]), int(rows.indptr[end]))
    return Rows.from_arrays(
        rows.indptr[begin : end + 1] - rows.indptr[begin],
        rows.indices[at],
        rows.values[at],
        rows.columns,
        rows.y[begin:end],
    )


@pytest.fixture(scope="module")
def drawn():
    return rcv1(20_000, seed=3)


def test_same_seed_same_bytes_in_another_process():
    code = (
        "from test_synthetic import digest; from hogwild.data.synthetic import rcv1;"
        "print(digest(*rcv1(500, 5000, 11)))"
    )
    environment = {"PYTHONPATH": ":".join([*sys.path, __file__.rpartition("/")[0]])}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == digest(*rcv1(500, COLUMNS, 11))


def test_another_seed_gives_other_rows_weights_and_heat():
    (a, v), (b, w) = rcv1(500, COLUMNS, 1), rcv1(500, COLUMNS, 2)
    assert not np.array_equal(a.indptr, b.indptr)
    assert np.mean(v == w) < 0.01
    hot_a, hot_b = (set(np.argsort(-np.bincount(r.indices))[:50]) for r in (a, b))
    assert len(hot_a & hot_b) < 10


def test_a_row_depends_on_its_number_only():
    whole, weights = rcv1(1_000, COLUMNS, 5)
    first, same = rcv1(300, COLUMNS, 5)
    rest, still = rcv1(700, COLUMNS, 5, first_row=300)
    assert same_rows(part(whole, 0, 300), first)
    assert same_rows(part(whole, 300, 1_000), rest)
    assert np.array_equal(weights, same)
    assert np.array_equal(weights, still)


def test_rows_are_unit_vectors_with_rising_columns(drawn):
    rows, _ = drawn
    norms = np.sqrt(np.add.reduceat(rows.values.astype(float) ** 2, rows.indptr[:-1].astype(int)))
    assert np.allclose(norms, 1, atol=1e-6)
    assert np.all(rows.values > 0)
    steps = np.diff(rows.indices.astype(np.int64))
    inside = np.ones(rows.nonzeros, bool)
    inside[rows.indptr[1:-1]] = False
    assert np.all(steps[inside[1:]] > 0)


def test_the_shape_is_that_of_rcv1(drawn):
    rows, _ = drawn
    lengths = np.diff(rows.indptr).astype(int)
    assert lengths.mean() == pytest.approx(77, rel=0.02)
    assert lengths.min() >= 1
    assert 40 < np.quantile(lengths, 0.25) < np.quantile(lengths, 0.75) < 105
    held = np.bincount(rows.indices, minlength=rows.columns)
    assert 0.30 < held.max() / len(rows) < 0.40
    hottest = np.argsort(-held)[:1000]
    assert hottest.mean() == pytest.approx(rows.columns / 2, rel=0.1), "hot columns lie anywhere"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [(47_236, 77), (300, 40), (100_000, 10)])
def test_labels_are_balanced_and_noisy_as_stated(shape, seed):
    columns, nonzeros = shape
    rows, weights = rcv1(10_000, columns, seed, nonzeros=nonzeros)
    scores = rows.to_scipy() @ weights
    assert scores.std() == pytest.approx(1, abs=0.05)
    assert np.mean(np.where(scores >= 0, 1, -1) != rows.y) == pytest.approx(0.06, abs=0.012)
    assert 0.4 < np.mean(rows.y == 1) < 0.6
    assert rows.labels == (-1, 1)


def test_noise_changes_labels_only():
    quiet, weights = rcv1(2_000, COLUMNS, noise=0)
    loud, same = rcv1(2_000, COLUMNS, noise=0.2)
    assert np.array_equal(np.where(quiet.to_scipy() @ weights >= 0, 1, -1), quiet.y)
    assert np.mean(quiet.y != loud.y) == pytest.approx(0.2, abs=0.03)
    assert np.array_equal(quiet.values, loud.values)
    assert np.array_equal(weights, same)


@pytest.mark.parametrize("columns", [4, 5, 64, 65, 5_000])
def test_the_alias_table_gives_every_column_its_odds(columns):
    column_of = columns_by_frequency(np.uint64(7), columns)
    odds = _odds(columns)
    table = alias_table(odds, column_of)
    own = (table >> np.uint64(32)) / 2.0**32
    given = own.copy()
    np.add.at(given, (table & np.uint64(2**32 - 1)).astype(int), 1 - own)
    assert np.allclose(given[column_of] / columns, odds, atol=1e-8)


@pytest.mark.parametrize(("columns", "nonzeros"), [(4, 1), (40, 10), (4_097, 1_000)])
def test_small_and_dense_shapes(columns, nonzeros):
    rows, weights = rcv1(200, columns, nonzeros=nonzeros)
    lengths = np.diff(rows.indptr)
    assert 1 <= lengths.min() <= lengths.max() <= columns // 2
    assert len(weights) == columns
    assert np.all(np.isfinite(rows.values))


def test_all_bad_arguments_are_listed_at_once():
    with pytest.raises(OptionError) as error:
        rcv1(0, 10.5, -1, nonzeros=True, noise=0.5, first_row=-2)
    for name in ("rows", "columns", "seed", "nonzeros", "noise", "first_row"):
        assert f"{name} is" in str(error.value)
    with pytest.raises(OptionError, match=r"columns is 100; rows of 77 .* 308 or more$"):
        rcv1(10, 100)


def test_numbers_are_planted_scores_and_noise():
    rows, weights = rcv1_numbers(20_000, COLUMNS, 5, noise=0.3)
    scores = rows.to_scipy() @ weights.astype(float)
    assert np.std(scores) == pytest.approx(1, abs=0.05)
    errors = rows.numbers() - scores
    assert np.std(errors) == pytest.approx(0.3, rel=0.03)
    assert abs(np.corrcoef(errors, scores)[0, 1]) < 0.03


def test_counts_have_the_mean_and_variance_of_poisson():
    rows, weights = rcv1_numbers(50_000, COLUMNS, 5, counts=True)
    means = np.exp(rows.to_scipy() @ weights.astype(float))
    counts = rows.numbers()
    assert np.array_equal(counts, np.round(counts))
    assert counts.min() == 0
    standardized = (counts - means) / np.sqrt(means)
    assert standardized.mean() == pytest.approx(0, abs=0.02)
    assert standardized.var() == pytest.approx(1, abs=0.05)
    for low, high in ((0, 0.3), (0.3, 1), (1, 3)):  # P(0) = exp(-mean)
        some = (means >= low) & (means < high)
        assert np.mean(counts[some] == 0) == pytest.approx(np.exp(-means[some]).mean(), abs=0.02)


def test_rows_with_numbers_depend_on_their_place_only():
    every, _ = rcv1_numbers(300, COLUMNS, 5, counts=True)
    later, _ = rcv1_numbers(200, COLUMNS, 5, counts=True, first_row=100)
    assert same_rows(part(every, 100, 300), later)
    with pytest.raises(OptionError, match="noise"):
        rcv1_numbers(10, noise=-1)
