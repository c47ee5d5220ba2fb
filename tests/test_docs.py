"""The code in the documentation, in README and in `examples/`: it runs, and prints what is shown.

In a page, blocks run in order, in one folder and one Python session:

    ```python     runs; a ```text block right after it shows what is printed
    ```console    each line `$ command` runs; the lines below show what is printed, if any do

In what is shown, `...` stands for anything, and numbers may differ by 5 %. In the line above a
block, `<!-- not run: WHY -->` leaves it out, and `<!-- varies: WHAT -->` compares no output.
"""

import contextlib
import io
import math
import re
import runpy
import shlex
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from hogwild import cli
from hogwild.config import TASKS, schedule_names
from hogwild.learn.choosing import SOLVERS
from hogwild.learn.losses import FACTOR_LOSSES, LOSSES
from hogwild.loops.strategies import STRATEGIES

CHECKOUT = Path(__file__).resolve().parent.parent
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
EXAMPLES = sorted((CHECKOUT / "examples").glob("*.py"))
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>not run|varies): [^\n]* -->\n)?```(?P<kind>python|console|text)\n"
    r"(?P<text>.*?)^```$",
    re.M | re.S,
)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


class Block(NamedTuple):
    line: int
    mark: str | None
    kind: str
    text: str
    shown: str  # by the block right after it


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    found = list(BLOCK.finditer(text))
    blocks = []
    for one, after in zip(found, [*found, None][1:], strict=True):
        follows = after and after["kind"] == "text" and not text[one.end() : after.start()].strip()
        line = text.count("\n", 0, one.start("kind")) + 1
        shown = after["text"] if after and follows else ""
        mark = one["mark"] or (after["mark"] if after and follows else None)
        blocks.append(Block(line, mark, one["kind"], one["text"], shown))
    return [block for block in blocks if block.kind != "text" and block.mark != "not run"]


def is_as_shown(printed: str, shown: str) -> bool:
    """Whether a text is as shown, but for numbers that differ a little."""
    pattern, numbers, at = "", [], 0
    for one in re.finditer(rf"(?P<any>\.\.\.)|(?P<number>{NUMBER.pattern})|\s+", shown):
        pattern += re.escape(shown[at : one.start()])
        at = one.end()
        if one["number"]:
            numbers.append(one["number"])
        pattern += ".*?" if one["any"] else f"({NUMBER.pattern})" if one["number"] else r"\s+"
    found = re.fullmatch(pattern + re.escape(shown[at:]), printed, re.S)
    return found is not None and all(
        math.isclose(*(float(text.replace(",", "")) for text in pair), rel_tol=0.05, abs_tol=1e-9)
        for pair in zip(found.groups(), numbers, strict=True)
    )


def commands_of(text: str) -> list[tuple[str, str]]:
    """Commands, and what is shown below each."""
    _, *parts = re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.M)
    return [(line, shown) for line, _, shown in (part.partition("\n") for part in parts)]


def printed_by(command: str) -> str:
    """What a command prints, which must succeed."""
    program, *words = shlex.split(command, comments=True)
    assert program == "hogwild", f"only hogwild is run here, not {command!r}"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert cli.main(words) == 0, command
    return printed.getvalue()


@pytest.fixture(autouse=True)
def a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # commands set it


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_what_a_page_shows_is_what_happens(page):
    session = {"__name__": "page"}
    for block in blocks_of(page):
        done = []
        if block.kind == "console":
            done = [(printed_by(line), shown) for line, shown in commands_of(block.text)]
        else:
            # Tracebacks then name the page and its line
            code = compile("\n" * block.line + block.text, str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, session)
            done = [(out.getvalue(), block.shown)]
        for printed, shown in done:
            same = (
                block.mark == "varies" or not shown or is_as_shown(printed.strip(), shown.strip())
            )
            assert same, f"{page}:{block.line} prints\n{printed}\nand shows\n{shown}"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("reference/linear.md", [*TASKS, *LOSSES, *SOLVERS, *schedule_names("svm")]),
        ("reference/factorization.md", [*FACTOR_LOSSES, *schedule_names("mf")]),
        ("how/workers.md", STRATEGIES),
    ],
)
def test_tables_name_all_that_there_is(page, names):
    text = (CHECKOUT / "docs" / page).read_text()
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    missing = [name for name in names if name != "mf" and not re.search(rf"\b{name}\b", rows)]
    assert not missing, f"{page} needs a row for each of {missing}"


def test_that_outputs_are_compared():
    assert is_as_shown("error 4.51 %\nin 3 epochs", "error 4.5 %\nin ...")
    assert not is_as_shown("error 4.51 %", "error 5.5 %")
    assert not is_as_shown("accuracy 4.5 %", "error 4.5 %")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs_on_generated_data(example, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [example.name, "--generated"])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
