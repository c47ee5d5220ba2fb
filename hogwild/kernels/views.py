"""What kernels see of data, weights and time: named tuples of arrays and numbers.

A field is annotated with its type for numba, too. Fields are not converted on the way into a
kernel: `view` makes each of the type that the kernels were compiled for.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt
from numba import types

from hogwild.kernels.primitives import readonly, writable

T = TypeVar("T")
UINT, FLOAT = types.uintp, types.float64
FLOATS = writable(types.float32)
DOUBLES = writable(types.float64)
WORDS = writable(types.int64)
ORDER = readonly(types.uint32)

# Fields: arrays that kernels write, those that they only read, and numbers that may be negative.
# Any other int is UINT, and any float is FLOAT
Floats = Annotated[npt.NDArray[np.float32], FLOATS]
Doubles = Annotated[npt.NDArray[np.float64], DOUBLES]
Words = Annotated[npt.NDArray[np.int64], WORDS]
Order = Annotated[npt.NDArray[np.uint32], ORDER]
Places = Annotated[npt.NDArray[np.uint64], readonly(types.uint64)]
FloatsRead = Annotated[npt.NDArray[np.float32], readonly(types.float32)]
DoublesRead = Annotated[npt.NDArray[np.float64], readonly(types.float64)]
Signed = Annotated[int, types.int64]


class RowView(NamedTuple):
    """Sparse rows; in `targets`, each row's target, and its weight where rows have weights.

    Each row has its own begin and end in `columns` and `values`, so a subset of rows needs no copy
    of the data.
    """

    begins: Places
    ends: Places
    columns: Order
    values: FloatsRead
    targets: FloatsRead

    def __reduce__(self) -> Any:
        """Unpickled arrays could be written to, which is another type for kernels."""
        return view, (RowView, *self)


class Stored(NamedTuple):
    """Where a step reads and writes: `width` numbers for each column, those of the intercept apart.

    `write` and `moved` are the same arrays as `read` and `bias`, unless changes must not be seen
    before they are merged. `state` has the numbers that are kept for each row.
    """

    read: Floats
    write: Floats
    bias: Floats
    moved: Floats
    state: Floats


class Own(NamedTuple):
    """Scratch of one worker: scores and slopes of a row, the intercept as it was last shared.

    The last of the slopes is a factor: how much farther weights move on a worker's own copy than
    they are merged. It is 1 unless the worker expects others to make similar changes. `signs` is
    -1 for each head, and 0 for unused numbers up to `width`. While a row is processed, the heads
    that it belongs to have the sign 1.
    """

    scores: Floats
    slopes: Doubles
    shared_bias: Floats
    signs: Floats


class Shape(NamedTuple):
    """How many numbers are stored for a column; those from `first` to `end` are learned.

    The number of a head is at `width` x column + head. An array of some heads therefore begins with
    `first` unused numbers. `targets` is how many numbers the rows' targets have for each row.
    """

    width: int
    first: int
    end: int
    targets: int


class Fetching(NamedTuple):
    """How many rows ahead the rows, and then their weights, are fetched into the cache.

    0: no fetching. The first few cache `lines` of each row are fetched. Their number does not
    depend on the row's length, since the processor would mispredict the end of such a loop.
    """

    ahead: int
    lines: int
    weights_ahead: int


class Task(NamedTuple):
    """What a loop works on: rows in an order, with scratch and the numbers of the epoch."""

    rows: RowView
    order: Order
    own: Own
    shape: Shape
    plan: Any
    fetching: Fetching


class Clock(NamedTuple):
    """The steps that all workers have done, and by how many of them each step of ours counts."""

    done: float
    pace: float


class Span(NamedTuple):
    """Places in an order, or columns: from `begin` up to, but not, `end`."""

    begin: int
    end: int


def type_of(kind: Any) -> Any:
    """numba's type of a named tuple."""
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


def view(kind: Callable[..., T], *fields: Any) -> T:
    """A named tuple as kernels take it: numbers of the right type, inputs that can't be written."""
    return kind(*(make(field) for make, field in zip(_makers(kind), fields, strict=True)))


@cache
def _fields(kind: Any) -> tuple[Any, ...]:
    """numba's types of the fields of a named tuple."""
    numbers = {int: UINT, float: FLOAT}
    known = get_type_hints(kind, include_extras=True).values()
    return tuple(numbers.get(one) or one.__metadata__[0] for one in known)


@cache
def _makers(kind: Any) -> tuple[Callable[[Any], Any], ...]:
    """What makes each field of what is given for it."""
    plain: dict[Any, Callable[[Any], Any]] = {UINT: np.uintp, FLOAT: float, types.int64: int}
    plain[types.float32] = np.float32
    return tuple(
        plain.get(known, np.asarray if known.mutable else _frozen) for known in _fields(kind)
    )


def _frozen(array: Any) -> Any:
    if not array.flags.writeable:
        return array
    frozen = array.view()
    frozen.flags.writeable = False
    return frozen


NO_FETCHING = view(Fetching, 0, 0, 0)
