"""Chooses the solver of a linear model, and says why: by the options, then by the data."""

from typing import TYPE_CHECKING

import numpy as np

from hogwild.data.labels import LabelSets
from hogwild.data.mapped_rows import MappedRows
from hogwild.data.rows import Rows, different
from hogwild.errors import DataError
from hogwild.learn.cholesky import (
    MOST_COLUMNS,
    MOST_WORTH,
    are_few,
    are_rows_few,
    operations,
    products_worth,
    products_worth_by_rows,
)
from hogwild.learn.duals import DUALS
from hogwild.learn.losses import LOSSES
from hogwild.learn.needs import KINKED, ON_COLUMNS
from hogwild.learn.row_sizes import UNEQUAL, has_outliers, inequality, median_and_deviation
from hogwild.loops.strategies import AUTO

if TYPE_CHECKING:
    from hogwild.config import Config
    from hogwild.learn.heads import Heads

Choice = tuple[str, str]  # a solver, and why

# Besides AUTO
SOLVERS = ("sgd", "dual", "newton", "cg", "closed", "coordinate", "gd", "lbfgs")
SGD, DUAL, NEWTON, CG, CLOSED, COORDINATE, GD, LBFGS = SOLVERS
METHODS = {  # of the solvers with a proof
    DUAL: "dual coordinate ascent",
    NEWTON: "Newton's method",
    CG: "conjugate gradients",
    CLOSED: "normal equations",
    COORDINATE: "coordinate descent on columns",
    GD: "batch gradient descent",
    LBFGS: "L-BFGS",
}
AS_ASKED = "as asked"
OF_DESCENT = ("schedule", "eta0", "beta", "batch")  # options
# Of all heads, rows and twice the columns, for solvers with a proof: 28 bytes each
MOST_NUMBERS = 100_000_000
FEW_COLUMNS = 2_000
DENSE = 0.05  # share of the values that are not 0
MOST_OPERATIONS = 100.0  # of normal equations, for each non-zero
# From this mean squared length on, rows count as unscaled; dual is slow from this many times l2 n
UNSCALED, HARD = 100.0, 1000.0
# The same times, from where interior points are faster with the hinge, where columns are not so few
# that each step has a matrix
HARD_WITH_FEW, FEWEST_COLUMNS = 40.0, 500
# A share of the rows: 50,000 rows, 3 % of them positive, 300 columns, hinge with an l2 of 1e-6 take
# 0.26 s with dual and 0.56 s with newton
RARE = 0.1
# Where columns are more than a few hundred, dual ascent is faster at a strong penalty: 10,000 rows
# of 500 dense columns and length 1, l2 1e-4, take 0.06 s with dual, 0.22 s with newton
HUNDREDS, EASY = 300, 10.0
# The same times, over the deviation of the targets, from where dual ascent is slow with a loss of
# numbers; the latter applies to fewer rows than columns, where weights may fit all targets
HARD_FOR_NUMBERS, HARD_FOR_FEW_ROWS = 40.0, 5000.0
# Rows for each column, from where a smooth loss is faster than interior points; the latter number
# is for a smaller tol than `TIGHT`
EACH, TIGHT, EACH_IF_TIGHT = 12, 1e-4, 60
# Rows times the square of columns, up to where interior points take little time; where classes are
# nearly separable, as those of scikit-learn's digits, they take half the time of a smooth hinge
SMALL = 1e7
# Non-zeros, from where dual ascent has a second worker, which Newton's first passes do not have
MOST_FIRST = 5_000_000
# Classes, from where descent with a smooth loss is faster unless the penalty is weak: 20 topics of
# RCV1, logistic with an l2 of 1e-4, end with a gap of 6e-4 after 0.09 s, and not 1e-4 after 0.37 s.
# With the hinge the gap is 6e-3
MANY_HEADS = 8


def by_options(config: "Config") -> Choice:
    """The solver for these options, which may be wrong ones."""
    given = [name for name in OF_DESCENT if getattr(config, name)]
    given += ["strategy"] * (config.strategy != AUTO) + ["average"] * (not config.average)
    given += ["merge"] * (config.merge == "vote")
    given += ["patience"] * (config.patience != type(config).patience)
    if config.early_stopping is not None:
        return SGD, "early stopping is by its epochs"
    if given:
        return SGD, f"{given[0]} is an option of it"
    loss = str(config.loss_name)
    if config.zeroes:
        if loss in ON_COLUMNS:
            return COORDINATE, "weights become zero where the optimum's are, with a proof"
        return SGD, f"no other solver has an l1 and the loss {loss}"
    if config.l2 == 0:
        return SGD, "without a penalty nothing could be proved"
    if loss in DUALS:
        return DUAL, "it needs no learning rate, and proves how near the optimum it is"
    if loss in LOSSES and LOSSES[loss].is_smooth:
        return NEWTON, "the loss has a second derivative: no learning rate, and a proof"
    return SGD, f"no other solver has the loss {loss}"


def by_data(config: "Config", rows: Rows, heads: "Heads", judged: bool) -> Choice:
    """The same, for rows and the scores that they have; `judged` by rows that end it early."""
    solver, why = config.choice
    if config.solver != AUTO or solver == SGD:
        return solver, why
    if judged:
        return SGD, "rows for validation end it early"
    if heads.several and heads.count * (len(rows) + 2 * rows.columns) > MOST_NUMBERS:
        return SGD, "a number for each class and row would take much memory"
    if _is_for_all_at_once(config, rows, heads):
        return SGD, f"it learns {heads.count:,} {heads.kind} at once"
    if solver != DUAL:
        return solver, why
    return _instead_of_dual(config, rows, heads.several) or (solver, why)


def by_blocks(choice: Choice, config: "Config", heads: "Heads", has_room: bool) -> Choice:
    """The same for rows that stay on the disk; there may be room for dual variables."""
    able = not heads.several
    if choice[0] == SGD or (choice[0] == DUAL and able and (has_room or config.solver == DUAL)):
        return choice
    if config.solver != AUTO:
        several = " for several classes" if choice[0] == DUAL else ""
        raise DataError(
            f"solver: the rows stay on the disk, and {choice[0]} needs them in memory{several}; "
            "take sgd"
        )
    if config.choice[0] == DUAL and able:
        return config.choice if has_room else (SGD, "dual variables would exceed the memory")
    return SGD, "it can learn from rows that stay on the disk"


def _is_for_all_at_once(config: "Config", rows: Rows, heads: "Heads") -> bool:
    """Whether descent is likely faster than solvers that learn one head at a time."""
    if heads.coupled or heads.count < MANY_HEADS or config.zeroes:
        return False
    is_easy = float(config.l2 or 0.0) * len(rows) >= 1.0 and rows.columns > FEW_COLUMNS
    return is_easy and LOSSES[config.loss_name].is_smooth


def _instead_of_dual(config: "Config", rows: Rows, several: bool) -> Choice | None:
    """Another solver with a proof, where that is faster; it may learn several heads."""
    size = len(rows)
    is_smooth = LOSSES[config.loss_name].is_smooth
    if is_smooth and (rows.columns <= FEW_COLUMNS or rows.nonzeros > DENSE * rows.columns * size):
        needed = operations(rows.nonzeros, size, rows.columns)
        if config.loss_name == "squared" and needed <= MOST_OPERATIONS * rows.nonzeros:
            return CLOSED, "columns are few"
        return NEWTON, "columns are few, or most of them are in each row"
    if config.loss_name == "squared" and float(config.l2 or 0.0) * size < 1.0:
        return CG, "the penalty is weak beside so few rows"
    square, ratio = sizes(rows)
    times = square / (float(config.l2 or 0.0) * size)
    if square > UNSCALED and times > HARD and is_smooth:
        return NEWTON, "values are large, and it needs no scaled columns"
    if not several and begins_with_dual(config, size, rows.columns, rows.nonzeros):
        return NEWTON, "the penalty is weak: it begins with passes of dual ascent"
    if config.loss_name == "hinge":
        return _for_hinge(config, rows, times, ratio)
    return _for_numbers(rows, times, ratio) if config.loss_name in KINKED else None


def _for_hinge(config: "Config", rows: Rows, times: float, ratio: float) -> Choice | None:
    if is_smoothed(config, rows.columns, len(rows), rows.nonzeros):
        is_easy = (times <= HARD and _is_rare(rows)) or (times <= EASY and rows.columns > HUNDREDS)
        return None if is_easy else (NEWTON, "columns are few")
    if times > HARD_WITH_FEW and rows.columns <= FEWEST_COLUMNS:
        return NEWTON, "columns are few, and the penalty is small beside the values"
    if times > HARD and _are_interior_points_faster(rows, ratio):
        return NEWTON, "values are large or of very different sizes, and it needs no scaled ones"
    return None


def _for_numbers(rows: Rows, times: float, ratio: float) -> Choice | None:
    if are_few(rows.columns, len(rows), rows.nonzeros):
        return NEWTON, "columns are few"
    deviation = median_and_deviation(np.asarray(rows.y))[1] or 1.0
    few = are_rows_few(len(rows), rows.columns)
    is_cheap = rows.columns <= MOST_COLUMNS or (
        few and products_worth_by_rows(rows.nonzeros, len(rows)) <= MOST_WORTH
    )
    is_hard = times > (HARD_FOR_FEW_ROWS if few else HARD_FOR_NUMBERS) * deviation
    if is_hard and (is_cheap or _are_interior_points_faster(rows, ratio)):
        return NEWTON, "the penalty is small beside the values"
    return None


def begins_with_dual(config: "Config", rows: int, columns: int, nonzeros: int) -> bool:
    """Whether Newton's method begins with passes of dual ascent."""
    known = DUALS.get(str(config.loss_name))
    is_weak = 0.0 < float(config.l2 or 0.0) * rows < 1.0
    is_able = known is not None and known.grows and not known.lean
    return is_able and is_weak and columns > FEW_COLUMNS and nonzeros < MOST_FIRST


def is_smoothed(config: "Config", columns: int, rows: int, nonzeros: int) -> bool:
    """Whether columns are so few that the kinks of a loss are best made smooth."""
    is_tight = config.target is None and config.tol < TIGHT
    is_small = config.loss_name == "hinge" and float(rows) * columns**2 <= SMALL
    return not is_small and are_few(columns, rows, nonzeros, EACH_IF_TIGHT if is_tight else EACH)


def _is_rare(rows: Rows) -> bool:
    """Whether a class is rare: dual ascent soon puts most rows of the others aside."""
    if isinstance(rows.y, LabelSets):
        return len(rows.y.names) * RARE > 1.0
    labels = different(rows.y, rows.name)
    if len(labels) > 2:
        return len(labels) * RARE > 1.0
    share = float(np.mean(rows.y == labels[0]))
    return min(share, 1.0 - share) < RARE


def _are_interior_points_faster(rows: Rows, ratio: float) -> bool:
    """Whether interior points are likely faster where dual ascent is slow; `ratio` as in `sizes`.

    Where they do not factor a matrix in each step, outliers leave their conjugate gradients stuck,
    unless there are so few rows that they can go on with a matrix by rows.
    """
    worth = products_worth(rows.nonzeros, len(rows), rows.columns)
    if rows.columns <= MOST_COLUMNS and worth <= MOST_WORTH:
        return True
    if ratio <= UNEQUAL:
        return False
    few = are_rows_few(len(rows), rows.columns)
    return few or isinstance(rows, MappedRows) or not has_outliers(rows)


def is_unscaled(rows: Rows) -> bool:
    """Whether values are large, or columns of very different sizes."""
    square, ratio = sizes(rows)
    return square > UNSCALED or ratio > UNEQUAL


def sizes(rows: Rows) -> tuple[float, float]:
    """The mean squared length of a row, about; and the mean square of values over a typical one."""
    some = rows.some_values()
    if not len(some):
        return 0.0, 1.0
    square = float(np.mean(some.astype(np.float64) ** 2))
    return square * rows.nonzeros / len(rows), inequality(some)
