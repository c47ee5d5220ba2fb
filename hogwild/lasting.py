"""What an epoch leaves for the next one: it is taken from objects, and put back into them.

A class names the attributes that matter after an epoch. Everything else follows from the data, the
options and these attributes. Checkpoints, and epochs that are repeated after the death of a worker,
depend on these lists being complete: `tests/test_checkpoint.py` breaks trainings off to see that.
"""

from numbers import Number
from typing import Any

import numpy as np

Saved = dict[str, Any]  # numbers, text, arrays, and lists, tuples and dicts of them, by name


class Lasting:
    """An object with a state that lasts from epoch to epoch.

    Attributes:
        lasting: the names of its attributes that are its state.
    """

    lasting: tuple[str, ...] = ()

    def saved(self) -> Saved:
        """A copy of its state."""
        return {name: copied(getattr(self, name)) for name in self.lasting}

    def put_back(self, saved: Saved) -> None:
        """Takes a copy of a state, of this object or of one that was made like it."""
        for name in self.lasting:
            setattr(self, name, _put(getattr(self, name), saved[name]))


def copied(value: Any) -> Any:
    """A copy that later changes do not reach; of an object its state."""
    if isinstance(value, Lasting):
        return value.saved()
    if isinstance(value, np.ndarray):
        return value.copy() if value.flags.writeable else value
    if isinstance(value, tuple | list):
        return type(value)(copied(one) for one in value)
    if isinstance(value, dict):
        return {name: copied(one) for name, one in value.items()}
    return value


def fit(size: int, *arrays: Any) -> None:
    """Checks arrays that were put back where none were, so that their size was not known.

    Raises:
        ValueError: an array is not empty, and its size is another one.
    """
    if any(array.size not in (0, size) for array in arrays):
        raise ValueError(f"an array of the state has not {size:,} numbers")


def _put(now: Any, saved: Any) -> Any:
    """The new value of an attribute whose value is `now`. Objects stay, and take their state.

    Raises:
        ValueError, TypeError, KeyError: the state is not of such an attribute.
    """
    if isinstance(now, Lasting):
        now.put_back(saved)
        return now
    if isinstance(now, list) and now and isinstance(now[0], Lasting):
        for one, its in zip(now, saved, strict=True):
            one.put_back(its)
        return now
    if isinstance(now, dict) and now and isinstance(next(iter(now.values())), np.ndarray):
        for name, array in now.items():
            array[:] = saved[name]  # arrays by name stay where they are
        return now
    if not _is_like(now, saved):
        raise ValueError(f"{str(saved)[:40]} is in the place of {str(now)[:40]}")
    return copied(saved)


def _is_like(now: Any, saved: Any) -> bool:
    """Whether a state has the type of a value; what is None may have any."""
    if now is None or saved is None:
        return True
    if isinstance(now, np.ndarray):
        alike = isinstance(saved, np.ndarray) and now.dtype == saved.dtype
        return alike and now.ndim == saved.ndim and (not now.size or now.size == saved.size)
    if isinstance(now, bool | np.bool_) or not isinstance(now, Number):
        return isinstance(saved, type(now))
    return isinstance(saved, Number) and not isinstance(saved, bool)
