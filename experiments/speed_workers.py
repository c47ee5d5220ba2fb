"""What a second worker brings, on rows of six shapes: every figure that the project demands of it.

For each shape and loss, hogwild.train with one worker and with all cores (strategy auto) in turn,
several times, the best of each; the pool of workers is warm. Compared are the seconds of the epochs
and the training clock (with its search for a rate, and all that the workers make ready) when the
objective came within GAP of the least that any run came to. It is known after each epoch: between
two of them the gap is taken to shrink by the same factor all the time, and within the first one
nothing is taken to be reached. (By whole epochs, a gap of 0.00099 or 0.00101 after the first would
decide about a factor of two.)
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from scipy import sparse

import hogwild
from experiments import report
from experiments.shapes import DEFAULT_ROWS, SHAPES
from hogwild import HogwildClassifier, Rows
from hogwild.machine import usable_cores

GAP = 1e-3
EPOCHS = 6
MORE_EPOCHS = 20  # of one worker, to know how low the objective gets
REPEATS = 5
L2 = 1e-4
LOSSES = ("hinge", "logistic")
WORSE = 1e-3  # relative, after each epoch: the most that several workers may be
MOST_RATIO = 1.2  # of the time to quality of `ordered`, over `combine`
MOST_TWENTY = 1.0  # seconds, for 20 epochs
MOST_COLD, MOST_WARM = 0.4, 0.015  # seconds that a fit with all workers may take more than with one

# Least speed-ups: of an epoch, and of the time to quality
DEMANDED: dict[str, tuple[float, float | None]] = {
    "rcv1": (1.8, 1.7),
    "wide": (1.65, 1.55),
    "uniform": (1.6, None),
    "sparse": (1.4, None),
    "dense": (1.7, None),
    "onehot": (1.55, None),
}

Row = dict[str, Any]

COLD = """
import sys, time, numpy, scipy.sparse, hogwild
X, y = scipy.sparse.load_npz(sys.argv[1]), numpy.load(sys.argv[2])
for _ in range(3):
    began = time.perf_counter()
    options = {"n_jobs": int(sys.argv[3]), "max_iter": 1, "tol": None, "random_state": 0}
    hogwild.HogwildClassifier(**options).fit(X, y)
    print(time.perf_counter() - began)
"""


class Curve(NamedTuple):
    """Of several runs alike: seconds of each epoch, the clock after it, and the objective."""

    epochs: list[float]
    clock: list[float]
    objectives: list[float]
    chosen: Row

    def seconds_to_gap(self, least: float) -> float | None:
        """The clock when the objective came within GAP of the least."""
        gaps = np.maximum(np.array(self.objectives) / least - 1, 1e-9)
        near = np.flatnonzero(gaps <= GAP)
        if not len(near):
            return None
        first = int(near[0])
        if first == 0:
            return self.clock[0]
        falls = np.log(gaps[first - 1] / GAP) / np.log(gaps[first - 1] / gaps[first])
        before, after = self.clock[first - 1 : first + 1]
        return float(before + falls * (after - before))


def train(rows: Rows, loss: str, **options: Any) -> hogwild.Result:
    """A run, all of whose epochs are wanted."""
    given: Row = {"loss": loss, "l2": L2, "tol": 0, "epochs": EPOCHS} | options
    return report.finished(hogwild.train(rows, **given))


def curves(rows: Rows, loss: str, options: dict[str, Row]) -> dict[str, Curve]:
    """The best of several runs with each of some options, in turn."""
    found: dict[str, list[hogwild.Result]] = {name: [] for name in options}
    for _ in range(REPEATS + 1):
        for name, some in options.items():
            # The first in this order makes the workers ready for those that follow
            train(rows, loss, **(some | {"epochs": 1, "objective_every": 0}))
            found[name].append(train(rows, loss, **some))
    return {name: _curve(results[1:]) for name, results in found.items()}


def _curve(results: list[hogwild.Result]) -> Curve:
    def least(key: str) -> list[float]:
        each = [[float(row[key]) for row in one.trace] for one in results]
        return [min(some) for some in zip(*each, strict=True)]

    objectives = np.median([[row["objective"] for row in one.trace] for one in results], axis=0)
    chosen = results[0].header["chosen"]
    return Curve(least("epoch_seconds"), least("seconds"), objectives.tolist(), chosen)


def judged(value: float | None, demanded: float | None, most: bool = False) -> str:
    """Whether a value is as demanded, as a word."""
    if demanded is None:
        return "-"
    if value is None:
        return "no"
    return "yes" if (value <= demanded if most else value >= demanded) else "no"


class Tables:
    """Measures, prints a table for each shape, and keeps the lines of the record."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.lines: list[Row] = []
        self.missed = 0

    def shape(self, name: str, rows: Rows) -> None:
        """Speed-ups on a shape, for each loss."""
        table = []
        for loss in LOSSES:
            every = {"one": {"workers": 1}, "all": {"workers": self.cores}}
            found = curves(rows, loss, every)
            table.append(self._compared(name, loss, found, self._least(rows, loss, found)))
        head = [f"{name}, {len(rows):,} rows", "1 worker", f"{self.cores} workers", "strategy"]
        head += ["speed-up", "demanded", "holds", "to 1e-3: 1", f"{self.cores}", "speed-up"]
        head += ["demanded", "holds", "worse by"]
        report.say("\n" + report.table(head, table))

    def _least(self, rows: Rows, loss: str, found: dict[str, Curve]) -> float:
        """The least objective that any run came to."""
        longest = train(rows, loss, workers=1, epochs=MORE_EPOCHS)
        least = min(float(row["objective"]) for row in longest.trace)
        return min(least, *(min(curve.objectives) for curve in found.values()))

    def _compared(self, name: str, loss: str, found: dict[str, Curve], least: float) -> list[str]:
        one, several = found["one"], found["all"]
        an_epoch, to_quality = DEMANDED[name]
        speed_up = sum(one.epochs) / sum(several.epochs)
        seconds = one.seconds_to_gap(least), several.seconds_to_gap(least)
        faster = seconds[0] / seconds[1] if seconds[0] and seconds[1] else None
        pairs = zip(several.objectives, one.objectives, strict=True)
        worse = max(after / before - 1 for after, before in pairs)
        holds = judged(speed_up, an_epoch) if worse <= WORSE else "no"
        self.missed += [holds, judged(faster, to_quality)].count("no")
        self.lines.append(
            {"kind": "shape", "shape": name, "loss": loss, "speed_up": speed_up, "worse": worse}
            | {"to_quality": seconds, "least": least}
            | {which: curve._asdict() for which, curve in found.items()}
        )
        return [
            loss,
            f"{np.mean(one.epochs):.4f} s",
            f"{np.mean(several.epochs):.4f} s",
            several.chosen["strategy"],
            f"{speed_up:.2f}",
            f">= {an_epoch}",
            holds,
            *(f"{some:.4f} s" if some else "-" for some in seconds),
            f"{faster:.2f}" if faster else "-",
            f">= {to_quality}" if to_quality else "-",
            judged(faster, to_quality),
            f"{100 * worse:+.3f} %",
        ]

    def strategies(self, rows: Rows) -> None:
        """`ordered` beside `combine`, and how long 20 epochs take."""
        table = []
        for loss in LOSSES:
            several = {"workers": self.cores}
            names = ("combine", "ordered")
            found = curves(rows, loss, {n: several | {"strategy": n} for n in names})
            least = self._least(rows, loss, found)
            seconds = [found[name].seconds_to_gap(least) for name in names]
            ratio = seconds[1] / seconds[0] if seconds[0] and seconds[1] else None
            holds = judged(ratio, MOST_RATIO, most=True)
            table.append(self._line(f"{loss}, ordered / combine to 1e-3", ratio, MOST_RATIO, holds))
            runs = [train(rows, loss, workers=self.cores, epochs=20) for _ in range(REPEATS)]
            clock = min(run.trace[-1]["seconds"] for run in runs)
            holds = judged(clock, MOST_TWENTY, most=True)
            table.append(self._line(f"{loss}, 20 epochs, seconds", clock, MOST_TWENTY, holds))
        report.say("\n" + report.table(["rcv1", "measured", "demanded", "holds"], table))

    def _line(self, name: str, value: float | None, most: float, holds: str) -> list[str]:
        self.missed += holds == "no"
        self.lines.append({"kind": "most", "name": name, "value": value, "most": most})
        return [name, f"{value:.3f}" if value is not None else "-", f"<= {most}", holds]

    def fits(self, rows: Rows) -> None:
        """HogwildClassifier.fit with all workers beside one, in a fresh process: 1st, and 2nd."""
        X, y = rows.to_scipy(), rows.y
        classifiers = [HogwildClassifier(n_jobs=n, max_iter=1) for n in (1, self.cores)]
        for classifier in classifiers:  # compiles
            classifier.fit(X, y)
        hogwild.close_pool()
        best = fits_in_fresh_processes(X, y, self.cores)
        table = []
        for which, (one, several), most in zip(
            ("first", "second"), best, (MOST_COLD, MOST_WARM), strict=True
        ):
            more = several - one
            holds = judged(more, most, most=True)
            name = f"{which} fit of a process, seconds more"
            table.append(self._line(name, more, most, holds))
        head = [
            f"{len(rows):,} rows, {self.cores} workers beside 1",
            "measured",
            "demanded",
            "holds",
        ]
        report.say("\n" + report.table(head, table))


def fits_in_fresh_processes(X: Any, y: Any, workers: int) -> list[tuple[float, float]]:
    """Least seconds of the first fit and of the next ones, with one worker and with several."""
    found: dict[int, list[list[float]]] = {1: [], workers: []}
    with tempfile.TemporaryDirectory(prefix="hogwild-speed-") as folder:
        matrix, labels = Path(folder) / "X.npz", Path(folder) / "y.npy"
        sparse.save_npz(matrix, X, compressed=False)
        np.save(labels, y)
        for _ in range(REPEATS):
            for count, seconds in found.items():
                command = [sys.executable, "-c", COLD, str(matrix), str(labels), str(count)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                seconds.append([float(line) for line in done.stdout.split()])
    first = tuple(min(run[0] for run in found[count]) for count in (1, workers))
    later = tuple(min(min(run[1:]) for run in found[count]) for count in (1, workers))
    return [(first[0], first[1]), (later[0], later[1])]


def count(text: str) -> int:
    """A number of rows."""
    if not (text.isascii() and text.isdigit()) or int(text) < report.LEAST_ROWS:
        raise argparse.ArgumentTypeError(f"{text!r}: give {report.LEAST_ROWS} or more")
    return int(text)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=DEMANDED, default=list(DEMANDED))
    parser.add_argument(
        "--rows", type=count, help="of each shape [1,000,000; of rcv1 781,265]", metavar="N"
    )
    parsed = parser.parse_args()
    report.say(report.about_machine())
    cores = usable_cores()
    tables = Tables(cores)
    for name in parsed.only:
        began = time.perf_counter()
        rows = SHAPES[name](parsed.rows or DEFAULT_ROWS[name], 0)
        report.say(f"\nGenerated {name} in {time.perf_counter() - began:.1f} s")
        tables.shape(name, rows)
        if name == "rcv1":
            tables.strategies(rows)
            tables.fits(rows)
    report.say(f"\n{tables.missed} of the demands are missed" if tables.missed else "\nAll hold.")
    report.record("speed-workers", [report.header({"only": parsed.only}), *tables.lines])


if __name__ == "__main__":
    sys.exit(report.command(main))
