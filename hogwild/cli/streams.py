"""Standard output and standard error, of which either may be gone: a closed pipe or terminal."""

import os
import sys
from typing import TextIO


def complain(text: str) -> None:
    """A message on standard error, as the program's own. Where that is gone, nothing."""
    try:
        print(f"hogwild: {text}".replace("\n", "\n         "), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Sends what is still to be written there nowhere: Python must not fail for it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
