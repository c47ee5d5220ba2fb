"""`hogwild similar`."""

import argparse
from typing import Any

from hogwild.cli.options import add_model, factor_model
from hogwild.cli.parser import group
from hogwild.cli.recommend import add_number, written
from hogwild.cli.streams import add_output, put
from hogwild.errors import OptionError
from hogwild.paths import check_files

EXAMPLES = ("taste.hog --item 1193", "taste.hog --user 42 -n 5")
DOING = "comparing"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    for role in ("item", "user"):
        group(parser, "data").add_argument(
            f"--{role}", action="append", metavar="ID", help=f"find what is similar to this {role}"
        )
    add_number(parser)
    add_output(parser)
    add = group(parser, "output").add_argument
    add("--json", action="store_true", help="a JSON object a line for each ID")


def run(parsed: argparse.Namespace) -> int:
    """Prints an id, a similar one, and the cosine between them, separated by tabs."""
    if bool(parsed.item) == bool(parsed.user):
        raise OptionError("item: name items with --item ID, or users with --user ID")
    check_files({"output": parsed.output}, parsed.model)
    model = factor_model(parsed.model, "similar")
    alike: Any
    if parsed.item:
        role, asked, ids, alike = "item", parsed.item, model.item_ids, model.similar_items
    else:
        role, asked, ids, alike = "user", parsed.user, model.user_ids, model.similar_users
    names = (role, role + "s", "similarities")
    put(written(asked, ids, alike(asked, parsed.n), names, parsed.json), parsed.output)
    return 0
