"""Which rows of an order are loaded: all of them, or a window at a time for mapped rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from hogwild.data.mapped_rows import MappedRows, Reader
from hogwild.kernels.views import RowView, Task, view


class Windows:
    """Opens the rows of one or several orders, as one worker comes to them.

    A window is what is opened together: the same number of places of each order.
    """

    def __init__(self, rows: MappedRows | None, orders: list[npt.NDArray[np.uint32]]) -> None:
        self._rows, self._orders = rows, orders
        self._starts: list[int] = []
        self._opened = -1
        self._piece: Any = None
        self._reader: Reader | None = None

    def begin(self, places: Iterable[int], done: int = 0) -> None:
        """Begins the orders anew: each at its place, after the first `done` rows of it."""
        if self._rows is None:
            return
        self._reader = self._reader or Reader(self._rows)
        self._opened, self._starts = -1, list(places)
        pairs = zip(self._orders, self._starts, strict=True)
        longest = max((len(order) - start for order, start in pairs), default=0)
        self._reader.follow(self._part, done // self._rows.window, -(-longest // self._rows.window))

    def open(self, task: Task, done: int, end: int) -> tuple[Task, int]:
        """The task with the rows after the first `done` ones, and where the open rows end."""
        if self._rows is None or self._reader is None:
            return task, end
        window = done // self._rows.window
        if window != self._opened:
            self._piece = self._reader.open(self._part(window))
            self._reader.go_on()
            self._opened = window
        rows = view(RowView, *self._piece, task.rows.targets)
        return task._replace(rows=rows), min(end, (window + 1) * self._rows.window)

    def rest(self) -> None:
        """Tells that no more rows are needed for now."""
        if self._reader is not None:
            self._reader.rest()

    def _part(self, number: int) -> npt.NDArray[np.uint32]:
        """The rows of a window."""
        assert self._rows is not None
        size = self._rows.window
        places = [start + number * size for start in self._starts]
        pairs = zip(self._orders, places, strict=True)
        parts = [order[place : place + size] for order, place in pairs]
        return np.concatenate([np.empty(0, np.uint32), *parts])
