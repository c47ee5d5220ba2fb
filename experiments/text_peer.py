"""Reads or learns from text in an environment of its own, as `loading_raw.py` asks in JSON."""

import importlib
import json
import sys
import time
from typing import Any


def by_vw(request: dict[str, Any]) -> None:
    """Vowpal Wabbit on a file in its own text, with these options."""
    workspace = importlib.import_module("vowpalwabbit").Workspace
    workspace(f"{request['options']} --quiet -d {request['file']}").finish()


def by_fasttext(request: dict[str, Any]) -> dict[str, Any]:
    """fastText on a file with its prefix before labels; the error on a second file."""
    model = importlib.import_module("fasttext").train_supervised(
        request["file"], verbose=0, thread=request["threads"], **request["options"]
    )
    if request["model"] is None:
        return {}
    model.save_model(request["model"])
    _, precision, _ = model.test(request["test"])
    return {"error": 1 - precision}


def main() -> None:
    """Answers a request from standard input."""
    request = json.load(sys.stdin)
    call = {"vowpalwabbit": by_vw, "fasttext": by_fasttext}[request["peer"]]
    for _ in range(request["repeats"]):
        began = time.perf_counter()
        more = call(request) or {}
        print(json.dumps({"seconds": time.perf_counter() - began, **more}), flush=True)


if __name__ == "__main__":
    main()
