"""Which solver learns a linear model."""

from hogwild.config import Config
from hogwild.problems.sgd import Sgd
from hogwild.problems.solver import Solver, Traits

SOLVERS: dict[str, type[Solver]] = {"sgd": Sgd}


def solver_for(config: Config, traits: Traits) -> Solver:
    """The solver for these options."""
    return SOLVERS["sgd"](config, traits)
