"""Rules about epochs: what keeps several workers from being as many times as fast as one."""

from hogwild.data.statistics import percent
from hogwild.scaling import causes
from hogwild.scaling.finding import Case, Finding, Summaries, finding, instead, listed, several
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Summary
from hogwild.scaling.text import cores, gigabytes, megabytes, milliseconds, sentence

UNEVEN = 1.25  # times the least epoch, above which others were on the cores, not uneven shares


def scales(study: Study, summaries: Summaries) -> Finding | None:
    """Workers that do nearly all they could."""
    found = [one for one in several(summaries) if (one.efficiency or 0.0) >= causes.GOOD]
    if not found:
        return None
    most = max(one.configuration.workers for one in found)
    more = "More cores would make it faster still."
    return finding(
        "computing",
        "Bound by computing: it scales",
        listed("Epochs are faster", found, lambda one: f"{one.speed_up:.2f} times"),
        "The workers compute nearly all of the time, as fast as one does alone.",
        more if most >= study.cores else f"{cores(study.cores)} may be used: try more workers.",
        found,
        lambda one: one.efficiency,
    )


def little_work(study: Study, summaries: Summaries) -> Finding | None:
    """Epochs so short that calling the workers takes much of them."""
    found = [one for one in several(summaries) if one.epoch.median < causes.SHORT]
    if not found:
        return None
    return finding(
        "little work",
        "Too little work",
        listed("An epoch takes", found, lambda one: milliseconds(one.epoch.median)),
        "Workers are called, and waited for, in every epoch; that takes some tenths of a "
        "millisecond, whatever there is to do.",
        "Use one worker for data of this size, or measure with more of it.",
        found,
        lambda one: one.epoch.median,
    )


def shared_cores(study: Study, summaries: Summaries) -> Finding | None:
    """A machine whose cores do less together than each alone."""
    counts = {one.configuration.workers for one in several(summaries)}
    gains = {n: study.machine.speed_up(n) for n in sorted(counts) if n <= study.cores}
    short = {n: gain for n, gain in gains.items() if gain < causes.GOOD * n}
    if not short:
        return None
    told = ", ".join(f"{n} threads do {gain:.2f} times" for n, gain in short.items())
    spread = [one.speed_up(n) for n in short for one in study.probes]
    varied = f" (from {min(spread):.2f} to {max(spread):.2f})" if len(study.probes) > 1 else ""
    return Finding(
        "cores",
        "The cores are not all there",
        f"Of plain arithmetic, which needs no memory, {told} what one does{varied}.",
        "No strategy can do better than that: other programs were on the cores, or two of them are "
        "halves of one, or the host of this machine lends them out.",
        "Measure again with nothing else running; if it stays so, count on that many cores only.",
        tuple(Case(None, n, gain) for n, gain in short.items()),
    )


def cache_lines(study: Study, summaries: Summaries) -> Finding | None:
    """Slower computing where all write one array."""
    found = _slower(study, summaries, "lines")
    if not found:
        return None
    return finding(
        "lines",
        "Cache lines go from core to core",
        f"{_growth(found)} {sentence(study.look.heat)}.",
        "Each write takes the cache line of a weight away from the core that wrote it before, and "
        "the next one there waits for it; hot weights are always elsewhere.",
        instead(summaries, found, "a strategy with copies of the weights may help"),
        found,
        lambda one: one.growth,
    )


def exclusion(study: Study, summaries: Summaries) -> Finding | None:
    """Strategies that let others not write at the same time."""
    found = _slower(study, summaries, "exclusion")
    if not found:
        return None
    ways = {
        "locked": "With locked, a worker takes a lock for every column of a row, and gives it back",
        "roundrobin": "With roundrobin, only one worker writes at a time",
    }
    why = [way for strategy, way in ways.items() if any(o.strategy == strategy for o in found)]
    return finding(
        "exclusion",
        "Workers keep each other from writing",
        _growth(found),
        f"{'. '.join(why)}. This is what lock-free training does without.",
        instead(summaries, found, "a strategy without locks and turns may help"),
        found,
        lambda one: one.growth,
    )


def memory(study: Study, summaries: Summaries) -> Finding | None:
    """Slower computing where the memory is at its limit."""
    found = _slower(study, summaries, "memory")
    if not found:
        return None
    worst = max(found, key=lambda one: causes.streamed(study, one))
    workers = worst.configuration.workers
    machine = study.machine
    return finding(
        "memory",
        "The memory is the limit",
        f"{_growth(found)} {worst.name} goes through about "
        f"{gigabytes(causes.streamed(study, worst))} of data; reading in order and doing nothing "
        f"else, {workers} threads get {gigabytes(machine.stream(workers))}, one gets "
        f"{gigabytes(machine.stream(1))}.",
        "The cores wait for the same memory, and more of them do not make it faster.",
        "Use as many workers as still gain; a machine with more memory channels would help.",
        found,
        lambda one: one.growth,
    )


def caches(study: Study, summaries: Summaries) -> Finding | None:
    """Slower computing that is neither of these."""
    found = _slower(study, summaries, "caches")
    if not found:
        return None
    worst = max(found, key=lambda one: one.growth or 0.0)
    machine = study.machine
    copies = study.look.weights_bytes * worst.workers
    room = f" ({worst.workers} copies of the weights take {megabytes(copies)} of it)"
    return finding(
        "caches",
        "Computing gets slower beside others",
        f"{_growth(found)} Arithmetic alone scales {machine.speed_up(worst.workers):.2f} times, "
        f"and the memory gives {gigabytes(machine.stream(worst.workers))}, of which "
        f"{gigabytes(causes.streamed(study, worst))} are used.",
        f"Neither the cores nor the memory is the limit. What is left: the cache that the cores "
        f"share{room if copies else ''}; what the strategy does besides learning; other programs "
        "that came and went.",
        "Measure again with nothing else running, or with more repeats; else take fewer workers.",
        found,
        lambda one: one.growth,
    )


def waiting(study: Study, summaries: Summaries) -> Finding | None:
    """Workers that wait for each other."""
    found = [one for one in several(summaries) if _share(one, "waiting") >= causes.MUCH]
    if not found:
        return None
    uneven = [one for one in found if one.epoch.ratio > UNEVEN]
    held_up = shared_cores(study, found)
    cause = "Their shares of the work take unequal time, or they meet more often than they must."
    if uneven:
        cause = (
            f"The repeats differ by up to {max(one.epoch.ratio for one in uneven):.2f} times: one "
            "worker was probably held up by another program, and the others waited for it."
        )
    elif held_up:
        cause = "A worker whose core is taken by another program keeps the others waiting."
    if all(one.strategy in causes.EXCLUDING for one in found):
        cause = "They must not write at the same time: the strategy means it."
    return finding(
        "waiting",
        "Workers wait for each other",
        listed("Waiting, of an epoch", found, lambda one: percent(_share(one, "waiting"))),
        cause,
        instead(summaries, found, "measure again with nothing else running"),
        found,
        lambda one: _share(one, "waiting"),
    )


def merging(study: Study, summaries: Summaries) -> Finding | None:
    """Workers that spend their time on bringing copies together."""
    found = [one for one in several(summaries) if _share(one, "merging") >= causes.MUCH]
    if not found:
        return None
    size = study.look.weights_bytes
    copies = f" A copy takes {megabytes(size)}, and each worker has one." if size else ""
    return finding(
        "merging",
        "Merging takes its share",
        listed("Merging, of an epoch", found, lambda one: percent(_share(one, "merging"))),
        f"The weights that workers hold for themselves are brought together.{copies} That costs as "
        "much with few rows as with many.",
        instead(summaries, found, "fewer workers, fewer columns or more rows make it matter less"),
        found,
        lambda one: _share(one, "merging"),
    )


def _slower(study: Study, summaries: Summaries, cause: str) -> list[Summary]:
    """Configurations that compute longer than one worker, for this reason."""
    return [
        one
        for one in summaries
        if causes.is_slower(one)
        and one.configuration.workers <= study.cores
        and causes.slower_computing(study, one) == cause
    ]


def _share(summary: Summary, part: str) -> float:
    return float(getattr(summary.split, part)) / max(summary.split.epoch, 1e-12)


def _growth(found: Summaries) -> str:
    return listed(
        "All workers together compute longer than one worker alone",
        found,
        lambda one: f"{one.growth:.2f} times",
    )
