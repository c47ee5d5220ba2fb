"""What `make textbooks` reads, trains and says."""

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from experiments import lesson, lesson_rates, orders, report, textbooks
from experiments.optimum import optimum
from experiments.run_rows import Data
from hogwild import OptionError, Rows
from hogwild.data.synthetic import rcv1

CONFIG = """
[data]
columns = 500
[problems.p]
options = { task = "svm", l2 = 1e-3 }
[trainings]
a = { solver = "sgd", epochs = 2, tol = 0 }
"""
TABLES, SUBSETS, RATES, ORDERS = textbooks.KINDS.values()


@pytest.fixture(scope="module")
def data() -> Data:
    return Data(rcv1(2000, 500)[0], rcv1(500, 500, first_row=2000)[0])


def read(tmp_path: Path, text: str, kind: lesson.Kind = SUBSETS) -> lesson.Lesson:
    (tmp_path / "x.toml").write_text(text)
    return lesson.lesson(tmp_path / "x.toml", kind)


def problem(
    tmp_path: Path, trainings: str, kind: lesson.Kind = SUBSETS, more: str = ""
) -> lesson.Problem:
    head = CONFIG.split("[trainings]", maxsplit=1)[0]
    return read(tmp_path, f"{head}{more}[problems.p.trainings]\n{trainings}", kind).problems[0]


def test_every_config_that_is_there_can_be_run() -> None:
    found = lesson.lessons(textbooks.KINDS)
    assert [one.name for one in found] == list(textbooks.KINDS)
    assert len({str(one.data) for one in found}) == 1  # it is drawn once
    folder = report.FOLDER / "configs" / "textbooks"
    assert {path.stem for path in folder.glob("*")} == set(textbooks.KINDS)


@pytest.mark.parametrize(
    ("kind", "old", "new", "said"),
    [
        (SUBSETS, "[data]", "[date]", "date is unknown; there are data, problems, trainings"),
        (SUBSETS, "columns", "rows", "rows is unknown; there are columns, seed"),
        (
            SUBSETS,
            "[problems.p]",
            "[problems.p]\nsorted = true",
            "sorted is unknown; there are opt",
        ),
        (SUBSETS, "epochs = 2", "epoch = 2", "epoch: there is no such option; did you mean epochs"),
        (
            SUBSETS,
            "epochs = 2",
            "epochs = [1, 2], rows = [3]",
            "epochs and rows have lists; one of",
        ),
        (SUBSETS, "epochs = 2", "seed = [1, 2]", "seed have lists; one of rows, tol, epochs may"),
        (TABLES, "epochs = 2", "epochs = [1, 2]", "epochs have lists; none may have one"),
        (SUBSETS, "epochs = 2", "epochs = [2, 0]", "epochs"),
        (SUBSETS, "epochs = 2", "rows = [100, 'all']", "rows is 'all'; it must be a whole number"),
        (SUBSETS, "epochs = 2", "rows = -1", "rows is -1; it must be a whole number"),
        (TABLES, "epochs = 2", "rows = 9", "rows: there is no such option"),
        (
            ORDERS,
            "epochs = 2",
            "order = 'best'",
            "order is 'best'; there are chunks, permuted, onc",
        ),
        (ORDERS, "epochs = 2", "epochs = 3", "order is ''; there are chunks, permuted, once"),
        (ORDERS, "= 1e-3 }", "= 1e-3 }\nby_label = 1", "by_label is 1; it must be true or false"),
        (TABLES, "= 1e-3 }", "= 1e-3 }\nby_label = true", "by_label is unknown; there are options"),
        (
            TABLES,
            "= 1e-3 }",
            "= 1e-3 }\npublished = [{ name = 'x' }]",
            "a published line needs nam",
        ),
        (TABLES, "a = {", "# {", "p has no trainings; give [problems.'p'.trainings]"),
        (TABLES, CONFIG, "", "there are no problems"),
        (TABLES, "= 500", "= 5,0", "x.toml"),
    ],
)
def test_what_no_lesson_is(
    tmp_path: Path, kind: lesson.Kind, old: str, new: str, said: str
) -> None:
    with pytest.raises(OptionError) as wrong:
        read(tmp_path, CONFIG.replace(old, new), kind)
    assert str(wrong.value).startswith(str(tmp_path / "x.toml"))
    assert said in str(wrong.value)


def test_a_training_has_a_point_for_each_value(tmp_path: Path, data: Data) -> None:
    found = problem(
        tmp_path,
        "epochs = { solver = 'sgd', tol = 0, workers = 1, epochs = [1, 3] }\n"
        "rows = { solver = 'sgd', tol = 0, workers = 1, epochs = 1, rows = [300, 5000, 9000] }\n"
        "few = { rows = 300 }\nmany = { rows = 3000 }\nall = {}",
    )
    by_name = {one.name: lesson.points(one, data) for one in found.trainings}
    assert [point.value for point in by_name["epochs"]] == [1, 3]
    assert [point.passes() for point in by_name["epochs"]] == [1, 3]
    assert [point.rows for point in by_name["rows"]] == [300, 2000]
    assert [len(by_name[name]) for name in ("few", "many", "all")] == [1, 0, 1]
    few = rcv1(300, 500)[0]
    alone = hogwild.train(few, task="svm", l2=1e-3, workers=1, **{"tol": 0, "epochs": 1} | SGD)
    assert by_name["rows"][0].objective == alone.trace[-1]["objective"]
    assert by_name["rows"][0].test == {
        name: value for name, value in alone.model.evaluate(data.test).items() if name in METRICS
    }


SGD = {"solver": "sgd"}
METRICS = ("loss", "error")


@pytest.mark.parametrize(("task", "loss"), [("svm", "hinge"), ("logistic", "logistic")])
def test_the_bound_is_below_the_optimum_and_near_it(data: Data, task: str, loss: str) -> None:
    one = lesson.Problem("p", {"task": task, "l2": 1e-3}, [], [], False)
    bound = lesson.bound(one, data.train)
    best = optimum(data.train, loss, 1e-3, True, 1e-9)
    assert bound.objective <= best.objective
    assert bound.gap(best.objective) <= 2 * lesson.CERTAINTY


@pytest.mark.parametrize("order", orders.ORDERS)
def test_orders_are_what_they_are_named_for(data: Data, order: str) -> None:
    config = hogwild.Config.of({"task": "svm", "solver": "sgd", "workers": 1, "seed": 4})
    one = orders.ORDERS[order](data.train, None, config)
    one.prepare()
    drawn = np.zeros((2, 1000), np.uint32)
    for seed, rows in enumerate(drawn):
        one.shuffle(rows, 700, seed, np.empty(0, np.float32))
    assert drawn.min() >= 700 and drawn.max() < 1700
    different = [len(np.unique(rows)) for rows in drawn]
    if order == "replacement":
        assert different == pytest.approx([632, 632], abs=60)  # 1 - 1/e of them
    else:
        assert different == [1000, 1000]
    assert (drawn[0] == drawn[1]).all() == (order in ("once", "stored"))
    assert (np.diff(drawn[0].astype(int)) == 1).all() == (order == "stored")


def test_without_replacement_the_gap_is_smaller_and_sorted_rows_must_be_permuted(
    tmp_path: Path, data: Data
) -> None:
    trainings = [
        f"{order} = {{ order = '{order}', solver = 'sgd', average = false, workers = 1, "
        "epochs = 8, tol = 0 }"
        for order in ("permuted", "stored", "replacement")
    ]
    ends = {}
    for by_label in ("false", "true"):
        found = problem(tmp_path, "\n".join(trainings), ORDERS, f"by_label = {by_label}\n")
        shown = ORDERS.shown(found, data)
        gaps = [line for line in shown.lines if line["kind"] == "gaps"]
        ends[by_label] = {line["training"]: line["gaps"][-1] for line in gaps}
        assert [row[0] for row in shown.rows] == ["permuted", "stored", "replacement"]
        assert shown.head[1:] == ["1", "2", "5", "8", "2 / 8"]
        assert all(len(line["gaps"]) == 8 for line in gaps)
    assert 3 * ends["false"]["permuted"] < ends["false"]["replacement"]
    assert 10 * ends["true"]["permuted"] < ends["true"]["stored"]
    assert ends["false"]["stored"] < ends["false"]["replacement"]


def test_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report, "OUT", tmp_path)
    monkeypatch.setattr(textbooks, "TESTED", 500)
    monkeypatch.setattr(sys, "argv", ["textbooks.py", "--rows", "600"])
    assert report.command(textbooks.main) == 0
    head, *lines = map(json.loads, (tmp_path / "textbooks.jsonl").read_text().splitlines())
    assert head["options"]["rows"] == 600
    page, out = (tmp_path / "textbooks.html").read_text(), capsys.readouterr().out
    for one in lesson.lessons(textbooks.KINDS):
        kind = textbooks.KINDS[one.name]
        assert escape(kind.TITLE) in page and kind.TITLE in out
        for problem in one.problems:
            assert problem.name in page and problem.name in out
            mine = [
                line
                for line in lines
                if (line["lesson"], line["problem"]) == (one.name, problem.name)
            ]
            fewer = {each.name for each in problem.trainings if each.rows <= 600}
            assert {line["training"] for line in mine if line["kind"] != "bound"} == fewer
    assert page.count('<svg viewBox="0 0 460 300"') == 6  # of all but the tables
    assert "23,642" in page and "published: SVMLight" in out
    assert "nan" not in page.lower()
    default: Any = next(line for line in lines if line.get("training") == "default")
    assert default["trace"][-1]["gap"] <= 1e-3


def test_wrong_usage_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["textbooks.py", "--only", "everything"])
    with pytest.raises(SystemExit) as ended:
        report.command(textbooks.main)
    assert ended.value.code == 2


def test_a_diverged_training_is_shown(tmp_path: Path, data: Data) -> None:
    rows = Rows(1e30 * data.train.to_scipy(), data.train.targets())
    found = problem(tmp_path, "x = { solver = 'sgd', workers = 1, eta0 = [1e30, 2e30] }", RATES)
    points = lesson_rates.points(found.trainings[0], Data(rows, data.test))
    assert [point.result for point in points] == [None, None]
    assert points[1].record() == {"value": 2e30, "rows": 2000, "diverged": True}
    bound = lesson.Bound(0.1, 0.0)
    assert lesson_rates.cells(found.trainings[0], points, bound, [1e30, 2e30])[1] == "diverged"


def test_an_optimum_that_cannot_be_proved_is_refused(data: Data) -> None:
    one = lesson.Problem("p", {"task": "svm", "l2": 0.0, "epochs": 1}, [], [], False)
    with pytest.raises(OptionError, match="p: its optimum cannot be proved; give an l2 above 0"):
        lesson.bound(one, data.train)
