"""`hogwild generate`."""

import argparse

KINDS = ("rcv1",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help="rcv1: text-like sparse rows")
    parser.add_argument("output", metavar="OUT", help="a file to write: .svm, .svm.gz or .npz")
    parser.add_argument(
        "--weights", metavar="MODEL", help="a file for the weights behind the labels, as a model"
    )
    parser.add_argument("--rows", type=int, default=200_000, metavar="N", help="[200000]")
    parser.add_argument("--columns", type=int, default=47_236, metavar="N", help="[47236]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="[0]")
    parser.add_argument(
        "--first-row",
        type=int,
        default=0,
        metavar="N",
        help="begin at this row of the endless set that the seed names: for test rows that go "
        "with training rows [0]",
    )


def run(parsed: argparse.Namespace) -> int:
    """Writes seeded synthetic data; the same seed gives the same bytes."""
    from hogwild.data.files import save
    from hogwild.data.synthetic import rcv1
    from hogwild.paths import check_apart, check_output
    from hogwild.problems.linear_model import LinearModel

    check_output(parsed.output)
    if parsed.weights:
        check_output(parsed.weights)
        check_apart({"output": parsed.output, "weights": parsed.weights}, [])
    rows, weights = rcv1(parsed.rows, parsed.columns, parsed.seed, first_row=parsed.first_row)
    save(rows, parsed.output, index_base=1)  # as other programs expect of svmlight files
    if parsed.weights:
        LinearModel(weights, 0.0, (-1, 1), "hinge", 1).save(parsed.weights)
    print(
        f"{parsed.output}: {len(rows):,} rows, {rows.columns:,} columns, "
        f"{rows.nonzeros:,} non-zeros"
    )
    return 0
