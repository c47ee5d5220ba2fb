"""`hogwild train --config`: options from a TOML file, and those of an earlier run."""

import json
from pathlib import Path

import pytest

import hogwild
from hogwild.cli import main
from hogwild.data.synthetic import rcv1


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hogwild.save(rcv1(300, 400)[0], "train.svm")


def options_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """The options of a run."""
    assert main(["train", *words, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    header: dict[str, object] = next(row for row in rows if row["kind"] == "header")["options"]
    return header


def test_the_command_line_wins_over_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text(
        'data = "train.svm"\ntask = "logistic"\nl2 = 1e-3\ntime-limit = 50\nintercept = false\n'
        "deterministic = true\nquiet = false\n"
    )
    found = options_of(capsys, "--config", "run.toml", "--l2", "0.5", "--epochs", "4")
    assert (found["task"], found["l2"], found["time_limit"]) == ("logistic", 0.5, 50.0)
    assert (found["intercept"], found["deterministic"], found["epochs"]) == (False, True, 4)
    Path("run.toml").write_text('data = "none.svm"\n')
    assert options_of(capsys, "train.svm", "--config", "run.toml")["task"] == "svm"


@pytest.mark.parametrize("l2", ["1e-3", "1e-4:1e-2:2"])
def test_a_run_can_be_done_once_more(capsys: pytest.CaptureFixture[str], l2: str) -> None:
    words = ["train.svm", "--task", "logistic", "--l2", l2, "--class-weight", "1:2,-1:1"]
    words += ["--seed", "7", "--no-intercept", "--solver", "sgd", "--workers", "1"]
    assert main(["train", *words, "--model", "a.hog", "--trace", "a.jsonl"]) == 0
    assert main(["train", "--config", "a.jsonl", "--model", "b.hog", "--trace", "b.jsonl"]) == 0
    first, second = (hogwild.load_model(name).weights for name in ("a.hog", "b.hog"))
    assert first.tobytes() == second.tobytes()
    asked = [
        json.loads(Path(f"{name}.jsonl").read_text().splitlines()[0])["asked"] for name in "ab"
    ]
    assert asked[0] == asked[1]
    assert asked[0]["data"] == "train.svm"
    capsys.readouterr()


def test_what_python_trained_can_be_done_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    result = hogwild.train("train.svm", class_weight={1: 2.0, -1: 1.0}, seed=3, trace="a.jsonl")
    assert main(["train", "--config", "a.jsonl", "--model", "b.hog"]) == 0
    assert hogwild.load_model("b.hog").weights.tobytes() == result.model.weights.tobytes()
    hogwild.train(hogwild.load("train.svm"), l1=1e-3, trace="c.jsonl")
    assert main(["train", "--config", "c.jsonl"]) == 2  # no file held the rows
    assert "required: DATA" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("epohcs = 3", 2, "run.toml: there is no option 'epohcs'; did you mean epochs?"),
        ("help = true", 2, "there is no option 'help'"),
        ("[train]\nl2 = 1", 2, "there is no option 'train'"),
        ("l2 = true", 2, "l2 cannot be True"),
        ("quiet = 3", 2, "quiet cannot be 3"),
        ("l2 = 2020-01-01", 2, "l2 cannot be"),
        ("l2 = -1", 2, "--l2: must be at least 0"),
        ("epochs = 'x'", 2, "--epochs: expected a whole number, not 'x'"),
        ("l2 = ", 1, "run.toml is neither TOML nor a trace"),
        ('{"kind": "epoch"}', 1, "run.toml is not a trace that has the options of its run"),
        ('{"kind": "header"}', 1, "run.toml is not a trace that has the options of its run"),
        ("{", 1, "run.toml is not a trace that has the options of its run"),
        ("seed = 1", 2, "the following arguments are required: DATA"),
    ],
)
def test_a_wrong_file_is_refused(
    capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    Path("run.toml").write_text(text)
    data = [] if "seed" in text else ["train.svm"]
    assert main(["train", *data, "--config", "run.toml"]) == code
    problem = capsys.readouterr().err
    assert said in problem
    assert "Traceback" not in problem


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "train.svm", "--config", "none.toml"]) == 1
    assert "config: none.toml cannot be read" in capsys.readouterr().err
