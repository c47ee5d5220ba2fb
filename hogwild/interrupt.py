"""Ctrl-C, while something must come to an end in good order: it is noted, and comes after that."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupt:
    """Within it, Ctrl-C is only noted (in `happened`), and calls `stop`, if any.

    A second Ctrl-C interrupts at once. A handler of the user's own is left alone, and so are
    threads, which hear of no Ctrl-C.
    """

    def __init__(self, stop: Callable[[], None] | None = None) -> None:
        self.happened = False
        self._stop = stop
        self._ours = False
        self._depth = 0  # it may be entered again within itself

    def __enter__(self) -> "Interrupt":
        self._depth += 1
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._handle)
            self._ours = True
        return self

    def __exit__(self, *problem: Any) -> None:
        self._depth -= 1
        if self._ours and self._depth == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._ours = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.happened:
            raise KeyboardInterrupt
        self.happened = True
        if self._stop is not None:
            self._stop()
