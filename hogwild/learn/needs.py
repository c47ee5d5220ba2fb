"""One table of what each option, loss or strategy needs and excludes.

Each row says "X needs Y". The field in `Config` says which values an option takes. This table says
what options need of each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hogwild.learn.duals import DUALS
from hogwild.learn.losses import CLASSES, LOSSES
from hogwild.loops.strategies import AUTO, STRATEGIES

if TYPE_CHECKING:
    from hogwild.config import Config

KINKED = (
    "hinge",
    "epsilon_insensitive",
    "quantile",
    "absolute",
)  # losses that newton takes although their slopes jump
ON_COLUMNS = "squared", "squared_hinge", "logistic"  # losses of the solver coordinate
SMOOTH = ", ".join(name for name, loss in LOSSES.items() if loss.is_smooth)
DESCENDED = [  # by gd: perceptrons are best at zero weights
    name
    for name, loss in LOSSES.items()
    if (loss.is_smooth or loss.kinds != (CLASSES,)) and name != "perceptron"
]
Test = Callable[["Config"], bool]


@dataclass(frozen=True)
class Need:
    """What an option needs where it is given, and in words."""

    option: str
    given: Test
    met: Test
    words: str


def _given(option: str) -> Test:
    return lambda config: getattr(config, option) not in (None, False)


def _deterministic(config: "Config") -> bool:
    return config.strategy == AUTO or STRATEGIES[config.strategy].deterministic


def _averages(config: "Config") -> bool:
    return config.strategy != AUTO and STRATEGIES[config.strategy].averages


def _has_parameter(option: str) -> Test:
    def has(config: "Config") -> bool:
        own = config.loss_parameter
        return own is not None and own.option == option

    return has


def _dual(met: Test) -> Test:
    """What options need with the solver dual, and otherwise do not."""
    return lambda config: not config.is_dual or met(config)


def _has_second(config: "Config") -> bool:
    """Whether the loss has a second derivative, or one that is like it has."""
    has = LOSSES[config.loss_name].is_smooth
    return has or (config.loss_name in KINKED and (config.l2 or 0) > 0)


def _coordinate(met: Test) -> Test:
    """The same with the solver coordinate."""
    return lambda config: not config.is_coordinate or met(config)


def _only_sgd(config: "Config") -> bool:
    return not config.proves


def _can_ascend(config: "Config") -> bool:
    loses = config.strategy == "hogwild" and config.workers != 1
    return config.strategy in (AUTO, "combine", "ordered", "hogwild") and not loses


NEEDS = (
    Need(
        "solver",
        _given("solver"),
        _dual(lambda config: config.loss_name in DUALS),
        f"a loss with a dual form to be dual: {', '.join(DUALS)}",
    ),
    Need(
        "solver",
        _given("solver"),
        _dual(lambda config: (config.l2 or 0) > 0),
        "an l2 above 0 to be dual",
    ),
    Need(
        "solver",
        _given("solver"),
        lambda config: config.solver != "newton" or _has_second(config),
        f"a loss with a second derivative to be newton: {SMOOTH}; or an l2 above 0 and the loss "
        f"{' or '.join(KINKED)}",
    ),
    Need(
        "solver",
        _given("solver"),
        lambda config: config.solver != "lbfgs" or LOSSES[config.loss_name].is_smooth,
        f"a loss with a derivative to be lbfgs: {SMOOTH}",
    ),
    Need(
        "solver",
        _given("solver"),
        lambda config: config.solver != "gd" or config.loss_name in DESCENDED,
        f"one of these losses to be gd: {', '.join(DESCENDED)}",
    ),
    Need(
        "solver",
        _given("solver"),
        lambda config: config.solver not in ("cg", "closed") or config.loss_name == "squared",
        "the loss squared to be cg or closed",
    ),
    Need(
        "solver",
        _given("solver"),
        lambda config: not config.proves or config.is_coordinate or config.l1 == 0,
        "an l1 of 0 to be another than sgd or coordinate",
    ),
    Need(
        "solver",
        _given("solver"),
        _coordinate(lambda config: config.l1 > 0),
        "an l1 above 0 to be coordinate",
    ),
    Need(
        "solver",
        _given("solver"),
        _coordinate(lambda config: config.loss_name in ON_COLUMNS),
        f"the loss {', '.join(ON_COLUMNS[:-1])} or {ON_COLUMNS[-1]} to be coordinate",
    ),
    Need(
        "strategy",
        _given("strategy"),
        _dual(_can_ascend),
        "to be auto, combine or ordered with the solver dual, or one worker, so that no update is "
        "lost",
    ),
    Need(
        "strategy",
        _given("strategy"),
        lambda config: not config.makes_passes or config.strategy == AUTO,
        "to be auto with the solvers newton, cg, closed, coordinate, gd and lbfgs, which make "
        "whole passes",
    ),
    *(
        Need(
            option,
            _given(option),
            _only_sgd,
            "the solver sgd; others have no learning rate",
        )
        for option in ("schedule", "eta0", "beta")
    ),
    Need(
        "average",
        lambda config: not config.average,
        _only_sgd,
        "to be left out with other solvers than sgd",
    ),
    Need(
        "target",
        _given("target"),
        lambda config: config.objective_every > 0,
        "an objective_every of 1 or more",
    ),
    Need(
        "early_stopping",
        _given("early_stopping"),
        lambda config: config.objective_every == 1,
        "an objective_every of 1",
    ),
    Need(
        "beta",
        _given("beta"),
        lambda config: (
            config.proves or (config.schedule in ("backoff", "adaptive") and not config.adapts)
        ),
        "the schedule backoff (for mf: adaptive)",
    ),
    Need(
        "schedule",
        lambda config: config.zeroes and not config.proves,
        lambda config: config.adapts,
        "to be adaptive or normalized with l1",
    ),
    Need(
        "schedule",
        lambda config: config.adapts and not config.zeroes and not config.proves,
        lambda config: config.loss_name != "perceptron",
        "another loss than perceptron to be adaptive or normalized",
    ),
    Need(
        "strategy",
        lambda config: config.zeroes or config.adapts,
        lambda config: not _averages(config),
        "to be one that does not average weights, with l1 or a rate for each weight: an average "
        "of weights is seldom exactly zero",
    ),
    Need(
        "merge",
        lambda config: config.family == "linear" and config.merge == "vote",
        lambda config: _averages(config) and config.task in ("svm", "logistic"),
        "the strategy averaged or mixed, and the task svm or logistic, to be vote",
    ),
    Need(
        "batch",
        _given("batch"),
        lambda config: config.strategy == "minibatch",
        "the strategy minibatch",
    ),
    Need(
        "batch",
        lambda config: config.batch is not None and config.strategy == "minibatch",
        lambda config: (config.batch or 0) % 8 == 0,
        "a multiple of 8",
    ),
    Need(
        "deterministic",
        _given("deterministic"),
        _deterministic,
        "a strategy whose result does not depend on the number of workers: auto, ordered, heads, "
        "strata or minibatch",
    ),
    Need(
        "epsilon",
        _given("epsilon"),
        _has_parameter("epsilon"),
        "the loss huber or epsilon_insensitive",
    ),
    Need(
        "memory",
        _given("memory"),
        lambda config: config.solver in (AUTO, "sgd", "dual"),
        "the solver sgd or dual: others look at all rows at once",
    ),
    Need(
        "memory",
        _given("memory"),
        lambda config: config.strategy != "strata",
        "another strategy than strata, which divides the rows by their columns",
    ),
    Need(
        "memory",
        _given("memory"),
        lambda config: config.early_stopping is None,
        "rows to judge by in a file of their own: validate, not early_stopping",
    ),
    Need("quantile", _given("quantile"), _has_parameter("quantile"), "the loss quantile"),
    Need(
        "class_weight",
        _given("class_weight"),
        lambda config: not {"numbers", "counts"}.intersection(config.kinds),
        "a task with classes: svm or logistic",
    ),
    Need(
        "biases",
        lambda config: config.loss_name == "kl" and bool(config.biases),
        lambda config: False,
        "a loss other than kl, whose scores are products of factors only",
    ),
    Need("bias_l2", _given("bias_l2"), lambda config: config.has_biases, "biases"),
)


def unmet(config: "Config") -> list[str]:
    """What options of a config need and do not have, a line each."""
    return [
        f"{need.option}: it needs {need.words}"
        for need in NEEDS
        if need.given(config) and not need.met(config)
    ]
