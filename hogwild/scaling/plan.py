"""What a scaling study runs, and what it compares each run with."""

import math
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hogwild import machine
from hogwild.config import Config
from hogwild.errors import OptionError
from hogwild.learn.choosing import SGD

TARGET = 1e-3
REPEATS = 3
# The defaults: what training chooses, and the strategies that it chooses from
STRATEGIES = {"linear": ("auto", "hogwild", "combine", "ordered"), "factors": ("auto", "hogwild")}
BATCHED = "minibatch"  # the only strategy with the option `batch`

# Options that the study sets for each run
DECIDED = (
    *("workers", "strategy", "deterministic", "tol", "target", "time_limit"),
    *("objective_every", "early_stopping", "merge"),
)


class Configuration(NamedTuple):
    """A strategy and a number of workers; the run with one worker has no strategy."""

    strategy: str | None
    workers: int

    @property
    def name(self) -> str:
        return "one worker" if self.strategy is None else f"{self.strategy} x {self.workers}"


ONE = Configuration(None, 1)


@dataclass(frozen=True)
class Plan:
    strategies: tuple[str, ...]  # "auto" may be one
    workers: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)  # of `hogwild.Config`, for every run
    repeats: int = REPEATS
    target: float = TARGET  # the relative gap of the objective to reach

    @classmethod
    def of(
        cls,
        options: dict[str, Any],
        strategies: str | None = None,
        workers: str | None = None,
        repeats: int = REPEATS,
        target: float = TARGET,
    ) -> "Plan":
        """A plan from lists as users type them; an `OptionError` lists all that is wrong."""
        family = Config(task=options.get("task", "svm")).family or "linear"
        named = STRATEGIES[family] if strategies is None else _words(strategies)
        counts = _usual_workers() if workers is None else map(_number, _words(workers))
        plan = cls(tuple(named), tuple(counts), options, repeats, target)
        problems = plan.problems()
        if problems:
            raise OptionError("\n".join(problems))
        return plan

    @property
    def configurations(self) -> list[Configuration]:
        """All measured configurations. The first is one worker; others are compared with it."""
        counts = [count for count in self.workers if count != 1]
        return [ONE, *(Configuration(name, n) for name in self.strategies for n in counts)]

    def train_options(self, configuration: Configuration) -> dict[str, Any]:
        """The options of `hogwild.train`."""
        strategy = "auto" if configuration.strategy is None else configuration.strategy
        options = self.options | {"strategy": strategy, "workers": configuration.workers, "tol": 0}
        if strategy == "auto" and options.get("task") != "mf":
            options = {"solver": SGD} | options  # the strategies are those of sgd
        if strategy != BATCHED and BATCHED in self.strategies:
            options.pop("batch", None)
        return options

    def problems(self) -> list[str]:
        """Everything that is wrong, a line each."""
        decided = [name for name in self.options if name in DECIDED]
        if decided:
            return [f"{name}: the study sets it for each run; leave it out" for name in decided]
        found = []
        for configuration in self.configurations:
            try:
                Config.of(self.train_options(configuration))
            except OptionError as problem:
                found += [re.sub("^strategy:", "strategies:", p) for p in str(problem).split("\n")]
        if self.repeats < 1:
            found.append(f"repeat: must be at least 1, not {self.repeats}")
        if not 0 < self.target < math.inf:
            found.append(f"target: must be a number above 0, not {self.target}")
        return list(dict.fromkeys(found))


def _usual_workers() -> list[int]:
    """1, 2, 4, ... and the number of cores."""
    cores = machine.usable_cores()
    return sorted({cores, *(1 << power for power in range(cores.bit_length()))})


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",")))


def _number(word: str) -> Any:
    """A number of workers; other words are for `Config` to refuse."""
    return int(word) if re.fullmatch("[0-9]{1,9}", word) else word
