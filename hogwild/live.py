"""The line on a terminal or in a notebook that shows progress and is overwritten."""

import importlib.util
import shutil
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

from hogwild import status
from hogwild.status import Doing

BAR = 24
EVERY = 0.1  # seconds between two drawings of the same thing
ERASE = "\r\033[K"


def live(wanted: bool = True) -> AbstractContextManager[None]:
    """Shows progress, if it is wanted and there is a terminal or a notebook."""
    stream = _stream() if wanted else None
    return nullcontext() if stream is None else status.shown_by(Live(stream).show)


def _stream() -> TextIO | None:
    if sys.stdout is not None and _is_notebook(sys.stdout):
        return sys.stdout
    terminals = (one for one in (sys.stderr, sys.stdout) if one is not None and one.isatty())
    return next(terminals, None)


def _is_notebook(stream: TextIO) -> bool:
    return type(stream).__module__.startswith("ipykernel")


class Live:
    """Draws the progress line, in color if rich is installed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_rich = not _is_notebook(stream) and importlib.util.find_spec("rich") is not None
        self._console: Any = None
        self._lock = threading.Lock()
        self._last: Doing | None = None
        self._words = ""  # the words of the last drawing
        self._drawn = 0.0  # the time of the last drawing
        self._length = 0  # the length of the line that is there now

    def show(self, now: Doing | None) -> None:
        """Shows what is done now; None clears the line."""
        with self._lock:
            known = now is not None and (now.brief or now is self._last)
            if now is not None and now.over and now.more != self._words:
                known = False
            if known and time.monotonic() - self._drawn < EVERY:
                return
            try:
                self._clear()
                if now is not None:
                    self._draw(now)
            except OSError:  # the terminal is gone; whoever prints next says so
                self._length = 0

    def _clear(self) -> None:
        if self._length:
            blank = "\r" + " " * self._length + "\r"  # notebooks do not know how to erase
            self._stream.write(blank if _is_notebook(self._stream) else ERASE)
            self._stream.flush()
        self._length = 0

    def _draw(self, now: Doing) -> None:
        self._last, self._words, self._drawn = now, now.more, time.monotonic()
        room = shutil.get_terminal_size().columns - 1
        full = None if now.share is None else round(BAR * min(1.0, max(0.0, now.share)))
        spent = time.monotonic() - now.began
        more = now.more or (f"{spent:.0f} s" if spent >= 1 else "")
        if full is not None:
            more = f"{100 * (now.share or 0):3.0f} %" + (f"  {more}" if more else "")
        parts = [now.what, "" if full is None else "#" * full + "." * (BAR - full), more]
        line = "  ".join(part for part in parts if part)[:room]
        self._length = len(line)
        if self._has_rich and full is not None and len(line) < room:
            self._draw_rich(now.what, full, more)
            return
        self._stream.write(line)
        self._stream.flush()

    def _draw_rich(self, what: str, full: int, more: str) -> None:
        if self._console is None:
            from rich.console import Console

            self._console = Console(file=self._stream, highlight=False)
        from rich.text import Text

        done, rest = ("━" * full, "━" * (BAR - full))
        if not (self._console.encoding or "").lower().startswith("utf"):
            done, rest = "#" * full, "." * (BAR - full)
        parts = (what, "  ", (done, "green"), (rest, "bright_black"), "  ", (more, "cyan"))
        self._console.print(Text.assemble(*parts), end="", soft_wrap=True)
        self._stream.flush()
