"""What kernels see of data, weights and time: named tuples of arrays and numbers.

Beside each stands its type for numba. Fields are not converted on the way into a kernel: `view`
makes each of the type that the kernels were compiled for.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from hogwild.kernels.primitives import readonly, writable

Floats = npt.NDArray[np.float32]


class RowView(NamedTuple):
    """Sparse rows; in `targets`, each row's target, and its weight where rows have weights.

    Where a row begins and ends among `columns` and `values` is said for each: a part of other rows
    needs no copy of them.
    """

    begins: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint64]
    columns: npt.NDArray[np.uint32]
    values: Floats
    targets: Floats

    def __reduce__(self) -> Any:
        """Unpickled arrays could be written to, which is another type for kernels."""
        return view, (RowView, *self)


class Stored(NamedTuple):
    """Where a step reads and writes: `width` numbers for each column, those of the intercept apart.

    `write` is `read`, and `moved` is `bias`, but where changes must not be seen before they are
    merged.
    """

    read: Floats
    write: Floats
    bias: Floats
    moved: Floats


class Own(NamedTuple):
    """Scratch of one worker: scores and slopes of a row, the intercept as it was last shared.

    `signs` is -1 for each head, and 0 where `width` is more than there are heads; where a row
    belongs to some of them, 1 for these while it is looked at.
    """

    scores: Floats
    slopes: npt.NDArray[np.float64]
    shared_bias: Floats
    signs: Floats


class Shape(NamedTuple):
    """How many numbers are stored for a column; those from `first` to `end` are learned.

    `targets` is how many numbers the rows' targets have for each row.
    """

    width: int
    first: int
    end: int
    targets: int


class Fetching(NamedTuple):
    """How many rows ahead rows are fetched into the cache, and how many rows ahead their weights.

    0: no fetching. Of each row the first few cache `lines` are fetched, the same number whatever
    its length: the processor would mispredict the end of a loop.
    """

    ahead: int
    lines: int
    weights_ahead: int


class Task(NamedTuple):
    """What a loop works on: rows in an order, with scratch and the numbers of the epoch."""

    rows: RowView
    order: npt.NDArray[np.uint32]
    own: Own
    shape: Shape
    plan: Any
    fetching: Fetching


class Clock(NamedTuple):
    """Steps that all workers have done, and how many steps of all one of ours stands for."""

    done: float
    pace: float


class Span(NamedTuple):
    """Places in an order, or columns: from `begin` up to, but not, `end`."""

    begin: int
    end: int


UINT, FLOAT = types.uintp, types.float64
FLOATS = writable(types.float32)
DOUBLES = writable(types.float64)
WORDS = writable(types.int64)
ORDER = readonly(types.uint32)

_FIELDS: dict[Any, tuple[Any, ...]] = {
    RowView: (
        readonly(types.uint64),
        readonly(types.uint64),
        readonly(types.uint32),
        readonly(types.float32),
        readonly(types.float32),
    ),
    Stored: (FLOATS, FLOATS, FLOATS, FLOATS),
    Own: (FLOATS, DOUBLES, FLOATS, FLOATS),
    Shape: (UINT, UINT, UINT, UINT),
    Fetching: (UINT, UINT, UINT),
    Clock: (FLOAT, FLOAT),
    Span: (UINT, UINT),
}


def register(kind: Any, *fields: Any) -> None:
    """Says of which types for numba the fields of a named tuple are, unless all are floats."""
    _FIELDS[kind] = fields


def type_of(kind: Any) -> Any:
    """numba's type of a named tuple: of one listed above, or else of plain floats."""
    return types.BaseTuple.from_types(_fields(kind), kind)


def task_type(plan: Any) -> Any:
    """numba's type of a task whose plan is of this kind."""
    kinds = (RowView, Own, Shape, plan, Fetching)
    rows, own, shape, numbers, fetching = (type_of(kind) for kind in kinds)
    return types.NamedTuple((rows, ORDER, own, shape, numbers, fetching), Task)


def task_of(
    rows: RowView, order: Any, own: Own, shape: Shape, plan: Any, fetching: Fetching
) -> Task:
    """A task as kernels take it: the order cannot be written."""
    return Task(rows, _frozen(order), own, shape, plan, fetching)


def view(kind: Any, *fields: Any) -> Any:
    """A named tuple as kernels take it: numbers of the right type, inputs that can't be written."""
    makers = _makers(kind)
    return kind._make([make(field) for make, field in zip(makers, fields, strict=True)])


def _fields(kind: Any) -> tuple[Any, ...]:
    return _FIELDS.get(kind) or (FLOAT,) * len(kind._fields)


@cache
def _makers(kind: Any) -> tuple[Callable[[Any], Any], ...]:
    """What makes each field of what is given for it."""
    plain: dict[Any, Callable[[Any], Any]] = {UINT: np.uintp, FLOAT: float, types.int64: int}
    return tuple(
        plain.get(known, _as_it_is if known.mutable else _frozen) for known in _fields(kind)
    )


def _as_it_is(array: Any) -> Any:
    return array


def _frozen(array: Any) -> Any:
    if not array.flags.writeable:
        return array
    frozen = array.view()
    frozen.flags.writeable = False
    return frozen


NO_FETCHING: Fetching = view(Fetching, 0, 0, 0)
