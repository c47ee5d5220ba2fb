"""Learning curves, ROC and precision-recall: as a page, or with matplotlib as a picture."""

import io
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hogwild import status
from hogwild.data.labels import as_written
from hogwild.data.opening import opened
from hogwild.data.rows import Rows
from hogwild.errors import DataError, HogwildError, OptionError
from hogwild.extras import library
from hogwild.learn.metrics import auc
from hogwild.models.linear import LinearModel
from hogwild.paths import PathLike, writing
from hogwild.scaling.page import document
from hogwild.scaling.svg import COLORS, Axis, Line, around, line_plot, linear, logarithmic
from hogwild.trace import Row

PAGE, PICTURES = ".html", (".png", ".svg")
AGAINST = {"seconds": "training time (s)", "epochs": "epochs"}
SETS = "train", "test", "held_out"
MOST_MARKED = 40  # most points of a line that get markers
MOST_POINTS = 200  # most points of a curve, which has one for each row
MARKERS, DASHES = "os^Dv", ("-", "--", ":", "-.")
WIDTH, HEIGHT, DOTS = 5.2, 3.8, 150  # of a plot in a picture: inches, and dots per inch


class Plot(NamedTuple):
    """Lines on two axes."""

    title: str
    lines: list[Line]
    x: Axis
    y: Axis


def check_output(path: PathLike) -> None:
    """Refuses a file that cannot become a plot, before any work is done."""
    suffix = Path(path).suffix.lower()
    if suffix not in (PAGE, *PICTURES):
        raise OptionError(f"{path}: the name must end with {', '.join((PAGE, *PICTURES))}")
    if suffix in PICTURES:
        _figure(suffix)


def write(path: PathLike, title: str, plots: Sequence[Plot]) -> None:
    """Writes plots to a file. The suffix of its name decides the format."""
    check_output(path)
    suffix = Path(path).suffix.lower()
    with status.doing(f"drawing {path}"):  # matplotlib takes most of a second to load
        contents = _page(title, plots) if suffix == PAGE else _picture(title, plots, suffix)
    with writing(path) as file:
        file.write(contents)


def learning_curves(traces: Sequence[PathLike], against: str = "seconds") -> list[Plot]:
    """Plots of the objective, the gap and the errors of runs, as far as their traces have them."""
    names = [Path(path).stem for path in traces]
    if len(set(names)) < len(names):
        names = list(map(str, traces))
    lines: dict[str, list[Line]] = {}
    for number, (name, path) in enumerate(zip(names, traces, strict=True)):
        shown, epochs = _read(path)
        for key, (metric, data, factor) in shown.items():
            places = [row["epoch" if against == "epochs" else against] for row in epochs]
            numbers = [row.get(key) for row in epochs]
            pairs = zip(places, numbers, strict=True)
            points = [(float(x), factor * y) for x, y in pairs if y is not None]
            if not points:
                continue
            dash = SETS.index(data) if data in SETS else 0
            said = [name] if not data else [data.replace("_", " ")]
            said = [name, *said] if data and len(names) > 1 else said
            marker = number if len(points) <= MOST_MARKED else None
            line = Line(", ".join(said), points, COLORS[number % len(COLORS)], marker, dash)
            lines.setdefault(metric, []).append(line)
    return [_curve(metric, some, against) for metric, some in lines.items()]


def _curve(metric: str, lines: list[Line], against: str) -> Plot:
    points = [point for line in lines for point in line.points]
    x = linear(AGAINST[against], [a for a, _ in points], 1 if against == "epochs" else 0)
    values = [b for _, b in points]
    proved = metric == "gap" and any(value > 0 for value in values)
    y = logarithmic(metric, values) if proved else around(metric, values)
    return Plot(f"{metric} against {AGAINST[against]}", lines, x, y)


def _read(path: PathLike) -> tuple[dict[str, tuple[str, str, float]], list[Row]]:
    """What a trace can show (the number, its data and a factor, by key), and its epochs."""
    with opened(Path(path)) as file:
        text = file.read()
    try:
        rows = [json.loads(line) for line in text.splitlines()]
        header = next(row for row in rows if row["kind"] == "header")
        epochs = [row for row in rows if row["kind"] == "epoch"]
    except (ValueError, KeyError, TypeError, StopIteration):
        raise DataError(f"{path} is no trace: name a file that train --trace wrote") from None
    if not epochs:
        raise DataError(f"{path}: no epoch was finished, so there is nothing to plot")
    found = {"objective": ("objective", "", 1.0), "gap": ("gap", "", 1.0)}
    for known in header.get("shown", []):
        key, percent = known["key"], known["form"] == "percent"
        data = next((name for name in SETS if key.startswith(f"{name}_")), "")
        metric = key.removeprefix(f"{data}_").replace("_", " ")
        found[key] = f"{metric} (%)" if percent else metric, data, 100.0 if percent else 1.0
    return found, epochs


def class_curves(model: LinearModel, rows: Rows) -> list[Plot]:
    """ROC and precision-recall of each class against the rest, or of the frequent classes."""
    if not model.labels:
        raise HogwildError("ROC and precision-recall need classes, and the model predicts numbers")
    scores, known = model.decision_function(rows), model.target.known(rows)
    labels, weights = list(model.labels), np.ones(len(rows))
    if rows.sample_weight is not None:
        weights = rows.sample_weight.astype(np.float64)
    if scores.ndim == 1:
        scores, truth, labels = scores[:, None], known[:, None] > 0, labels[1:]
    else:
        truth = known if known.ndim == 2 else known[:, None] == np.arange(len(labels))
    sizes = weights @ truth
    usable = np.flatnonzero((sizes > 0) & (sizes < weights.sum()))
    if not len(usable):
        raise DataError(f"{rows.name} has rows of one class only; curves need rows of two")
    chosen = sorted(usable[np.argsort(-sizes[usable], kind="stable")][: len(COLORS)])
    chance = Line("chance", [(0.0, 0.0), (1.0, 1.0)], dash=2)
    roc, recall = [chance], []
    for place, head in enumerate(chosen):
        both = scores[:, head].astype(np.float64), truth[:, head]
        name = str(as_written(labels[head]))
        area = auc(both[0], both[1].astype(float), weights, model.loss)
        kinds = _roc(*both, weights)
        roc.append(Line(f"{name}, AUC {area:.4f}", kinds[0], COLORS[place]))
        recall.append(Line(name, kinds[1], COLORS[place]))
    which = "" if len(chosen) == len(labels) else f", {len(chosen)} of {len(labels)} classes"
    share = [0.0, 1.0]
    rates = linear("false positive rate", share), linear("true positive rate", share)
    found = linear("recall", share), linear("precision", share)
    return [Plot(f"ROC{which}", roc, *rates), Plot(f"precision and recall{which}", recall, *found)]


def _roc(
    scores: npt.NDArray[Any], truth: npt.NDArray[Any], weights: npt.NDArray[Any]
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """The points of both curves, one for each different score, or some of them."""
    order = np.argsort(-scores, kind="stable")
    order = order[weights[order] > 0]
    ends = np.append(scores[order][1:] != scores[order][:-1], True)  # equal scores make one point
    true = np.cumsum(np.where(truth, weights, 0)[order])[ends]
    false = np.cumsum(np.where(truth, 0, weights)[order])[ends]
    some = np.unique(np.linspace(0, len(true) - 1, MOST_POINTS).astype(int))
    x, y = false[some] / false[-1], true[some] / true[-1]
    precision = true[some] / (true[some] + false[some])
    roc = [(0.0, 0.0), *zip(x.tolist(), y.tolist(), strict=True)]
    return roc, [(0.0, float(precision[0])), *zip(y.tolist(), precision.tolist(), strict=True)]


def _page(title: str, plots: Sequence[Plot]) -> bytes:
    body = [f"<h1>{escape(title)}</h1>", '<div class="plots">']
    for plot in plots:
        drawn = line_plot(plot.title, plot.lines, plot.x, plot.y)
        body.append(f"<figure>{drawn}<figcaption>{escape(plot.title)}</figcaption></figure>")
    return document(escape(title), [*body, "</div>"]).encode()


def _figure(suffix: str) -> Any:
    return library("matplotlib.figure", "hogwild[plot]", f"a {suffix} file").Figure


def _picture(title: str, plots: Sequence[Plot], suffix: str) -> bytes:
    across = min(2, len(plots))
    down = -(-len(plots) // across)
    figure = _figure(suffix)(figsize=(WIDTH * across, HEIGHT * down), layout="constrained")
    figure.suptitle(title)
    for number, plot in enumerate(plots, 1):
        axes = figure.add_subplot(down, across, number, title=plot.title)
        axes.set(xlabel=plot.x.title, ylabel=plot.y.title, yscale="log" if plot.y.log else "linear")
        for line in plot.lines:
            x, y = zip(*line.points, strict=True)
            color = "gray" if line.color == "currentColor" else line.color
            marker = None if line.marker is None else MARKERS[line.marker % len(MARKERS)]
            style = DASHES[line.dash % len(DASHES)]
            axes.plot(x, y, style, color=color, marker=marker, markersize=4, label=line.name)
        axes.set(xlim=(plot.x.least, plot.x.most), ylim=(plot.y.least, plot.y.most))
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    file = io.BytesIO()
    figure.savefig(file, format=suffix[1:], dpi=DOTS)
    return file.getvalue()
