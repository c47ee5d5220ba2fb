"""Running a scaling study: all configurations, several times, in a new order each time."""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from hogwild import machine
from hogwild.config import Config
from hogwild.coordinator import Quiet
from hogwild.data import rating_statistics, statistics
from hogwild.data.ratings import Ratings
from hogwild.data.rows import Rows
from hogwild.data.statistics import percent
from hogwild.errors import DivergenceError
from hogwild.parallel import pool
from hogwild.scaling.plan import DECIDED, ONE, Configuration, Plan
from hogwild.scaling.probe import Probe, probe, typical
from hogwild.trace import Row
from hogwild.trace import header as trace_header
from hogwild.training import train

# Bytes that are read of the data in an epoch, and of a copy of the weights
NONZERO_BYTES = 8  # a column and a value
RATING_BYTES = 12  # a user, an item and a value
WEIGHT_BYTES = 4

Tell = Callable[[int, int, str], object]  # takes runs done, runs in all, and what comes next


@dataclass(frozen=True)
class Look:
    """What bounds scaling in the data: its size, and how often workers touch the same weights."""

    name: str
    shape: str
    sharing: str  # a sentence: how often workers touch the same weights
    meaning: str  # a few sentences: what that means for several workers
    work_bytes: int  # read in an epoch
    weights_bytes: int  # of a copy; 0 where workers have no copies
    record: dict[str, Any]


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
    used: Row  # the peak of memory, and what other programs took meanwhile: see `machine.Usage`


def study(data: Rows | Ratings, plan: Plan, tell: Tell) -> Study:
    """Trains every configuration several times, and probes the machine before each repeat.

    Raises:
        DivergenceError: one worker failed. The failures of other runs are kept in the study.
        KeyboardInterrupt: Ctrl-C, which ends the study without a result.
    """
    configurations = plan.configurations
    total = len(configurations) * plan.repeats
    usage = machine.Usage(pool.pids)
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
    cores, used = machine.usable_cores(), usage.so_far()
    return Study(plan, seen, typical(probes), runs, header, cores, used)


def look(data: Rows | Ratings) -> Look:
    if isinstance(data, Ratings):
        counted = rating_statistics.rating_statistics(data)
        return Look(
            data.name,
            f"{len(data):,} ratings of {counted.items:,} items by {counted.users:,} users",
            f"Two ratings share a user or an item {percent(counted.chance)} of the time.",
            rating_statistics.meaning(counted),
            RATING_BYTES * len(data),
            0,
            asdict(counted),
        )
    found = statistics.statistics(data)
    reason = found.sharing.reason
    return Look(
        data.name,
        f"{len(data):,} rows, {data.columns:,} columns, {data.nonzeros:,} non-zeros",
        f"{reason[0].upper()}{reason[1:]}.",
        statistics.meaning(found),
        NONZERO_BYTES * data.nonzeros,
        WEIGHT_BYTES * data.columns,
        asdict(found),
    )


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
