"""Times, and the lines of a table of speeds: ours, what is beside it, and the ratio demanded."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments import report
from hogwild import HogwildError

REPEATS = 5

HEAD = ["measured", "hogwild", "other", "what other", "factor", "demanded", "holds"]


class Line(NamedTuple):
    """A line of the table.

    Attributes:
        measured: what.
        ours, other: the two numbers; None where there is no other.
        show: how a number is printed.
        beside: what the other is.
        higher_is_better: whether the numbers are speeds.
        least: the least factor that is demanded.
        most: the most that is demanded of our number, where it has no unit that a machine decides.
    """

    measured: str
    ours: float
    other: float | None
    show: Callable[[float], str]
    beside: str = "scikit-learn"
    higher_is_better: bool = False
    least: float | None = None
    most: float | None = None

    @property
    def factor(self) -> float | None:
        """How many times better ours is."""
        if self.other is None:
            return None
        return self.ours / self.other if self.higher_is_better else self.other / self.ours

    @property
    def holds(self) -> bool | None:
        """Whether what is demanded is there; None where nothing is."""
        if self.least is not None and self.factor is not None:
            return self.factor >= self.least
        return None if self.most is None else self.ours <= self.most

    @property
    def demanded(self) -> str:
        """As printed."""
        if self.least is not None:
            return f"factor >= {self.least:.3g}"
        return "-" if self.most is None else f"<= {self.show(self.most)}"

    def cells(self) -> list[str]:
        """As printed."""
        return [
            self.measured,
            self.show(self.ours),
            "-" if self.other is None else self.show(self.other),
            "-" if self.other is None else self.beside,
            "-" if self.factor is None else f"{self.factor:.2f}",
            self.demanded,
            "-" if self.holds is None else "yes" if self.holds else "NO",
        ]

    def record(self) -> dict[str, Any]:
        """As recorded."""
        shown = {"show": self.show.__name__, "factor": self.factor, "holds": self.holds}
        return {"kind": "speed"} | self._asdict() | shown


def undemanded(lines: Sequence[Line]) -> list[Line]:
    """The same lines, of which nothing is demanded."""
    return [line._replace(least=None, most=None) for line in lines]


def table(lines: Sequence[Line]) -> str:
    """All lines, for people."""
    return report.table(HEAD, [line.cells() for line in lines])


def check(lines: Sequence[Line]) -> None:
    """Fails, with exit code 1, where a demand is missed."""
    missed([line.measured for line in lines if line.holds is False])


def missed(names: Sequence[str]) -> None:
    """Fails, with exit code 1, if any demands were missed."""
    if names:
        count = "one demand is" if len(names) == 1 else f"{len(names)} demands are"
        raise HogwildError(f"{count} missed: {'; '.join(names)}")


def nonzeros_per_second(value: float) -> str:
    return f"{value / 1e6:.0f} M nnz/s"


def seconds(value: float) -> str:
    return f"{value:.3f} s"


def milliseconds(value: float) -> str:
    return f"{1e3 * value:.2f} ms"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"


def timed(call: Callable[[], Any]) -> float:
    """Seconds that the call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def best(calls: Mapping[str, Callable[[], float]], repeats: int = REPEATS) -> dict[str, float]:
    """The least result of each call; all calls are repeated in turn."""
    rounds = [{name: call() for name, call in calls.items()} for _ in range(repeats)]
    return {name: min(found[name] for found in rounds) for name in calls}
