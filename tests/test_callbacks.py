"""Callbacks see every epoch, look at the model, stop the run, and hear of its end."""

import csv
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild.callbacks import BestModel, Callback, CSVLog, JSONLines, MLflow
from hogwild.data.synthetic import rcv1
from hogwild.parallel import team

ROWS, _ = rcv1(2000, 500, nonzeros=20)
ENDLESS: dict[str, Any] = {"solver": "sgd", "epochs": 10**6, "tol": 0}
MANY = hogwild.Rows(np.random.default_rng(0).normal(size=(300, 10)), np.arange(300) % 9)

# What looks at objectives in its own time, and what does so when it is asked to
TRAININGS: list[tuple[hogwild.Rows, dict[str, Any]]] = [
    (ROWS, {"solver": "dual", "tol": 1e-5}),
    (ROWS, {"solver": "newton", "task": "logistic"}),
    (ROWS, {"solver": "sgd", "objective_every": 0, "tol": 0}),
    (ROWS, {"solver": "sgd", "objective_every": 2, "tol": 0, "workers": 2}),
    (MANY, {"solver": "dual", "tol": 1e-5}),
]


class Looks(Callback):
    def __init__(self) -> None:
        self.given: list[Any] = []
        self.measured: list[float] = []
        self.models: list[Any] = []

    def epoch(self, row: Any) -> None:
        self.given.append(row["objective"])
        self.models.append(self.run.model())
        self.measured.append(self.run.measured()["objective"])

    def end(self, result: Any) -> None:
        self.result = result


@pytest.mark.parametrize(("rows", "options"), TRAININGS)
def test_it_sees_the_model_and_the_objective_of_every_epoch(
    rows: hogwild.Rows, options: dict[str, Any]
) -> None:
    looks = Looks()
    result = hogwild.train(rows, callbacks=[looks], **options)
    assert looks.result is result
    assert [row["objective"] for row in result.trace] == looks.measured
    found = [model.evaluate(rows)["objective"] for model in looks.models]
    assert found == pytest.approx(looks.measured, rel=1e-5)
    assert len({model.weights.tobytes() for model in looks.models}) > 1  # each is a copy
    plain = hogwild.train(rows, **options)
    if options.get("workers", 1) == 1:  # looking changes nothing
        assert plain.model.weights.tobytes() == result.model.weights.tobytes()
    assert (None in looks.given) == (options["solver"] != "newton")


def test_factorizations_have_callbacks_too() -> None:
    looks, rng = Looks(), np.random.default_rng(0)
    ratings = hogwild.Ratings(
        rng.integers(50, size=900), rng.integers(20, size=900), rng.random(900)
    )
    hogwild.train(ratings, rank=4, epochs=3, tol=0, workers=1, objective_every=0, callbacks=[looks])
    found = [model.evaluate(ratings)["objective"] for model in looks.models]
    assert found == pytest.approx(looks.measured, rel=1e-4)


class Stops(Callback):
    """Stops as an epoch ends, or within it."""

    def __init__(self, epoch: int, share: float | None = None, reason: str = "callback") -> None:
        self._epoch, self._share, self._reason = epoch, share, reason

    def tick(self, epoch: int, share: float, seconds: float) -> None:
        if self._share is not None and epoch == self._epoch and share >= self._share:
            self.run.stop(self._reason)

    def epoch(self, row: Any) -> None:
        if self._share is None and row["epoch"] == self._epoch:
            self.run.stop(self._reason)


@pytest.mark.parametrize("options", [ENDLESS, ENDLESS | {"objective_every": 0}, {"tol": 0}])
@pytest.mark.parametrize("reason", ["callback", "seen enough"])
def test_it_stops_the_run_with_a_model_that_goes_on(options: Any, reason: str) -> None:
    result = hogwild.train(ROWS, callbacks=[Stops(2, reason=reason)], **options)
    assert (result.reason, len(result.trace)) == (reason, 2)
    objective = result.trace[-1]["objective"]
    assert objective == pytest.approx(result.model.evaluate(ROWS)["objective"], rel=1e-5)
    on = hogwild.train(ROWS, start=result.state, **{**options, "epochs": 1})
    assert on.trace[0]["epoch"] == 3


def test_it_stops_the_run_within_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "TICK", 0.0)
    rows, _ = rcv1(20_000, 500, nonzeros=20)
    monkeypatch.setattr("hogwild.learn.linear.CHUNK_NONZEROS", 50_000)
    result = hogwild.train(rows, callbacks=[Stops(1, 0.05)], workers=1, **ENDLESS | {"epochs": 2})
    assert result.reason == "callback"
    assert 0 < result.trace[0]["rows"] < len(rows)
    objective = result.trace[-1]["objective"]
    assert objective == pytest.approx(result.model.evaluate(rows)["objective"], rel=1e-5)


def test_another_thread_stops_the_run() -> None:
    class Later(Callback):
        def start(self, header: Any) -> None:
            threading.Timer(0.1, self.run.stop, ["enough"]).start()

    assert hogwild.train(ROWS, callbacks=[Later()], workers=2, **ENDLESS).reason == "enough"


def test_it_hears_of_the_end_however_training_ends() -> None:
    class Fails(Callback):
        def epoch(self, row: Any) -> None:
            raise ZeroDivisionError

    class Early(Callback):
        def start(self, header: Any) -> None:
            self.run.model()

    class FailsLate(Callback):
        def end(self, result: Any) -> None:
            raise ZeroDivisionError

    looks = Looks()
    with pytest.raises(ZeroDivisionError):
        hogwild.train(ROWS, callbacks=[looks, Fails()], workers=2)
    assert looks.result is None
    with pytest.raises(ZeroDivisionError):
        hogwild.train(ROWS, callbacks=[FailsLate(), looks, FailsLate()])
    assert looks.result is not None
    with pytest.raises(hogwild.HogwildError, match="no epoch is finished"):
        hogwild.train(ROWS, callbacks=[Early()])


@pytest.mark.parametrize("wrong", [Looks, [Looks], [print], Looks()])
def test_what_is_no_callback_is_refused(wrong: Any) -> None:
    with pytest.raises(hogwild.OptionError, match=r"callbacks: .* is not a list of callbacks"):
        hogwild.train(ROWS, callbacks=wrong)


def test_the_best_model_is_kept_and_saved(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    few = hogwild.Rows(random.normal(size=(100, 200)), random.normal(size=100) > 0)
    others = hogwild.Rows(random.normal(size=(100, 200)), random.normal(size=100) > 0)
    best = BestModel("test_error", path=tmp_path / "best.hog")
    options = {**ENDLESS, "epochs": 12, "test": others, "seed": 1}
    result = hogwild.train(few, callbacks=[best], **options)
    errors = [row["test_error"] for row in result.trace]
    assert best.row == result.trace[int(np.argmin(errors))] != result.trace[-1]
    assert best.model.evaluate(others)["error"] == min(errors)
    saved = hogwild.load_model(tmp_path / "best.hog")
    assert saved.weights.tobytes() == best.model.weights.tobytes()
    with pytest.raises(hogwild.OptionError, match="metric: 'auc' is not one of seconds, "):
        hogwild.train(few, callbacks=[BestModel("auc")])


def test_logs_grow_with_every_epoch(tmp_path: Path) -> None:
    names = tmp_path / "run.csv", tmp_path / "run.jsonl"
    seen = []

    class Reads(Callback):
        def epoch(self, row: Any) -> None:
            seen.append([len(name.read_text().splitlines()) for name in names])

    logs = [CSVLog(names[0]), JSONLines(names[1])]
    options: dict[str, Any] = {"solver": "dual", "tol": 1e-4}
    for _ in range(2):  # a log begins anew
        result = hogwild.train(ROWS, callbacks=[*logs, Reads()], **options)
    epochs = len(result.trace)
    assert seen[-epochs:] == [[number + 2, number + 2] for number in range(epochs)]
    records = [json.loads(line) for line in names[1].read_text().splitlines()]
    assert records == json.loads(json.dumps(result.records()))
    with names[0].open(newline="") as file:
        lines = list(csv.DictReader(file))
    for name in ("objective", "nonzero_weights"):  # not every epoch has one
        told = [row.get(name) for row in result.trace]
        assert None in told
        assert [float(line[name]) if line[name] else None for line in lines] == told
    with pytest.raises(hogwild.OptionError, match="there is no folder"):
        CSVLog(tmp_path / "nowhere" / "run.csv")


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(hogwild.HogwildError, match="needs mlflow, which is not installed"):
        hogwild.train(ROWS, callbacks=[MLflow()])
