"""Reads a file of ratings as polars or pyarrow does best; `loading.py` asks in JSON.

It runs in an environment of its own, so it imports nothing of this package but `answering.py`.
"""

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.answering import Request, Row, serve

PACKAGES = {"polars": "polars", "pyarrow": "pyarrow"}


def by_polars(request: Request) -> Callable[[], Any]:
    """The columns as numpy arrays, by polars, which is given their types."""
    polars = importlib.import_module("polars")
    kinds = {"user": polars.UInt32, "item": polars.UInt32, "rating": polars.Float32}

    def read() -> Any:
        table = polars.read_csv(request["file"], columns=list(kinds), schema_overrides=kinds)
        return [table[name].to_numpy() for name in kinds]

    return read


def by_pyarrow(request: Request) -> Callable[[], Any]:
    """The columns as numpy arrays, by pyarrow, which is given their types."""
    pyarrow, csv = map(importlib.import_module, ("pyarrow", "pyarrow.csv"))
    kinds = {"user": pyarrow.uint32(), "item": pyarrow.uint32(), "rating": pyarrow.float32()}
    options = csv.ConvertOptions(column_types=kinds, include_columns=list(kinds))
    pyarrow.set_cpu_count(request["threads"])

    def read() -> Any:
        table = csv.read_csv(request["file"], convert_options=options)
        return [table[name].to_numpy() for name in kinds]

    return read


READERS = {"polars": by_polars, "pyarrow": by_pyarrow}


def answer(request: Request) -> Iterator[Row]:
    """Seconds of each reading."""
    read = READERS[request["peer"]](request)
    for repeat in range(request["repeats"]):
        start = time.perf_counter()
        columns = read()
        seconds = time.perf_counter() - start
        ends = [float(column[-1]) for column in columns]
        yield {"repeat": repeat, "seconds": seconds, "lines": len(columns[0]), "last": ends}


if __name__ == "__main__":
    serve(PACKAGES, answer)
