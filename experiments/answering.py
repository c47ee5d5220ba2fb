"""How a peer answers, in the Python of its own environment: it imports nothing of hogwild."""

import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Request = dict[str, Any]
Row = dict[str, Any]


def serve(packages: Mapping[str, str], answer: Callable[[Request], Iterator[Row]]) -> None:
    """Answers one request, a line for each row, after one with the version of the peer's package.

    What the peer itself prints goes to standard error.
    """
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        request = json.load(sys.stdin)
        rows = answer(request)
        version = importlib.metadata.version(packages[request["peer"]])
        print(json.dumps({"version": version}), file=out, flush=True)
        for row in rows:
            print(json.dumps(row), file=out, flush=True)
