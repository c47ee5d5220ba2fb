"""What goes wrong and is not a bug: errors that tell the user what to do, and warnings."""

import errno
from typing import Any


class HogwildError(Exception):
    """What the user can mend; its text says what is wrong, where, and what to do.

    `result` is the `Result` of a training that the error did not undo, if there is one.
    """

    result: Any = None


class OptionError(HogwildError, ValueError):
    """Options out of range: lists every problem at once."""


class DataError(HogwildError, ValueError):
    """Data that cannot be used: names the file and the line, or the row and the column."""


class DivergenceError(HogwildError):
    """The objective rose, or the weights overflowed, however small the rate."""


class WorkerError(HogwildError):
    """A worker process ended in the middle of the work; `result` has the last finished epoch."""


class HogwildWarning(UserWarning):
    """Something was left out or done otherwise than asked; the text says what."""


def remedy(problem: OSError) -> str:
    """What to do where the system refuses something to work with."""
    if problem.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files (ulimit -n), or use fewer workers"
    if problem.errno == errno.ENOMEM:
        return "allow more memory (ulimit -v), free some, or use fewer workers"
    return "use fewer workers"
