"""Axes: from numbers to places in a picture, with ticks at round numbers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

ROUND = (1.0, 2.0, 5.0, 10.0)  # what ticks are multiples of, times a power of ten
ABOUT = 5  # ticks of an axis
MOST_DECADES = 8


@dataclass(frozen=True)
class Axis:
    """A range of numbers along a line of a picture.

    Attributes:
        title: with the unit.
        least, most: the numbers at its ends; those beyond are drawn at the ends.
        ticks: where numbers are written.
        log: whether equal factors are equally far apart.
    """

    title: str
    least: float
    most: float
    ticks: tuple[float, ...]
    log: bool = False

    def share(self, value: float) -> float:
        """How far along the axis a number lies, from 0 to 1."""
        value = min(max(value, self.least), self.most)
        if self.log:
            return math.log(value / self.least) / math.log(self.most / self.least)
        return (value - self.least) / (self.most - self.least)

    def label(self, tick: float) -> str:
        """The number at a tick."""
        if self.log:
            power = round(math.log10(tick))
            return f"{tick:g}" if -3 <= power <= 3 else f"1e{power}"
        return f"{tick:.6g}"


def linear(title: str, values: Iterable[float], least: float = 0.0) -> Axis:
    """From `least` to a round number that is not below any value."""
    most = max([value for value in values if math.isfinite(value)], default=least)
    span = most - least or 1.0
    step = _round_step(span / ABOUT)
    steps = math.ceil(span / step - 1e-9)
    ticks = tuple(least + step * number for number in range(steps + 1))
    return Axis(title, least, ticks[-1], ticks)


def whole(title: str, values: Iterable[int]) -> Axis:
    """A tick at each of these numbers and none between, from 0 or a bit less than the first."""
    found = sorted(set(values))
    margin = max(0.25, 0.05 * (found[-1] - found[0]))
    ticks = tuple(float(value) for value in found)
    return Axis(title, max(0.0, found[0] - margin), found[-1] + margin, ticks)


def counts(title: str, most: int) -> Axis:
    """From 1 to a whole number, with ticks at whole numbers."""
    step = max(1, round(_round_step((most - 1) / ABOUT))) if most > 1 else 1
    ticks = sorted({1, *range(step, most + 1, step)})
    return Axis(title, 1.0, float(max(2, most)), tuple(float(tick) for tick in ticks))


def logarithmic(title: str, values: Iterable[float]) -> Axis:
    """Whole powers of ten around the values above 0; what is far below the greatest is left out."""
    found = [value for value in values if value > 0 and math.isfinite(value)] or [0.1, 1.0]
    top = math.ceil(math.log10(max(found)) - 1e-9)
    bottom = math.floor(math.log10(min(found)) + 1e-9)
    bottom = min(max(bottom, top - MOST_DECADES), top - 1)
    ticks = tuple(10.0**power for power in range(bottom, top + 1))
    return Axis(title, ticks[0], ticks[-1], ticks, log=True)


def _round_step(about: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(power * factor for factor in ROUND if power * factor >= about * (1 - 1e-9))
