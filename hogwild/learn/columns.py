"""The columns of a set of rows: a copy of its values, by columns."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from hogwild.kernels import columns as kernels
from hogwild.kernels.columns import Columns
from hogwild.kernels.views import RowView, Span, view
from hogwild.threads import share_of, side_by_side

T = TypeVar("T")

SHARDS = 8  # of rows or of columns, whatever the number of threads
ROWS = 32_768  # of a shard, at least
VALUES = 250_000  # of a shard, at least


class ByColumn:
    """The columns of some rows. Any thread makes them when they are first needed."""

    def __init__(self, rows: RowView, columns: int, intercept: bool) -> None:
        self._given, self._lock = (rows, columns, intercept), Lock()
        self._made: Columns | None = None

    def get(self, threads: int) -> Columns:
        """The columns, made by several threads."""
        with self._lock:
            if self._made is None:
                self._made = columns_of(*self._given, threads)
            return self._made


def columns_of(rows: RowView, columns: int, intercept: bool, threads: int = 1) -> Columns:
    """The columns of rows, followed by the intercept's: all ones, or without values."""
    size, values = len(rows.begins), int((rows.ends - rows.begins).sum())
    spans = row_spans(size) if values >= SHARDS * columns else [view(Span, 0, size)]

    def count(span: Span) -> npt.NDArray[np.uint64]:
        found = np.zeros(columns, np.uint64)
        kernels.count_values(rows, span, found)
        return found

    counts = np.array(over(spans, count, threads))
    bounds = np.zeros(columns + 2, np.uint64)
    np.cumsum(counts.sum(axis=0), out=bounds[1:-1])
    bounds[-1] = values + size * intercept
    # Where each shard of rows begins in each column
    places = np.cumsum(counts, axis=0) - counts + bounds[:-2]
    out_rows = np.empty(int(bounds[-1]), np.uint32)
    out_values = np.empty(int(bounds[-1]), np.float32)
    put = partial(_put, rows, out_rows, out_values)
    side_by_side([partial(put, *each) for each in zip(spans, places, strict=True)], threads)
    out_rows[values:] = np.arange(len(out_rows) - values)
    out_values[values:] = 1.0
    return view(Columns, bounds, out_rows, out_values)


def _put(rows: RowView, out_rows: Any, out_values: Any, span: Span, places: Any) -> None:
    kernels.put_into_columns(rows, span, places, out_rows, out_values)


def row_spans(size: int) -> list[Span]:
    """Shards of rows."""
    count = max(1, min(SHARDS, size // ROWS))
    return [view(Span, *share_of(size, count, number)) for number in range(count)]


def column_spans(columns: Columns) -> list[Span]:
    """Shards of columns with about the same number of values."""
    values = int(columns.bounds[-1])
    count = max(1, min(SHARDS, values // VALUES))
    inner = [values * number // count for number in range(1, count)]
    places = [0, *np.searchsorted(columns.bounds, inner).tolist(), len(columns.bounds) - 1]
    return [view(Span, *pair) for pair in pairwise(places)]


def over(spans: list[Span], work: Callable[[Any], T], threads: int) -> list[T]:
    """What `work` returns for each of some spans."""
    return side_by_side([partial(work, span) for span in spans], threads)
