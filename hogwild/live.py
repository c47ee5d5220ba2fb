"""Shows progress: a line on a terminal that is overwritten, or a line of its own in a notebook."""

import importlib.util
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TextIO

from hogwild import status
from hogwild.status import Doing

BAR = 24
EVERY = 0.1  # seconds between two drawings of the same thing
NOTEBOOK = 100  # characters of a line in a notebook
ERASE = "\r\033[K"
# Characters that would steer a terminal, such as those of colors, if a file's name has them
STEERING = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
del STEERING[ord("\n")], STEERING[ord("\t")]


def harmless(text: str) -> str:
    """A text without characters that steer a terminal."""
    return text.translate(STEERING)


@contextmanager
def live(wanted: bool = True) -> Iterator[None]:
    """Shows progress, if it is wanted and there is a terminal or a notebook."""
    place = _place() if wanted else None
    if place is None:
        yield
        return
    try:
        with status.shown_by(Live(place).show):
            yield
    finally:
        place.end()


def _place() -> "Place | None":
    if type(sys.stdout).__module__.startswith("ipykernel"):
        return Notebook()
    terminals = (one for one in (sys.stderr, sys.stdout) if one is not None and one.isatty())
    return next(map(Terminal, terminals), None)


class Drawing(NamedTuple):
    """What is shown: the work, how much of the bar is full if there is one, and more words."""

    what: str
    full: int | None
    more: str

    def line(self) -> str:
        bar = "" if self.full is None else "#" * self.full + "." * (BAR - self.full)
        return "  ".join(part for part in (self.what, bar, self.more) if part)

    def colored(self, utf: bool) -> Any:
        """The same for rich, in color."""
        from rich.text import Text

        full, rest = ("━", "━") if utf else ("#", ".")
        parts: list[Any] = [self.what]
        if self.full is not None:
            bar = [(full * self.full, "green"), (rest * (BAR - self.full), "bright_black")]
            parts += ["  ", *bar]
        if self.more:
            parts += ["  ", (self.more, "cyan")]
        return Text.assemble(*parts, no_wrap=True)


class Place(Protocol):
    """Where progress is drawn."""

    def clear(self) -> None:
        """Makes room for what is printed."""

    def draw(self, drawing: Drawing) -> None:
        """Replaces the last drawing."""

    def end(self) -> None:
        """Removes the last drawing."""


class Live:
    """Draws the present work, the same work not too often."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = threading.Lock()
        self._last: Doing | None = None
        self._words = ""  # the words of the last drawing
        self._drawn = 0.0  # the time of the last drawing

    def show(self, now: Doing | None) -> None:
        """Shows what is done now; None makes room for what is printed."""
        with self._lock:
            known = now is not None and (now.brief or now is self._last)
            if now is not None and now.over and now.more != self._words:
                known = False
            if known and time.monotonic() - self._drawn < EVERY:
                return
            if now is None:
                self._place.clear()
                return
            self._last, self._words, self._drawn = now, now.more, time.monotonic()
            self._place.draw(_drawing(now))


def _drawing(now: Doing) -> Drawing:
    spent = time.monotonic() - now.began
    more = now.more or (f"{spent:.0f} s" if spent >= 1 else "")
    what = harmless(now.what).replace("\n", "\\n")
    if now.share is None:
        return Drawing(what, None, more)
    share = f"{100 * now.share:3.0f} %"
    full = round(BAR * min(1.0, max(0.0, now.share)))
    return Drawing(what, full, f"{share}  {more}" if more else share)


class Terminal:
    """The last line of a terminal. Its bar has colors if rich is installed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_rich = _has_rich()
        self._console: Any = None
        self._is_empty = True

    def clear(self) -> None:
        try:
            self._erase()
        except OSError:  # the terminal is gone; whoever prints next says so
            self._is_empty = True

    end = clear

    def draw(self, drawing: Drawing) -> None:
        room = shutil.get_terminal_size().columns - 1
        line = drawing.line()
        try:
            self._erase()
            self._is_empty = not line
            if self._has_rich and drawing.full is not None and len(line) < room:
                self._draw_rich(drawing)
            else:
                self._stream.write(line[:room])
            self._stream.flush()
        except OSError:
            self._is_empty = True

    def _erase(self) -> None:
        if not self._is_empty:
            self._stream.write(ERASE)
            self._stream.flush()
        self._is_empty = True

    def _draw_rich(self, drawing: Drawing) -> None:
        if self._console is None:
            from rich.console import Console

            self._console = Console(file=self._stream, highlight=False)
        utf = (self._console.encoding or "").lower().startswith("utf")
        self._console.print(drawing.colored(utf), end="", soft_wrap=True)


class Notebook:
    """An output of its own above the printed lines, which is empty at the end.

    It has colors if rich is installed.
    """

    def __init__(self) -> None:
        self._has_rich = _has_rich()
        self._shown: Any = None

    def clear(self) -> None:
        """Leaves the drawing: what is printed stands below."""

    def draw(self, drawing: Drawing) -> None:
        if self._has_rich:
            self._put(drawing.colored(utf=True))
        else:
            self._put({"text/plain": drawing.line()[:NOTEBOOK]}, raw=True)

    def end(self) -> None:
        if self._shown is not None:
            self._put({"text/plain": "", "text/html": ""}, raw=True)

    def _put(self, content: Any, **how: Any) -> None:
        from IPython.display import display

        if self._shown is None:
            self._shown = display(content, display_id=True, **how)
        else:
            self._shown.update(content, **how)


def _has_rich() -> bool:
    return importlib.util.find_spec("rich") is not None
