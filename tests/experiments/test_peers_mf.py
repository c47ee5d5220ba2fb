"""What the tables say of given rows, who is missing and why, and the peers' side of a request."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments import environments, mf_peer, peers_mf
from experiments.environments import Answer, pins
from experiments.peers_mf import Comparison, Trainer, environment

Row = dict[str, Any]


def curve(*points: tuple[int, float, float | None], repeat: int = 0) -> list[Row]:
    names = ("epochs", "seconds", "test_rmse")
    return [dict(zip(names, point, strict=True)) | {"repeat": repeat} for point in points]


FALLING = curve((1, 0.5, 0.9), (2, 0.7, 0.8), (3, 0.6, 0.8), (4, 1.1, 0.79), (5, 1.4, 0.81))


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for the virtual environments."""
    monkeypatch.setattr(environments, "PEERS", tmp_path / ".peers")
    return tmp_path / ".peers"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(peers_mf.report, "say", lines.append)
    return lines


@pytest.mark.parametrize(
    ("target", "epochs"), [(0.95, 1), (0.8, 3), (0.79, 4), (0.7, None), (None, None)]
)
def test_target_is_reached_by_the_fewest_seconds(target: float | None, epochs: int | None) -> None:
    found = peers_mf.reached(FALLING, target)
    assert (found and found["epochs"]) == epochs


def test_errors_that_are_no_numbers_are_left_out() -> None:
    rows = [{"load_seconds": 1.0}, *curve((1, 0.1, None), (2, 0.2, np.nan), (3, 0.3, 0.9))]
    assert peers_mf.best(rows) == rows[-1]
    assert peers_mf.best(rows[:-1]) is None
    assert peers_mf.reached(rows, 10.0) == rows[-1]


def test_speed_is_that_of_the_epochs_after_the_first() -> None:
    rows = curve((1, 9.0, None), (2, 10.0, None), (4, 11.0, None), (8, 13.5, None))
    again = curve((2, 10.0, None), (8, 13.0, None), repeat=1)
    assert peers_mf.rate(rows + again, 1000) == pytest.approx(2000)
    assert peers_mf.rate(rows[:2], 1000) is None
    assert peers_mf.rate([], 1000) is None


def test_of_settings_nearly_as_good_the_fastest_is_taken() -> None:
    slow = curve((10, 5.0, 0.8000), (20, 9.0, 0.7998))
    fast = curve((5, 1.0, 0.8002), (10, 2.0, 0.8010))
    worse = curve((1, 0.1, 0.8100))
    assert peers_mf.choice([slow, fast, worse]) == 1
    assert peers_mf.choice([slow, worse]) == 0
    assert peers_mf.choice([[], curve((1, 0.1, None))]) is None


@pytest.mark.parametrize("rank", [*peers_mf.RANKS, 100])
@pytest.mark.parametrize("name", list(peers_mf.KNOWN))
def test_there_are_settings_for_every_rank(name: str, rank: int) -> None:
    peer = peers_mf.KNOWN[name]
    for shape in peer.shapes:
        assert set(peer.options(shape, rank)) == set(peer.grid)


def test_every_peer_has_its_version_and_its_two_sides() -> None:
    known = {line.split("==")[0] for line in pins(peers_mf.VERSIONS).splitlines()}
    for name, peer in peers_mf.KNOWN.items():
        assert peer.package in known
        assert name in mf_peer.TRAINERS and mf_peer.PACKAGES[name] == peer.package
        assert peer.top == (name in mf_peer.TOPS)


def test_threads_and_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers_mf, "usable_cores", lambda: 4)
    found = peers_mf.trainers(["hogwild", "libmf", "surprise", "lenskit"], "20M")
    expected = [("hogwild", 1), ("hogwild", 4), ("libmf", 1), ("libmf", 4), ("lenskit", 4)]
    assert found == [Trainer(*one) for one in expected]
    assert [peers_mf.is_widest(one, "20M") for one in found] == [False, True, False, True, True]
    monkeypatch.setattr(peers_mf, "usable_cores", lambda: 1)
    assert peers_mf.trainers(["libmf"], "1M") == [Trainer("libmf", 1)]


def test_the_target_is_libmfs_and_a_broken_peer_is_named(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    answers = {
        "hogwild": Answer(curve((1, 0.25, 0.79))),
        "libmf": Answer([{"load_seconds": 0.0}, *FALLING]),
        "cornac": Answer(curve((1, 0.1, 0.85)), "MemoryError: no room"),
    }
    monkeypatch.setattr(peers_mf, "usable_cores", lambda: 1)
    monkeypatch.setattr(peers_mf.report.machine, "usable_cores", lambda: 1)
    monkeypatch.setattr(Trainer, "curve", lambda self, *_: answers[self.name])
    comparison = Comparison(list(answers), 1.0)
    comparison.errors(SimpleNamespace(shape="1M"), 32)  # type: ignore[arg-type]
    assert said[0] == "Failed    cornac, rank 32: MemoryError: no room"
    machine, *table = said[1].strip().splitlines()
    assert machine.endswith("1 core")
    lines = [line.split() for line in table]
    assert lines[0][:5] == ["rank", "32,", "test", "RMSE", "0.7900"]
    assert lines[1] == ["hogwild", "1", "0.250", "1", "0.7900+", "1", "0.250", "-"]
    assert lines[2] == ["libmf", "1", "1.100", "4", "0.7900", "4", "1.100", "0.0"]
    assert lines[3] == ["cornac", "1", "-", "-", "0.8500+", "1", "0.100", "-"]
    assert {"problem", "settings"} < set(comparison.lines[-1])
    json.dumps(comparison.lines, allow_nan=False)


def test_without_libmf_there_is_no_target(monkeypatch: pytest.MonkeyPatch, said: list[str]) -> None:
    monkeypatch.setattr(Trainer, "curve", lambda *_: Answer(FALLING))
    Comparison(["lenskit"], 1.0).errors(SimpleNamespace(shape="1M"), 32)  # type: ignore[arg-type]
    assert "test RMSE -" in said[0] and len(said) == 1


def run_main(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["peers_mf.py", *arguments])
    return peers_mf.report.command(peers_mf.main)


def test_missing_peers_are_named_with_the_reason(
    peers: Path,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (peers / "lenskit").mkdir(parents=True)
    (peers / "lenskit" / "failed").write_text("ERROR: no such version")
    (peers / "cornac").mkdir()
    (peers / "cornac" / "installed").write_text("cornac==0.0\n")
    assert run_main(["--only", "cornac", "lenskit"], monkeypatch) == 1
    assert any("cornac: not installed: python" in line for line in said)
    assert any("lenskit: could not be installed: ERROR: no such version" in line for line in said)
    assert "none of those asked for is installed" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--only", "libfm"], ["--shape", "5M"], ["--budget", "0"]])
def test_wrong_usage(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run_main(arguments, monkeypatch)
    assert stopped.value.code == 2


class Installer:
    """Stands for the subprocesses that install: remembers commands, and fails as told."""

    def __init__(self, error: str = "") -> None:
        self.error = error
        self.commands: list[list[str]] = []
        self.flags: list[str | None] = []

    def __call__(self, command: list[str], env: dict[str, str], **_: Any) -> Any:
        self.commands.append(command)
        self.flags.append(env.get("CXXFLAGS"))
        if "venv" in command:
            Path(command[-1]).mkdir()
            return subprocess.CompletedProcess(command, 0, "", "")
        return subprocess.CompletedProcess(command, int(bool(self.error)), "", self.error)


def test_installed_once_and_libmf_with_avx(peers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installer = Installer()
    monkeypatch.setattr(environments.subprocess, "run", installer)
    for _ in range(2):
        assert environment("libmf").install() is None
    assert environment("libmf").missing() is None
    assert len(installer.commands) == 2
    assert installer.commands[1][0] == str(peers / "libmf" / "bin" / "python")
    assert "--no-cache-dir" in installer.commands[1]
    assert "-DUSEAVX" in str(installer.flags[1])


def test_what_fails_to_install_says_why_and_is_tried_again(
    peers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXXFLAGS", raising=False)
    installer = Installer("WARNING: slow\nERROR: No matching distribution\nnote: see above\n")
    monkeypatch.setattr(environments.subprocess, "run", installer)
    assert environment("cornac").install() == "ERROR: No matching distribution"
    assert installer.flags == [None, None]
    assert "No matching distribution" in str(environment("cornac").missing())
    installer.error = ""
    assert environment("cornac").install() is None
    assert environment("cornac").missing() is None


# The peers' side


def test_rmse_is_that_of_the_biased_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mf_peer, "CHUNK", 7)
    random = np.random.default_rng(0)
    P, Q, bu, bi = (random.standard_normal(shape) for shape in ((5, 3), (4, 3), 5, 4))
    test = mf_peer.Ratings(
        random.integers(0, 5, 50), random.integers(0, 4, 50), random.standard_normal(50)
    )
    whole = 0.5 + bu[:, None] + bi + P @ Q.T
    expected = np.sqrt(np.mean((whole[test.users, test.items] - test.values) ** 2))
    assert mf_peer.rmse(mf_peer.Model(P, Q, 0.5, bu, bi), test) == pytest.approx(expected)


def test_users_without_factors_get_the_value_for_the_unknown() -> None:
    P = np.array([[np.nan], [2.0]], np.float32)
    model = mf_peer.Model(P, np.ones((1, 1), np.float32), unknown=3.5)
    assert mf_peer.scores(model, np.array([0, 1]), np.array([0, 0])).tolist() == [3.5, 2.0]


@pytest.mark.parametrize(
    ("errors", "past"),
    [
        ([], False),
        ([0.9, 0.8], False),
        ([0.8, 0.9, 0.9], True),
        ([0.9, 0.8, 0.81], False),
        ([0.9, 0.8, 0.81, 0.82], True),
        ([0.8, 0.8, 0.8], False),
        ([float("nan")], True),
        ([0.8, float("inf")], True),
    ],
)
def test_stops_after_the_best(errors: list[float], past: bool) -> None:
    assert mf_peer.past_best(errors, 2) == past


def test_afresh_begins_anew_and_onwards_goes_on() -> None:
    asked: list[int] = []

    def train(epochs: int) -> mf_peer.Model:
        asked.append(epochs)
        return mf_peer.Model(np.zeros((1, 1)), np.zeros((1, 1)))

    again = list(mf_peer.afresh(train, [1, 2, 5]))
    assert asked == [1, 2, 5]
    assert again[-1].spent == pytest.approx(sum(state.seconds for state in again))
    asked.clear()
    goes_on = list(mf_peer.onwards(train, [1, 2, 5]))
    assert asked == [0, 1, 1, 3]
    assert [state.epochs for state in goes_on] == [1, 2, 5]
    assert goes_on[-1].spent == goes_on[-1].seconds >= goes_on[0].seconds


def test_numbers_without_rows_are_zero() -> None:
    found = mf_peer.spread(np.array([[1.0, 2.0]]), np.array([2]), 3)
    assert found.tolist() == [[0, 0], [0, 0], [1, 2]]


def test_peer_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments.Environment, "python", Path(sys.executable))
    data: Any = SimpleNamespace(folder=tmp_path, train=SimpleNamespace(shape=(1, 1)))
    answer = peers_mf.ask("libmf", data, 32, 1, epochs=[1], options={})
    assert answer.rows == [] and "train-users.npy" in str(answer.problem)


@pytest.mark.parametrize("name", [name for name, peer in peers_mf.KNOWN.items() if peer.judged])
def test_installed_peers_learn(name: str, tmp_path: Path) -> None:
    if environment(name).missing():
        pytest.skip(f"{name} is not installed")
    random = np.random.default_rng(0)
    users, items = (part.ravel() for part in np.mgrid[:60, :40].astype(np.uint32))
    liked = random.standard_normal(40)
    values = (3 + liked[items]).astype(np.float32)
    held_out = random.random(len(users)) < 0.2
    for part, which in (("train", ~held_out & (users != 7)), ("test", held_out)):
        for kind, column in (("users", users), ("items", items), ("values", values)):
            np.save(tmp_path / f"{part}-{kind}.npy", column[which])
    data: Any = SimpleNamespace(folder=tmp_path, train=SimpleNamespace(shape=(60, 40)))
    options = peers_mf.KNOWN[name].options("1M", 8)
    answer = peers_mf.ask(name, data, 8, 1, epochs=[10, 60], options=options)
    least = peers_mf.best(answer.rows)
    assert answer.problem is None and least
    assert least["test_rmse"] < 0.5 * liked.std()
