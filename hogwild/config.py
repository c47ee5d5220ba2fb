"""The options of a training run: stated once, here, for Python and for the command line."""

import dataclasses
import difflib
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hogwild.errors import OptionError

TASKS = {"svm": "hinge", "logistic": "logistic"}  # and the loss where none is named
BACKENDS = ("process", "thread")
MOST_WORKERS = 1024
BETA = 0.9  # Niu et al. 2011, section 7


def loss_names() -> list[str]:
    from hogwild.problems.losses import LOSSES

    return list(LOSSES)


def schedule_names() -> list[str]:
    from hogwild.problems.schedules import SCHEDULES

    return list(SCHEDULES)


def strategy_names() -> list[str]:
    from hogwild.parallel.strategies import STRATEGIES

    return list(STRATEGIES)


def option(
    default: Any,
    text: str,
    *,
    choices: Callable[[], list[str]] | None = None,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
) -> Any:
    """A field of `Config`: what it means, and which values it takes."""
    limits = {"text": text, "choices": choices, "least": least, "above": above, "most": most}
    return field(default=default, metadata=limits)


@dataclass(frozen=True)
class Config:
    """The options of a training run; None means that the run decides by itself."""

    task: str = option(
        "svm", "what to learn; names the loss where --loss does not", choices=lambda: list(TASKS)
    )
    loss: str | None = option(
        None, "the loss [hinge for svm, logistic for logistic]", choices=loss_names
    )
    l2: float = option(1e-4, "weight of the penalty l2/2 * |w|^2", least=0)
    intercept: bool = option(True, "learn an intercept, which is not penalised")
    epochs: int = option(20, "passes over the rows, at most", least=1)
    tol: float = option(
        1e-3,
        "stop when two epochs in a row each lower the objective by less than this share of it",
        least=0,
    )
    target: float | None = option(None, "stop when the objective is at most this")
    time_limit: float | None = option(None, "stop after this many seconds of training", above=0)
    workers: int | None = option(
        None, "worker processes [as many as pay on this data]", least=1, most=MOST_WORKERS
    )
    strategy: str = option("hogwild", "how workers share the weights", choices=strategy_names)
    backend: str = option("process", "what the workers are", choices=lambda: list(BACKENDS))
    schedule: str = option("inverse", "how the rate goes down", choices=schedule_names)
    eta0: float | None = option(
        None, "the first rate [found by trying some on a few rows]", above=0
    )
    beta: float | None = option(
        None,
        f"factor of the rate after each epoch, with --schedule backoff [{BETA}]",
        above=0,
        most=1,
    )
    average: bool = option(
        True, "take a mean of the weights over the last epoch where that is better"
    )
    objective_every: int = option(
        1, "epochs between two objectives; 0: only one, at the end", least=0
    )
    seed: int = option(0, "seed of all that is random", least=0, most=2**63 - 1)

    @classmethod
    def of(cls, options: dict[str, Any]) -> "Config":
        """A config of these options; an `OptionError` that lists all that is wrong with them."""
        names = [known.name for known in dataclasses.fields(cls)]
        problems = [_unknown(name, names) for name in options if name not in names]
        config = cls(**{name: _plain(value) for name, value in options.items() if name in names})
        problems += config.problems()
        if problems:
            raise OptionError("\n".join(problems))
        return config

    def problems(self) -> list[str]:
        """Everything that is wrong, a line each; an empty list where nothing is."""
        found = [
            problem
            for known in dataclasses.fields(self)
            if (problem := _problem(known, getattr(self, known.name)))
        ]
        if self.target is not None and self.objective_every == 0:
            found.append("target: it needs an objective_every of 1 or more to be noticed")
        if self.beta is not None and self.schedule != "backoff":
            found.append("beta: only the schedule 'backoff' has one; leave it out")
        return found

    @property
    def loss_name(self) -> str:
        """The loss, the task's own where none was named."""
        return self.loss or TASKS[self.task]

    def backoff(self, epoch: int) -> float:
        """The factor of the rate in an epoch (they count from 1) that the schedule asks for."""
        from hogwild.problems.schedules import SCHEDULES

        if not SCHEDULES[self.schedule].backs_off:
            return 1.0
        return float((BETA if self.beta is None else self.beta) ** (epoch - 1))

    def as_dict(self) -> dict[str, Any]:
        """The options by name, for records."""
        return dataclasses.asdict(self)


def _unknown(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"{name}: there is no such option" + (f"; did you mean {near[0]}?" if near else "")


def _plain(value: Any) -> Any:
    """A number of numpy's as one of Python's, for records."""
    single = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if single else value


def _problem(known: "dataclasses.Field[Any]", value: Any) -> str | None:
    kinds = str(known.type)
    if value is None:
        return None if "None" in kinds else f"{known.name}: must be given"
    wanted = _wrong_kind(kinds, value)
    if wanted:
        return f"{known.name}: expected {wanted}, not {value!r}"
    limits = known.metadata
    if limits["choices"] and value not in limits["choices"]():
        return f"{known.name}: {value!r} is not one of {', '.join(limits['choices']())}"
    if isinstance(value, str | bool):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return f"{known.name}: expected a finite number, not {value!r}"
    if limits["least"] is not None and value < limits["least"]:
        return f"{known.name}: must be at least {limits['least']}, not {value!r}"
    if limits["above"] is not None and value <= limits["above"]:
        return f"{known.name}: must be above {limits['above']}, not {value!r}"
    if limits["most"] is not None and value > limits["most"]:
        return f"{known.name}: must be at most {limits['most']}, not {value!r}"
    return None


def _wrong_kind(kinds: str, value: Any) -> str | None:
    """What was expected, where the value is of another kind."""
    is_bool = isinstance(value, bool)
    if "bool" in kinds:
        return None if is_bool else "True or False"
    if "str" in kinds:
        return None if isinstance(value, str) else "a word"
    if "int" in kinds:
        return None if isinstance(value, numbers.Integral) and not is_bool else "a whole number"
    return None if isinstance(value, numbers.Real) and not is_bool else "a number"
