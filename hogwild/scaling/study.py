"""Running a scaling study: all configurations, several times, in a new order each time."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hogwild import machine
from hogwild.config import Config
from hogwild.coordinator import Quiet
from hogwild.data.ratings import Ratings
from hogwild.data.rows import Rows
from hogwild.errors import DivergenceError
from hogwild.scaling.look import Look, look
from hogwild.scaling.plan import DECIDED, ONE, Configuration, Plan
from hogwild.scaling.probe import Probe, probe, typical
from hogwild.trace import Row
from hogwild.trace import header as trace_header
from hogwild.training import train

Tell = Callable[[int, int, str], object]  # takes runs done, runs in all, and what comes next


@dataclass(frozen=True)
class Run:
    configuration: Configuration  # what was asked for
    repeat: int
    trace: list[Row]  # of `hogwild.Result`; empty if training failed
    chosen: Row = field(default_factory=dict)  # what ran: strategy, workers, eta0, ...
    notes: list[str] = field(default_factory=list)
    failure: str | None = None


@dataclass(frozen=True)
class Study:
    plan: Plan
    look: Look
    machine: Probe  # what it typically gave to threads
    runs: list[Run]  # in the order in which they ran
    header: Row  # options, versions, machine and time
    cores: int  # that the study may use


def study(data: Rows | Ratings, plan: Plan, tell: Tell) -> Study:
    """Trains every configuration several times, and probes the machine before each repeat.

    Raises:
        DivergenceError: one worker failed. The failures of other runs are kept in the study.
        KeyboardInterrupt: Ctrl-C, which ends the study without a result.
    """
    configurations = plan.configurations
    total = len(configurations) * plan.repeats
    tell(0, total, "reading the data")
    seen = look(data)
    probes: list[Probe] = []
    runs: list[Run] = []
    for repeat in range(plan.repeats):
        tell(len(runs), total, "measuring the machine")
        probes.append(probe(plan.workers))
        shuffled = random.Random(f"{plan.options.get('seed', 0)} {repeat}")
        for configuration in shuffled.sample(configurations, len(configurations)):
            tell(len(runs), total, configuration.name)
            runs.append(_run(data, plan, configuration, repeat))
    options = {k: v for k, v in Config.of(plan.options).as_dict().items() if k not in DECIDED}
    header = trace_header(options, {}, {"name": seen.name} | seen.record)
    return Study(plan, seen, typical(probes), runs, header, machine.usable_cores())


def _run(data: Rows | Ratings, plan: Plan, configuration: Configuration, repeat: int) -> Run:
    """A measured training, after a brief one that compiles the kernels and forks the workers."""
    options = plan.train_options(configuration)
    try:
        for more in ({"epochs": 1, "objective_every": 0}, {}):
            result = train(data, watcher=Quiet(), **options | more)
            if result.reason == "interrupted":
                raise KeyboardInterrupt
    except DivergenceError as problem:
        if configuration == ONE:
            raise
        return Run(configuration, repeat, [], failure=str(problem))
    return Run(configuration, repeat, result.trace, result.header["chosen"], result.notes)
