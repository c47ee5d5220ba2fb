"""Distributed perceptrons: one-shot mixing, majority vote and iterative mixing, by test error.

After McDonald, Hall and Mann (2010), "Distributed training strategies for the structured
perceptron", and Mann et al. (2009). Beside the serial perceptron on all rows, and on one shard of
them, for several numbers of workers: `averaged`, whose workers never meet, with the mean of their
weights or their votes; `mixed`, which goes on from the mean after each epoch, with either. All for
plain perceptrons (the last weights) and for averaged ones (the mean over all epochs).

Generated rows, or a file: --data FILE, with --test FILE or a fifth of the rows to test on. What a
training comes to depends on the seed and the number of workers, not on the cores: more workers than
cores are fine.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import hogwild
from experiments import report
from experiments.shapes import SHAPES
from hogwild import OptionError, Rows
from hogwild.threads import share_of
from hogwild.training import Sources, row_sets

Row = dict[str, Any]

GENERATED = ("rcv1", "dense")  # many columns and few; a label in sixteen is wrong
WORKERS = (2, 4, 8)
SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)  # epochs after which the error is shown
SEEDS = 5  # whose errors the mean is of
TESTED = 5  # a fifth of the rows are test rows
MERGED = [(strategy, merge) for strategy in ("averaged", "mixed") for merge in ("mean", "vote")]


def trained(train: Rows, test: Rows, given: Any, average: bool, **options: Any) -> list[float]:
    """The test error after each epoch, the mean over some seeds."""
    fixed = {"loss": "perceptron", "average": average, "tol": 0, "epochs": given.epochs}
    errors = []
    for seed in range(given.seeds):
        more: Row = {"test": test, "seed": seed, "backend": "thread"} | fixed | options
        result = report.finished(hogwild.train(train, **more))
        errors.append([row["test_error"] for row in result.trace])
    return np.mean(errors, axis=0).tolist()  # type: ignore[no-any-return]


def compared(train: Rows, test: Rows, given: Any, average: bool) -> list[Row]:
    """A row for each way of training: its name, its workers, and its errors."""
    found = [("serial, all rows", 1, trained(train, test, given, average, workers=1))]
    shuffled = np.random.default_rng(0).permutation(len(train)).astype(np.uint64)
    for workers in WORKERS:
        shard = train.take(shuffled[slice(*share_of(len(train), workers, 0))])
        errors = trained(shard, test, given, average, workers=1)
        found.append((f"serial, 1/{workers} of the rows", 1, errors))
        for strategy, merge in MERGED:
            options = {"strategy": strategy, "merge": merge, "workers": workers}
            errors = trained(train, test, given, average, **options)
            found.append((f"{strategy}, {merge}", workers, errors))
    kind = "averaged" if average else "plain"
    names = "name", "workers", "errors"
    return [{"perceptrons": kind} | dict(zip(names, one, strict=True)) for one in found]


def say(title: str, lines: list[Row]) -> None:
    """A table: the test error in per cent, after some of the epochs."""
    epochs = len(lines[0]["errors"])
    shown = sorted({epoch for epoch in SHOWN if epoch < epochs} | {epochs})
    head = ["test error, % after epoch", "workers", *map(str, shown)]
    cells = [
        [line["name"], str(line["workers"]), *(f"{100 * line['errors'][e - 1]:.2f}" for e in shown)]
        for line in lines
    ]
    report.say(f"\n{title}: {lines[0]['perceptrons']} perceptrons")
    report.say(report.table(head, cells))


def split(rows: Rows) -> tuple[Rows, Rows]:
    """Rows to learn from, and a random part of them to test on."""
    order = np.random.default_rng(0).permutation(len(rows)).astype(np.uint64)
    tested = len(rows) // TESTED
    return rows.take(order[tested:]), rows.take(order[:tested])


def data_of(given: Any) -> dict[str, tuple[Rows, Rows]]:
    """Rows to learn from and to test on, by name."""
    if given.data is None:
        return {name: split(SHAPES[name](given.rows, 0)) for name in GENERATED}
    rows, test, _ = row_sets(given.data, given.test, None, Sources())
    if len(rows.labels) != 2:
        count = len(rows.labels)
        raise OptionError(f"--data: votes are between two classes; {rows.name} has {count}")
    return {Path(given.data).name: split(rows) if test is None else (rows, test)}


def _count(text: str) -> int:
    count = int(text) if text.isascii() and text.isdigit() else 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return count


def main() -> None:
    """Trains, prints the tables, and writes the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    report.rows_option(parser, 25_000, 4)
    parser.add_argument("--data", metavar="FILE", help="rows of two classes [generated ones]")
    parser.add_argument("--test", metavar="FILE", help="rows to test on [a fifth of the others]")
    parser.add_argument("--epochs", type=_count, default=10, metavar="N", help="[10]")
    parser.add_argument("--seeds", type=_count, default=SEEDS, metavar="N", help=f"[{SEEDS}]")
    given = parser.parse_args()
    if given.test and not given.data:
        parser.error("--test: it goes with --data")
    report.say(report.about_machine())
    lines: list[Row] = []
    for name, (train, test) in data_of(given).items():
        title = (
            f"{name}, {len(train):,} rows, {len(test):,} to test on, mean of {given.seeds} seeds"
        )
        for average in (False, True):
            found = compared(train, test, given, average)
            say(title, found)
            lines += [{"data": name} | line for line in found]
    report.record("perceptrons", [report.header(vars(given)), *lines])


if __name__ == "__main__":
    sys.exit(report.command(main))
