"""What a scaling study is to run: configurations, repeats, and what they are compared with."""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hogwild import machine
from hogwild.config import MOST_WORKERS, Config, strategy_names
from hogwild.errors import OptionError

TARGET = 1e-3
REPEATS = 3
MOST_REPEATS = 1000
STRATEGIES = {"linear": ("auto", "hogwild", "combine", "ordered"), "factors": ("auto", "hogwild")}

# What a study decides by itself for each run
DECIDED = (
    *("workers", "strategy", "deterministic", "tol", "target", "time_limit"),
    *("objective_every", "early_stopping"),
)
BATCHED = "minibatch"  # the strategy that alone has the option `batch`


class Configuration(NamedTuple):
    """A strategy and a number of workers; without a strategy, the run with one worker."""

    strategy: str | None
    workers: int

    @property
    def name(self) -> str:
        """As people are told it."""
        return "one worker" if self.strategy is None else f"{self.strategy} x {self.workers}"


ONE = Configuration(None, 1)


@dataclass(frozen=True)
class Plan:
    """A scaling study.

    Attributes:
        strategies: names of strategies, "auto" among them where wanted.
        workers: numbers of workers.
        options: of every run: fields of `hogwild.Config`, but for those that the study decides.
        repeats: how often each configuration is measured.
        target: the relative gap of the objective that is to be reached.
        optimum: what gaps are measured from; None: the best objective that any run finds.
        own_baseline: compare each strategy with itself with one worker, not all with the same run.
    """

    strategies: tuple[str, ...]
    workers: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    repeats: int = REPEATS
    target: float = TARGET
    optimum: float | None = None
    own_baseline: bool = False

    @classmethod
    def of(
        cls,
        options: dict[str, Any],
        strategies: str | None = None,
        workers: str | None = None,
        **more: Any,
    ) -> "Plan":
        """A plan from lists as they are typed; an `OptionError` that lists all that is wrong.

        Without strategies, the usual ones of the task; without workers, 1, 2, 4, ... and as many as
        there are cores.
        """
        family = Config(task=options.get("task", "svm")).family or "linear"
        problems: list[str] = []
        named = _words(strategies, family, problems)
        counts = _counts(workers, problems)
        plan = cls(named, counts, dict(options), **more)
        problems += plan.problems()
        if problems:
            raise OptionError("\n".join(dict.fromkeys(problems)))
        return plan

    @property
    def configurations(self) -> list[Configuration]:
        """What is measured, each with what it is compared with before it."""
        more = [count for count in self.workers if count > 1]
        found = [] if self.own_baseline else [ONE]
        for strategy in self.strategies:
            ones = [1] if self.own_baseline else []
            found += [Configuration(strategy, count) for count in ones + more]
        return found

    def baseline(self, configuration: Configuration) -> Configuration:
        """What a configuration is compared with."""
        return Configuration(configuration.strategy, 1) if self.own_baseline else ONE

    def train_options(self, configuration: Configuration) -> dict[str, Any]:
        """What `hogwild.train` is called with."""
        strategy = configuration.strategy or "auto"
        options = self.options | {"strategy": strategy, "workers": configuration.workers, "tol": 0}
        if strategy != BATCHED:
            options.pop("batch", None)
        return options

    def problems(self) -> list[str]:
        """Everything that is wrong, a line each."""
        found = [
            f"{name}: the study decides it for each run; leave it out"
            for name in self.options
            if name in DECIDED
        ]
        if found:
            return found
        for configuration in self.configurations:
            try:
                Config.of(self.train_options(configuration))
            except OptionError as problem:
                found += str(problem).splitlines()
        if self.options.get("batch") is not None and BATCHED not in self.strategies:
            found.append(f"batch: only the strategy {BATCHED} has one; leave it out")
        return found + self._limits()

    def _limits(self) -> list[str]:
        found = []
        if not _whole(self.repeats) or not 1 <= self.repeats <= MOST_REPEATS:
            found.append(
                f"repeat: must be a whole number from 1 to {MOST_REPEATS}, not {self.repeats!r}"
            )
        if not _number(self.target) or self.target <= 0:
            found.append(f"target: must be a number above 0, not {self.target!r}")
        if self.optimum is not None and not _number(self.optimum):
            found.append(f"optimum: must be a number, not {self.optimum!r}")
        most = _most_workers(self._family)
        found += [
            f"workers: {count} cannot be at work at once; at most {most} can"
            for count in self.workers
            if most < count <= MOST_WORKERS  # more is refused for any data
        ]
        return found

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not the defaults."""
        every = Config(task=self.options.get("task", "svm")).as_dict()
        return {
            name: value
            for name, value in self.options.items()
            if name != "task" and name in every and value not in (None, every[name])
        }

    @property
    def _family(self) -> str:
        return Config(task=self.options.get("task", "svm")).family


def usual_workers() -> tuple[int, ...]:
    """1, 2, 4, ... and as many as there are usable cores."""
    cores = machine.usable_cores()
    powers = [1 << power for power in range(cores.bit_length())]
    return tuple(sorted({*powers, cores}))


def _most_workers(family: str) -> int:
    from hogwild.problems.registry import PROBLEMS

    return int(PROBLEMS[family].most_workers) if family in PROBLEMS else MOST_WORKERS


def _words(text: str | None, family: str, problems: list[str]) -> tuple[str, ...]:
    """The strategies in a list."""
    if text is None:
        return STRATEGIES[family]
    words = [word.strip() for word in text.split(",")]
    able = strategy_names(family)
    kind = "ratings" if family == "factors" else "rows"
    for word in dict.fromkeys(words):
        if not word:
            problems.append("strategies: a name is missing; give names with commas between them")
        elif word not in able:
            problems.append(f"strategies: {word!r} is not one for {kind}; {', '.join(able)} are")
    problems += _twice("strategies", words)
    return tuple(word for word in dict.fromkeys(words) if word in able)


def _counts(text: str | None, problems: list[str]) -> tuple[int, ...]:
    """The numbers of workers in a list, in rising order."""
    if text is None:
        return usual_workers()
    words = [word.strip() for word in text.split(",")]
    wrong = [word for word in words if not _is_count(word)]
    problems += [
        f"workers: {word!r} is not a whole number of 1 or more; give numbers such as 1,2,4"
        for word in dict.fromkeys(wrong)
    ]
    problems += _twice("workers", [word for word in words if word not in wrong])
    return tuple(sorted({int(word) for word in words if word not in wrong}))


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10 and int(word) > 0


def _twice(name: str, words: list[str]) -> list[str]:
    again = dict.fromkeys(word for word in words if word and words.count(word) > 1)
    return [f"{name}: {word} is there twice" for word in again]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
