"""Options that several commands have, the fields of `Config` among them, and what models allow."""

import argparse
import dataclasses
from collections.abc import Collection
from typing import Any

from hogwild.config import Config, kind_of
from hogwild.data.labels import as_written
from hogwild.data.ratings import DUPLICATES
from hogwild.errors import HogwildError, OptionError
from hogwild.learn.registry import load_model
from hogwild.models.factors import FactorModel

ARGUMENTS: dict[Any, str] = {int: "N", float: "X", str: "WORD"}  # what help calls a value


def add_config(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """One option for each field of `Config`. Their values are checked there, all at once."""
    for known in dataclasses.fields(Config):
        if known.name in without:
            continue
        name, text = known.name.replace("_", "-"), known.metadata["text"].replace("%", "%%")
        flag, way = f"--{name}", {"default": known.default, "help": text}
        if known.type is bool and known.default:
            flag, way = f"--no-{name}", {"action": "store_false", "help": f"do not {text}"}
        elif known.type is bool:
            way["action"] = "store_true"
        elif kind_of(known) is bool:
            way["action"] = argparse.BooleanOptionalAction
        else:
            choices = known.metadata["choices"]
            way["type"] = number_or_text(kind_of(known))
            way["metavar"] = "|".join(choices()) if choices else ARGUMENTS[kind_of(known)]
            way["help"] += "; FROM:TO:COUNT compares values" if known.metadata["searched"] else ""
            way["help"] += "" if known.default is None else f" [{known.default}]"
        parser.add_argument(flag, dest=known.name, **way)


def config_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """The options that `add_config` added, by name."""
    return {known.name: getattr(parsed, known.name) for known in dataclasses.fields(Config)}


def add_index_base(parser: argparse.ArgumentParser) -> None:
    """For commands that read text without a model that knows."""
    parser.add_argument(
        "--index-base",
        type=lambda text: {"0": 0, "1": 1}.get(text, text),
        choices=("auto", 0, 1),
        default="auto",
        help="the number of the first column in the file [auto: 0 if it occurs, else 1]",
    )


def add_duplicates(parser: argparse.ArgumentParser) -> None:
    """For commands that learn from ratings."""
    parser.add_argument(
        "--duplicates",
        choices=DUPLICATES,
        default="keep",
        help="what to do with several ratings of an item by a user [keep: learn from them all]",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a file that train --model wrote")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Which columns of a file are users, items and values."""
    parser.add_argument(
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
    """Refuses options that this kind of model has no use for."""
    given = [name for name in options if getattr(parsed, name)]
    if given:
        raise OptionError("\n".join(f"{name}: not for a {model.kind} model" for name in given))


def plain(label: Any) -> str:
    """A label as it stood in the file: 1, where the number is 1.0."""
    return str(as_written(label))


def base_of(model: Any) -> Any:
    """The number of the first column in text that goes with a model."""
    return "auto" if model.index_base is None else model.index_base


def number_or_text(kind: Any) -> Any:
    """Turns text into a number where it is one; where not, `Config` says what it should be."""

    def convert(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return text

    return convert
