"""Studies that were never run: traces whose every number is known."""

from typing import Any

from hogwild.scaling.look import Look
from hogwild.scaling.plan import Configuration, Plan
from hogwild.scaling.probe import Probe
from hogwild.scaling.study import Run, Study

NONZEROS = 1_000_000
FALLING = (2.0, 1.1, 1.01, 1.0)
PERFECT = {1: 100.0, 2: 200.0, 4: 400.0}

LOOK = Look(
    name="made up",
    shape="10,000 rows",
    sharing="Workers touch the same weights.",
    meaning="It means something.",
    work_bytes=8 * NONZEROS,
    weights_bytes=4_000_000,
    record={"rows": 10_000},
)
MACHINE = {"cpu": "abacus", "cores": 4, "system": "wood"}


def trace(
    epoch: float = 0.1,
    waiting: float = 0.0,
    merging: float = 0.0,
    start: float = 0.02,
    evaluation: float = 0.01,
    objectives: tuple[float, ...] = FALLING,
) -> list[dict[str, Any]]:
    """A row for each objective; times are those of one epoch, `start` comes before the first."""
    return [
        {
            "kind": "epoch",
            "epoch": number,
            "seconds": start + number * epoch,
            "epoch_seconds": epoch,
            "waiting": waiting,
            "merging": merging,
            "evaluation": evaluation,
            "objective": objective,
        }
        for number, objective in enumerate(objectives, start=1)
    ]


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
    **numbers: Any,
) -> Run:
    """A measured training."""
    chosen = {
        "strategy": ran or strategy or "hogwild",
        "workers": at_work or workers,
        "eta0_seconds": search,
    }
    rows = [] if failure else trace(**numbers)
    return Run(Configuration(strategy, workers), repeat, rows, chosen, list(notes), failure)


def study(
    *runs: Run,
    cores: int = 4,
    arithmetic: dict[int, float] = PERFECT,
    bandwidth: dict[int, float] | None = None,
    look: Look = LOOK,
    **plan: Any,
) -> Study:
    """A study of these runs, on a machine with perfect cores and memory by default."""
    strategies = dict.fromkeys(one.configuration.strategy for one in runs)
    workers = sorted({one.configuration.workers for one in runs})
    repeats = 1 + max(one.repeat for one in runs)
    planned = Plan(tuple(filter(None, strategies)), tuple(workers), repeats=repeats, **plan)
    probe = Probe(arithmetic, bandwidth or dict.fromkeys(PERFECT, 1e12))
    header = {
        "kind": "header",
        "machine": MACHINE,
        "versions": {"hogwild": "0"},
        "started": "now",
    }
    return Study(planned, look, probe, list(runs), header, cores)
