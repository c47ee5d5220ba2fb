"""The interface of a step: what a row adds to the numbers stored for its columns and for itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """A step, whose functions are compiled into every loop that uses it.

    Loops rely on one law: what is stored adds up. What is read may be any function of it.

    Attributes:
        name: part of the names of its kernels.
        look: (task, row, stored, t, sums) -> sums with the loss before the step added; it writes
            what `write` needs to `task.own`.
        write: (task, row, stored, t) -> None; the only code that writes weights.
        reach: (plan, t) -> the largest rate, by which loops decide how often copies must merge.
        scale: (plan, t) -> the factor between stored weights and weights at step t.
        plan: the named tuple of the numbers of an epoch, all floats.
        width: numbers stored for a column; 0 if they depend on the number of heads.
        targets: numbers in `rows.targets` for each row; 0 if they depend on the number of heads.
        state: numbers kept for each row.
        exact: whether a lost addition is never made up for; the step needs a loop that loses none.
    """

    name: str
    look: Callable[..., Any]
    write: Callable[..., Any]
    reach: Callable[..., Any]
    scale: Callable[..., Any]
    plan: type
    width: int = 1
    targets: int = 1
    state: int = 0
    exact: bool = False
