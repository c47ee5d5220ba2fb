"""Compiles the kernels of the usual trainings, by running each training on a few rows."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hogwild import status
from hogwild.data.files import load, save
from hogwild.data.ratings import Ratings
from hogwild.data.ratings_files import load_ratings, save_ratings
from hogwild.data.rows import Rows
from hogwild.data.statistics import statistics
from hogwild.errors import HogwildError
from hogwild.results import Quiet
from hogwild.training import train

ROWS, COLUMNS, CLASSES = 200, 40, 3
SOLVERS = {
    "hinge": ("dual", "newton"),
    "squared_hinge": ("dual", "newton", "coordinate"),
    "logistic": ("dual", "newton", "coordinate"),
    "squared": ("dual", "newton", "closed", "coordinate"),
}
STRATEGIES = ("combine", "hogwild", "ordered")  # with two workers


def trainings() -> list[dict[str, Any]]:
    """The options of each training; there are two classes unless `classes` is given."""
    found: list[dict[str, Any]] = []
    for loss, solvers in SOLVERS.items():
        common = {"task": "regression" if loss == "squared" else "svm", "loss": loss}
        found.append(common | {"solver": "sgd", "workers": 1})
        found += [common | {"strategy": some, "workers": 2} for some in STRATEGIES]
        for solver in solvers:
            l1 = {"l1": 1e-3} if solver == "coordinate" else {}
            workers = {"workers": 2} if solver == "dual" else {}
            found.append(common | {"solver": solver} | l1 | workers)
    for task in ("svm", "logistic", "softmax"):
        found += [
            {"task": task, "solver": solver, "classes": CLASSES} for solver in ("auto", "sgd")
        ]
    return [*found, {"task": "mf", "workers": 2}, {"task": "mf", "loss": "logistic"}]


def warm() -> None:
    """Runs all trainings, and reports the progress."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, COLUMNS)) * (random.random((ROWS, COLUMNS)) < 0.5)
    users, items = random.integers(0, COLUMNS, (2, 4 * ROWS))
    values = (random.random(4 * ROWS) < 0.5).astype(np.float32)
    some, rows = trainings(), Rows(X)
    with TemporaryDirectory() as folder, status.doing("compiling kernels", over=True) as now:
        file = Path(folder, "ratings.csv")
        save_ratings(Ratings(users, items, values), file)
        ratings = load_ratings(file)
        for done, options in enumerate(some):
            words = [str(options[name]) for name in ("task", "loss", "solver") if name in options]
            now.at(done / len(some), f"{done} of {len(some)}: {' '.join(words)}")
            options |= {"epochs": 2, "watcher": Quiet()}
            if options["task"] == "mf":
                model = train(ratings, test=ratings, **options).model
                model.evaluate(ratings)
                model.recommend(0, 1)
                continue
            file = Path(folder, "rows.svm")
            y = np.digitize(X[:, 0], [0.0, 0.5][: options.pop("classes", 2) - 1])
            save(Rows(X, y), file)
            rows = load(file)
            with suppress(HogwildError):  # some may fail on such a small data set
                train(rows, test=rows, **options).model.evaluate(rows)
        statistics(rows)
