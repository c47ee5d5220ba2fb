"""How fast svmlight text is read and written, beside scikit-learn's reader if it is installed.

The file is RCV1-shaped with seven decimals a value, written into a temporary folder and read from
the page cache, with one core; the time is that of the whole call, arrays made and checked.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import hogwild
from experiments import report
from hogwild import Rows
from hogwild.data.synthetic import rcv1

try:
    from sklearn import __version__ as sklearn_version
    from sklearn.datasets import load_svmlight_file
except ImportError:
    load_svmlight_file = None

ROWS = 200_000
REPEATS = 3
DECIMALS = 7


def tf_idf(count: int) -> Rows:
    """Rows whose values have as many digits as text of this kind has."""
    rows = rcv1(count)[0]
    values = np.round(rows.values.astype(np.float64), DECIMALS).astype(np.float32)
    return Rows.from_arrays(
        rows.indptr, rows.indices, values, rows.columns, rows.y, index_base=1, name=rows.name
    )


def quickest(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Seconds of the quickest of several calls."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def measured(rows: Rows, file: Path) -> dict[str, float]:
    """Seconds by what was done. The first calls, which compile, are not counted."""
    small = Rows.from_arrays(np.array([0, 1]), np.array([0]), np.ones(1), 1, [1], index_base=1)
    hogwild.save(small, file)
    hogwild.load(file)
    found = {"save": quickest(lambda: hogwild.save(rows, file))}
    found["load"] = quickest(lambda: hogwild.load(file))
    if load_svmlight_file:
        found["scikit-learn"] = quickest(lambda: load_svmlight_file(str(file)), 1)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=6.0)
    count = parser.parse_args().rows

    report.say(report.about_machine())
    rows = tf_idf(count)
    with tempfile.TemporaryDirectory(prefix="hogwild-read-") as folder:
        file = Path(folder) / "rows.svm"
        found = measured(rows, file)
        size = file.stat().st_size
    other = sklearn_version if load_svmlight_file else "is not installed"
    report.say(f"Data      {rows.nonzeros:,} non-zeros, {size / 1e6:,.0f} MB of text")
    report.say(f"Other     scikit-learn {other}\n")
    lines = [
        [name, f"{seconds:.3f}", f"{size / seconds / 1e9:.3f}"] for name, seconds in found.items()
    ]
    report.say(report.table(["what", "seconds", "GB/s"], lines))
    report.say(f"\nThe best of {REPEATS}; scikit-learn once.")
    record = {"kind": "read_speed", "bytes": size, "nonzeros": rows.nonzeros, "seconds": found}
    report.record("read_speed", [report.header({"rows": count}), record])


if __name__ == "__main__":
    sys.exit(report.command(main))
