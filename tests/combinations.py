"""Tests of many combinations: a few of them in `make test`, and all in `make test-all`."""

from itertools import combinations, product
from typing import Any

import pytest


def each(**axes: Any) -> pytest.MarkDecorator:
    """Parametrizes by all combinations; some in which each value occurs are not slow."""
    return _parametrize(axes, 1)


def pairs(**axes: Any) -> pytest.MarkDecorator:
    """Parametrizes by all combinations; some in which each pair of values occurs are not slow."""
    return _parametrize(axes, 2)


def _parametrize(axes: dict[str, Any], together: int) -> pytest.MarkDecorator:
    values = {name: list(some) for name, some in axes.items()}
    everything = list(product(*values.values()))
    some = chosen(everything, together)
    cases = [
        pytest.param(*case, marks=() if number in some else pytest.mark.slow)
        for number, case in enumerate(everything)
    ]
    return pytest.mark.parametrize(tuple(values), cases)


def chosen(cases: list[tuple[Any, ...]], together: int) -> set[int]:
    """Numbers of cases among which any so many values occur together, if they do anywhere."""
    held = [{tuple(some) for some in combinations(_places(case), together)} for case in cases]
    left: set[Any] = set().union(*held)
    found: set[int] = set()
    while left:
        # Of cases that bring as many, those far from the ones before: else one value is in most
        best = max(
            range(len(cases)), key=lambda n: (len(held[n] & left), -_shared(n, found, cases))
        )
        found.add(best)
        left -= held[best]
    return found


def _places(case: tuple[Any, ...]) -> list[tuple[int, str]]:
    return [(axis, repr(value)) for axis, value in enumerate(case)]


def _shared(number: int, found: set[int], cases: list[tuple[Any, ...]]) -> int:
    """How many values a case has in common with those that were found."""
    mine = set(_places(cases[number]))
    return sum(len(mine & set(_places(cases[other]))) for other in found)
