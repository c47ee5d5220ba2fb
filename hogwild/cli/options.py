"""Options of several commands, with the fields of `Config`; and checks for kinds of models."""

import argparse
import dataclasses
from collections.abc import Collection
from typing import Any

from hogwild.cli.parser import Parser, group
from hogwild.config import TASKS, Config, kind_of
from hogwild.data.labels import as_written
from hogwild.data.ratings import DUPLICATES
from hogwild.data.sets import Files
from hogwild.errors import HogwildError, OptionError
from hogwild.learn.registry import load_model
from hogwild.models.factors import FactorModel

ARGUMENTS: dict[Any, str] = {int: "N", float: "X", str: "WORD"}  # what help calls a value


# The groups of options in the help; all others are in the group of training
GROUP = {
    **dict.fromkeys(("class_weight", "early_stopping"), "data"),
    **dict.fromkeys(("task", "loss", "epsilon", "quantile", "l2", "l1", "intercept"), "model"),
    **dict.fromkeys(("rank", "biases", "bias_l2", "weighted", "nonnegative"), "model"),
    **dict.fromkeys(("workers", "strategy", "merge", "deterministic", "backend"), "parallel"),
    "worker_patience": "parallel",
}


def add_config(parser: Parser, without: Collection[str] = (), searches: bool = True) -> None:
    """Adds an option for each field of `Config`. `Config` checks all values at once.

    An option that is not given is left out of the result. If the command line names a task, help
    shows the values of this task. `searches`: whether several values of an option can be compared.
    """
    task = parser.task if parser.task in TASKS else None
    for known in dataclasses.fields(Config):
        if known.name in without:
            continue
        name, text = known.name.replace("_", "-"), known.metadata["text"].replace("%", "%%")
        flag, way = f"--{name}", {"default": argparse.SUPPRESS, "help": text}
        if known.type is bool and known.default:
            flag = f"--no-{name}"
            way |= {"action": "store_false", "help": f"do not {text}"}
        elif known.type is bool:
            way["action"] = "store_true"
        elif kind_of(known) is bool:
            way["action"] = argparse.BooleanOptionalAction
        else:
            choices = known.metadata["choices"]
            way["type"] = number_or_text(kind_of(known))
            way["metavar"] = ARGUMENTS[kind_of(known)]
            if choices and (task or choices() == choices("svm") == choices("mf")):
                way["metavar"] = "|".join(choices(task))
            elif choices:
                way["help"] += f". {names_by_task(choices)}"
            if searches and known.metadata["searched"]:
                way["help"] += "; FROM:TO:COUNT compares values"
            way["help"] += "" if known.default is None else f" [{known.default}]"
        if task and known.metadata["family"] not in (None, TASKS[task].family):
            way["help"] = argparse.SUPPRESS
        group(parser, GROUP.get(known.name, "training")).add_argument(flag, dest=known.name, **way)


def names_by_task(choices: Any) -> str:
    """What each task can choose from, or what all tasks can."""
    names: dict[str, list[str]] = {}
    for task in TASKS:
        names.setdefault(", ".join(choices(task)), []).append(task)
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{', '.join(tasks)}: {some}" for some, tasks in names.items())


def config_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_config` that were given, by name."""
    names = [known.name for known in dataclasses.fields(Config)]
    return {name: getattr(parsed, name) for name in names if hasattr(parsed, name)}


def add_index_base(parser: argparse.ArgumentParser) -> None:
    """For commands that read text without a model that knows the index base."""
    group(parser, "data").add_argument(
        "--index-base",
        type=lambda text: {"0": 0, "1": 1}.get(text, text),
        choices=("auto", 0, 1),
        default="auto",
        help="the number of the first column in the file [auto: 0 if it occurs, else 1]",
    )


def add_data(parser: argparse.ArgumentParser, text: str, optional: bool = False) -> None:
    """DATA: one file or more."""
    more = "; several files, a folder or a pattern in quotes are read as one"
    parser.add_argument("data", metavar="DATA", nargs="*" if optional else "+", help=text + more)


def files_in(parsed: argparse.Namespace) -> Files:
    """DATA: the file that was named, or the files."""
    given: list[str] = parsed.data
    return given[0] if len(given) == 1 else given


def add_duplicates(parser: argparse.ArgumentParser) -> None:
    """For commands that learn from ratings."""
    group(parser, "data").add_argument(
        "--duplicates",
        choices=DUPLICATES,
        default="keep",
        help="what to do with several ratings of an item by a user [keep: learn from them all]",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a file that train --model wrote")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Which columns of a file are users, items and values."""
    group(parser, "data").add_argument(
        "--columns",
        metavar="A,B,C",
        help="columns of user, item and rating, by name or place [by usual names, or 1,2,3]",
    )


def factor_model(path: str, command: str) -> FactorModel:
    """A model of ratings; other models are refused."""
    model = load_model(path)
    if model.kind != FactorModel.kind:
        raise HogwildError(
            f"{path} holds a {model.kind} model; {command} needs factors of users and items: "
            "train them with --task mf"
        )
    return model  # type: ignore[no-any-return]


def refuse(parsed: argparse.Namespace, model: Any, *options: str) -> None:
    """Refuses options that do not apply to this kind of model."""
    given = [name for name in options if getattr(parsed, name)]
    if given:
        raise OptionError("\n".join(f"{name}: not for a {model.kind} model" for name in given))


def plain(label: Any) -> str:
    """A label as it stood in the file: 1 for the number 1.0."""
    return str(as_written(label))


def base_of(model: Any) -> Any:
    """The number of the first column in text that goes with a model."""
    return "auto" if model.index_base is None else model.index_base


def number_or_text(kind: Any) -> Any:
    """Turns text into a number if possible; if not, `Config` says what the value should be."""

    def convert(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return text

    return convert
