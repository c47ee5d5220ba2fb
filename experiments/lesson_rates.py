"""The objective after some epochs of SGD, by the first learning rate and its schedule.

After L. Bottou, "Stochastic Gradient Descent Tricks", 2012, whose advice is to try rates on a
sample of the rows, since the best one depends on the data, the loss and the penalty.
"""

import math

from experiments import lesson
from experiments.lesson import CERTAINTY, Bound, Point, Problem, Shown, Training
from experiments.run_rows import Data
from hogwild import DivergenceError
from hogwild.scaling.svg import line_plot, logarithmic

TITLE = "Learning rates: how much the first one matters"
INTRO = (
    "SGD has one number that somebody must choose: the first learning rate, eta0. Here it goes "
    "from 0.01 to 1,000, with three schedules: inverse, eta0 / (1 + l2 eta0 t); sqrt, eta0 / "
    "sqrt(t); and constant. t counts rows. Each training makes ten epochs with one worker and "
    "returns its last weights; constant also with averaged weights. Beside them are two that are "
    "given no rate: sgd as hogwild runs it, which finds eta0 on a sample of the rows; and the "
    "default, which stops when it is proved to be within 0.1 % of the optimum. A star marks "
    "trainings whose objective rose: hogwild then goes back an epoch and halves the rate, so they "
    "ended with a smaller one than they were given."
)
WHY = (
    "A rate that is too small does not get there within ten epochs. One that is too large makes "
    "each row undo what others taught, and the weights keep jumping around the optimum, with a "
    "constant rate forever, and the farther away the larger it is. The schedule inverse forgives "
    "every rate that is large enough: after some 1 / (l2 eta0) rows its rate is about 1 / (l2 t), "
    "whatever eta0 was. With a small eta0 that is more rows than ten epochs have. The schedule "
    "sqrt ends with the rate eta0 / sqrt(t), so it must begin with one that is far too large. The "
    "mean of many weights is quieter than the last ones, which helps a constant rate most. The "
    "best rate is another one for each schedule, loss and penalty, so no fixed number would do. "
    "The default, dual coordinate ascent, has no rate."
)
TAKES: tuple[str, ...] = ()
VARIES: tuple[str, ...] = ("eta0",)
GOOD = 2.0  # times the least gap: near enough to it


def shown(problem: Problem, data: Data) -> Shown:
    """A curve for each schedule, and a level line for each training without a rate."""
    bound = lesson.bound(problem, data.train)
    found = [(one, points(one, data)) for one in problem.trainings]
    rates = sorted({value for one, _ in found for value in one.values})
    gaps = {
        one.name: [(point.value, bound.gap(point.objective)) for point in some]
        if one.varied
        else [(rate, bound.gap(some[0].objective)) for rate in (rates[0], rates[-1])]
        for one, some in found
    }
    seen_gaps = {
        name: [(rate, max(gap, CERTAINTY)) for rate, gap in some if math.isfinite(gap)]
        for name, some in gaps.items()
    }
    x = logarithmic("eta0", rates)
    y = logarithmic("gap", [gap for some in seen_gaps.values() for _, gap in some])
    drawn = line_plot(f"{problem.name}: gap against eta0", lesson.curves(seen_gaps), x, y)
    rows = [cells(one, some, bound, rates) for one, some in found]
    lines = [line for one, some in found for line in lesson.lines(problem, one, some)]
    head = [f"{problem.name}: gap with eta0", *(f"{rate:g}" for rate in rates), "found"]
    says = [seen(one, some, bound) for one, some in found]
    return Shown(head, rows, drawn, says, [bound.record() | {"problem": problem.name}, *lines])


def points(one: Training, data: Data) -> list[Point]:
    """What it came to with each rate."""
    found = []
    for rate, _, options in one.each(len(data.train)):
        try:
            found.append(lesson.point(rate, data.train, data.test, options))
        except DivergenceError:
            found.append(Point(rate, len(data.train)))
    return found


def cells(one: Training, some: list[Point], bound: Bound, rates: list[float]) -> list[str]:
    """A row of the table; a star where the rate was halved."""
    if not one.varied:
        return [one.name, *("" for _ in rates), _cell(some[0], bound)]
    by_rate = {point.value: _cell(point, bound) for point in some}
    return [one.name, *(by_rate.get(rate, "") for rate in rates), ""]


def _cell(point: Point, bound: Bound) -> str:
    if point.result is None:
        return "diverged"
    star = "*" if _halved(point) else ""
    return lesson.short(bound.gap(point.objective)) + star


def _halved(point: Point) -> bool:
    state = point.result.state if point.result else None
    return bool(point.value and state and state.eta0 < point.value)


def seen(one: Training, some: list[Point], bound: Bound) -> str:
    """Which rates were good ones."""
    least = min(some, key=lambda point: point.objective)
    gap = bound.gap(least.objective)
    if not one.varied:
        of_sgd = f"eta0 = {least.chosen('eta0'):g} was found; the gap is {lesson.short(gap)}."
        of_others = f"there is no rate; the gap is {lesson.short(gap)}."
        return f"{one.name}: {of_others if least.chosen('proves') else of_sgd}"
    good = [point.value for point in some if bound.gap(point.objective) <= GOOD * gap]
    says = f"{one.name}: eta0 = {least.value:g} has the least gap, {lesson.short(gap)}; "
    if len(good) == 1:
        return f"{says}with all others it is more than {GOOD:g} times as large."
    return f"{says}from {min(good):g} to {max(good):g} it is at most {GOOD:g} times as large."
