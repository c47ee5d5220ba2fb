"""Values of options that a search compares: lists, or text such as 1e-6:1e-2:9."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np

from hogwild.config import Config, kind_of
from hogwild.errors import OptionError

MOST = 1000  # values of an option
# Penalties: training at one value begins with the weights of the next stronger value
PENALTIES = ("l1", "l2")

Options = dict[str, Any]


def logspace(start: float, end: float, count: int) -> list[float]:
    """`count` values from `start` to `end`, each the same factor from the next.

    Examples:
        >>> logspace(1e-4, 1e-2, 3)
        [0.0001, 0.001, 0.01]
    """
    return _between("logspace", start, end, count)


def split(options: Options) -> tuple[Options, dict[str, list[Any]]]:
    """The options with one value, and those with several; an `OptionError` lists what is wrong."""
    known = {field.name: field for field in dataclasses.fields(Config)}
    able = [name for name, field in known.items() if field.metadata["searched"]]
    single: Options = {}
    grid: dict[str, list[Any]] = {}
    problems = []
    for name, given in options.items():
        number = name in known and kind_of(known[name]) in (int, float)
        is_text = isinstance(given, str) and ":" in given and number
        is_list = isinstance(given, list | tuple) or getattr(given, "ndim", 0) == 1
        if name not in known or not (is_text or is_list):
            single[name] = given
        elif name not in able:
            problems.append(f"{name}: it takes one value; only {', '.join(able)} take several")
        else:
            try:
                grid[name] = _from_text(name, given) if is_text else _from_list(name, given)
            except OptionError as problem:
                problems.append(str(problem))
    if problems:
        raise OptionError("\n".join(problems))
    return single, grid


def combinations(grid: dict[str, list[Any]]) -> tuple[list[Options], int]:
    """All combinations, in chains along a penalty from strong to weak, and a chain's length."""
    along = next((name for name in reversed(PENALTIES) if name in grid), None)
    values = {name: some for name, some in grid.items() if name != along}
    if along is not None:
        values[along] = sorted(grid[along], reverse=True)
    some = itertools.product(*values.values())
    return [dict(zip(values, one, strict=True)) for one in some], len(grid.get(along or "", [0]))


def _from_list(name: str, given: Any) -> list[Any]:
    values = given.tolist() if hasattr(given, "tolist") else list(given)
    if not values or not all(isinstance(value, int | float) for value in values):
        raise OptionError(f"{name}: {values} is not a list of one or more numbers")
    return list(dict.fromkeys(values))


def _from_text(name: str, text: str) -> list[float]:
    try:
        start, end, count = text.split(":")
        numbers = float(start), float(end), int(count)
    except ValueError:
        raise OptionError(
            f"{name}: {text!r} is neither a number nor FROM:TO:COUNT, such as 1e-6:1e-2:9"
        ) from None
    return _between(name, *numbers)


def _between(name: str, start: float, end: float, count: int) -> list[float]:
    if not (0 < start < end < math.inf):
        raise OptionError(
            f"{name}: from {start:g} to {end:g}; values go up from a number above 0 to a larger one"
        )
    if not 2 <= count <= MOST:
        raise OptionError(f"{name}: {count} values; there must be 2 to {MOST:,}")
    # Twelve digits: 1e-05, and not its neighbor
    inner = [float(f"{value:.12g}") for value in np.geomspace(start, end, count)[1:-1]]
    return [float(start), *inner, float(end)]
