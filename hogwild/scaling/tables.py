"""The two tables of a study, as text: how fast, and where the time goes."""

from hogwild.scaling import causes
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Summary
from hogwild.scaling.text import figures

Groups = list[tuple[str, list[str]]]  # of columns: a title over each, and theirs

SPEED: Groups = [
    ("", [""]),
    ("ms an epoch", ["least", "median", "most"]),
    ("speed-up of", ["median", "least"]),
    ("effi-", ["ciency"]),
    ("to the target", ["s", "epochs", "faster"]),
    ("last", ["gap"]),
]
SPLIT: Groups = [
    ("", [""]),
    ("% of an epoch", ["work", "wait", "merge"]),
    ("seconds", ["training", "start", "objective"]),
    ("computing,", ["all / one"]),
    ("", ["bound by"]),
]


def speed(summary: Summary) -> list[str]:
    """A row under SPEED."""
    return [
        summary.name,
        *(figures(1e3 * seconds) for seconds in summary.epoch),
        _number(summary.speed_up),
        _number(summary.best_speed_up),
        "-" if summary.efficiency is None else f"{100 * summary.efficiency:.0f} %",
        "-" if summary.target is None else f"{summary.target.median:.3f}",
        _epochs(summary),
        _number(summary.target_speed_up),
        f"{summary.gaps[-1]:.1e}",
    ]


def _epochs(summary: Summary) -> str:
    """How many epochs it takes to the target, with a mark where not all runs got there."""
    if summary.target_epochs is None:
        return "-"
    return f"{summary.target_epochs}{'' if summary.reached == summary.repeats else '*'}"


def split(study: Study, summary: Summary) -> list[str]:
    """A row under SPLIT."""
    epoch, whole = max(summary.split.epoch, 1e-12), summary.whole
    return [
        summary.name,
        *(f"{100 * part / epoch:.0f}" for part in summary.split),
        f"{whole.training:.3f}",
        f"{whole.startup:.3f}",
        f"{whole.evaluation:.3f}",
        _number(summary.growth),
        causes.CAUSES[causes.cause(study, summary)],
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
