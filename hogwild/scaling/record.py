"""The files of a study: a record as JSON lines, and a page."""

from hogwild import trace
from hogwild.paths import PathLike, check_files, writing
from hogwild.scaling.findings import cause
from hogwild.scaling.page import page
from hogwild.scaling.report import Report
from hogwild.scaling.study import Run
from hogwild.scaling.summary import COMPARED, Summary, best_objective
from hogwild.trace import Row


def check_outputs(prefix: PathLike, *inputs: PathLike | None) -> None:
    """Refuses files that cannot be written, or that are an input: an `OptionError`."""
    for path in _outputs(prefix):
        check_files({"out": path}, *inputs)


def write(report: Report, prefix: PathLike) -> list[str]:
    """Writes both files, each whole or not at all; returns their names."""
    names = _outputs(prefix)
    trace.write(names[0], lines(report))
    with writing(names[1]) as file:
        file.write(page(report).encode())
    return names


def lines(report: Report) -> list[Row]:
    """The record: a header, all runs, a summary of each configuration, and the findings."""
    study, found = report.study, [finding._asdict() for finding in report.findings]
    header = study.header | {
        "study": {name: value for name, value in vars(study.plan).items() if name != "options"},
        "reference": study.reference._asdict(),
        "best_objective": best_objective(study),
        "probe": study.machine._asdict(),
        "used": study.used,
    }
    rows = [{"kind": "run"} | _fields(run) for run in study.runs]
    for one in report.summaries:
        compared = {name: getattr(one, name) for name in ("name", *COMPARED)}
        rows.append({"kind": "summary", "cause": cause(study, one)} | _fields(one) | compared)
    words = {"short": report.short, "why": report.why, "notes": report.notes, "findings": found}
    return [header, *rows, {"kind": "findings"} | words]


def _fields(one: Run | Summary) -> Row:
    """Named tuples as dicts; the baseline has a row of its own."""
    fields = {name: value for name, value in vars(one).items() if name != "baseline"}
    return {k: v._asdict() if hasattr(v, "_asdict") else v for k, v in fields.items()}


def _outputs(prefix: PathLike) -> list[str]:
    return [f"{prefix}.jsonl", f"{prefix}.html"]
