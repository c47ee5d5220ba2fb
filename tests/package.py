"""Tries what `make package` built, as a user would: a fresh environment, outside of the checkout.

    python tests/package.py dist

The environment gets the Python that runs this; it needs the standard library alone.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
NOT_SHIPPED = (".gitignore", ".ci/")

TRAIN = """
import sys
import hogwild

assert hogwild.__file__.startswith(sys.prefix), hogwild.__file__
if __name__ == "__main__":
    rows = hogwild.load("train.svm")
    result = hogwild.train(rows, task="logistic", workers=2, solver="sgd")
    assert result.header["chosen"]["workers"] == 2
    error = (result.model.predict(rows) != rows.y).mean()
    assert error < 0.1, error
    print(f"2 workers, error {100 * error:.1f} %, {result.reason}")
"""
ESTIMATOR = """
import numpy as np
from hogwild import HogwildClassifier

X = np.eye(4)[np.arange(400) % 4]
y = np.array(["no", "yes"])[np.arange(400) % 2]
print(f"accuracy {HogwildClassifier().fit(X, y).score(X, y):g}")
"""


def check_files(wheel: Path, sdist: Path) -> None:
    """All that is in the checkout is in the sdist, and the whole package in the wheel."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        missing = {name for name in names if name.startswith("hogwild/") and "." in name}
        missing -= set(archive.namelist())
    if (CHECKOUT / ".git").exists():
        listed = run("git", "-C", CHECKOUT, "ls-files", folder=CHECKOUT).splitlines()
        missing |= {name for name in listed if not name.startswith(NOT_SHIPPED)} - names
    if missing:
        sys.exit(f"left out of {sdist.name} or {wheel.name}: {', '.join(sorted(missing))}")


def run(*command: object, folder: Path, code: int = 0) -> str:
    """What a command prints, and writes to standard error, if it ends with this code."""
    ours = ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=kept | {"XDG_CACHE_HOME": str(folder / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != code:
        words = " ".join(map(str, command))
        sys.exit(f"{words}\nended with {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout.strip()


def try_wheel(wheel: Path, folder: Path) -> None:
    """The command line, Python, and the estimators without scikit-learn and with it."""
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / "bin"
    python = programs / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint")
    pip = (*pip, CHECKOUT / "constraints.txt")
    run(*pip, wheel, folder=folder)

    def hogwild(*words: str, code: int = 0) -> str:
        return run(programs / "hogwild", *words, folder=folder, code=code)

    def script(text: str, code: int = 0) -> str:
        (folder / "script.py").write_text(text)
        return run(python, "script.py", folder=folder, code=code)

    print(hogwild("--version"), "on Python", sys.version.split()[0])
    hogwild("generate", "rcv1", "train.svm", "--rows", "3000", "--columns", "500")
    hogwild("train", "train.svm", "--model", "model.hog")
    print("command line:", hogwild("evaluate", "model.hog", "train.svm").splitlines()[1])
    hogwild("predict", "model.hog", "train.svm", "--output", "labels.txt")
    assert len((folder / "labels.txt").read_text().splitlines()) == 3000
    assert "no such file" in hogwild("train", "missing.svm", code=1).lower()
    hogwild("doctor")
    print("Python:", script(TRAIN))
    message = script(ESTIMATOR, code=1).splitlines()[-1]
    print("without scikit-learn:", message)
    advice = message.partition('pip install "')[2].partition('"')[0]
    run(*pip, advice, folder=folder)
    print(f"with {advice}:", script(ESTIMATOR))


def main() -> None:
    """The command line."""
    built = Path(sys.argv[1]).resolve()
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    check_files(wheel, sdist)
    with tempfile.TemporaryDirectory() as folder:
        try_wheel(wheel, Path(folder))
    print(f"{wheel.name} and {sdist.name} are complete and work")


main()
