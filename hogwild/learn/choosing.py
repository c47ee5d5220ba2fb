"""Which solver learns a linear model, and why, where that is open: by options, then by data."""

from typing import TYPE_CHECKING

import numpy as np

from hogwild.data.rows import Rows
from hogwild.learn.duals import DUALS
from hogwild.learn.losses import LOSSES
from hogwild.learn.needs import KINKED, ON_COLUMNS
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
MOST_SCORES = 100_000_000  # of all rows, for newton with softmax: 28 bytes each
FEW_COLUMNS = 2_000
DENSE = 0.05  # share of the values that are not 0
MOST_OPERATIONS = 100.0  # of normal equations, for each non-zero
# The mean squared length of rows that are not scaled, and times l2 n from where dual is slow
UNSCALED, HARD = 100.0, 1000.0
# The same times, from where newton is faster with the hinge and few columns: a9a with an l2 of 1e-6
# has 400 (0.15 s, and not 1.4), with 1e-4 it has 4 (0.26 s, and not 0.04). And the mean square of
# values over that of a typical one, where columns are of very different sizes
HARD_WITH_FEW, FEWEST_COLUMNS, APART = 40.0, 500, 100.0


def by_options(config: "Config") -> Choice:
    """The solver for these options, which may be wrong ones."""
    given = [name for name in OF_DESCENT if getattr(config, name)]
    given += ["strategy"] * (config.strategy != AUTO) + ["average"] * (not config.average)
    given += ["merge"] * (config.merge == "vote")
    if given:
        return SGD, f"{given[0]} is an option of it"
    if config.early_stopping is not None:
        return SGD, "early stopping is by its epochs"
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
        return SGD, "rows to judge by end it early"
    if heads.coupled and heads.count * len(rows) > MOST_SCORES:
        return SGD, "scores of all classes and rows would take much memory"
    if heads.several and not heads.coupled:
        return SGD, "there are several classes"
    if solver != DUAL:
        return solver, why
    size = len(rows)
    is_smooth = LOSSES[config.loss_name].second is not None
    if is_smooth and (rows.columns <= FEW_COLUMNS or rows.nonzeros > DENSE * rows.columns * size):
        operations = rows.nonzeros**2 / size + float(rows.columns) ** 3
        if config.loss_name == "squared" and operations <= MOST_OPERATIONS * rows.nonzeros:
            return CLOSED, "columns are few"
        return NEWTON, "columns are few, or most of them are in each row"
    if config.loss_name == "squared" and float(config.l2 or 0.0) * size < 1.0:
        return CG, "the penalty is weak beside so few rows"
    square, apart = sizes(rows)
    times = square / (float(config.l2 or 0.0) * size)
    if square > UNSCALED and times > HARD and is_smooth:
        return NEWTON, "values are large, which is nothing to it"
    if config.loss_name in KINKED:
        if times > HARD_WITH_FEW and rows.columns <= FEWEST_COLUMNS:
            return NEWTON, "columns are few, and the penalty is small beside the values"
        if times > HARD and (rows.columns <= FEW_COLUMNS or apart > APART):
            return NEWTON, "values are large or of very different sizes, which is nothing to it"
    return solver, why


def is_unscaled(rows: Rows) -> bool:
    """Whether values are large, or columns of very different sizes."""
    square, apart = sizes(rows)
    return square > UNSCALED or apart > APART


def sizes(rows: Rows) -> tuple[float, float]:
    """The mean squared length of a row, about; and the mean square of values over a typical one."""
    some = rows.some_values().astype(np.float64)
    if not some.any():
        return 0.0, 1.0
    square = float(np.mean(some**2))
    return square * rows.nonzeros / len(rows), square / float(
        np.median(np.abs(some[some != 0]))
    ) ** 2
