"""Attributes that are computed when they are first asked for."""

import sys
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property"]

T = TypeVar("T")

if sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(Generic[T]):  # noqa: N801
        """As in Python 3.12: without a lock.

        A fork beside a thread that holds the lock would leave it locked in the child forever.
        """

        def __init__(self, compute: Callable[[Any], T]) -> None:
            self._compute, self._name = compute, compute.__name__
            self.__doc__ = compute.__doc__

        @overload
        def __get__(self, thing: None, owner: Any = None) -> Self: ...

        @overload
        def __get__(self, thing: object, owner: Any = None) -> T: ...

        def __get__(self, thing: object | None, owner: Any = None) -> Any:
            if thing is None:
                return self
            found = thing.__dict__[self._name] = self._compute(thing)
            return found
