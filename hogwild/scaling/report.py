"""The report of a study: notes, numbers, and what they mean."""

from collections.abc import Callable
from dataclasses import dataclass

from hogwild.data.statistics import percent
from hogwild.machine import counted
from hogwild.scaling.findings import BUSY, Finding, Summaries, cause, crowding, findings, others
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Spread, Summary, milliseconds, summaries

# Columns of a table. A | in a title begins its second line. The first column names the row.
Columns = dict[str, Callable[[Study, Summary], str]]

SPEED: Columns = {
    "|": lambda _, one: one.name,
    "epoch|min ms": lambda _, one: f"{1e3 * one.epoch.least:.2f}",
    "epoch|median": lambda _, one: f"{1e3 * one.epoch.median:.2f}",
    "epoch|max ms": lambda _, one: f"{1e3 * one.epoch.greatest:.2f}",
    "|speed-up": lambda _, one: f"{one.speed_up:.2f}",
    "effi-|ciency": lambda _, one: f"{100 * one.efficiency:.0f} %",
    "target|s": lambda _, one: f"{one.target.median:.3f}" if one.target else "-",
    "target|epochs": lambda _, one: f"{one.target_epochs:g}" if one.target_epochs else "-",
    "target|speed-up": lambda _, one: f"{one.target_speed_up:.2f}" if one.target_speed_up else "-",
    "last|gap": lambda _, one: f"{one.gaps[-1]:.1e}",
}
SPLIT: Columns = {
    "|": lambda _, one: one.name,
    "wait|%": lambda _, one: f"{100 * one.split.waiting / one.split.epoch:.0f}",
    "merge|%": lambda _, one: f"{100 * one.split.merging / one.split.epoch:.0f}",
    "training|s": lambda _, one: f"{one.training:.3f}",
    "start|s": lambda _, one: f"{one.startup:.3f}",
    "evalu-|ation s": lambda _, one: f"{one.evaluation:.3f}",
    "compute|all / one": lambda _, one: f"{one.growth:.2f}",
    "last|objective": lambda _, one: f"{one.objectives[-1]:.6g}",
    "bound|by": cause,
}

NOISY = 1.25  # the greatest over the least epoch, above which a note warns


@dataclass(frozen=True)
class Report:
    """A study, its numbers, and words about them."""

    study: Study
    summaries: list[Summary]
    notes: list[str]  # what a reader must know before the numbers
    short: str  # the fastest configuration
    why: list[str]  # for each number of workers, what keeps it from a perfect speed-up
    findings: list[Finding]  # what bounds the configurations

    @classmethod
    def of(cls, study: Study) -> "Report":
        """Makes all of it from what was measured."""
        found = summaries(study)
        notes = [*_of_measuring(study, found), *_of_runs(study, found)]
        why = [
            _why_not(study, min(some, key=lambda one: one.epoch.median))
            for count in study.plan.workers
            if count > 1 and (some := [one for one in found if one.configuration.workers == count])
        ]
        return cls(study, found, notes, _in_short(study, found), why, findings(study, found))

    @property
    def about(self) -> list[str]:
        """What was trained on which machine, a line each."""
        plan, found = self.study.plan, self.study.header["machine"]
        cores = counted(found["cores"], found["physical_cores"])
        peak, free = self.study.used["peak_memory"], found["available_memory"]
        options = [f"{k} {v}" for k, v in plan.options.items() if v is not None and k != "epochs"]
        return [
            f"Training: {', '.join(options)}; {len(self.summaries[0].times)} epochs; each "
            f"configuration {plan.repeats} times. Gaps are measured "
            f"from {self.study.reference.how}.",
            f"Machine: {found['cpu']}, {self.study.cores} of {cores} cores usable, "
            f"{found['system']}. {others(self.study)} The study took {peak / 2**30:.2f} GiB of "
            f"memory at most, without the workers' own; {free / 2**30:.1f} GiB are available. "
            f"{self.study.machine.text}",
        ]


def _of_measuring(study: Study, summaries: Summaries) -> list[str]:
    """Notes on the circumstances."""
    found, plan = [], study.plan
    most = max(plan.workers)
    if most > study.cores:
        may = "one core" if study.cores == 1 else f"{study.cores} cores"
        found.append(
            f"Up to {most} workers were asked for, but only {may} may be used. Workers without a "
            "core of their own take turns; their numbers say nothing about scaling."
        )
    if crowding(study, min(most, study.cores)) > BUSY:
        found.append(
            f"{others(study)} So the numbers are those of a busy machine. Measure again on an idle "
            "machine."
        )
    if not any(one.reached for one in summaries):
        nearest = min(one.gaps[-1] for one in summaries)
        what = "the optimum" if study.reference.proved else "what a longer run reached"
        found.append(
            f"The runs have not converged: the last epoch of the best is still {percent(nearest)} "
            f"above {what}. Give more --epochs, or a larger --target than {plan.target:g}."
        )
    if plan.repeats == 1:
        found.append("Each configuration ran only once, so how much times vary is not known.")
    ratio, noisy = max((one.epoch.greatest / one.epoch.least, one.name) for one in summaries)
    if ratio > NOISY:
        found.append(
            f"Epochs of {noisy} differ by up to {ratio:.2f} times between repeats. Ignore smaller "
            "differences, or measure again on an idle machine."
        )
    return found


def _of_runs(study: Study, summaries: Summaries) -> list[str]:
    """Notes on configurations. A note that several have in common appears once."""
    said = [(text, run.configuration.name) for run in study.runs for text in run.notes]
    said += [
        (f"failed: {run.failure}", run.configuration.name) for run in study.runs if run.failure
    ]
    for one in summaries:
        if one.workers < one.configuration.workers:
            said.append((f"only {one.workers} workers can work at once", one.name))
        if one.reached < one.repeats and any(other.reached for other in summaries):
            text = "not all runs reached the target; try more --epochs or a larger --target"
            said.append((text, one.name))
    names = {text: dict.fromkeys(name for t, name in said if t == text) for text, _ in said}
    return [f"{', '.join(named)}: {text}." for text, named in names.items()]


def _in_short(study: Study, summaries: Summaries) -> str:
    """The fastest configuration: to the target if one worker reached it, else of an epoch."""
    arrived = [one for one in summaries if one.target and one.reached == one.repeats]
    to_target = any(one.configuration.workers == 1 for one in arrived)
    # Configurations whose epochs achieve less do not count
    sound = [one for one in summaries if one.worse <= study.plan.target]

    def time(one: Summary) -> Spread:
        return one.target if to_target and one.target else one.epoch

    best, *others = sorted(arrived if to_target else sound, key=lambda one: time(one).median)
    until = f"to a gap of {study.plan.target:g}"
    if not to_target:
        until = "per epoch (one worker did not reach the target)"
    said = f"The fastest is {best.name}: {milliseconds(time(best).median)} {until}"
    if best.configuration.workers > 1:
        faster = best.target_speed_up if to_target else best.speed_up
        said += f", {faster:.2f} times as fast as one worker"
        said += f"; its epochs are {best.speed_up:.2f} times as fast" if to_target else ""
    near = [one.name for one in others if time(one).least <= time(best).greatest]
    if near and study.plan.repeats > 1:
        return f"{said}. The repeats vary: {', '.join(near)} may be as fast."
    if others:
        return f"{said}. {others[0].name} follows with {milliseconds(time(others[0]).median)}."
    return f"{said}."


def _why_not(study: Study, one: Summary) -> str:
    """Where the time of an epoch goes beyond an equal share."""
    start = (
        f"Why not {one.configuration.workers} times? An epoch of {one.name} takes "
        f"{milliseconds(one.epoch.median)}, {one.speed_up:.2f} times as fast as one worker. An "
        f"equal share of one worker's epoch would take {milliseconds(one.equal_share)}."
    )
    lost = [f"{milliseconds(s)} {k}" for k, s in one.losses.items() if s > 0.01 * one.equal_share]
    rest = f"The rest: {', '.join(lost)}. " if lost else ""
    return f"{start} {rest}The bound: {cause(study, one)}."
