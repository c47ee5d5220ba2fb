"""Errors that are not bugs and tell the user what to do, and warnings."""

import errno
import sys
import warnings
from types import FrameType
from typing import Any

WITHIN = "hogwild", "sklearn"  # packages that warnings do not point at, but at who called them


class HogwildError(Exception):
    """A problem that the user can solve. The text says what is wrong, where, and what to do.

    `result` is the `Result` of the training up to the error, if there is one.
    """

    result: Any = None


class OptionError(HogwildError, ValueError):
    """Options out of range: lists every problem at once."""


class DataError(HogwildError, ValueError):
    """Data that cannot be used: names the file and the line, or the row and the column."""


class DivergenceError(HogwildError):
    """The objective rose, or the weights overflowed, however small the rate."""


class WorkerError(HogwildError):
    """A worker process failed, ended or could not start; `result` has the last finished epoch.

    Attributes:
        from_outside: whether something else ended or stopped the worker, so that another worker
            may succeed. False if its own work failed, as it would again.
        signal: the number of the signal that ended or stopped the worker; None without a signal.
    """

    def __init__(self, text: str, from_outside: bool = False, signal: int | None = None) -> None:
        super().__init__(text)
        self.from_outside = from_outside
        self.signal = signal


class HogwildWarning(UserWarning):
    """Something was left out or done differently from what was asked; the text says what."""


def warn(text: str, category: type[Warning] = HogwildWarning) -> None:
    """Warns at the line of the user's code that called hogwild, directly or by scikit-learn."""
    level = 1
    outer: FrameType | None = sys._getframe()
    while outer is not None and outer.f_globals.get("__name__", "").split(".")[0] in WITHIN:
        level, outer = level + 1, outer.f_back
    warnings.warn(text, category, stacklevel=level)


def remedy(problem: OSError) -> str:
    """What to do if the system refuses a resource."""
    if problem.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files (ulimit -n), or use fewer workers"
    if problem.errno == errno.ENOMEM:
        return "allow more memory (ulimit -v), free some, or use fewer workers"
    return "use fewer workers"
