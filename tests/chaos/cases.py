"""What a case of the storm is: a program, its options and surroundings, and the blows it gets.

All of it is drawn from the seed and the number of the case, so a case can be repeated.
"""

import dataclasses
import random
import signal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import hogwild
from hogwild.config import BACKENDS, TASKS, Config, loss_names, schedule_names, strategy_names
from hogwild.data.synthetic import rcv1, rcv1_classes, rcv1_numbers
from hogwild.data.synthetic_ratings import movielens
from hogwild.errors import OptionError
from hogwild.learn.choosing import COORDINATE, SOLVERS

COMMAND, FORKED = "command", "forked"  # started by exec, and by a fork of the storm itself
PROGRAMS = (
    *("again", "thread", "side by side", "search", "forking", "asyncio", "estimator"),
    "checked",
)
WAYS = {COMMAND: 25, FORKED: 50} | dict.fromkeys(PROGRAMS, 4)
# Moments that a forked program reports, and how often it may come to them
MOMENTS = {
    "start": 1,
    "starting": 1,
    "reading": 1,
    "preparing": 1,
    "searching": 1,
    "compiling": 3,
    "forking": 3,
    "epoch": 12,
    "measuring": 6,
    "making": 1,
    "saving": 1,
    "opening": 1,
    "renaming": 1,
    "closing": 1,
}
WITH_WORKERS = ["forking", *["epoch"] * 6, "measuring", "measuring", "making", "closing"]
TARGETS = {"worker": 50, "program": 32, "group": 18}
SIGNALS = {
    signal.SIGKILL: 45,
    signal.SIGSTOP: 20,
    signal.SIGTERM: 14,
    signal.SIGINT: 13,
    signal.SIGHUP: 8,
}
ENDING = {number: SIGNALS[number] for number in SIGNALS if number != signal.SIGSTOP}
OF_PROGRAM = {"program": 2, "group": 1}
ATTEMPTS = 6  # after so many, a program that is started again gets no blows
RESUMED = "--checkpoint checkpoint --every 1 --resume auto"
PLAIN = "plain"
# How often each occurs; those from "small disk" on need rights that not everybody has
SURROUNDINGS = {
    PLAIN: 100,
    "one core": 6,
    "few files": 5,
    "small files": 6,
    "full output": 4,
    "strange cgroups": 6,
    "little memory": 6,
    "no home": 1,
    "home is no folder": 1,
    "fresh kernels": 1,
    "small disk": 5,
    "small /dev/shm": 3,
    "memory group": 6,
}


class Blow(NamedTuple):
    """A signal, and to whom it is sent: some time after a moment. 0: within the very call."""

    moment: str
    count: int
    delay: float
    number: signal.Signals
    target: str
    back: float | None  # seconds after SIGSTOP until SIGCONT; None: never


@dataclasses.dataclass(frozen=True)
class Case:
    seed: int
    number: int
    way: str
    data: str
    options: dict[str, Any]
    flags: list[str]
    surroundings: str
    amount: float  # of what the surroundings leave, from 0 to 1
    has_old_model: bool
    blows: list[Blow]
    resumes: bool = False  # whether it is started again until it ends, from its checkpoint
    attempt: int = 0

    def __str__(self) -> str:
        words = [self.way, self.data, *self.flags, str(self.options), self.surroundings]
        return " ".join(words) + "".join(f"\n    {told(blow)}" for blow in self.blows)

    @property
    def is_gentle(self) -> bool:
        """Whether nothing was taken from it, so that it should succeed without blows."""
        return self.surroundings in (PLAIN, "one core", "strange cgroups", "small /dev/shm")

    @property
    def is_repeatable(self) -> bool:
        """Whether the model is the same, to the bit, however it is disturbed."""
        return self.is_gentle and "time_limit" not in self.options

    @property
    def undisturbed(self) -> "Case":
        """The same training, to which nothing happens."""
        way = FORKED if self.way == COMMAND else self.way
        flags = [flag for flag in self.flags if flag != RESUMED]
        calm = {"surroundings": PLAIN, "blows": [], "resumes": False, "has_old_model": False}
        return dataclasses.replace(self, number=-1, way=way, flags=flags, **calm)

    @property
    def started_again(self) -> "Case":
        """The same command once more, with other blows; none after some attempts."""
        attempt = self.attempt + 1
        rng = random.Random(f"{self.seed} {self.number} {attempt}")
        blows = [_blow(rng, self.way, ENDING, OF_PROGRAM)] if attempt < ATTEMPTS else []
        return dataclasses.replace(self, attempt=attempt, blows=blows)


def told(blow: Blow) -> str:
    back = "" if blow.back is None else f", SIGCONT after {blow.back:.3f} s"
    return (
        f"{blow.number.name} to the {blow.target} {blow.delay:.4f} s after {blow.moment} "
        f"number {blow.count}{back}"
    )


def drawn(seed: int, number: int, usable: set[str]) -> Case:
    """The case of this number. Surroundings that are not usable here are replaced by plain ones."""
    rng = random.Random(f"{seed} {number}")
    way = _weighted(rng, WAYS)
    options, data = _options(rng)
    surroundings = _weighted(rng, SURROUNDINGS)
    amount, has_old_model = rng.random(), rng.random() < 0.5
    flags = _flags(rng, data) if way in (COMMAND, FORKED) else []
    blows = [_blow(rng, way) for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5]))]
    resumes = way in (COMMAND, FORKED) and rng.random() < 0.3 and "--folds 3" not in flags
    if resumes:
        flags, surroundings, options = [*flags, RESUMED], PLAIN, _repeatable(options)
        blows.append(_blow(rng, way, ENDING, OF_PROGRAM))
    if way == "asyncio" and surroundings in ("few files", "little memory"):
        surroundings = PLAIN  # asyncio's own start fails there, with a traceback, or hangs
    if surroundings not in usable:
        surroundings = PLAIN
    return Case(
        *(seed, number, way, data, options, flags, surroundings, amount, has_old_model),
        *(blows, resumes),
    )


def _weighted(rng: random.Random, weights: dict[Any, int]) -> Any:
    return rng.choices([*weights], [*weights.values()])[0]


def _blow(
    rng: random.Random,
    way: str,
    signals: dict[signal.Signals, int] = SIGNALS,
    targets: dict[str, int] = TARGETS,
) -> Blow:
    number, target = _weighted(rng, signals), _weighted(rng, targets)
    moment, count, delay = "start", 1, rng.uniform(0, 2.5)
    if way != COMMAND:
        moment = rng.choice(WITH_WORKERS if target == "worker" else list(MOMENTS))
        count = rng.randint(1, MOMENTS[moment])
        often = 1 if moment == "compiling" else 100  # which takes long
        delay = 0.0 if target != "worker" and rng.random() < 0.4 else rng.expovariate(often)
    back = None
    if number == signal.SIGSTOP:
        back = rng.uniform(0.01, 1)
        if target == "worker" and way != "forking" and rng.random() < 0.5:
            back = None  # (its other child is a program of the user's)
    return Blow(moment, count, delay, number, target, back)


# Options


def _options(rng: random.Random) -> tuple[dict[str, Any], str]:
    """Options that go together, and data for them."""
    task = rng.choice(list(TASKS))
    options: dict[str, Any] = {"task": task, "seed": rng.randint(0, 9)}
    for name, (share, value) in _candidates(rng, task).items():
        more = options | {name: value}
        if name == "solver" and value == COORDINATE:
            more["l1"] = 1e-4
        if rng.random() < share and _go_together(more):
            options = more
    if options.get("deterministic") or options.get("workers") == 1:
        options = _repeatable(options)
    return options, _data_for(rng, Config.of(options))


def _repeatable(options: dict[str, Any]) -> dict[str, Any]:
    """Options with which the result is the same, whatever happens."""
    unlimited = {name: value for name, value in options.items() if name != "time_limit"}
    unlimited.setdefault("epochs", 20)  # without any limit, descent with tol=0 takes minutes
    same = unlimited | {"deterministic": True}
    return same if _go_together(same) else unlimited | {"workers": 1}


def _go_together(options: dict[str, Any]) -> bool:
    try:
        Config.of(options)
    except OptionError:
        return False
    return True


def _candidates(rng: random.Random, task: str) -> dict[str, tuple[float, Any]]:
    """Options, how often they are given, and a value."""
    first = "solver" if task != "mf" and rng.random() < 0.4 else "strategy"
    often: dict[str, tuple[float, Any]] = {
        first: (0.8, rng.choice(SOLVERS if first == "solver" else strategy_names(task))),
        "loss": (0.6, rng.choice(loss_names(task))),
        "workers": (0.95, rng.choice([1, 2, 2, 2, 2, 3, 3, 4])),
        "time_limit": (1.0, rng.uniform(0.05, 1)),
        "worker_patience": (1.0, rng.choice([0.2, 1.0])),
        "backend": (0.1, rng.choice(BACKENDS)),
        "deterministic": (0.25, True),
        "schedule": (0.2, rng.choice(schedule_names(task))),
        "eta0": (0.2, rng.choice([0.01, 0.1, 0.5])),
        "l1": (0.15, 1e-4),
        "l2": (0.3, rng.choice([1e-6, 1e-4, 1e-2])),
        "early_stopping": (0.1, 0.2),
        "epochs": (0.7, rng.choice([1, 5, 20, 100, 500])),
        "tol": (0.6, 0.0),
        "objective_every": (0.2, rng.choice([0, 3])),
    }
    if task == "mf":
        often |= {"rank": (1.0, rng.choice([1, 4, 16])), "nonnegative": (0.1, True)}
    else:
        often |= {
            "average": (0.15, False),
            "merge": (0.1, "vote"),
            "intercept": (0.2, False),
            "class_weight": (0.1, "balanced"),
        }
    return often


def _data_for(rng: random.Random, config: Config) -> str:
    if config.family == "factors":
        return "likes.csv" if config.loss_name in ("logistic", "kl") else "ratings.csv"
    if config.strategy == "strata":
        return "parts.svm"
    if config.task == "regression":
        return "counts.svm" if config.loss_name == "poisson" else "numbers.svm"
    if config.task == "softmax" or config.strategy == "heads":
        return "classes.svm"
    found = rng.choice(["signs.svm", "signs.svm", "signs.rows", "classes.svm", "wide.rows"])
    if found == "wide.rows" and config.choice[0] not in ("sgd", "dual"):
        return "signs.rows"  # other solvers need minutes for vectors of 1.5 million columns
    return found


def _flags(rng: random.Random, data: str) -> list[str]:
    flags = {"--quiet": 0.15, "--json": 0.15, "--trace trace.jsonl": 0.2, f"--test {data}": 0.2}
    if not data.endswith(".csv"):
        flags |= {"--folds 3": 0.04, "--cache": 0.05}
    return [flag for flag, share in flags.items() if rng.random() < share]


def words_of(case: Case, data: Path, model: Path) -> list[str]:
    """The command line of a case."""
    words = ["train", str(data), "--model", str(model)]
    for known in dataclasses.fields(Config):
        if known.name not in case.options:
            continue
        name, value = known.name.replace("_", "-"), case.options[known.name]
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            words += [f"--{name}", str(value)]
    for flag in case.flags:
        name, *rest = flag.split()
        words += [name, *(str(data) if word == case.data else word for word in rest)]
    return words


# Data


def write_data(folder: Path) -> None:
    """Writes the data of all cases."""
    signs = rcv1(12_000, 5_000)[0]
    hogwild.save(signs, folder / "signs.svm")
    hogwild.convert(folder / "signs.svm", folder / "signs.rows")
    hogwild.save(rcv1_classes(6_000, 3_000, classes=4)[0], folder / "classes.svm")
    numbers = rcv1_numbers(12_000, 5_000)[0]
    hogwild.save(numbers, folder / "numbers.svm")
    counts = np.floor(np.abs(numbers.y)).clip(0, 9)
    hogwild.save(hogwild.Rows(numbers.to_scipy(), counts), folder / "counts.svm")
    parts = [sparse.random_array((1_000, 60), density=0.2, rng=part) for part in range(8)]
    X = sparse.block_diag(parts, format="csr").astype(np.float32)
    y = np.where(np.random.default_rng(0).random(8_000) < 0.5, -1, 1)
    hogwild.save(hogwild.Rows(X, y), folder / "parts.svm")
    wide = signs.to_scipy()[:4_000].copy()
    wide.resize((4_000, 1_500_000))  # 6 MB of weights
    hogwild.save(hogwild.Rows(wide, signs.y[:4_000]), folder / "wide.rows")
    ratings = movielens(500, 300, 20_000)[0]
    hogwild.save_ratings(ratings, folder / "ratings.csv")
    lines = (folder / "ratings.csv").read_text().splitlines()
    likes = [lines[0], *(f"{line.rsplit(',', 1)[0]},{n % 2}" for n, line in enumerate(lines[1:]))]
    (folder / "likes.csv").write_text("\n".join(likes) + "\n")
