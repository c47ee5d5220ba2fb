"""The options of a training run, defined only here, for Python and for the command line."""

import dataclasses
import difflib
import math
import numbers
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from types import NoneType
from typing import Any, get_args

from hogwild.computed import cached_property
from hogwild.errors import OptionError
from hogwild.learn.choosing import (
    AS_ASKED,
    CG,
    CLOSED,
    COORDINATE,
    DUAL,
    GD,
    LBFGS,
    NEWTON,
    SOLVERS,
    by_options,
)
from hogwild.learn.losses import FACTOR_LOSSES, LOSSES, Parameter, loss_named, names_for
from hogwild.learn.needs import unmet
from hogwild.learn.schedules import EPOCH_SCHEDULES, SCHEDULES
from hogwild.loops.strategies import AUTO, STRATEGIES


@dataclass(frozen=True)
class Task:
    """A task: its own loss, the family of its models, and the kinds of targets it may have."""

    loss: str
    family: str
    kinds: tuple[str, ...]


TASKS = {
    "svm": Task("hinge", "linear", ("signs", "classes")),
    "logistic": Task("logistic", "linear", ("signs", "classes")),
    "softmax": Task("cross_entropy", "linear", ("classes",)),
    "regression": Task("squared", "linear", ("numbers", "counts")),
    "mf": Task("squared", "factors", ()),
}
EPOCHS = 20
ADAPTIVE = "adaptive"  # the schedule with a rate for each weight, or for each row of factors
NORMALIZED = "normalized"  # as adaptive, scaled by the size of the column's values
DEFAULTS: dict[str, dict[str, Any]] = {
    "linear": {"l2": 1e-4, "schedule": "inverse"},
    "factors": {"schedule": ADAPTIVE},
}
# Of linear models whose solver has no learning rate
DEFAULTS_PROVED: dict[str, Any] = {"l2": 1e-4}
DEFAULTS_COORDINATE: dict[str, Any] = {"l2": 0.0}
# Of linear models with an L1 penalty
DEFAULTS_L1: dict[str, Any] = {"l2": 0.0, "schedule": ADAPTIVE}
# Of perceptrons: from zero weights and without a penalty, the rate changes no prediction
PERCEPTRON = "perceptron"
DEFAULTS_PERCEPTRON: dict[str, Any] = {"l2": 0.0, "schedule": "constant", "eta0": 1.0}
BACKENDS = ("process", "thread")
MEAN, VOTE = MERGES = ("mean", "vote")
MOST_WORKERS = 1024
MOST_FACTORS = 4096
BETA = 0.9  # Niu et al. 2011, section 7
FACTOR_BETA = 0.85


def always(*names: str) -> Callable[..., list[str]]:
    """The names that an option takes, whatever the task."""
    return lambda task=None: list(names)


def loss_names(task: str | None = None) -> list[str]:
    linear = [*LOSSES] if task is None else chain(*map(names_for, TASKS[task].kinds))
    return _of_family(list(dict.fromkeys(linear)), list(FACTOR_LOSSES), task)


def schedule_names(task: str | None = None) -> list[str]:
    return _of_family([*SCHEDULES, ADAPTIVE, NORMALIZED], list(EPOCH_SCHEDULES), task)


def strategy_names(task: str | None = None) -> list[str]:
    rows = [AUTO, *(name for name, strategy in STRATEGIES.items() if strategy.rows)]
    blocks = [AUTO, *(name for name, strategy in STRATEGIES.items() if strategy.blocks)]
    return _of_family(rows, blocks, task)


def _of_family(linear: list[str], factors: list[str], task: str | None) -> list[str]:
    """The names that a task takes, or all of them."""
    if task is None:
        return list(dict.fromkeys([*linear, *factors]))
    return factors if TASKS[task].family == "factors" else linear


def option(
    default: Any,
    text: str,
    *,
    family: str | None = None,
    choices: Callable[..., list[str]] | None = None,
    least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    most: float | None = None,
    searched: bool = False,
) -> Any:
    """A field of `Config`: its meaning, the models that have it, and its allowed values.

    `hogwild.search` can compare several values of an option that is `searched`.
    """
    limits = {"choices": choices, "least": least, "above": above, "below": below, "most": most}
    about = {"text": text, "family": family, "searched": searched}
    return field(default=default, metadata=about | limits)


@dataclass(frozen=True)
class Config:
    """The options of a training run; None: chosen by the run."""

    task: str = option(
        "svm",
        "what to learn: classes (svm, logistic, softmax), numbers (regression) or factors of a "
        "matrix of ratings (mf)",
        choices=always(*TASKS),
    )
    loss: str | None = option(
        None,
        "the loss [hinge for svm, logistic for logistic, cross_entropy for softmax, squared for "
        "regression and mf]",
        choices=loss_names,
    )
    epsilon: float | None = option(
        None,
        "with the loss huber: where it becomes straight; with epsilon_insensitive: the error that "
        "costs nothing [0.1]",
        family="linear",
        above=0,
        searched=True,
    )
    quantile: float | None = option(
        None,
        "with the loss quantile: which one [0.5]",
        family="linear",
        above=0,
        below=1,
        searched=True,
    )
    class_weight: str | dict[Any, float] | None = option(  # noqa: RUF009
        None,
        "weights of the classes: LABEL:W,LABEL:W, or balanced (by how rare they are)",
        family="linear",
    )
    l2: float | None = option(
        None,
        "weight of the penalty l2/2 * |w|^2 [1e-4, with --l1 or the loss perceptron 0; for mf "
        "chosen from the ratings]",
        least=0,
        searched=True,
    )
    l1: float = option(
        0.0,
        "weight of the penalty l1 * |w|_1, which makes many weights zero",
        least=0,
        searched=True,
    )
    intercept: bool = option(True, "learn an intercept, which is not penalized", family="linear")
    rank: int = option(
        32, "factors of a user and of an item", family="factors", least=1, most=MOST_FACTORS
    )
    biases: bool | None = option(
        None,
        "learn a bias for each user and item, beside the mean [unless the loss is kl]",
        family="factors",
    )
    bias_l2: float | None = option(None, "l2 of the biases [0.02]", family="factors", least=0)
    weighted: bool = option(
        True,
        "weigh the penalty of a user or an item by the number of its ratings",
        family="factors",
    )
    nonnegative: bool = option(
        False, "no factor below 0; always so with the loss kl", family="factors"
    )
    early_stopping: float | None = option(
        None,
        "hold out this share of the data, stop when its loss no longer decreases, and return the "
        "best epoch",
        above=0,
        most=0.5,
    )
    epochs: int | None = option(
        None,
        "largest number of passes over the data "
        f"[{EPOCHS}; with a solver that proves its result as many as are needed]",
        least=1,
    )
    tol: float = option(
        1e-3,
        "stop after --patience epochs that each lower the objective by less than this share of it; "
        "with a solver that proves its result, when that is within this share of the optimum (not "
        "if there is a --target)",
        least=0,
    )
    patience: int = option(2, "epochs in a row without progress before training stops", least=1)
    target: float | None = option(None, "stop when the objective is at most this")
    time_limit: float | None = option(None, "stop after this many seconds of training", above=0)
    memory: str | None = option(
        None,
        "most memory to use, such as 2G: rows of a larger .rows file stay on the disk, and are "
        "read in every epoch [as much as there is]",
        family="linear",
    )
    workers: int | None = option(
        None, "number of workers [chosen automatically]", least=1, most=MOST_WORKERS
    )
    strategy: str = option(
        "auto",
        "how workers share the weights; auto: likely the fastest on this data",
        choices=strategy_names,
    )
    merge: str = option(
        MEAN,
        "with --strategy averaged or mixed: the model is the mean of the workers' weights, or each "
        "worker's weights have a vote",
        family="linear",
        choices=always(*MERGES),
    )
    deterministic: bool = option(
        False,
        "learn the same bytes with any number of workers (ordered; heads for many classes; strata "
        "for mf)",
    )
    batch: int | None = option(
        None,
        "rows of a batch, with --strategy minibatch; a multiple of 8 [256]",
        family="linear",
        least=8,
        most=1 << 24,
    )
    backend: str = option("process", "what the workers are", choices=always(*BACKENDS))
    worker_patience: float = option(
        10.0,
        "seconds that a stopped worker process (SIGSTOP) gets to go on before it is replaced",
        above=0,
    )
    solver: str = option(
        AUTO,
        "sgd: stochastic gradient descent. Others need no learning rate, and prove how near the "
        "optimum they are: dual (dual coordinate ascent), newton (Newton's method), "
        "cg (conjugate gradients, for the squared loss), closed (the normal "
        "equations, for the squared loss and few columns), coordinate (coordinate descent on "
        "columns, with --l1; it copies the data), gd (batch gradient descent) and lbfgs (L-BFGS), "
        "both for teaching and comparison. auto: what suits the loss and the data, and sgd where "
        "an option of it is given",
        family="linear",
        choices=always(AUTO, *SOLVERS),
    )
    schedule: str | None = option(
        None,
        "how the learning rate decreases; adaptive: a rate for each weight, normalized: the same "
        "for columns of any scale [inverse, or by the data normalized; perceptron: constant; with "
        "--l1 and for mf: adaptive]",
        choices=schedule_names,
    )
    eta0: float | None = option(
        None,
        "the first learning rate [found by a quick search; perceptron: 1; for mf from the size of "
        "the ratings]",
        above=0,
        searched=True,
    )
    beta: float | None = option(
        None,
        "factor of the learning rate after each epoch, with --schedule backoff, and for mf with "
        f"adaptive [{BETA}; for mf, {FACTOR_BETA}]",
        above=0,
        most=1,
    )
    average: bool = option(
        True,
        "return the average of the weights over the last epoch if it is better (perceptron: "
        "always, over all epochs); never with --l1 or the schedules adaptive and normalized",
        family="linear",
    )
    objective_every: int = option(
        1, "epochs between two objectives; 0: only one, at the end", least=0
    )
    seed: int = option(0, "seed of all random choices", least=0, most=2**63 - 1)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", loss_named(self.loss))
        self.choice  # noqa: B018  before what is left open is filled in
        self.leaves_schedule  # noqa: B018
        defaults = DEFAULTS_L1 if self.zeroes else DEFAULTS.get(self.family, {})
        if self.is_perceptron:
            defaults = DEFAULTS_PERCEPTRON
        if self.proves:
            defaults = DEFAULTS_COORDINATE if self.is_coordinate else DEFAULTS_PROVED
        elif self.epochs is None:
            object.__setattr__(self, "epochs", EPOCHS)
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    @classmethod
    def of(cls, options: dict[str, Any]) -> "Config":
        """Makes a config of options; an `OptionError` lists everything that is wrong."""
        names = [known.name for known in dataclasses.fields(cls)]
        problems = [_unknown(name, names) for name in options if name not in names]
        config = cls(**{name: _plain(value) for name, value in options.items() if name in names})
        problems += config.problems()
        if problems:
            raise OptionError("\n".join(problems))
        return config

    def problems(self) -> list[str]:
        """Everything that is wrong, one line each; an empty list if nothing is."""
        found = {
            known.name: problem
            for known in dataclasses.fields(self)
            if (problem := self._problem(known, getattr(self, known.name)))
        }
        misplaced = [] if "task" in found else self._misplaced(set(found))
        return [*found.values(), *misplaced, *([] if found else unmet(self))]

    def _problem(self, known: "dataclasses.Field[Any]", value: Any) -> str | None:
        """What is wrong with the value of an option, if anything is."""
        kind, limits = kind_of(known), known.metadata
        if value is None:
            return None if NoneType in get_args(known.type) else f"{known.name}: must be given"
        accepted, wanted = KINDS[kind]
        if known.name == "class_weight" and isinstance(value, dict):
            return None
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            return f"{known.name}: expected {wanted}, not {value!r}"
        if known.name == "memory" and bytes_of(value) is None:
            return f"memory: expected bytes, such as 500M or 2G, not {value!r}"
        if limits["choices"] and value not in (
            able := limits["choices"](self.task if self.task in TASKS else None)
        ):
            of_task = f" (for the task {self.task})" if able != limits["choices"]() else ""
            return f"{known.name}: {value!r} is not one of {', '.join(able)}{of_task}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{known.name}: expected a finite number, not {value!r}"
        for limit, (words, holds) in LIMITS.items():
            if limits[limit] is not None and not holds(value, limits[limit]):
                return f"{known.name}: must be {words} {limits[limit]}, not {value!r}"
        return None

    def _misplaced(self, wrong: set[str]) -> list[str]:
        """Options that belong to other tasks, except those that are already reported as wrong."""
        return [
            f"{known.name}: only for the task {_tasks(known.metadata['family'])}; leave it out"
            for known in dataclasses.fields(self)
            if known.metadata["family"] not in (None, self.family)
            and known.name not in wrong
            and getattr(self, known.name) != known.default
        ]

    @property
    def loss_parameter(self) -> Parameter | None:
        """The parameter that the loss of a linear model has, if any."""
        loss = LOSSES.get(self.loss_name) if self.family == "linear" else None
        return loss.parameter if loss else None

    @property
    def loss_value(self) -> float:
        """The value of that parameter; 0 where there is none."""
        own = self.loss_parameter
        if own is None:
            return 0.0
        given = getattr(self, own.option)
        return float(own.default if given is None else given)

    @property
    def memory_bytes(self) -> int | None:
        """The most memory to use, in bytes; None: as much as there is."""
        return None if self.memory is None else bytes_of(self.memory)

    @property
    def family(self) -> str:
        """The family of models that the task learns."""
        task = TASKS.get(self.task)
        return task.family if task else ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of targets that the task may have."""
        return TASKS[self.task].kinds

    @property
    def loss_name(self) -> str:
        """The loss; by default that of the task."""
        return self.loss or TASKS[self.task].loss

    @property
    def zeroes(self) -> bool:
        """Whether an L1 penalty makes weights of a linear model zero."""
        return self.family == "linear" and isinstance(self.l1, numbers.Real) and self.l1 > 0

    @cached_property
    def leaves_schedule(self) -> bool:
        """Whether the schedule of a linear model may be chosen from the data."""
        return self.family == "linear" and self.schedule is None and self.eta0 is None

    @property
    def adapts(self) -> bool:
        """Whether a linear model has a learning rate for each weight, if the solver has rates."""
        return self.family == "linear" and self.schedule in (ADAPTIVE, NORMALIZED)

    @cached_property
    def choice(self) -> tuple[str, str]:
        """The solver of a linear model, and why. With several classes it may change.

        The choice uses only options that were given, and no default values.
        """
        if self.solver != AUTO or self.family != "linear":
            return self.solver, AS_ASKED
        return by_options(self)

    @property
    def is_dual(self) -> bool:
        """Whether a linear model is learned by dual coordinate ascent."""
        return self.family == "linear" and self.choice[0] == DUAL

    @property
    def is_coordinate(self) -> bool:
        """Whether a linear model is learned by coordinate descent on columns."""
        return self.family == "linear" and self.choice[0] == COORDINATE

    @property
    def is_newton(self) -> bool:
        """Whether a linear model is learned by Newton's method, on whole passes."""
        return self.family == "linear" and self.choice[0] in (NEWTON, CG, CLOSED)

    @property
    def proves(self) -> bool:
        """Whether the solver proves how near the optimum it is, and has no learning rate."""
        return self.is_dual or self.makes_passes

    @property
    def makes_passes(self) -> bool:
        """Whether the solver of a linear model works on all of the data at a time."""
        return self.is_newton or self.is_coordinate or self.is_descent

    @property
    def is_descent(self) -> bool:
        """Whether a linear model is learned by batch gradient descent or L-BFGS."""
        return self.family == "linear" and self.choice[0] in (GD, LBFGS)

    @property
    def is_perceptron(self) -> bool:
        """Whether perceptrons are learned. Their steps depend only on the signs of scores."""
        return self.family == "linear" and self.loss == PERCEPTRON and not self.zeroes

    @property
    def has_biases(self) -> bool:
        """Whether factors come with biases."""
        return self.loss_name != "kl" if self.biases is None else self.biases

    def backoff(self, epoch: int) -> float:
        """The factor of a linear model's rate in an epoch (they count from 1), if it backs off."""
        if self.schedule not in SCHEDULES or not SCHEDULES[self.schedule].backs_off:
            return 1.0
        return float((BETA if self.beta is None else self.beta) ** (epoch - 1))

    def as_dict(self) -> dict[str, Any]:
        """The options by name, for records, without those of other models."""
        return {
            known.name: getattr(self, known.name)
            for known in dataclasses.fields(self)
            if known.metadata["family"] in (None, self.family)
        }


LIMITS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "least": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "below": ("below", operator.lt),
    "most": ("at most", operator.le),
}


def bytes_of(text: str) -> int | None:
    """The number of bytes that a text such as 500M means; None if it means none."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        return None
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) or None


def _unknown(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"{name}: there is no such option" + (f"; did you mean {near[0]}?" if near else "")


def _plain(value: Any) -> Any:
    """Turns a numpy number into a Python number, for records; also within a dict."""
    if isinstance(value, dict):
        return {_plain(key): _plain(number) for key, number in value.items()}
    single = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if single else value


def _tasks(family: str) -> str:
    return " or ".join(name for name, task in TASKS.items() if task.family == family)


# What an option may be, and its name for people
KINDS: dict[Any, tuple[Any, str]] = {
    bool: (bool, "True or False"),
    str: (str, "a word"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
}


def kind_of(known: "dataclasses.Field[Any]") -> Any:
    """Which of `KINDS` an option is."""
    return (get_args(known.type) or (known.type,))[0]
