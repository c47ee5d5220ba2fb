"""What a step is: what one row adds to the stored numbers of its columns, and to its own state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """A step, whose functions are compiled into every loop that it is used in.

    All loops rely on one law: what is stored adds up. What is read may be any function of it.

    Attributes:
        name: part of the names of the kernels that are made with it.
        look: (task, row, stored, t, sums) -> sums, with the losses just before the step added; it
            notes in `task.own` what `write` needs.
        write: (task, row, stored, t) -> None; the only code that writes.
        reach: (plan, t) -> the longest step, by which loops decide how often copies must merge.
        scale: (plan, t) -> what stored weights are multiplied by to be the weights at step t.
        plan: the named tuple of the numbers of an epoch, all floats.
        width: numbers stored for a column, where it is always the same; else 0.
        targets: numbers in `rows.targets` for each row, where it is always the same; else 0.
        state: numbers kept for each row.
        exact: whether a lost addition is an error for good; such a step needs a loop that loses
            none.
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
