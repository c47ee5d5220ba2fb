"""The columns of the tables, for the terminal and the page.

A | in the head of a column begins its second line. The first column names the row.
"""

from collections.abc import Callable

from hogwild.scaling.findings import cause
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Summary

Columns = dict[str, Callable[[Study, Summary], str]]


SPEED: Columns = {
    "|": lambda _, one: one.name,
    "epoch|min ms": lambda _, one: f"{1e3 * one.epoch.least:.2f}",
    "epoch|median": lambda _, one: f"{1e3 * one.epoch.median:.2f}",
    "epoch|max ms": lambda _, one: f"{1e3 * one.epoch.greatest:.2f}",
    "|speed-up": lambda _, one: f"{one.speed_up:.2f}",
    "effi-|ciency": lambda _, one: f"{100 * one.efficiency:.0f} %",
    "target|s": lambda _, one: f"{one.target.median:.3f}" if one.target else "-",
    "target|epochs": lambda _, one: str(one.target_epochs or "-"),
    "target|speed-up": lambda _, one: f"{one.target_speed_up:.2f}" if one.target_speed_up else "-",
    "last|gap": lambda _, one: f"{one.gaps[-1]:.1e}",
}
SPLIT: Columns = {
    "|": lambda _, one: one.name,
    "wait|%": lambda _, one: f"{100 * one.split.waiting / one.split.epoch:.0f}",
    "merge|%": lambda _, one: f"{100 * one.split.merging / one.split.epoch:.0f}",
    "training|s": lambda _, one: f"{one.training:.3f}",
    "start|s": lambda _, one: f"{one.startup:.3f}",
    "evalu-|ation s": lambda _, one: f"{one.evaluation:.3f}",
    "compute|all / one": lambda _, one: f"{one.growth:.2f}",
    "last|objective": lambda _, one: f"{one.objectives[-1]:.6g}",
    "bound|by": cause,
}
