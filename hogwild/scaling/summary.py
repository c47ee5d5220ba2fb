"""The numbers of a study: what its runs come to, for each configuration."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hogwild.scaling.plan import Configuration
from hogwild.scaling.study import Run, Study
from hogwild.trace import Row


class Spread(NamedTuple):
    """The least, the lower median and the greatest of some repeats."""

    least: float
    median: float
    greatest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Of one value or more."""
        found = sorted(values)
        return cls(found[0], statistics.median_low(found), found[-1])

    @property
    def ratio(self) -> float:
        """How many times the least the greatest is."""
        return self.greatest / max(self.least, 1e-12)


class Split(NamedTuple):
    """Seconds, the mean over epochs: an epoch is computing + waiting + merging."""

    computing: float
    waiting: float
    merging: float

    @property
    def epoch(self) -> float:
        """All of it."""
        return sum(self)


class Whole(NamedTuple):
    """Seconds of a whole run; all but the evaluation are on the training clock."""

    computing: float
    waiting: float
    merging: float
    startup: float
    evaluation: float

    @property
    def training(self) -> float:
        """What the training clock says at the end."""
        return sum(self) - self.evaluation


@dataclass(frozen=True)
class Summary:
    """What the runs of a configuration come to. Times are seconds; "typical" is of the median run.

    Attributes:
        configuration: what was asked for.
        strategy, workers: what ran; why: in a sentence.
        repeats: how many runs were finished.
        epoch: of an epoch; each run's is the mean over its epochs.
        total: of the training, with its start.
        split: of a typical epoch; whole: of that run.
        eta0_seconds: of the whole, what the search for a rate took.
        times, objectives, gaps: after each epoch, the median of the runs.
        target: until the target was reached, of the runs that reached it; reached: how many did.
        target_epochs: the median of the epochs that this took.
        speed_up: of the median epoch, against the baseline's; best_speed_up: of the least one.
        target_speed_up: of the time to the target.
        growth: the computing of all workers together, as a multiple of the baseline's.
        baseline: the epoch of the baseline; ideal_training: its training, divided by the workers.
        worse: how far the last objective lies above the baseline's, relative; below 0: under it.
        failure: why a run has no result, where one has none.
    """

    configuration: Configuration
    strategy: str
    workers: int
    why: str
    repeats: int
    epoch: Spread
    total: Spread
    split: Split
    whole: Whole
    eta0_seconds: float
    times: list[float]
    objectives: list[float]
    gaps: list[float]
    target: Spread | None
    reached: int
    target_epochs: int | None
    speed_up: float | None = None
    best_speed_up: float | None = None
    target_speed_up: float | None = None
    growth: float | None = None
    baseline: Split | None = None
    ideal_training: float | None = None
    worse: float | None = None

    @property
    def name(self) -> str:
        """As people are told it: with what ran, where the study did not name it."""
        if self.configuration.strategy in (None, self.strategy):
            return self.configuration.name
        return f"{self.configuration.name} ({self.strategy})"

    @property
    def efficiency(self) -> float | None:
        """The speed-up for each worker that was asked for."""
        return None if self.speed_up is None else self.speed_up / self.configuration.workers

    @property
    def equal_share(self) -> float | None:
        """What an epoch would take if the workers shared the baseline's equally."""
        return None if self.baseline is None else self.baseline.epoch / self.configuration.workers


def summaries(study: Study) -> list[Summary]:
    """One for each configuration that has a finished run, in the order of the plan."""
    best = best_objective(study)
    found: dict[Configuration, Summary] = {}
    for configuration in study.plan.configurations:
        runs = finished(study.runs, configuration)
        if not runs:
            continue
        alone = _summary(runs, best, study.plan.target)
        found[configuration] = _compared(alone, found.get(study.plan.baseline(configuration)))
    return list(found.values())


def finished(runs: Sequence[Run], configuration: Configuration | None = None) -> list[Run]:
    """The runs that have a trace, of a configuration or of all."""
    return [run for run in runs if run.trace and configuration in (None, run.configuration)]


def best_objective(study: Study) -> float:
    """What gaps are measured from."""
    if study.plan.optimum is not None:
        return study.plan.optimum
    return least_objective(study)


def least_objective(study: Study) -> float:
    """The least objective of all runs."""
    return min(float(row["objective"]) for run in finished(study.runs) for row in run.trace)


def gap(objective: float, best: float) -> float:
    """Relative, but where the best is 0."""
    return (objective - best) / (abs(best) or 1.0)


def _summary(runs: list[Run], best: float, target: float) -> Summary:
    splits = [_split(run.trace) for run in runs]
    epochs = [split.epoch for split in splits]
    middle = epochs.index(statistics.median_low(epochs))
    run = runs[middle]
    length = min(len(one.trace) for one in runs)
    objectives = _medians(runs, "objective", length)
    arrivals = [row for one in runs if (row := _arrival(one.trace, best, target))]
    return Summary(
        configuration=run.configuration,
        strategy=run.chosen["strategy"],
        workers=run.chosen["workers"],
        why=run.chosen["why"],
        repeats=len(runs),
        epoch=Spread.of(epochs),
        total=Spread.of(one.trace[-1]["seconds"] for one in runs),
        split=splits[middle],
        whole=_whole(run.trace),
        eta0_seconds=run.chosen.get("eta0_seconds", 0.0),
        times=_medians(runs, "seconds", length),
        objectives=objectives,
        gaps=[gap(objective, best) for objective in objectives],
        target=Spread.of(row["seconds"] for row in arrivals) if arrivals else None,
        reached=len(arrivals),
        target_epochs=statistics.median_low(row["epoch"] for row in arrivals) if arrivals else None,
    )


def _compared(alone: Summary, baseline: Summary | None) -> Summary:
    """The summary with what can only be said beside a baseline; which may be itself."""
    base = baseline or alone
    if baseline is None and alone.configuration.workers > 1:
        return alone
    last = min(len(alone.objectives), len(base.objectives)) - 1
    more: dict[str, Any] = {
        "speed_up": base.epoch.median / alone.epoch.median,
        "best_speed_up": base.epoch.least / alone.epoch.least,
        "growth": alone.split.computing * alone.workers / max(base.split.computing, 1e-12),
        "baseline": base.split,
        "ideal_training": base.whole.training / alone.configuration.workers,
        "worse": gap(alone.objectives[last], base.objectives[last]),
    }
    if alone.target and base.target and alone.reached == alone.repeats:
        more["target_speed_up"] = base.target.median / alone.target.median
    return replace(alone, **more)


def _split(trace: list[Row]) -> Split:
    waiting, merging = (sum(row[name] for row in trace) for name in ("waiting", "merging"))
    epochs = sum(row["epoch_seconds"] for row in trace)
    computing = max(0.0, epochs - waiting - merging)
    return Split(computing / len(trace), waiting / len(trace), merging / len(trace))


def _whole(trace: list[Row]) -> Whole:
    split = _split(trace)
    startup = trace[-1]["seconds"] - sum(row["epoch_seconds"] for row in trace)
    epochs = len(trace)
    return Whole(
        split.computing * epochs,
        split.waiting * epochs,
        split.merging * epochs,
        max(0.0, startup),
        sum(row["evaluation"] for row in trace),
    )


def _arrival(trace: list[Row], best: float, target: float) -> Row | None:
    """The first epoch that reached the target."""
    return next((row for row in trace if gap(row["objective"], best) <= target), None)


def _medians(runs: list[Run], name: str, length: int) -> list[float]:
    return [
        statistics.median_low(run.trace[epoch][name] for run in runs) for epoch in range(length)
    ]
