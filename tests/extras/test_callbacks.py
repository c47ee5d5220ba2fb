"""Callbacks for other libraries, with these libraries: `make test-extras`."""

from pathlib import Path
from typing import Any

import pytest

import hogwild
from hogwild.callbacks import Callback, MLflow, OptunaPruning, TensorBoard
from hogwild.data.synthetic import rcv1

ROWS, _ = rcv1(2000, 500, nonzeros=20)
SGD: dict[str, Any] = {"solver": "sgd", "epochs": 3, "tol": 0, "workers": 1}


class Fails(Callback):
    def epoch(self, row: Any) -> None:
        raise ZeroDivisionError


def test_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    result = hogwild.train(ROWS, callbacks=[MLflow()], **SGD)
    run = mlflow.last_active_run()
    assert (run.info.status, run.data.tags["reason"]) == ("FINISHED", "epochs")
    assert run.data.params["solver"] == "sgd"
    assert float(run.data.params["eta0"]) == result.header["chosen"]["eta0"]
    logged = mlflow.MlflowClient().get_metric_history(run.info.run_id, "objective")
    told = [(row["epoch"], row["objective"]) for row in result.trace]
    assert [(point.step, point.value) for point in logged] == told
    with mlflow.start_run() as mine:  # which goes on
        hogwild.train(ROWS, callbacks=[MLflow()], **SGD)
        assert mlflow.active_run().info.run_id == mine.info.run_id
        assert "objective" in mlflow.get_run(mine.info.run_id).data.metrics
    with pytest.raises(ZeroDivisionError):
        hogwild.train(ROWS, callbacks=[MLflow(), Fails()], **SGD)
    assert mlflow.active_run() is None
    assert mlflow.last_active_run().info.status == "FAILED"


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    result = hogwild.train(ROWS, callbacks=[TensorBoard(tmp_path)], **SGD)
    found = EventAccumulator(str(tmp_path)).Reload()
    points = [
        (one.step, float(make_ndarray(one.tensor_proto))) for one in found.Tensors("objective")
    ]
    assert [step for step, _ in points] == [1, 2, 3]
    told = [row["objective"] for row in result.trace]
    assert [value for _, value in points] == pytest.approx(told, rel=1e-6)


def test_optuna() -> None:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def objective(trial: Any) -> float:
        l2 = trial.suggest_categorical("l2", [1e-4, 1.0])
        result = hogwild.train(ROWS, l2=l2, callbacks=[OptunaPruning(trial)], **SGD)
        return float(result.trace[-1]["objective"])

    sampler = optuna.samplers.GridSampler({"l2": [1e-4, 1.0]}, seed=0)
    study = optuna.create_study(sampler=sampler, pruner=optuna.pruners.ThresholdPruner(upper=0.3))
    study.optimize(objective, n_trials=2)
    by_l2 = {trial.params["l2"]: trial for trial in study.trials}
    assert (by_l2[1e-4].state.name, by_l2[1.0].state.name) == ("COMPLETE", "PRUNED")
    assert list(by_l2[1e-4].intermediate_values) == [1, 2, 3]
    assert list(by_l2[1.0].intermediate_values) == [1]


def test_scikit_learns_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    X, y = ROWS.to_scipy(), ROWS.y
    for options in ({"max_iter": 4, "tol": None}, {}):  # with a known number of epochs, and without
        classifier = hogwild.HogwildClassifier(random_state=0, **options)
        classifier.set_callbacks(ProgressBar()).fit(X, y)
        assert "HogwildClassifier - fit" in capsys.readouterr().out
    make_pipeline(MaxAbsScaler(), classifier.set_callbacks()).set_callbacks(ProgressBar()).fit(X, y)
    assert "HogwildClassifier - fit" in capsys.readouterr().out
