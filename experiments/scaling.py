"""How training scales with workers, on generated data: what `hogwild scaling` says of a file.

The table and the findings are printed; the record and the page are written to experiments/out.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments import report
from experiments.shapes import DEFAULT_RATINGS, DEFAULT_ROWS, SHAPES, ratings
from hogwild import Ratings, Rows
from hogwild.cli.scaling import add_study, measured, planned
from hogwild.scaling.record import check_outputs

RATINGS = "ratings"
EPOCHS = 20


def generate(shape: str, rows: int, seed: int) -> Rows | Ratings:
    """Data of a shape."""
    return ratings(rows, seed) if shape == RATINGS else SHAPES[shape](rows, seed)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--shape", choices=[*SHAPES, RATINGS], default="rcv1", help="of the data [rcv1]"
    )
    report.rows_option(parser, DEFAULT_ROWS["rcv1"], copies=3.0)
    parser.add_argument("--task", choices=("svm", "logistic", "mf"), help="[svm; mf for ratings]")
    parser.add_argument("--epochs", type=int, default=EPOCHS, metavar="N", help=f"[{EPOCHS}]")
    parser.add_argument("--l2", type=float, metavar="X", help="[1e-4; mf chooses it]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="[0]")
    add_study(parser)
    parser.set_defaults(out=None, rows=None)
    parsed = parser.parse_args()
    of_ratings = parsed.shape == RATINGS
    options: dict[str, Any] = {"task": parsed.task or ("mf" if of_ratings else "svm")}
    options |= {"epochs": parsed.epochs, "l2": parsed.l2, "seed": parsed.seed}
    plan = planned(parsed, options)
    report.OUT.mkdir(exist_ok=True)
    out = parsed.out or report.OUT / f"scaling-{parsed.shape}"
    check_outputs(out)
    rows = parsed.rows or (DEFAULT_RATINGS if of_ratings else DEFAULT_ROWS[parsed.shape])
    data = generate(parsed.shape, rows, parsed.seed)
    report.say(measured(data, plan, out))


if __name__ == "__main__":
    sys.exit(report.command(main))
