"""A study as JSON lines: a header, the runs, a summary of each configuration, the findings."""

from hogwild.scaling import causes
from hogwild.scaling.report import Report
from hogwild.scaling.study import Run, Study
from hogwild.scaling.summary import Summary, best_objective
from hogwild.trace import Row


def lines(report: Report) -> list[Row]:
    """All lines."""
    study = report.study
    found = [
        one._asdict() | {"cases": [case._asdict() for case in one.cases]} for one in report.findings
    ]
    words = {"short": report.short, "why": report.why, "notes": report.notes}
    return [
        _header(study),
        *(_run(run) for run in study.runs),
        *(_summary(study, one) for one in report.summaries),
        {"kind": "findings", "findings": found} | words,
    ]


def _header(study: Study) -> Row:
    plan = study.plan
    return study.header | {
        "study": {
            "strategies": list(plan.strategies),
            "workers": list(plan.workers),
            "repeats": plan.repeats,
            "target": plan.target,
            "optimum": plan.optimum,
            "own_baseline": plan.own_baseline,
        },
        "best_objective": best_objective(study),
        "probes": [
            {
                name: {str(threads): value for threads, value in getattr(probe, name).items()}
                for name in ("arithmetic", "bandwidth")
            }
            for probe in study.probes
        ],
    }


def _run(run: Run) -> Row:
    return {
        "kind": "run",
        "strategy": run.configuration.strategy,
        "workers": run.configuration.workers,
        "repeat": run.repeat,
        "order": run.order,
        "chosen": run.chosen,
        "notes": run.notes,
        "failure": run.failure,
        "epochs": run.trace,
    }


def _summary(study: Study, summary: Summary) -> Row:
    fields = {name: getattr(summary, name) for name in Summary.__dataclass_fields__}
    del fields["configuration"]
    parts = {
        name: part._asdict()
        for name, part in fields.items()
        if isinstance(part, tuple) and hasattr(part, "_asdict")
    }
    return (
        {"kind": "summary"}
        | fields
        | parts
        | {
            "asked": summary.configuration.strategy,
            "asked_workers": summary.configuration.workers,
            "efficiency": summary.efficiency,
            "cause": causes.cause(study, summary),
        }
    )
