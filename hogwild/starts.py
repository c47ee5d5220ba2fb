"""What a training goes on from: a state, a model or a checkpoint."""

import os
from typing import Any, NamedTuple

import numpy as np

from hogwild import status
from hogwild.checkpoint import Checkpoint, Checkpoints, Every, Identity, checked, read
from hogwild.config import Config
from hogwild.coordinator import Run
from hogwild.errors import DataError, OptionError
from hogwild.fingerprints import digest_of
from hogwild.learn.linear import LinearProblem
from hogwild.learn.problem import Problem
from hogwild.learn.registry import load_model
from hogwild.models.factors import FactorModel
from hogwild.models.linear import LinearModel
from hogwild.models.votes import VoteModel
from hogwild.paths import PathLike
from hogwild.results import State, Watcher

Start = State | FactorModel | LinearModel | PathLike


class GoingOn(NamedTuple):
    """What a training goes on from, and what it leaves for others to go on from.

    Attributes:
        start: a state or a model, if any.
        resumed: a checkpoint, if any.
        path: where to write checkpoints, if wanted.
        every: how often.
    """

    start: Any
    resumed: Checkpoint | None
    path: PathLike | None
    every: Every

    @classmethod
    def of(
        cls,
        family: str,
        start: Start | None,
        checkpoint: PathLike | None,
        every: int | str,
        resume: PathLike | None,
    ) -> "GoingOn":
        """Reads the files of models and checkpoints; arguments are those of `hogwild.train`."""
        often, source = checked(checkpoint, every, resume)
        resumed = None if source is None else read(source)
        return cls(_loaded(start, family), resumed, checkpoint, often)

    @property
    def model(self) -> LinearModel | None:
        """The linear model to go on from, if it is one."""
        return self.start if isinstance(self.start, LinearModel) else None

    @property
    def weights(self) -> Any:
        """The arrays of the state to go on from, if it is one."""
        return self.start.weights if isinstance(self.start, State) else None

    def run(self, problem: Problem, config: Config, watcher: Watcher) -> Run:
        """A run that begins there.

        Raises:
            OptionError: the checkpoint is of other data or options.
        """
        checkpoints = None
        if self.path is not None or self.resumed is not None:
            identity = self._identity(problem, config)
            if self.resumed is not None:
                identity.check(self.resumed)
                problem.notes.extend(self.resumed.notes())
            if self.path is not None:
                checkpoints = Checkpoints(self.path, self.every, identity)
        start = _state_of(self.start, problem, config)
        return Run(problem, watcher, start, checkpoints=checkpoints, resumed=self.resumed)

    def _identity(self, problem: Problem, config: Config) -> Identity:
        with status.doing("looking at all of the data, for the checkpoint"):
            data = problem.fingerprints()
        more = {} if self.start is None else {"start": _digest(self.start)}
        return Identity(config.as_dict(), data | more)


def _loaded(start: Start | None, family: str) -> Any:
    """A start as it was given, or the model that its file holds; checked for the family.

    Raises:
        OptionError: nothing that a training of this family can go on from.
    """
    if isinstance(start, State):
        start.check()
    if start is None or isinstance(start, State):
        return start
    model: Any = start
    name = "a model"
    if isinstance(start, str | os.PathLike):
        name, model = str(start), load_model(start)
    elif not isinstance(start, FactorModel | LinearModel):
        raise OptionError(
            "start: it needs the state of a result (result.state), a model or the file of a model, "
            f"not {type(start).__name__}"
        )
    if isinstance(model, VoteModel):
        raise OptionError(
            "start: a model of votes has the weights of each worker, and training goes on from one "
            "set of weights; begin anew"
        )
    if isinstance(model, FactorModel) != (family == "factors"):
        raise OptionError(f"start: {name} holds a {model.kind} model, which is for another task")
    return model


def _state_of(start: Any, problem: Problem, config: Config) -> State | None:
    """The state that a training begins with.

    Raises:
        DataError, OptionError: a model that was learned from other kinds of targets.
    """
    if start is None or isinstance(start, State):
        return start
    if isinstance(start, FactorModel):
        return State(start, 0, 0, config.eta0 or problem.find_rate())
    assert isinstance(problem, LinearProblem)
    return _state_of_model(start, problem)


def _digest(start: Any) -> str:
    """A fingerprint of what a training begins with."""
    if isinstance(start, State):
        weights = start.weights
        return digest_of(weights.values()) if isinstance(weights, dict) else _digest(weights)
    if isinstance(start, FactorModel):
        return digest_of([start.user_factors, start.item_factors])
    return digest_of([np.asarray(start.weights), np.atleast_1d(start.intercept)])


def _state_of_model(model: LinearModel, problem: LinearProblem) -> State:
    """The weights of a model, in the shape that a problem needs, and its place in the schedule."""
    _check(model, problem)
    stored = model.stored.reshape(model.columns + 1, -1)
    weights = np.zeros((problem.columns + 1, stored.shape[1]), np.float32)
    weights[: model.columns], weights[-1] = stored[:-1], stored[-1]
    options, trace, data = (model.about.get(name) or {} for name in ("options", "trace", "data"))
    epochs, rows = int(trace.get("epochs") or 0), int(data.get("rows") or 0)
    eta0 = 0.0 if problem.proves else float(options.get("eta0") or 0.0)
    return State({"stored": weights.ravel()}, epochs * rows, epochs, eta0)


def _check(model: LinearModel, problem: LinearProblem) -> None:
    config, target = problem.config, problem.target
    if model.loss != config.loss_name:
        raise OptionError(
            f"start: the model was learned with the loss {model.loss}: use the same, not "
            f"{config.loss_name}"
        )
    if model.target.kind != target.kind or tuple(model.labels) != tuple(target.labels):
        mine, others = (
            ", ".join(map(str, some)) or "numbers" for some in (target.labels, model.labels)
        )
        raise DataError(
            f"{problem.name} has the labels {mine}, and the model to go on from {others}; give "
            "data with the same ones (labels, where the data lacks one)"
        )
    if config.adapts and not problem.proves:
        raise OptionError(
            "start: with a rate for each weight (l1, or the schedules adaptive and normalized) sgd "
            "needs more than a model holds; take another solver or schedule, or go on from "
            "result.state"
        )
