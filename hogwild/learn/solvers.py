"""Which solver learns a linear model: the schedule says so, where the rate is the solver's own."""

from hogwild.config import ADAPTIVE, Config
from hogwild.errors import OptionError
from hogwild.learn.ftrl import Ftrl
from hogwild.learn.heads import Heads
from hogwild.learn.sets import Set
from hogwild.learn.sgd import Sgd
from hogwild.learn.solver import Solver

SOLVERS: dict[str, type[Solver]] = {ADAPTIVE: Ftrl}  # all other schedules are those of Sgd


def solver_for(config: Config, heads: Heads, data: Set, intercept_share: float) -> Solver:
    """The solver of the schedule; with l1 it is Ftrl, as steps along a gradient make no zeros."""
    solver = SOLVERS.get(str(config.schedule), Sgd)(config, heads, data, intercept_share)
    if solver.step.width and heads.count > 1:
        raise OptionError(
            f"{'l1' if config.zeroes else 'schedule'}: it needs one score a row, of two classes or "
            "of numbers; leave it out, or train one class against the rest"
        )
    return solver
