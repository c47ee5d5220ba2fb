"""Names of files that mean something elsewhere, and two runs in one folder."""

import subprocess
import sys
from pathlib import Path

import pytest

import hogwild
from hogwild.data.synthetic import rcv1
from tests.cli.test_cli import Start, call

NAMES = [
    *("with space ", "new\nline", "quo\"te'", "-dash", "[a]*?", "{x} %s {}", "[red]b", "a,b:c=d"),
    *("\udcff\udcfe", "\x1b[31mred\x07", "x" * 240, "~", "#tag", "€😀", ".hidden", "$HOME `id`"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_only_a_name(tmp_path: Path, name: str) -> None:
    data, model, kept = (f"./{name}{end}" for end in (".svm", ".hog", ".ck"))
    text = "".join(f"{sign} 1:{sign * k} 2:1\n" for k in range(1, 40) for sign in (-1, 1))
    (tmp_path / data).write_text(text)
    words = ["--model", model, "--checkpoint", kept, "--every", "1"]
    ran = [
        call("train", data, *words, cwd=tmp_path),
        call("predict", model, data, cwd=tmp_path),
        call("evaluate", model, data, cwd=tmp_path),
        call("train", data, *words, "--resume", "auto", cwd=tmp_path),
    ]
    assert [one.returncode for one in ran] == [0, 0, 0, 0]
    assert {path.name for path in tmp_path.iterdir()} == {path[2:] for path in (data, model, kept)}
    (tmp_path / data).write_text(text + "1 x:1\n")
    ran.append(call("train", data, cwd=tmp_path))
    assert ran[-1].returncode == 1
    said = "".join(one.stdout + one.stderr for one in ran)
    assert "line 79, column 3" in said
    assert "Traceback" not in said
    assert not {"\x1b", "\x07"} & set(said)  # which would steer the terminal


def test_two_runs_in_one_folder_do_not_disturb_each_other(tmp_path: Path, start: Start) -> None:
    """With the same files, too: each is the one's or the other's."""
    hogwild.save(rcv1(1000, 1000)[0], tmp_path / "train.svm")
    command = [sys.executable, "-m", "hogwild", "train", "train.svm", "--model", "m.hog", "--cache"]
    command += ["--checkpoint", "c.hog", "--every", "1", "--deterministic", "--epochs", "8"]
    expected = set()
    for seed in ("1", "2"):
        assert subprocess.run([*command, "--seed", seed], cwd=tmp_path, check=False).returncode == 0
        expected.add(_weights(tmp_path))
    names = {path.name for path in tmp_path.iterdir()}
    for _ in range(3):
        for path in tmp_path.iterdir():
            if path.name != "train.svm":
                path.unlink()
        both = [start([*command, "--seed", seed], cwd=tmp_path) for seed in ("1", "2")]
        for one in both:
            said, problems = one.communicate(timeout=60)
            assert one.returncode == 0, said + problems
        assert _weights(tmp_path) in expected
        assert {path.name for path in tmp_path.iterdir()} == names


def _weights(folder: Path) -> bytes:
    found: bytes = hogwild.load_model(folder / "m.hog").weights.tobytes()
    return found
