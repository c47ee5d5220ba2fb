"""Search: folds and paths are trainings on copies of their rows, and the best one is picked."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from scipy import sparse

import hogwild
from hogwild import Rows, WorkerError, coordinator, logspace, search, selection, train
from hogwild.data.folds import folds, held_out
from hogwild.data.synthetic import rcv1
from hogwild.results import State, Watcher

SIZE, COLUMNS = 900, 300
USUAL: dict[str, Any] = {"task": "logistic", "epochs": 8, "workers": 1}
PATH = [1e-2, 1e-3, 1e-4]


def noisy(seed: int = 0, weighted: bool = False) -> Rows:
    random = np.random.default_rng(seed)
    X = sparse.random(SIZE, COLUMNS, 0.05, "csr", np.float32, random)
    weights = np.random.default_rng(7).normal(size=COLUMNS)
    scores = X @ weights + 0.8 * random.normal(size=SIZE)
    counted = random.random(SIZE) + 0.1 if weighted else None
    return Rows(X, np.where(scores > 0, "yes", "no"), sample_weight=counted)


def numbers() -> Rows:
    rows = noisy()
    y = np.where(rows.y == "yes", 2.0, -2.0) + np.random.default_rng(2).normal(size=SIZE)
    return Rows(rows.to_scipy(), y)


def same(one: Any, other: Any) -> bool:
    return bool(one.weights.tobytes() == other.weights.tobytes()) and (
        one.intercept == other.intercept
    )


def judged(fold: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fold.items() if name != "epochs"}


# Folds


@pytest.mark.parametrize("task", ["logistic", "svm", "regression"])
def test_folds_are_trainings_on_copies_that_lack_what_judges_them(task: str) -> None:
    rows = numbers() if task == "regression" else noisy(weighted=True)
    options = USUAL | {"task": task, "seed": 4}
    result = search(rows, folds=4, **options)
    (row,) = result.table
    splits, _ = folds(SIZE, 4, 4, None if task == "regression" else rows.y)
    for (learned, held), fold in zip(splits, row["folds"], strict=True):
        copied = train(rows.take(learned), **options)
        found = copied.model.evaluate(rows.take(held))
        assert judged(fold) == {name: found[name] for name in judged(fold)}
        assert fold["epochs"] == len(copied.trace)
    for name in judged(row["folds"][0]):
        values = [fold[name] for fold in row["folds"]]
        if None not in values:
            assert row[name] == pytest.approx(np.mean(values))
            assert row[f"{name}_std"] == pytest.approx(np.std(values, ddof=1))
    assert same(result.model, train(rows, **options).model)
    assert result.best == {}


def test_the_table_is_the_same_with_any_number_of_workers() -> None:
    rows, tables = noisy(), []
    for workers in (1, 2, 5):
        given = USUAL | {"workers": workers, "deterministic": True}
        result = search(rows, folds=3, l2=PATH, **given)
        tables.append([row | {"seconds": 0} for row in result.table])
    assert tables[0] == tables[1] == tables[2]


def test_folds_that_stop_early_hold_out_rows_of_their_own() -> None:
    rows = noisy()
    options = USUAL | {"l2": 1e-7, "epochs": 60, "tol": 0, "early_stopping": 0.2}
    result = search(rows, folds=3, **options)
    (row,) = result.table
    splits, _ = folds(SIZE, 3, 0, rows.y)
    copied = [train(rows.take(learned), **options) for learned, _ in splits]
    assert row["reasons"] == [some.reason for some in copied] == ["overfitting"] * 3
    best = [some.model.about["trace"]["last"]["epoch"] for some in copied]
    assert [fold["epochs"] for fold in row["folds"]] == best
    last = {"early_stopping": None, "solver": "sgd", "epochs": round(np.mean(best))}
    final = train(rows, **(options | last))
    assert same(result.model, final.model)


def test_the_last_training_is_by_the_solver_of_the_folds() -> None:
    for given in ({"folds": 3, "early_stopping": 0.2}, {"l2": PATH}):
        found = search(numbers(), task="regression", **given)
        assert found.model.about["options"]["solver"] == "sgd"


def test_a_class_that_some_folds_lack_is_said() -> None:
    rows = noisy()
    y = np.full(SIZE, "usual")
    y[:3] = "rare"
    few = Rows(rows.to_scipy(), y)
    with pytest.warns(hogwild.HogwildWarning, match="3 rows have the label rare.* 2 of the 5"):
        result = search(few, folds=5, **USUAL)
    aucs = [fold["auc"] for fold in result.table[0]["folds"]]
    assert aucs.count(None) == 2
    assert result.table[0]["auc"] is None
    assert result.table[0]["error"] is not None
    y[1:3] = "usual"
    with pytest.raises(hogwild.DataError, match="only one row has the label rare"):
        search(Rows(rows.to_scipy(), y), folds=5, **USUAL)


# Paths


def by_hand(learned: Rows, judge: Rows | None, options: Any) -> list[Any]:
    """A path on copies: each training begins with the weights of the one before."""
    results: list[Any] = []
    start = None
    for l2 in PATH:
        results.append(train(learned, validate=judge, start=start, l2=l2, **options))
        start = State(results[-1].state.weights, 0, 0, 0.0)
    return results


@pytest.mark.parametrize("judge", ["share", "rows", "folds"])
def test_a_path_is_trainings_from_strong_to_weak_on_copies(judge: str) -> None:
    rows, other = noisy(), noisy(seed=1)
    if judge == "rows":
        given, splits = {"validate": other}, [(rows, other)]
    elif judge == "share":
        learned, held = held_out(SIZE, 0.2, 0, rows.y)
        given = {"early_stopping": 0.2}
        splits = [(rows.take(learned), rows.take(held))]
    else:
        given = {"folds": 3}
        parts, _ = folds(SIZE, 3, 0, rows.y)
        splits = [(rows.take(learned), rows.take(held)) for learned, held in parts]
    result = search(rows, l2=list(reversed(PATH)), **given, **USUAL)
    assert [row["l2"] for row in result.table] == PATH
    losses = np.empty((len(splits), len(PATH)))
    for which, (learned, held) in enumerate(splits):
        copied = by_hand(learned, None if judge == "folds" else held, USUAL)
        losses[which] = [some.model.evaluate(held)["loss"] for some in copied]
    means = losses.mean(axis=0)
    assert [row["loss"] for row in result.table] == pytest.approx(means.tolist(), rel=1e-12)
    assert result.best == {"l2": PATH[int(np.argmin(means))]}
    picked = result.table[int(np.argmin(means))]
    options = USUAL | result.best | ({} if judge == "folds" else {"solver": "sgd"})
    if judge != "rows" and "overfitting" in picked["reasons"]:
        options["epochs"] = min(8, round(picked["epochs"]))
    final = train(rows, validate=other if judge == "rows" else None, **options)
    assert same(result.model, final.model)


def test_without_a_judge_a_tenth_is_held_out() -> None:
    rows = noisy()
    one = search(rows, l2=PATH, **USUAL)
    other = search(rows, l2=PATH, early_stopping=0.1, **USUAL)
    assert [row["loss"] for row in one.table] == [row["loss"] for row in other.table]


@pytest.mark.parametrize(
    ("task", "metric", "pick"),
    [
        ("logistic", "auc", max),
        ("logistic", "error", min),
        ("regression", "r2", max),
        ("regression", "mae", min),
    ],
)
def test_the_best_by_a_metric_is_picked(task: str, metric: str, pick: Any) -> None:
    rows = numbers() if task == "regression" else noisy()
    result = search(
        rows, l2=logspace(1e-5, 1, 6), folds=3, metric=metric, **(USUAL | {"task": task})
    )
    values = [row[metric] for row in result.table]
    assert result.best["l2"] == result.table[values.index(pick(values))]["l2"]
    assert max(values) > min(values)


def test_several_options_are_compared_in_all_combinations() -> None:
    rows = numbers()
    options = USUAL | {"task": "regression", "loss": "huber"}
    result = search(rows, l2=PATH, epsilon=(0.1, 1.0), metric="mae", folds=2, **options)
    pairs = [(row["epsilon"], row["l2"]) for row in result.table]
    assert pairs == [(epsilon, l2) for epsilon in (0.1, 1.0) for l2 in PATH]
    assert set(result.best) == {"epsilon", "l2"}
    alone = search(rows, l2=PATH, epsilon=1.0, metric="mae", folds=2, **options)
    assert [row["mae"] for row in alone.table] == [row["mae"] for row in result.table[3:]]


def test_values_that_diverge_are_not_picked() -> None:
    rows = numbers()
    X = sparse.csr_matrix(rows.to_scipy() * 1000)
    options = USUAL | {"task": "regression", "tol": 0, "epochs": 2, "average": False}
    large = Rows(X, rows.y)
    result = search(large, eta0=[1e30, 1e-9], folds=2, **options)
    assert result.best == {"eta0": 1e-9}
    assert result.table[0]["reasons"] == ["diverged"] * 2
    with pytest.raises(hogwild.DivergenceError):
        search(large, eta0=[1e30, 1e29], folds=2, **options)


# Values


def test_values_between() -> None:
    values = logspace(1e-6, 1e-2, 9)
    assert values[::2] == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]
    assert np.diff(np.log(values)) == pytest.approx(np.log(10) / 2)
    rows = noisy()
    one, other = (search(rows, l2=given, **USUAL) for given in ("1e-4:1e-2:3", PATH))
    assert [row["l2"] for row in one.table] == [row["l2"] for row in other.table]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"l2": "0:1:3"}, "l2: from 0 to 1; values go up from a number above 0"),
        ({"l2": "1:0.1:3"}, "l2: from 1 to 0.1; values go up"),
        ({"l2": "1:1:3"}, "l2: from 1 to 1; values go up"),
        ({"l2": "0.1:1:1"}, "l2: 1 values; there must be 2 to 1,000"),
        ({"l2": "0.1:1:1.5"}, "neither a number nor FROM:TO:COUNT, such as 1e-6:1e-2:9"),
        ({"l2": "0.1:1"}, "neither a number nor FROM:TO:COUNT"),
        ({"l2": "a:b:c"}, "neither a number nor FROM:TO:COUNT"),
        ({"l2": []}, r"l2: \[\] is not a list of one or more numbers"),
        ({"l2": ["a"]}, r"l2: \['a'\] is not a list"),
        ({"l2": [-1, 1]}, "l2: must be at least 0"),
        ({"workers": [1, 2], "folds": 2}, "workers: it takes one value; only .*l2"),
        ({"folds": 1}, "folds: 1 is not a whole number from 2 on"),
        ({"folds": 2.0}, "folds: 2.0 is not"),
        ({"folds": SIZE + 1}, "from 2 to 900, the number of rows"),
        ({"folds": 2, "metric": "rmse"}, "metric: 'rmse' is not one of loss, error, log_loss, auc"),
        ({"folds": 2, "validate": noisy(1)}, "validate: not together with folds"),
        ({}, "folds: give their number, or several values of an option"),
        ({"folds": 2, "task": "mf"}, "task: search compares linear models only; for mf, train"),
        ({"l2": PATH, "objective_every": 0}, "early_stopping: it needs an objective_every of 1"),
        ({"folds": 2, "tall": 1}, "tall: there is no such option"),
        (
            {"task": "regression", "loss": "quantile", "quantile": [0.1, 0.5], "folds": 2},
            "metric: each value of quantile is another loss, .*; give one of rmse, mae, r2",
        ),
        (
            {"folds": 2, "task": "svm", "metric": "log_loss"},
            "log_loss does not exist for this loss",
        ),
    ],
)
def test_what_cannot_be_searched(given: Any, words: str) -> None:
    with pytest.raises(hogwild.OptionError, match=words):
        search(noisy(), **({"task": "logistic", "epochs": 2} | given))


# What is kept


def test_the_record_has_the_table(tmp_path: Path) -> None:
    path, model = tmp_path / "trace.jsonl", tmp_path / "model.hog"
    result = search(noisy(), l2=PATH, folds=2, trace=path, model=model, **USUAL)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    kinds = [row["kind"] for row in rows]
    epochs = len(result.trace)
    assert kinds == ["header", *["compared"] * 3, "picked", *["epoch"] * epochs, "end"]
    assert rows[1:4] == result.table
    assert rows[4]["options"] == result.best
    assert same(hogwild.load_model(model), result.model)


class Interrupting(Watcher):
    def __init__(self, rows: int) -> None:
        self.left = rows

    def search(self, row: Any) -> None:
        self.left -= row["kind"] == "compared"
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("given", [{}, {"folds": 2, "workers": 2}], ids=["share", "folds"])
def test_an_interrupt_keeps_the_best_so_far(given: Any, tmp_path: Path) -> None:
    model, trace = tmp_path / "model.hog", tmp_path / "trace.jsonl"
    files = {"model": model, "trace": trace}
    rows = noisy()
    result = search(rows, l2=PATH, watcher=Interrupting(2), **files, **(USUAL | given))
    assert result.reason == "interrupted"
    assert [row["l2"] for row in result.table] == PATH[: len(result.table)]
    assert len(result.table) >= 2
    assert same(hogwild.load_model(model), result.model)
    assert json.loads(trace.read_text().splitlines()[-1])["reason"] == "interrupted"
    if not given:
        assert result.best["l2"] == min(result.table, key=lambda row: row["loss"])["l2"]
        learned, held = held_out(SIZE, 0.1, 0, rows.y)
        copied = by_hand(rows.take(learned), rows.take(held), USUAL)
        assert same(result.model, copied[PATH.index(result.best["l2"])].model)


# With more folds than workers, the first line comes when the first folds have been through all
@pytest.mark.parametrize("folds_given", [["--folds", "2"], []], ids=["folds", "share"])
def test_ctrl_c_saves_the_best_so_far(folds_given: Any, tmp_path: Path, start: Any) -> None:
    hogwild.save(rcv1(2_000, columns=3_000)[0], tmp_path / "rows.svm")
    command = [sys.executable, "-m", "hogwild", "train", tmp_path / "rows.svm", *folds_given]
    options = ["--l2", "1e-9:1:900", "--epochs", "30", "--tol", "0", "--model", tmp_path / "m.hog"]
    running = start([str(word) for word in [*command, *options, "--workers", "2"]])
    lines = [running.stdout.readline() for _ in range(4)]
    assert lines[0].startswith("comparing 900 values of l2")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "interrupted; the model so far is in" in err
    assert re.search(r"^interrupted after \d+ epochs", out, re.M)
    assert len(hogwild.load_model(tmp_path / "m.hog").weights) == 3_000


class Killing(Watcher):
    """Kills a worker when a row, with the number that it counts down to, is told."""

    def __init__(self, call: str, number: int) -> None:
        self.call, self.left = call, number

    def _kill(self, call: str) -> None:
        self.left -= call == self.call
        if call == self.call and self.left == 0:
            os.kill(psutil.Process().children()[-1].pid, signal.SIGKILL)

    def start(self, header: Any) -> None:
        self._kill("start")

    def epoch(self, row: Any) -> None:
        self._kill("epoch")


@pytest.mark.parametrize(
    ("call", "number", "words"),
    [
        ("epoch", 2, "Epoch 2 was the last one finished; its weights are in"),
        ("start", 2, r"left no model; the best model so far \(l2 0.01\) is in"),
        ("epoch", 6, r"Epoch 2 was the last one finished; the best model so far \(l2 0.01\) is in"),
    ],
    ids=["the first training", "the second, at its start", "the second, later"],
)
def test_a_killed_worker_leaves_the_best_model_so_far(
    call: str, number: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = Killing(call, number)
    monkeypatch.setattr(selection, "Quiet", lambda: killer)
    monkeypatch.setattr(coordinator, "DEATHS", 0)
    model, trace = tmp_path / "model.hog", tmp_path / "trace.jsonl"
    options = USUAL | {"workers": 2, "epochs": 4, "tol": 0, "eta0": 0.1, "patience": 4}
    with pytest.raises(WorkerError, match=f"SIGKILL.*{words} .*model.hog") as told:
        search(noisy(), l2=PATH, model=model, trace=trace, **options)
    result = told.value.result
    assert (result.reason, result.best) == ("died", {"l2": 0.01})
    assert len(result.table) == (number != 2 or call != "epoch")
    assert same(hogwild.load_model(model), result.model)
    assert json.loads(trace.read_text().splitlines()[-1])["reason"] == "died"


@pytest.mark.parametrize(
    ("call", "words"),
    [("start", "left no model; the best model so far"), ("epoch", "finished; its weights are")],
)
def test_a_worker_killed_in_the_last_training_leaves_a_model(
    call: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "DEATHS", 0)
    model, options = tmp_path / "model.hog", USUAL | {"workers": 2, "eta0": 0.1}
    with pytest.raises(WorkerError, match=f"SIGKILL.*{words}") as told:
        search(noisy(), l2=PATH, model=model, watcher=Killing(call, 1), **options)
    assert len(told.value.result.table) == len(PATH)
    assert same(hogwild.load_model(model), told.value.result.model)


def test_a_search_on_the_command_line(tmp_path: Path, start: Any) -> None:
    hogwild.save(rcv1(1_000, columns=500)[0], tmp_path / "rows.svm")
    command = [
        sys.executable,
        "-m",
        "hogwild",
        "train",
        str(tmp_path / "rows.svm"),
        "--epochs",
        "3",
    ]
    running = start([*command, "--folds", "3"])
    out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].split() == ["fold", "loss", "error", "epochs"]
    firsts = [line.split()[0] for line in lines[2:8]]
    assert firsts == ["1", "2", "3", "mean", "spread", "training"]
    running = start([*command, "--l2", "1e-4:1e-2:3", "--json"])
    out, _ = running.communicate(timeout=60)
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["kind"] for row in rows][:6] == ["search", *["compared"] * 3, "picked", "header"]
    for wrong in (["--folds", "1"], ["--l2", "1:2"], ["--metric", "auc"]):
        running = start([*command, *wrong])
        _, err = running.communicate(timeout=60)
        assert running.returncode == 2
        assert err.startswith(f"hogwild: {wrong[0]}: ")


def test_a_path_of_l1_goes_on_from_weights_that_few_rows_led_to():
    """Where an epoch undoes much, the objective of the start is asked for."""
    X = sparse.random(60, 400, 0.05, format="csr", random_state=0)
    y = np.random.default_rng(0).integers(0, 2, 60)
    found = hogwild.search(hogwild.Rows(X, y), task="logistic", l1=[1e-3, 1e-2, 1e-1])
    assert len(found.table) == 3
