"""The layout of a file, known before it is read: its fields, and what finds them."""

from collections.abc import Callable
from typing import NamedTuple

from hogwild.features.blocks import Block
from hogwild.features.hashing import Group, Hasher, Part
from hogwild.features.settings import Settings
from hogwild.kernels.hashing import NUMBER


class Layout(NamedTuple):
    """How the rows of a file are made.

    Attributes:
        settings: those that were given, with what was found in the file.
        groups: the kinds of its fields.
        pairs: the groups that interact, by number.
        parser: makes what finds the rows of a block, with a thread's scratch.
        columns: name and kind of each column of a table, in its order.
        notes: what is to be said of it.
    """

    settings: Settings
    groups: list[Group]
    parser: Callable[[Hasher], Callable[[Block], list[Part]]]
    pairs: tuple[tuple[int, int], ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """The names of the columns of numbers."""
        return [group.name for group in self.groups if group.kind == NUMBER]
