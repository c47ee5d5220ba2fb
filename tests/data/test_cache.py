"""Rows that are kept beside their text: read as long as it is the same text, and made anew else."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import cli
from hogwild.data import cache
from hogwild.kernels.compile import cache_folder

TEXT = "".join(f"{row % 2} {1 + row % 7}:1 {10 + row % 5}:0.5\n" for row in range(50))


def told(path: Path, **options: Any) -> tuple[Path, str]:
    texts: list[str] = []
    found = hogwild.cached(path, tell=texts.append, **options)
    return found, *texts


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "train.svm"
    path.write_text(TEXT)
    return path


def test_rows_are_kept_beside_the_text_and_made_anew_when_it_changes(text: Path) -> None:
    kept, said = told(text)
    assert kept == text.with_name("train.svm.rows")
    assert said == f"train.svm: kept as {kept}"
    assert told(text) == (kept, f"train.svm: taken from {kept}, which is of the same text")
    before = text.stat()
    text.write_text(TEXT.replace("0.5", "0.7"))  # as long as before
    os.utime(text, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert "anew, since train.svm or how it is read has changed" in told(text)[1]
    assert np.unique(hogwild.load(kept).values)[0] == np.float32(0.7)
    assert "anew" in told(text, index_base=0)[1]
    assert hogwild.load(kept).columns == 15
    kept.write_bytes(kept.read_bytes()[:-100])  # damaged: as if there were none
    assert told(text, index_base=0)[1] == f"train.svm: kept as {kept}"


def test_rows_are_kept_in_the_cache_where_the_folder_is_not_writable(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != text.parent)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path / "home" / "kernels")
    (tmp_path / "home").mkdir()
    kept, _ = told(text)
    assert kept.parent == tmp_path / "home" / "rows"
    assert told(text)[0] == kept
    assert sorted(path.name for path in text.parent.iterdir()) == ["home", "train.svm"]
    monkeypatch.setattr(cache, "cache_folder", lambda: None)
    with pytest.raises(hogwild.DataError, match="no place to keep its rows"):
        hogwild.cached(text)
    assert cache_folder() is not None


def test_training_with_a_cache_is_training_from_the_text(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test.svm").write_text(TEXT)
    words = ["train", str(text), "--test", str(tmp_path / "test.svm"), "--solver", "sgd"]
    outputs = []
    for more in ([], ["--cache"], ["--cache"]):
        model, trace = (str(tmp_path / name) for name in ("m.hog", "trace"))
        assert cli.main([*words, *more, "--model", model, "--trace", trace]) == 0
        outputs.append(capsys.readouterr().out)
        made = hogwild.load_model(model)
        assert made.weights.tobytes() == hogwild.train(text, solver="sgd").model.weights.tobytes()
    assert "kept as" not in outputs[0]
    assert outputs[1].count("kept as") == 2
    assert outputs[2].count("which is of the same text") == 2
    assert cli.main(["train", "--config", str(tmp_path / "trace")]) == 0
    assert "which is of the same text" in capsys.readouterr().out
    assert cli.main([*words, "--cache", "--folds", "2"]) == 2
    assert "--cache: not with a search" in capsys.readouterr().err


def test_a_source_that_is_not_there_or_wrong_keeps_nothing(text: Path) -> None:
    with pytest.raises(hogwild.DataError, match="No such file"):
        hogwild.cached(text.with_name("no.svm"))
    text.write_text("1 1:x\n")
    with pytest.raises(hogwild.DataError, match="line 1, column 5"):
        hogwild.train(text, cache=True)
    assert [path.name for path in text.parent.iterdir()] == ["train.svm"]
