"""Streams: each row is predicted before it is learned from; Ctrl-C keeps the model."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import hogwild
from hogwild import DataError, OptionError, cli, streaming
from hogwild.data.synthetic import rcv1

ROWS, COLUMNS = 6000, 2000


@pytest.fixture(scope="module")
def rows() -> hogwild.Rows:
    made, _ = rcv1(ROWS, columns=COLUMNS, nonzeros=20)
    return made


@pytest.fixture(scope="module")
def text(rows: hogwild.Rows, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stream") / "rows.svm"
    hogwild.save(rows, path)
    return path


def pieces_of(rows: hogwild.Rows, size: int) -> Iterator[hogwild.Rows]:
    for begin in range(0, len(rows), size):
        part = rows.take(np.arange(begin, min(begin + size, len(rows))))
        used = int(part.indices.max()) + 1  # as in text: columns are those so far
        yield hogwild.Rows.from_arrays(part.indptr, part.indices, part.values, used, part.y)


def naive(rows: hogwild.Rows, eta0: float, l2: float) -> tuple[Any, list[float]]:
    """Logistic regression row by row; the weights, and the loss of each row before its step."""
    weights, losses = np.zeros(rows.columns), []
    for row in range(len(rows)):
        mine = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
        columns, values = rows.indices[mine], rows.values[mine].astype(float)
        score, target = weights[columns] @ values, float(rows.y[row])
        losses.append(np.logaddexp(0, -target * score))
        before = 1 + l2 * eta0 * row
        weights *= before / (before + l2 * eta0)
        rate = eta0 / (before + l2 * eta0)
        weights[columns] += rate * target / (1 + np.exp(target * score)) * values
    return weights, losses


@pytest.mark.parametrize("size", [1, 700, ROWS])
def test_each_row_is_predicted_before_it_is_learned_from(rows: hogwild.Rows, size: int) -> None:
    few = rows.take(np.arange(200 if size == 1 else ROWS))
    options: dict[str, Any] = {"task": "logistic", "eta0": 2.0, "l2": 1e-3, "intercept": False}
    found = hogwild.train_stream(pieces_of(few, size), labels=(-1, 1), **options)
    weights, losses = naive(few, 2.0, 1e-3)
    assert (found.reason, found.rows) == ("end", len(few))
    assert found.loss == pytest.approx(np.mean(losses), rel=1e-3)
    assert np.allclose(found.model.weights, weights, rtol=1e-2, atol=1e-3)
    for line, before in zip(found.trace, [{"rows": 0}, *found.trace], strict=False):
        recent = losses[before["rows"] : line["rows"]]
        assert line["recent_loss"] == pytest.approx(np.mean(recent), rel=1e-3)
    if size > 1:
        assert [line["rows"] for line in found.trace] == [1000, 2000, 4000, 6000]


def test_a_stream_of_text_is_the_same_as_its_rows(rows: hogwild.Rows, text: Path) -> None:
    from_text = hogwild.train_stream(text)
    from_rows = hogwild.train_stream([rows])
    assert from_text.model.weights.tobytes() == from_rows.model.weights.tobytes()
    assert from_text.model.index_base == 1
    whole = hogwild.train(text, solver="sgd", epochs=1).model.evaluate(rows)
    assert from_text.model.evaluate(rows)["error"] <= whole["error"] + 0.02


def test_the_first_column_may_turn_out_to_be_number_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{row % 2} {1 + row % 2}:1 5:0.5\n" for row in range(300)]
    (tmp_path / "a.svm").write_text("".join([*lines, "1 0:1\n", *lines]))
    monkeypatch.setattr(streaming, "PIECE", 1 << 10)
    found = hogwild.train_stream(tmp_path / "a.svm", eta0=0.5).model
    assert (found.index_base, found.columns) == (0, 6)
    assert found.weights[1] < 0 < found.weights[2]
    assert found.weights[3] == found.weights[4] == 0


def test_lines_of_any_length_are_read_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "PIECE", 1 << 7)
    text = "".join(
        f"{row % 2}" + "".join(f" {k}:0.5" for k in range(1, 1 + row % 90)) + "\n" * (1 + row % 2)
        for row in range(200)
    )
    (tmp_path / "a.svm").write_text(text.rstrip())  # without a last newline
    whole = hogwild.load(tmp_path / "a.svm")
    parts = list(streaming.rows_of_stream(tmp_path / "a.svm", "auto"))
    assert len(parts) > 20
    for name in ("indices", "values", "y"):
        found = np.concatenate([getattr(part, name) for part in parts])
        assert found.tobytes() == getattr(whole, name).tobytes()
    (tmp_path / "a.svm").write_text(text + "1 1:x\n")
    with pytest.raises(DataError, match="line 301, column 5: 'x' is not a number"):
        list(streaming.rows_of_stream(tmp_path / "a.svm", "auto"))


def test_several_classes_are_learned(tmp_path: Path) -> None:
    text = "".join(f"{row % 3} {row % 3 + 1}:1\n" for row in range(900))
    (tmp_path / "a.svm").write_text(text)
    model = hogwild.train_stream(tmp_path / "a.svm", task="softmax", eta0=0.5).model
    assert model.predict(hogwild.load(tmp_path / "a.svm")).tolist() == [0.0, 1.0, 2.0] * 300


def test_classes_are_those_of_the_first_rows_or_given(
    rows: hogwild.Rows,
) -> None:
    other = rows.labelled(np.where(np.arange(ROWS) < 3000, rows.y, 7))
    parts = list(pieces_of(other, 3000))
    remedy = r"\. The classes of a stream are those of its first rows: give all of them as labels"
    with pytest.raises(DataError, match="has the label 7; the model knows -1, 1" + remedy):
        hogwild.train_stream(parts)
    with pytest.raises(DataError, match="the label is 7 in every row; .*" + remedy):
        hogwild.train_stream(parts[1:])
    assert hogwild.train_stream(parts, labels=(-1, 1, 7)).model.labels == (-1, 1, 7)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"early_stopping": 0.1}, "early_stopping: not available for a stream"),
        ({"epochs": 3}, "epochs: not available for a stream"),
        ({"workers": 2, "strategy": "hogwild"}, "workers: .*\nstrategy: not available"),
        ({"solver": "dual"}, "solver: a stream needs sgd"),
        ({"schedule": "adaptive"}, "schedule: for a stream it needs to be one of inverse"),
        ({"l1": 0.1}, "l1: not available for a stream"),
        ({"task": "mf"}, "task: a stream has rows, for svm"),
        ({"save_every": 100}, "save_every: it needs a model file"),
        ({"save_every": 0, "model": "m"}, "save_every: expected a number of rows, not 0"),
        ({"lossy": 1}, "lossy: there is no such option"),
    ],
)
def test_what_a_stream_cannot_have_is_refused_by_name(
    options: dict[str, Any], problem: str, rows: hogwild.Rows
) -> None:
    with pytest.raises(OptionError, match=problem):
        hogwild.train_stream([rows], **options)


def test_empty_and_wrong_streams_are_refused(tmp_path: Path, rows: hogwild.Rows) -> None:
    with pytest.raises(DataError, match="the stream has no rows to learn from"):
        hogwild.train_stream([])
    (tmp_path / "a.svm").write_text("1 1:1\n0 1:x\n")
    with pytest.raises(DataError, match="line 2, column 5: 'x' is not a number"):
        hogwild.train_stream(tmp_path / "a.svm")
    with pytest.raises(hogwild.DivergenceError, match="the weights overflowed within the first"):
        hogwild.train_stream([rows], eta0=1e30, l2=0.0, schedule="constant", task="regression")


# From the shell

HOGWILD = [sys.executable, "-m", "hogwild"]


def test_the_command_line_prints_lines_and_predicts_from_a_stream(
    text: Path, tmp_path: Path
) -> None:
    model = str(tmp_path / "m.hog")
    words = [*HOGWILD, "train", "-", "--task", "logistic", "--model", model]
    with text.open("rb") as file:
        done = subprocess.run(words, stdin=file, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["rows", "loss", "recent", "columns", "seconds"]
    assert [line.split()[0] for line in lines[1:5]] == ["1,000", "2,000", "4,000", "6,000"]
    assert lines[-2].startswith("stopped by the end of the stream after 6,000 rows; progressive")
    with text.open("rb") as file:
        found = subprocess.run(
            [*HOGWILD, "predict", model, "-", "--score"],
            stdin=file,
            capture_output=True,
            check=True,
        )
    whole = subprocess.run(
        [*HOGWILD, "predict", model, str(text), "--score"], capture_output=True, check=True
    )
    assert found.stdout == whole.stdout
    with text.open("rb") as file:
        done = subprocess.run([*words, "--json"], stdin=file, capture_output=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1])["rows"] == ROWS


def test_options_for_streams_alone_are_refused_elsewhere(
    text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["train", str(text), "--save-every", "5"]) == 2
    assert "--save-every: only for a stream" in capsys.readouterr().err
    assert cli.main(["train", "-", "--test", str(text), "--cache"]) == 2
    error = capsys.readouterr().err
    assert "--test: not available for a stream" in error
    assert "--cache: not available for a stream" in error
    assert cli.main(["train", "-", "--labels", "a,b"]) == 2
    assert "--labels: expected numbers with commas" in capsys.readouterr().err


def anonymous(process: int) -> int:
    """Bytes that belong to a process alone."""
    words = Path(f"/proc/{process}/smaps_rollup").read_text().split()
    return int(words[words.index("Anonymous:") + 1]) * 1024


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_stream_that_waits_and_keeps_the_model(
    number: int, text: Path, tmp_path: Path, start: Callable[..., "subprocess.Popen[str]"]
) -> None:
    model, pipe = tmp_path / "m.hog", tmp_path / "pipe"
    os.mkfifo(pipe)
    words = [*HOGWILD, "train", "-", "--model", str(model), "--save-every", "3000", "--eta0", "1"]
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    process = start(words, stdin=reading)
    os.close(reading)
    content = text.read_bytes()
    with pipe.open("wb") as file:
        sizes = []
        for _ in range(40):  # 200,000 rows and more
            file.write(content)
            file.flush()
            sizes.append(anonymous(process.pid))
        while not model.exists():
            assert process.poll() is None
        process.send_signal(number)
        out, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert f"interrupted; the model so far is in {model}" in error
    assert "stopped by Ctrl-C after" in out
    assert hogwild.load_model(model).about["trace"]["reason"] == "interrupted"
    if psutil.LINUX:
        assert max(sizes[20:]) - min(sizes[20:]) < 20 << 20  # once all is loaded


def test_a_model_is_saved_at_intervals(rows: hogwild.Rows, tmp_path: Path) -> None:
    seen: list[int] = []

    def watched() -> Iterator[hogwild.Rows]:
        for part in pieces_of(rows, 500):
            yield part
            if (tmp_path / "m.hog").exists():
                seen.append(hogwild.load_model(tmp_path / "m.hog").about["data"]["rows"])

    hogwild.train_stream(watched(), model=tmp_path / "m.hog", save_every=1700)
    assert sorted(set(seen)) == [1700, 3400, 5100]
    assert hogwild.load_model(tmp_path / "m.hog").about["data"]["rows"] == ROWS
    assert threading.active_count() < 10
