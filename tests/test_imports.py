"""Modules depend on each other in one direction, and what is imported late has a reason."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import hogwild

ROOT = Path(hogwild.__file__).parent
FILES = {
    ".".join(("hogwild", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
}

# What functions may import, by the module that they are in and the package that they import
LATE = {
    ("hogwild.__main__", "hogwild"): "Ctrl-C while modules are imported must be caught",
    ("hogwild.cli", "hogwild"): "`hogwild --help` waits for no option; only an error names them",
    ("hogwild.cli.inspect", "hogwild"): "rows and ratings need different modules",
    ("hogwild.live", "rich"): "may not be installed, and is for terminals and notebooks alone",
    ("hogwild.live", "IPython"): "is there in notebooks alone",
    ("hogwild.kernels.compile", "numba"): "numba may move its private names; training goes on",
    ("hogwild.paths", "fcntl"): "only for files without a name, which only Linux has",
    ("", "scipy"): "slow to import, and most runs do without it",
}


def imported(node: ast.AST, late: bool = False) -> Iterator[tuple[str, bool]]:
    """What is imported, and whether a function does it; what only the type checker sees is not."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from ((alias.name, late) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from ((name if name in FILES else str(node.module), late) for name in names)
    late = late or isinstance(node, ast.FunctionDef)
    for child in ast.iter_child_nodes(node):
        yield from imported(child, late)


IMPORTS = {name: list(imported(ast.parse(path.read_text()))) for name, path in FILES.items()}


def test_there_are_no_circles_not_even_through_functions() -> None:
    graph = {name: {other for other, _ in some} - {name} for name, some in IMPORTS.items()}
    TopologicalSorter(graph).prepare()  # raises a CycleError that names the circle


def test_what_functions_import_has_a_reason() -> None:
    late = {
        (name, other.split(".")[0])
        for name, some in IMPORTS.items()
        for other, is_late in some
        if is_late
    }
    assert not {(name, other) for name, other in late if not {(name, other), ("", other)} & {*LATE}}


def test_late_imports_are_seen() -> None:
    """The tests above would pass if nothing were found."""
    assert ("hogwild.cli.config_file", True) in IMPORTS["hogwild.cli"]
    assert ("hogwild.config", False) in IMPORTS["hogwild.grids"]
