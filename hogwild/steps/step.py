"""The interface of a step: how a row changes the numbers of its columns and its own state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """A step, whose functions are compiled into every loop that uses it.

    Loops rely on one law: changes of stored numbers can be added in any order. The numbers that a
    step reads may be any function of the stored ones.

    Attributes:
        name: part of the names of its kernels.
        look: (task, row, stored, t, sums) -> the sums plus the row's loss before the step. To
            `task.own`, it writes what `write` needs.
        write: (task, row, stored, t) -> None; the only code that writes weights.
        reach: (plan, t) -> the largest rate, by which loops decide how often copies must merge.
        scale: (plan, t) -> the factor between stored weights and weights at step t.
        plan: the named tuple of the numbers of an epoch, all floats.
        width: numbers stored for a column; 0 if they depend on the number of heads.
        targets: numbers in `rows.targets` for each row; 0 if they depend on the number of heads.
        state: numbers kept for each row.
        exact: whether later steps cannot correct a lost addition, so that the loop must lose none.
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
