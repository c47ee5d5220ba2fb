"""`hogwild inspect`, of a model."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from hogwild.cli.options import plain
from hogwild.config import Config
from hogwild.data.files import opened
from hogwild.errors import OptionError
from hogwild.learn.registry import load_model
from hogwild.models.factors import FactorModel

MOST = 12  # labels that are shown one by one


def inspect_model(parsed: argparse.Namespace) -> int:
    """Prints what a model is and how it was trained, and its largest weights."""
    if parsed.features and parsed.top is None:
        raise OptionError("features: it names the weights that --top shows; give it, too")
    model = load_model(parsed.data)
    factors = model.kind == FactorModel.kind
    if factors and parsed.top is not None:
        raise OptionError("top: a model of ratings has factors, and no weights of features")
    top = {}
    if parsed.top is not None:
        names = _names(parsed.features) if parsed.features else None
        top = model.top_features(parsed.top, names)
    found = _facts(model) | {"bytes": Path(parsed.data).stat().st_size}
    if parsed.json:
        print(json.dumps(found | {"top": {plain(label): some for label, some in top.items()}}))
        return 0
    for name, text in _lines(found):
        print(f"{name:12}{text}")
    for label, pairs in top.items():
        print(f"\nlargest weights of {plain(label)}")
        for feature, weight in pairs:
            print(f"{weight:>12.6g}   {feature}")
    return 0


def _names(path: str) -> list[str]:
    with opened(Path(path)) as file:
        return file.read().decode("utf-8", "replace").splitlines()


def _facts(model: Any) -> dict[str, Any]:
    about = model.about
    options, trace = about.get("options", {}), about.get("trace", {})
    defaults = {known.name: known.default for known in dataclasses.fields(Config)}
    known = {name: value for name, value in options.items() if name in defaults}
    found = {
        "kind": model.kind,
        "task": options.get("task"),
        "loss": model.loss,
        "options": {
            name: value
            for name, value in known.items()
            if value not in (None, defaults[name]) and name not in ("task", "loss")
        },
        "data": about.get("data"),
        "objective": trace.get("last", {}).get("objective"),
        "gap": trace.get("last", {}).get("gap"),
        "reason": trace.get("reason"),
        "epochs": trace.get("epochs"),
        "versions": about.get("versions", {}),
    }
    if model.kind == FactorModel.kind:
        sizes = len(model.user_ids), len(model.item_ids), model.rank, model.mean
        return found | dict(zip(("users", "items", "rank", "mean"), sizes, strict=True))
    return found | {
        "labels": list(model.labels),
        "columns": model.columns,
        "weights": int(model.weights.size),
        "nonzero_weights": int(np.count_nonzero(model.weights)),
        "intercept": np.asarray(model.intercept).tolist(),
        "named": model.feature_names is not None,
    }


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What is known, in words; what a model of an earlier version does not say is left out."""
    lines = [("model", f"{found['kind']}, {found['bytes']:,} bytes")]
    lines.append(("task", f"{found['task'] or 'unknown'}, {found['loss']} loss"))
    if found["kind"] == FactorModel.kind:
        lines.append(("size", "{users:,} users, {items:,} items, rank {rank}".format(**found)))
        lines.append(("mean", f"{found['mean']:.6g}"))
    else:
        labels = [plain(label) for label in found["labels"]]
        more = f", and {len(labels) - MOST:,} more" if len(labels) > MOST else ""
        lines.append(("classes", ", ".join(labels[:MOST]) + more or "none: it predicts numbers"))
        size = "{weights:,} weights, {nonzero_weights:,} of them not 0".format(**found)
        named = ", named" if found["named"] else ""
        lines.append(("size", f"{found['columns']:,} columns{named}, {size}"))
        if isinstance(found["intercept"], float):
            lines.append(("intercept", f"{found['intercept']:.6g}"))
    if found["options"]:
        shown = (f"{name} {_short(value)}" for name, value in found["options"].items())
        lines.append(("options", ", ".join(shown)))
    if found["data"]:
        counts = {name: n for name, n in found["data"].items() if name != "name"}
        listed = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items())
        lines.append(("data", f"{found['data']['name']}: {listed}"))
    if found["objective"] is not None:
        gap = found["gap"]
        proved = "" if gap is None else f", within {100 * gap:.2g} % of the optimum, proved"
        lines.append(("objective", f"{found['objective']:.9g}{proved}"))
    if found["reason"]:
        lines.append(("stopped", f"{found['reason']}, after {found['epochs']} epochs"))
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    return [*lines, ("versions", versions or "unknown")]
