"""Text in pieces so small that a few lines have several of them."""

import pytest

from hogwild.data import pieces, sources

SIZES = ("HEAD", "PIECE", "BEHIND")


def cut_into(size: int, monkeypatch: pytest.MonkeyPatch, sizes: tuple[str, ...] = SIZES) -> None:
    """Sets bytes of a piece, and of arrays that are moved without a copy."""
    for name in sizes:
        monkeypatch.setattr(sources, name, size)
    monkeypatch.setattr(pieces, "MAPPED", size)


def by_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets two threads read however little text."""
    monkeypatch.setattr(pieces, "SMALL", 0)
    monkeypatch.setattr(pieces, "usable_cores", lambda: 2)
