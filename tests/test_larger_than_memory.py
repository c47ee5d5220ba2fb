"""Rows that stay in their file: every row once an epoch, and what training in memory comes to."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import DataError, HogwildError, OptionError
from hogwild.config import Config
from hogwild.data import mapped_rows, rows_file
from hogwild.data.mapped_rows import MappedRows
from hogwild.data.rows_file import StoredRows
from hogwild.data.synthetic import rcv1
from hogwild.kernels.order import shuffle_chunks
from hogwild.kernels.views import NO_FETCHING, RowView, task_of, view
from hogwild.learn import placing
from hogwild.learn.heads import Heads
from hogwild.learn.linear import LinearProblem
from hogwild.learn.solver import Outcome
from hogwild.loops.windows import Windows

ROWS, COLUMNS = 40_000, 500
MEMORY = "10M"  # less than the rows take, where a process takes nothing


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, and a process that counts for nothing."""
    monkeypatch.setattr(rows_file, "BLOCK_BYTES", 1 << 11)
    monkeypatch.setattr(placing, "BASE", 0)
    monkeypatch.setattr(placing, "WORKER", 0)


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    """Sorted by their labels: the worst order there is."""
    made, _ = rcv1(ROWS, columns=COLUMNS, nonzeros=30)
    return made.take(np.argsort(made.y, kind="stable"))


@pytest.fixture
def file(rows: hogwild.Rows, tmp_path: Path) -> Path:
    hogwild.save(rows, tmp_path / "train.rows")
    return tmp_path / "train.rows"


def mapped(file: Path) -> MappedRows:
    rows = hogwild.load(file)
    assert isinstance(rows, StoredRows)
    return MappedRows.of(rows)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux says so")
@pytest.mark.parametrize(("memory", "said"), [(0, True), (1 << 40, False)])
def test_no_more_than_blocks_is_read_where_memory_cannot_hold_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, memory: int, said: bool
) -> None:
    monkeypatch.setattr(rows_file, "available_memory", lambda: memory)
    rows = mapped(file)
    parts = Path("/proc/self/smaps").read_text().split(f" {file}\n")[1:]
    flags = parts[-1].partition("VmFlags:")[2].partition("\n")[0].split()
    assert ("rr" in flags) == said  # a mapping that is read in any order
    assert len(rows)


def test_every_row_is_at_hand_once_an_epoch_with_its_own_values(
    rows: hogwild.Rows, file: Path
) -> None:
    stored = mapped(file)
    nothing = np.zeros(ROWS, np.uint64)
    arrays = nothing, nothing, np.zeros(1, np.uint32), np.zeros(1, np.float32)
    empty = view(RowView, *arrays, np.arange(ROWS, dtype=np.float32))
    heads = Heads("hinge", "signs")
    order = np.empty(ROWS, np.uint32)
    windows = Windows(stored, [order])
    for epoch in range(2):
        shuffle_chunks(order, 0, np.uint64(epoch), stored.file.each)
        task = task_of(empty, order, heads.scratch(), heads.shape(False), (), NO_FETCHING)
        done, seen = 0, []
        windows.begin([0])
        while done < ROWS:
            task, end = windows.open(task, done, ROWS)
            for row in order[done:end]:
                mine = slice(int(task.rows.begins[row]), int(task.rows.ends[row]))
                true = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
                assert task.rows.columns[mine].tobytes() == rows.indices[true].tobytes()
                assert task.rows.values[mine].tobytes() == rows.values[true].tobytes()
                seen.append(row)
            assert end - done <= stored.window
            done = end
        windows.rest()
        assert sorted(seen) == list(range(ROWS))


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_workers_share_all_rows_and_each_has_some_of_every_part(workers: int, file: Path) -> None:
    config = Config(memory=MEMORY, solver="sgd", workers=workers)
    problem = LinearProblem(hogwild.load(file), None, config)
    orders = []
    for rank in range(workers):
        first, end = problem.rows_of(workers, rank)
        orders.append(np.empty(end - first, np.uint32))
        problem.shuffle_share(orders[-1], workers, rank, 5, np.empty(0, np.float32))
        assert abs(np.median(orders[-1]) - ROWS / 2) < 0.02 * ROWS
    assert np.array_equal(np.sort(np.concatenate(orders)), np.arange(ROWS))


def test_one_worker_learns_the_same_bits_as_from_memory(
    rows: hogwild.Rows, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"eta0": 0.5, "average": False, "workers": 1, "epochs": 2}
    options["intercept"] = False  # whose rate is that of a sample
    away = hogwild.train(file, memory=MEMORY, **options)
    monkeypatch.setattr(Outcome, "chunk", mapped(file).file.each)  # the same order
    here = hogwild.train(rows, **options)
    assert away.model.weights.tobytes() == here.model.weights.tobytes()
    assert away.trace[-1]["objective"] == pytest.approx(here.trace[-1]["objective"], rel=1e-12)


@pytest.mark.parametrize("options", [{"strategy": "ordered"}, {"strategy": "minibatch"}])
def test_the_same_bytes_for_any_number_of_workers(options: dict[str, Any], file: Path) -> None:
    given: dict[str, Any] = {"epochs": 2, "eta0": 0.05, "memory": MEMORY} | options
    found = [hogwild.train(file, workers=workers, **given) for workers in (1, 2, 3)]
    assert len({result.model.weights.tobytes() for result in found}) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "sgd", "workers": 1},
        {"solver": "sgd", "strategy": "combine", "workers": 2},
        {"solver": "sgd", "strategy": "hogwild", "workers": 2},
        {"strategy": "ordered", "workers": 2},
        {"solver": "dual", "workers": 1, "tol": 1e-3, "epochs": None},
        {"solver": "dual", "workers": 2, "tol": 1e-3, "epochs": None},
        {"task": "logistic", "l1": 1e-4, "solver": "sgd"},
        {"strategy": "mixed", "workers": 2},
    ],
    ids=str,
)
def test_rows_sorted_by_label_are_learned_as_well_as_in_memory(
    options: dict[str, Any], rows: hogwild.Rows, file: Path
) -> None:
    given = {"epochs": 1, "test": file} | options
    away = hogwild.train(file, memory=MEMORY, **given)
    here = hogwild.train(rows, **given)
    objectives = [result.trace[-1]["objective"] for result in (away, here)]
    assert objectives[0] <= 1.01 * objectives[1]
    errors = away.trace[-1]["test_error"], away.trace[-1]["train_error"]
    assert errors[0] == pytest.approx(errors[1], abs=1e-3)
    assert away.model.evaluate(rows)["objective"] == pytest.approx(objectives[0], rel=1e-4)


def test_several_classes_and_weights_are_learned_from_the_file(
    rows: hogwild.Rows, tmp_path: Path
) -> None:
    y = np.argsort(np.argsort(rows.values[rows.indptr[:-1].astype(int)])) * 10 // ROWS
    given = rows.labelled(y).weighted(np.linspace(0.5, 1.5, ROWS))
    hogwild.save(given, tmp_path / "classes.rows")
    options: dict[str, Any] = {"epochs": 1, "workers": 1, "eta0": 0.5}
    away = hogwild.train(tmp_path / "classes.rows", memory=MEMORY, **options)
    here = hogwild.train(given, **options)
    assert away.header["chosen"]["solver"] == "sgd"
    assert away.trace[-1]["objective"] == pytest.approx(here.trace[-1]["objective"], rel=0.01)


def test_rows_that_fit_are_read_into_memory_and_others_are_said_to_stay(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = hogwild.train(file, memory="100M", epochs=1, workers=1)
    assert not fits.notes
    monkeypatch.setattr(placing, "available_memory", lambda: 10 << 20)
    with pytest.warns(hogwild.HogwildWarning, match="its rows stay on the disk. In memory they"):
        hogwild.train(file, epochs=1, workers=1)


def test_too_little_memory_is_refused_with_what_is_enough(file: Path) -> None:
    with pytest.raises(DataError, match=r"give a memory of (\d+)M or more") as refused:
        hogwild.train(file, memory="1M", epochs=1, workers=1)
    enough = str(refused.value).split("a memory of ")[1].split()[0]
    assert hogwild.train(file, memory=enough, epochs=1, workers=1).reason == "epochs"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"memory": "much"}, "memory: expected bytes, such as 500M or 2G, not 'much'"),
        ({"memory": "0"}, "memory: expected bytes"),
        ({"solver": "newton", "task": "logistic"}, "memory: it needs the solver sgd or dual"),
        ({"strategy": "strata"}, "memory: it needs another strategy than strata"),
        ({"early_stopping": 0.1}, "memory: it needs rows to judge by in a file of their own"),
    ],
)
def test_what_needs_all_rows_at_once_is_refused(
    options: dict[str, Any], problem: str, file: Path
) -> None:
    with pytest.raises(OptionError, match=problem):
        hogwild.train(file, **({"memory": MEMORY} | options))


def test_a_file_of_another_format_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("nonsense")
    with pytest.raises(OptionError, match=r"memory: it needs a \.rows file: hogwild convert"):
        hogwild.train(tmp_path / "a.svm", memory="1G")


def test_a_solver_that_needs_memory_says_so_where_there_is_too_little(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "available_memory", lambda: 10 << 20)
    with pytest.raises(DataError, match="the rows stay on the disk, and newton needs them in"):
        hogwild.train(file, solver="newton", task="logistic")
    with pytest.raises(DataError, match="a part of them is not to be had; give the other part"):
        hogwild.train(file, early_stopping=0.1)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_model_looks_at_rows_that_stay_in_their_file(
    classes: int, rows: hogwild.Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = rows.labelled(np.arange(ROWS) % classes)
    hogwild.save(given, tmp_path / "a.rows")
    model = hogwild.train(given.take(np.arange(1000)), epochs=1).model
    monkeypatch.setattr(mapped_rows, "available_memory", lambda: 1 << 20)
    away = hogwild.load(tmp_path / "a.rows")
    scores = model.decision_function(away)
    assert scores.tobytes() == model.decision_function(given).tobytes()
    found, here = model.evaluate(away), model.evaluate(given)
    assert found["objective"] == pytest.approx(here["objective"], rel=1e-9)
    assert found["error"] == here["error"]
    assert not away.is_open


@pytest.mark.parametrize("workers", [1, 2])
def test_damage_is_noticed_on_the_way(workers: int, file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(HogwildError, match=r"block [\d,]+ of [\d,]+, rows [\d,]+ to [\d,]+"):
        hogwild.train(file, memory=MEMORY, epochs=1, workers=workers, eta0=0.5)
