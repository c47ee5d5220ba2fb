"""Rules about whole runs: what went otherwise than asked, what they reached, how sure it is."""

from hogwild.data.statistics import percent
from hogwild.scaling import causes
from hogwild.scaling.finding import Case, Finding, Summaries, finding, listed, several
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Summary
from hogwild.scaling.text import cores, milliseconds

STARTING = 0.20  # of the training time: a start that is worth a word
SEARCHING = 0.10  # of the start: a search for a rate that is worth a word
EVALUATING = 0.50  # of the training time
NOISY = 1.25  # times the least, above which the greatest of the repeats makes numbers doubtful
AVERAGING = ("averaged", "mixed")  # strategies whose workers learn apart


def failed(study: Study, summaries: Summaries) -> Finding | None:
    """Configurations whose weights overflowed."""
    runs = [run for run in study.runs if run.failure]
    if not runs:
        return None
    names = dict.fromkeys(run.configuration.name for run in runs)
    return Finding(
        "failed",
        "Training failed",
        f"{len(runs)} of the runs did not end: {', '.join(names)}.",
        f"The first said: {runs[0].failure}.",
        "Their numbers are missing below, or are those of the other repeats.",
        tuple(Case(*run.configuration, 1.0) for run in runs),
    )


def oversubscribed(study: Study, summaries: Summaries) -> Finding | None:
    """More workers than cores."""
    found = [one for one in summaries if one.configuration.workers > study.cores]
    if not found:
        return None
    most = max(one.configuration.workers for one in found)
    return finding(
        "oversubscribed",
        "More workers than cores",
        f"{cores(study.cores)} may be used, and up to {most} workers were asked for.",
        "Workers that have no core of their own take turns, and the others wait for them.",
        f"Take {study.cores} at most.",
        found,
        lambda one: one.configuration.workers,
    )


def fewer(study: Study, summaries: Summaries) -> Finding | None:
    """Runs with fewer workers than were asked for."""
    found = [one for one in summaries if one.workers < one.configuration.workers]
    if not found:
        return None
    return finding(
        "fewer",
        "Fewer workers than asked for",
        listed("At work are", found, lambda one: str(one.workers)),
        f"Why: {found[0].why}.",
        "Their efficiency is counted for those that were asked for.",
        found,
        lambda one: one.workers,
    )


def startup(study: Study, summaries: Summaries) -> Finding | None:
    """Training that is over before its start is paid for."""
    found = [one for one in summaries if _starting(one) >= STARTING]
    if not found:
        return None
    worst = max(found, key=_starting)
    rate, start = worst.eta0_seconds, worst.whole.startup
    searched = (
        f", {milliseconds(rate)} of it the search for a first rate"
        if rate > SEARCHING * start
        else ""
    )
    return finding(
        "startup",
        "The start counts",
        listed("The start, of the training", found, lambda one: percent(_starting(one)))
        + f" With {worst.name} it takes {milliseconds(start)}{searched}.",
        "Before the first epoch the data is prepared, a rate is found and workers get ready; this "
        "hardly gets faster with more of them.",
        "It matters less with more data or more epochs; a given --eta0 saves the search.",
        found,
        _starting,
    )


def evaluation(study: Study, summaries: Summaries) -> Finding | None:
    """Objectives that take as long as the learning."""
    found = [one for one in summaries if _evaluating(one) >= EVALUATING]
    if not found:
        return None
    return finding(
        "evaluation",
        "Objectives take long",
        listed("Beside the training", found, lambda one: percent(_evaluating(one))),
        "The objective after each epoch is not on the training clock, but a user waits for it.",
        "Where it is too long for you, train with a greater --objective-every.",
        found,
        _evaluating,
    )


def objective(study: Study, summaries: Summaries) -> Finding | None:
    """Epochs that achieve less than those of one worker."""
    found = [one for one in several(summaries) if (one.worse or 0.0) > study.plan.target]
    if not found:
        return None
    why = "Updates of several workers overwrite each other, or are made from weights that others "
    why += "have changed meanwhile."
    if all(one.strategy in AVERAGING for one in found):
        why = "Workers that learn apart each see a part of the data only, and means are not optima."
    elif not any(one.strategy in causes.ONE_ARRAY for one in found):
        why = "Workers do not see at once what others have learned, and learn from old weights."
    return finding(
        "objective",
        "Epochs achieve less than with one worker",
        listed(
            f"After {min(len(one.objectives) for one in found)} epochs the objective is higher",
            found,
            lambda one: f"by {percent(one.worse or 0.0)}",
        ),
        why,
        "Compare times to the target, not epochs; take fewer workers, or a smaller --eta0.",
        found,
        lambda one: one.worse,
    )


def target(study: Study, summaries: Summaries) -> Finding | None:
    """Runs that did not get there."""
    found = [one for one in summaries if one.reached < one.repeats]
    if not found:
        return None
    return finding(
        "target",
        "Not all came to the target",
        listed(
            "Runs that got there",
            found,
            lambda one: f"{one.reached} of {one.repeats} (last gap {one.gaps[-1]:.1e})",
        ),
        f"The target is an objective {study.plan.target:g} above the best, relative.",
        "Give more --epochs, or a --target that is less near.",
        found,
        lambda one: one.reached,
    )


def noise(study: Study, summaries: Summaries) -> Finding | None:
    """Repeats that differ."""
    found = [one for one in summaries if one.repeats > 1 and one.epoch.ratio > NOISY]
    if not found:
        return None
    return finding(
        "noise",
        "The repeats differ",
        listed(
            "The greatest epoch is longer than the least",
            found,
            lambda one: f"{one.epoch.ratio:.2f} times",
        ),
        "Other programs, or the host of this machine, took some of the time. Differences between "
        "configurations that are smaller than this mean nothing; the least times are the surest.",
        "Measure again with nothing else running, and with more repeats.",
        found,
        lambda one: one.epoch.ratio,
    )


def _starting(summary: Summary) -> float:
    return summary.whole.startup / max(summary.whole.training, 1e-12)


def _evaluating(summary: Summary) -> float:
    return summary.whole.evaluation / max(summary.whole.training, 1e-12)
