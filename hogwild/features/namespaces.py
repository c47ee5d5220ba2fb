"""Vowpal Wabbit's text: `label importance 'tag|namespace:weight feature feature:value |...`.

Namespaces are found as they come. The hash of a feature is seeded with that of its namespace's
whole name.
"""

import dataclasses

import numpy as np

from hogwild.features.blocks import Block
from hogwild.features.hashing import Group, Hasher, Part, ProblemError
from hogwild.features.layout import Layout
from hogwild.features.murmur import hashes_of
from hogwild.features.settings import LISTS, Settings
from hogwild.kernels import fields as kernels
from hogwild.kernels.fields import split_namespaces
from hogwild.kernels.hashing import LABEL, VALUED, WEIGHT

HEAD = [Group(LABEL, "the label", 0), Group(WEIGHT, "the importance", 0)]
# Settings that are of other formats
OF_TABLES = *LISTS[:-1], "label", "label_style", "header"
OF_WORDS = "ngrams", "characters", "lowercase", "stop_words", "counting"
WRONG = {
    kernels.NO_BAR: "the line has no |, which must stand before the features",
    kernels.BAD_HEAD: "expected no more than label, importance and a tag that begins with ' before "
    "the first |",
    kernels.BAD_VALUE: "the value behind the colon is not a number (or not a finite float32)",
}


def layout(settings: Settings) -> Layout:
    """The layout of all such files: their namespaces are not known yet."""
    settings.refuse([*OF_TABLES, *OF_WORDS], "Vowpal Wabbit's text")
    settings = dataclasses.replace(settings, format="vw")
    return Layout(settings, HEAD, lambda hasher: _Parser(hasher, settings).parse)


class _Parser:
    def __init__(self, hasher: Hasher, settings: Settings) -> None:
        self._hasher = hasher
        self._pairs = [pair.split(":", 1) for pair in settings.interact]
        self._groups = list(HEAD)
        self._known = np.empty(0, np.uint32)

    def parse(self, block: Block) -> list[Part]:
        """The rows of a block."""
        at, parts = block.begin, []
        state = np.zeros(kernels.STATE, np.uint64)
        while at < block.size:
            fields = self._hasher.fields
            stop, rows = split_namespaces(block.text, at, block.size, self._known, fields, state)
            at = int(stop)
            if rows:
                parts += self._hasher.hash(block, int(rows))
            wrong, where = state.tolist()
            if wrong == kernels.NEW_GROUP:
                self._add(block, where)
            elif wrong == kernels.NO_ROOM and not rows:
                self._hasher.needs(2 * len(fields.begins))
            elif wrong in WRONG:
                raise ProblemError(where, WRONG[wrong])
        return parts

    def _add(self, block: Block, begin: int) -> None:
        """Adds the namespace whose name begins here."""
        text = block.text[begin : block.size].tobytes()
        end = next(place for place, byte in enumerate(text) if byte <= 32 or byte == ord(":"))
        name = text[:end]
        (seed,) = hashes_of([name])
        self._known = np.append(self._known, seed)
        self._groups.append(Group(VALUED, name.decode("utf-8", "replace"), int(seed)))
        place = {group.name: number for number, group in enumerate(self._groups)}
        pairs = [(place[a], place[b]) for a, b in self._pairs if a in place and b in place]
        self._hasher.knows(self._groups, pairs)
