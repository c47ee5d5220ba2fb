"""Which solver learns a linear model: the first that is for the options."""

from hogwild.config import Config
from hogwild.problems.ftrl import Ftrl
from hogwild.problems.sgd import Sgd
from hogwild.problems.solver import Solver, Traits

SOLVERS: dict[str, type[Solver]] = {"sgd": Sgd, "ftrl": Ftrl}


def solver_for(config: Config, traits: Traits) -> Solver:
    """The solver that the penalty calls for: steps along a gradient make no weight zero."""
    return SOLVERS["ftrl" if config.zeroes else "sgd"](config, traits)
