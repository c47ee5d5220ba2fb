"""The command line: one module for each command, and one place where errors become exit codes.

0 done, 1 failed, 2 wrong usage, 130 after Ctrl-C, SIGTERM or SIGHUP.
"""

import argparse
import dataclasses
import importlib
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from hogwild.cli.streams import complain, silence
from hogwild.errors import HogwildError, HogwildWarning, OptionError
from hogwild.interrupt import Interrupt, heed_endings, ignore_endings
from hogwild.version import VERSION

# Of each, the module adds its options to a parser with `add_options`, and does it with `run`
COMMANDS = {
    "train": "train a model on a file",
    "predict": "predict with a model",
    "evaluate": "measure a model on labelled data, or on ratings",
    "export": "write a model for other programs",
    "recommend": "the best items for users, by a model of ratings",
    "similar": "similar items or users, by a model of ratings",
    "generate": "make synthetic data",
    "inspect": "show what is in a file: data, and what it means for scaling, or a model",
    "plot": "draw the learning curves of runs",
    "scaling": "measure how training scales with workers, and what limits it",
    "doctor": "show cores, load, memory, versions and kernel cache",
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code.

    Without arguments it is the program itself: it takes those of the process, and SIGTERM and
    SIGHUP end it as Ctrl-C does.
    """
    try:
        if arguments is not None:
            return _run(arguments)
        heed_endings()
        code = _run(sys.argv[1:])
        ignore_endings()
        return code
    except KeyboardInterrupt as interrupt:
        ignore_endings()
        complain("; ".join(["interrupted", *map(str, interrupt.args)]))
        return 130


def _run(arguments: list[str]) -> int:
    warnings.showwarning = _show_warning
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        with Interrupt() as interrupt:  # an exception while modules are imported may be lost there
            parsed = _parser(arguments).parse_args(arguments)
        interrupt.check()
        code = int(parsed.run(parsed) or 0)
        sys.stdout.flush()
        return code
    except SystemExit as leaving:  # argparse has said what it has to say
        return leaving.code if isinstance(leaving.code, int) else 1
    except OptionError as problem:
        complain(_with_dashes(str(problem)))
        return 2
    except HogwildError as problem:
        complain(str(problem))
        return 1
    except BrokenPipeError:  # whoever read our output has enough
        silence(sys.stdout)
        return 1
    except OSError as problem:
        complain(f"{problem.filename or 'output'}: {problem.strerror}")
        return 1
    except MemoryError:
        complain("out of memory: use a machine with more, or less data")
        return 1


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hogwild",
        description="Train sparse linear models and factorizations, fast, on one machine.",
    )
    parser.add_argument("--version", action="version", version=f"hogwild {VERSION}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    named = next((word for word in arguments if word in COMMANDS), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"hogwild {name}: {summary}.")
        if name == named:  # the others' modules need not be imported
            module = importlib.import_module(f"hogwild.cli.{name}")
            module.add_options(command)
            command.set_defaults(run=module.run)
    return parser


def _with_dashes(problems: str) -> str:
    """Names options as they are typed."""
    from hogwild.config import Config  # late: without an error, `hogwild --help` is there at once

    on = [known.name for known in dataclasses.fields(Config) if known.default is True]

    def typed(found: re.Match[str]) -> str:
        name = found[1]
        return f"--{'no-' if name in on else ''}{name.replace('_', '-')}:"

    return re.sub(r"^(\w+):", typed, problems, flags=re.M)


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    prefix = "" if issubclass(category, HogwildWarning) else f"{category.__name__}: "
    complain(f"{prefix}{message}")
