"""Long work reports what it is doing and its progress; a display may show that.

Only the main thread reports work, so that nested work ends in the opposite order. Reports are
ignored unless `shown_by` names a display.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

BEAT = 0.5  # seconds after which the progress is shown anew


@dataclass(eq=False)
class Doing:
    """Work that is done now.

    With `over`, this work is shown instead of its parts. Work that is `brief` may end before anyone
    can read about it; if it does not end, it calls `at` again and again.
    """

    what: str
    over: bool = False
    brief: bool = False
    share: float | None = None
    more: str = ""
    began: float = field(default_factory=time.monotonic)

    def at(self, share: float | None, more: str = "") -> None:
        """Reports the share of the work that is done."""
        self.share, self.more = share, more
        _update()

    def counted(self, done: int, total: int, words: str) -> None:
        """Reports that `done` of `total` parts are done. Parts take about equally long."""
        spent = time.monotonic() - self.began
        left = f", {seconds_left(spent / done * (total - done))}" if done else ""
        self.at(done / total, words + left)


Show = Callable[[Doing | None], None]  # None: nothing is done, or something else is to be printed

_show: Show | None = None
_doing: list[Doing] = []


@contextmanager
def doing(
    what: str, over: bool = False, forks: bool = False, brief: bool = False
) -> Iterator[Doing]:
    """Reports work within a block.

    Work that `forks` gets no thread to refresh the display: threads and forks do not mix.
    """
    now = Doing(what, over, brief)
    if threading.current_thread() is not threading.main_thread():
        yield now
        return
    ended, beat = threading.Event(), None
    try:
        _doing.append(now)
        _update()
        if _show is not None and not forks:
            beat = threading.Thread(target=_beat, args=(ended,), daemon=True)
            beat.start()
        yield now
    finally:
        ended.set()
        if beat is not None:
            beat.join()
        _doing.remove(now)
        _update()


def _beat(ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        _update()


@contextmanager
def shown_by(show: Show | None) -> Iterator[None]:
    """Within the block, calls `show` with the present work whenever that changes."""
    global _show
    before, _show = _show, show
    try:
        yield
    finally:
        clear()
        _show = before


def clear() -> None:
    """Clears the display, before something is printed in its place."""
    if _show is not None:
        _show(None)


def seconds_left(left: float) -> str:
    """The remaining time in words."""
    if left < 90:
        return f"{left:.0f} s left"
    return f"{left / 60:.0f} min left" if left < 5400 else f"{left / 3600:.1f} h left"


def _update() -> None:
    if _show is not None:
        hidden = next((now for now in _doing if now.over), None)
        _show(hidden or (_doing[-1] if _doing else None))


def _forget() -> None:
    global _show
    _show = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
