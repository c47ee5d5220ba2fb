"""Every strategy with one worker, compiled and in Python: what sequential learning comes to."""

import numpy as np
import pytest

import hogwild
from hogwild.kernels.compile import Kernel
from hogwild.kernels.order import shuffle
from hogwild.learn.linear import LinearProblem
from hogwild.loops.strategies import STRATEGIES
from hogwild.seeds import seed_of
from tests import reference
from tests.test_determinism import small

ROWS = [name for name, strategy in STRATEGIES.items() if strategy.rows]
SEQUENTIAL = [name for name in ROWS if name not in ("ordered", "strata", "minibatch")]
OPTIONS = {"loss": "logistic", "eta0": 0.02, "l2": 0.05, "epochs": 2, "workers": 1, "tol": 0}


def separable():
    """Rows in twelve groups that share no column."""
    X, y = small()
    return X * (np.arange(len(y))[:, None] % 12 == np.arange(12)), y


def trained(strategy, **options):
    X, y = separable() if strategy == "strata" else small()
    return hogwild.train(hogwild.Rows(X, y), strategy=strategy, **(OPTIONS | options))


def last(result):
    return result.state.weights["stored"]


@pytest.mark.parametrize("strategy", SEQUENTIAL)
def test_the_last_weights_are_those_of_the_reference(strategy):
    X, y = small()
    problem = LinearProblem(hogwild.Rows(X, y), None, hogwild.Config(**OPTIONS))
    orders = [np.empty(len(y), np.uint32) for _ in range(2)]
    for epoch, order in enumerate(orders, start=1):
        shuffle(order, 0, np.uint64(seed_of(0, epoch, 0)))
    plan = reference.plan_of(problem, 0.02)
    w, b = reference.train(X, y, orders, plan, 1)["last"]
    np.testing.assert_allclose(last(trained(strategy)), [*w, b], 1e-4, 1e-6)


@pytest.mark.parametrize("strategy", ["locked", "roundrobin", "combine"])
def test_the_bytes_are_those_of_hogwild(strategy):
    """Without an intercept, which hogwild shares by differences."""
    options = {"intercept": False, "average": False}
    found = {last(trained(name, **options)).tobytes() for name in ("hogwild", strategy)}
    assert len(found) == 1


@pytest.mark.parametrize("strategy", ROWS)
def test_compiled_loops_do_what_their_python_source_does(strategy, monkeypatch):
    compiled = trained(strategy)
    monkeypatch.setattr(Kernel, "__call__", lambda self, *arguments: self.function(*arguments))
    with np.errstate(over="ignore"):  # random numbers are made by overflow
        python = trained(strategy)
    np.testing.assert_allclose(last(compiled), last(python), 1e-4, 1e-6)
    np.testing.assert_allclose(compiled.model.weights, python.model.weights, 1e-4, 1e-6)
    for name in ("objective", "online_loss"):
        traces = [[row[name] for row in result.trace] for result in (compiled, python)]
        np.testing.assert_allclose(*traces, 1e-5)


def test_rates_are_tried_by_the_python_source_as_by_the_compiled_kernels(monkeypatch):
    chosen = [trained("hogwild", eta0=None).header["chosen"]["eta0"]]
    monkeypatch.setattr(Kernel, "__call__", lambda self, *arguments: self.function(*arguments))
    with np.errstate(all="ignore"):
        chosen.append(trained("hogwild", eta0=None).header["chosen"]["eta0"])
    assert chosen[0] == chosen[1]
