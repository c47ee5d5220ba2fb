"""Compiles each kernel once per machine, when it is first used, and keeps it in its own file.

The file's name holds a fingerprint of all that the machine code is made from: the bytecode of the
function and of everything that it reaches, the signature, numba, Python and the processor. A
changed comment recompiles nothing. A changed callee in another file recompiles its callers. Two
processes may compile at the same time without mixing up their kernels. numba's own cache cannot
promise this, since it keeps one index for all closures of a factory.
"""

import hashlib
import importlib
import itertools
import mmap
import os
import pickle
import platform
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

import llvmlite.binding
import numba
from numba.core import config as numba_config
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import Flags
from numba.core.registry import cpu_target
from numba.core.typing.templates import builtin_registry
from numba.extending import register_jitable

from hogwild import status
from hogwild.errors import HogwildError
from hogwild.interrupt import Interrupt

HOT = "is_always_inline"
F = TypeVar("F", bound=Callable[..., Any])

_COMPILING = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A fork waits until no thread compiles. The child has only the thread that forked. Locks that
    # other threads hold (this one, numba's and LLVM's) would stay locked in the child forever
    os.register_at_fork(
        before=_COMPILING.acquire,
        after_in_parent=_COMPILING.release,
        after_in_child=_COMPILING.release,
    )
_compiled = 0  # kernels, by this process
_with_blas = True
FILES = 2  # version of the kernel files; raise it when older files must not be used any more
# Bytes of memory: with less, kernels are not compiled, or loaded (measured: 0.5 to 3 MB, 0.1 MB)
ROOM_TO_COMPILE, ROOM_TO_LOAD = 16 << 20, 4 << 20
_DIGEST = 32  # bytes of a SHA-256, which come first in a kernel's file

# All of `fastmath` but the promises that no NaN and no infinity occur: overflow must stay visible.
FAST = {"reassoc", "contract", "arcp", "nsz"}


def inline(function: F) -> F:
    """Marks a function as part of the kernels that call it; from Python it is called as it is."""
    return _helper(function)


def always_inline(function: F) -> F:
    """As `inline`, even if LLVM decides otherwise (which in `text.py` costs a third of the speed).

    numba also inlines the functions that this one calls. Mark rarely called ones as `seldom`.
    """
    setattr(function, HOT, True)  # which the bytecode does not tell
    return _helper(function, forceinline=True)


def seldom(function: F) -> F:
    """As `inline`, without a copy at each call from an `always_inline` function."""
    setattr(function, HOT, False)
    return _helper(function, forceinline=False)


def _helper(function: F, **options: bool) -> F:
    marked: F = register_jitable(no_cfunc_wrapper=True, **options)(function)
    registered, kind = builtin_registry.globals[-1]
    if registered is function and hasattr(kind.templates[0], "_impl_cache"):
        kind.templates[0]._impl_cache = _CompiledHelpers(kind.templates[0]._jit_options)
    return marked


class _CompiledHelpers(dict[Any, Any]):
    """The compiled forms of a helper, by argument types and by its own options.

    numba looks them up by the options of the caller, and so compiles a helper once for each kind of
    caller: kernel, `inline` and `always_inline`.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    def _key(self, key: Any) -> Any:
        flags = Flags()
        cpu_target.options.parse_as_flags(flags, self._options)  # inherits fastmath and others
        return (*key[:-1], flags)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self._key(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(self._key(key), value)


@cache
def cache_folder() -> Path | None:
    """Where compiled kernels are kept, or None where no such folder can be written to."""
    try:
        base = numba_config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "hogwild" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: nobody knows of a home
        return None
    return folder if os.access(folder, os.W_OK) else None


def leave_out_blas() -> None:
    """Stops numba from importing scipy.linalg, which takes 0.1 s. Only for the command line.

    numba needs scipy.linalg for products of matrices, which no kernel here has.
    """
    global _with_blas
    _with_blas = False


def _import_without_blas() -> None:
    def no_blas() -> None:
        raise ImportError("not asked for")

    with suppress(ImportError, AttributeError):  # these are private names
        linalg: Any = importlib.import_module("numba.np.linalg")
        known, linalg.ensure_blas = linalg.ensure_blas, no_blas
        try:
            importlib.import_module("numba.np.arraymath")  # asks for it once
        finally:
            linalg.ensure_blas = known


class Kernel:
    """A function with one signature, compiled or loaded from its file when it is first called."""

    def __init__(
        self, function: Callable[..., Any], signature: Any, fast: bool = True, name: str = ""
    ) -> None:
        self.function = function
        self.signature = signature
        self.fast = fast
        self._compiled: Any = None
        self.__doc__ = function.__doc__
        self.__name__ = name or function.__name__

    @property
    def compiled(self) -> Any:
        """numba's dispatcher. Get it before a fork, so that the children need not compile."""
        if self._compiled is None:
            # An exception that comes while LLVM is at work can be lost in one of its callbacks
            with Interrupt() as interrupt:
                self._compiled = self._made()
            interrupt.check()
        return self._compiled

    @property
    def is_ready(self) -> bool:
        """Whether it was compiled or loaded."""
        return self._compiled is not None

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    @property
    def fingerprint(self) -> str:
        """A hash of all that the machine code is made from."""
        made_from = hashlib.sha256()
        kinds = self.signature.return_type, *self.signature.args
        for part in (_system(), repr(self.fast), *map(_kind, kinds)):
            made_from.update(part.encode())
        for piece in _pieces(self.function, set()):
            made_from.update(piece)
        return made_from.hexdigest()[:24]

    def _made(self) -> Any:
        if not hasattr(time, "clock_gettime"):
            raise HogwildError(
                "hogwild's compiled code needs clock_gettime and sched_yield, which "
                f"{platform.system()} does not have: use Linux (on Windows: WSL)"
            )
        # Without numba's memory manager: kernels allocate nothing, and counting references to
        # arrays takes up to a fifth of the time
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
        options["no_cfunc_wrapper"] = True  # nobody calls them from C; saves a fifth of the time
        if self.fast:
            options["fastmath"] = FAST
        with _COMPILING:
            dispatcher = numba.njit(**options)(self.function)
            folder = cache_folder()
            file = None
            if folder is not None:
                file = _File(folder / f"{self.__name__}-{self.fingerprint}.kernel")
                dispatcher._cache = file
            known = file is not None and file.is_sound
            if not (known or _with_blas):
                _import_without_blas()
            _check_room(ROOM_TO_LOAD if known else ROOM_TO_COMPILE)
            with _names_of_our_own(), _compiling(known):
                dispatcher.compile(self.signature)
            dispatcher.disable_compile()
        return dispatcher


def _check_room(size: int) -> None:
    """Refuses where LLVM would find no memory and end the process, as under `ulimit -v`."""
    try:
        mmap.mmap(-1, size).close()
    except OSError:
        raise HogwildError(
            f"out of memory: {size >> 20} MB to compile or load a kernel are not there; free some, "
            "or raise the limit (ulimit -v)"
        ) from None


@contextmanager
def _compiling(known: bool) -> Iterator[None]:
    """Says that a kernel is compiled, unless it is known."""
    global _compiled
    if known:
        yield
        return
    when = "first run on this machine" if cache_folder() else "no folder to keep them in"
    with status.doing(f"compiling kernels ({when}): {_compiled + 1}"):
        yield
    _compiled += 1


@contextmanager
def _names_of_our_own() -> Iterator[None]:
    """Gives functions that are compiled meanwhile names that no other process uses.

    numba numbers functions from 1 in every process, and a function's number is part of its symbol.
    If files of several processes hold functions with the same symbol, the linker takes the first
    for all of them: the kernel of one loss would run the step of another.
    """
    counter = FunctionIdentity._unique_ids
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))
    try:
        yield
    finally:
        FunctionIdentity._unique_ids = counter


class _File:
    """What numba's dispatcher asks of a cache, for one kernel.

    A file that is damaged, as after a power cut, is deleted and written again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cache_path = str(path.parent)
        self._data = b""
        with suppress(OSError):
            data = path.read_bytes()
            if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
                self._data = data[_DIGEST:]
            else:
                path.unlink()

    @property
    def is_sound(self) -> bool:
        """Whether there is a whole file."""
        return bool(self._data)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The compiled function, or None.

        numba's own cache first imports all that numba can compile (0.1 s), which machine code that
        neither allocates nor raises does not need. Compiling imports it.
        """
        data, self._data = self._data, b""
        if not data:
            return None
        try:
            rebuild = importlib.import_module("numba.core.compiler").CompileResult._rebuild
            return rebuild(context, *pickle.loads(data))
        except Exception:  # of whatever kind: then it is compiled again
            with suppress(OSError):
                self._path.unlink()
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Writes the compiled function; where the disk is full, there is none."""
        from numba.core.serialize import dumps

        beside = self._path.with_suffix(f".{secrets.token_hex(4)}")
        try:
            data = dumps(_without_bitcode(compiled._reduce()))
            beside.write_bytes(hashlib.sha256(data).digest() + data)
            beside.replace(self._path)
        except OSError:
            beside.unlink(missing_ok=True)


def _without_bitcode(compiled: Any) -> Any:
    """What numba stores of a compiled function, with a short stand-in for its bitcode.

    Other functions could be linked with the bitcode, which none are. Reading it takes most of the
    time to load a kernel. Of what it defines, numba must know the two functions that it calls.
    """
    match compiled:
        case ((name, "object", (code, _)), function, *more):
            called = function.llvm_func_name, function.llvm_cpython_wrapper_name
            text = "\n".join(f'define void @"{symbol}"() {{ ret void }}' for symbol in called)
            stand_in = llvmlite.binding.parse_assembly(text).as_bitcode()
            return (name, "object", (code, stand_in)), function, *more
    return compiled


@cache
def _system() -> str:
    processor = cpu_target.target_context.codegen().magic_tuple()
    # What this module teaches numba's operators is reached by no name
    vectors = Path(__file__).with_name("vectors.py").read_text()
    return f"{FILES} {numba.__version__} {sys.version} {processor} {vectors}"


def _kind(kind: Any) -> str:
    """A type of numba's, with the fields of named tuples: their order is part of the code."""
    inner = [_kind(part) for part in getattr(kind, "types", ())]
    return f"{kind!r} {getattr(kind, 'fields', '')} {inner}"


def _pieces(thing: Any, seen: set[int]) -> Iterator[bytes]:
    """All that a function is made of: bytecode, constants, and what its names stand for."""
    if isinstance(thing, FunctionType):
        if id(thing) in seen:
            return
        seen.add(id(thing))
    label, parts = _label_and_parts(thing)
    yield label.encode()
    for part in parts:
        yield from _pieces(part, seen)


def _label_and_parts(thing: Any) -> tuple[str, Sequence[Any]]:
    kind = type(thing).__name__
    if isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        known = thing.__globals__
        named = [known[name] for name in _names(thing.__code__) if name in known]
        hot_too = [getattr(thing, HOT)] if hasattr(thing, HOT) else []
        return kind, [thing.__code__, thing.__defaults__, *cells, *named, *hot_too]
    if isinstance(thing, CodeType):
        return thing.co_code.hex(), (thing.co_names, thing.co_consts)
    if isinstance(thing, tuple | list | frozenset):
        parts = sorted(thing, key=repr) if isinstance(thing, frozenset) else thing
        return f"{kind} of {len(thing)}", parts
    if isinstance(thing, ModuleType):
        if thing.__name__.startswith("hogwild"):
            raise TypeError(f"a kernel may not reach into {thing.__name__}: import the name itself")
        # numba.core.types is called numba.types, too, once somebody has imported it by that name
        return thing.__name__.rpartition(".")[2], ()
    if hasattr(thing, "_defn"):  # an intrinsic of numba's: what emits it
        return kind, [thing._defn]
    if is_dataclass(thing) and not isinstance(thing, type):
        return kind, [getattr(thing, field.name) for field in fields(thing)]
    if isinstance(thing, type) or callable(thing):
        fields_of = getattr(thing, "_fields", "")  # in their order, of a named tuple
        return f"{thing.__module__} {getattr(thing, '__qualname__', thing)} {fields_of}", ()
    return f"{kind} {thing!r}", ()


def _names(code: CodeType) -> list[str]:
    """The global names that some code and the functions within it use."""
    inner = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return [*code.co_names, *(name for names in inner for name in names)]


def ready(*kernels: Kernel) -> None:
    """Compiles or loads these now: before a clock starts, or a process is forked."""
    for one in kernels:
        one.compiled  # noqa: B018


def kernel(signature: Any, fast: bool = True) -> Callable[[Callable[..., Any]], Kernel]:
    """Makes a `Kernel` of a function. `fast` lets sums be reordered (and so vectorised)."""
    return lambda function: Kernel(function, signature, fast)
