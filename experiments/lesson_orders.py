"""Gap against epochs, by how often the rows are permuted.

After L. Bottou, "Curiously Fast Convergence of some Stochastic Gradient Descent Algorithms", 2009.
"""

from statistics import median

from experiments import lesson, orders
from experiments.lesson import CERTAINTY, Bound, Problem, Shown, Training
from experiments.run_rows import Data
from hogwild import Rows
from hogwild.scaling.svg import Axis, line_plot, logarithmic

TITLE = "The order of the rows: permuted each epoch, once, or never"
INTRO = (
    "The theory of SGD draws each row at random, with replacement. Programs go through all rows in "
    "an epoch, in an order that is permuted before each epoch, once for all, or never. Bottou "
    "found in 2009 that the programs are better than the theory: with replacement the gap falls as "
    "1 / t, without it almost as 1 / t^2. Here are all of them, and the order that hogwild takes: "
    "chunks of 64 neighboring rows in a random order, and the rows of 64 chunks at a time mixed. "
    "Weights are the last ones, not averaged, except in the last line, which is what hogwild does "
    "by default. Each number is the median of three seeds; once with the rows as they were drawn, "
    "and once with the same rows sorted by label."
)
WHY = (
    "With replacement, the rows of an epoch are a random sample: some come twice, and 37 % never. "
    "The difference between the sample and all rows pushes the weights aside, and only the falling "
    "learning rate makes that smaller. An epoch without replacement has each row once, so that "
    "what one row does too much another makes good before the epoch ends. Permuted once, or never "
    "where they come in a random order, rows push the weights to the same side in each epoch: the "
    "gap falls smoothly. Permuted anew, they push to another side each time: the gap is smaller in "
    "most epochs, and jumps. Rows that are sorted and never permuted are the disaster. The epoch "
    "ends with many rows of one label, the weights forget the other one, and the objective rises; "
    "hogwild takes that for a learning rate that is too large, and halves it until next to nothing "
    "is learned. So permute sorted rows, at least once; hogwild always does. Of sorted rows, each "
    "4,096 that its chunks mix have somewhat more of one label, so its last weights jump more than "
    "after a full permutation. Their mean does not."
)
SEEDS = 3
TAKES: tuple[str, ...] = ("order", "by_label")
VARIES: tuple[str, ...] = ()
EPOCHS = (1, 2, 5, 10, 20, 50, 100)  # after which the gap is shown


def shown(problem: Problem, data: Data) -> Shown:
    """A curve for each order."""
    train = orders.by_label(data.train) if problem.by_label else data.train
    bound = lesson.bound(problem, train)
    gaps = {one.name: gaps_of(one, train, bound) for one in problem.trainings}
    longest = min(map(len, gaps.values()))
    places = [epoch for epoch in EPOCHS if epoch < longest] + [longest]
    points = {
        name: [(epoch, max(gap, CERTAINTY)) for epoch, gap in enumerate(some, 1)]
        for name, some in gaps.items()
    }
    x = Axis("epochs", 1, max(longest, 2), places, log=True)
    y = logarithmic("gap", [gap for some in points.values() for _, gap in some])
    drawn = line_plot(f"{problem.name}: gap against epochs", lesson.curves(points), x, y)
    early = max(1, longest // 4)
    head = [f"{problem.name}: gap after epoch", *map(str, places), f"{early} / {longest}"]
    rows = [
        [
            *(name, *(lesson.short(some[epoch - 1]) for epoch in places)),
            f"{some[early - 1] / max(some[-1], CERTAINTY):.1f}",
        ]
        for name, some in gaps.items()
    ]
    ratio = longest / early
    says = (
        f"The last column says how many times smaller the gap is after epoch {longest} than after "
        f"epoch {early}: if it falls as 1 / t, {ratio:.1f} times, as 1 / t^2, {ratio**2:.1f} times."
    )
    about = {"kind": "gaps", "problem": problem.name}
    lines = [about | {"training": name, "gaps": some} for name, some in gaps.items()]
    lines.insert(0, bound.record() | {"problem": problem.name})
    return Shown(head, rows, drawn, [says], lines)


def gaps_of(one: Training, rows: Rows, bound: Bound) -> list[float]:
    """The gap after each epoch, the median of some seeds."""
    runs = []
    for seed in range(SEEDS):
        result = orders.trained(one.order, rows, one.options | {"seed": seed})
        runs.append([bound.gap(row["objective"]) for row in result.trace])
    return [median(epoch) for epoch in zip(*runs, strict=True)]
