"""What is chosen for a run, and why; what contradicts itself is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hogwild
from hogwild.data.synthetic import rcv1, rcv1_classes
from hogwild.learn.linear import LinearProblem


def test_what_is_chosen_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hogwild.machine.usable_cores", lambda: 4)
    monkeypatch.setattr("hogwild.loops.choice.WORTH_A_WORKER", 1_000)
    rng = np.random.default_rng(0)

    def chosen(columns: int, rows: int, each: int, **options: Any) -> Any:
        places = rng.permutation(np.arange(rows * each) % columns)  # all are used
        indptr = np.arange(rows + 1) * each
        values = np.ones(rows * each, np.float32)
        X = sparse.csr_matrix((values, places, indptr), shape=(rows, columns))
        data = hogwild.Rows(X, np.arange(rows) % 2)
        result = hogwild.train(data, epochs=1, eta0=1e-3, **options)
        return result.header["chosen"]

    few = chosen(300, 5_000, 20)
    assert (few["strategy"], few["workers"]) == ("combine", 4)
    assert "copies of 300 weights cost little" in few["why"]
    many = chosen(4_000_000, 40_000, 100)
    assert (many["strategy"], many["workers"]) == ("hogwild", 4)
    assert "most weights come from far away" in many["why"]
    perceptrons = chosen(300, 5_000, 20, loss="perceptron")
    assert (perceptrons["strategy"], perceptrons["workers"]) == ("mixed", 4)
    assert "those of several workers overshoot" in perceptrons["why"]
    same = chosen(300, 5_000, 20, deterministic=True)
    assert (same["strategy"], same["workers"]) == ("ordered", 4)
    monkeypatch.undo()
    little = chosen(300, 500, 20)
    assert (little["workers"], little["why"]) == (1, "too little work to share")


def test_workers_share_classes_where_that_costs_less_than_it_saves(monkeypatch) -> None:
    monkeypatch.setattr("hogwild.machine.usable_cores", lambda: 2)
    monkeypatch.setattr("hogwild.loops.choice.WORTH_A_WORKER", 1_000)

    def chosen(columns: int, classes: int, **options: Any) -> Any:
        rows, _ = rcv1_classes(1_000, columns, classes=classes)
        return hogwild.train(rows, epochs=1, eta0=0.1, **options).header["chosen"]

    many = chosen(1_000, 20)
    assert (many["strategy"], many["workers"]) == ("heads", 2)
    assert "workers share 2 groups" in many["why"]
    for options in ({}, {"strategy": "heads"}, {"deterministic": True}):
        few = chosen(20_000, 20, **options)
        assert (few["strategy"], few["workers"]) == ("heads", 1)
        assert "copies of the weights of 20,000 columns take long" in few["why"]
    assert chosen(20_000, 20, workers=2)["workers"] == 2  # as asked


def test_what_contradicts_itself_is_refused() -> None:
    rows = rcv1(200)[0]
    for options, told in (
        (
            {"deterministic": True, "strategy": "hogwild"},
            "it needs a strategy whose result does not depend",
        ),
        ({"batch": 64}, "batch: it needs the strategy minibatch"),
        ({"strategy": "minibatch", "batch": 12}, "batch: it needs a multiple of 8"),
        ({"strategy": "stratum"}, "is not one of auto, hogwild"),
    ):
        with pytest.raises(hogwild.HogwildError, match=told):
            hogwild.train(rows, **options)


def test_a_step_that_cannot_lose_an_addition_refuses_strategies_that_may(monkeypatch) -> None:
    step = LinearProblem.step.fget
    exact = property(lambda problem: replace(step(problem), exact=True))
    monkeypatch.setattr(LinearProblem, "step", exact)
    rows = rcv1(200)[0]
    with pytest.raises(hogwild.OptionError, match="needs a strategy that loses no addition"):
        hogwild.train(rows, strategy="hogwild", workers=2)
    for options in ({"strategy": "hogwild", "workers": 1}, {"strategy": "ordered", "workers": 2}):
        hogwild.train(rows, epochs=1, backend="thread", **options)
