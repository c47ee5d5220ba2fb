"""The command line: one module for each command, and one place where errors become exit codes.

0 done, 1 failed, 2 wrong usage, 130 after Ctrl-C, SIGTERM or SIGHUP.
"""

import atexit
import errno
import gc
import importlib
import os
import re
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from hogwild import status
from hogwild.cli.parser import Parser, did_you_mean
from hogwild.cli.streams import (
    begin_output,
    complain,
    end_output,
    silence,
    silence_if_broken,
)
from hogwild.errors import HogwildError, HogwildWarning, OptionError, remedy
from hogwild.interrupt import Interrupt, heed_endings, ignore_endings
from hogwild.live import live
from hogwild.version import VERSION

# The module of each command has `add_options`, which adds its options to a parser, `run`, which
# does the work, and two EXAMPLES
COMMANDS = {
    "train": "train a model on a file",
    "predict": "predict with a model",
    "evaluate": "measure a model on labelled data, or on ratings",
    "convert": "write rows in another format: .rows is read at the speed of memory",
    "export": "write a model for other programs",
    "recommend": "the best items for users, by a model of ratings",
    "similar": "similar items or users, by a model of ratings",
    "generate": "make synthetic data",
    "inspect": "show what is in a file: data, and what it means for scaling, or a model",
    "plot": "draw the learning curves of runs",
    "scaling": "measure how training scales with workers, and what limits it",
    "doctor": "show cores, load, memory, versions and kernel cache",
    "completion": "print a script that completes commands and options in bash or zsh",
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code.

    Without arguments, this is the program itself: it takes the arguments of the process, and
    SIGTERM and SIGHUP end it as Ctrl-C does.
    """
    try:
        if arguments is not None:
            return _run(arguments)
        heed_endings()
        code = _run(sys.argv[1:], ours=True)
        ignore_endings()
        _leave(code)
        return code
    except KeyboardInterrupt as interrupt:
        ignore_endings()
        complain("; ".join(["interrupted", *map(str, interrupt.args)]))
        return 130


def _leave(code: int) -> None:
    """Ends the program. Python's own exit takes 0.2 s more to free what the system frees anyway."""
    if sys.gettrace() or sys.getprofile():  # these write their results at Python's end
        return
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # the stream is closed or has no reader
            stream.flush()
    os._exit(code)


def _run(arguments: list[str], ours: bool = False) -> int:
    warnings.showwarning = _show_warning
    begin_output()
    options: Collection[str] = ()
    try:
        with live("--quiet" not in arguments):
            # An exception while modules are imported may be lost
            with Interrupt() as interrupt, _quick_start() if ours else nullcontext():
                parser = parser_of(arguments)
            interrupt.check()
            if not arguments:
                parser.print_help(sys.stderr)
                return 2
            parsed = parser.parse_args(arguments)
            options = parsed.parser._option_string_actions
            if getattr(parsed, "config", None):
                from hogwild.cli.config_file import with_config

                place = arguments.index(parsed.parser.prog.split()[-1]) + 1
                more = with_config(arguments[place:], parsed)
                parsed = parser.parse_args([*arguments[:place], *more])
            compiling = sys.modules.get("hogwild.kernels.compile")
            if ours and compiling:
                compiling.leave_out_blas()
            with status.doing(parsed.doing) if parsed.doing else nullcontext():
                code = int(parsed.run(parsed) or 0)
            return code if end_output() else code or 1
    except SystemExit as leaving:  # argparse has printed its message
        return leaving.code if isinstance(leaving.code, int) else 1
    except OptionError as problem:
        complain(_with_dashes(str(problem), options))
        return 2
    except HogwildError as problem:
        complain(str(problem))
        return 1
    except BrokenPipeError:  # the reader of our output stopped reading
        silence(sys.stdout)
        return 1
    except OSError as problem:
        silence_if_broken()
        complain(_reason(problem))
        return 1
    except MemoryError:
        complain("out of memory: use less data, or a machine with more memory")
        return 1


@contextmanager
def _quick_start() -> Iterator[None]:
    """Saves a quarter of the time that imports take, for a program that ends with the command.

    The garbage collector finds nothing in modules, however often it looks. The threads of numpy's
    OpenBLAS wait for work in a loop for 0.03 s, and get none: numpy multiplies small matrices
    here, and large ones are left to scipy's OpenBLAS, which is loaded later.
    """
    threads = "OPENBLAS_NUM_THREADS"
    chosen = threads in os.environ
    os.environ.setdefault(threads, "1")
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if not chosen:
            del os.environ[threads]


def _reason(problem: OSError) -> str:
    """What the system complains about, and what to do where that is known."""
    said = problem.strerror or str(problem) or type(problem).__name__
    where = f"{problem.filename}: " if problem.filename else ""
    if problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        return f"{where}{said}: {remedy(problem)}"
    if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        where = where or "output: "
    return f"{where}{said}"


def parser_of(arguments: list[str]) -> Parser:
    """The parser for these words. Only the named command gets its options."""
    parser = Parser(
        prog="hogwild",
        description="Train sparse linear models and factorizations, fast, on one machine.",
    )
    parser.add_argument("--version", action="version", version=f"hogwild {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    named = next((word for word in arguments if not word.startswith("-")), None)
    if named is not None and named not in COMMANDS:
        near = did_you_mean(named, COMMANDS)
        parser.error(f"there is no command {named!r}{near or ': choose ' + ', '.join(COMMANDS)}")
    for name, summary in COMMANDS.items():
        # For other commands the name is enough, so their modules are not imported
        command = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        if named in (name, "completion"):
            with status.doing("starting"):
                module = importlib.import_module(f"hogwild.cli.{name}")
            command.fill(module, arguments)
    parser.set_defaults(parsers=commands.choices)
    return parser


def _with_dashes(problems: str, options: Collection[str]) -> str:
    """Problems with the names of a command's options as they are typed."""

    def typed(found: re.Match[str]) -> str:
        name = found[1].replace("_", "-")
        return next(
            (f"{flag}:" for flag in (f"--{name}", f"--no-{name}") if flag in options), found[0]
        )

    return re.sub(r"^(\w+):", typed, problems, flags=re.M)


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    prefix = "" if issubclass(category, HogwildWarning) else f"{category.__name__}: "
    complain(f"{prefix}{message}")
