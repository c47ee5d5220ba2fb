"""What keeps each configuration from being as many times as fast as it has workers.

An epoch of k workers is an equal share of one worker's epoch and what is on top of that: computing
that got slower, waiting and merging. The largest of these names the cause; slower computing has
several, which are told apart by what the strategy shares and by what the machine can do.
"""

from typing import NamedTuple

from hogwild.scaling.study import Study
from hogwild.scaling.summary import Summary

# Strategies whose workers write one array of weights, at places that may be in one cache line
ONE_ARRAY = ("hogwild", "locked", "roundrobin")
# Those of them whose workers keep each other from writing
EXCLUDING = ("locked", "roundrobin")

SHORT = 0.002  # seconds of an epoch, below which there is too little work to share
GROWN = 1.15  # times the computing of one worker, above which it counts as slower
MUCH = 0.10  # of an epoch: a share of waiting or merging that is worth a word
GOOD = 0.85  # the efficiency from which on workers scale
EXPLAINED = 0.5  # of the slower computing: the part that makes the machine itself the cause
STREAMING = 0.5  # of what the memory gives, above which workers are bound by it

CAUSES = {
    "one": "",
    "computing": "computing",
    "little work": "too little work",
    "oversubscribed": "too few cores",
    "cores": "shared cores",
    "lines": "cache lines",
    "exclusion": "locks or turns",
    "memory": "memory bandwidth",
    "caches": "shared caches",
    "waiting": "waiting",
    "merging": "merging",
}


class Excess(NamedTuple):
    """Seconds of an epoch beyond an equal share of the baseline's, by where they go."""

    computing: float
    waiting: float
    merging: float


def excess(summary: Summary) -> Excess | None:
    """None where there is nothing to compare with."""
    share = summary.equal_share
    if share is None:
        return None
    split = summary.split
    return Excess(split.computing - share, split.waiting, split.merging)


def cause(study: Study, summary: Summary) -> str:
    """The key in CAUSES of what bounds a configuration."""
    over = excess(summary)
    if summary.configuration.workers == 1 or over is None:
        return "one"
    if summary.configuration.workers > study.cores:
        return "oversubscribed"
    if summary.epoch.median < SHORT:
        return "little work"
    efficiency = summary.efficiency or 1e-12
    if efficiency >= GOOD:
        return "computing"
    if summary.strategy not in EXCLUDING and cores_explain(study, summary, 1.0 / efficiency - 1.0):
        return "cores"
    largest = max(zip(over, Excess._fields, strict=True))[1]
    return slower_computing(study, summary) if largest == "computing" else largest


def slower_computing(study: Study, summary: Summary) -> str:
    """The key in CAUSES of why the workers together compute longer than the baseline does."""
    growth = (summary.growth or 1.0) - 1.0
    workers = summary.configuration.workers
    if summary.strategy in EXCLUDING:
        return "exclusion"
    if cores_explain(study, summary, growth):
        return "cores"
    if summary.strategy in ONE_ARRAY:
        return "lines"
    if streamed(study, summary) >= STREAMING * study.machine.stream(workers):
        return "memory"
    return "caches"


def cores_explain(study: Study, summary: Summary, growth: float) -> bool:
    """Whether plain arithmetic gets slower beside others, too: by half as much as that."""
    workers = summary.configuration.workers
    lost = workers / study.machine.speed_up(workers) - 1.0
    return lost >= EXPLAINED * growth and lost >= 1.0 / GOOD - 1.0


def is_slower(summary: Summary) -> bool:
    """Whether the workers together compute noticeably longer than the baseline does."""
    return summary.configuration.workers > 1 and (summary.growth or 0.0) > GROWN


def streamed(study: Study, summary: Summary) -> float:
    """Bytes of data a second that the workers together go through while they compute."""
    return study.look.work_bytes / max(summary.split.computing, 1e-9)
