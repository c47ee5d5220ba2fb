"""A finding: what was measured, what it means, and what to do; and what rules need to make one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hogwild.scaling.summary import Summary
from hogwild.scaling.text import milliseconds

MOST_TOLD = 6  # configurations that are named one by one


class Case(NamedTuple):
    """A configuration that a finding is about, and its number."""

    strategy: str | None
    workers: int
    number: float


class Finding(NamedTuple):
    """What was measured, what it means, and what to do."""

    kind: str
    title: str
    measured: str
    means: str
    do: str
    cases: tuple[Case, ...] = ()

    @property
    def text(self) -> str:
        """In one paragraph, without the title."""
        return " ".join(part for part in (self.measured, self.means, self.do) if part)


Summaries = Sequence[Summary]


def finding(
    kind: str,
    title: str,
    measured: str,
    means: str,
    do: str,
    found: Summaries,
    number: Callable[[Summary], float | None],
) -> Finding:
    """A finding about these configurations, with a number for each."""
    cases = tuple(Case(*one.configuration, number(one) or 0.0) for one in found)
    return Finding(kind, title, measured, means, do, cases)


def several(summaries: Summaries) -> list[Summary]:
    """Those with more than one worker."""
    return [one for one in summaries if one.configuration.workers > 1]


def listed(what: str, found: Summaries, text: Callable[[Summary], str]) -> str:
    """A sentence that says something of each configuration, of the first few at least."""
    told = ", ".join(f"{text(one)} with {one.name}" for one in found[:MOST_TOLD])
    others = len(found) - MOST_TOLD
    return f"{what}: {told}{f', and so for {others} more' if others > 0 else ''}."


def instead(summaries: Summaries, found: Summaries, otherwise: str) -> str:
    """What to take in place of what a finding is about; `otherwise` where nothing is faster."""
    strategies = {one.strategy for one in found}
    others = [one for one in summaries if one.workers == 1 or one.strategy not in strategies]
    best = min(others, key=_epoch, default=None)
    fastest = min(found, key=_epoch)
    if best is None or _epoch(fastest) <= _epoch(best):
        return f"{fastest.name} is the fastest all the same; {otherwise}."
    if best.configuration.workers == 1:
        return f"One worker is faster here; or {otherwise}."
    return f"Take {best.name}, whose epoch takes {milliseconds(_epoch(best))}."


def _epoch(summary: Summary) -> float:
    return summary.epoch.median
