"""Which solver learns a linear model: the first that is for the options."""

from hogwild.config import Config
from hogwild.errors import OptionError
from hogwild.learn.ftrl import Ftrl
from hogwild.learn.sgd import Sgd
from hogwild.learn.solver import Solver, Traits

SOLVERS: dict[str, type[Solver]] = {"sgd": Sgd, "ftrl": Ftrl}


def solver_for(config: Config, traits: Traits) -> Solver:
    """The solver that the penalty calls for: steps along a gradient make no weight zero."""
    if config.zeroes and traits.heads.count > 1:
        raise OptionError(
            "l1: it needs one score a row, of two classes or of numbers; leave it out, or train "
            "one class against the rest"
        )
    return SOLVERS["ftrl" if config.zeroes else "sgd"](config, traits)
