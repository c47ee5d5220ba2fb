"""The format .rows: its size, training from it, and training from a file larger than memory.

The file is RCV1-shaped, in a temporary folder and in the page cache, but where the table says that
it was dropped from there. Data larger than memory is that file several times over, with a fifth of
its size as the limit of memory; its speed is beside that in memory or the disk's, whichever is
lower, and its memory is what belongs to the processes alone (`Pss_Anon`). Where it may (root, and
control groups of version 1), the system limits a further run's memory, with the pages of the file.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import psutil

import hogwild
from experiments import measure, report
from experiments.children import finish
from experiments.loading import COMPILED
from experiments.measure import Line, best, megabytes, seconds, timed
from hogwild import Rows
from hogwild.data.synthetic import rcv1

ROWS = 781_265  # of RCV1
DECIMALS = 7  # of a value, as text of this kind has
COPIES = 7  # of the file, in data larger than memory
LIMIT = 5  # size of the data, over the limit of memory
EPOCHS = 3
REPEATS = 3
BLOCK = 1 << 22  # bytes read at a time from the disk
GROUPS = Path("/sys/fs/cgroup/memory")  # control groups, version 1

MOST_BYTES = 6.2
LEAST_OF_ARRAYS = 0.95
LEAST_BASELINE = 1 / 0.55
LEAST_LARGER = 0.7
MOST_OBJECTIVE = 1.01

# Trains on a file with some options, and prints the epochs' seconds and the last objective
TRAIN = """
import json, sys
for group in sys.argv[3:]:  # before the imports, whose memory counts
    open(group + "/cgroup.procs", "w").write("0")
import hogwild
found = hogwild.train(sys.argv[1], **json.loads(sys.argv[2]))
epochs = [row["epoch_seconds"] for row in found.trace]
print(json.dumps({"epochs": epochs, "objective": found.trace[-1]["objective"]}))
"""

# Reads a file from one end to the other in a control group, and prints the seconds
READ = """
import pathlib, sys
from experiments import loading_rows, measure
open(sys.argv[2] + "/cgroup.procs", "w").write("0")
print(measure.timed(lambda: loading_rows.read_all(pathlib.Path(sys.argv[1]))))
"""


def tf_idf(count: int) -> Rows:
    """Rows whose values have as many digits as text of this kind has."""
    rows = rcv1(count)[0]
    values = np.round(rows.values.astype(np.float64), DECIMALS).astype(np.float32)
    arrays = rows.indptr, rows.indices, values, rows.columns, rows.y
    return Rows.from_arrays(*arrays, index_base=1, name=rows.name)


def lines(folder: Path, count: int, baseline: Path | None) -> list[Line]:
    """All lines of the table."""
    rows, file = tf_idf(count), folder / "train.rows"
    hogwild.save(rows, file)
    size = file.stat().st_size
    per_value = size / rows.nonzeros
    found = [Line(f"{file.name}, bytes a non-zero", per_value, None, number, most=MOST_BYTES)]
    found += from_format(rows, file)
    if baseline is not None:
        hogwild.save(rows, folder / "train.svm")
        found.append(shell(folder, baseline))
        (folder / "train.svm").unlink()
    return found + larger(folder, file, rows.nonzeros)


def from_format(rows: Rows, file: Path) -> list[Line]:
    """The file into arrays, and an epoch beside one on the arrays that it was written from."""

    def epoch(data: Rows) -> float:
        trace = hogwild.train(data, solver="sgd", epochs=EPOCHS, tol=0.0).trace
        return float(min(row["epoch_seconds"] for row in trace))

    def decoded() -> Rows:
        found = hogwild.load(file)
        found.indices  # noqa: B018  reads them
        return found

    decoded()  # compiles
    stored = decoded()
    found = best(
        {
            "decode": partial(timed, decoded),
            "stored": partial(epoch, stored),
            "given": partial(epoch, rows),
        },
        REPEATS,
    )
    speeds = rows.nonzeros / found["stored"], rows.nonzeros / found["given"]
    epochs = Line(
        *("an epoch from train.rows", *speeds, measure.nonzeros_per_second, "arrays"),
        higher_is_better=True,
        least=LEAST_OF_ARRAYS,
    )
    return [Line("train.rows into arrays", found["decode"], None, seconds), epochs]


def shell(folder: Path, baseline: Path) -> Line:
    """From the file to a model, beside an earlier commit from text."""
    train = [sys.executable, "-m", "hogwild", "train", "--epochs", "1"]
    train += ["--model", str(folder / "model.hog")]
    ours = [*train, "--solver", "sgd", str(folder / "train.rows")]  # the first had no other
    theirs = partial(finish, [*train, str(folder / "train.svm")], folder=baseline)
    path = COMPILED | {"PYTHONPATH": os.fspath(baseline)}
    calls = {
        "ours": partial(timed, partial(finish, ours, COMPILED)),
        "text": partial(timed, partial(theirs, path)),
    }
    for call in calls.values():
        call()  # compiles
    found = best(calls, REPEATS)
    measured = "train.rows to a model, shell"
    given = found["ours"], found["text"], seconds, "text, baseline"
    return Line(measured, *given, least=LEAST_BASELINE)


def larger(folder: Path, file: Path, nonzeros: int) -> list[Line]:
    """Data larger than memory: speed with and without the page cache, memory and objective."""
    data, nonzeros = folder / "larger.rows", COPIES * nonzeros
    hogwild.convert([file] * COPIES, data)
    size = data.stat().st_size
    limit = size // LIMIT
    options = {"solver": "sgd", "epochs": EPOCHS, "tol": 0.0}
    here = trained(data, options)
    away, memory = watched(data, options | {"memory": str(limit)})
    drop(data)
    disk = size / timed(partial(read_all, data))
    drop(data)
    cold, _ = watched(data, options | {"memory": str(limit), "epochs": 1})
    runs = [("page cache", away, disk), ("cold disk", cold, disk)]
    with limited(limit) as group:
        if group is not None:
            drop(data)
            alone = float(finish([sys.executable, "-c", READ, str(data), str(group)]))
            drop(data)
            under = trained(data, options | {"epochs": 2}, group)
            runs.append(("limited by the system", under, size / alone))
    in_memory = nonzeros / min(here["epochs"])
    found = []
    for name, measured, alone in runs:
        ours, of_disk = nonzeros / min(measured["epochs"]), alone / size * nonzeros
        lower = min((in_memory, "in memory"), (of_disk, "the disk alone"))
        given = f"{data.name}, {name}", ours, lower[0], measure.nonzeros_per_second, lower[1]
        found.append(Line(*given, higher_is_better=True, least=LEAST_LARGER))
        other = in_memory if lower[0] == of_disk else of_disk
        beside = "in memory" if lower[0] == of_disk else "the disk alone"
        found.append(found[-1]._replace(other=other, beside=beside, least=None))
    ratio = away["objective"] / here["objective"]
    found.append(Line("objective, over that in memory", ratio, None, number, most=MOST_OBJECTIVE))
    found.append(Line("memory of all processes", memory, None, megabytes, most=float(limit)))
    return found


def trained(data: Path, options: dict[str, Any], group: Path | None = None) -> dict[str, Any]:
    """What a training in a process of its own comes to, perhaps in a control group."""
    return watched(data, options, group)[0]


@contextmanager
def limited(limit: int) -> Iterator[Path | None]:
    """A control group with a limit of memory; none where this may not be made."""
    group = GROUPS / f"hogwild-loading-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(f"{limit}")
    except OSError as problem:
        report.say(f"without a limit by the system: {problem}")
        yield None
        return
    try:
        yield group
    finally:
        group.rmdir()


def watched(
    data: Path, options: dict[str, Any], group: Path | None = None
) -> tuple[dict[str, Any], float]:
    """The same, and the most bytes that the processes had for themselves."""
    most = 0.0

    def watch(process: int) -> None:
        nonlocal most
        most = max(most, anonymous(process))

    command = [sys.executable, "-c", TRAIN, str(data), json.dumps(options)]
    command += [] if group is None else [str(group)]
    return dict(json.loads(finish(command, watch=watch))), most


def anonymous(process: int) -> float:
    """Bytes that belong to a process and its children, and to no file."""
    total = 0.0
    try:
        family = [process, *(one.pid for one in psutil.Process(process).children(recursive=True))]
        for one in family:
            words = Path(f"/proc/{one}/smaps_rollup").read_text().split()
            total += 1024.0 * int(words[words.index("Pss_Anon:") + 1])
    except (OSError, ValueError, psutil.Error):  # it has just ended
        return 0.0
    return total


def drop(file: Path) -> None:
    """Has the system forget what it cached of a file."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_all(file: Path) -> None:
    """Reads a file from one end to the other."""
    buffer = bytearray(BLOCK)
    with file.open("rb", buffering=0) as opened:
        while opened.readinto(buffer):
            pass


def number(value: float) -> str:
    return f"{value:.3f}"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=10.0)
    parser.add_argument("--baseline", type=Path, metavar="DIR", help="a checkout to compare with")
    options = parser.parse_args()
    report.say(report.about_machine())
    with tempfile.TemporaryDirectory(prefix="hogwild-rows-", dir=Path.cwd()) as folder:
        found = lines(Path(folder), options.rows, options.baseline)
    if options.rows < ROWS:
        found = measure.undemanded(found)
    report.say(measure.table(found))
    about = {"rows": options.rows}
    report.record("loading_rows", [report.header(about), *(line.record() for line in found)])
    measure.check(found)


if __name__ == "__main__":
    sys.exit(report.command(main))
