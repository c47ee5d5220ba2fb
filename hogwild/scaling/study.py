"""Running a scaling study: all configurations, several times, in a new order each time."""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from hogwild import machine, status
from hogwild.config import Config
from hogwild.data import rating_statistics, statistics
from hogwild.data.ratings import Ratings
from hogwild.data.rows import Rows
from hogwild.data.statistics import percent
from hogwild.errors import DivergenceError
from hogwild.learn.choosing import METHODS, OF_DESCENT
from hogwild.loops.strategies import AUTO
from hogwild.parallel import pool
from hogwild.results import Quiet, Result
from hogwild.scaling.plan import DECIDED, ONE, Configuration, Plan
from hogwild.scaling.probe import Probe, probe, typical
from hogwild.trace import Row
from hogwild.trace import header as trace_header
from hogwild.training import train

# Bytes that are read of the data in an epoch, and of a copy of the weights
NONZERO_BYTES = 8  # a column and a value
RATING_BYTES = 12  # a user, an item and a value
WEIGHT_BYTES = 4
# Gaps are measured from an optimum that is proved to within this share of the target. If a proof
# takes more than `PATIENCE` seconds, they are measured from a run with `LONGER` times the epochs
NEARER, PATIENCE, LONGER = 0.01, 60.0, 3

Tell = Callable[[int, int, str], object]  # takes runs done, runs in all, and what comes next


@dataclass(frozen=True)
class Look:
    """What in the data limits scaling: its size, and how often workers touch the same weights."""

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


class Reference(NamedTuple):
    """The objective that gaps are measured from, unless a run came to a lower one."""

    objective: float
    how: str  # how it was found; the text follows "Gaps are measured from"
    proved: bool  # whether it is proved that no objective is much lower


@dataclass(frozen=True)
class Study:
    plan: Plan
    reference: Reference
    look: Look
    machine: Probe  # what the machine typically gave to threads
    runs: list[Run]  # in the order in which they ran
    header: Row  # options, versions, machine and time
    cores: int  # number that the study may use
    used: Row  # peak memory, and the load of other programs: see `machine.Usage`


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
    tell(0, total, "finding the optimum")
    reference = optimum(data, plan)
    probes: list[Probe] = []
    runs: list[Run] = []
    for repeat in range(plan.repeats):
        tell(len(runs), total, "measuring the machine")
        with status.doing("measuring the machine"):  # takes about a second
            probes.append(probe(plan.workers))
        shuffled = random.Random(f"{plan.options.get('seed', 0)} {repeat}")
        for configuration in shuffled.sample(configurations, len(configurations)):
            tell(len(runs), total, configuration.name)
            runs.append(_run(data, plan, configuration, repeat))
    options = {k: v for k, v in Config.of(plan.options).as_dict().items() if k not in DECIDED}
    header = trace_header(options, {}, {"name": seen.name} | seen.record)
    cores, used = machine.usable_cores(), usage.so_far()
    return Study(plan, reference, seen, typical(probes), runs, header, cores, used)


def optimum(data: Rows | Ratings, plan: Plan) -> Reference:
    """What gaps are measured from: a proved optimum, if the options allow a proof."""
    kept = {k: v for k, v in plan.options.items() if k not in (*OF_DESCENT, "average", "epochs")}
    open_to_all = kept | {"solver": AUTO}
    if Config.of(open_to_all).choice[0] in METHODS:
        more = {"tol": NEARER * plan.target, "time_limit": PATIENCE}
        result = _finished(data, open_to_all | more)
        last, method = result.trace[-1], METHODS.get(result.header["chosen"]["solver"])
        if last.get("gap") is not None and last["gap"] <= plan.target:
            how = f"the optimum, found by {method}, proved to within {percent(last['gap'])}"
            return Reference(last["objective"], how, True)
    options = plan.train_options(ONE)
    epochs = LONGER * (Config.of(options).epochs or 1)
    trace = _finished(data, options | {"epochs": epochs, "objective_every": LONGER}).trace
    known = [row["objective"] for row in trace if row["objective"] is not None]
    how = f"the best objective of all runs and of one with {epochs} epochs; nothing is proved"
    return Reference(min(known), how, False)


def _finished(data: Rows | Ratings, options: dict[str, Any]) -> Result:
    result = train(data, watcher=Quiet(), **options)
    if result.reason == "interrupted":
        raise KeyboardInterrupt
    return result


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
            result = _finished(data, options | more)
    except DivergenceError as problem:
        if configuration == ONE:
            raise
        return Run(configuration, repeat, [], failure=str(problem))
    return Run(configuration, repeat, result.trace, result.header["chosen"], result.notes)
