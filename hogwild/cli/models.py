"""What commands ask of a model file: that it holds the kind of model that they are for."""

import argparse
from typing import Any

from hogwild.errors import HogwildError, OptionError
from hogwild.learn.registry import load_model
from hogwild.models.factors import FactorModel


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
