"""Every speed that factorization demands of itself, at MovieLens 20M's shape, from one run.

Others' speeds beside ours: `peers_mf.py`. The best of several, with one worker and two in turn.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hogwild
from experiments import report
from experiments.speed import Line, megabytes, peak, seconds
from hogwild import Ratings
from hogwild.data.synthetic_ratings import movielens
from hogwild.machine import usable_cores

SHAPE = (138_493, 26_744, 20_000_000)  # users, items, ratings
SMALL = (6_040, 3_706, 1_000_209)
RANKS = (32, 64, 128)
REPEATS = 3
EPOCHS = 5
LEAST_SPEED = {1: 180e6, 2: 320e6}  # ratings a second, rank 32
LEAST_SPEED_UP = 1.75
MOST_PREPARATION = 0.25  # seconds
MOST_MEMORY = 2.2  # times 12 bytes a rating, plus the factors

HEAD = ["measured", "hogwild", "demanded", "holds"]
NOTES = f"""
The best of {REPEATS} runs; an epoch is the quickest of {EPOCHS}; biases and adaptive rates, as by
default. preparation: memory, worker processes, renumbering, sorting into blocks, first factors.
memory: the peak of a program that loads an .npz file and trains on it with two workers, less that
of the same program on 1,000 ratings."""

# What it does is told by its arguments: a file, a number of workers
CHILD = """
import sys, hogwild
hogwild.train(hogwild.load_ratings(sys.argv[1]), workers=int(sys.argv[2]), epochs=3, tol=0)
"""


def ratings_per_second(value: float) -> str:
    return f"{value / 1e6:.0f} M ratings/s"


def times(value: float) -> str:
    return f"{value:.2f}"


def runs(ratings: Ratings, rank: int, counts: list[int]) -> dict[int, tuple[float, float]]:
    """By workers: ratings a second of the quickest epoch, and the least seconds of preparation."""
    found: dict[int, tuple[float, float]] = {}
    for _ in range(REPEATS):
        for workers in counts:
            options: dict[str, Any] = {"workers": workers, "epochs": EPOCHS, "tol": 0}
            result = hogwild.train(ratings, rank=rank, objective_every=0, **options)
            speed = max(row["ratings_per_second"] for row in report.finished(result).trace)
            before = found.get(workers, (0.0, float("inf")))
            prepared = result.header["chosen"]["prepare_seconds"]
            found[workers] = max(before[0], speed), min(before[1], prepared)
    return found


def speeds(ratings: Ratings) -> list[Line]:
    """Epochs at each rank, the gain of all cores, and the preparation."""
    lines = []
    counts = sorted({1, usable_cores()})
    for rank in RANKS:
        found = runs(ratings, rank, counts)
        for workers, (speed, _) in found.items():
            least = LEAST_SPEED.get(workers) if rank == RANKS[0] else None
            demanded = f">= {least / 1e6:.0f}" if least else "-"
            holds = speed >= least if least else None
            name = f"rank {rank}, {workers} worker{'s' if workers > 1 else ''}"
            lines.append(Line(name, speed, None, ratings_per_second, True, demanded, holds))
        if rank == RANKS[0]:
            gain, prepared = found[counts[-1]][0] / found[1][0], found[counts[-1]][1]
            holds = gain >= LEAST_SPEED_UP if counts[-1] > 1 else None
            demanded = f">= {LEAST_SPEED_UP}"
            lines += [
                Line(f"speed-up, {counts[-1]} workers", gain, None, times, True, demanded, holds),
                Line(
                    f"preparation, {counts[-1]} workers",
                    *(prepared, None, seconds, False),
                    *(f"<= {MOST_PREPARATION}", prepared <= MOST_PREPARATION),
                ),
            ]
    return lines


def memory(ratings: Ratings, folder: Path) -> Line:
    """Peak memory with two workers, less that of the interpreter, its modules and the kernels."""
    few, _ = movielens(users=100, items=50, ratings=1_000)
    peaks = []
    for some, name in ((ratings, "all.npz"), (few, "few.npz")):
        hogwild.save_ratings(some, folder / name)
        peaks.append(peak([sys.executable, "-c", CHILD, str(folder / name), "2"]))
    factors = 4 * (RANKS[0] + 1) * sum(ratings.shape)
    ours = peaks[0] - peaks[1]
    most = MOST_MEMORY * ratings.nbytes + factors
    return Line("memory", ours, None, megabytes, False, f"<= {megabytes(most)}", ours <= most)


def top(ratings: Ratings) -> Line:
    """Ten items for each user, without those that it has rated."""
    model = hogwild.train(ratings, epochs=3).model
    took = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        model.recommend(None, 10, exclude=ratings)
        took.append(time.perf_counter() - began)
    return Line("top 10 of 6,040 users", min(took), None, seconds)


def main() -> None:
    """The command line."""
    argparse.ArgumentParser(description=str(__doc__).splitlines()[0]).parse_args()
    report.say(report.about_machine())
    ratings, _ = movielens(*SHAPE)
    report.say(f"Data      {ratings!r}, {megabytes(ratings.nbytes)}\n")
    lines = speeds(ratings)
    with tempfile.TemporaryDirectory(prefix="hogwild-speed-") as folder:
        lines.append(memory(ratings, Path(folder)))
    lines.append(top(movielens(*SMALL)[0]))
    table = [[cells[0], cells[1], cells[4], cells[5]] for cells in map(Line.cells, lines)]
    report.say(report.table(HEAD, table))
    report.say(NOTES)
    shown = [line._asdict() | {"show": line.show.__name__} for line in lines]
    report.record("speed-factors", [report.header({"shape": SHAPE}), *shown])


if __name__ == "__main__":
    sys.exit(report.command(main))
