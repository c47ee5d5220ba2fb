"""How fast data is read, beside one core, an earlier commit, and the readers of others.

All files are generated into a temporary folder and read from the page cache. A line of the table
comes from a function in `PARTS`: it takes what `Given` has, and returns lines. Those of a kind of
file stand together; to add a kind, write such a function and name it there.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import hogwild
from experiments import measure, report
from experiments.children import finish
from experiments.environments import Environment
from experiments.measure import Line, best, seconds, timed
from experiments.starts import checked_baseline
from hogwild import HogwildError, OptionError, Rows
from hogwild.data.synthetic import rcv1
from hogwild.data.synthetic_ratings import movielens
from hogwild.machine import usable_cores

try:
    from sklearn.datasets import load_svmlight_file
except ImportError:
    load_svmlight_file = None

ROWS = 781_265  # of RCV1
RATINGS = 20_000_000  # of MovieLens 20M
LEAST_RATINGS = 200_000  # fewer do not go round all users
DECIMALS = 7  # of a value, as text of this kind has
REPEATS = 5
PACKED_FILES = 4
PACKED_SHARE = 4  # a quarter of the rows is packed, since packing is slow
READERS = ("polars", "pyarrow")
VW = "vowpalwabbit"
VERSIONS = {
    **dict.fromkeys(READERS, report.FOLDER / "peers-tables.txt"),
    VW: report.FOLDER / "peers-text.txt",
}
HOW = "python experiments/loading.py --install"

# Least factors
LEAST_CORES = 1.7
LEAST_SKLEARN = 40.0
LEAST_BASELINE = 1 / 0.65
LEAST_VW = 4.0
LEAST_TABLES = 1.5

COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}  # as installed: modules need not be compiled each time

NOTES = f"""
The best of {REPEATS}, in turn (scikit-learn once); files in the page cache. Reading is the whole
call, arrays made and checked; a training is the whole command, one epoch of SGD, and saves it.
Vowpal Wabbit reads its own text, in a pass without the start of Python and its imports."""


class Given(NamedTuple):
    """What the parts of the table are made from."""

    folder: Path
    rows: int
    ratings: int
    baseline: Path | None


def environment(name: str) -> Environment:
    """The environment of another reader."""
    return Environment(name, (name, "numpy"), VERSIONS[name], HOW)


def tf_idf(count: int) -> Rows:
    """Rows whose values have as many digits as text of this kind has."""
    rows = rcv1(count)[0]
    values = np.round(rows.values.astype(np.float64), DECIMALS).astype(np.float32)
    arrays = rows.indptr, rows.indices, values, rows.columns, rows.y
    return Rows.from_arrays(*arrays, index_base=1, name=rows.name)


def svmlight(given: Given) -> list[Line]:
    """svmlight text to rows, and to a model from the shell."""
    file = given.folder / "rows.svm"
    rows = tf_idf(given.rows)
    writing = timed(partial(hogwild.save, rows, file))
    del rows
    size = file.stat().st_size
    report.say(f"Data      {file.name}: {size / 1e6:,.0f} MB of svmlight text")
    lines = [Line(f"{file.name} written", size / writing, None, gigabytes_per_second)]
    lines += [*reading(file), *shell(file, given)]
    file.unlink()
    return lines


def packed(given: Given) -> list[Line]:
    """svmlight text in several files, each packed."""
    rows = tf_idf(given.rows // PACKED_SHARE)
    shares = np.array_split(np.arange(len(rows)), PACKED_FILES)
    files = [given.folder / f"rows-{number}.svm.gz" for number in range(PACKED_FILES)]
    for file, share in zip(files, shares, strict=True):
        hogwild.save(rows.take(share), file)
    size = sum(file.stat().st_size for file in files)
    report.say(f"Data      rows-*.svm.gz: {size / 1e6:,.0f} MB in {PACKED_FILES} files")
    lines = [by_cores(files[:1]), by_cores(files)]
    for file in files:
        file.unlink()
    return lines


def reading(file: Path) -> list[Line]:
    """A file of rows with one core and with all, and by scikit-learn."""
    line = by_cores([file])._replace(least=LEAST_CORES)
    if not load_svmlight_file:
        return [line]
    peer = file.stat().st_size / timed(lambda: load_svmlight_file(str(file)))
    return [line, line._replace(other=peer, beside="scikit-learn", least=LEAST_SKLEARN)]


def by_cores(files: list[Path]) -> Line:
    """Files of rows with one core and with all."""
    cores, size = usable_cores(), sum(file.stat().st_size for file in files)
    hogwild.load(files)  # compiles
    found = best(
        {
            "one": partial(timed, partial(hogwild.load, files, threads=1)),
            "all": partial(timed, partial(hogwild.load, files, threads=cores)),
        },
        REPEATS,
    )
    what = files[0].name if len(files) == 1 else f"{len(files)} such files"
    return Line(
        *(f"{what} read, {cores} cores", size / found["all"], size / found["one"]),
        gigabytes_per_second,
        "1 core",
        higher_is_better=True,
    )


def shell(file: Path, given: Given) -> list[Line]:
    """A command that reads a file and trains for one epoch, beside others."""
    model = given.folder / "model"
    train = [sys.executable, "-m", "hogwild", "train", str(file), "--epochs", "1"]
    train += ["--model", str(model)]
    ours = [*train, "--solver", "sgd"]  # which the first commits did not have, nor others
    calls: dict[str, Callable[[], float]] = {
        "ours": partial(timed, partial(finish, ours, COMPILED))
    }
    if given.baseline is not None:
        tree = given.baseline
        there = COMPILED | {"PYTHONPATH": os.fspath(tree)}
        calls["baseline"] = partial(timed, partial(finish, train, there, folder=tree))
    if problem := environment(VW).missing():
        report.say(f"Left out  {VW}: {problem}")
    else:
        text = given.folder / "rows.vw"
        as_vw(file, text)
        calls["vw"] = partial(by_vw, text, model)
    for call in calls.values():
        call()  # compiles
    found = best(calls, REPEATS)
    line = Line(f"{file.name} to a model, shell", found["ours"], None, seconds)
    lines = []
    if "baseline" in found:
        other = found["baseline"]
        lines.append(line._replace(other=other, beside="baseline", least=LEAST_BASELINE))
    if "vw" in found:
        lines.append(line._replace(other=found["vw"], beside="Vowpal Wabbit", least=LEAST_VW))
    return lines or [line]


def by_vw(text: Path, model: Path) -> float:
    """Seconds that Vowpal Wabbit takes for a pass with the hinge loss, and to save the model."""
    options = f"--loss_function hinge -f {model}"
    request = {"file": str(text), "options": options, "repeats": 1}
    answer = environment(VW).ask(Path(__file__).with_name("text_peer.py"), request, 1)
    if answer.problem or not answer.rows:
        raise HogwildError(f"{VW} failed: {answer.problem}")
    return float(answer.rows[0]["seconds"])


def as_vw(file: Path, out: Path) -> None:
    """Writes svmlight text as Vowpal Wabbit's: a bar behind the label."""
    with file.open("rb") as given, out.open("wb") as made:
        made.writelines(line.replace(b" ", b" | ", 1) for line in given)


def ratings(given: Given) -> list[Line]:
    """Ratings as CSV to arrays, beside readers of tables, which give no codes to ids."""
    file = given.folder / "ratings.csv"
    drawn = movielens(ratings=given.ratings)[0]
    hogwild.save_ratings(drawn, file)
    users, items = (float(ids[codes[-1]]) for ids, codes in (
        (drawn.user_ids, drawn.users), (drawn.item_ids, drawn.items)
    ))  # fmt: skip
    last = [users, items, float(drawn.values[-1])] if drawn.values is not None else []
    del drawn
    cores = usable_cores()
    size = file.stat().st_size
    report.say(f"Data      {file.name}: {given.ratings:,} lines, {size / 1e6:,.0f} MB")
    hogwild.load_ratings(file)  # compiles
    calls = {
        "one": partial(timed, partial(hogwild.load_ratings, file, threads=1)),
        "all": partial(timed, partial(hogwild.load_ratings, file, threads=cores)),
    }
    for name in READERS:
        if problem := environment(name).missing():
            report.say(f"Left out  {name}: {problem}")
        else:
            calls[name] = partial(by_tables, name, file, given.ratings, last)
    found = {name: given.ratings / time for name, time in best(calls, REPEATS).items()}
    line = Line(
        *(f"{file.name} read, {cores} cores", found["all"], found["one"], lines_per_second),
        "1 core",
        higher_is_better=True,
    )
    others = [line._replace(other=found[name], beside=name) for name in READERS if name in found]
    return [line, *(one._replace(least=LEAST_TABLES) for one in others)]


def by_tables(name: str, file: Path, lines: int, last: list[float]) -> float:
    """Seconds that a reader of tables takes at best; it must have read what is there."""
    script = Path(__file__).with_name("table_peer.py")
    request = {"file": str(file), "repeats": 2}
    answer = environment(name).ask(script, request, usable_cores())
    rows = [row for row in answer.rows if "seconds" in row]
    if answer.problem or not rows:
        raise HogwildError(f"{name} failed: {answer.problem}")
    if any((row["lines"], row["last"]) != (lines, last) for row in rows):
        raise HogwildError(f"{name} read something else: {rows[0]}")
    return float(min(row["seconds"] for row in rows))


def gigabytes_per_second(value: float) -> str:
    return f"{value / 1e9:.2f} GB/s"


def lines_per_second(value: float) -> str:
    return f"{value / 1e6:.1f} M lines/s"


PARTS: dict[str, Callable[[Given], list[Line]]] = {
    "svmlight": svmlight,
    "packed": packed,
    "ratings": ratings,
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    report.rows_option(parser, ROWS, copies=8.0)
    parser.add_argument("--ratings", type=int, default=RATINGS, metavar="N", help=f"[{RATINGS}]")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--install", action="store_true", help="the others, and nothing else")
    parser.add_argument("--baseline", metavar="DIR", help="a checkout of an earlier commit")
    parsed = parser.parse_args()
    if parsed.install:
        for name in VERSIONS:
            report.say(f"{name:<12} {environment(name).install() or 'installed'}")
        return
    if parsed.ratings < LEAST_RATINGS:
        raise OptionError(f"--ratings: must be {LEAST_RATINGS:,} or more, not {parsed.ratings}")
    baseline = checked_baseline(parsed.baseline)

    report.say(report.about_machine())
    if baseline is None and "svmlight" in parsed.only:
        report.say("Left out  training beside an earlier commit: give --baseline DIR")
    with tempfile.TemporaryDirectory(prefix="hogwild-loading-") as folder:
        given = Given(Path(folder), parsed.rows, parsed.ratings, baseline)
        lines = [line for name in parsed.only for line in PARTS[name](given)]
    if (parsed.rows, parsed.ratings) != (ROWS, RATINGS):
        lines = measure.undemanded(lines)
        report.say("With other sizes than usual nothing is demanded.")
    report.say("\n" + measure.table(lines))
    report.say(NOTES)
    options = {"rows": parsed.rows, "ratings": parsed.ratings, "baseline": baseline is not None}
    report.record("loading", [report.header(options), *map(Line.record, lines)])
    measure.check(lines)


if __name__ == "__main__":
    sys.exit(report.command(main))
