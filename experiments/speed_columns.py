"""What columns that no row uses cost: the same rows in their own columns and among millions.

Rows of RCV1's shape, or given ones; whole calls of hogwild.train, from matrices to a model of all
columns, the best of several, in turn. Each call has new rows: nothing is known of their columns.
"""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from scipy import sparse

import hogwild
from experiments import measure, report
from experiments.measure import Line, best, milliseconds, timed
from hogwild import Rows
from hogwild.data.synthetic import rcv1

ROWS = 20_000
BITS = 20, 22  # of the number of columns
LEAST = 0.6  # of the speed in their own columns: numbering takes time, and so does the larger model
TRAININGS: dict[str, dict[str, Any]] = {
    "hinge, l2 1e-4": {"loss": "hinge", "l2": 1e-4},
    "logistic, l2 1e-4": {"loss": "logistic", "l2": 1e-4},
    "logistic, l2 1e-6": {"loss": "logistic", "l2": 1e-6},
    "logistic, l1 1e-4": {"loss": "logistic", "l2": 0.0, "l1": 1e-4},
    "hinge, sgd, 5 epochs": {"loss": "hinge", "l2": 1e-4, "solver": "sgd", "epochs": 5, "tol": 0},
}


def hashed(X: Any, bits: int) -> Any:
    """The same rows, each column at a random place among 2^bits."""
    places = np.random.default_rng(0).permutation(1 << bits)[: X.shape[1]]
    shape = X.shape[0], 1 << bits
    return sparse.csr_matrix((X.data, places[X.indices].astype(np.int32), X.indptr), shape=shape)


def seconds_of(X: Any, y: Any, options: dict[str, Any]) -> float:
    """Seconds of a training on rows made of the matrix."""
    rows = Rows(X, y)
    return timed(lambda: report.finished(hogwild.train(rows, task="svm", **options)))


def lines_of(rows: Rows) -> list[Line]:
    """Each training, in each number of columns, beside the same in the rows' own columns."""
    own, y = rows.to_scipy(), rows.targets()
    matrices = {f"2^{bits} columns": hashed(own, bits) for bits in BITS}
    lines = []
    for name, options in TRAININGS.items():
        calls = {
            names: partial(seconds_of, X, y, options)
            for names, X in ({"own columns": own} | matrices).items()
        }
        found = best(calls)
        for names in matrices:
            pair = f"{name}, {names}", found[names], found["own columns"]
            lines.append(Line(*pair, milliseconds, "own columns", least=LEAST))
    return lines


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=3.0)
    report.data_option(parser)
    parsed = parser.parse_args()
    report.say(report.about_machine())
    given = [hogwild.load(path) for path in parsed.data or []] or [rcv1(parsed.rows)[0]]
    tables = {rows.name: lines_of(rows) for rows in given}
    for name, lines in tables.items():
        report.say(f"\n{Path(name).name}\n" + measure.table(lines))
    every = [line for lines in tables.values() for line in lines]
    about = report.header({"rows": parsed.rows, "data": parsed.data})
    report.record("speed-columns", [about, *map(Line.record, every)])
    measure.check(every)


if __name__ == "__main__":
    sys.exit(report.command(main))
