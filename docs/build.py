"""Hooks of mkdocs: what pages take from other files and from the program.

<!-- include FILE -->              a Markdown file, its headings one level lower
<!-- include FILE until TEXT -->   its beginning, without the title
<!-- commands -->                  the commands and their options, from the parsers themselves
<!-- options -->                   the options of training, from the fields of `Config`
{VERSION}                          the version
"""

import argparse
import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CHECKOUT))

from hogwild import cli  # noqa: E402
from hogwild.cli.options import names_by_task  # noqa: E402
from hogwild.config import Config  # noqa: E402
from hogwild.version import VERSION  # noqa: E402

INCLUDE = re.compile(r"<!-- include (\S+?)(?: until (.+?))? -->")
# How mkdocstrings takes a line of a docstring that describes several attributes
SEVERAL = re.compile(r"(\w+,)</span></code></b>\s*\(<code>\(?(.*?)\)?</code>\)")
TAG = re.compile(r"<[^>]+>")
SPECIAL = re.compile(r"([*<|_])")  # in Markdown
DASHED = re.compile(r"--([a-z][a-z0-9-]*)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page, with what it takes from elsewhere."""
    markdown = INCLUDE.sub(lambda found: included(found[1], found[2]), markdown)
    markdown = markdown.replace("{VERSION}", f"{{{VERSION}}}")
    markdown = markdown.replace("<!-- options -->", "\n".join(options()))
    return markdown.replace("<!-- commands -->", "\n".join(commands()))


def on_page_content(html: str, **_: Any) -> str:
    """The contents of a page; options of the command line do not break at their hyphens."""
    return html.replace("<code>--", '<code class="option">--')


def on_post_page(output: str, **_: Any) -> str:
    """A page as HTML, with the names of attributes that are described together."""

    def together(found: re.Match[str]) -> str:
        return f"{found[1]} {TAG.sub('', found[2])}</span></code></b>"

    return SEVERAL.sub(together, output)


def included(name: str, until: str | None) -> str:
    """A Markdown file, or its beginning."""
    text = (CHECKOUT / name).read_text()
    if until is not None:
        beginning, found, _ = text.partition(until)
        if not found:
            raise ValueError(f"{name}: there is no {until!r} in it, up to which a page includes it")
        return beginning.partition("\n")[2]
    parts = re.split(r"^(```.*?^```)$", text, flags=re.M | re.S)  # a # in code is a comment
    parts[::2] = [re.sub(r"^#", "##", part, flags=re.M) for part in parts[::2]]
    return "".join(parts)


def options() -> Iterator[str]:
    """The options of training as a list of definitions, in the words of Python."""
    for known in dataclasses.fields(Config):
        text, choices = known.metadata["text"], known.metadata["choices"]
        text += f". {names_by_task(choices)}" if choices and known.name != "task" else ""
        text = DASHED.sub(lambda found: f"`{found[1].replace('-', '_')}`", text)
        parts = text.split("`")
        parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
        yield f"`{known.name}={known.default!r}`\n:   {'`'.join(parts)}\n"


def commands() -> Iterator[str]:
    """Every command, and each kind of its own that it has."""
    for name, summary in cli.COMMANDS.items():
        (kinds,) = _kinds(cli.parser_of([name]))
        yield from command(kinds.choices[name], 2, summary)


def command(parser: argparse.ArgumentParser, level: int, summary: str) -> Iterator[str]:
    """A heading, what the command does, and its options by groups."""
    kinds = _kinds(parser)
    yield f"\n{'#' * level} {parser.prog}\n"
    yield summary[0].upper() + summary[1:] + ".\n"
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    named = [_name(action) for action in shown if not action.option_strings]
    options = [action for action in shown if action.option_strings and action.dest != "help"]
    yield f"```text\n{' '.join([parser.prog, *['[options]'][: len(options)], *named])}\n```\n"
    for group in parser._action_groups:
        of_group = [action for action in group._group_actions if action in shown]
        yield from described(parser, group.title, [a for a in of_group if a not in kinds])
    if parser.epilog:
        yield f"```text\n{parser.epilog.strip()}\n```\n"
    for kind in kinds:
        for (name, chosen), about in zip(kind.choices.items(), kind._choices_actions, strict=True):
            assert name == about.dest
            yield from command(chosen, level + 1, about.help or name)


def described(
    parser: argparse.ArgumentParser, title: str | None, actions: list[argparse.Action]
) -> Iterator[str]:
    """Options as a list of definitions."""
    formatter = parser.formatter_class(parser.prog)
    actions = [action for action in actions if action.dest != "help"]
    if actions and title:
        yield f"**{title[0].upper()}{title[1:]}**\n"
    for action in actions:
        name = formatter._format_action_invocation(action).replace("|", " | ")
        text = formatter._expand_help(action) if action.help else ""
        text = SPECIAL.sub(r"\\\1", text)
        yield f"`{name}`\n:   {text}\n"


def _kinds(parser: argparse.ArgumentParser) -> list[Any]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _name(action: argparse.Action) -> str:
    return str(action.metavar or action.dest)
