"""Ctrl-C while work must end in good order: Ctrl-C is noted, and raised after the work.

A program, as opposed to a library, may ask for SIGTERM and SIGHUP to count as Ctrl-C.
"""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

# Sent by `timeout`, batch systems, service managers and closed terminals. Windows has no SIGHUP
ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
LATER = 0.001  # seconds until a KeyboardInterrupt that was lost is raised again


def nothing() -> None:
    """Does nothing, for callers that must give a function."""


class Interrupt:
    """Within this block, Ctrl-C is only noted (in `happened`), and calls all `stops`.

    A second Ctrl-C interrupts at once. The user's own handler is left alone. In threads, which get
    no Ctrl-C, and within another `Interrupt`, the block does nothing.
    """

    def __init__(self) -> None:
        self.happened = False
        self.stops: list[Callable[[], None]] = []

    def __enter__(self) -> "Interrupt":
        global _noting
        if _noting is None and threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._handle)
            _noting = self
            if _ended:  # its KeyboardInterrupt was lost, as in a destructor
                self.note()
        return self

    def __exit__(self, *problem: Any) -> None:
        global _noting
        if _noting is not self:
            return
        _noting = None
        if signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was noted."""
        if self.happened:
            raise KeyboardInterrupt

    def note(self) -> None:
        """Notes a Ctrl-C."""
        self.happened = True
        for stop in list(self.stops):
            stop()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.check()
        self.note()


_noting: Interrupt | None = None  # the outermost block that the main thread is in
_is_program = False  # whether `heed_endings` was called
_ended = False  # whether SIGTERM or SIGHUP came, or would come too late to change anything


def heed_endings() -> None:
    """Lets SIGTERM and SIGHUP end this program as Ctrl-C does. Ignored signals stay ignored."""
    global _is_program
    _is_program = True
    for number in ENDINGS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    sys.unraisablehook = _heed_lost


def ignore_endings() -> None:
    """From now on, ignores Ctrl-C and the signals of `heed_endings`: the work is done.

    As it ends, Python gives handled signals their default action back; ignored ones stay ignored.
    """
    global _ended
    for number in ENDINGS:
        if signal.getsignal(number) is _end:
            _ended = True
            signal.signal(number, signal.SIG_IGN)
    if _is_program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _heed_lost(problem: "sys.UnraisableHookArgs") -> None:
    """Raises a KeyboardInterrupt again that came within a destructor, where Python drops it."""
    if problem.exc_type is KeyboardInterrupt:
        _thread.start_new_thread(_interrupt_again, ())
    else:
        sys.__unraisablehook__(problem)


def _interrupt_again() -> None:
    global _ended
    time.sleep(LATER)  # the main thread has left the destructor, or is asked once more
    number = ENDINGS[0] if _ended else signal.SIGINT
    _ended = False
    _thread.interrupt_main(number)


def _end(number: int, frame: FrameType | None) -> None:
    """Only the first signal counts: `timeout` and systemd send two in a row."""
    global _ended
    if _ended:
        return
    _ended = True
    if _noting is None:
        raise KeyboardInterrupt
    _noting.note()
