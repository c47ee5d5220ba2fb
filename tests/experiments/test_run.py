"""What `make run-experiment` reads, runs and says."""

import json
import math
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from experiments import experiment as runs
from experiments import report, run, run_ratings, run_rows
from hogwild import OptionError
from hogwild.data.synthetic_ratings import movielens

SHAPE = {"users": 12_080, "items": 7_412, "ratings": 4_000_000}
RATINGS = """
[data]
kind = "ratings"
users = 6000
items = 4000
ratings = 1000000
[options]
task = "mf"
rank = 4
epochs = 2
tol = 0
"""
ROWS = """
[data]
columns = 2000
[options]
task = "svm"
epochs = 2
tol = 0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where configs are read and records are written."""
    (tmp_path / "configs").mkdir()
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    monkeypatch.setattr(report, "OUT", tmp_path / "out")
    monkeypatch.setattr(runs, "REPEATS", 2)
    monkeypatch.setattr(run, "usable_cores", lambda: 2)
    return tmp_path


def written(folder: Path, text: str, name: str = "x") -> Path:
    path = folder / "configs" / f"{name}.toml"
    path.write_text(text)
    return path


def test_every_config_that_is_there_can_be_run() -> None:
    found = runs.experiments(run.KINDS)
    assert {"rcv1-svm", "rcv1-logistic", "movielens-mf"} <= {one.name for one in found}
    assert {one.kind for one in found} == set(run.KINDS)
    data = [(one.kind, one.data) for one in found]
    changes = sum(some != other for some, other in pairwise(data))
    assert changes + 1 == len({str(one) for one in data})  # the same data is drawn once


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[data]\nkind = 'stars'", "there is no data of the kind 'stars'; there is rows, ratings"),
        ("[data]\nkind = 3", "there is no data of the kind 3"),
        ("[date]\nseed = 1", "date is unknown; there are data, options"),
        ("[data]\nrows = 5", "rows is unknown; there are columns, seed"),
        (RATINGS.replace("users = 6000", "columns = 9"), "columns is unknown; there are users"),
        (RATINGS.replace("users = 6000", ""), "needs users: how many with ROWS=200000"),
        (RATINGS.replace("6000", "'many'"), "users is 'many'; it must be a whole number"),
        (RATINGS.replace("6000", "6e3"), "users is 6000.0; it must be a whole number"),
        (RATINGS.replace('"mf"', '"svm"'), "rank: only for the task mf"),
        (ROWS.replace('"svm"', '"mf"'), "the task mf does not learn from rows"),
        (ROWS.replace("[data]", "[data]\nkind = 'ratings'"), "columns is unknown"),
        ("[data]\nkind='ratings'\nusers=9\nitems=9\nratings=40", "svm does not learn from ratings"),
        (ROWS.replace("epochs", "epoch"), "epoch: there is no such option; did you mean epochs"),
        (ROWS.replace("2000", "2,000"), "x.toml"),
    ],
)
def test_what_no_experiment_is(folder: Path, text: str, said: str) -> None:
    path = written(folder, text)
    with pytest.raises(OptionError) as problem:
        runs.experiments(run.KINDS)
    assert str(problem.value).startswith(str(path))
    assert said in str(problem.value)


@pytest.mark.parametrize("rows", [100, 1000, 20_000, 200_000, 1_234_567, 5_000_000])
def test_with_the_rows_go_ratings_of_the_same_density(rows: int) -> None:
    found = run_ratings.scaled(rows, SHAPE | {"seed": 3})
    assert found["ratings"] == 20 * rows
    assert found["users"] / found["items"] == pytest.approx(12_080 / 7_412, rel=0.01)
    density = found["ratings"] / found["users"] / found["items"]
    assert density == pytest.approx(4_000_000 / 12_080 / 7_412, rel=0.01)
    assert found["seed"] == 3
    assert rows != 200_000 or found == SHAPE | {"seed": 3}


def test_ratings_are_split_and_the_least_error_is_that_of_what_was_planted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = run_ratings.generate(1000, SHAPE | {"seed": 1})
    sizes = run_ratings.scaled(1000, SHAPE)
    ratings, planted = movielens(**sizes, seed=1)
    assert len(data.train) + len(data.test) == len(ratings) == 20_000
    assert len(data.test) == pytest.approx(2000, abs=6 * math.sqrt(20_000 * 0.1 * 0.9))
    assert data.test.values is not None
    errors = planted.scores(data.test.users, data.test.items) - data.test.values
    assert data.least_rmse == pytest.approx(float(np.sqrt(np.mean(errors**2))), rel=1e-5)
    assert f"{len(data.train):,} ratings, and {len(data.test):,} to test on" in (
        capsys.readouterr().out
    )


def test_a_fingerprint_tells_models_apart() -> None:
    ratings, _ = movielens(30, 20, 200)
    options: dict[str, Any] = {"rank": 3, "epochs": 2, "tol": 0}
    model = hogwild.train(ratings, **options).model
    assert run_ratings.fingerprint(model) == run_ratings.fingerprint(model)
    prints = {run_ratings.fingerprint(model)}
    for name in ("user_factors", "item_factors", "user_biases", "item_biases"):
        changed = hogwild.train(ratings, **options).model
        assert run_ratings.fingerprint(changed) == run_ratings.fingerprint(model)
        array = getattr(changed, name).copy()
        array.flat[0] = np.nextafter(array.flat[0], np.float32(9))
        object.__setattr__(changed, name, array)
        prints.add(run_ratings.fingerprint(changed))
    assert len(prints) == 5


def a_summary(workers: int, *models: str) -> run_ratings.Summary:
    return run_ratings.Summary("x", workers, 1.0, 0.1, 2, 0.5, 0.7, 0.8, 1e6, 1.0, list(models))


def test_the_same_bytes_are_those_of_all_runs() -> None:
    same = [a_summary(1, "a", "a"), a_summary(2, "a", "a")]
    assert run_ratings.same_bytes(same) == "x: same bytes with 1 and 2 workers: yes"
    assert run_ratings.same_bytes(same[:1]) == "x: same bytes with 1 worker: yes"
    for other in (a_summary(2, "b", "b"), a_summary(2, "a", "b")):
        assert run_ratings.same_bytes([same[0], other]).endswith(": NO")


def test_all_of_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written(folder, RATINGS, "some-mf")
    written(folder, RATINGS.replace("rank = 4", "rank = 5"), "more-mf")
    written(folder, ROWS, "some-svm")
    monkeypatch.setattr(sys, "argv", ["run.py", "--rows", "2000"])
    assert report.command(run.main) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    heads = [line.split("  ")[0] for line in lines]
    assert heads.count("Data") == 2
    for name in ("some-mf", "more-mf", "some-svm"):
        assert [line.split()[1] for line in lines if line.split("  ")[0] == name] == ["1", "2"]
    for name in ("some-mf", "more-mf"):
        assert f"{name}: same bytes with 1 and 2 workers: yes" in lines
    assert "What the ratings were made from has a test RMSE of 0." in out
    record = [json.loads(line) for line in (folder / "out/run-experiment.jsonl").open()]
    kinds = [row["kind"] for row in record]
    assert kinds[0] == "header"
    assert kinds.count("epoch") == 3 * 2 * 2 * 2  # experiments, repeats, workers, epochs
    summaries = [row for row in record if row["kind"] == "summary"]
    assert [(row["experiment"], row["workers"]) for row in summaries] == [
        *(("some-svm", 1), ("some-svm", 2)),
        *(("more-mf", 1), ("more-mf", 2), ("some-mf", 1), ("some-mf", 2)),
    ]
    for row in summaries[2:]:
        assert len(row["models"]) == 2
        assert row["train_rmse"] > 0
        assert row["epochs"] == 2


def test_numbers_of_workers_take_turns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(folder, RATINGS)
    asked = []
    train = hogwild.train

    def spy(*data: Any, **options: Any) -> Any:
        asked.append((options["workers"], options["rank"], options["epochs"]))
        return train(*data, **options)

    monkeypatch.setattr(hogwild, "train", spy)
    run.run(1000)
    assert asked == [(1, 4, 2), (2, 4, 2)] * 2


def test_only_one_core(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(folder, RATINGS, "mf")
    monkeypatch.setattr(run, "usable_cores", lambda: 1)
    record = run.run(1000)
    assert [row["workers"] for row in record if row["kind"] == "summary"] == [1]


def test_wrong_usage_and_wrong_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "--rows", "5"])
    with pytest.raises(SystemExit) as leaving:
        run.main()
    assert leaving.value.code == 2
    written(folder, RATINGS.replace("items = 4000", "items = 100"), "crowded")
    monkeypatch.setattr(sys, "argv", ["run.py", "--rows", "1000"])
    assert report.command(run.main) == 2
    assert "at most half" in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_a_gap_that_nobody_looked_for_is_not_shown(folder: Path) -> None:
    written(folder, ROWS + 'solver = "sgd"\nobjective_every = 0\n')
    rows = [line for line in run.run(200) if "first_gap" in line]
    assert [row["first_gap"] for row in rows] == [None, None]
    assert all(row["gap"] > 0 for row in rows)


def test_verdict_of_one_worker_only() -> None:
    row = run_rows.Summary("x", 1, 1.0, 2, 0.5, 0.1, 0.1, 0.1, 1e6, 1.0, "hogwild", "as asked")
    assert "Only one core" in run_rows.verdict([row])
