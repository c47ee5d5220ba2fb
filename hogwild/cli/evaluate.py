"""`hogwild evaluate`."""

import argparse
import json
from typing import TYPE_CHECKING, Any

from hogwild.cli.models import add_columns, add_model, has_factors, refuse
from hogwild.cli.options import base_of, plain

if TYPE_CHECKING:
    from hogwild.problems.factor_model import FactorModel
    from hogwild.problems.linear_model import LinearModel


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add_model(parser)
    parser.add_argument("data", metavar="DATA", help="labelled rows, or ratings")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_columns(parser)


def run(parsed: argparse.Namespace) -> int:
    """Prints objective, error, log loss, AUC and confusion counts; of ratings RMSE and MAE."""
    from hogwild.data.files import load
    from hogwild.data.ratings_files import load_ratings
    from hogwild.problems.registry import load_model

    model = load_model(parsed.model)
    if has_factors(model):
        found = model.evaluate(load_ratings(parsed.data, columns=parsed.columns))
    else:
        refuse(parsed, model, "columns")
        found = model.evaluate(load(parsed.data, index_base=base_of(model)))
    if parsed.json:
        print(json.dumps(found))
    elif has_factors(model):
        _show_ratings(found, model)
    else:
        _show(found, model)
    return 0


def _show_ratings(found: dict[str, Any], model: "FactorModel") -> None:
    print(f"ratings    {found['ratings']:,}")
    print(f"objective  {found['objective']:.6f}   ({model.loss} loss, with its penalty)")
    print(f"RMSE       {found['rmse']:.6f}")
    print(f"MAE        {found['mae']:.6f}")
    if "auc" in found:
        auc = found["auc"]
        print(f"log loss   {found['log_loss']:.6f}")
        print(f"AUC        {'-   (values of one kind only)' if auc is None else f'{auc:.6f}'}")
    print(f"unknown    {found['unknown']:,}   (ratings of a user or an item not in the training)")


def _show(found: dict[str, Any], model: "LinearModel") -> None:
    log_loss, auc = found["log_loss"], found["auc"]
    print(f"rows       {found['rows']:,}")
    print(f"objective  {found['objective']:.6f}   ({model.loss} loss, {model.penalty})")
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
