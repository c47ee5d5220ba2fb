"""An experiment: a file of configs/, trained some times with each number of workers, in turn."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import hogwild
from experiments import report
from hogwild import Config, OptionError, Result

ROWS = 200_000
REPEATS = 5

Line = dict[str, Any]
Results = dict[int, list[Result]]


class Experiment(NamedTuple):
    """A file of configs/: what data to generate, and options of `hogwild.train`."""

    name: str
    kind: str
    data: dict[str, Any]
    options: dict[str, Any]
    config: Config

    def about(self) -> Line:
        """For the record."""
        data = {"kind": self.kind} | self.data
        return {"experiment": self.name, "data": data, "options": self.options}


class Sets(Protocol):
    """What is trained and tested on."""

    @property
    def train(self) -> Any: ...

    @property
    def test(self) -> Any: ...


class Summary(Protocol):
    """A row of the table."""

    def cells(self) -> list[str]:
        """As printed."""

    def record(self) -> Line:
        """As recorded."""


class Kind(Protocol):
    """What is done with one kind of data; a module."""

    FAMILY: str  # of the models that learn from it

    def check(self, options: dict[str, Any]) -> None:
        """Refuses wrong options in [data]."""

    def generate(self, rows: int, options: dict[str, Any]) -> Any:
        """Draws the `Sets`, and says what they are."""

    def measure(
        self, experiment: Experiment, data: Any, workers: list[int]
    ) -> tuple[list[Any], list[Line]]:
        """A `Summary` for each number of workers, and the lines of the record."""

    def shown(self, data: Any, summaries: list[Any]) -> str:
        """The table of all experiments on the same data, and what it says."""


def experiments(kinds: Mapping[str, Kind]) -> list[Experiment]:
    """All files of configs/, checked; those on the same data stand together."""
    found = [experiment(path, kinds) for path in sorted((report.FOLDER / "configs").glob("*.toml"))]
    order = list(kinds)
    return sorted(found, key=lambda one: (order.index(one.kind), str(one.data)))


def experiment(path: Path, kinds: Mapping[str, Kind]) -> Experiment:
    """The experiment in a file."""
    try:
        found = tomllib.loads(path.read_text())
        check_names(found, ["data", "options"])
        data, options = dict(found.get("data", {})), found.get("options", {})
        name = data.pop("kind", "rows")
        if name not in kinds:
            raise OptionError(f"there is no data of the kind {name!r}; there is {', '.join(kinds)}")
        kinds[name].check(data)
        config = Config.of(options)
        if config.family != kinds[name].FAMILY:
            raise OptionError(f"the task {config.task} does not learn from {name}; take another")
    except (tomllib.TOMLDecodeError, OptionError) as problem:
        raise OptionError(f"{path}: {problem}") from None
    return Experiment(path.stem, name, data, options, config)


def check_names(found: Iterable[str], known: list[str]) -> None:
    """Refuses unknown names."""
    for name in found:
        if name not in known:
            raise OptionError(f"{name} is unknown; there are {', '.join(known)}")


def trained(experiment: Experiment, data: Sets, workers: list[int]) -> Results:
    """The experiment's runs by number of workers, measured in turn."""
    results: Results = {count: [] for count in workers}
    for _ in range(REPEATS):
        for count in workers:
            result = hogwild.train(
                data.train, test=data.test, **(experiment.options | {"workers": count})
            )
            results[count].append(report.finished(result))
    return results


def quickest(runs: list[Result]) -> list[Line]:
    """The trace of the quickest run."""
    return min(runs, key=lambda result: result.trace[-1]["seconds"]).trace


def speeds(results: Results, key: str) -> dict[int, float]:
    """By number of workers, the speed of the quickest epoch of all runs."""
    return {
        count: max(float(row[key]) for result in runs for row in result.trace)
        for count, runs in results.items()
    }


def epochs(experiment: Experiment, results: Results) -> list[Line]:
    """Every epoch of every run, for the record."""
    return [
        row | {"experiment": experiment.name, "workers": count, "repeat": repeat}
        for count, runs in results.items()
        for repeat, result in enumerate(runs)
        for row in result.trace
    ]
