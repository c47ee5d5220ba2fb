"""The choice of the strategy and of the number of workers, with the reason."""

from typing import NamedTuple

from hogwild import machine
from hogwild.config import Config
from hogwild.errors import OptionError
from hogwild.learn.problem import BlockProblem, Problem, RowProblem
from hogwild.loops.strategies import ALL_STRATEGIES, AUTO, PASSES, STRATEGIES

# Non-zeros: in all epochs, or in one epoch of a solver with a proof. With fewer, a second worker
# costs more than it saves. The second limit is for passes, which threads share
WORTH_A_WORKER = 5_000_000
WORTH_A_THREAD = 400_000
# The cost of copies of the weights in an epoch, in non-zeros per column and worker. If copies cost
# more than this share of the epoch, workers may write to one array instead
COPYING = 10
MOST_COPYING = 0.3
# Weights per unit of effort. Above this, copying weights to and from workers that share heads takes
# longer than a second worker saves: 20 classes, 25,000 rows of RCV1's shape (101 classes: 0.4)
MOST_HANDED_IN = 0.2


class Choice(NamedTuple):
    """A strategy, a number of workers, and why, in a line."""

    strategy: str
    workers: int
    why: str


def choose(problem: Problem, config: Config) -> Choice:
    """Follows the given options, and chooses the others for speed."""
    choice = _choice(problem, config)
    if (
        problem.proves
        and choice.workers == 1
        and config.strategy == AUTO
        and choice.strategy == "combine"
    ):
        choice = choice._replace(strategy="hogwild")  # one worker needs no copy
    loses = choice.workers > 1 and ALL_STRATEGIES[choice.strategy].loses
    if loses and isinstance(problem, RowProblem) and problem.step.exact:
        able = ", ".join(n for n, one in STRATEGIES.items() if one.rows and not one.loses)
        raise OptionError(
            f"strategy: {problem.step.name} needs a strategy that loses no addition ({able}), or "
            f"one worker; not {choice.strategy}"
        )
    return choice


def _choice(problem: Problem, config: Config) -> Choice:
    cores = machine.usable_cores()
    most = min(config.workers or cores, problem.most_workers)
    strategy, why, pays = _strategy(problem, config, most)
    if strategy == "heads":
        assert isinstance(problem, RowProblem)
        most = min(most, problem.groups)
    if config.workers is not None:
        if most < config.workers:
            why = f"{config.workers} workers were asked for, but at most {most} can work at once"
        return Choice(strategy, most, why)
    if cores == 1:
        return Choice(strategy, 1, "only one core may be used")
    epochs = 1 if config.proves else config.epochs or 1
    least = WORTH_A_THREAD if strategy == PASSES else WORTH_A_WORKER
    if problem.effort * epochs < least:
        return Choice(strategy, 1, "too little work to share")
    return Choice(strategy, most if pays else 1, why)


def _strategy(problem: Problem, config: Config, workers: int) -> tuple[str, str, bool]:
    """A strategy, why, and whether several workers are faster than one with it."""
    if isinstance(problem, BlockProblem):
        if config.strategy == "hogwild":
            return "hogwild", "two ratings at a time seldom share a user or an item", True
        return "strata", "workers take blocks that share no user and no item", True
    assert isinstance(problem, RowProblem)
    if problem.passes:
        return PASSES, f"{problem.passes}, which workers share", True
    if config.strategy == "hogwild" and config.workers is None:
        pays, reason = problem.sharing()
        return "hogwild", reason, pays
    if config.strategy == "heads" or (config.strategy == AUTO and problem.groups >= workers > 1):
        return "heads", *_dealing(problem)
    if config.strategy != AUTO:
        return config.strategy, "as asked", True
    if config.deterministic and problem.groups > 1:
        return "heads", *_dealing(problem)
    if config.deterministic:
        name = next(n for n, s in STRATEGIES.items() if s.deterministic and s.rows)
        return name, "its result does not depend on the number of workers", True
    if workers == 1:
        return "hogwild", "there is one worker", False
    strategy, why, pays = _fastest(problem, workers)
    if problem.step.exact and strategy == "hogwild":
        return ("combine", why, True) if config.workers else ("hogwild", why, False)
    if config.is_perceptron and strategy == "combine":
        why = "steps of perceptrons never get shorter: added up, those of several workers overshoot"
        return "mixed", why, pays
    return strategy, why, pays


def _dealing(problem: RowProblem) -> tuple[str, bool]:
    """Why workers share the classes or do not, and whether several workers are faster than one."""
    if problem.groups == 1:
        return "the weights cannot be learned in parts", False
    if problem.size > MOST_HANDED_IN * problem.effort:
        weights = f"copies of the weights of {problem.columns:,} columns"
        return f"{weights} take long beside so few rows", False
    return f"no class depends on another: workers share {problem.groups} groups of them", True


def _fastest(problem: RowProblem, workers: int) -> tuple[str, str, bool]:
    """Copies if they cost little; else one array if that is faster; else the better of both."""
    copying = COPYING * workers * problem.size / max(1, problem.effort)
    weights = f"copies of {problem.columns:,} weights"
    if copying <= MOST_COPYING:
        return "combine", f"{weights} cost little beside the rows", True
    pays, reason = problem.sharing()
    if pays:
        return "hogwild", reason, True
    name = "combine" if copying <= 1 else "hogwild"
    return name, f"{weights} take long beside so few rows, and {reason}", False
