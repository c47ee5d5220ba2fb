"""Errors that are not bugs and tell the user what to do, and warnings."""

import errno
from typing import Any


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
    """A worker process ended during its work; `result` has the last finished epoch."""


class HogwildWarning(UserWarning):
    """Something was left out or done differently from what was asked; the text says what."""


def remedy(problem: OSError) -> str:
    """What to do if the system refuses a resource."""
    if problem.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files (ulimit -n), or use fewer workers"
    if problem.errno == errno.ENOMEM:
        return "allow more memory (ulimit -v), free some, or use fewer workers"
    return "use fewer workers"
