"""`hogwild inspect`, of a model."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.cli.options import plain
from hogwild.cli.streams import show
from hogwild.data.opening import opened
from hogwild.errors import OptionError
from hogwild.learn.registry import load_model
from hogwild.models.factors import FactorModel

MOST = 12  # labels that are shown one by one
OPTIONS = "solver", "strategy", "workers", "l2", "l1", "bias_l2", "class_weights", "seed"


def inspect_model(parsed: argparse.Namespace, path: Path) -> int:
    """Prints what a model is and how it was trained, and its largest weights."""
    if parsed.features and parsed.top is None:
        raise OptionError("features: it names the weights that --top shows; give it, too")
    if parsed.top is not None and parsed.top < 1:
        raise OptionError(f"top: must be a whole number of 1 or more, not {parsed.top}")
    model, top = load_model(path), {}
    if parsed.top is not None:
        if model.kind == FactorModel.kind:
            raise OptionError("top: a model of ratings has factors, and no weights of features")
        names = _lines_of(parsed.features) if parsed.features else None
        top = model.top_features(parsed.top, names)
    size, shape = path.stat().st_size, _shape(model)
    if parsed.json:
        listed = {"top": {plain(label): pairs for label, pairs in top.items()}}
        known = {"kind": model.kind, "loss": model.loss, "bytes": size}
        show(json.dumps(known | shape | model.about | listed))
        return 0
    for name, text in _lines(model, size, shape).items():
        show(f"{name:12}{text}")
    for label, pairs in top.items():
        show(f"\nlargest weights of {plain(label)}")
        for feature, weight in pairs:
            show(f"{weight:>12.6g}   {feature}")
    return 0


def _lines_of(path: str) -> list[str]:
    with opened(Path(path)) as file:
        return file.read().decode("utf-8", "replace").splitlines()


def _shape(model: Any) -> dict[str, Any]:
    if model.kind == FactorModel.kind:
        users, items = len(model.user_ids), len(model.item_ids)
        return {"users": users, "items": items, "rank": model.rank, "mean": model.mean}
    return {
        "labels": list(model.labels),
        "columns": model.columns,
        "nonzero_weights": int(np.count_nonzero(model.weights)),
        "intercept": np.asarray(model.intercept).tolist(),
    }


def _lines(model: Any, size: int, shape: dict[str, Any]) -> dict[str, str]:
    """What is known, in words. Models of an earlier version lack some of the lines."""
    options, trace = model.about.get("options", {}), model.about.get("trace", {})
    lines = {"model": f"{model.kind}, {size:,} bytes"}
    lines["task"] = f"{options.get('task', 'unknown')}, {model.loss} loss"
    if model.kind != FactorModel.kind:
        labels = [plain(label) for label in model.labels]
        more = f", and {len(labels) - MOST:,} more" if len(labels) > MOST else ""
        lines["classes"] = ", ".join(labels[:MOST]) + more or "none: it predicts numbers"
    counts = {name: value for name, value in shape.items() if isinstance(value, int | float)}
    lines["size"] = _listed(counts)
    given = {name: options[name] for name in OPTIONS if options.get(name) is not None}
    lines["options"] = _listed(given)
    if data := dict(model.about.get("data", {})):
        lines["data"] = f"{data.pop('name', 'unknown')}: {_listed(data)}"
    if trace:
        last = trace.get("last", {})
        near = f"{100 * last['gap']:.2g} %" if last.get("gap") is not None else ""
        proved = f", within {near} of the optimum, proved" if near else ""
        if last.get("objective") is not None:
            lines["objective"] = f"{last['objective']:.9g}{proved}"
        lines["stopped"] = f"{trace.get('reason')}, after {trace.get('epochs')} epochs"
    lines["versions"] = _listed(model.about.get("versions", {}))
    return lines


def _listed(numbers: dict[str, Any]) -> str:
    def short(value: Any) -> str:
        if isinstance(value, float):
            return f"{value:.6g}"
        return f"{value:,}" if isinstance(value, int) else str(value)

    return ", ".join(f"{name.replace('_', ' ')} {short(n)}" for name, n in numbers.items())
