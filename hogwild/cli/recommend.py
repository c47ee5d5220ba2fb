"""`hogwild recommend`."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from hogwild.cli.options import add_columns, add_model, factor_model
from hogwild.cli.parser import group
from hogwild.cli.streams import add_output, put
from hogwild.data.ids import Ids
from hogwild.data.ratings_files import load_ratings
from hogwild.errors import OptionError
from hogwild.models.factors import FactorModel
from hogwild.paths import check_files

USERS = 4096  # users that get recommendations at a time

EXAMPLES = (
    "taste.hog --user 42 --exclude-seen ratings.csv",
    "taste.hog --all-users --output best.tsv",
)
DOING = "recommending"


def add_options(parser: argparse.ArgumentParser) -> None:
    add = group(parser, "data").add_argument
    add_model(parser)
    add("--user", action="append", metavar="ID", help="recommend for this user (may be repeated)")
    add("--all-users", action="store_true", help="recommend for every user")
    add_number(parser)
    add("--exclude-seen", metavar="FILE", help="leave out items that users rated in this file")
    add_columns(parser)
    add_output(parser)
    add = group(parser, "output").add_argument
    add("--json", action="store_true", help="a JSON object a line for each user")


def add_number(parser: argparse.ArgumentParser) -> None:
    add = group(parser, "output").add_argument
    add("-n", "--n", type=int, default=10, metavar="N", help="how many [10]")


def run(parsed: argparse.Namespace) -> int:
    """Prints user, item and score for each user's best items, with tabs between."""
    if bool(parsed.user) == parsed.all_users:
        raise OptionError("user: give --user ID or --all-users")
    if parsed.columns and not parsed.exclude_seen:
        raise OptionError("columns: it needs --exclude-seen, the file that they are in")
    check_files({"output": parsed.output}, parsed.model, parsed.exclude_seen)
    model = factor_model(parsed.model, "recommend")
    put(_recommended(model, parsed), parsed.output)
    return 0


def _recommended(model: FactorModel, parsed: argparse.Namespace) -> Iterator[str]:
    file = parsed.exclude_seen
    seen = load_ratings(file, columns=parsed.columns, values=False) if file else None
    asked = model.user_ids if parsed.all_users else parsed.user
    for begin in range(0, len(asked), USERS):
        users = asked[begin : begin + USERS]
        found = model.recommend(users, parsed.n, exclude=seen)
        yield from written(users, model.user_ids, found, ("user", "items", "scores"), parsed.json)


def written(
    asked: Any, ids: Ids, found: tuple[Any, Any], names: tuple[str, str, str], as_json: bool
) -> Iterator[str]:
    """The lines for each given id: other ids and their scores."""
    role, *columns = names
    for code, others, scores in zip(ids.codes_of(asked).tolist(), *found, strict=True):
        one = ids[code]  # the id as the model stores it: a number if ids are numbers
        there = scores > float("-inf")
        pairs = others[there].tolist(), scores[there].tolist()
        if as_json:
            yield json.dumps({role: one} | dict(zip(columns, pairs, strict=True))) + "\n"
        else:
            lines = zip(*pairs, strict=True)
            yield "".join(f"{one}\t{other}\t{score:.6g}\n" for other, score in lines)
