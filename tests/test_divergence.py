"""Rates that are too large for the data: a model that is worse than none is never a success."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.config import Config, loss_names
from hogwild.data.statistics import largest_columns
from hogwild.data.synthetic import rcv1
from hogwild.learn import progress
from hogwild.learn.linear import LinearProblem
from hogwild.loops.shared import RowWorker
from tests.combinations import pairs

AT_ZERO = {"hinge": 1.0, "logistic": np.log(2), "squared": 0.5, "exponential": 1.0}
TOO_LARGE = "the learning rate is too large: the objective rose in epoch"
REPEATED = pytest.mark.filterwarnings("ignore::hogwild.HogwildWarning")


def table(*, columns: str, seed: int = 0, size: int = 1000) -> hogwild.Rows:
    """People with two equal classes; what tells the classes is in the small columns."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 90, size)
    known = {
        "age": age,
        "income": rng.lognormal(10.5, 0.6, size),
        "day": rng.uniform(1, 6e5, size),
        "second": rng.uniform(1.5e9, 1.7e9, size),
        "share": rng.random(size),
        "noise": rng.standard_normal(size),
    }
    score = age / 20 + known["share"] + rng.normal(0, 0.5, size)
    X = np.column_stack([known[name] for name in columns.split()])
    return hogwild.Rows(X, (score > np.median(score)).astype(int))


def blobs(size: int = 60) -> hogwild.Rows:
    """Few rows, well scaled, two classes that overlap."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((size, 3))
    y = X @ rng.standard_normal(3) + 0.5 * rng.standard_normal(size) > 0
    return hogwild.Rows(X, y.astype(int))


def objectives(result: hogwild.Result) -> list[float]:
    return [row["objective"] for row in result.trace if row["objective"] is not None]


# Unscaled tables


@REPEATED
@pairs(
    columns=["age income", "age income day", "age share income", "second"],
    loss=AT_ZERO,
    objective_every=[0, 1, 3],
    seed=range(3),
)
def test_a_model_that_is_worse_than_none_is_no_success(
    columns: str, loss: str, seed: int, objective_every: int
) -> None:
    rows = table(columns=columns, seed=seed, size=300)
    try:
        result = hogwild.train(rows, loss=loss, objective_every=objective_every)
    except hogwild.DivergenceError as problem:
        assert "MaxAbsScaler" in str(problem)
        return
    assert result.trace[-1]["objective"] <= 1.001 * AT_ZERO[loss]
    if result.reason == "converged":
        assert result.trace[-1]["objective"] <= 1.001 * min(objectives(result))
    measured = result.model.evaluate(rows)["objective"]
    assert measured == pytest.approx(result.trace[-1]["objective"], rel=1e-4)


def test_the_note_comes_once_and_names_the_columns() -> None:
    rows = table(columns="age income")
    with pytest.warns(hogwild.HogwildWarning, match=TOO_LARGE) as told:
        result = hogwild.train(rows, loss="logistic", eta0=1e-6, tol=0)
    assert [str(warning.message) for warning in told] == result.notes
    assert "half of eta0 = 1e-06" in result.notes[0]
    assert "MaxAbsScaler" in result.notes[0]
    assert "counted from 0, are 1 (4" in result.notes[0]  # incomes of some 40,000
    assert result.state.eta0 < 1e-6
    assert [row["epoch"] for row in result.trace] == list(range(1, len(result.trace) + 1))
    assert result.state.steps == len(result.trace) * len(rows)


@REPEATED
@pytest.mark.parametrize(("base", "named"), [(0, ", counted from 0, are 1"), (1, " are 2")])
def test_where_no_rate_helps_the_error_numbers_columns_as_the_file_does(
    tmp_path: Path, base: int, named: str
) -> None:
    path = tmp_path / "people.svm"
    hogwild.save(table(columns="age second"), path, index_base=base)
    with pytest.raises(
        hogwild.DivergenceError, match=rf"{named} \(1,600,000,000\), {base} \(5"
    ) as told:
        hogwild.train(path, index_base=base, task="logistic", model=tmp_path / "m.hog", eta0=1.0)
    assert "is too large for this data" in str(told.value)
    assert not (tmp_path / "m.hog").exists()


@REPEATED
def test_a_rate_that_became_too_small_to_learn_is_no_convergence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "LEAST", 0.9)  # what is learned here is next to nothing
    with pytest.raises(
        hogwild.DivergenceError, match=r"nothing was learned: .* is too small\. Scale"
    ):
        hogwild.train(table(columns="share day noise"), task="logistic", eta0=1e-6)


def test_a_rate_found_too_small_to_learn_is_told() -> None:
    with pytest.warns(hogwild.HogwildWarning, match=r"nothing was learned\. Scale"):
        hogwild.train(table(columns="age share income"), task="logistic", eta0=1e-14)


def test_on_the_command_line_it_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    hogwild.save(table(columns="age second"), tmp_path / "people.svm")
    ran = subprocess.run(
        [sys.executable, "-m", "hogwild", "train", tmp_path / "people.svm", "--eta0", "1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert "MaxAbsScaler" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "stopped" not in ran.stdout


# Any data


@REPEATED
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "exponential"])
def test_a_rise_is_not_called_convergence(loss: str) -> None:
    for seed in range(5):
        result = hogwild.train(blobs(), loss=loss, seed=seed, epochs=40)
        if result.reason == "converged":
            assert objectives(result)[-1] <= 1.001 * min(objectives(result))
        gained = 1.0 - min(objectives(result))
        assert objectives(result)[-1] <= min(objectives(result)) + max(1e-3, 0.25 * gained)


def test_labels_of_pure_chance_end_well() -> None:
    """No weights are better than none: nothing to scale, and nothing to complain of."""
    rng = np.random.default_rng(0)
    rows = hogwild.Rows(rng.standard_normal((5000, 3)), rng.integers(0, 2, 5000))
    result = hogwild.train(rows, task="logistic", eta0=0.001, epochs=50)
    assert result.reason == "converged"
    assert not result.notes
    assert objectives(result)[-1] == pytest.approx(np.log(2), rel=1e-3)


def test_a_steady_training_is_left_as_it_is() -> None:
    result = hogwild.train(rcv1(3000, 2000)[0], solver="sgd", epochs=10)
    assert not result.notes
    assert result.state.eta0 == result.header["chosen"]["eta0"]


def test_the_perceptron_whose_loss_is_zero_without_a_model_goes_on() -> None:
    result = hogwild.train(blobs(), loss="perceptron", epochs=3, tol=0)
    assert (result.reason, result.notes) == ("epochs", [])


@pytest.mark.parametrize("target", [0.6, 5.0])
@REPEATED
def test_a_target_is_not_reached_by_a_model_that_is_worse_than_none(target: float) -> None:
    result = hogwild.train(blobs(), task="logistic", eta0=100.0, target=target, epochs=50)
    assert result.reason == "target"
    assert objectives(result)[-1] <= min(target, 1.001 * np.log(2))


@REPEATED
@pytest.mark.parametrize("average", [False, True])
def test_an_epoch_is_done_again_from_the_model_before_it(
    monkeypatch: pytest.MonkeyPatch, average: bool
) -> None:
    """From a mean, where that is the model: the last weights may be far worse."""
    rows, armed = rcv1(3000, 2000)[0], []
    visit = RowWorker._visit

    class Spoiling(hogwild.Watcher):
        def epoch(self, row: dict[str, Any]) -> None:
            if row["epoch"] == 2 and not armed:
                armed.append(True)

    def visit_or_spoil(self: Any, *arguments: Any) -> float:
        if armed and armed.pop():
            self._shared["stored"][:] = 1e3
            armed.append(False)
        return visit(self, *arguments)

    options: dict[str, Any] = {"strategy": "hogwild", "workers": 1, "average": average, "tol": 0}
    plain = hogwild.train(rows, epochs=2, **options)
    monkeypatch.setattr(RowWorker, "_visit", visit_or_spoil)
    spoilt = hogwild.train(rows, epochs=4, watcher=Spoiling(), **options)
    monkeypatch.undo()
    assert [note[: len(TOO_LARGE) + 2] for note in spoilt.notes] == [f"{TOO_LARGE} 3"]
    weights = {"stored": np.append(plain.model.weights, np.float32(plain.model.intercept))}
    half = replace(plain.state, weights=weights, eta0=plain.state.eta0 / 2)
    on = hogwild.train(rows, epochs=2, start=half, **options)
    assert objectives(spoilt) == objectives(plain) + objectives(on)


@REPEATED
def test_an_overflow_ends_an_epoch_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it is told once, however often the rate is halved."""
    monkeypatch.setattr("hogwild.learn.linear.CHUNK_NONZEROS", 2000)
    rows, visited = rcv1(4000, 500)[0], []
    visit = RowWorker._visit

    def count(self: Any, task: Any, begin: int, end: int, clock: Any) -> float:
        visited.append((begin, end))
        return visit(self, task, begin, end, clock)

    monkeypatch.setattr(RowWorker, "_visit", count)
    options: dict[str, Any] = {"loss": "squared", "eta0": 256.0, "schedule": "constant"}
    result = hogwild.train(rows, workers=1, average=False, epochs=1, **options)
    starts = [number for number, (begin, _) in enumerate(visited) if begin == 0]
    ends = [visited[number - 1][1] for number in starts[1:]]  # of the epochs that were given up
    assert len(ends) > 3
    assert ends[0] < len(rows) / 4
    assert [note[: len(TOO_LARGE) + 2] for note in result.notes] == [f"{TOO_LARGE} 1"]
    assert objectives(result)[-1] < 0.5


@REPEATED
@pytest.mark.parametrize("strategy", ["ordered", "minibatch", "combine", "hogwild", "averaged"])
def test_the_same_bytes_for_any_number_of_workers(strategy: str) -> None:
    """At least of strategies that are deterministic; the others are not worse than no model."""
    rows, found = table(columns="age income", size=3000), set()
    fixed = strategy in ("ordered", "minibatch")
    for workers in (1, 2, 3):
        options = {"strategy": strategy, "workers": workers, "deterministic": fixed}
        result = hogwild.train(rows, task="logistic", eta0=1e-7, epochs=5, tol=0, **options)
        assert len([note for note in result.notes if note.startswith(TOO_LARGE)]) == 1
        assert objectives(result)[-1] <= 1.001 * np.log(2)
        found.add((result.model.weights.tobytes(), tuple(objectives(result)), result.state.eta0))
    assert len(found) == 1 or not fixed


# What training goes on from


@pytest.mark.parametrize("worse", [False, True])
def test_a_start_that_is_worse_than_no_model_may_get_better(worse: bool) -> None:
    rows = rcv1(3000, 2000)[0]
    first = hogwild.train(rows, epochs=1, average=False)
    weights = first.state.weights
    if worse:
        weights = {"stored": -3 * weights["stored"]}
    start = replace(first.state, weights=weights, eta0=1e-3)
    on = hogwild.train(rows, epochs=4, start=start, average=False, schedule="constant")
    assert not on.notes
    assert (objectives(on)[-1] > 1) == worse
    assert on.reason == "epochs"


@REPEATED
def test_a_start_is_not_made_worse() -> None:
    rows = blobs()
    first = hogwild.train(rows, task="logistic", epochs=5, tol=0)
    start = replace(first.state, eta0=1e4)
    on = hogwild.train(rows, task="logistic", epochs=5, tol=0, start=start)
    assert objectives(on)[-1] <= 1.001 * np.log(2)
    assert on.state.eta0 < 1e4


# The parts


def test_the_objective_at_zero_weights_is_what_the_kernels_find() -> None:
    rows = blobs()
    for loss in loss_names("svm"):
        problem = LinearProblem(rows, None, Config(loss=loss))
        zero = {name: np.zeros(size, kind) for name, (size, kind) in problem.shared().items()}
        measured = problem.evaluate(zero, "train", 0)[0] / len(rows)
        expected = measured or np.inf  # nothing is learned from a loss that is 0 from the start
        assert problem._at_zero == pytest.approx(expected)


@pytest.mark.parametrize(
    ("objective", "best", "wrong", "risen"),
    [
        (1.0005, np.inf, False, False),
        (1.002, np.inf, True, True),
        (0.21, 0.2, False, True),
        (0.39, 0.2, False, True),
        (0.41, 0.2, True, True),
        (0.2001, 0.2, False, False),
        (0.19, 0.2, False, False),
    ],
)
def test_what_is_a_rise_and_what_is_wrong(
    objective: float, best: float, wrong: bool, risen: bool
) -> None:
    assert progress.went_wrong(objective, best, 1.0) == wrong
    assert progress.has_risen(objective, min(best, 1.0)) == risen
    assert not progress.went_wrong(objective, best, np.inf)


def test_the_largest_columns_by_their_stored_values() -> None:
    X = np.zeros((100, 5))
    X[:, 0], X[::50, 1], X[:, 3] = 7.0, -1000.0, 0.5
    rows = hogwild.Rows(X, np.arange(100) % 2)
    assert largest_columns(rows, 2) == [(1, 1000.0), (0, 7.0)]
    assert largest_columns(rows, 9) == [(1, 1000.0), (0, 7.0), (3, 0.5)]
    assert largest_columns(hogwild.Rows(np.zeros((3, 2)), [0, 1, 0]), 3) == []
