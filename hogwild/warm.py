"""Compiles the kernels of the usual work, by doing each kind of it on a few rows."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hogwild import status
from hogwild.certificate import certify
from hogwild.data.convert import convert
from hogwild.data.files import load, save
from hogwild.data.ratings import Ratings
from hogwild.data.ratings_files import load_ratings, save_ratings
from hogwild.data.rows import Rows
from hogwild.data.statistics import statistics
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.data.synthetic_text import reviews
from hogwild.errors import HogwildError
from hogwild.kernels.atomic import add, claim_one, wait_for
from hogwild.kernels.compile import ready
from hogwild.kernels.ids import read_numbers
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
RANKS = (16, 32)  # the kernels of factors have the width of a row
OF_TEXT: tuple[dict[str, Any], ...] = ({}, {"ngrams": 2, "idf": True})
OF_TABLES: tuple[dict[str, Any], ...] = ({}, {"interact": "site:device"})

Work = tuple[str, Callable[[], Any]]


def trainings() -> list[dict[str, Any]]:
    """The options of each training on rows; there are two classes unless `classes` is given."""
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
    return found


def warm() -> None:
    """Does all of the work, and reports the progress."""
    with TemporaryDirectory() as folder, status.doing("compiling kernels", over=True) as now:
        some = list(works(Path(folder)))
        for done, (name, work) in enumerate(some):
            now.at(done / len(some), f"{done} of {len(some)}: {name}")
            with suppress(HogwildError):  # some may fail on such a small data set
                work()


def works(folder: Path) -> Iterator[Work]:
    """What is done, by name; files are written to the folder."""
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, COLUMNS)) * (random.random((ROWS, COLUMNS)) < 0.5)
    users, items = random.integers(0, COLUMNS, (2, 4 * ROWS))
    values = (random.random(4 * ROWS) < 0.5).astype(np.float32)
    ratings = Ratings(users, items, values)
    yield "synthetic data", partial(_generate, folder)
    # Of ids on the command line, and of workers that share work that takes long
    yield "ids and shared work", partial(ready, read_numbers, add, claim_one, wait_for)
    for options in trainings():
        names = [str(options[name]) for name in ("task", "loss", "solver") if name in options]
        y = np.digitize(X[:, 0], [0.0, 0.5][: options.pop("classes", 2) - 1])
        yield " ".join(names), partial(_train, folder / "rows.svm", Rows(X, y), options)
    for rank in RANKS:
        yield f"mf, rank {rank}", partial(_factorize, folder / "ratings.csv", ratings, rank=rank)
    options = {"loss": "logistic", "rank": RANKS[-1]}
    yield "mf logistic", partial(_factorize, folder / "ratings.csv", ratings, **options)
    rows = Rows(X, np.sign(X[:, 0] + 0.1))
    yield "files of rows", partial(_convert, folder, rows)
    yield "certificates", partial(_certify, rows)
    for settings in OF_TEXT:
        yield "text", partial(_read_text, folder / "reviews.txt", settings)
    for settings in OF_TABLES:
        yield "tables", partial(_read_table, folder / "clicks.csv", settings)


def _generate(folder: Path) -> None:
    save(rcv1(ROWS, COLUMNS, nonzeros=5)[0], folder / "generated.svm")
    ratings, _ = movielens(COLUMNS, COLUMNS, 4 * ROWS)
    for part in ratings.split(0.1, 0):
        save_ratings(part, folder / "generated.csv")


def _train(file: Path, given: Rows, options: dict[str, Any]) -> None:
    save(given, file)
    rows = load(file)
    statistics(rows)
    train(rows, test=rows, epochs=2, watcher=Quiet(), **options).model.evaluate(rows)


def _factorize(file: Path, given: Ratings, **options: Any) -> None:
    save_ratings(given, file)
    ratings = load_ratings(file)
    about: dict[str, Any] = {"task": "mf", "workers": 2, "epochs": 2, "watcher": Quiet()}
    model = train(ratings, test=ratings, **about, **options).model
    model.evaluate(ratings)
    model.recommend(0, 1)
    model.recommend(0, 1, exclude=ratings)
    model.similar_items(0, 1)


def _convert(folder: Path, rows: Rows) -> None:
    save(rows, folder / "some.svm")
    convert(folder / "some.svm", folder / "some.rows")
    train(folder / "some.rows", epochs=2, watcher=Quiet())


def _certify(rows: Rows) -> None:
    for task in ("svm", "logistic"):
        model = train(rows, task=task, solver="sgd", epochs=1, watcher=Quiet()).model
        model.predict_proba(rows) if task == "logistic" else model.predict(rows)
        certify(model, rows)


def _read_text(file: Path, settings: dict[str, Any]) -> None:
    file.write_bytes(b"".join(reviews(ROWS)))
    model = train(file, format="text", task="logistic", watcher=Quiet(), **settings).model
    model.predict(model.load(file))


def _read_table(file: Path, settings: dict[str, Any]) -> None:
    lines = [f"{n % 2},{'abc'[n % 3]},phone {n % 5},{n}.5,some words of {n}" for n in range(ROWS)]
    file.write_text("\n".join(["click,site,device,price,comment", *lines]))
    model = train(file, label="click", task="logistic", watcher=Quiet(), **settings).model
    model.predict(model.load(file))
