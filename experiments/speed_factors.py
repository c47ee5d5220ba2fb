"""Every speed that is demanded of factorization, as a ratio to a plain pass in the same run.

The shape is MovieLens 20M's. Others' speeds beside ours: `peers_mf.py`. The best of several, with
one worker, with all cores, and of the plain pass (`plain_ratings.py`), in turn.
"""

import argparse
import math
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import hogwild
from experiments import measure, report
from experiments.children import peak
from experiments.measure import Line, megabytes, seconds, timed
from experiments.plain_ratings import pass_seconds
from hogwild import Ratings
from hogwild.data.synthetic_ratings import movielens
from hogwild.machine import memory_limit, usable_cores

USERS, ITEMS, RATINGS = 138_493, 26_744, 20_000_000
SMALL = (6_040, 3_706, 1_000_209)
RATING_BYTES = 12
COPIES = 8  # of the ratings, that memory must hold
RANKS = (32, 64, 128)
REPEATS = 3
EPOCHS = 5

# Least factors, at rank 32: speeds over that of the plain pass, by workers
LEAST_SPEED = {1: 0.38, 2: 0.68}
LEAST_SPEED_UP = 1.75
LEAST_PREPARATION = 0.17  # seconds of the plain pass over those of the preparation
MOST_MEMORY = 2.2  # times 12 bytes a rating, plus the factors

NOTES = f"""
The best of {REPEATS} runs; an epoch is the quickest of {EPOCHS}; biases and adaptive rates, as by
default. plain pass: one core reads all ratings in their order, with a product of two rows of
factors in a cache for each. preparation: memory, worker processes, renumbering, sorting into
blocks, first factors. memory: the peak of a program that loads an .npz file and trains on it with
two workers, less that of the same program on 1,000 ratings; beside it what the demand is made of,
{MOST_MEMORY} times 12 bytes a rating and the factors."""

# What it does is told by its arguments: a file, a number of workers
CHILD = """
import sys, hogwild
hogwild.train(hogwild.load_ratings(sys.argv[1]), workers=int(sys.argv[2]), epochs=3, tol=0)
"""


def ratings_per_second(value: float) -> str:
    return f"{value / 1e6:.0f} M ratings/s"


class Found(NamedTuple):
    """The best of several runs, by workers: seconds of an epoch and of the preparation."""

    epochs: dict[int, float]
    preparations: dict[int, float]
    plain: float  # seconds of the plain pass


def runs(ratings: Ratings, rank: int, counts: list[int]) -> Found:
    """What runs with each number of workers take, and the plain pass, in turn."""
    found = Found({}, {}, min(pass_seconds(ratings, rank) for _ in range(REPEATS)))
    for _ in range(REPEATS):
        for workers in counts:
            options: dict[str, Any] = {"workers": workers, "epochs": EPOCHS, "tol": 0}
            result = hogwild.train(ratings, rank=rank, objective_every=0, **options)
            epoch = min(row["epoch_seconds"] for row in report.finished(result).trace)
            prepared = result.header["chosen"]["prepare_seconds"]
            found.epochs[workers] = min(found.epochs.get(workers, math.inf), epoch)
            found.preparations[workers] = min(found.preparations.get(workers, math.inf), prepared)
        found = found._replace(plain=min(found.plain, pass_seconds(ratings, rank)))
    return found


def speeds(ratings: Ratings) -> list[Line]:
    """Epochs at each rank, the gain of all cores, and the preparation."""
    lines = []
    counts = sorted({1, usable_cores()})
    count, beside = len(ratings), "plain pass"
    for rank in RANKS:
        found = runs(ratings, rank, counts)
        for workers, epoch in found.epochs.items():
            least = LEAST_SPEED.get(workers) if rank == RANKS[0] else None
            name = f"rank {rank}, {workers} worker{'s' if workers > 1 else ''}"
            given = count / epoch, count / found.plain, ratings_per_second, beside, True
            lines.append(Line(name, *given, least=least))
        if rank == RANKS[0]:
            lines += _of_all_cores(found, counts[-1])
    return lines


def _of_all_cores(found: Found, workers: int) -> list[Line]:
    one, several = found.epochs[1], found.epochs[workers]
    least = LEAST_SPEED_UP if workers > 1 else None
    took = found.preparations[workers], found.plain, seconds, "plain pass"
    return [
        Line(f"epoch, {workers} workers", several, one, seconds, "one worker", least=least),
        Line(f"preparation, {workers} workers", *took, least=LEAST_PREPARATION),
    ]


def memory(ratings: Ratings, folder: Path) -> Line:
    """Peak memory with two workers, less that of the interpreter, its modules and the kernels."""
    few, _ = movielens(users=100, items=50, ratings=1_000)
    peaks = []
    for some, name in ((ratings, "all.npz"), (few, "few.npz")):
        hogwild.save_ratings(some, folder / name)
        peaks.append(peak([sys.executable, "-c", CHILD, str(folder / name), "2"]))
    factors = 4 * (RANKS[0] + 1) * sum(ratings.shape)
    most = MOST_MEMORY * ratings.nbytes + factors
    return Line("memory", peaks[0] - peaks[1], most, megabytes, "2.2 x data", least=1.0)


def top(ratings: Ratings) -> Line:
    """Ten items for each user, without those that it has rated."""
    model = hogwild.train(ratings, epochs=3).model
    took = [timed(lambda: model.recommend(None, 10, exclude=ratings)) for _ in range(REPEATS + 1)]
    return Line("top 10 of 6,040 users", min(took), None, seconds)


def number_of_ratings(text: str) -> int:
    """For argparse."""
    count = int(text) if text.isascii() and text.isdigit() else 0
    most = int(memory_limit() / RATING_BYTES / COPIES)
    if not report.LEAST_ROWS * 100 <= count <= most:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number from {report.LEAST_ROWS * 100:,} to {most:,}"
        )
    return count


def shape(count: int) -> tuple[int, int, int]:
    """Users, items and ratings in this number, as dense as those of MovieLens 20M."""
    scale = math.sqrt(count / RATINGS)
    return round(USERS * scale), round(ITEMS * scale), count


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--ratings", type=number_of_ratings, default=RATINGS, metavar="N", help=f"[{RATINGS}]"
    )
    count = parser.parse_args().ratings
    report.say(report.about_machine())
    ratings, _ = movielens(*shape(count))
    report.say(f"Data      {ratings!r}, {megabytes(ratings.nbytes)}")
    lines = speeds(ratings)
    with tempfile.TemporaryDirectory(prefix="hogwild-speed-") as folder:
        lines.append(memory(ratings, Path(folder)))
    lines.append(top(movielens(*SMALL)[0]))
    if count < RATINGS:
        lines = measure.undemanded(lines)
        report.say(f"With fewer than {RATINGS:,} ratings nothing is demanded.")
    report.say("\n" + measure.table(lines))
    report.say(NOTES)
    shown = map(Line.record, lines)
    report.record("speed-factors", [report.header({"shape": shape(count)}), *shown])
    measure.check(lines)


if __name__ == "__main__":
    sys.exit(report.command(main))
