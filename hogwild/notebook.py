"""How results and models look in a notebook: a table, and the learning curve of a result."""

from collections.abc import Mapping
from html import escape
from typing import Any

from hogwild.scaling.svg import COLORS, Line, around, line_plot, linear
from hogwild.trace import Row

STYLE = """<style>
.hogwild th, .hogwild td { text-align: left; }
.hogwild svg { width: 30rem; max-width: 100%; font-size: 13px; fill: none; }
.hogwild text, .hogwild .marker { fill: currentColor; }
.hogwild .grid { stroke: #8886; }
.hogwild .line { stroke: currentColor; stroke-width: 2; }
.hogwild .legend { display: none; }
</style>"""
OPTIONS = ("task", "loss", "l2", "l1", "rank", "solver", "strategy", "workers")


def result_html(result: Any) -> str:
    """The table of a run, and its learning curve."""
    header, trace = result.header, result.trace
    cells = {"stopped": result.reason, "data": header["summary"][0]}
    cells |= _options(header["options"] | header["chosen"]) | _numbers(trace[-1] if trace else {})
    return _framed("Result", cells, _curve(trace))


def model_html(model: Any) -> str:
    """What a model is, and how it was trained."""
    about = model.about.get("trace", {})
    cells = _options(model.about.get("options", {})) | _numbers(about.get("last", {}))
    return _framed(repr(model).strip("<>"), cells)


def _options(options: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"{options[name]}" for name in OPTIONS if options.get(name) is not None}


def _numbers(row: Row) -> dict[str, str]:
    """The numbers of an epoch."""
    known = {name: value for name, value in row.items() if isinstance(value, int | float)}
    shares = {
        name: f"{100 * known[name]:.3g} %" for name in known if name.endswith(("error", "gap"))
    }
    named = ("epoch", "seconds", "objective", "train_error", "test_error", "gap")
    others = [name for name in known if name.endswith(("rmse", "mae"))]
    shown = [name for name in (*named, *others) if name in known]
    return {name.replace("_", " "): shares.get(name, f"{known[name]:.6g}") for name in shown}


def _framed(title: str, cells: dict[str, str], more: str = "") -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in cells.items()
    )
    table = f"<table><caption>{escape(title)}</caption>{rows}</table>"
    return f'{STYLE}<div class="hogwild">{table}{more}</div>'


def _curve(trace: list[Row]) -> str:
    points = [(row["seconds"], row["objective"]) for row in trace if row["objective"] is not None]
    if len(points) < 2:
        return ""
    seconds, objectives = zip(*points, strict=True)
    axes = linear("seconds", seconds), around("objective", objectives)
    return line_plot("Learning curve", [Line("objective", points, COLORS[0], 0)], *axes)
