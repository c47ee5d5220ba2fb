"""Compiling: once per machine, when first used, kept in a folder that the sources name.

numba's own cache does not notice when a callee in another file changes. Here the folder's name
is a hash of all the sources that kernels are made from, so a change is a new folder.
"""

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config as numba_config
from numba.extending import register_jitable

from hogwild.interrupt import Interrupt

F = TypeVar("F", bound=Callable[..., Any])

_COMPILING = threading.Lock()

PACKAGE = Path(__file__).resolve().parent.parent
SOURCES = ("kernels", "problems")

# All of `fastmath` but the promises that no NaN and no infinity occur: overflow must stay visible.
FAST = {"reassoc", "contract", "arcp", "nsz"}


def inline(function: F) -> F:
    """Marks a function as part of the kernels that call it; from Python it is called as it is."""
    marked: F = register_jitable(function)
    return marked


def hot(function: F) -> F:
    """As `inline`, whatever LLVM thinks of it (which in `text.py` costs a third of the speed)."""
    marked: F = register_jitable(forceinline=True)(function)
    return marked


def one_of(functions: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """One function of (number, arguments...) that calls the function with that number.

    It is compiled into a kernel as a chain of comparisons, which the processor predicts: one kernel
    serves every loss and every schedule, at the speed of a kernel for each.
    """
    chain = functions[-1]
    for number in range(len(functions) - 2, -1, -1):
        chain = _either(number, functions[number], chain, number + 2 == len(functions))
    return chain


def _either(number: int, function: Any, otherwise: Any, last: bool) -> Callable[..., Any]:
    if last:

        @inline
        def choose_last(chosen: int, *arguments: float) -> Any:
            if chosen == number:
                return function(*arguments)
            return otherwise(*arguments)

        return choose_last

    @inline
    def choose(chosen: int, *arguments: float) -> Any:
        if chosen == number:
            return function(*arguments)
        return otherwise(chosen, *arguments)

    return choose


@cache
def cache_folder() -> Path | None:
    """Where compiled kernels are kept, or None where no such folder can be written to."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for room in SOURCES:
        for source in sorted((PACKAGE / room).glob("*.py")):
            digest.update(source.read_bytes())
    try:
        base = numba_config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "hogwild" / f"kernels-{digest.hexdigest()[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: nobody knows of a home
        return None
    return folder if os.access(folder, os.W_OK) else None


@contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    """numba's folder is a global setting: ours only while ours is compiled."""
    with _COMPILING:
        before = numba_config.CACHE_DIR
        numba_config.CACHE_DIR = str(folder)
        try:
            yield
        finally:
            numba_config.CACHE_DIR = before


class Kernel:
    """A function with one signature, compiled or loaded from the cache when it is first called."""

    def __init__(self, function: Callable[..., Any], signature: Any, fast: bool) -> None:
        self.function = function
        self.signature = signature
        self.fast = fast
        self._compiled: Any = None
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    @property
    def compiled(self) -> Any:
        """numba's dispatcher. Ask for it before a fork, and the children need not compile."""
        if self._compiled is None:
            self._compiled = self._compile()
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    def _compile(self) -> Any:
        # An exception that comes while LLVM is at work can be lost in one of its callbacks
        with Interrupt() as interrupt:
            compiled = self._made()
        interrupt.check()
        return compiled

    def _made(self) -> Any:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        if self.fast:
            options["fastmath"] = FAST
        folder = cache_folder()
        if folder is not None:
            # A full disk or a damaged file there, of whatever kind: then without the folder
            with suppress(Exception), _caching_in(folder):
                return numba.njit(self.signature, cache=True, **options)(self.function)
        return numba.njit(self.signature, **options)(self.function)


def ready(*kernels: Kernel) -> None:
    """Compiles or loads these now: before a clock starts, or a process is forked."""
    for one in kernels:
        one.compiled  # noqa: B018


def kernel(signature: Any, fast: bool = True) -> Callable[[Callable[..., Any]], Kernel]:
    """Makes a `Kernel` of a function. `fast` lets sums be reordered (and so vectorised)."""
    return lambda function: Kernel(function, signature, fast)
