"""All findings of a study, each by a rule of its own.

A rule sees the study and the summaries of its configurations, and says nothing where it does not
apply. Every finding names the numbers that it stands on.
"""

from collections.abc import Callable

from hogwild.scaling import bounds, outcomes
from hogwild.scaling.finding import Finding, Summaries
from hogwild.scaling.study import Study

Rule = Callable[[Study, Summaries], Finding | None]

RULES: tuple[Rule, ...] = (
    *(outcomes.failed, outcomes.oversubscribed, outcomes.fewer),
    *(bounds.shared_cores, bounds.little_work, bounds.scales),
    *(bounds.cache_lines, bounds.exclusion, bounds.memory, bounds.caches),
    *(bounds.waiting, bounds.merging),
    *(outcomes.startup, outcomes.evaluation, outcomes.objective, outcomes.target, outcomes.noise),
)


def findings(study: Study, summaries: Summaries) -> list[Finding]:
    """All that apply."""
    return [found for rule in RULES if (found := rule(study, summaries))]
