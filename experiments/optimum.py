"""The optimum of the objective that hogwild descends, with a proof: an independent solver.

    F(w, b) = l2/2 |w|^2 + 1/n sum_i loss(m_i),    m_i = y_i (w.x_i + b),    b not penalised

Any dual point a in [0, 1]^n with sum_i a_i y_i = 0 (needed for the sake of b) bounds F from below:

    D(a) = 1/n sum_i c(a_i) - |v|^2 / (2 l2),    v = 1/n sum_i a_i y_i x_i
    c(a) = a for the hinge, -a log a - (1 - a) log(1 - a) for the logistic loss

so the true optimum lies between the best F and the best D seen, whatever the solver did.

The logistic loss is smooth: Newton's method, its linear systems solved by conjugate gradients.
The hinge is made smooth by the proximal point method on its dual (Rockafellar 1976; with Newton
steps: Li, Sun, Toh 2018): round by round, with a centre k that is the last round's a,

    loss(m) = max_a a (1 - m) - s/2 (a - k)^2,    a in [0, 1]

The centres lead to the exact optimum; only rows with 0 < a < 1 have a curvature, and they are few.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from scipy.special import entr, expit

from hogwild.data.rows import Rows
from hogwild.errors import HogwildError, OptionError
from hogwild.kernels.compile import inline, kernel
from hogwild.kernels.primitives import U, prefetch, readonly, writable

Vector = npt.NDArray[np.float64]

FIRST_WIDTH = 4.0  # of the smoothing: all rows have a curvature at the start
NEXT_WIDTH = 0.5  # of the width, from round to round
LAST_WIDTH = 1e-7
ROUND_ENDS = 0.2  # when its own gap is this part of the true one
ACCURACY = 0.03  # a Newton system leaves at most this part of the gradient
STEEPNESS = 0.2  # what a line search may leave of the slope
DAMPING = 1e-6  # the intercept's curvature where no row has any
ROUNDING = 1e-12  # relative: what float64 sums of millions are good for, with room to spare
MOST_STEPS = 1000  # of conjugate gradients in a Newton system
MOST_TRIALS = 60  # of a line search

Arrays = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.float32]]

CSR = (readonly(types.uint64), readonly(types.uint32), readonly(types.float32))
VECTOR = readonly(types.float64)
OUTPUT = writable(types.float64)


@inline
def row_dot(indices: Any, values: Any, begin: Any, end: Any, vector: Any) -> Any:
    total = 0.0
    for k in range(begin, end):
        total += vector[indices[k]] * values[k]
    return total


@inline
def add_row(indices: Any, values: Any, begin: Any, end: Any, factor: Any, out: Any) -> None:
    for k in range(begin, end):
        out[indices[k]] += factor * values[k]


@kernel(types.void(*CSR, VECTOR, OUTPUT))
def rows_times(indptr: Any, indices: Any, values: Any, vector: Any, out: Any) -> None:
    """out_i = x_i . vector"""
    for i in range(U(0), U(out.size)):
        out[i] = row_dot(indices, values, indptr[i], indptr[i + U(1)], vector)


@kernel(types.void(*CSR, VECTOR, OUTPUT, OUTPUT))
def sum_rows(
    indptr: Any, indices: Any, values: Any, factors: Any, positive: Any, negative: Any
) -> None:
    """Adds factor_i x_i to `positive` or to `negative`, by the factor's sign."""
    for i in range(U(0), U(factors.size)):
        if factors[i] > 0.0:
            add_row(indices, values, indptr[i], indptr[i + U(1)], factors[i], positive)
        elif factors[i] < 0.0:
            add_row(indices, values, indptr[i], indptr[i + U(1)], factors[i], negative)


@kernel(types.void(*CSR, readonly(types.uint64), VECTOR, types.float64, VECTOR, OUTPUT))
def add_curvature(
    indptr: Any,
    indices: Any,
    values: Any,
    chosen: Any,
    curvature: Any,
    one: Any,
    vector: Any,
    out: Any,
) -> None:
    """out += sum_i h_i (x_i, one) (x_i, one) . vector, over the chosen rows"""
    last = U(vector.size) - U(1)
    count = U(chosen.size)
    for c in range(U(0), count):
        ahead = chosen[min(c + U(6), count - U(1))]
        for k in range(indptr[ahead], indptr[ahead + U(1)], U(16)):
            prefetch(indices, k)
            prefetch(values, k)
        i = chosen[c]
        begin = indptr[i]
        end = indptr[i + U(1)]
        score = row_dot(indices, values, begin, end, vector) + one * vector[last]
        factor = curvature[c] * score
        add_row(indices, values, begin, end, factor, out)
        out[last] += factor * one


@kernel(types.void(*CSR, readonly(types.uint64), VECTOR, types.float64, OUTPUT))
def add_diagonal(
    indptr: Any, indices: Any, values: Any, chosen: Any, curvature: Any, one: Any, out: Any
) -> None:
    """out += the diagonal of what `add_curvature` multiplies by (a column twice in a row apart)"""
    last = U(out.size) - U(1)
    for c in range(U(0), U(chosen.size)):
        i = chosen[c]
        for k in range(indptr[i], indptr[i + U(1)]):
            out[indices[k]] += curvature[c] * values[k] * values[k]
        out[last] += curvature[c] * one * one


class Optimum(NamedTuple):
    """What was found: the true optimum lies between `lower_bound` and `objective`."""

    objective: float
    lower_bound: float
    weights: Vector
    intercept: float
    seconds: float
    certified: bool  # whether the gap asked for was reached

    @property
    def gap(self) -> float:
        """How far from the true optimum `objective` can be, relative to itself."""
        return (self.objective - self.lower_bound) / self.objective


class Smoothing(NamedTuple):
    """What makes the hinge smooth: the last round's duals k, and the width s."""

    centre: Vector
    width: float


class Smooth(NamedTuple):
    """A (smoothed) loss at all rows: its mean, the duals a = -loss'(m), loss''(m)."""

    mean: float
    duals: Vector
    curvature: Vector


class Loss(NamedTuple):
    mean: Callable[[Vector], float]  # of loss(m_i)
    conjugate: Callable[[Vector], float]  # the mean of c(a_i)
    smooth: Callable[[Vector, Smoothing], Smooth]  # at margins
    is_smooth: bool  # by itself: one round will do, and Smoothing means nothing


def hinge_mean(margins: Vector) -> float:
    return float(np.mean(np.maximum(0.0, 1.0 - margins)))


def hinge_conjugate(duals: Vector) -> float:
    return float(np.mean(duals))


def hinge_smooth(margins: Vector, smoothing: Smoothing) -> Smooth:
    centre, width = smoothing
    short = 1.0 - margins
    duals = np.clip(centre + short / width, 0.0, 1.0)
    mean = np.mean(duals * short - width / 2 * (duals - centre) ** 2)
    inside = (duals > 0.0) & (duals < 1.0)
    return Smooth(float(mean), duals, inside / width)


def logistic_mean(margins: Vector) -> float:
    return float(np.mean(np.logaddexp(0.0, -margins)))


def logistic_conjugate(duals: Vector) -> float:
    return float(np.mean(entr(duals) + entr(1.0 - duals)))


def logistic_smooth(margins: Vector, smoothing: Smoothing) -> Smooth:
    duals = expit(-margins)
    return Smooth(logistic_mean(margins), duals, duals * expit(margins))


LOSSES = {
    "hinge": Loss(hinge_mean, hinge_conjugate, hinge_smooth, is_smooth=False),
    "logistic": Loss(logistic_mean, logistic_conjugate, logistic_smooth, is_smooth=True),
}


class Problem(NamedTuple):
    """The objective. Vectors of weights have one entry more, the intercept, at their end.

    It is the weight of a further column whose value is `one` in every row: 1, or 0 for none.
    """

    csr: Arrays
    columns: int
    targets: Vector
    loss: Loss
    l2: float
    one: float


class Point(NamedTuple):
    """A vector of weights, and what is to be known there."""

    vector: Vector
    margins: Vector
    objective: float  # F
    bound: float  # D at the duals of this point, made feasible
    value: float  # F with the smoothed loss: what a round descends
    value_bound: float  # its own lower bound
    duals: Vector
    curvature: Vector
    gradient: Vector  # of `value`


def margins_of(problem: Problem, vector: Vector) -> Vector:
    scores = np.empty(len(problem.targets))
    rows_times(*problem.csr, vector, scores)
    margins: Vector = problem.targets * (scores + problem.one * vector[-1])
    return margins


def objective_at(problem: Problem, vector: Vector, margins: Vector) -> float:
    """F"""
    return problem.l2 / 2 * float(vector[:-1] @ vector[:-1]) + problem.loss.mean(margins)


def look(problem: Problem, vector: Vector, margins: Vector, smoothing: Smoothing) -> Point:
    """Both objectives and both bounds at a vector whose margins are known."""
    loss, l2 = problem.loss, problem.l2
    smooth = loss.smooth(margins, smoothing)

    # the sums of a_i y_i (x_i, one) / n, apart for each class
    factors = smooth.duals * problem.targets / len(margins)
    positive, negative = np.zeros_like(vector), np.zeros_like(vector)
    sum_rows(*problem.csr, factors, positive, negative)
    positive[-1] = problem.one * np.sum(factors, where=factors > 0.0)
    negative[-1] = problem.one * np.sum(factors, where=factors < 0.0)
    gradient = -positive - negative
    gradient[:-1] += l2 * vector[:-1]

    scale_positive, scale_negative = feasible_scales(positive[-1], -negative[-1])
    duals = smooth.duals * np.where(problem.targets > 0.0, scale_positive, scale_negative)
    v = scale_positive * positive[:-1] + scale_negative * negative[:-1]
    objective = objective_at(problem, vector, margins)
    bound = loss.conjugate(duals) - float(v @ v) / (2 * l2) - ROUNDING * objective
    slack = 0.0
    if not loss.is_smooth:
        slack = smoothing.width / 2 * float(np.mean((duals - smoothing.centre) ** 2))
    return Point(
        vector=vector,
        margins=margins,
        objective=objective,
        bound=bound,
        value=l2 / 2 * float(vector[:-1] @ vector[:-1]) + smooth.mean,
        value_bound=bound - slack,
        duals=smooth.duals,
        curvature=smooth.curvature,
        gradient=gradient,
    )


def feasible_scales(positive: float, negative: float) -> tuple[float, float]:
    """What to multiply the two classes' duals by, at most 1, to make their sums equal."""
    smaller = min(positive, negative)
    return (
        smaller / positive if positive > 0.0 else 1.0,
        smaller / negative if negative > 0.0 else 1.0,
    )


def newton_direction(problem: Problem, point: Point, accuracy: float, deadline: float) -> Vector:
    """Solves (Hessian) direction = -gradient, up to a residual of `accuracy` times the gradient.

    Conjugate gradients, preconditioned with the diagonal.
    """
    chosen = np.flatnonzero(point.curvature)
    rows = chosen.astype(np.uint64)
    curvature = point.curvature[chosen] / len(point.curvature)
    penalty = np.full_like(point.vector, problem.l2)
    penalty[-1] = DAMPING
    diagonal = penalty.copy()
    add_diagonal(*problem.csr, rows, curvature, problem.one, diagonal)

    solution = np.zeros_like(penalty)
    residual = -point.gradient
    scaled = residual / diagonal
    direction = scaled
    size = first = residual @ scaled
    for _ in range(MOST_STEPS):
        product = penalty * direction
        add_curvature(*problem.csr, rows, curvature, problem.one, direction, product)
        step = size / (direction @ product)
        solution += step * direction
        residual -= step * product
        scaled = residual / diagonal
        before, size = size, residual @ scaled
        if size <= accuracy**2 * first or time.perf_counter() > deadline:
            break
        direction = scaled + size / before * direction
    return solution


def line_search(
    problem: Problem, point: Point, direction: Vector, slopes: Vector, smoothing: Smoothing
) -> float:
    """A step along `direction` (its margins are `slopes`) that leaves little of the descent.

    The function is convex: where it still falls the step is too short, where it rises too long.
    0 where rounding hides all descent.
    """
    linear = problem.l2 * float(point.vector[:-1] @ direction[:-1])
    square = problem.l2 * float(direction[:-1] @ direction[:-1])
    allowed = STEEPNESS * abs(float(point.gradient @ direction))
    penalty = problem.l2 / 2 * float(point.vector[:-1] @ point.vector[:-1])
    highest = point.value + ROUNDING * point.objective
    short, long, step = 0.0, np.inf, 1.0
    for _ in range(MOST_TRIALS):
        smooth = problem.loss.smooth(point.margins + step * slopes, smoothing)
        value = penalty + step * linear + step**2 / 2 * square + smooth.mean
        slope = linear + step * square - float(np.mean(smooth.duals * slopes))
        if abs(slope) <= allowed and value <= highest:
            return step
        if slope > 0.0 or value > highest:
            long = step
        else:
            short = step
        step = 2 * step if long == np.inf else (short + long) / 2
    return 0.0


def descend(problem: Problem, gap: float, deadline: float) -> tuple[Vector, float]:
    """The best weights and the best lower bound that could be found in time."""
    targets = problem.targets
    vector = np.zeros(problem.columns + 1)
    best_vector, best, lower_bound = vector, np.inf, 0.0
    margins = np.zeros_like(targets)
    smoothing = Smoothing(balanced_duals(targets), FIRST_WIDTH)
    while True:
        point = look(problem, vector, margins, smoothing)
        lower_bound = max(lower_bound, point.bound)
        if point.objective < best:
            best_vector, best = point.vector, point.objective
        if best - lower_bound <= gap * best or time.perf_counter() > deadline:
            return best_vector, lower_bound
        own_gap = point.value - point.value_bound
        if not problem.loss.is_smooth and own_gap <= ROUND_ENDS * (point.objective - point.bound):
            width = max(NEXT_WIDTH * smoothing.width, LAST_WIDTH)
            smoothing = Smoothing(point.duals, width)
            continue
        accuracy = min(ACCURACY, max(own_gap / point.objective, 0.0) ** 0.25)
        direction = newton_direction(problem, point, accuracy, deadline)
        slopes = margins_of(problem, direction)
        step = line_search(problem, point, direction, slopes, smoothing)
        if step == 0.0:
            return best_vector, lower_bound
        vector = point.vector + step * direction
        margins = point.margins + step * slopes


def balanced_duals(targets: Vector) -> Vector:
    """Duals with the same sum, and at most 1/2, for both classes."""
    positive = float(np.mean(targets > 0.0))
    scale_positive, scale_negative = feasible_scales(positive, 1.0 - positive)
    duals: Vector = np.where(targets > 0.0, scale_positive, scale_negative) / 2
    return duals


def optimum(
    rows: Rows, loss: str, l2: float, intercept: bool, gap: float = 1e-5, seconds: float = 300.0
) -> Optimum:
    """Descends until the relative gap between objective and lower bound is at most `gap`.

    Where that takes more than `seconds`, or more digits than float64 has, the result is what was
    found by then, and not `certified`. The bound allows for rounding: `gap` must be above 1e-12.
    """
    problems = []
    if loss not in LOSSES:
        problems.append(f"loss {loss!r} is unknown; there are {', '.join(LOSSES)}")
    for name, value in ("l2", l2), ("gap", gap), ("seconds", seconds):
        if not 0 < value < np.inf:
            problems.append(f"{name} {value} has to be positive and finite")
    if gap <= ROUNDING:
        problems.append(f"gap {gap} is not above {ROUNDING}, which float64 cannot prove")
    if problems:
        raise OptionError("; ".join(problems))
    start = time.perf_counter()
    problem = Problem(
        csr=(rows.indptr, rows.indices, rows.values),
        columns=rows.columns,
        targets=rows.targets().astype(np.float64),
        loss=LOSSES[loss],
        l2=l2,
        one=1.0 if intercept else 0.0,
    )
    vector, lower_bound = descend(problem, gap, start + seconds)
    # the margins were brought up to date step by step: once more, from the weights
    objective = objective_at(problem, vector, margins_of(problem, vector))
    return Optimum(
        objective=objective,
        lower_bound=lower_bound,
        weights=vector[:-1],
        intercept=float(vector[-1]),
        seconds=time.perf_counter() - start,
        certified=objective - lower_bound <= gap * objective,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="The optimum of the objective, with a proof.")
    parser.add_argument("data", help="labelled rows, in any format that hogwild reads")
    parser.add_argument("--loss", choices=list(LOSSES), default="hinge")
    parser.add_argument("--l2", type=float, default=1e-4)
    parser.add_argument("--no-intercept", action="store_true")
    parser.add_argument("--gap", type=float, default=1e-5, help="relative (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=300.0, help="at most")
    options = parser.parse_args()

    from hogwild.data.files import load

    try:
        rows = load(options.data)
        found = optimum(
            rows, options.loss, options.l2, not options.no_intercept, options.gap, options.seconds
        )
    except HogwildError as error:
        raise SystemExit(f"error: {error}") from None
    print(f"objective    {found.objective:.10g}")
    print(f"lower bound  {found.lower_bound:.10g}")
    print(f"gap          {found.gap:.2e}" + ("" if found.certified else "  (NOT what was asked)"))
    print(f"intercept    {found.intercept:.6g}")
    print(f"seconds      {found.seconds:.2f}")
    if not found.certified:
        raise SystemExit(1)


if __name__ == "__main__":
    # under the module's own name: the cached kernels carry it, and look it up
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from experiments.optimum import main as run

    run()
