"""What the textbooks' experiments share: their configs, their trainings, and what they show.

A file of configs/textbooks/ has [data] to generate and [problems]. A problem has options and
trainings, which have options besides; those in [trainings] are of all problems. Where an option has
a list of values, there is one training for each.
"""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

import hogwild
from experiments import orders, report, run_rows
from experiments.experiment import Line, check_names
from experiments.run_rows import Data
from hogwild import Config, OptionError, Result, Rows
from hogwild.results import Quiet
from hogwild.scaling.svg import COLORS
from hogwild.scaling.svg import Line as Curve

CERTAINTY = 1e-7  # relative, of the optimum
METRICS = ("loss", "error")  # on the rows to test on; numbers have no error
PUBLISHED = {"name", "seconds", "test_error"}


class Training(NamedTuple):
    """A line of a table, or a curve.

    Attributes:
        options: of hogwild.train.
        varied: the option that has one of `values`, if any; it may be "rows".
        rows: how many of the first ones to train on; 0: all.
        order: one of `orders.ORDERS`, where the lesson has orders.
    """

    name: str
    options: dict[str, Any]
    varied: str
    values: list[Any]
    rows: int
    order: str

    def each(self, most: int) -> list[tuple[Any, int, dict[str, Any]]]:
        """For each point: the value, the number of its rows, and the options of its training."""
        if self.varied == "rows":
            counts = sorted({min(count, most) for count in self.values})
            return [(count, count, self.options) for count in counts]
        if self.rows > most:
            return []
        if self.varied:
            return [(one, self.rows, self.options | {self.varied: one}) for one in self.values]
        return [(None, self.rows, self.options)]


class Problem(NamedTuple):
    """What is learned, and how.

    Attributes:
        options: of hogwild.train, of all its trainings.
        published: lines of a table, as they were printed.
        by_label: whether the rows stand sorted by label.
    """

    name: str
    options: dict[str, Any]
    trainings: list[Training]
    published: list[Line]
    by_label: bool


class Lesson(NamedTuple):
    """A file of configs/textbooks/."""

    name: str
    data: dict[str, Any]
    problems: list[Problem]


class Point(NamedTuple):
    """What one training came to; nothing but its value and its rows, if it diverged.

    Attributes:
        value: of the option that is varied.
        rows: how many it had.
        seconds: of the training clock.
        test: the metrics on the rows to test on.
    """

    value: Any
    rows: int
    seconds: float = np.inf
    objective: float = np.inf
    test: Mapping[str, float] = {}
    result: Result | None = None

    def chosen(self, name: str) -> Any:
        """What the run chose."""
        return self.result.header["chosen"][name] if self.result else None

    def passes(self) -> float:
        """How many times it visited the rows."""
        return self.result.state.steps / self.rows if self.result and self.result.state else 0.0

    def record(self) -> Line:
        """As recorded."""
        line: Line = {"value": self.value, "rows": self.rows}
        if self.result is None:
            return line | {"diverged": True}
        line |= {"seconds": self.seconds, "objective": self.objective, "test": self.test}
        return line | {"chosen": self.result.header["chosen"], "trace": self.result.trace}


class Shown(NamedTuple):
    """What a problem came to.

    Attributes:
        head, rows: of a table.
        plot: a picture, as HTML, if any.
        says: what is seen, a sentence or two each.
        lines: of the record.
    """

    head: list[str]
    rows: list[list[str]]
    plot: str
    says: list[str]
    lines: list[Line]


class Kind(Protocol):
    """A textbook's experiment; a module."""

    TITLE: str
    INTRO: str  # what the book did, and what is done here
    WHY: str  # why one sees what one sees
    TAKES: tuple[str, ...]  # what its problems and trainings have besides options
    VARIES: tuple[str, ...]  # of what a training may have a list of values

    def shown(self, problem: Problem, data: Data) -> Shown:
        """Trains, and says what came of it."""


# Configs


def lessons(kinds: Mapping[str, Kind]) -> list[Lesson]:
    """The configs of these names, checked."""
    folder = report.FOLDER / "configs" / "textbooks"
    return [lesson(folder / f"{name}.toml", kind) for name, kind in kinds.items()]


def lesson(path: Path, kind: Kind) -> Lesson:
    """The lesson in a file."""
    try:
        found = tomllib.loads(path.read_text())
        check_names(found, ["data", "problems", "trainings"])
        data, shared = found.get("data", {}), found.get("trainings", {})
        run_rows.check(data)
        problems = [
            _problem(name, given, shared, kind) for name, given in found.get("problems", {}).items()
        ]
        if not problems:
            raise OptionError("there are no problems; give [problems.NAME]")
    except (tomllib.TOMLDecodeError, OptionError) as problem:
        raise OptionError(f"{path}: {problem}") from None
    return Lesson(path.stem, data, problems)


def _problem(name: str, found: dict[str, Any], shared: dict[str, Any], kind: Kind) -> Problem:
    check_names(found, ["options", "trainings", *kind.TAKES])
    options, trainings = found.get("options", {}), shared | found.get("trainings", {})
    if not trainings:
        raise OptionError(f"{name} has no trainings; give [problems.{name!r}.trainings]")
    published, by_label = found.get("published", []), found.get("by_label", False)
    for line in published:
        if set(line) != PUBLISHED:
            raise OptionError(f"{name}: a published line needs {', '.join(sorted(PUBLISHED))}")
    if not isinstance(by_label, bool):
        raise OptionError(f"{name}: by_label is {by_label!r}; it must be true or false")
    given = [_training(called, options, more, kind) for called, more in trainings.items()]
    return Problem(name, options, given, published, by_label)


def _training(name: str, shared: dict[str, Any], found: dict[str, Any], kind: Kind) -> Training:
    lists = [option for option, value in found.items() if isinstance(value, list)]
    if lists and (len(lists) > 1 or lists[0] not in kind.VARIES):
        able = f"one of {', '.join(kind.VARIES)}" if kind.VARIES else "none"
        raise OptionError(f"{name}: {' and '.join(lists)} have lists; {able} may have one")
    varied = lists[0] if lists else ""
    own = {key: found[key] for key in found if key in kind.TAKES and key != varied}
    options = {key: found[key] for key in found if key not in own and key != varied}
    values = found[varied] if varied else []
    rows, order = own.get("rows", 0), own.get("order", "")
    training = Training(name, shared | options, varied, values, rows, order)
    for count in values if varied == "rows" else [rows]:
        if not isinstance(count, int) or count < 0:
            raise OptionError(f"{name}: rows is {count!r}; it must be a whole number")
    if "order" in kind.TAKES and order not in orders.ORDERS:
        raise OptionError(f"{name}: order is {order!r}; there are {', '.join(orders.ORDERS)}")
    for _, _, each in training.each(sys.maxsize):
        Config.of(each)
    return training


# Trainings


def first(rows: Rows, count: int) -> Rows:
    """A copy of the first rows; all of them, where `count` is 0."""
    return rows.take(np.arange(count)) if 0 < count < len(rows) else rows


def points(training: Training, data: Data, repeats: int = 1) -> list[Point]:
    """What the training came to with each value, the quickest of some repeats.

    Where there are fewer rows than asked for: nothing, and of several numbers of rows, all rows.
    """
    found = []
    for value, count, options in training.each(len(data.train)):
        rows = first(data.train, count)
        tries = [point(value, rows, data.test, options) for _ in range(repeats)]
        found.append(min(tries, key=lambda one: one.seconds))
    return found


def point(value: Any, rows: Rows, test: Rows, options: dict[str, Any]) -> Point:
    """What one training came to."""
    result = report.finished(hogwild.train(rows, watcher=Quiet(), **options))
    last, evaluated = result.trace[-1], result.model.evaluate(test)
    told = {key: evaluated[key] for key in METRICS if key in evaluated}
    return Point(value, len(rows), last["seconds"], last["objective"], told, result)


class Bound(NamedTuple):
    """The least the objective can be, as is proved, and how near it a training came."""

    objective: float
    certainty: float

    def gap(self, objective: float) -> float:
        """How far an objective is above it, as a share of it."""
        return (objective - self.objective) / self.objective

    def record(self) -> Line:
        """As recorded."""
        return {"kind": "bound"} | self._asdict()


def bound(problem: Problem, rows: Rows) -> Bound:
    """A lower bound of the objective of a problem on these rows, by a solver with a proof."""
    result = report.finished(
        hogwild.train(rows, watcher=Quiet(), **(problem.options | {"tol": CERTAINTY}))
    )
    if not result.header["chosen"]["proves"]:
        raise OptionError(
            f"{problem.name}: its optimum cannot be proved; give an l2 above 0, and options of sgd "
            "with the trainings"
        )
    last = result.trace[-1]
    return Bound(last["objective"] * (1 - last["gap"]), last["gap"])


# What is shown


def curves(named: Mapping[str, Sequence[tuple[float, float]]]) -> list[Curve]:
    """Lines that differ in color and marker; those without points are left out."""
    return [
        Curve(name, some, COLORS[number % len(COLORS)], number, number // len(COLORS))
        for number, (name, some) in enumerate(named.items())
        if some
    ]


def short(gap: float) -> str:
    """A gap, as printed."""
    return f"{gap:.1e}" if np.isfinite(gap) else "-"


def percent(share: float) -> str:
    """An error, as printed."""
    return f"{100 * share:.2f} %"


def lines(problem: Problem, training: Training, found: Sequence[Point]) -> list[Line]:
    """Of the record."""
    about: Line = {"kind": "training", "problem": problem.name, "training": training.name}
    about |= {"options": training.options, "varied": training.varied}
    return [about | point.record() for point in found]
