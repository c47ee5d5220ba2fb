"""`hogwild completion`: a script for the shell, made from the parsers of all commands."""

import argparse
import re

from hogwild.cli.parser import Parser, group
from hogwild.cli.streams import show

EXAMPLES = ("bash >> ~/.bashrc", "zsh >> ~/.zshrc")
ZSH = "autoload -U +X compinit bashcompinit && compinit -u && bashcompinit\n"
CHOICES = re.compile(r"[a-z_]+(?:\|[a-z_]+)+")
# If no words match, the shell completes names of files
SCRIPT = """_hogwild() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=""
  case "${COMP_WORDS[1]} $before" in
CHOICES    *) if [[ $COMP_CWORD -eq 1 ]]; then words="COMMANDS"
       elif [[ $word == -* ]]; then case "${COMP_WORDS[1]}" in
OPTIONS       esac; fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _hogwild hogwild"""


def add_options(parser: Parser) -> None:
    group(parser, "output").add_argument("shell", metavar="bash|zsh", choices=("bash", "zsh"))


def run(parsed: argparse.Namespace) -> int:
    """Prints the script."""
    choices, options = "", ""
    for name, parser in parsed.parsers.items():
        words = []
        for action in parser._actions:
            words += action.option_strings
            for flag in action.option_strings if CHOICES.fullmatch(str(action.metavar)) else ():
                choices += (
                    f'    "{name} {flag}") words="{str(action.metavar).replace("|", " ")}" ;;\n'
                )
        options += f'         {name}) words="{" ".join(words)}" ;;\n'
    script = SCRIPT.replace("CHOICES", choices).replace("OPTIONS", options)
    commands = " ".join(parsed.parsers)
    show((ZSH if parsed.shell == "zsh" else "") + script.replace("COMMANDS", commands))
    return 0
