"""`--config FILE`: options from a TOML file, or from the record of an earlier run."""

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

from hogwild.cli.parser import did_you_mean
from hogwild.errors import DataError, OptionError


def with_config(words: list[str], parsed: argparse.Namespace) -> list[str]:
    """The words of the file, followed by the words of the command; later words win."""
    path = parsed.config
    try:
        text = Path(path).read_text()
    except (OSError, ValueError) as problem:
        raise DataError(f"config: {path} cannot be read: {problem}") from None
    given = _from_record(path, text) if text.lstrip().startswith("{") else _from_toml(path, text)
    actions = {action.dest: action for action in parsed.parser._actions}
    actions = {name: one for name, one in actions.items() if name not in ("help", "config")}
    more: list[str] = []
    problems: list[str] = []
    for typed, value in given.items():
        name = typed.replace("-", "_")
        if name not in actions:
            near = did_you_mean(name, actions)
            problems.append(f"config: {path}: there is no option {typed!r}{near}")
            continue
        try:
            more += [] if name == "data" and parsed.data else _words(actions[name], value)
        except ValueError:
            problems.append(f"config: {path}: {typed} cannot be {value!r}")
    if problems:
        raise OptionError("\n".join(problems))
    return more + words


def _words(action: argparse.Action, value: Any) -> list[str]:
    """The words on a command line that stand for a value."""
    if isinstance(value, bool):
        flags = action.option_strings
        if action.nargs != 0:
            raise ValueError
        if isinstance(action, argparse.BooleanOptionalAction):
            return [flags[0 if value else 1]]
        return [flags[0]] if value == action.const else []
    if isinstance(value, list) and not action.option_strings:
        return list(map(str, value))
    if isinstance(value, list):
        value = ",".join(map(str, value))
    if action.nargs == 0 or not isinstance(value, str | int | float):
        raise ValueError
    return [f"{action.option_strings[0]}={value}"] if action.option_strings else [str(value)]


def _from_toml(path: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except ValueError as problem:
        raise DataError(f"config: {path} is neither TOML nor a trace: {problem}") from None


def _from_record(path: str, text: str) -> dict[str, Any]:
    """The options that a run was given, from its trace."""
    try:
        rows = map(json.loads, text.splitlines())
        return dict(next(row for row in rows if row["kind"] == "header")["asked"])
    except (ValueError, KeyError, TypeError, StopIteration):
        raise DataError(
            f"config: {path} is not a trace that has the options of its run; "
            "train --trace writes one"
        ) from None
