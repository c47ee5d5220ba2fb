"""A study and all that is said of it; and where that is written."""

from dataclasses import dataclass

from hogwild.data.atomic import writing
from hogwild.errors import HogwildError
from hogwild.paths import PathLike, check_apart, check_output
from hogwild.scaling.finding import Finding
from hogwild.scaling.findings import findings
from hogwild.scaling.notes import notes
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Summary, finished, summaries
from hogwild.scaling.verdict import in_short, why_not

SUFFIXES = (".jsonl", ".html")


@dataclass(frozen=True)
class Report:
    """What a study came to.

    Attributes:
        study: what was run.
        summaries: the numbers of each configuration.
        findings: what they mean.
        notes: what a reader must know before.
        short: the best strategy and number of workers.
        why: for each number of workers, where the time goes that is missing.
    """

    study: Study
    summaries: list[Summary]
    findings: list[Finding]
    notes: list[str]
    short: str
    why: list[str]

    @classmethod
    def of(cls, study: Study) -> "Report":
        """All that is to be said of a study.

        Raises:
            HogwildError: no run was finished.
        """
        if not finished(study.runs):
            failures = [run.failure for run in study.runs if run.failure]
            raise HogwildError(f"no run was finished; the first said: {failures[0]}")
        found = summaries(study)
        return cls(
            study,
            found,
            findings(study, found),
            notes(study),
            in_short(study, found),
            why_not(study, found),
        )


def outputs(prefix: PathLike) -> dict[str, PathLike]:
    """The files that a study is written to, by what they are."""
    return {suffix[1:]: f"{prefix}{suffix}" for suffix in SUFFIXES}


def check_outputs(prefix: PathLike, *inputs: PathLike | None) -> None:
    """Refuses files that cannot be written, or that are an input: an `OptionError`."""
    for path in outputs(prefix).values():
        check_output(path)
        check_apart({"out": path}, list(inputs))


def write(report: Report, prefix: PathLike) -> list[str]:
    """Writes the record and the page, each whole or not at all; their names."""
    from hogwild.scaling.page import page
    from hogwild.scaling.record import lines
    from hogwild.trace import write as write_lines

    files = outputs(prefix)
    write_lines(files["jsonl"], lines(report))
    with writing(files["html"]) as file:
        file.write(page(report).encode())
    return [str(path) for path in files.values()]
