"""What takes a while says what it is doing, and how far it is; a display may show that.

Only the main thread begins things, so that they end in the opposite order. Nobody looks unless
`shown_by` says who does.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

BEAT = 0.5  # seconds after which what is done is shown anew


@dataclass(eq=False)
class Doing:
    """What is done now.

    With `over`, it is shown instead of the parts of it. What is `brief` may end before anyone can
    read it, and calls `at` again and again where it does not.
    """

    what: str
    over: bool = False
    brief: bool = False
    share: float | None = None
    more: str = ""
    began: float = field(default_factory=time.monotonic)

    def at(self, share: float | None, more: str = "") -> None:
        """So much of it is done."""
        self.share, self.more = share, more
        _update()

    def counted(self, done: int, total: int, words: str) -> None:
        """So many of some parts that take about as long are done."""
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
    """While this is done. What `forks` has no thread that shows it anew: the two do not mix."""
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
    """Within it, `show` is called with what is done now, whenever that changes."""
    global _show
    before, _show = _show, show
    try:
        yield
    finally:
        clear()
        _show = before


def clear() -> None:
    """Something is to be printed where the display may be."""
    if _show is not None:
        _show(None)


def seconds_left(left: float) -> str:
    """How much longer it takes."""
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
