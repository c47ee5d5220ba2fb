"""What limits each configuration, and a finding in words for each cause.

An epoch of k workers takes a k-th of the baseline's epoch, plus the time lost to slower computing,
to waiting and to merging. The largest loss is the cause. Slower computing has several causes. The
speed of the machine, and how the strategy shares the weights, decide between them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hogwild.data.statistics import percent
from hogwild.loops.strategies import STRATEGIES
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Summary, milliseconds

SHORT = 0.002  # seconds: a shorter epoch has too little work to share
GOOD = 0.85  # a higher efficiency counts as scaling well
EXPLAINED = 0.5  # share of the loss that plain arithmetic must lose for the cores to be the cause
STREAMING = 0.5  # share of the memory's bandwidth: a run that uses more is limited by it
BUSY = 0.1  # cores: if other programs take more of the workers' cores, that is a cause
CROWDED = 0.5  # cores: if other programs take more, caches and memory cannot be named as the cause
ALIKE = 0.8  # share of the growth of computing: with as much growth on copies, sharing is no cause
STARTING = 0.2  # share of the training time: a longer start is worth a finding
MOST_NAMED = 6  # configurations in one sentence

Summaries = Sequence[Summary]


class Finding(NamedTuple):
    """What was measured, what it means, and what to do."""

    title: str
    measured: str
    means: str
    do: str


def cause(study: Study, one: Summary) -> str:
    """What limits a configuration, as a key of `RULES` or a word for the table."""
    workers, strategy = one.configuration.workers, STRATEGIES[one.strategy]
    if workers == 1:
        return ""
    if workers > study.cores:
        return "too few cores"
    if one.epoch.median < SHORT:
        return "too little work"
    if one.efficiency >= GOOD:
        return "computing"
    if strategy.exclusive:
        return "locks or turns"
    gain = study.machine.speed_up(workers)
    explained = workers / gain - 1.0 >= EXPLAINED * (1.0 / one.efficiency - 1.0)
    if gain < GOOD * workers and explained:
        return "shared cores"
    largest = max(one.losses, key=one.losses.__getitem__)
    if largest != "slower computing":
        return largest
    if crowding(study, workers) > CROWDED:
        return "shared cores"
    # If workers with copies became as slow, shared weights are not the cause
    if strategy.one_array and (one.apart is None or one.apart < ALIKE * one.growth):
        return "cache lines"
    if _reading(study, one) >= STREAMING * study.machine.bandwidth[workers]:
        return "memory bandwidth"
    return "shared caches"


def findings(study: Study, summaries: Summaries) -> list[Finding]:
    """All that apply, in the order of `RULES`."""
    found = []
    for key, (number, *texts) in RULES.items():
        some = [one for one in summaries if key in _remarkable(study, one)]
        if some:
            named = [f"{number(one)} with {one.name}" for one in some[:MOST_NAMED]]
            more = [f"{len(some) - MOST_NAMED} more"] if len(some) > MOST_NAMED else []
            facts = _facts(study, some) | {"numbers": ", ".join(named + more)}
            found.append(Finding(*(text.format(**facts) for text in texts)))
    return found


def others(study: Study) -> str:
    """A sentence: how busy other programs were during the study."""
    load, cores = study.used["other_load"], study.header["machine"]["cores"]
    if load is None:
        return "The study was too short to see what other programs did."
    return f"Other programs kept {load:.2f} of {cores} cores busy."


def crowding(study: Study, workers: int) -> float:
    """The cores that other programs took from the workers: busy ones beyond the free ones."""
    free: int = max(0, study.header["machine"]["cores"] - workers)
    load: float = study.used["other_load"] or 0.0
    return max(0.0, load - free)


def _shared_by(study: Study, workers: int) -> str:
    """Who shared the cores with the workers, as far as this was measured."""
    if crowding(study, workers) > BUSY:
        return "Other programs, here or on the host of this machine, used part of the cores."
    physical = study.header["machine"]["physical_cores"]
    if physical is not None and physical < workers:
        return f"{workers} workers shared {physical} physical cores, as hyper-threads of them."
    return (
        "No program of this machine had the cores, so the host of this virtual machine gave less "
        "than whole cores, or the cores run slower together."
    )


def _remarkable(study: Study, one: Summary) -> list[str]:
    """The keys of `RULES` that hold for a configuration."""
    return [
        cause(study, one),
        "start" if one.startup >= STARTING * one.training else "",
        "less per epoch" if one.worse > study.plan.target else "",
    ]


def _facts(study: Study, found: Summaries) -> dict[str, str]:
    """What texts can say of these configurations, of the machine, and of the data."""
    worst = max(found, key=lambda one: one.growth)
    size = study.look.weights_bytes
    return {
        "worst": worst.name,
        "reads": f"{_reading(study, worst) / 1e9:.3g} GB/s",
        "machine": study.machine.text,
        "others": others(study),
        "shared_by": _shared_by(study, worst.configuration.workers),
        "sharing": study.look.sharing,
        "copy": f" ({size / 1e6:,.3g} MB for a copy of the weights)" if size else "",
    }


def _reading(study: Study, one: Summary) -> float:
    """Bytes of data per second that all workers together read while they compute."""
    return study.look.work_bytes / max(one.split.computing, 1e-9)


GROWTH = "All workers together compute longer than one worker alone: {numbers}."
READING = "{worst} reads {reads} of data. {machine}"

# For each cause: its number for a configuration, and the texts of its finding
RULES: dict[str, tuple[Callable[[Summary], str], str, str, str, str]] = {
    "shared cores": (
        lambda one: f"{one.speed_up:.2f}",
        "The cores are shared with other work",
        "{machine} {others} The speed-up of an epoch is {numbers}.",
        "No strategy can scale better. {shared_by}",
        "Measure again on an idle machine. If the numbers stay, count on that many cores only.",
    ),
    "too little work": (
        lambda one: milliseconds(one.epoch.median),
        "Too little work per epoch",
        "An epoch takes {numbers}.",
        "Starting an epoch and waiting for the last worker takes some tenths of a millisecond.",
        "Use one worker for data of this size.",
    ),
    "cache lines": (
        lambda one: f"{one.growth:.2f} times",
        "Cores compete for cache lines",
        f"{GROWTH} {{sharing}}",
        "A write takes the cache line of a weight away from the core that used it last. The next "
        "core waits until it gets the line back.",
        "Use a strategy with copies of the weights.",
    ),
    "locks or turns": (
        lambda one: f"{one.speed_up:.2f} (waiting {percent(one.split.waiting / one.split.epoch)})",
        "Workers exclude each other",
        "The speed-up of an epoch is {numbers}.",
        "By design, workers take locks or turns before they write.",
        "Use a strategy without locks and turns.",
    ),
    "memory bandwidth": (
        lambda one: f"{one.growth:.2f} times",
        "Memory bandwidth is the limit",
        f"{GROWTH} {READING}",
        "All cores wait for the same memory.",
        "Use only as many workers as still help, or a machine with more memory channels.",
    ),
    "shared caches": (
        lambda one: f"{one.growth:.2f} times",
        "Computing is slower with several workers",
        f"{GROWTH} {READING} {{others}}",
        "Neither cores nor memory bandwidth explain most of this. What remains is the cache that "
        "cores share{copy}, what the strategy does besides learning, and other programs.",
        "Measure again on an idle machine, or use fewer workers.",
    ),
    "waiting": (
        lambda one: percent(one.split.waiting / one.split.epoch),
        "Workers wait for each other",
        "{others} Of an epoch, workers wait {numbers}.",
        "The shares of the workers take unequal time, workers synchronize too often, or another "
        "program held up one of them.",
        "Measure again on an idle machine.",
    ),
    "merging": (
        lambda one: percent(one.split.merging / one.split.epoch),
        "Merging takes long",
        "Of an epoch, merging takes {numbers}.",
        "Workers merge their weights{copy}. The time depends on the number of columns, not of "
        "rows.",
        "Use fewer workers, or more rows.",
    ),
    "start": (
        lambda one: f"{percent(one.startup / one.training)} (search {milliseconds(one.search)})",
        "The start takes long",
        "Of the training time, the start takes {numbers}.",
        "Before the first epoch, training prepares the data, finds a learning rate and starts the "
        "workers. More workers hardly make this faster.",
        "More data or more epochs make it matter less. --eta0 saves the search for the rate.",
    ),
    "less per epoch": (
        lambda one: percent(one.worse),
        "Epochs achieve less than with one worker",
        "The last objective is higher: by {numbers}.",
        "Workers learn from weights that lack the latest updates of others. Without locks, they "
        "may also overwrite updates.",
        "Compare times to the target, not epochs. Try fewer workers or a smaller --eta0.",
    ),
}
