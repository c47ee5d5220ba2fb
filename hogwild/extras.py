"""Optional libraries."""

import importlib
from typing import Any

from hogwild.errors import HogwildError


def library(name: str, package: str, what: str) -> Any:
    """Imports a module. If it is missing, an error says what needs it and what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        raise HogwildError(
            f"{what} needs {name.partition('.')[0]}, which is not installed: "
            f'pip install "{package}" ({problem})'
        ) from None
