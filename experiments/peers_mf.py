"""Matrix factorisation of ratings in MovieLens' shapes: hogwild beside other trainers.

Each of the others lives in a virtual environment of its own (`--install` makes them), and is run
there by `mf_peer.py`. The clock is that of the training call with all that it prepares; the data
is in memory, in the form that the trainer takes. The error is computed from the biases and factors,
for all in the same way, while the clock stands still. What cannot be continued, is trained afresh
for each number of epochs. A least error with a + was still falling when epochs or budget ended.

The target is the least test error of LIBMF with all cores. Settings were chosen beforehand, on
ratings of another seed (`--sweep`): the fastest of those within 0.0005 of the least error.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import hogwild
from experiments import report
from experiments.environments import Answer, Environment
from experiments.peers_linear import positive
from hogwild import HogwildError
from hogwild.data.ratings import Ratings
from hogwild.data.synthetic_ratings import movielens
from hogwild.machine import usable_cores
from hogwild.models.factors import FactorModel

FOLDER = Path(__file__).resolve().parent
VERSIONS = FOLDER / "peers-mf.txt"
LIBMF_FLAGS = "-O3 -march=native -DUSEAVX -DUSEOMP -fopenmp"

SHAPES = {"1M": (6_040, 3_706, 1_000_209), "20M": (138_493, 26_744, 20_000_000)}
SHARE = 0.1  # of the ratings, to test on
SEED, SWEEP_SEED = 0, 7
RANKS = (32, 64, 128)  # for the speed
JUDGED = (32, 128)  # for the error
EPOCHS = [*range(1, 17), 18, 20, 22, 25, 28, 32, 36, 40, 45, 50, 56, 63, 71, 80]
SWEPT = [4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60]
PATIENCE = 2  # results without a new least error
TOLERANCE = 5e-4  # what is as good as the least error, in a sweep
BUDGET = 120.0
WARM = 2  # epochs before speed is measured: LIBMF's first trains 8 dimensions only
PACED = [WARM, 4, 8, 16, 32, 64, 128]  # epochs to measure speed by, as far as PACED_BUDGET goes
PACED_BUDGET = 3.0  # seconds
OURS_PACED = 18
REPEATS = 2

Row = dict[str, Any]


class Peer(NamedTuple):
    """A trainer with a virtual environment of its own, and what is asked of it.

    Attributes:
        package: its name for pip.
        threads: how many it is run with; 0 stands for all cores.
        shapes: the data it is given.
        epochs: after how many its error is computed; fewer numbers for the slow.
        judged: whether its error can be compared.
        top: whether its recommendations are timed.
        grid: the settings that a sweep tries.
        settings: those that it found, by shape and rank.
    """

    package: str
    threads: tuple[int, ...]
    shapes: tuple[str, ...] = tuple(SHAPES)
    epochs: list[int] = EPOCHS
    judged: bool = True
    top: bool = False
    grid: dict[str, tuple[float, ...]] = {}  # noqa: RUF012
    settings: dict[str, dict[int, dict[str, float]]] = {}  # noqa: RUF012

    def options(self, shape: str, rank: int) -> dict[str, float]:
        """The settings for the greatest rank swept that is not above this one, or for the least."""
        swept = self.settings.get(shape, {0: {}})
        return swept[max((known for known in swept if known <= rank), default=min(swept))]


KNOWN = {
    "libmf": Peer(
        "libmf",
        threads=(1, 0),
        grid={"lambda": (0.02, 0.03, 0.04), "eta": (0.06, 0.1, 0.15)},
        settings={
            "1M": {32: {"lambda": 0.04, "eta": 0.1}, 128: {"lambda": 0.03, "eta": 0.06}},
            "20M": {32: {"lambda": 0.03, "eta": 0.06}, 128: {"lambda": 0.02, "eta": 0.06}},
        },
    ),
    "cornac": Peer(
        "cornac",
        threads=(1, 0),
        top=True,
        grid={"lambda": (0.02, 0.03, 0.04, 0.05), "rate": (0.005, 0.01, 0.02)},
        settings={shape: {32: {"lambda": 0.04, "rate": 0.01}} for shape in SHAPES},
    ),
    "surprise": Peer(
        "scikit-surprise",
        threads=(1,),
        shapes=("1M",),
        epochs=SWEPT,
        grid={"lambda": (0.04, 0.06, 0.08), "rate": (0.01, 0.015)},
        settings={"1M": {32: {"lambda": 0.06, "rate": 0.015}}},
    ),
    "lenskit": Peer(
        "lenskit",
        threads=(0,),
        grid={"lambda": (0.04, 0.055, 0.07, 0.085, 0.1)},
        settings={shape: {32: {"lambda": 0.07}} for shape in SHAPES},
    ),
    "implicit": Peer("implicit", threads=(0,), judged=False, top=True),
}


# Installing


def environment(name: str) -> Environment:
    """A peer's virtual environment."""
    flags = {"CFLAGS": LIBMF_FLAGS, "CXXFLAGS": LIBMF_FLAGS, "LDFLAGS": "-fopenmp"}
    return Environment(
        name,
        (KNOWN[name].package,),
        VERSIONS,
        "python experiments/peers_mf.py --install",
        flags if name == "libmf" else {},
    )


# Running


class Data(NamedTuple):
    """One shape's ratings, in memory for hogwild and as files for the others."""

    shape: str
    train: Ratings
    test: Ratings
    folder: Path


@contextmanager
def generated(shape: str, seed: int) -> Iterator[Data]:
    """Ratings of this shape, and a folder with them that goes when the block ends."""
    users, items, count = SHAPES[shape]
    train, test = movielens(users, items, count, seed)[0].split(SHARE, seed)
    with tempfile.TemporaryDirectory(prefix="hogwild-peers-") as folder:
        for part, ratings in (("train", train), ("test", test)):
            for name in ("users", "items", "values"):
                np.save(Path(folder) / f"{part}-{name}.npy", getattr(ratings, name))
        yield Data(shape, train, test, Path(folder))


def ask(name: str, data: Data, rank: int, threads: int, **more: Any) -> Answer:
    """Runs one peer on one request; see `mf_peer.py`."""
    request = {
        "task": "train",
        "folder": str(data.folder),
        "shape": data.train.shape,
        "rank": rank,
        "repeats": 1,
        "budget": BUDGET,
        "patience": PATIENCE,
    }
    return environment(name).ask(FOLDER / "mf_peer.py", request | more, threads)


def ours(train: Ratings, rank: int, workers: int, epochs: int) -> tuple[float, FactorModel]:
    """The seconds of a whole call of hogwild.train, with all that it prepares, and the model."""
    options: Row = {"rank": rank, "workers": workers, "tol": 0, "objective_every": 0}
    began = time.perf_counter()
    result = report.finished(hogwild.train(train, task="mf", epochs=epochs, **options))
    return time.perf_counter() - began, result.model


def our_curve(data: Data, rank: int, workers: int, budget: float) -> list[Row]:
    """Seconds and test error after more and more epochs, each time trained afresh."""
    rows: list[Row] = []
    ours(data.train, rank, workers, 1)  # the first call loads the kernels
    spent = 0.0
    for epochs in EPOCHS:
        seconds, model = min(
            (ours(data.train, rank, workers, epochs) for _ in range(REPEATS)),
            key=lambda one: one[0],
        )
        spent += REPEATS * seconds
        error = float(model.evaluate(data.test)["rmse"])
        rows.append({"epochs": epochs, "seconds": seconds, "test_rmse": error})
        since = len(rows) - 1 - int(np.argmin([row["test_rmse"] for row in rows]))
        if since >= PATIENCE or spent > budget:
            break
    return rows


def our_top(data: Data, rank: int, workers: int) -> list[Row]:
    """Seconds to recommend ten items to each user, without those that it has rated."""
    _, model = ours(data.train, rank, workers, 2)
    rows = []
    for repeat in range(REPEATS + 1):
        began = time.perf_counter()
        model.recommend(None, 10, exclude=data.train)
        rows.append({"repeat": repeat, "seconds": time.perf_counter() - began})
    return rows


class Trainer(NamedTuple):
    """A row of a table: hogwild or a peer, with a number of threads."""

    name: str
    threads: int

    def curve(self, data: Data, rank: int, budget: float) -> Answer:
        """Seconds and test error after more and more epochs."""
        if self.name == "hogwild":
            return Answer(our_curve(data, rank, self.threads, budget))
        peer = KNOWN[self.name]
        more = {"epochs": peer.epochs, "budget": budget, "options": peer.options(data.shape, rank)}
        return ask(self.name, data, rank, self.threads, **more)

    def speed(self, data: Data, rank: int) -> Answer:
        """Epochs of which only the seconds count, several times."""
        if self.name == "hogwild":
            rows: list[Row] = []
            for repeat, epochs in itertools.product(range(REPEATS), (WARM, OURS_PACED)):
                seconds, _ = ours(data.train, rank, self.threads, epochs)
                rows.append({"epochs": epochs, "seconds": seconds, "repeat": repeat})
            return Answer(rows)
        more: Row = {
            "epochs": PACED,
            "budget": PACED_BUDGET,
            "repeats": REPEATS,
            "patience": len(PACED),
            "options": KNOWN[self.name].options(data.shape, rank),
        }
        return ask(self.name, data, rank, self.threads, **more)

    def top(self, data: Data, rank: int) -> Answer:
        """Seconds to recommend items to all users, several times."""
        if self.name == "hogwild":
            return Answer(our_top(data, rank, self.threads))
        return ask(self.name, data, rank, self.threads, task="top", repeats=REPEATS)


def trainers(names: list[str], shape: str) -> list[Trainer]:
    """Those of these names that take this data, with each number of threads."""
    every = usable_cores()
    found = []
    for name in names:
        counts = (1, 0) if name == "hogwild" else KNOWN[name].threads
        if name == "hogwild" or shape in KNOWN[name].shapes:
            found += [Trainer(name, count) for count in sorted({one or every for one in counts})]
    return found


def is_widest(trainer: Trainer, shape: str) -> bool:
    """Whether it is not run with more threads, too."""
    return trainer == trainers([trainer.name], shape)[-1]


# What the numbers say


def results(rows: list[Row]) -> list[Row]:
    """The rows that have an error that is a number."""
    errors = [row for row in rows if row.get("test_rmse") is not None]
    return [row for row in errors if np.isfinite(row["test_rmse"])]


def reached(rows: list[Row], target: float | None) -> Row | None:
    """The fewest seconds after which the error was no greater than the target."""
    near = [row for row in results(rows) if target is not None and row["test_rmse"] <= target]
    return min(near, key=lambda row: float(row["seconds"]), default=None)


def best(rows: list[Row]) -> Row | None:
    """The least error."""
    return min(results(rows), key=lambda row: float(row["test_rmse"]), default=None)


def rate(rows: list[Row], ratings: int) -> float | None:
    """Ratings a second after the first epochs, from the least seconds of all repetitions."""
    least: dict[int, float] = {}
    for row in rows:
        if row.get("epochs", 0) >= WARM:
            least[row["epochs"]] = min(row["seconds"], least.get(row["epochs"], np.inf))
    if len(least) < 2:
        return None
    first, last = min(least), max(least)
    return (last - first) * ratings / max(least[last] - least[first], 1e-9)


def choice(curves: list[list[Row]]) -> int | None:
    """Which settings to take: of those nearly as good as the best, the fastest to be so."""
    found = [row for row in map(best, curves) if row]
    if not found:
        return None
    target = min(row["test_rmse"] for row in found) + TOLERANCE
    near = [
        (row["seconds"], at) for at, rows in enumerate(curves) if (row := reached(rows, target))
    ]
    return min(near)[1]


def shown(value: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else format(value, form)


def cells(trainer: Trainer, rows: list[Row], target: float | None) -> list[str]:
    """A row of the table of errors; a + is after an error that was still falling at the end."""
    at, least = reached(rows, target) or {}, best(rows) or {}
    load = next((row["load_seconds"] for row in rows if "load_seconds" in row), None)
    return [
        trainer.name,
        str(trainer.threads),
        shown(at.get("seconds"), ".3f"),
        shown(at.get("epochs"), "d"),
        shown(least.get("test_rmse"), ".4f")
        + ("+" if least and least is results(rows)[-1] else ""),
        shown(least.get("epochs"), "d"),
        shown(least.get("seconds"), ".3f"),
        shown(load, ".1f"),
    ]


# The tables


class Comparison:
    """Prints tables as they are measured, and keeps the lines of the record."""

    def __init__(self, names: list[str], budget: float) -> None:
        self.names = names
        self.budget = budget
        self.lines: list[Row] = []

    def keep(self, kind: str, data: Data, trainer: Trainer, rank: int, answer: Answer) -> None:
        """Adds an answer to the record, and says so if it broke off."""
        about = {"kind": kind, "shape": data.shape, "rank": rank} | trainer._asdict()
        if trainer.name in KNOWN:
            about["settings"] = KNOWN[trainer.name].options(data.shape, rank)
        self.lines += [about | row for row in answer.rows]
        if answer.problem:
            report.say(f"Failed    {trainer.name}, rank {rank}: {answer.problem}")
            self.lines.append(about | {"problem": answer.problem})

    def speeds(self, data: Data) -> None:
        """Ratings a second, for each rank."""
        table = []
        for trainer in trainers(self.names, data.shape):
            found = []
            for rank in RANKS:
                answer = trainer.speed(data, rank)
                self.keep("speed", data, trainer, rank, answer)
                found.append(rate(answer.rows, len(data.train)))
            millions = [None if one is None else one / 1e6 for one in found]
            table.append(
                [trainer.name, str(trainer.threads), *(shown(one, ".1f") for one in millions)]
            )
        head = ["M ratings/s in an epoch", "threads", *(f"rank {rank}" for rank in RANKS)]
        report.say("\n" + report.table(head, table))

    def errors(self, data: Data, rank: int) -> None:
        """Seconds to LIBMF's error, and the least error of each."""
        curves = {}
        for trainer in trainers(self.names, data.shape):
            if trainer.name == "hogwild" or KNOWN[trainer.name].judged:
                answer = trainer.curve(data, rank, self.budget)
                self.keep("run", data, trainer, rank, answer)
                curves[trainer] = answer.rows
        leading = curves.get(Trainer("libmf", usable_cores()), [])
        least = best(leading)
        target = least["test_rmse"] if least else None
        head = [
            f"rank {rank}, test RMSE {shown(target, '.4f')}",
            *("threads", "seconds to it", "epochs", "least RMSE", "epochs", "seconds", "load s"),
        ]
        table = [cells(trainer, rows, target) for trainer, rows in curves.items()]
        report.say("\n" + report.table(head, table))
        self._show_curve(leading)

    def _show_curve(self, rows: list[Row]) -> None:
        done = results(rows)
        if done:
            head = ["libmf, after epoch", *(str(row["epochs"]) for row in done)]
            seconds = ["seconds", *(format(row["seconds"], ".3f") for row in done)]
            errors = ["test RMSE", *(format(row["test_rmse"], ".4f") for row in done)]
            report.say("\n" + report.table(head, [seconds, errors]))

    def tops(self, data: Data) -> None:
        """Seconds to recommend items to all users."""
        table = []
        for trainer in trainers(self.names, data.shape):
            top = trainer.name == "hogwild" or KNOWN[trainer.name].top
            if top and is_widest(trainer, data.shape):
                found = []
                for rank in JUDGED:
                    answer = trainer.top(data, rank)
                    self.keep("top", data, trainer, rank, answer)
                    seconds = [row["seconds"] for row in answer.rows if "seconds" in row]
                    found.append(shown(min(seconds, default=None), ".3f"))
                table.append([trainer.name, str(trainer.threads), *found])
        if table:
            head = ["top 10 of all users, seconds", "threads", *(f"rank {rank}" for rank in JUDGED)]
            report.say("\n" + report.table(head, table))


def compare(names: list[str], shapes: list[str], budget: float) -> None:
    """All tables of all shapes, and their record."""
    comparison = Comparison(names, budget)
    for shape in shapes:
        with generated(shape, SEED) as data:
            report.say(f"\nData      {shape}: {data.train!r}, {len(data.test):,} to test on")
            comparison.speeds(data)
            for rank in JUDGED:
                comparison.errors(data, rank)
            if shape == "1M":
                comparison.tops(data)
    options = {"trainers": names, "shapes": shapes, "budget": budget}
    report.record("peers-mf", [report.header(options), *comparison.lines])


def sweep(names: list[str], shapes: list[str], budget: float) -> None:
    """Tries each peer's grid of settings, and marks those to take."""
    for shape in shapes:
        with generated(shape, SWEEP_SEED) as data:
            for rank, trainer in itertools.product(JUDGED, trainers(names, shape)):
                if trainer.name in KNOWN and is_widest(trainer, shape):
                    _sweep(data, trainer, rank, budget)


def _sweep(data: Data, trainer: Trainer, rank: int, budget: float) -> None:
    grid = KNOWN[trainer.name].grid
    tried = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if not grid:
        return
    curves = []
    for options in tried:
        more = {"epochs": SWEPT, "budget": budget, "options": options}
        curves.append(ask(trainer.name, data, rank, trainer.threads, **more).rows)
    chosen = choice(curves)
    head = [f"{data.shape}, rank {rank}, {trainer.name}", "least", "epochs", "seconds", ""]
    table = []
    for at, (options, rows) in enumerate(zip(tried, curves, strict=True)):
        least = best(rows) or {}
        words = ", ".join(f"{name} {value:g}" for name, value in options.items())
        table.append(
            [
                words,
                shown(least.get("test_rmse"), ".4f"),
                shown(least.get("epochs"), "d"),
                shown(least.get("seconds"), ".3f"),
                "<-" if at == chosen else "",
            ]
        )
    report.say("\n" + report.table(head, table))


def main() -> None:
    """The command line."""
    everyone = ["hogwild", *KNOWN]
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--install", action="store_true", help="the others, and nothing else")
    parser.add_argument("--sweep", action="store_true", help="settings of the others, nothing else")
    parser.add_argument("--shape", choices=SHAPES, help="only this one")
    parser.add_argument("--only", nargs="+", choices=everyone, default=everyone, metavar="NAME")
    parser.add_argument(
        "--budget",
        type=positive,
        default=BUDGET,
        metavar="SECONDS",
        help=f"for each trainer and rank [{BUDGET:g}]",
    )
    parsed = parser.parse_args()
    asked = [name for name in everyone if name in parsed.only]
    if parsed.install:
        for name in asked:
            if name in KNOWN:
                report.say(f"{name:<9} {environment(name).install() or 'installed'}")
        return

    report.say(report.about_machine())
    absent = {name: why for name in asked if name in KNOWN and (why := environment(name).missing())}
    for name, why in absent.items():
        report.say(f"Missing   {name}: {why}")
    names = [name for name in asked if name not in absent]
    if not names:
        raise HogwildError("nothing to compare: none of those asked for is installed")
    shapes = [parsed.shape] if parsed.shape else list(SHAPES)
    (sweep if parsed.sweep else compare)(names, shapes, parsed.budget)


if __name__ == "__main__":
    sys.exit(report.command(main))
