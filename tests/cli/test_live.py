"""What a run shows on a terminal while it goes on, and that nothing else sees any of it."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest

import hogwild
from hogwild import OptionError, status
from hogwild.cli import main
from hogwild.data.files import load
from hogwild.data.synthetic import rcv1
from hogwild.display import Lines, ending
from hogwild.kernels import compile as compiling
from hogwild.live import Live, Notebook, Terminal, live
from hogwild.results import Quiet
from hogwild.status import Doing

HIDE_RICH = "import sys; sys.modules['rich'] = None; "
MAIN = "import sys; from hogwild.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    hogwild.save(rcv1(2000, 1000)[0], folder / "train.svm")
    return folder


def on_a_terminal(
    *words: str, cwd: Path, before: str = "", until: bytes = b"", **streams: Any
) -> tuple[int, str, bytes | None]:
    """The exit code, all that came to the terminal, and to standard output where that is a pipe.

    Ctrl-C comes when the terminal shows what the pattern `until` says.
    """
    ours, theirs = pty.openpty()
    ends = {"stdin": theirs, "stdout": theirs, "stderr": theirs} | streams
    command = [sys.executable, "-c", before + MAIN, *words]
    running = subprocess.Popen(command, cwd=cwd, **ends, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    got = b""
    try:
        while data := os.read(ours, 1 << 16):
            got += data
            if until and re.search(until, got):
                until = b""
                running.send_signal(signal.SIGINT)
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    piped, _ = running.communicate(timeout=60)
    return running.returncode, got.decode(), piped


def plain(*words: str, cwd: Path) -> str:
    """The same where there is no terminal."""
    with chdir(cwd), redirect_stdout(StringIO()) as said:
        assert main(list(words)) == 0
    return said.getvalue()


def left_of(text: str) -> str:
    """What stays on the terminal."""
    return re.sub(r"[^\n]*\r\x1b\[K", "", text.replace("\r\n", "\n"))


def timeless(text: str) -> str:
    """The output of a run, without what differs from one to the next."""
    return re.sub(r"[0-9.]+ s\b|(?m:^ +\d+ .*$)", "", text)


@pytest.mark.parametrize("before", ["", HIDE_RICH], ids=["rich", "plain"])
def test_a_terminal_shows_what_is_done_and_keeps_the_lines(folder: Path, before: str) -> None:
    words = ["train", "train.svm", "--epochs", "3", "--tol", "0", "--model", "m.hog"]
    code, seen, _ = on_a_terminal(*words, cwd=folder, before=before)
    assert code == 0
    for what in (
        "starting",
        "reading train.svm",
        "preparing",
        "saving m.hog",
    ):
        assert what in seen
    assert timeless(left_of(seen)) == timeless(plain(*words, cwd=folder))


def test_redirected_output_is_plain_while_errors_go_to_a_terminal(folder: Path) -> None:
    words = ["train", "train.svm", "--epochs", "3", "--tol", "0"]
    _, seen, piped = on_a_terminal(*words, cwd=folder, stdout=subprocess.PIPE)
    assert piped is not None
    assert b"\x1b" not in piped
    assert b"\r" not in piped
    assert "reading" not in piped.decode()
    assert "reading train.svm" in seen
    assert left_of(seen) == ""


def test_quiet_is_quiet_on_a_terminal(folder: Path) -> None:
    assert on_a_terminal("train", "train.svm", "--quiet", cwd=folder)[:2] == (0, "")


def test_results_are_not_mixed_with_what_is_done(folder: Path) -> None:
    plain("train", "train.svm", "--model", "p.hog", cwd=folder)
    for command in ("predict", "evaluate"):
        _, seen, _ = on_a_terminal(command, "p.hog", "train.svm", cwd=folder)
        assert f"{command.removesuffix('e')}ing" in seen
        assert left_of(seen) == plain(command, "p.hog", "train.svm", cwd=folder)


def test_ctrl_c_on_a_terminal_leaves_a_clean_line(folder: Path) -> None:
    words = ["train", "train.svm", "--epochs", "10000000", "--tol", "0", "--objective-every", "0"]
    later = rb"epoch \d\d+ of at most"  # before the first epoch is done, there is no model
    code, seen, _ = on_a_terminal(*words, "--solver", "sgd", cwd=folder, until=later)
    assert code == 130
    assert left_of(seen).endswith("hogwild: interrupted; no --model was asked for\n")


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_have_colors_with_rich_and_letters_without(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    now = Doing("reading x", share=0.5, more="9 MB/s")
    monkeypatch.setenv("TERM", "xterm-256color")
    colored = Screen()
    Live(Terminal(colored)).show(now)
    assert colored.getvalue().startswith("reading x  \x1b[")
    assert "9 MB/s" in colored.getvalue()
    monkeypatch.setitem(sys.modules, "rich", None)
    plain = Screen()
    Live(Terminal(plain)).show(now)
    assert plain.getvalue() == f"reading x  {'#' * 12}{'.' * 12}   50 %  9 MB/s"


def test_a_line_is_cut_to_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    narrow = Screen()
    Live(Terminal(narrow)).show(Doing("reading " + "x" * 50, share=0.5))
    assert len(narrow.getvalue()) == 29


class IPython:
    """What is displayed in a notebook."""

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def display(self, content: Any, **_: Any) -> "IPython":
        self.shown.append(content)
        return self

    update = display


def shown_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    python = IPython()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=python))
    monkeypatch.setitem(sys.modules, "IPython.display", python)
    place = Notebook()
    show = Live(place).show
    for now in (Doing("reading x"), Doing("reading y", share=0.5, more="9 MB/s"), None):
        show(now)
    place.end()
    return python.shown


def test_a_notebook_has_a_line_of_its_own_that_printing_leaves_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = {"text/plain": "", "text/html": ""}
    monkeypatch.setitem(sys.modules, "rich", None)
    bar = f"{'#' * 12}{'.' * 12}"
    lines = [{"text/plain": line} for line in ("reading x", f"reading y  {bar}   50 %  9 MB/s")]
    assert shown_in_a_notebook(monkeypatch) == [*lines, nothing]


def test_a_notebook_has_colors_with_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    first, second, last = shown_in_a_notebook(monkeypatch)
    assert first.plain == "reading x"
    assert second.plain == f"reading y  {'━' * 24}   50 %  9 MB/s"
    assert "color: #008000" in second._repr_mimebundle_([], [])["text/html"]
    assert last == {"text/plain": "", "text/html": ""}


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What is shown."""
    said: list[str] = []
    with status.shown_by(lambda now: said.append(f"{now.what} {now.more}" if now else "")):
        yield said


def test_a_kernel_that_is_compiled_says_so_and_a_known_one_does_not(
    said: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "cache_folder", lambda: tmp_path)
    for _ in range(2):  # the second time, there is a file
        kernel = compiling.kernel(numba.int64(numba.int64))(lambda number: number + 1)
        assert kernel(1) == 2
        told = {text for text in said if "compiling kernels (first run on this machine)" in text}
        assert len(told) == 1  # it may be shown more than once, if it takes long


def test_reading_says_how_far_and_how_fast(said: list[str], folder: Path) -> None:
    load(folder / "train.svm")
    rated = [text for text in said if text.startswith("reading train.svm")]
    assert any(re.search(r"[\d,]+ MB/s, \d+ s left", text) for text in rated)


def test_writing_says_so(said: list[str], folder: Path, tmp_path: Path) -> None:
    hogwild.save(hogwild.load(folder / "train.svm"), tmp_path / "rows.svm")
    hogwild.save_ratings(hogwild.Ratings([1, 2], [3, 4], [1.0, 2.0]), tmp_path / "ratings.csv")
    main(["generate", "text", str(tmp_path / "reviews.txt"), "--rows", "5000"])
    assert {"writing rows.svm ", "writing ratings.csv "} <= set(said)
    rated = [text for text in said if text.startswith("writing reviews.txt ")]
    assert any(re.search(r"\d MB, \d+ s left", text) for text in rated)


def test_a_command_is_shown_again_and_again(folder: Path) -> None:
    slow = "import time; from hogwild.cli import doctor, predict; "
    slow += "predict.run = lambda parsed: time.sleep(2.2); "
    words = ["predict", "m.hog", "train.svm"]
    _, seen, _ = on_a_terminal(*words, cwd=folder, before=slow)
    assert "predicting  1 s" in seen
    assert "predicting  2 s" in seen


def test_training_says_what_it_does(said: list[str], folder: Path, tmp_path: Path) -> None:
    rows, file = hogwild.load(folder / "train.svm"), tmp_path / "m.hog"
    hogwild.train(rows, epochs=3, tol=0, model=file, solver="sgd", watcher=Quiet())
    shown = list(dict.fromkeys(text.strip() for text in said if text))
    wanted = ["preparing", "searching for a learning rate", "epoch 1 of at most 3"]
    wanted += ["epoch 2 of at most 3", "making the model", f"saving {file}"]
    assert [text for text in shown if text in wanted] == wanted
    said.clear()
    hogwild.search(rows, l2=[1e-3, 1e-4], folds=2, watcher=Quiet())
    assert any(text.startswith("comparing 3 of 4 trainings, ") for text in said)


def test_an_epoch_is_shown_with_the_time_left(said: list[str]) -> None:
    rows = rcv1(20_000, 3_000)[0]
    hogwild.train(rows, epochs=200, tol=0, solver="sgd", time_limit=1, watcher=Quiet())
    assert any(re.fullmatch(r"epoch \d+ of at most 200 at most \d s left", text) for text in said)


def test_what_takes_long_is_shown_again_and_again(said: list[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(status, "BEAT", 0.01)
    with status.doing("thinking"):
        time.sleep(0.2)
    assert said.count("thinking ") > 3


def test_python_prints_the_lines_of_the_command_line_if_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = hogwild.load(folder / "train.svm")
    options = {"epochs": 3, "tol": 0.0}
    hogwild.train(rows, **options)
    assert capsys.readouterr().out == ""
    hogwild.train(rows, verbose=1, **options)
    said = capsys.readouterr().out
    assert f"{folder / 'train.svm'}: 2,000 rows" in said
    assert said.endswith("try epochs=9\n")
    result = hogwild.train(rows, verbose=2, **options)
    why = result.header["chosen"]["why"]
    assert why in capsys.readouterr().out.replace("\n ", "")
    assert why not in said.replace("\n ", "")
    with pytest.raises(OptionError, match="verbose: not together with a watcher"):
        hogwild.train(rows, verbose=1, watcher=Lines())
    found = hogwild.search(rows, l2=[1e-3, 1e-4], verbose=1)
    assert "picked l2" in capsys.readouterr().out
    assert repr(found).startswith("<SearchResult ")


@pytest.mark.parametrize("kind", ["HogwildClassifier", "HogwildRegressor"])
def test_estimators_are_verbose_if_asked(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = hogwild.load(folder / "train.svm")
    for verbose in (0, 1):
        getattr(hogwild, kind)(verbose=verbose).fit(rows)
        assert ("2,000 rows" in capsys.readouterr().out) == bool(verbose)


def result(reason: str, objectives: list[float], gap: float | None = None, **options: Any) -> Any:
    """What `ending` looks at."""
    trace = [
        {"seconds": float(number), "objective": objective, "gap": gap}
        for number, objective in enumerate(objectives, 1)
    ]
    options = {"tol": 1e-3, "objective_every": 1, "time_limit": None, "l2": 1e-4, "l1": 0} | options
    model = SimpleNamespace(about={"trace": {"last": {"epoch": 1}}})
    header = {"options": options, "chosen": {"proves": gap is not None}}
    return SimpleNamespace(reason=reason, trace=trace, header=header, model=model)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (
            result("epochs", [1.0, 0.5, 0.49]),
            "stopped after 3 epochs (the limit) in 3.000 s, not converged: the objective still "
            "falls 2 % an epoch; try --epochs 9",
        ),
        (
            result("epochs", [0.5, 0.5]),
            "stopped after 2 epochs (the limit) in 2.000 s: the objective hardly falls any more",
        ),
        (
            result("epochs", [0.5]),
            "stopped after 1 epoch (the limit) in 1.000 s, not converged: there were too few "
            "epochs to tell; try --epochs 3",
        ),
        (
            result("epochs", [0.5], gap=0.02),
            "stopped after 1 epoch (the limit) in 1.000 s, not converged: within 2 % of the "
            "optimum, proved; try --epochs 3",
        ),
        (
            result("time", [1.0, 0.8], time_limit=2.0),
            "stopped after 2 epochs in 2.000 s (the time limit), not converged: the objective "
            "still falls 20 % an epoch; try --time-limit 6",
        ),
        (
            result("overfitting", [0.5, 0.4, 0.3]),
            "stopped after 3 epochs in 3.000 s: the loss on held-out data no longer falls; the "
            "model is from epoch 1",
        ),
        (result("target", [0.5]), "stopped at the target after 1 epoch in 1.000 s"),
        (
            result("stuck", [0.5], gap=1e-8),
            "stopped after 1 epoch in 1.000 s, within 1e-06 % of the optimum, proved; single "
            "precision may prove no more",
        ),
        (
            result("unreachable", [0.5], gap=1e-3),
            "stopped after 1 epoch in 1.000 s, within 0.1 % of the optimum, proved; the target is "
            "below the optimum",
        ),
        (
            result("converged", [0.5], gap=1e-4),
            "converged after 1 epoch in 1.000 s, within 0.01 % of the optimum, proved",
        ),
        (result("interrupted", [0.5]), "interrupted after 1 epoch in 1.000 s"),
        (result("good", [0.5]), "stopped by a callback (good) after 1 epoch in 1.000 s"),
    ],
    ids=lambda value: value.reason if hasattr(value, "reason") else "",
)
def test_the_last_line_says_what_happened_and_what_to_do(ended: Any, said: str) -> None:
    assert ending(ended, lambda name, value: f"--{name.replace('_', '-')} {value}") == said


def test_results_and_models_are_short_and_have_a_table_and_a_curve(folder: Path) -> None:
    ratings = hogwild.Ratings(np.arange(60) % 6, np.arange(60) % 7, np.ones(60))
    for trained in (
        hogwild.train(hogwild.load(folder / "train.svm"), solver="sgd", epochs=3, tol=0),
        hogwild.train(ratings, epochs=3, tol=0),
    ):
        objective = trained.trace[-1]["objective"]
        assert repr(trained).startswith(f"<Result epochs, 3 epochs, objective {objective:.6g}, <")
        assert len(repr(trained)) < 200
        page = trained._repr_html_()
        for part in ("<table>", "<svg", "Learning curve", "objective", f"{objective:.6g}"):
            assert part in page
        assert "<script" not in page
        assert f"{objective:.6g}" in trained.model._repr_html_()
        assert "<svg" not in trained.model._repr_html_()


def test_nothing_is_shown_where_there_is_no_terminal() -> None:
    with live():
        assert status._show is None


def test_new_words_of_a_long_task_are_drawn_at_once() -> None:
    drawn = StringIO()
    show = Live(Terminal(drawn)).show
    now = Doing("measuring", over=True)
    for now.more in ("reading the data", "finding the optimum"):
        show(now)
    assert "finding the optimum" in drawn.getvalue()
