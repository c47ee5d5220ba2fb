"""The parser of commands: options in groups, examples, and suggestions for mistyped words."""

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

GROUPS = ("data", "features", "model", "training", "parallel", "output")


class Parser(argparse.ArgumentParser):
    """The parser of one or all commands. `task` is the task on the command line, if any."""

    def __init__(self, **given: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **given)
        self.task: str | None = None
        for title in GROUPS:  # in this order; empty ones are not shown
            self.add_argument_group(title)

    def fill(self, module: Any, arguments: list[str]) -> None:
        """Adds the options and examples of a command's module."""
        words = [part for word in arguments for part in word.split("=", 1)]
        self.task = words[words.index("--task") + 1] if "--task" in words[:-1] else None
        module.add_options(self)
        examples = "\n".join(f"  {self.prog} {example}".rstrip() for example in module.EXAMPLES)
        self.epilog = f"examples:\n{examples}".replace("%", "%%")
        places = [action for action in self._actions if not action.option_strings]
        if not any(isinstance(action.choices, dict) for action in places):  # of subcommands
            self.usage = " ".join([self.prog, *(str(one.metavar) for one in places), "[options]"])
        self.set_defaults(parser=self, run=module.run, doing=getattr(module, "DOING", None))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            options = [word for word in unknown if word.startswith("-")]
            self.error("; ".join(map(self._unknown, options or unknown)))
        return parsed, unknown

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"{word!r} is a word too many"
        name = word.partition("=")[0]
        known = [option.lstrip("-") for option in self._option_string_actions]
        return f"there is no option {name}" + did_you_mean(name.lstrip("-"), known, "--")

    def error(self, message: str) -> NoReturn:
        super().error(f"{message} (see {self.prog} --help)")


def group(parser: argparse.ArgumentParser, title: str) -> Any:
    """The group of options with this title; a new one where there is none."""
    found = (known for known in parser._action_groups if known.title == title)
    return next(found, None) or parser.add_argument_group(title)


def did_you_mean(word: str, known: Iterable[str], before: str = "") -> str:
    """A suggestion to print after an unknown word, if a known word is similar."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.75)
    return f"; did you mean {before}{near[0]}?" if near else ""
