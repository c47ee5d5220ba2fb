"""The study in a line or two: what is best, and why it is not better."""

from hogwild.scaling import causes
from hogwild.scaling.finding import Summaries
from hogwild.scaling.plan import Configuration
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Spread, Summary
from hogwild.scaling.text import milliseconds


def in_short(study: Study, summaries: Summaries) -> str:
    """The fastest strategy and number of workers."""
    ranked, to_target = _ranked(study, summaries)
    best = ranked[0]
    took = f"{milliseconds(_time(best, to_target).median)} {_until(study, to_target)}"
    if len(summaries) == 1:
        return f"Only {best.name} was measured: {took}."
    quickest = _quickest(best, summaries) if to_target else ""
    if best.configuration.workers == 1:
        return _one_is_best(best, took, ranked, to_target) + quickest
    factor = best.target_speed_up if to_target else best.speed_up
    times = f", {factor:.2f} times as fast as {_baseline(study, best)}" if factor else ""
    epochs = f"; its epochs are {best.speed_up:.2f} times as fast" if to_target else ""
    doubt = _doubt(best, ranked[1:], to_target)
    return f"Best is {best.name}: {took}{times}{epochs if best.speed_up else ''}.{doubt}{quickest}"


def _quickest(best: Summary, summaries: Summaries) -> str:
    """A word on another configuration that goes through an epoch sooner, but not to the target."""
    other = min(summaries, key=lambda one: one.epoch.median)
    if other is best or not other.speed_up:
        return ""
    why = "" if other.reached == other.repeats else ", but not all its runs came to the target"
    return (
        f" The quickest epochs are those of {other.name}, {other.speed_up:.2f} times as fast as "
        f"one worker's{why}."
    )


def _ranked(study: Study, summaries: Summaries) -> tuple[list[Summary], bool]:
    """The fastest first, and whether that is to the target, or else through an epoch.

    To the target only where the runs with one worker came to it: else it tells nothing of scaling.
    """
    arrived = [one for one in summaries if one.target and one.reached == one.repeats]
    to_target = any(one.configuration.workers == 1 for one in arrived)
    # With an epoch as quick as it is useless nobody is served
    sound = [one for one in summaries if (one.worse or 0.0) <= study.plan.target]
    some = arrived if to_target else sound or summaries
    return sorted(some, key=lambda one: _time(one, to_target).median), to_target


def _one_is_best(best: Summary, took: str, ranked: list[Summary], to_target: bool) -> str:
    nearest = next((one for one in ranked if one.configuration.workers > 1), None)
    if nearest is None:
        return f"One worker is best ({best.name}): {took}."
    other = milliseconds(_time(nearest, to_target).median)
    doubt = "; the repeats differ by more than that" if _near(best, [nearest], to_target) else ""
    return f"One worker is best: {took}. {nearest.name} comes next, with {other}{doubt}."


def why_not(study: Study, summaries: Summaries) -> list[str]:
    """For each number of workers, where the best epoch lost what it lacks to that many times."""
    found = []
    for workers in sorted({one.configuration.workers for one in summaries} - {1}):
        some = [one for one in summaries if one.configuration.workers == workers]
        best = min(some, key=lambda one: one.epoch.median)
        if best.equal_share is not None:
            found.append(_why_not(study, best))
    return found


def _why_not(study: Study, summary: Summary) -> str:
    share, over = summary.equal_share, causes.excess(summary)
    assert share is not None and over is not None
    workers = summary.configuration.workers
    start = (
        f"Why not {workers} times? With {summary.name} an epoch takes "
        f"{milliseconds(summary.epoch.median)}, {summary.speed_up:.2f} times as fast as one "
        f"worker; an equal share of one worker's would take {milliseconds(share)}."
    )
    more = summary.epoch.median - share
    if more <= 0:
        return f"{start} It is all there."
    parts = {
        "slower computing": over.computing,
        "waiting": over.waiting,
        "merging": over.merging,
    }
    told = ", ".join(f"{milliseconds(s)} {name}" for name, s in parts.items() if s > 0.01 * more)
    bound = causes.CAUSES[causes.cause(study, summary)]
    return f"{start} On top of that come {told}. It is bound by: {bound}."


def _time(summary: Summary, to_target: bool) -> Spread:
    if to_target and summary.target is not None:
        return summary.target
    return summary.epoch


def _until(study: Study, to_target: bool) -> str:
    if not to_target:
        return "an epoch (one worker did not come to the target, by which to compare)"
    return f"to an objective within {study.plan.target:g} of the best"


def _baseline(study: Study, summary: Summary) -> str:
    found: Configuration = study.plan.baseline(summary.configuration)
    return found.name


def _doubt(best: Summary, others: list[Summary], to_target: bool) -> str:
    near = _near(best, others, to_target)
    if not near:
        return ""
    names = ", ".join(one.name for one in near[:3])
    return f" By the spread of the repeats it may as well be {names}."


def _near(best: Summary, others: list[Summary], to_target: bool) -> list[Summary]:
    """Those of which some repeats were as fast as some of the best."""
    return [
        one
        for one in others
        if _time(one, to_target).least <= _time(best, to_target).greatest and one.repeats > 1
    ]
