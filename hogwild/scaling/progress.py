"""How a study goes, while it goes: a line on a terminal."""

import sys
import time
from types import TracebackType


class Progress:
    """A line on standard error that is written over; nothing, where that is no terminal."""

    def __init__(self) -> None:
        self._live = sys.stderr is not None and sys.stderr.isatty()
        self._began: float | None = None
        self._done = 0

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._write("")

    def __call__(self, done: int, total: int, what: str) -> None:
        """So many of the runs are done, and this is next."""
        if done > self._done and self._began is None:  # the first run, whose start was not seen
            self._began, self._done = time.monotonic(), done
        self._write(f"run {min(done + 1, total)} of {total}: {what}{self._left(done, total)}")

    def _left(self, done: int, total: int) -> str:
        if self._began is None or done <= self._done:
            return ""
        each = (time.monotonic() - self._began) / (done - self._done)
        return f", about {each * (total - done):.0f} s left"

    def _write(self, text: str) -> None:
        if self._live:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
