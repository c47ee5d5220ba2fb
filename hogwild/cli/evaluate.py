"""`hogwild evaluate`."""

import argparse
import json
import math
from dataclasses import asdict
from typing import Any

from hogwild import plots
from hogwild.certificate import Certificate, certify
from hogwild.cli.options import add_columns, add_data, add_model, base_of, files_in, plain, refuse
from hogwild.cli.parser import group
from hogwild.cli.streams import show
from hogwild.data.files import load
from hogwild.data.ratings_files import load_ratings
from hogwild.data.sets import named
from hogwild.errors import OptionError
from hogwild.learn.penalties import Penalty
from hogwild.learn.proof import nearness
from hogwild.learn.registry import load_model
from hogwild.models.factors import FactorModel
from hogwild.models.given import given_model
from hogwild.models.linear import LinearModel
from hogwild.paths import check_files
from hogwild.training import weighted

# Metrics that are printed under another name
TITLES = {
    "top_5_error": "top-5 error",
    "hamming_loss": "Hamming loss",
    "subset_accuracy": "all labels right",
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "log_loss": "log loss",
    "auc": "AUC",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R2",
}
SHARES = ("error", "top_5_error", "hamming_loss", "subset_accuracy")
# Why a number is missing. Missing numbers that are not here make no sense for the model, and are
# left out
MISSING = {
    "log_loss": "this model gives no probabilities",
    "auc": "labels or ratings of one kind only",
    "r2": "all targets are equal",
}
OBJECTIVE = "loss", "l2", "l1"  # options that a certificate may need
MOST = 10  # classes whose errors or weights are printed

EXAMPLES = ("m.hog test.svm", "m.hog train.svm --certify")
DOING = "evaluating"


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_model(parser)
    add_data(parser, "labelled rows, or ratings")
    add = group(parser, "data").add_argument
    add("--sample-weight", metavar="FILE", help="weights of the rows of DATA: a number a line")
    add = group(parser, "model").add_argument
    add(
        "--certify",
        action="store_true",
        help="prove how near the optimum of its objective on DATA a linear model is; MODEL may "
        "also be LIBLINEAR's text, or an .npz with weights, intercept and labels; for several "
        "classes the weights have a line for each, as scikit-learn's coef_",
    )
    for name, what in (("loss", "the loss"), ("l2", "the L2 penalty"), ("l1", "the L1 penalty")):
        kind = {"metavar": "LOSS"} if name == "loss" else {"metavar": "X", "type": float}
        text = f"with --certify: {what} of the objective [what the model says]"
        text += "; cross_entropy is that of softmax" * (name == "loss")
        add(f"--{name}", help=text, **kind)  # type: ignore[arg-type]
    add = group(parser, "output").add_argument
    add(
        "--plot",
        metavar="FILE",
        help="draw ROC and precision-recall of each class: .html, or with matplotlib .png or .svg",
    )
    add("--json", action="store_true", help="print one JSON object")
    add_columns(parser)


def run(parsed: argparse.Namespace) -> int:
    """Prints the objective, and the metrics of the kind of target; or a certificate."""
    if parsed.plot is not None:
        if parsed.certify:
            raise OptionError("plot: not together with certify, which computes no scores")
        inputs = named(parsed.model, files_in(parsed), parsed.sample_weight)
        check_files({"plot": parsed.plot}, *inputs)
        plots.check_output(parsed.plot)
    if parsed.certify:
        return _certify(parsed)
    given = [name for name in OBJECTIVE if getattr(parsed, name) is not None]
    if given:
        raise OptionError("\n".join(f"{name}: it needs --certify" for name in given))
    model = load_model(parsed.model)
    if model.kind == FactorModel.kind:
        refuse(parsed, model, "sample_weight", "plot")
        found = model.evaluate(load_ratings(files_in(parsed), columns=parsed.columns))
    else:
        refuse(parsed, model, "columns")
        rows = model.load(files_in(parsed))
        rows = weighted(rows, parsed.sample_weight)
        found = model.evaluate(rows)
        if parsed.plot is not None:
            title = f"{parsed.model} on {rows.name}"
            plots.write(parsed.plot, title, plots.class_curves(model, rows))
    if parsed.json:
        show(json.dumps(found))
    elif model.kind == FactorModel.kind:
        _show_ratings(found, model)
    else:
        _show(found, model)
    return 0


def _certify(parsed: argparse.Namespace) -> int:
    """Prints a proof of how good a linear model is."""
    model = given_model(parsed.model)
    refuse(parsed, model, "columns")
    rows = load(files_in(parsed), index_base=base_of(model), features=model.features)
    rows = weighted(rows, parsed.sample_weight)
    found = certify(model, rows, **{name: getattr(parsed, name) for name in OBJECTIVE})
    if parsed.json:
        known = {"rows": len(rows)} | asdict(found)
        show(json.dumps(known | {"gap": found.gap if math.isfinite(found.gap) else None}))
    else:
        _show_certificate(found, len(rows))
    return 0


def _show_certificate(found: Certificate, rows: int) -> None:
    show(f"rows             {rows:,}")
    what = f"{found.loss} loss, {Penalty(found.l2, found.l1)}"
    show(f"objective        {found.objective:.9g}   ({what})")
    show(f"lower bound      {found.bound:.9g}   ({found.how})")
    if math.isfinite(found.gap):
        show(f"{nearness(found.gap)} the optimum, proved")
    else:
        show("nothing is proved: the lower bound is not above 0")


def _show_ratings(found: dict[str, Any], model: FactorModel) -> None:
    show(f"ratings    {found['ratings']:,}")
    show(f"objective  {found['objective']:.6f}   ({model.loss} loss, with its penalty)")
    for name in ("rmse", "mae", "log_loss", "auc"):
        if name in found:
            show(f"{TITLES[name]:<10} {_value(found, name)}")
    show(f"unknown    {found['unknown']:,}   (ratings of a user or an item not in the training)")


def _show(found: dict[str, Any], model: LinearModel) -> None:
    """A line for each number; lists and tables after them."""
    show(f"rows             {found['rows']:,}")
    names = [plain(label) for label in model.labels]
    weights = model.class_weights or []
    notes = ", class weights" if weights else ""
    notes += ", of the members' mean" if model.kind == "votes" else ""
    what = f"{model.loss} loss, {model.penalty}{notes}"
    show(f"objective        {found['objective']:.6f}   ({what})")
    for name in model.target.metrics:
        if isinstance(found[name], float) or (found[name] is None and name in MISSING):
            show(f"{TITLES.get(name, name.replace('_', ' ')):<16} {_value(found, name)}")
    if weights:
        _show_some("class weights", [f"{n} {w:.4g}" for n, w in zip(names, weights, strict=True)])
    if "class_errors" in found:
        errors = zip(found["class_errors"], names, strict=True)
        ranked = sorted(errors, key=lambda pair: -(pair[0] or 0.0))
        known = [f"{name} {100 * error:.2f} %" for error, name in ranked if error is not None]
        _show_some("class errors", known)
    if "confusion" in found:
        _show_confusion(found["confusion"], names)


def _value(found: dict[str, Any], name: str) -> str:
    value = found[name]
    if value is None:
        return f"-   ({MISSING[name]})"
    return f"{100 * value:.3f} %" if name in SHARES else f"{value:.6f}"


def _show_some(title: str, listed: list[str]) -> None:
    more = f", and {len(listed) - MOST:,} more classes" if len(listed) > MOST else ""
    show(f"{title:<17}{', '.join(listed[:MOST])}{more}")


def _show_confusion(confusion: dict[str, Any], names: list[str]) -> None:
    """The table of true and predicted classes; of many classes the largest confusions."""
    if "largest" in confusion:
        show("\nlargest confusions")
        for true, predicted, count in confusion["largest"]:
            show(f"{count:>10,.0f}   {names[true]} predicted as {names[predicted]}")
        return
    table = confusion.get("table") or [
        [confusion["true_negative"], confusion["false_positive"]],
        [confusion["false_negative"], confusion["true_positive"]],
    ]
    show("\nconfusion: a line for each true class, a column for each predicted one")
    width = max(10, *map(len, names)) + 1
    show(" " * width + "".join(f"{name:>{width}}" for name in names))
    for name, counts in zip(names, table, strict=True):
        show(f"{name:>{width}}" + "".join(f"{count:>{width},.0f}" for count in counts))
