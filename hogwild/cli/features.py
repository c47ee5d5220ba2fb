"""Options for features: the fields of `Settings`."""

import argparse
import dataclasses
from typing import Any

from hogwild.cli.options import number_or_text
from hogwild.cli.parser import Parser, group
from hogwild.features.settings import LISTS, NAMES, Settings, stop_words_of


def add_features(parser: Parser) -> None:
    """Adds one option for each setting. Options that are not given are left out of the result."""
    add = group(parser, "features").add_argument
    for known in dataclasses.fields(Settings):
        name, text = known.name.replace("_", "-"), known.metadata["text"].replace("%", "%%")
        way: dict[str, Any] = {"default": argparse.SUPPRESS, "help": text, "dest": known.name}
        flag, limits = f"--{name}", known.metadata
        if known.default is True:
            add(f"--no-{name}", action="store_false", **way | {"help": f"do not {text}"})
            continue
        if known.default is False:
            add(flag, action="store_true", **way)
            continue
        if limits["choices"]:
            way["metavar"] = "|".join(limits["choices"])
        elif limits["least"] is not None:
            way |= {"metavar": "N", "type": number_or_text(int)}
        elif known.name in LISTS:
            way["metavar"] = "A:B,..." if known.name == "interact" else "NAMES"
        else:
            way["metavar"] = "FILE" if known.name == "stop_words" else "X"
        if known.default not in (None, (), 0):
            way["help"] += f" [{known.default}]"
        add(flag, **way)


def feature_options(parsed: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_features` that were given, by name."""
    given = {name: getattr(parsed, name) for name in NAMES if hasattr(parsed, name)}
    if "stop_words" in given:
        given["stop_words"] = stop_words_of(given["stop_words"])
    return given
