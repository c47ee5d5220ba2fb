"""What a second worker brings, on rows of six shapes: every ratio that is demanded of it.

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
from experiments import measure, report, sgd_peer
from experiments.measure import best
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
TWENTY = 20  # epochs
LEAST_TWENTY = {"hinge": 5.5, "logistic": 6.5}  # of scikit-learn's time for them, over ours
FURTHER = 4  # epochs more, to tell an epoch of scikit-learn from what it does once
MOST_FITS = {"first": 1.5, "second": 1.1}  # seconds of a fit with all workers, over one worker's

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
    options = {"n_jobs": int(sys.argv[3]), "max_iter": 1, "solver": "sgd", "random_state": 0}
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
    given: Row = {"loss": loss, "l2": L2, "tol": 0, "epochs": EPOCHS, "solver": "sgd"} | options
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
        return "NO"
    return "yes" if (value <= demanded if most else value >= demanded) else "NO"


class Tables:
    """Measures, prints a table for each shape, and keeps the lines of the record.

    Unless it is `demanding`, it does not say whether demands are there.
    """

    def __init__(self, cores: int, demanding: bool) -> None:
        self.cores = cores
        self._demanding = demanding
        self.lines: list[Row] = []
        self.missed: list[str] = []

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
        rated = speed_up if worse <= WORSE else None
        holds = self._judged(f"{name}, {loss}, an epoch", rated, an_epoch)
        nearer = self._judged(f"{name}, {loss}, to {GAP:g}", faster, to_quality)
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
            nearer,
            f"{100 * worse:+.3f} %",
        ]

    def strategies(self, rows: Rows) -> None:
        """`ordered` beside `combine`, and 20 epochs beside scikit-learn's."""
        table = []
        for loss in LOSSES:
            several = {"workers": self.cores}
            names = ("combine", "ordered")
            found = curves(rows, loss, {n: several | {"strategy": n} for n in names})
            least = self._least(rows, loss, found)
            seconds = [found[name].seconds_to_gap(least) for name in names]
            ratio = seconds[1] / seconds[0] if seconds[0] and seconds[1] else None
            name = f"{loss}, seconds to {GAP:g}: ordered / combine"
            table.append(self._line(name, ratio, MOST_RATIO, most=True))
            name = f"{loss}, {TWENTY} epochs: scikit-learn / {self.cores} workers"
            table.append(self._line(name, self._twenty(rows, loss), LEAST_TWENTY[loss]))
        report.say("\n" + report.table(["rcv1", "ratio", "demanded", "holds"], table))

    def _twenty(self, rows: Rows, loss: str) -> float:
        """Seconds of scikit-learn for 20 epochs, without what it does once, over ours."""
        calls = sgd_peer.epoch_calls(rows.to_scipy(), rows.targets(), loss, L2, FURTHER)
        calls["ours"] = lambda: float(
            train(rows, loss, workers=self.cores, epochs=TWENTY).trace[-1]["seconds"]
        )
        found = best(calls, REPEATS)
        return TWENTY * sgd_peer.epoch_seconds(found, FURTHER) / found["ours"]

    def _line(
        self, name: str, value: float | None, demanded: float, most: bool = False
    ) -> list[str]:
        holds = self._judged(name, value, demanded, most)
        self.lines.append(
            {"kind": "ratio", "name": name, "value": value, "most" if most else "least": demanded}
        )
        shown = f"{value:.3f}" if value is not None else "-"
        return [name, shown, f"{'<=' if most else '>='} {demanded}", holds]

    def _judged(
        self, name: str, value: float | None, demanded: float | None, most: bool = False
    ) -> str:
        holds = judged(value, demanded, most) if self._demanding else "-"
        if holds == "NO":
            self.missed.append(name)
        return holds

    def fits(self, rows: Rows) -> None:
        """HogwildClassifier.fit with all workers beside one, in a fresh process: 1st, and 2nd."""
        X, y = rows.to_scipy(), rows.y
        classifiers = [
            HogwildClassifier(n_jobs=n, max_iter=1, solver="sgd") for n in (1, self.cores)
        ]
        for classifier in classifiers:  # compiles
            classifier.fit(X, y)
        hogwild.close_pool()
        best_fits = fits_in_fresh_processes(X, y, self.cores)
        table = [
            self._line(f"{which} fit of a process, seconds", several / one, most, most=True)
            for (which, most), (one, several) in zip(MOST_FITS.items(), best_fits, strict=True)
        ]
        head = [f"{len(rows):,} rows, {self.cores} workers / 1", "ratio", "demanded", "holds"]
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
    if parsed.rows is not None:
        report.say("With other numbers of rows than usual nothing is demanded.")
    cores = usable_cores()
    tables = Tables(cores, demanding=parsed.rows is None)
    for name in parsed.only:
        began = time.perf_counter()
        rows = SHAPES[name](parsed.rows or DEFAULT_ROWS[name], 0)
        report.say(f"\nGenerated {name} in {time.perf_counter() - began:.1f} s")
        tables.shape(name, rows)
        if name == "rcv1":
            tables.strategies(rows)
            tables.fits(rows)
    options = {"only": parsed.only, "rows": parsed.rows}
    report.record("speed-workers", [report.header(options), *tables.lines])
    measure.missed(tables.missed)


if __name__ == "__main__":
    sys.exit(report.command(main))
