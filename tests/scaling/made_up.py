"""Studies that were never run: traces whose every number is known."""

from typing import Any

from hogwild.scaling.plan import Configuration, Plan
from hogwild.scaling.probe import Probe
from hogwild.scaling.study import Look, Reference, Run, Study

PERFECT = {1: 100.0, 2: 200.0, 4: 400.0}
LOOK = Look(
    name="made up",
    shape="10,000 rows",
    sharing="Workers touch the same weights.",
    meaning="It means something.",
    work_bytes=8_000_000,
    weights_bytes=4_000_000,
    record={"rows": 10_000},
)


def run(
    strategy: str | None,
    workers: int,
    *,
    repeat: int = 0,
    ran: str | None = None,
    at_work: int | None = None,
    search: float = 0.0,
    notes: tuple[str, ...] = (),
    failure: str | None = None,
    epoch: float = 0.1,
    start: float = 0.02,
    objectives: tuple[float, ...] = (2.0, 1.1, 1.01, 1.0),
    **each: float,
) -> Run:
    """A measured training, an epoch for each objective; `each` holds other times of an epoch."""
    chosen = {
        "strategy": ran or strategy or "hogwild",
        "workers": at_work or workers,
        "eta0_seconds": search,
    }
    times = {"epoch_seconds": epoch, "waiting": 0.0, "merging": 0.0, "evaluation": 0.01} | each
    trace = [
        {"epoch": number, "seconds": start + number * epoch, "objective": objective} | times
        for number, objective in enumerate(objectives, start=1)
    ]
    asked = Configuration(strategy, workers)
    return Run(asked, repeat, [] if failure else trace, chosen, list(notes), failure)


def study(
    *runs: Run,
    cores: int = 4,
    arithmetic: dict[int, float] = PERFECT,
    bandwidth: dict[int, float] | None = None,
    look: Look = LOOK,
    load: float | None = 0.0,
    physical: int | None = 4,
    optimum: float = 1e9,
    **plan: Any,
) -> Study:
    """A study of these runs, on a machine with perfect cores and memory by default."""
    strategies = dict.fromkeys(one.configuration.strategy for one in runs)
    workers = sorted({one.configuration.workers for one in runs})
    repeats = 1 + max(one.repeat for one in runs)
    planned = Plan(tuple(filter(None, strategies)), tuple(workers), repeats=repeats, **plan)
    probe = Probe(arithmetic, bandwidth or dict.fromkeys(PERFECT, 1e12))
    machine = {"cpu": "abacus", "cores": 4, "physical_cores": physical, "system": "wood"}
    machine |= {"available_memory": 4 << 30}
    used = {"peak_memory": 1 << 30, "other_load": load}
    header = {"kind": "header", "machine": machine, "versions": {"hogwild": "0"}, "started": "now"}
    reference = Reference(optimum, "a longer run", False)
    return Study(planned, reference, look, probe, list(runs), header, cores, used)
