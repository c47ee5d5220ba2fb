"""The plots of a study: speed-up, gaps, and where the time goes."""

from hogwild.scaling.findings import Summaries
from hogwild.scaling.study import Study
from hogwild.scaling.svg import COLORS, Axis, Line, bars, line_plot, linear, logarithmic

PARTS = ("computing", "waiting", "merging", "start", "evaluation (not on the training clock)")


def speed_up(study: Study, summaries: Summaries) -> str:
    """Of an epoch against workers, a line for each strategy."""
    counts = sorted({one.configuration.workers for one in summaries})
    lines = [Line("ideal", [(count, count) for count in counts], dash=1)]
    for strategy in study.plan.strategies:
        points, spans = [(1, 1.0)], []
        for one in summaries:
            if one.configuration.strategy == strategy:
                workers, base = one.configuration.workers, one.base.epoch.median
                points.append((workers, one.speed_up))
                spans.append((workers, base / one.epoch.greatest, base / one.epoch.least))
        lines.append(Line(strategy, sorted(points), *_look(study, strategy), spans=spans))
    margin = max(0.25, 0.05 * (counts[-1] - counts[0]))
    x = Axis("workers", counts[0] - margin, counts[-1] + margin, counts)
    tops = [top for line in lines for _, _, top in line.spans]
    y = linear("speed-up (times one worker)", [*counts, *tops])
    return line_plot("Speed-up of an epoch", lines, x, y)


def gaps_by_time(study: Study, summaries: Summaries) -> str:
    return _gaps(study, summaries, "training time (s)", [one.times for one in summaries])


def gaps_by_epoch(study: Study, summaries: Summaries) -> str:
    epochs = [[number + 1.0 for number in range(len(one.gaps))] for one in summaries]
    return _gaps(study, summaries, "epochs", epochs, least_step=1)


def time_split(study: Study, summaries: Summaries) -> str:
    """The parts of the median run of each configuration."""
    rows = {}
    for one in summaries:
        epochs = (one.training - one.startup) / one.split.epoch
        rows[one.name] = [*(epochs * part for part in one.split), one.startup, one.evaluation]
    return bars(rows, PARTS)


def _gaps(
    study: Study, summaries: Summaries, title: str, places: list[list[float]], least_step: float = 0
) -> str:
    target = study.plan.target
    x = linear(title, [along[-1] for along in places], least_step)
    y = logarithmic("gap", [target, *(gap for one in summaries for gap in one.gaps)])
    lines = [Line(f"target {target:g}", [(x.least, target), (x.most, target)], dash=2)]
    for one, at in zip(summaries, places, strict=True):
        points = list(zip(at, one.gaps, strict=True))
        lines.append(Line(one.name, points, *_look(study, *one.configuration)))
    return line_plot(f"Gap of the objective against {title}", lines, x, y)


def _look(study: Study, strategy: str | None, workers: int = 1) -> tuple[str, int, int]:
    """Color and marker stand for the strategy, dashes for the number of workers."""
    if strategy is None:
        return "currentColor", 0, 0
    number, counts = study.plan.strategies.index(strategy), [1, *study.plan.workers]
    return COLORS[number % len(COLORS)], number + 1, counts.index(workers)
