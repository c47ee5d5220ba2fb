"""`hogwild evaluate`."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from hogwild.cli.options import base_of, plain

if TYPE_CHECKING:
    from hogwild.problems.linear_model import LinearModel


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("model", metavar="MODEL", help="a file that train --model wrote")
    parser.add_argument("data", metavar="DATA", help="labelled rows")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(parsed: argparse.Namespace) -> int:
    """Prints objective, error, log loss, AUC and confusion counts."""
    from hogwild.data.files import load
    from hogwild.problems.registry import load_model

    model = load_model(parsed.model)
    found = model.evaluate(load(parsed.data, index_base=base_of(model)))
    if parsed.json:
        print(json.dumps(found))
        return 0
    _show(found, model)
    return 0


def _show(found: dict[str, Any], model: "LinearModel") -> None:
    log_loss, auc = found["log_loss"], found["auc"]
    print(f"rows       {found['rows']:,}")
    print(f"objective  {found['objective']:.6f}   ({model.loss} loss, with its l2 penalty)")
    print(f"error      {100 * found['error']:.3f} %")
    no_odds = "-   (this loss gives no probabilities)"
    print(f"log loss   {no_odds if log_loss is None else f'{log_loss:.6f}'}")
    print(f"AUC        {'-   (rows of one class only)' if auc is None else f'{auc:.6f}'}")
    negative, positive = (plain(label) for label in model.labels)
    counts = found["confusion"]
    print(f"\n{'':<14}{'said ' + negative:>14}{'said ' + positive:>14}")
    for true, name in ((negative, "negative"), (positive, "positive")):
        other = "positive" if name == "negative" else "negative"
        said = {name: counts[f"true_{name}"], other: counts[f"false_{other}"]}
        print(f"{'true ' + true:<14}{said['negative']:>14,}{said['positive']:>14,}")
