"""Experiments on ratings of MovieLens' shape: how well factors predict, how fast they are learned,
and whether they are the same with any number of workers.
"""

import hashlib
import inspect
import math
from typing import Any, NamedTuple

import numpy as np

from experiments import report
from experiments.experiment import (
    ROWS,
    Experiment,
    Line,
    check_names,
    epochs,
    quickest,
    speeds,
    trained,
)
from hogwild import FactorModel, HogwildError, OptionError, Ratings
from hogwild.data.synthetic import whole_number_problems
from hogwild.data.synthetic_ratings import WHOLE, movielens

FAMILY = "factors"
TEST_SHARE = 0.1
SIZES = ("users", "items", "ratings")

HEAD = [
    *("experiment", "workers", "seconds", "epochs", "objective", "train RMSE", "test RMSE"),
    *("M ratings/s", "speed-up"),
]
LEGEND = """\
seconds of training, with sorting the ratings; million ratings a second of the quickest epoch;
speed-up: of that, against one worker; same bytes: of all factors and biases, in all runs"""


class Data(NamedTuple):
    """Ratings to train on and to test on, and the test error of what they were made from."""

    train: Ratings
    test: Ratings
    least_rmse: float


class Summary(NamedTuple):
    """A row of the table."""

    experiment: str
    workers: int
    seconds: float
    prepare_seconds: float
    epochs: int
    objective: float
    train_rmse: float
    test_rmse: float
    ratings_per_second: float
    speed_up: float
    models: list[str]  # a hash of each run's

    def cells(self) -> list[str]:
        """As printed."""
        return [
            *(self.experiment, str(self.workers), f"{self.seconds:.3f}", str(self.epochs)),
            *(f"{self.objective:.6f}", f"{self.train_rmse:.4f}", f"{self.test_rmse:.4f}"),
            *(f"{self.ratings_per_second / 1e6:.0f}", f"{self.speed_up:.2f}"),
        ]

    def record(self) -> Line:
        """As recorded."""
        return self._asdict()


def check(options: dict[str, Any]) -> None:
    """Refuses what `movielens` does not take, or what has no size."""
    check_names(options, list(inspect.signature(movielens).parameters))
    missing = [name for name in SIZES if name not in options]
    if missing:
        raise OptionError(f"[data] needs {', '.join(missing)}: how many with ROWS={ROWS}")
    sizes = {name: options[name] for name in SIZES}
    problems = whole_number_problems(sizes, {name: WHOLE[name] for name in SIZES})
    if problems:
        raise OptionError("\n".join(problems))


def scaled(rows: int, options: dict[str, Any]) -> dict[str, Any]:
    """The options for so many rows: a ROWS-th of the ratings for each, and as dense as before."""
    scale = rows / ROWS
    sizes = {"users": math.sqrt(scale), "items": math.sqrt(scale), "ratings": scale}
    return options | {name: round(options[name] * factor) for name, factor in sizes.items()}


def generate(rows: int, options: dict[str, Any]) -> Data:
    """Ratings, of which a random share is to test on."""
    ratings, planted = movielens(**scaled(rows, options))
    train, test = ratings.split(TEST_SHARE, options.get("seed", 0))
    errors = np.asarray(test.values) - planted.scores(test.users, test.items)
    users, items = ratings.shape
    report.say(
        f"Data      {ratings.name}: {len(train):,} ratings, and {len(test):,} to test on;\n"
        f"          {users:,} users, {items:,} items, {train.nbytes / 1e6:,.0f} MB"
    )
    return Data(train, test, math.sqrt(np.square(errors, dtype=np.float64).mean()))


def measure(
    experiment: Experiment, data: Data, workers: list[int]
) -> tuple[list[Summary], list[Line]]:
    """A row of the table for each number of workers, and what goes into the record."""
    results = trained(experiment, data, workers)
    speed = speeds(results, "ratings_per_second")
    rows = []
    for count, runs in results.items():
        trace = quickest(runs)
        last = trace[-1]
        if last["objective"] is None:
            raise HogwildError("objective_every: an experiment needs an objective at the end")
        rows.append(
            Summary(
                experiment=experiment.name,
                workers=count,
                seconds=last["seconds"],
                prepare_seconds=min(run.header["chosen"]["prepare_seconds"] for run in runs),
                epochs=len(trace),
                objective=last["objective"],
                train_rmse=last["train_rmse"],
                test_rmse=last["test_rmse"],
                ratings_per_second=speed[count],
                speed_up=speed[count] / speed[1],
                models=[fingerprint(run.model) for run in runs],
            )
        )
    data_line = {"kind": "data", **experiment.about(), "least_rmse": data.least_rmse}
    return rows, [data_line, *epochs(experiment, results)]


def fingerprint(model: FactorModel) -> str:
    """A hash of all that was learned."""
    learned = hashlib.sha256(np.float64(model.mean).tobytes())
    factors = model.user_factors, model.item_factors
    for array in (*factors, model.user_biases, model.item_biases):
        learned.update(array.tobytes())
    return learned.hexdigest()


def shown(data: Data, summaries: list[Summary]) -> str:
    """The table, what could be reached, and whether all models are the same."""
    table = report.table(HEAD, [row.cells() for row in summaries])
    least = f"What the ratings were made from has a test RMSE of {data.least_rmse:.4f}."
    by_name: dict[str, list[Summary]] = {}
    for row in summaries:
        by_name.setdefault(row.experiment, []).append(row)
    return "\n".join([table, LEGEND, "", least, *map(same_bytes, by_name.values())])


def same_bytes(rows: list[Summary]) -> str:
    """Whether all runs of an experiment came to the same model."""
    counts = " and ".join(str(row.workers) for row in rows)
    same = len({model for row in rows for model in row.models}) == 1
    workers = "worker" if counts == "1" else "workers"
    return f"{rows[0].experiment}: same bytes with {counts} {workers}: {'yes' if same else 'NO'}"
