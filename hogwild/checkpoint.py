"""Checkpoint files: all that a training goes on from, to the bit.

A checkpoint has the form of a model file: JSON and arrays, and nothing that is executed. It also
says which options and data the training had. A training goes on only with the same ones, except for
those that do not change what is learned next, such as limits.
"""

import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hogwild import machine, model_file
from hogwild.errors import HogwildError, OptionError
from hogwild.lasting import Saved
from hogwild.model_file import Arrays, DamageError, ModelFileError
from hogwild.paths import PathLike
from hogwild.trace import Row

KIND = "checkpoint"
FORMAT = 1  # the form of the state; others cannot be read
AUTO = "auto"
EVERY = 5  # epochs
# Options that may differ from those of the checkpoint
FREE = ("epochs", "time_limit", "workers", "backend", "memory", "worker_patience")
COMPUTING = ("hogwild", "numpy", "numba", "cpu")  # what the last bits of a result may depend on
PARTS = {"arrays": dict, "problem": dict, "run": dict, "trace": list, "seconds": float}
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Every(NamedTuple):
    """How often to write a checkpoint: after a number of epochs, or of seconds."""

    epochs: int | None
    seconds: float | None

    @classmethod
    def of(cls, given: int | str) -> "Every":
        """What `5`, `30s`, `5m` or `1h` means.

        Raises:
            OptionError: it means nothing.
        """
        found = re.fullmatch(r"(\d+)|(\d+(?:\.\d+)?) ?([smh])", str(given).strip())
        if found is None or not float(found[1] or found[2]):
            raise OptionError(
                "every: expected a number of epochs, or a time such as 30s, 5m or 1h, not "
                f"{given!r}"
            )
        if found[1]:
            return cls(int(found[1]), None)
        return cls(None, float(found[2]) * UNITS[found[3]])


class Identity(NamedTuple):
    """What must be the same where a training goes on.

    Attributes:
        options: the options that were given, with defaults.
        data: fingerprints of the data, by what they are of.
    """

    options: Row
    data: dict[str, str]

    def check(self, checkpoint: "Checkpoint") -> None:
        """Refuses to go on from a checkpoint of another identity.

        Raises:
            OptionError: names all that differs, as it was and as it is.
        """
        path, other = checkpoint.path, checkpoint.identity
        names = dict.fromkeys([*other.options, *self.options])
        problems = [
            f"{name}: {path} was written with {_shown(other.options.get(name))}, and now it is "
            f"{_shown(self.options.get(name))}"
            for name in names
            if name not in FREE and other.options.get(name) != self.options.get(name)
        ]
        problems += [
            f"{name}: not what {path} was written with"
            for name in dict.fromkeys([*other.data, *self.data])
            if other.data.get(name) != self.data.get(name)
        ]
        if problems:
            cure = "resume: give what the checkpoint was written with, or begin anew without resume"
            raise OptionError("\n".join([*problems, cure]))


class Checkpoint(NamedTuple):
    """A checkpoint that was read: its file, who wrote it, and the state."""

    path: PathLike
    identity: Identity
    versions: Row
    cpu: str
    state: Saved

    @property
    def eta0(self) -> float:
        """The learning rate to go on with."""
        return float(self.state["run"]["_eta0"])

    @property
    def epochs(self) -> int:
        """How many were done."""
        return len(self.state["trace"])

    def notes(self) -> list[str]:
        """What may lead to other bits than those of a training that was not broken off."""
        then = self.versions | {"cpu": self.cpu}
        now = machine.versions() | {"cpu": machine.cpu_name()}
        changed = [f"{name} {then.get(name)}" for name in COMPUTING if then.get(name) != now[name]]
        if not changed:
            return []
        others = ", ".join(changed)
        return [f"{self.path} was written with {others}: the last bits of weights may differ"]


class Checkpoints:
    """Where and when to write checkpoints."""

    def __init__(self, path: PathLike, every: Every, identity: Identity) -> None:
        self.path = path
        self._every, self._identity = every, identity
        self._epochs, self._wrote_at = 0, time.monotonic()

    def is_due(self) -> bool:
        """Whether to write one after this epoch, which is counted."""
        self._epochs += 1
        if self._every.epochs is not None:
            return self._epochs >= self._every.epochs
        return time.monotonic() - self._wrote_at >= float(self._every.seconds or 0.0)

    def write(self, state: Saved) -> None:
        """Replaces the file, once the new one is proved readable."""
        arrays: Arrays = {}
        about = {
            "kind": KIND,
            "format": FORMAT,
            "options": _encoded(self._identity.options, {}, "options"),  # no arrays
            "data": self._identity.data,
            "versions": machine.versions(),
            "cpu": machine.cpu_name(),
            "state": _encoded(state, arrays, "state"),
        }
        model_file.write(self.path, about, arrays, check=model_file.verify)
        self._epochs, self._wrote_at = 0, time.monotonic()


def read(path: PathLike) -> Checkpoint:
    """Reads a checkpoint. Nothing in it is executed.

    Raises:
        HogwildError: it is damaged, or something else.
    """
    about, arrays = model_file.read(path)
    if about.get("kind") != KIND:
        raise HogwildError(
            f"{path} is a model, and no checkpoint: give it as the start, to go on from its weights"
        )
    if about.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} was written by another version of hogwild: resume with that one, or begin anew"
        )
    try:
        said = [about.get(name) for name in ("data", "versions")]
        if not all(isinstance(one, dict) for one in said) or not isinstance(about["cpu"], str):
            raise DamageError("it does not say what it was written with")
        options = _decoded(about.get("options"), {})  # none is an array: they are compared
        state = _decoded(about.get("state"), arrays)
        if not isinstance(options, dict) or not _is_state(state):
            raise DamageError("it has no state")
        return Checkpoint(
            path, Identity(options, about["data"]), about["versions"], about["cpu"], state
        )
    except (DamageError, KeyError) as problem:
        raise model_file.damaged(path, problem) from None


def checked(
    checkpoint: PathLike | None, every: int | str, resume: PathLike | None
) -> tuple[Every, Path | None]:
    """How often to write, and the file to resume from, if any; arguments as for `hogwild.train`.

    Raises:
        OptionError: lists all that is wrong.
    """
    often, problems = Every(EVERY, None), []
    try:
        often = Every.of(every)
    except OptionError as problem:
        problems.append(str(problem))
    if checkpoint is None and every != EVERY:
        problems.append("every: it needs a checkpoint, the file to write")
    source = checkpoint if resume == AUTO else resume
    file = None if source is None or not Path(source).exists() else Path(source)
    if resume == AUTO and checkpoint is None:
        problems.append("resume: auto needs a checkpoint, the file to go on from")
    elif resume not in (None, AUTO) and file is None:
        problems.append(f"resume: there is no file {resume}")
    if problems:
        raise OptionError("\n".join(problems))
    return often, file


def _is_state(state: Any) -> bool:
    """Whether a state has its main parts."""
    if not isinstance(state, dict):
        return False
    if not all(isinstance(state.get(name), kind) for name, kind in PARTS.items()):
        return False
    eta0 = state["run"].get("_eta0")
    are_arrays = all(isinstance(array, np.ndarray) for array in state["arrays"].values())
    return are_arrays and isinstance(eta0, float) and 0.0 <= eta0 < math.inf


# A state as JSON. What JSON does not know is an object with one name


def _encoded(value: Any, arrays: Arrays, place: str) -> Any:
    """The value for JSON; arrays are added to `arrays`, with a place in the state as their name."""
    if isinstance(value, np.ndarray):
        if value.dtype == bool:
            value = value.view(np.uint8)
            return {"flags": _encoded(value, arrays, place)}
        arrays[place] = value.ravel()
        return {"array": place, "shape": list(value.shape)}
    if isinstance(value, np.generic):
        if not isinstance(value, np.float32):
            return _encoded(value.item(), arrays, place)
        return {"single": _encoded(float(value), arrays, place)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, dict):
        return {
            "dict": [[key, _encoded(its, arrays, f"{place}.{key}")] for key, its in value.items()]
        }
    if isinstance(value, list | tuple):
        listed = [_encoded(one, arrays, f"{place}.{k}") for k, one in enumerate(value)]
        return listed if isinstance(value, list) else {"tuple": listed}
    return value


def _decoded(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, list):
        return [_decoded(one, arrays) for one in value]
    if not isinstance(value, dict):
        return value
    name = next(iter(value), "")
    if name not in DECODERS:
        raise DamageError(f"its state has an unknown {name!r}")
    try:
        return DECODERS[name](value, arrays)
    except (TypeError, ValueError, KeyError, RecursionError):
        raise DamageError(f"its state has an impossible {name}") from None


def _array(value: Any, arrays: Arrays) -> Any:
    return arrays[value["array"]].reshape(value["shape"])


DECODERS: dict[str, Callable[[Any, Arrays], Any]] = {
    "array": _array,
    "flags": lambda value, arrays: _decoded(value["flags"], arrays).view(np.bool_),
    "single": lambda value, arrays: np.float32(_decoded(value["single"], arrays)),
    "float": lambda value, arrays: float(value["float"]),
    "dict": lambda value, arrays: {key: _decoded(its, arrays) for key, its in value["dict"]},
    "tuple": lambda value, arrays: tuple(_decoded(one, arrays) for one in value["tuple"]),
}


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)
