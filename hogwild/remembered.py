"""What is known of objects, for as long as they live."""

import weakref
from collections.abc import Hashable
from functools import partial
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Remembered(Generic[V]):
    """Values by the identity of an object (arrays have no hash), and by more, where it matters.

    As an object dies, its value goes without any code in Python: Ctrl-C within such code would be
    lost, and Python would print it as an exception that is ignored. `weakref.WeakKeyDictionary` and
    `weakref.finalize` have such code.
    """

    def __init__(self) -> None:
        self._found: dict[Hashable, tuple[weakref.ref[Any], V]] = {}

    def get(self, thing: object, more: Hashable = None) -> V | None:
        """The value, or None if there is none."""
        known = self._found.get((id(thing), more))
        return None if known is None else known[1]

    def __len__(self) -> int:
        return len(self._found)

    def put(self, thing: object, value: V, more: Hashable = None) -> V:
        """Remembers a value, and returns it."""
        key = id(thing), more
        # The dead reference is what `pop` would return in place of a missing value
        self._found[key] = weakref.ref(thing, partial(self._found.pop, key)), value
        return value
