"""Weights are compared on a few rows: on more of them where that leaves it open."""

from itertools import pairwise

import numpy as np
import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from hogwild.learn.linear import LinearProblem
from tests import reference

L2 = 1e-4


@pytest.fixture(scope="module")
def problem():
    rows = rcv1(20_000, columns=2_000)[0]
    return LinearProblem(rows, None, hogwild.Config(task="logistic", l2=L2, solver="sgd"))


@pytest.fixture(scope="module")
def learned(problem):
    model = hogwild.train(problem._given, task="logistic", l2=L2, tol=1e-4).model
    return np.append(model.weights, np.float32(model.intercept))


def looked_at(problem, monkeypatch, *weights):
    """The gains over the first weights, and how many rows were looked at, each time."""
    sample, sizes = problem.sample, []
    look = sample._side_by_side

    def spy(some, size):
        sizes.append(size)
        return look(some, size)

    monkeypatch.setattr(sample, "_side_by_side", spy)
    squares = np.array([some[:-1].astype(float) @ some[:-1] for some in weights])
    return sample.sure_gains(list(weights), squares, 0), sizes


def test_weights_that_are_close_are_compared_on_all_rows_of_the_sample(
    problem, learned, monkeypatch
):
    near = learned * np.float32(1.02)
    gains, sizes = looked_at(problem, monkeypatch, near, learned, np.float32(0.2) * learned)
    assert sizes == [problem.sample._compared, problem.sample.size]
    assert sizes[0] < sizes[1] / 2
    assert gains[1] > gains[0] == 0 > gains[2]


def test_one_look_is_enough_where_one_is_clearly_best(problem, learned, monkeypatch):
    gains, sizes = looked_at(problem, monkeypatch, np.zeros_like(learned), learned, -learned)
    assert sizes == [problem.sample._compared]
    assert gains[1] > 0 > gains[2]


def test_weights_that_overflowed_are_never_taken(problem, learned, monkeypatch):
    bad = np.full_like(learned, np.inf)
    gains, _ = looked_at(problem, monkeypatch, learned, bad, learned * np.float32(np.nan))
    assert np.argmax(gains) == 0
    gains, _ = looked_at(problem, monkeypatch, bad, learned, bad)
    assert np.argmax(gains) == 1


def test_gains_are_those_of_the_objective_less_a_share_of_their_error(
    problem, learned, monkeypatch
):
    other = np.float32(0.5) * learned
    gains, sizes = looked_at(problem, monkeypatch, other, learned)
    rows = problem.sample.rows
    starts = np.append(rows.begins, rows.ends[-1])
    X = np.zeros((problem.sample.size, problem.columns))
    for row, (begin, end) in enumerate(pairwise(starts)):
        X[row, rows.columns[begin:end]] = rows.values[begin:end]
    losses = [
        reference.value("logistic", X @ w[:-1] + w[-1], rows.targets)[: sizes[-1]]
        for w in (other.astype(float), learned.astype(float))
    ]
    gain = losses[0] - losses[1]
    less = L2 / 2 * (other[:-1] @ other[:-1] - learned[:-1] @ learned[:-1])
    expected = gain.mean() + less - 0.25 * gain.std() / np.sqrt(len(gain))
    assert gains[1] == pytest.approx(expected, rel=1e-3)
