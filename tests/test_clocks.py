"""Time that jumps, and a clock that stands still: no training depends on them."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from tests.test_recovery import At, kill_a_worker

HOUR = 3600.0


class Odd:
    """The module `time`, with clocks of another kind."""

    def __init__(self, now: Callable[[int], float]) -> None:
        self._now, self._looks = now, 0

    def monotonic(self) -> float:
        self._looks += 1
        return self._now(self._looks)

    perf_counter = monotonic

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


CLOCKS: dict[str, Callable[[int], float]] = {
    "still": lambda looks: 1000.0,
    "jumps": lambda looks: time.monotonic() + HOUR * (looks // 3),  # as after Ctrl-Z and fg
    "goes back": lambda looks: time.monotonic() - HOUR * (looks // 3),
}


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    return rcv1(3000, 2000)[0]


@pytest.fixture(params=CLOCKS)
def odd(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All of hogwild has such clocks, its workers, too."""
    hogwild.close_pool()
    found = [known for name, known in sys.modules.items() if name.startswith("hogwild")]
    users = [module for module in found if getattr(module, "time", None) is time]
    assert len(users) > 5
    for module in users:
        monkeypatch.setattr(module, "time", Odd(CLOCKS[request.param]))
    yield
    hogwild.close_pool()


DETERMINISTIC: dict[str, Any] = {"deterministic": True, "workers": 2, "epochs": 4, "tol": 0}
TRAININGS: dict[str, dict[str, Any]] = {
    "sgd": {"solver": "sgd"},
    "dual": {"solver": "dual"},
    "newton": {"solver": "newton", "task": "logistic"},
}


@pytest.fixture(scope="module")
def expected(rows: hogwild.Rows) -> dict[str, bytes]:
    return {name: _learned(rows, given) for name, given in TRAININGS.items()}


def _learned(rows: hogwild.Rows, given: dict[str, Any]) -> bytes:
    found = hogwild.train(rows, **DETERMINISTIC, **given)
    json.dumps(found.trace, allow_nan=False)  # no rate by a time of 0
    weights: bytes = found.model.weights.tobytes()
    return weights


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize("name", TRAININGS)
def test_it_learns_the_same(rows: hogwild.Rows, expected: dict[str, bytes], name: str) -> None:
    assert _learned(rows, TRAININGS[name]) == expected[name]


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize("strategy", ["hogwild", "ordered", "locked", "roundrobin"])
def test_workers_wait_for_each_other_and_are_replaced(rows: hogwild.Rows, strategy: str) -> None:
    given = {"workers": 2, "epochs": 3, "tol": 0, "strategy": strategy, "eta0": 0.5}
    killer = At(kill_a_worker, 1)
    with pytest.warns(hogwild.HogwildWarning, match="new workers take over"):
        result = hogwild.train(rows, watcher=killer, **given)
    assert (result.reason, len(result.trace)) == ("epochs", 3)
    assert np.isfinite(result.model.weights).all()


@pytest.mark.usefixtures("odd")
def test_checkpoints_by_the_clock(rows: hogwild.Rows, tmp_path: Path) -> None:
    path = tmp_path / "c.hog"
    result = hogwild.train(rows, checkpoint=path, every="30s")
    assert result.reason == "converged"
    assert hogwild.train(rows, resume=path).reason == "converged"
