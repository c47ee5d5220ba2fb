"""The command line: one module for each command, and one place where errors become exit codes.

0 done, 1 failed, 2 wrong usage, 130 after Ctrl-C.
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

from hogwild.errors import HogwildError, HogwildWarning, OptionError
from hogwild.version import VERSION

COMMANDS = {
    "train": "train a model on a file",
    "predict": "predict with a model",
    "evaluate": "measure a model on labelled data, or on ratings",
    "recommend": "the best items for users, by a model of ratings",
    "similar": "items or users that are alike, by a model of ratings",
    "generate": "make synthetic data",
    "inspect": "say what is in a file, and what it means for scaling",
    "scaling": "measure how training scales with workers, and say what bounds it",
    "doctor": "say what this machine gives to hogwild",
}


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    warnings.showwarning = _show_warning
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        parsed = _parser(arguments).parse_args(arguments)
        return int(parsed.run(parsed) or 0)
    except SystemExit as leaving:  # argparse has said what it has to say
        return leaving.code if isinstance(leaving.code, int) else 1
    except OptionError as problem:
        _complain(_with_dashes(str(problem)))
        return 2
    except HogwildError as problem:
        _complain(str(problem))
        return 1
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        # Whoever read our output has enough; Python must not complain of it at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as problem:
        _complain(f"{problem.filename or 'output'}: {problem.strerror}")
        return 1
    except MemoryError:
        _complain("out of memory: use a machine with more, or less data")
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
    from hogwild.config import Config

    on = [known.name for known in dataclasses.fields(Config) if known.default is True]

    def typed(found: re.Match[str]) -> str:
        name = found[1]
        return f"--{'no-' if name in on else ''}{name.replace('_', '-')}:"

    return re.sub(r"^(\w+):", typed, problems, flags=re.M)


def _complain(text: str) -> None:
    print(f"hogwild: {text}".replace("\n", "\n         "), file=sys.stderr)


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **more: Any
) -> None:
    prefix = "" if issubclass(category, HogwildWarning) else f"{category.__name__}: "
    print(f"hogwild: {prefix}{message}", file=sys.stderr)
