"""The command line, end to end; in a process of its own where that makes a difference."""

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import psutil
import pytest

import hogwild
from hogwild import machine, status, warm
from hogwild.cli import COMMANDS, _quick_start, main
from hogwild.cli.parser import GROUPS
from hogwild.config import Config
from hogwild.data.synthetic import rcv1
from hogwild.learn.metrics import CLASS_METRICS

Ran = subprocess.CompletedProcess[str]
Start = Callable[..., subprocess.Popen[str]]


def run(*words: object, cwd: Path | None = None, strict: bool = True, timeout: float = 120) -> Ran:
    """Runs it; a warning of whatever part of Python ends a strict run."""
    strictly = ["-W", "error"] if strict else []
    command = [sys.executable, *strictly, "-m", "hogwild", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, cwd=cwd, check=False
    )


def call(*words: object, cwd: Path) -> Ran:
    """The same in this process, which costs no start of Python."""
    with (
        warnings.catch_warnings(action="error"),
        chdir(cwd),
        redirect_stdout(StringIO()) as said,
        redirect_stderr(StringIO()) as problems,
    ):
        code = main(list(map(str, words)))
    return Ran(words, code, said.getvalue(), problems.getvalue())


def after_some_epochs(
    start: Start, words: str, folder: Path, before: str = ""
) -> subprocess.Popen[str]:
    """Starts it, and returns when a few epochs are done."""
    script = f"{before}exec {sys.executable} -m hogwild {words}"
    process = start(["sh", "-c", script], cwd=folder)
    assert process.stdout is not None
    while not re.match(r" +5 ", process.stdout.readline()):
        pass
    return process


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Training and test rows, and a model of each task."""
    folder = tmp_path_factory.mktemp("cli")
    hogwild.save(rcv1(2000, 1000)[0], folder / "train.svm")
    hogwild.save(rcv1(500, 1000, first_row=2000)[0], folder / "test.svm")
    for task in ("svm", "logistic"):
        done = run("train", "train.svm", "--task", task, "--model", f"{task}.hog", cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_train_prints_a_line_for_each_epoch_and_why_it_stopped(folder: Path) -> None:
    done = run("train", "train.svm", "--test", "test.svm", "--epochs", 3, "--tol", 0, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith(" epoch"))
    assert lines[head].split()[:3] == ["epoch", "seconds", "objective"]
    epochs = [line.split() for line in lines[head + 1 : head + 4]]
    assert [int(words[0]) for words in epochs] == [1, 2, 3]
    seconds = [float(words[1]) for words in epochs]
    assert seconds == sorted(seconds)
    assert lines[head + 4].startswith("stopped after 3 epochs (the limit) in ")
    assert ", not converged: " in lines[head + 4]
    assert lines[head + 4].endswith("; try --epochs 9")
    assert "\r" not in done.stdout  # no live display where there is no terminal


def test_the_json_is_the_trace_file(folder: Path) -> None:
    words = ["train", "train.svm", "--json", "--trace", "t.jsonl", "--epochs", 2, "--workers", 2]
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (folder / "t.jsonl").read_text()
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["kind"] for row in rows] == ["header", "epoch", "epoch", "end"]
    header = rows[0]
    assert header["options"]["workers"] == header["chosen"]["workers"] == 2
    assert header["options"]["seed"] == 0
    assert (header["options"]["strategy"], header["chosen"]["strategy"]) == ("auto", "combine")
    assert set(header["versions"]) >= {"hogwild", "python", "numpy", "numba"}
    assert header["machine"]["cpu"]
    assert header["chosen"]["backend"] == "process"
    assert rows[-1]["reason"] == "epochs"
    assert rows[-1]["peak_memory"] > 1 << 20
    assert "other_load" in rows[-1]


def test_quiet_is_quiet(folder: Path) -> None:
    done = call("train", "train.svm", "--quiet", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_option_of_python_is_one_of_the_command_line(folder: Path) -> None:
    words = "--task logistic --loss squared_hinge --l2 1e-3 --no-intercept --epochs 4 --tol 1e-9"
    words += " --patience 3"
    words += " --target 1e-9 --time-limit 60 --workers 2 --strategy minibatch --backend thread"
    words += " --worker-patience 3"
    words += " --deterministic --batch 64 --solver sgd"
    words += " --schedule backoff --eta0 0.05 --beta 0.8 --no-average --objective-every 2 --seed 7"
    done = call("train", "train.svm", "--json", *words.split(), cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["options"] == {
        "task": "logistic",
        "loss": "squared_hinge",
        "l2": 1e-3,
        "intercept": False,
        "epochs": 4,
        "tol": 1e-9,
        "target": 1e-9,
        "time_limit": 60.0,
        "memory": None,
        "workers": 2,
        "strategy": "minibatch",
        "merge": "mean",
        "deterministic": True,
        "batch": 64,
        "backend": "thread",
        "worker_patience": 3.0,
        "solver": "sgd",
        "schedule": "backoff",
        "eta0": 0.05,
        "beta": 0.8,
        "average": False,
        "objective_every": 2,
        "seed": 7,
        "patience": 3,
        "l1": 0.0,
        **dict.fromkeys(("early_stopping", "class_weight", "epsilon", "quantile")),
    }
    assert [row["rate"] for row in rows[1:-1]] == pytest.approx([0.05, 0.04, 0.032, 0.0256])
    assert [row["objective"] is None for row in rows[1:-1]] == [True, False, True, False]


def test_a_target_ends_training(folder: Path) -> None:
    done = call("train", "train.svm", "--target", 0.9, "--epochs", 50, cwd=folder)
    assert "stopped at the target after " in done.stdout


def test_predictions_are_those_of_the_model(folder: Path) -> None:
    model = hogwild.load_model(folder / "logistic.hog")
    rows = hogwild.load(folder / "test.svm")
    labels = call("predict", "logistic.hog", "test.svm", cwd=folder).stdout.split()
    assert [float(label) for label in labels] == model.predict(rows).tolist()
    assert set(labels) == {"-1", "1"}
    scores = call("predict", "logistic.hog", "test.svm", "--score", cwd=folder).stdout.split()
    assert np.array(scores, np.float32).tobytes() == model.decision_function(rows).tobytes()
    done = call("predict", "logistic.hog", "test.svm", "--proba", "--output", "p.txt", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    odds = np.loadtxt(folder / "p.txt")
    np.testing.assert_allclose(odds, model.predict_proba(rows)[:, 1], rtol=1e-7)


def test_evaluate_agrees_with_the_last_epoch(folder: Path) -> None:
    done = call("evaluate", "svm.hog", "train.svm", "--json", cwd=folder)
    found = json.loads(done.stdout)
    last = hogwild.load_model(folder / "svm.hog").about["trace"]["last"]
    assert found["objective"] == pytest.approx(last["objective"], rel=1e-5)
    assert found["error"] == last["train_error"]
    shown = call("evaluate", "svm.hog", "train.svm", cwd=folder).stdout
    assert f"{found['objective']:.6f}" in shown
    assert "no probabilities" in shown


def test_evaluate_certifies(folder: Path) -> None:
    shown = call("evaluate", "svm.hog", "train.svm", "--certify", cwd=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    words = ["evaluate", "svm.hog", "train.svm", "--certify", "--json"]
    found = json.loads(call(*words, cwd=folder).stdout)
    assert 0 < found["bound"] <= found["objective"]
    assert found["gap"] == pytest.approx(found["objective"] / found["bound"] - 1)
    assert shown.stdout.endswith(f"within {100 * found['gap']:.2g} % of the optimum, proved\n")
    assert found["how"] in shown.stdout
    other = json.loads(call(*words, "--loss", "logistic", "--l2", "0.1", cwd=folder).stdout)
    assert (other["loss"], other["l2"]) == ("logistic", 0.1)
    assert other["gap"] > found["gap"]
    far = call(*words[:-1], "--loss", "logistic", "--l2", 10, cwd=folder)
    assert re.search(r"\nat most [\d.e+]+ times the optimum, proved\n$", far.stdout)


def test_gaps_that_are_no_share_are_said_in_other_words(folder: Path, tmp_path: Path) -> None:
    options = "--solver", "dual", "--workers", 1, "--l2", 1e-5, "--epochs", 2
    done = call("train", "train.svm", *options, cwd=folder)
    assert re.search(r"> 100 % .*\n.*: at most [\d.]+ times the optimum, proved; try", done.stdout)
    hogwild.save(hogwild.Rows(np.eye(50), np.full(50, 3.0)), tmp_path / "constant.svm")
    ends = {"newton": "within 0 % of", "dual": "nothing beside the objective of zero weights"}
    for solver, end in ends.items():
        options = "--task", "regression", "--solver", solver
        done = call("train", "constant.svm", *options, cwd=tmp_path)
        assert "\nconverged after" in done.stdout
        assert end in done.stdout.splitlines()[-1]


def test_evaluate_certifies_several_classes(tmp_path: Path) -> None:
    lines = [f"{1 + k % 3} {1 + k % 3}:1 4:{0.5 + k % 2}\n" for k in range(30)]
    (tmp_path / "d.svm").write_text("".join(lines))
    hogwild.train(tmp_path / "d.svm", task="softmax", l2=0.01, model=tmp_path / "m.hog")
    head = "solver_type L2R_L2LOSS_SVC\nnr_class 3\nlabel 3 1 2\nnr_feature 4\nbias -1\nw\n"
    (tmp_path / "m.txt").write_text(head + "0 1 0\n0 0 1\n1 0 0\n0 0 0\n")
    (tmp_path / "other.svm").write_text("".join(lines).replace("3 3:1", "4 3:1"))
    words = ["evaluate", "m.hog", "d.svm", "--certify"]
    found = json.loads(call(*words, "--json", cwd=tmp_path).stdout)
    assert (found["loss"], found["l2"]) == ("cross_entropy", 0.01)
    assert 0 < found["bound"] <= found["objective"] and found["gap"] <= 1e-3
    words[1] = "m.txt"
    done = call(*words, "--l2", 0.1, cwd=tmp_path)
    assert done.returncode == 0 and "each of 3 against the rest" in done.stdout
    # Of each class |w| is 1, and only the rows of others have a margin of 0
    assert re.search(r"objective +2\.15 ", done.stdout)
    done = call(*words, "--l2", 0.1, "--loss", "cross_entropy", cwd=tmp_path)
    assert "(cross_entropy loss, l2 0.1)" in done.stdout and "proved" in done.stdout
    words[2] = "other.svm"
    done = call(*words, "--l2", 0.1, cwd=tmp_path)
    assert done.returncode == 1 and "row 3 has the label 4" in done.stderr
    done = call(*words, "--l2", 0.1, "--loss", "huber", cwd=tmp_path)
    assert done.returncode == 2 and "--loss: for huber nothing can be proved" in done.stderr


def test_evaluate_prints_a_metric_as_soon_as_there_is_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CLASS_METRICS, "a_metric_of_one_s_own", lambda scores, *rest: 0.25)
    assert main(["evaluate", str(folder / "svm.hog"), str(folder / "train.svm")]) == 0
    assert "\na metric of one s own 0.250000\n" in capsys.readouterr().out


def test_generate_gives_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        words = ["generate", "rcv1", f"{name}.svm", "--rows", 300, "--columns", 500, "--seed", seed]
        assert call(*words, cwd=tmp_path).returncode == 0
    contents = {name: (tmp_path / f"{name}.svm").read_bytes() for name in "abc"}
    assert contents["a"] == contents["b"] != contents["c"]


def test_inspect_says_what_the_numbers_mean(folder: Path) -> None:
    done = call("inspect", "train.svm", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("rows", "columns", "non-zeros", "Omega", "Delta", "rho", "workers"):
        assert word in done.stdout
    found = json.loads(call("inspect", "train.svm", "--json", cwd=folder).stdout)
    assert found["rows"] == 2000


def test_doctor_says_what_may_be_used() -> None:
    found = json.loads(run("doctor", "--json").stdout)
    assert found["cores"]["usable"] == machine.usable_cores()
    assert found["kernel_cache"]["folder"]
    assert found["memory"]["peak"] > 1 << 20
    assert found["other_load"] >= 0
    said = run("doctor").stdout
    assert f"the machine has {os.cpu_count()}" in said
    assert "other programs keep" in said


def test_a_pipe_that_closes_early_is_no_traceback(folder: Path) -> None:
    script = f"{sys.executable} -m hogwild predict svm.hog test.svm | head -n 1"
    done = subprocess.run(
        script, shell=True, capture_output=True, text=True, cwd=folder, timeout=60, check=False
    )
    assert done.stdout in ("1\n", "-1\n")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["train"], 2, "required: DATA"),
        (["trian", "x"], 2, "there is no command 'trian'; did you mean train?"),
        (["train", "x", "--epohcs", "3"], 2, "no option --epohcs; did you mean --epochs? (see"),
        (["similar", "x", "y", "z"], 2, "'z' is a word too many"),
        (["train", "x", "y"], 1, "x: there is no such file"),
        (["completion", "fish"], 2, "invalid choice: 'fish'"),
        (["train", "none.svm"], 1, "none.svm"),
        (["train", "train.svm", "--epochs", "x"], 2, "--epochs: expected a whole number, not 'x'"),
        (["train", "train.svm", "--l2", "-1", "--eta0", "0"], 2, "--l2: must be at least 0"),
        (["train", "train.svm", "--l2", "-1", "--eta0", "0"], 2, "--eta0: must be above 0"),
        (["train", "train.svm", "--loss", "h"], 2, "--loss: 'h' is not one of hinge, squared"),
        (["train", "train.svm", "--beta", "0.5"], 2, "--beta: it needs the schedule backoff"),
        (["train", "train.svm", "--model", "no/m.hog"], 2, "there is no folder"),
        (["train", "train.svm", "--model", "."], 2, ". is a folder"),
        (["train", "train.svm", "--json", "--quiet"], 2, "choose one"),
        (["train", "train.svm", "--eta0", "1e300"], 1, "eta0 = 1e+300 is too large"),
        (["train", "train.svm", "--test", "none.svm"], 2, "--test: there is no file none.svm"),
        (["train", "train.svm", "--model", "train.svm"], 2, "train.svm is an input, too"),
        (["train", "train.svm", "--model", "x", "--trace", "x"], 2, "x is the model, too"),
        (["train", "train.svm", "--model", "/dev/null"], 2, "/dev/null is a device"),
        (["predict", "svm.hog", "test.svm", "--output", "test.svm"], 2, "is an input, too"),
        (["generate", "rcv1", "x.svm", "--weights", "x.svm"], 2, "x.svm is the output, too"),
        (["predict", "train.svm", "test.svm"], 1, "train.svm is not a model of hogwild"),
        (["predict", "svm.hog", "test.svm", "--proba"], 1, "gives scores, not probabilities"),
        (["predict", "svm.hog", "test.svm", "--proba", "--score"], 2, "choose one"),
        (["predict", "svm.hog", "none.svm"], 1, "none.svm"),
        (["evaluate", "none.hog", "test.svm"], 1, "cannot read the model none.hog"),
        (["evaluate", "svm.hog", "train.svm", "--l2", "1"], 2, "--l2: it needs --certify"),
        (["evaluate", "train.svm", "train.svm", "--certify"], 1, "train.svm is not a model:"),
        (["evaluate", "svm.hog", "train.svm", "--certify", "--l2", "-1"], 2, "--l2: must be at"),
        (["generate", "rcv1", "x.svm", "--rows", "0"], 2, "rows"),
        (["generate", "rcv1", "x.svm", "--targets", "counts", "--classes", "3"], 2, "leave out"),
        (["inspect", "none.svm"], 1, "none.svm"),
    ],
)
def test_mistakes_are_named_without_a_traceback(
    folder: Path, words: list[str], code: int, said: str
) -> None:
    done = call(*words, cwd=folder)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_all_wrong_options_are_named_before_a_file_is_read(folder: Path) -> None:
    done = call("train", "none.svm", "--l2", "-1", "--seed", "x", "--model", "no/m", cwd=folder)
    assert done.returncode == 2
    for word in ("--l2", "--seed", "no/m"):
        assert word in done.stderr
    assert "none.svm" not in done.stderr


def test_test_rows_with_columns_and_labels_that_training_never_saw(folder: Path) -> None:
    (folder / "wide.svm").write_text("1 1:1 5000:2\n-1 2:1 6000:1 6001:1\n")
    done = call("train", "train.svm", "--test", "wide.svm", "--epochs", 1, cwd=folder)
    assert done.returncode == 0
    assert done.stdout.count("3 values are in columns that training never saw") == 1
    (folder / "third.svm").write_text("1 1:1\n3 2:1\n")
    done = call("train", "train.svm", "--test", "third.svm", cwd=folder)
    assert done.returncode == 1
    assert "row 2 has the label 3" in done.stderr


def test_predicting_rows_that_are_wider_than_the_model(folder: Path) -> None:
    (folder / "wide.svm").write_text("1 1:1 5000:2\n-1 2:1\n")
    done = run("predict", "svm.hog", "wide.svm", cwd=folder, strict=False)
    assert done.returncode == 0
    assert len(done.stdout.split()) == 2
    assert done.stderr.count("1 values are in columns that the model never saw") == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_saves_the_model_so_far(folder: Path, workers: int, start: Start) -> None:
    words = f"train train.svm --workers {workers} --epochs 1000000 --tol 0 --model so-far.hog"
    process = after_some_epochs(start, words, folder)
    workers_of_it = psutil.Process(process.pid).children()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    began = time.monotonic()
    _, problems = process.communicate(timeout=10)
    assert time.monotonic() - began < 1.0  # half a second, and Python's own ending
    assert process.returncode == 130
    assert "the model so far is in so-far.hog" in problems
    assert "Traceback" not in problems
    assert len(workers_of_it) == (0 if workers == 1 else workers)
    assert not any(worker.is_running() for worker in workers_of_it)
    assert np.isfinite(hogwild.load_model(folder / "so-far.hog").weights).all()
    (folder / "so-far.hog").unlink()


def test_a_killed_worker_is_replaced_and_that_is_told_once(folder: Path, start: Start) -> None:
    words = "train train.svm --workers 2 --epochs 1000000 --tol 0 --model kept.hog"
    process = after_some_epochs(start, words, folder)
    program = psutil.Process(process.pid)
    for _ in range(2):
        first = program.children()[0]
        first.kill()
        deadline = time.monotonic() + 10
        while first in (now := program.children()) or len(now) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    told, problems = process.communicate(timeout=10)
    assert process.returncode == 130
    assert told.count("was ended by SIGKILL; new workers take over, and epoch") == 1
    assert "the model so far is in kept.hog" in problems
    assert hogwild.load_model(folder / "kept.hog").about["trace"]["reason"] == "interrupted"


def test_a_full_disk_is_told_and_leaves_nothing() -> None:
    """/dev/full takes no byte, so the predictions cannot be written."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    done = run("doctor")
    script = f"{sys.executable} -m hogwild doctor > /dev/full"
    full = subprocess.run(
        script, shell=True, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert full.returncode == 1
    assert "No space left" in full.stderr
    assert "Traceback" not in full.stderr


def test_help_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        assert main([command, "--help"]) == 0
        said = capsys.readouterr().out
        assert f"usage: hogwild {command}" in said
        assert said.split("examples:")[1].count(f"\n  hogwild {command}") == 2
    assert main(["train", "--help"]) == 0
    said = capsys.readouterr().out
    places = [said.index(f"\n{title}:\n") for title in GROUPS]
    assert places == sorted(places)
    parallel, output = (places[GROUPS.index(title)] for title in ("parallel", "output"))
    assert parallel < said.index("--workers N") < output < said.index("--trace FILE")


def test_without_a_command_it_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "commands:" in capsys.readouterr().err


def test_help_offers_what_the_task_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--task=mf", "--help"]) == 0
    said = capsys.readouterr().out
    assert "--loss squared|absolute|logistic|kl" in said
    assert "--rank N" in said
    assert "--class-weight" not in said
    assert main(["train", "--task", "softmax", "--help"]) == 0
    said = capsys.readouterr().out
    assert "--loss cross_entropy " in said
    assert "--rank N" not in said


def test_help_waits_for_nothing() -> None:
    script = "import sys; from hogwild.cli import main; main(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"numpy", "numba", "rich"} & set(done.stdout.split())


def test_the_shell_completes_commands_options_and_choices() -> None:
    for words, found in (
        ("hogwild tra", "train"),
        ("hogwild train --early", "--early-stopping"),
        ("hogwild train --backend th", "thread"),
        ("hogwild train some", ""),
    ):
        script = call("completion", "bash", cwd=Path()).stdout
        script += f"COMP_WORDS=({words}) COMP_CWORD={words.count(' ')}; _hogwild\n"
        done = subprocess.run(
            ["bash", "-c", script + 'echo "${COMPREPLY[*]}"'],
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == (f"{found}\n", "")
    assert "bashcompinit" in call("completion", "zsh", cwd=Path()).stdout


@pytest.mark.parametrize("loss", ["log_loss", "logistic"])
def test_a_loss_has_scikit_learns_name_too(folder: Path, loss: str) -> None:
    done = call("train", "train.svm", "--loss", loss, "--model", "l.hog", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "logistic loss" in done.stdout
    words = ["evaluate", "l.hog", "train.svm", "--certify", "--loss", loss, "--json"]
    assert json.loads(call(*words, cwd=folder).stdout)["loss"] == "logistic"
    rows = hogwild.load(folder / "train.svm")
    assert hogwild.train(rows, loss=loss).model.loss == "logistic"
    assert hogwild.HogwildClassifier(loss).fit(rows).model_.loss == "logistic"


def test_reasons_are_for_those_who_ask(folder: Path) -> None:
    brief, long = (call("train", "train.svm", *why, cwd=folder).stdout for why in ([], ["--why"]))
    why = json.loads(call("train", "train.svm", "--json", cwd=folder).stdout.splitlines()[0])
    why = why["chosen"]["why"]
    assert why not in brief.replace("\n ", "")
    assert why in long.replace("\n ", "")


def test_doctor_compiles_what_is_usual(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some = warm.trainings()
    assert len({(one["task"], one.get("loss"), one.get("solver")) for one in some}) > 20
    for one in some:
        Config.of({name: value for name, value in one.items() if name != "classes"})
    done: list[str] = []
    works = [("svm hinge", lambda: done.append("svm hinge")), ("text", lambda: done.append("text"))]
    monkeypatch.setattr(warm, "works", lambda folder: works)
    shown: list[str] = []
    with status.shown_by(lambda now: shown.append(now.more if now else "")):
        assert main(["doctor", "--warm"]) == 0
    assert [text for text in shown if " of " in text] == ["0 of 2: svm hinge", "1 of 2: text"]
    assert done == ["svm hinge", "text"]
    assert "kernel cache" in capsys.readouterr().out


@pytest.mark.slow
def test_after_that_usual_commands_compile_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)

    def compiled() -> set[str]:
        return {path.name for path in (tmp_path / "cache").rglob("*.kernel")}

    assert run("doctor", "--warm", cwd=tmp_path, timeout=900).returncode == 0
    known = compiled()
    assert len(known) > 150
    for words in (
        "generate rcv1 a.svm --rows 3000 --columns 500",
        "train a.svm --task logistic --test a.svm --model a.hog",
        "train a.svm --solver sgd --workers 2",
        "evaluate a.hog a.svm --certify",
        "predict a.hog a.svm --proba --output a.txt",
        "inspect a.hog --top 3",
        "convert a.svm a.rows",
        "train a.rows --folds 3",
        "generate text b.txt --rows 3000",
        "train b.txt --format text --ngrams 2 --idf --model b.hog",
        "predict b.hog b.txt --output b.labels",
        "generate ratings c.csv --users 300 --items 200 --ratings 9000 --test d.csv",
        "train c.csv --rank 16 --test d.csv --model c.hog",
        "recommend c.hog --user 42 --exclude-seen c.csv",
    ):
        assert run(*words.split(), cwd=tmp_path).returncode == 0, words
        assert compiled() == known, words


def test_the_planted_weights_err_by_the_noise_alone(tmp_path: Path) -> None:
    words = ["generate", "rcv1", "d.svm", "--rows", 5000, "--weights", "planted.hog"]
    assert call(*words, cwd=tmp_path).returncode == 0
    found = json.loads(call("evaluate", "planted.hog", "d.svm", "--json", cwd=tmp_path).stdout)
    assert found["error"] == pytest.approx(0.06, abs=0.015)
    for kind, key, value in (("numbers", "rmse", 0.5), ("counts", "deviance", 1.03)):
        assert run(*words, "--targets", kind, cwd=tmp_path).returncode == 0
        found = json.loads(run("evaluate", "planted.hog", "d.svm", "--json", cwd=tmp_path).stdout)
        assert found[key] == pytest.approx(value, rel=0.05)


@pytest.mark.parametrize("buffering", ["", "-u"])
@pytest.mark.parametrize(
    "words", ["predict svm.hog train.svm", "train train.svm --epochs 100 --tol 0 --json"]
)
def test_output_that_is_cut_off_is_told(
    words: str, buffering: str, folder: Path, tmp_path: Path
) -> None:
    """A limit on a file's size is met as a full disk is: in the middle of a write."""
    script = f"exec {sys.executable} {buffering} -m hogwild {words} > {tmp_path / 'cut'}"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 4; {script}"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.stderr.count("File too large") == 1
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert (tmp_path / "cut").stat().st_size in (2048, 4096)


@pytest.mark.parametrize("where", ["> /dev/full", ">&-", "| head -n 1"])
def test_training_goes_on_where_nobody_reads(folder: Path, where: str) -> None:
    model = folder / "unseen.hog"
    script = f"{sys.executable} -m hogwild train train.svm --epochs 50 --tol 0 --model {model}"
    done = subprocess.run(
        f"{script} {where}",
        shell=True,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert hogwild.load_model(model).about["trace"]["epochs"] == 50
    model.unlink()


@pytest.mark.parametrize("ignored", [False, True], ids=["in front", "in the background"])
def test_a_batch_systems_sigterm_saves_the_model_so_far(
    folder: Path, ignored: bool, start: Start
) -> None:
    words = "train train.svm --workers 2 --epochs 1000000 --tol 0 --model so-far.hog"
    process = after_some_epochs(start, words, folder, "trap '' INT; " if ignored else "")
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == 130
    assert hogwild.load_model(folder / "so-far.hog").about["trace"]["reason"] == "interrupted"
    (folder / "so-far.hog").unlink()


def test_a_model_of_zero_based_text_reads_text_as_zero_based(tmp_path: Path) -> None:
    """Column 0 tells the label in training; the file to predict has no column 0 at all."""
    lines = [f"{1 if row % 2 else -1} " + ("0:1 " if row % 2 else "") + "1:1" for row in range(40)]
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "new.svm").write_text("-1 1:1\n-1 1:1\n")
    assert call("train", "train.svm", "--model", "m.hog", cwd=tmp_path).returncode == 0
    assert call("predict", "m.hog", "new.svm", cwd=tmp_path).stdout.split() == ["-1", "-1"]


@pytest.mark.parametrize("chosen", [None, "2"])
def test_a_quick_start_leaves_the_program_as_it_was(chosen, monkeypatch):
    if chosen is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", chosen)
    with _quick_start():
        assert os.environ["OPENBLAS_NUM_THREADS"] == (chosen or "1")
        assert not gc.isenabled()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == chosen
    assert gc.isenabled()
    gc.unfreeze()
