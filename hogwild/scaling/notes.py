"""What a reader must know before the numbers: it stands at the top of all that is shown."""

from hogwild.scaling.study import Study
from hogwild.scaling.summary import least_objective
from hogwild.scaling.text import cores


def notes(study: Study) -> list[str]:
    """A sentence or two each."""
    return [*_of_workers(study), *_of_measuring(study), *_of_runs(study)]


def about_data(study: Study) -> str:
    """The data in a line."""
    return f"{study.look.name}: {study.look.shape}"


def about_options(study: Study) -> str:
    """What was trained, and how often."""
    plan = study.plan
    epochs = max(len(run.trace) for run in study.runs)
    given = {name: value for name, value in plan.given.items() if name != "epochs"}
    told = "".join(f", {name} {value}" for name, value in given.items())
    times = "once" if plan.repeats == 1 else f"{plan.repeats} times, in turn"
    return f"task {plan.options.get('task', 'svm')}, {epochs} epochs{told}; each run {times}"


def about_machine(study: Study) -> list[str]:
    """The machine, and what it gave to threads."""
    found = study.header["machine"]
    first = f"{found['cpu']}, {study.cores} of {found['cores']} cores usable, {found['system']}"
    machine = study.machine
    gains = ", ".join(
        f"{count} {'thread' if count == 1 else 'threads'} {machine.speed_up(count):.2f} times and "
        f"{machine.stream(count) / 1e9:.3g} GB/s"
        for count in machine.arithmetic
    )
    return [first, f"arithmetic and reading memory: {gains}"]


def _of_workers(study: Study) -> list[str]:
    most = max(study.plan.workers, default=1)
    if most <= study.cores:
        return []
    return [
        f"Up to {most} workers were asked for. {cores(study.cores)} may be used: numbers beyond "
        "that tell of workers that take turns, not of scaling."
    ]


def _of_measuring(study: Study) -> list[str]:
    found = []
    if study.plan.repeats == 1:
        found.append("Each was run once only: how much the times vary is not known.")
    optimum, least = study.plan.optimum, least_objective(study)
    if optimum is not None and least < optimum:
        found.append(
            f"The optimum was given as {optimum:.8g}, and a run came to {least:.8g}: it is not the "
            "optimum of this data with these options."
        )
    return found


def _of_runs(study: Study) -> list[str]:
    """What runs were warned of, each text once."""
    said: dict[str, list[str]] = {}
    for run in study.runs:
        for text in run.notes:
            said.setdefault(text, []).append(run.configuration.name)
    return [f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in said.items()]
