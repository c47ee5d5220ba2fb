"""What the tables say of given runs, the objective of all, and the peers' side of a request."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import environments, linear_peer, peers_linear
from experiments.environments import Answer, Environment, pins
from experiments.linear_peer import Problem, Trainer
from experiments.peers_linear import Case, Run, environment
from hogwild.data.synthetic import rcv1

PROBLEMS = [Problem("hinge", 1e-3), Problem("logistic", 1e-3), Problem("logistic", 0.0, 3e-4)]
RUNS = [Run("a", "1", 0.5, 0.1), Run("a", "2", 0.9, 0.009), Run("a", "3", 0.8, -1e-9)]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    rows = rcv1(400)[0]
    return Case(
        rows, peers_linear.in_memory(rows, tmp_path_factory.mktemp("rows")), Problem("hinge", 1e-3)
    )


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(peers_linear.report, "say", lines.append)
    return lines


@pytest.mark.parametrize(("gap", "seconds"), [(0.1, 0.5), (1e-2, 0.8), (1e-6, 0.8), (1e-12, 0.8)])
def test_the_fastest_that_came_near_enough_counts(gap: float, seconds: float) -> None:
    found = peers_linear.seconds_to(gap, RUNS)
    assert found and found.seconds == seconds
    assert peers_linear.seconds_to(gap, [Run("a", "1", 0.1, 2 * gap)]) is None


def test_a_row_of_the_table() -> None:
    assert peers_linear.cells("a", RUNS[:2]) == [
        "a",
        "0.900",
        "-",
        "-",
        "-",
        "9.0e-03",
        "0.900",
        "2",
    ]


def test_verdicts_are_of_the_goals_and_ratios(case: Case) -> None:
    mine = [Run("hogwild", "1e-02", 0.1, 0.009), Run("hogwild", "1e-03", 0.6, 0.0009)]
    mine.append(Run("hogwild", "1e-06", 1.0, 1e-7))
    others = [Run("a", "1", 0.5, 0.009), Run("b", "1", 0.3, 0.0001)]
    lines = peers_linear.verdicts(case, mine, others)
    assert [line.holds for line in lines] == [True, False, False, True, False]
    assert [line.factor for line in lines[:3]] == pytest.approx([3, 0.5, 0])
    assert [line.beside for line in lines[2:]] == ["b", "all of them", "all of them"]
    assert lines[3].cells()[1:4] == ["1.000 s", "never", "all of them"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_objective_by_hand(problem: Problem) -> None:
    X = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]])
    y, w = np.array([1.0, -1.0, -1.0]), np.array([0.5, -0.25])
    expected = 0.0
    for row, target in zip(X, y, strict=True):
        margin = target * (row[0] * w[0] + row[1] * w[1])
        hinge = max(0.0, 1 - margin)
        expected += (hinge if problem.loss == "hinge" else np.log(1 + np.exp(-margin))) / 3
    expected += problem.l2 / 2 * (0.25 + 0.0625) + problem.l1 * 0.75
    assert problem.objective(X, y, w) == pytest.approx(expected)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_ours_reaches_each_goal_with_a_proof(case: Case, problem: Problem) -> None:
    asked = case._replace(problem=problem)
    best = peers_linear.best_known(asked)
    assert best.gap < 1e-6
    runs, zeros = peers_linear.ours(asked, best)
    goals = peers_linear.GOALS_L1 if problem.l1 else peers_linear.GOALS
    assert [run.setting for run in runs] == list(map(str, goals))
    assert all(run.gap <= goal.gap * 1.01 for run, goal in zip(runs, goals, strict=True))
    assert (zeros is None) == (not problem.l1)


def test_the_sparse_problems_have_less_than_the_penalty_that_makes_all_zero(case: Case) -> None:
    asked = [problem for problem in peers_linear.problems(case.data) if problem.l1]
    largest = peers_linear.SHARES[0] * asked[0].l1
    for l1, zero in ((1.001 * largest, True), (0.9 * largest, False)):
        model = case._replace(problem=Problem("logistic", 0.0, l1)).train().model
        assert (not model.weights.any()) == zero


def test_every_peer_has_its_version_and_its_trainers() -> None:
    versions = {line.split("==")[0] for line in pins(peers_linear.VERSIONS).splitlines()}
    names = [trainer.name for some in linear_peer.TRAINERS.values() for trainer in some]
    assert set(linear_peer.TRAINERS) == set(linear_peer.PACKAGES)
    assert set(linear_peer.PACKAGES.values()) <= versions
    assert len(set(names)) == len(names)


def sweep(case: Case, fit: Any, **more: Any) -> list[dict[str, Any]]:
    trainer = Trainer("it", ("hinge",), lambda *_: fit, [1, 2, 3])
    request = {"threads": 1, "enough": 0.0, "budget": 100.0} | more
    return list(linear_peer.swept(trainer, case.data, case.problem, request))


def test_a_sweep_ends_when_near_enough_or_late(case: Case) -> None:
    zero = np.zeros(case.rows.columns)
    assert [row["setting"] for row in sweep(case, lambda _: zero)] == [1, 2, 3]
    assert sweep(case, lambda _: zero)[0]["objective"] == 1.0
    assert [row["setting"] for row in sweep(case, lambda _: zero, enough=1.0)] == [1]
    assert [row["setting"] for row in sweep(case, lambda _: zero, budget=0.0)] == [1]
    assert sweep(case, lambda _: zero * np.nan) == []


def test_a_trainer_that_fails_is_named(case: Case) -> None:
    def fit(setting: float) -> Any:
        raise ValueError(f"no {setting}")

    assert sweep(case, fit) == [{"trainer": "it", "problem": "ValueError('no 1')"}]


def test_comparison_has_tables_a_record_and_a_page(
    case: Case, said: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = [{"trainer": "x", "setting": 1, "seconds": 90.0, "objective": 0.0}]
    answers = {"celer": Answer([{"version": "1"}, *rows]), "snapml": Answer([], "Error: none <b>")}
    monkeypatch.setattr(Environment, "ask", lambda self, *_: answers[self.name])
    monkeypatch.setattr(peers_linear, "problems", lambda data: iter(PROBLEMS[1:2]))
    monkeypatch.setattr(peers_linear.report, "OUT", tmp_path)
    peers_linear.run(list(answers), [case.rows], 1.0)
    assert "Failed    snapml: Error: none <b>" in said
    assert any(line.startswith("x ") for text in said for line in text.splitlines())
    lines = [
        json.loads(line) for line in (tmp_path / "peers-linear.jsonl").read_text().splitlines()
    ]
    assert {line["kind"] for line in lines} == {"header", "optimum", "run", "verdict"}
    assert "cpu" in lines[0]["machine"]
    page = (tmp_path / "peers-linear.html").read_text()
    assert page.count("<svg viewBox") >= 1 and "http" not in page.replace("http-equiv", "")


def test_missing_peers_are_named(
    said: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environments, "PEERS", tmp_path)
    monkeypatch.setattr(peers_linear, "run", lambda names, *_: said.append(f"run {names}"))
    monkeypatch.setattr(sys, "argv", ["peers_linear.py", "--rows", "100"])
    peers_linear.main()
    assert sum("not installed: python" in line for line in said) == len(linear_peer.PACKAGES)
    assert said[-1] == "run []"


def test_what_builds_with_others_packages_gets_them_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "PEERS", tmp_path)
    commands = environment("lightning")._commands()
    assert "numpy<2" in commands[1] and "--no-build-isolation" in commands[2]
    assert all("--no-build-isolation" not in one for one in environment("celer")._commands())


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Case]:
    rows = rcv1(400)[0]
    yield Case(rows, peers_linear.in_memory(rows, tmp_path), PROBLEMS[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", list(linear_peer.PACKAGES))
def test_installed_peers_come_near(name: str, few: Case) -> None:
    if environment(name).missing():
        pytest.skip(f"{name} is not installed")
    for problem in PROBLEMS:
        trainers = [one for one in linear_peer.TRAINERS[name] if problem.kind in one.solves]
        case = few._replace(problem=problem)
        best = peers_linear.best_known(case)
        runs, failed = peers_linear.theirs(name, case, best, 3.0)
        assert not failed
        assert {run.trainer for run in runs} == {trainer.name for trainer in trainers}
        assert all(run.gap > -1e-6 for run in runs)
        for trainer in trainers:
            assert min(run.gap for run in runs if run.trainer == trainer.name) < 0.5
