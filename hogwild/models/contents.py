"""The contents of a model file, checked part by part as a model takes them.

A correct checksum shows that the file is undamaged, not that its contents make sense.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild.model_file import Arrays, DamageError

MISSING = object()
SHOWN = 60  # characters of what is wrong


class Rule(NamedTuple):
    """What a value must be, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    # As a float: a whole number of 400 digits is none
    whole = _is_whole(value) and abs(value) < 2**64
    return whole or (isinstance(value, float) and math.isfinite(value))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def listing(rule: Rule) -> Rule:
    """A list of what fits a rule."""
    return Rule(
        f"a list, each {rule.words}",
        lambda value: isinstance(value, list) and all(map(rule.fits, value)),
    )


NUMBER = Rule("a finite number", _is_number)
WEIGHT = Rule("a finite number that is not negative", lambda v: _is_number(v) and v >= 0)
COUNT = Rule("a whole number that is not negative", lambda v: _is_whole(v) and 0 <= v < 2**63)
TEXT = Rule("text", lambda value: isinstance(value, str))
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
BASE = Rule("0, 1 or null", lambda v: v is None or (_is_whole(v) and v in (0, 1)))
LABEL = Rule("a number or text", lambda v: TEXT.fits(v) or FLAG.fits(v) or NUMBER.fits(v))
OBJECT = Rule("an object", lambda value: isinstance(value, dict))

# Of the record of the training: what is used later, if it is there. Values may be null
RECORD: dict[str, Any] = {
    "options": {
        **dict.fromkeys(("l2", "l1", "bias_l2"), WEIGHT),
        **dict.fromkeys(("epsilon", "quantile"), NUMBER),
        **dict.fromkeys(("intercept", "biases", "nonnegative", "weighted"), FLAG),
        "class_weights": listing(WEIGHT),
        "task": TEXT,
    },
    "trace": {"reason": TEXT, "epochs": COUNT, "last": dict.fromkeys(("objective", "gap"), NUMBER)},
    "data": {"name": TEXT},
    "versions": {},
    "feature_names": listing(TEXT),
    "penalty": NUMBER,
}


class Contents:
    """What a model file says of the model, by names, and its arrays."""

    def __init__(self, said: dict[str, Any], arrays: Arrays) -> None:
        self._said = said
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._said or name in self._arrays

    def get(self, name: str, rule: Rule, default: Any = MISSING) -> Any:
        """The value under a name; a value that older versions did not write has a default."""
        value = self._said.get(name, default)
        if value is MISSING:
            raise DamageError(f"it does not say its {name}")
        _check(value, rule, name)
        return value

    def choice(self, name: str, able: Any, default: Any = MISSING) -> str:
        """One of several words that is said under a name."""
        value: str = self.get(name, TEXT, default)
        if value not in able:
            raise DamageError(f"its {name} is {_short(value)}; known are {', '.join(able)}")
        return value

    def record(self) -> dict[str, Any]:
        """What is said of the training."""
        known: dict[str, Any] = self.get("about", OBJECT)
        _check(known, RECORD, "record of the training")
        return known

    def array(self, name: str, kind: Any = np.float32) -> npt.NDArray[Any]:
        """An array of this type; floats must be finite."""
        if name not in self._arrays:
            raise DamageError(f"it has no array {name}")
        array = self._arrays[name]
        if array.dtype != kind:
            raise DamageError(f"its {name} are {array.dtype}; expected {np.dtype(kind)}")
        if array.dtype.kind == "f":
            with np.errstate(invalid="ignore"):  # the sum of finite float32 is finite in double
                finite = bool(np.isfinite(np.sum(array, dtype=np.float64)))
            if not finite:
                at = int(np.argmin(np.isfinite(array)))
                raise DamageError(f"number {at + 1:,} of its {name} is {array[at]}")
        return array

    def table(self, name: str, rows: int) -> npt.NDArray[np.float32]:
        """An array as a table of so many rows."""
        array = self.array(name)
        if rows < 1 or len(array) % rows:
            raise DamageError(f"its {len(array):,} {name} are no table of {rows:,} rows")
        return array.reshape(rows, -1)

    def ids(self, name: str) -> Arrays:
        """The arrays whose names begin with this one."""
        return {key: array for key, array in self._arrays.items() if key.startswith(name)}


def _check(value: Any, rule: Any, place: str) -> None:
    """Refuses a value that a rule, or one of the rules for its parts, does not allow."""
    wanted = rule if isinstance(rule, Rule) else OBJECT
    if not wanted.fits(value):
        raise DamageError(f"its {place} is {_short(value)}; expected {wanted.words}")
    if isinstance(rule, dict):
        for name, inner in rule.items():
            is_there = name in value and (isinstance(inner, dict) or value[name] is not None)
            if is_there:
                _check(value[name], inner, f"{place}: {name}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + " ..."
