"""Studies that were never run: traces whose every number is known."""

from typing import Any

from hogwild.scaling.look import Look
from hogwild.scaling.plan import Configuration, Plan
from hogwild.scaling.probe import Probe
from hogwild.scaling.study import Run, Study

NONZEROS = 1_000_000
FALLING = (2.0, 1.1, 1.01, 1.0)

LOOK = Look(
    name="made up",
    shape="10,000 rows",
    work=NONZEROS,
    work_name="non-zeros",
    work_bytes=8 * NONZEROS,
    weights_bytes=4_000_000,
    numbers=[("rows", "10,000"), ("columns", "1,000,000")],
    heat="25 % of the non-zeros fall on the 512 hottest columns",
    hot_share=0.25,
    meaning="It means something.",
    record={"rows": 10_000},
)

MACHINE = {"cpu": "abacus", "cores": 4, "usable_cores": 4, "memory": 1 << 30, "system": "wood"}


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
    eta0_seconds: float = 0.0,
    notes: tuple[str, ...] = (),
    failure: str | None = None,
    **numbers: Any,
) -> Run:
    """A measured training."""
    chosen = {
        "strategy": ran or strategy or "hogwild",
        "workers": at_work or workers,
        "why": "as asked",
        "eta0_seconds": eta0_seconds,
    }
    rows = [] if failure else trace(**numbers)
    return Run(Configuration(strategy, workers), repeat, 0, rows, chosen, list(notes), failure)


def study(
    *runs: Run,
    cores: int = 4,
    arithmetic: dict[int, float] | None = None,
    bandwidth: dict[int, float] | None = None,
    look: Look = LOOK,
    **plan: Any,
) -> Study:
    """A study of these runs, on a machine of perfect cores unless it is said otherwise."""
    strategies = dict.fromkeys(one.configuration.strategy for one in runs)
    workers = {one.configuration.workers for one in runs}
    repeats = 1 + max(one.repeat for one in runs)
    planned = Plan(
        tuple(name for name in strategies if name),
        tuple(sorted(workers)),
        repeats=plan.pop("repeats", repeats),
        **plan,
    )
    counts = (1, 2, 4)
    perfect = Probe(
        arithmetic or {count: 100.0 * count for count in counts},
        bandwidth or {count: 1e12 * count for count in counts},
    )
    header = {
        "kind": "header",
        "options": {},
        "chosen": {},
        "data": {"name": look.name} | look.record,
        "machine": MACHINE,
        "versions": {"hogwild": "0"},
        "started": "now",
    }
    return Study(planned, look, [perfect], list(runs), header, cores)
