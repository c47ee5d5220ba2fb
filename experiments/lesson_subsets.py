"""Test loss against time: SGD beside batch methods on growing subsets of the rows.

After the figure of conjugate gradients in L. Bottou, "Large-Scale Machine Learning with Stochastic
Gradient Descent", COMPSTAT 2010, and L. Bottou and O. Bousquet, "The Tradeoffs of Large Scale
Learning", 2007.
"""

from experiments import lesson
from experiments.lesson import Point, Problem, Shown, Training
from experiments.run_rows import Data
from hogwild.scaling.svg import around, line_plot, logarithmic

TITLE = "Stochastic descent against batch conjugate gradients on growing subsets"
INTRO = (
    "With little time, is it better to solve a small problem well or a large one badly? Each point "
    "is one training, and shows the loss on rows that were not trained on. Batch conjugate "
    "gradients (newton for the log loss, cg for the squared loss) are given the first 10,000, "
    "30,000, 100,000 ... rows, and are stopped at a tolerance, from 1 to 1e-4: a curve for each "
    "number of rows. Beside them are L-BFGS and plain gradient descent (gd) on all rows. SGD makes "
    "one pass over each of these subsets, and then more epochs over all rows. The default proves "
    "its result, and is stopped at the same tolerances."
)
WHY = (
    "A batch method ends at the optimum of its subset. Only more rows can lower the loss on "
    "others, and with more rows every step takes longer. So for each amount of time there is one "
    "best size, and one must know it in advance. SGD need not choose. It sees each row once, and "
    "after some ten thousands of rows it is as good as the optimum of the rows that it has seen. "
    "So one pass over new rows is worth more than many over old ones. The optimum of the training "
    "objective is not quite what is best on other rows: with few rows the weights fit their noise, "
    "and with many the penalty holds them back. So a training that was stopped early can be better "
    "there than one that went on to the optimum, and some curves rise. When to stop, only rows "
    "that are held out would tell."
)
REPEATS = 3
BATCH = ("newton", "cg", "lbfgs", "gd")
TAKES: tuple[str, ...] = ("rows",)
VARIES: tuple[str, ...] = ("rows", "tol", "epochs")
HEAD = ["rows", "stopped at", "seconds", "test loss"]

Found = list[tuple[Training, list[Point]]]


def shown(problem: Problem, data: Data) -> Shown:
    """A curve for each training."""
    found = [(one, lesson.points(one, data, REPEATS)) for one in problem.trainings]
    named = {
        one.name: sorted((point.seconds, point.test["loss"]) for point in some)
        for one, some in found
    }
    every = [place for some in named.values() for place in some]
    x = logarithmic("seconds of training", [seconds for seconds, _ in every])
    y = around("test loss", [loss for _, loss in every])
    drawn = line_plot(f"{problem.name}: test loss against time", lesson.curves(named), x, y)
    rows = [cells(one, point) for one, some in found for point in some]
    lines = [line for one, some in found for line in lesson.lines(problem, one, some)]
    return Shown([problem.name, *HEAD], rows, drawn, seen(found), lines)


def cells(one: Training, point: Point) -> list[str]:
    """A row of the table."""
    stopped = {"tol": f"tol {point.value}", "epochs": f"epoch {point.value}"}
    at = stopped.get(one.varied, "epoch 1")
    loss = f"{point.test['loss']:.5f}"
    return [one.name, f"{point.rows:,}", at, f"{point.seconds:.3f}", loss]


def seen(found: Found) -> list[str]:
    """What a batch method comes to in the time of one pass of SGD, and when it is as good."""
    passes = [some for one, some in found if one.varied == "rows" and some]
    batch = [
        (point, one.name)
        for one, some in found
        for point in some
        if one.options.get("solver") in BATCH
    ]
    if not passes or not batch:
        return []
    one_pass = passes[0][-1]
    loss = one_pass.test["loss"]
    says = [
        f"One pass of SGD over {one_pass.rows:,} rows takes {one_pass.seconds:.3f} s and comes to "
        f"a test loss of {loss:.4f}."
    ]
    in_time = [(point, name) for point, name in batch if point.seconds <= one_pass.seconds]
    if in_time:
        point, name = min(in_time, key=lambda some: some[0].test["loss"])
        says.append(f"The best that a batch method does in that time is {name}: {_loss(point)}.")
    else:
        says.append("No batch method comes to an end in that time.")
    as_low = [(point, name) for point, name in batch if point.test["loss"] <= loss]
    if as_low:
        point, name = min(as_low, key=lambda some: some[0].seconds)
        ratio = point.seconds / one_pass.seconds
        says.append(f"The first to come as low is {name}, after {ratio:.1f} times that time.")
    else:
        point, name = min(batch, key=lambda some: some[0].test["loss"])
        says.append(f"None comes as low. The lowest is {name}: {_loss(point)}.")
    return says


def _loss(point: Point) -> str:
    return f"{point.test['loss']:.4f} after {point.seconds:.3f} s"
