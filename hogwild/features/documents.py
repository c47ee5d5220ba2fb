"""Text, a document a line, with its label first."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from hogwild.data.labels import as_written
from hogwild.errors import DataError
from hogwild.features.blocks import Block, Dealer
from hogwild.features.hashing import Group, Hasher, Part, ProblemError
from hogwild.features.layout import Layout
from hogwild.features.settings import LISTS, Settings
from hogwild.kernels import fields as kernels
from hogwild.kernels.fields import PREFIX, split_documents
from hogwild.kernels.hashing import LABEL, WORDS

LOOKED_AT = 1_000  # lines, to see whether they have labels

STYLES = {
    "none": kernels.UNLABELLED,
    "tab": kernels.TABBED,
    "word": kernels.FIRST_WORD,
    "fasttext": kernels.PREFIXED,
}


GROUPS = [Group(LABEL, "the label", 0), Group(WORDS, "", 0)]


def _parser(hasher: Hasher, style: int) -> Callable[[Block], list[Part]]:
    """What makes rows of a block."""

    def parse(block: Block) -> list[Part]:
        at, parts = block.begin, []
        state = np.zeros(kernels.STATE, np.uint64)
        while at < block.size:
            stop, rows = split_documents(block.text, at, block.size, style, hasher.fields, state)
            at = int(stop)
            parts += hasher.hash(block, int(rows))
            if state[kernels.WRONG] == kernels.NO_LABEL:
                raise ProblemError(
                    at, "the line has no tab, which must stand between label and document"
                )
            if not rows and state[kernels.WRONG] == kernels.NO_ROOM:
                raise ProblemError(at, "the line has too many labels")
        return parts

    return parse


def layout(
    settings: Settings, dealer: Dealer, name: str, labels: bool, known: tuple[Any, ...]
) -> Layout:
    """The layout of documents; `known` are the labels of a model, to tell them from documents."""
    settings.refuse((*LISTS, "label", "header"), "text (of a table say which format: csv)")
    lines = [line for line in dealer.beginning().splitlines() if line.strip()][:LOOKED_AT]
    style = settings.label_style or style_of(lines[0] if lines else b"")
    if style == "none" and labels:
        raise DataError(
            f"{name}: with the label style none there are no labels to learn from or compare with"
        )
    if not labels and style in ("tab", "word") and not _are_labelled(lines, style, known, name):
        style = "none"
    code = STYLES[style]
    settings = dataclasses.replace(settings, format="text", label_style=style)
    return Layout(settings, GROUPS, lambda hasher: _parser(hasher, code))


def style_of(line: bytes) -> str:
    """Where a line has its label."""
    if line.startswith(PREFIX):
        return "fasttext"
    word, tab, _ = line.lstrip(b" ").partition(b"\t")
    return "tab" if tab and b" " not in word else "word"


def _are_labelled(lines: list[bytes], style: str, known: tuple[Any, ...], name: str) -> bool:
    """Whether the lines of a file to predict have labels: words that the model knows, or numbers.

    A file is refused if only some of its lines begin with a label.
    """
    labels = {str(as_written(label)) for label in known}
    found = 0
    for line in lines:
        text = line.decode("utf-8", "replace").lstrip(" ")
        word, tab, _ = text.partition("\t") if style == "tab" else (*text.split(None, 1), "")[:3]
        if style == "tab" and not tab:
            continue
        found += _is_label(word.strip(), labels)
    if 0 < found < len(lines):
        raise DataError(
            f"{name}: of the first {len(lines):,} lines, {found:,} begin with a label of the model "
            "and the others do not; give labels to all lines or to none, or say --label-style none"
        )
    return found > 0


def _is_label(word: str, labels: set[str]) -> bool:
    if word in labels:
        return True
    try:
        number = float(word)
    except ValueError:
        return False
    return not labels or str(as_written(number)) in labels
