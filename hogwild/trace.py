"""The clock, and the record of a run: a header, a row for every epoch, the reason at the end."""

import json
import time
from typing import Any

from hogwild import machine
from hogwild.paths import PathLike, writing

Row = dict[str, Any]


class Stopwatch:
    """A clock of training: it runs only between `start` and `stop`."""

    def __init__(self) -> None:
        self._before = 0.0
        self._started: float | None = None

    def start(self) -> None:
        self._started = time.perf_counter()

    def stop(self) -> None:
        self._before = self.seconds
        self._started = None

    def go_on_from(self, seconds: float) -> None:
        """Adds the time of an earlier training, which this one continues."""
        self._before += seconds

    @property
    def seconds(self) -> float:
        running = 0.0 if self._started is None else time.perf_counter() - self._started
        return self._before + running


def header(options: Row, chosen: Row, data: Row) -> Row:
    """What holds for the whole run: options, values chosen for them, the data, the machine."""
    return {
        "kind": "header",
        "options": options,
        "chosen": chosen,
        "data": data,
        "versions": machine.versions(),
        "machine": machine.record(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def write(path: PathLike, rows: list[Row]) -> None:
    """Writes a record as JSON lines, whole or not at all."""
    with writing(path) as file:
        for row in rows:
            file.write(json.dumps(row, allow_nan=False).encode() + b"\n")
