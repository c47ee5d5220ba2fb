"""Bottou's two tables of RCV1: seconds and test errors of batch methods and of SGD.

Published figures: L. Bottou, "Large-Scale Machine Learning with Stochastic Gradient Descent",
COMPSTAT 2010 (SVMLight, SVMPerf, TRON, and SGD of 2007), and svm/README.txt of his programs sgd-2.0
of 2011 (LIBLINEAR 1.8, TRON at l2 = 5e-7, and SGD of 2011).
"""

import math
from itertools import chain

from experiments import lesson
from experiments.lesson import Point, Problem, Shown
from experiments.run_rows import Data

TITLE = "Bottou's tables: seconds and test errors on RCV1"
INTRO = (
    "Bottou learned to tell one topic of the Reuters collection RCV1: 781,265 articles to train "
    "on, 23,149 to test on, 47,152 words. A small program for stochastic gradient descent came to "
    "the test error of the best programs of its time, in a second where they took a minute or "
    "hours. The lines marked as published are his, measured on his machines between 2007 and 2011 "
    "on the real articles. The other lines are measured here, on generated rows of the same shape. "
    "Compare published seconds in orders of magnitude only, and do not compare published test "
    "errors with those measured here: on the generated rows no model can err on fewer than 6 %."
)
WHY = (
    "A batch method looks at all rows before it moves once. Rows of text repeat each other, so "
    "most of that work tells nothing new. SGD moves after each row, and after one to five passes "
    "is as near to the optimum as the test error can tell: what remains of the gap is small beside "
    "the difference that other test rows would make. A weaker penalty (a smaller l2) needs more "
    "passes from SGD, because its learning rate falls as 1 / (l2 t). The default is dual "
    "coordinate ascent for these losses. It, too, moves after each row, but by the exact best step "
    "for that row, so it needs no learning rate; and it knows a lower bound of the optimum, so it "
    "knows when to stop."
)
REPEATS = 3
HEAD = ["seconds", "objective", "gap", "test error", "passes"]
TAKES: tuple[str, ...] = ("published",)
VARIES: tuple[str, ...] = ()


def shown(problem: Problem, data: Data) -> Shown:
    """Each training beside what was published."""
    bound = lesson.bound(problem, data.train)
    found = [(one, lesson.points(one, data, REPEATS)[0]) for one in problem.trainings]
    rows = [
        [
            *(f"published: {line['name']}", f"{line['seconds']:,g}", "-", "-"),
            *(lesson.percent(line["test_error"]), "-"),
        ]
        for line in problem.published
    ]
    rows += [
        [
            *(one.name, f"{point.seconds:.3f}", f"{point.objective:.6f}"),
            *(lesson.short(bound.gap(point.objective)), lesson.percent(point.test["error"])),
            f"{point.passes():.0f}",
        ]
        for one, point in found
    ]
    record = chain.from_iterable(lesson.lines(problem, one, [point]) for one, point in found)
    lines = [bound.record() | {"problem": problem.name}, *record]
    says = seen({one.name: point for one, point in found}, len(data.test))
    return Shown([problem.name, *HEAD], rows, "", says, lines)


def seen(found: dict[str, Point], tested: int) -> list[str]:
    """What was proved, and what of the differences between test errors is chance."""
    says = [
        f"{name} ({point.chosen('solver')}) is proved to be within "
        f"{100 * point.result.trace[-1]['gap']:.2g} % of the optimum."
        for name, point in found.items()
        if point.result and point.chosen("proves")
    ]
    errors = [point.test["error"] for point in found.values()]
    largest, least = 100 * (max(errors) - min(errors)), min(errors)
    chance = 100 * math.sqrt(least * (1 - least) / tested)
    return [
        *says,
        f"The largest difference between our test errors is {largest:.2f} percentage points. The "
        f"standard error of each, for {tested:,} rows, is {chance:.2f}.",
    ]
