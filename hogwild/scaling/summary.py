"""The numbers of a study for each configuration: times, speed-ups, objectives."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from hogwild.loops.strategies import STRATEGIES
from hogwild.scaling.plan import Configuration
from hogwild.scaling.study import Run, Study
from hogwild.trace import Row


class Spread(NamedTuple):
    """The least, the median and the greatest of the repeats."""

    least: float
    median: float
    greatest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        found = sorted(values)
        return cls(found[0], statistics.median(found), found[-1])


class Split(NamedTuple):
    """Seconds of an epoch: the mean over the epochs of a run, and over its workers."""

    computing: float
    waiting: float
    merging: float

    @property
    def epoch(self) -> float:
        return sum(self)


@dataclass(frozen=True)
class Summary:
    """The numbers of a configuration's runs. Times are in seconds."""

    configuration: Configuration  # what was asked for
    strategy: str  # what ran
    workers: int  # what ran
    repeats: int  # finished runs
    epoch: Spread  # the value of a run is the mean over its epochs
    # From the run whose epoch is nearest to the median. Training includes the start, not evaluation
    split: Split
    startup: float
    training: float
    evaluation: float
    search: float  # for a learning rate; it is a part of the start
    # After each epoch, the median of the runs
    times: list[float]
    objectives: list[float]
    gaps: list[float]
    target: Spread | None  # time to the target, in the runs that reached it
    reached: int  # runs that reached the target
    target_epochs: float | None  # the median
    baseline: "Summary | None"  # the summary of one worker; it has no baseline itself
    # The least growth of strategies without a common array, with this number of workers, if any ran
    apart: float | None = None

    @property
    def name(self) -> str:
        """A name for people; it shows the strategy that auto chose."""
        if self.configuration.strategy in (None, self.strategy):
            return self.configuration.name
        return f"{self.configuration.name} ({self.strategy})"

    @property
    def base(self) -> "Summary":
        return self.baseline or self

    @property
    def speed_up(self) -> float:
        """Of the median epoch."""
        return self.base.epoch.median / self.epoch.median

    @property
    def efficiency(self) -> float:
        """The speed-up per requested worker."""
        return self.speed_up / self.configuration.workers

    @property
    def target_speed_up(self) -> float | None:
        """The speed-up of the time to the target, if all runs reached it."""
        if not self.target or not self.base.target or self.reached < self.repeats:
            return None
        return self.base.target.median / self.target.median

    @property
    def growth(self) -> float:
        """The computing of all workers together over that of the baseline."""
        return self.split.computing * self.workers / max(self.base.split.computing, 1e-12)

    @property
    def equal_share(self) -> float:
        """The time of an epoch if the workers split the baseline's epoch equally."""
        return self.base.epoch.median / self.configuration.workers

    @property
    def losses(self) -> dict[str, float]:
        """Seconds of an epoch beyond the equal share."""
        computing, waiting, merging = self.split
        slower = computing - self.equal_share
        return {"slower computing": slower, "waiting": waiting, "merging": merging}

    @property
    def worse(self) -> float:
        """How far the objective lies above the baseline's after as many epochs, as a share."""
        last = min(len(self.objectives), len(self.base.objectives)) - 1
        return gap(self.objectives[last], self.base.objectives[last])


COMPARED = ("speed_up", "efficiency", "target_speed_up", "growth", "equal_share", "worse")


def summaries(study: Study) -> list[Summary]:
    """One for each configuration with a finished run, in the order of the plan."""
    best = best_objective(study)
    found: list[Summary] = []
    for configuration in study.plan.configurations:
        runs = [run for run in study.runs if run.trace and run.configuration == configuration]
        if runs:
            found.append(_summary(runs, best, study.plan.target, found[0] if found else None))
    return [replace(one, apart=_least_growth(one.workers, found)) for one in found]


def _least_growth(workers: int, summaries: list[Summary]) -> float | None:
    """The least growth of strategies without a common array and without mutual exclusion."""
    kinds = ((one, STRATEGIES[one.strategy]) for one in summaries if one.workers == workers)
    some = [one.growth for one, kind in kinds if not kind.one_array and not kind.exclusive]
    return min(some, default=None)


def best_objective(study: Study) -> float:
    """What gaps are measured from: the optimum that was found, or a run with a lower objective."""
    reached = (float(row["objective"]) for run in study.runs for row in run.trace)
    return min(study.reference.objective, *reached)


def gap(objective: float, best: float) -> float:
    """The gap relative to the best objective, unless that is 0."""
    return (objective - best) / (abs(best) or 1.0)


def milliseconds(seconds: float) -> str:
    """A time with its unit."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def _summary(runs: list[Run], best: float, target: float, baseline: Summary | None) -> Summary:
    epoch = Spread.of(_split(one.trace).epoch for one in runs)
    run = min(runs, key=lambda one: abs(_split(one.trace).epoch - epoch.median))
    training = run.trace[-1]["seconds"]
    objectives = _medians(runs, "objective")
    near = [[row for row in one.trace if gap(row["objective"], best) <= target] for one in runs]
    arrivals = [rows[0] for rows in near if rows]
    return Summary(
        configuration=run.configuration,
        strategy=run.chosen["strategy"],
        workers=run.chosen["workers"],
        repeats=len(runs),
        epoch=epoch,
        split=_split(run.trace),
        startup=max(0.0, training - sum(row["epoch_seconds"] for row in run.trace)),
        training=training,
        evaluation=sum(row["evaluation"] for row in run.trace),
        search=run.chosen["eta0_seconds"],
        times=_medians(runs, "seconds"),
        objectives=objectives,
        gaps=[gap(objective, best) for objective in objectives],
        target=Spread.of(row["seconds"] for row in arrivals) if arrivals else None,
        reached=len(arrivals),
        target_epochs=statistics.median(row["epoch"] for row in arrivals) if arrivals else None,
        baseline=baseline,
    )


def _split(trace: list[Row]) -> Split:
    epoch, waiting, merging = (
        statistics.fmean(row[name] for row in trace)
        for name in ("epoch_seconds", "waiting", "merging")
    )
    return Split(max(0.0, epoch - waiting - merging), waiting, merging)


def _medians(runs: list[Run], name: str) -> list[float]:
    """The median over the runs, for each epoch that all runs have."""
    values = ([row[name] for row in run.trace] for run in runs)
    return [statistics.median(column) for column in zip(*values, strict=False)]
