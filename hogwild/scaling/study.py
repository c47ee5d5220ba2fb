"""Running a scaling study: all configurations, several times, in a new order each time."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import hogwild
from hogwild import machine
from hogwild.coordinator import Result, Watcher
from hogwild.data.ratings import Ratings
from hogwild.data.rows import Rows
from hogwild.errors import DivergenceError
from hogwild.scaling.look import Look, look
from hogwild.scaling.plan import Configuration, Plan
from hogwild.scaling.probe import Probe, probe, typical
from hogwild.trace import Row
from hogwild.trace import header as trace_header

Data = Rows | Ratings
Progress = Callable[[int, int, str], None]  # how many runs are done, of how many, and what is next


@dataclass(frozen=True)
class Run:
    """One measured training.

    Attributes:
        configuration: what was asked for.
        repeat: which repeat of it, from 0 on; order: its place among all runs.
        trace: a dict for each epoch, as in `hogwild.Result`.
        chosen: what ran: strategy, workers, why, eta0, ...
        notes: what was done otherwise than asked.
        failure: why there is no trace, where there is none.
    """

    configuration: Configuration
    repeat: int
    order: int
    trace: list[Row]
    chosen: Row = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failure: str | None = None


@dataclass(frozen=True)
class Study:
    """What was planned, what it was run on, and every run.

    Attributes:
        plan: what was asked for.
        look: the data.
        probes: what the machine gave to threads, before each repeat.
        runs: in the order in which they were done.
        header: options, versions, machine and time, for the record.
        cores: how many may be used.
    """

    plan: Plan
    look: Look
    probes: list[Probe]
    runs: list[Run]
    header: Row
    cores: int

    @property
    def machine(self) -> Probe:
        """What the machine typically gave to threads."""
        return typical(self.probes)


def study(data: Data, plan: Plan, progress: Progress | None = None) -> Study:
    """Trains every configuration `plan.repeats` times, and measures the machine meanwhile.

    Args:
        data: rows with labels; ratings for the task mf.
        plan: what to run.
        progress: is told before each run.

    Raises:
        DivergenceError: the weights overflow with one worker; with others, their runs say so.
        KeyboardInterrupt: Ctrl-C, which ends the study without a result.
    """
    tell = progress or (lambda done, total, what: None)
    configurations = plan.configurations
    total = len(configurations) * plan.repeats
    tell(0, total, "looking at the data")
    seen = look(data)
    for configuration in configurations:  # kernels are compiled, or read from their files
        tell(0, total, f"warming up, {configuration.name}")
        with suppress(DivergenceError):  # which the measured runs tell of
            _train(data, plan, configuration, brief=True)
    probes: list[Probe] = []
    runs: list[Run] = []
    for repeat in range(plan.repeats):
        tell(len(runs), total, "measuring the machine")
        probes.append(probe(plan.workers))
        for configuration in _order(configurations, plan, repeat):
            tell(len(runs), total, configuration.name)
            runs.append(_run(data, plan, configuration, repeat, len(runs)))
    header = trace_header(plan.options, {}, {"name": seen.name} | seen.record)
    return Study(plan, seen, probes, runs, header, machine.usable_cores())


def _order(configurations: list[Configuration], plan: Plan, repeat: int) -> list[Configuration]:
    """Another order for each repeat, the same in each study."""
    shuffled = list(configurations)
    random.Random(f"{plan.options.get('seed', 0)} {repeat}").shuffle(shuffled)
    return shuffled


def _run(data: Data, plan: Plan, configuration: Configuration, repeat: int, order: int) -> Run:
    """A measured training. Its workers are up: they are kept only for others like themselves."""
    try:
        if configuration.workers > 1:
            _train(data, plan, configuration, brief=True)
        result = _train(data, plan, configuration)
    except DivergenceError as problem:
        if configuration.strategy is None:  # what all others are compared with
            raise
        return Run(configuration, repeat, order, [], failure=str(problem))
    return Run(
        configuration, repeat, order, result.trace, result.header["chosen"], list(result.notes)
    )


def _train(data: Data, plan: Plan, configuration: Configuration, brief: bool = False) -> Result:
    """A training, or its first epoch only."""
    options: dict[str, Any] = plan.train_options(configuration)
    if brief:
        options |= {"epochs": 1, "objective_every": 0}
    result = hogwild.train(data, watcher=_Quiet(), **options)
    if result.reason == "interrupted":
        raise KeyboardInterrupt
    return result


class _Quiet(Watcher):
    """Notes are in the result."""

    def note(self, text: str) -> None:
        pass
