"""The plots of a study: speed-up, gaps by time and by epochs, and where the time went."""

from collections.abc import Sequence

from hogwild.scaling import axes
from hogwild.scaling.axes import Axis
from hogwild.scaling.plan import Configuration
from hogwild.scaling.plots import COLOURS, INK, MARKERS, Bar, Line, bar_plot, line_plot
from hogwild.scaling.study import Study
from hogwild.scaling.summary import Summary

IDEAL = "ideal"
PARTS = {
    "computing": "computing",
    "waiting": "waiting",
    "merging": "merging",
    "startup": "start",
    "evaluation": "objectives (not on the training clock)",
}


def speed_up(study: Study, summaries: Sequence[Summary]) -> str:
    """Against workers, one line for each strategy, and the ideal."""
    workers = [one.configuration.workers for one in summaries]
    lines = [
        Line(IDEAL, [(float(count), float(count)) for count in sorted(set(workers))], INK, None, 1)
    ]
    for strategy in study.plan.strategies:
        some = [one for one in summaries if one.configuration.strategy == strategy and one.speed_up]
        points = [(float(one.configuration.workers), one.speed_up or 0.0) for one in some]
        if not study.plan.own_baseline:
            points = [(1.0, 1.0), *points]
        ranges = [_range(one) for one in some]
        lines.append(Line(strategy, points, *_look(study, strategy), ranges=ranges))
    highest = [y for line in lines for _, y in line.points]
    highest += [high for line in lines for _, _, high in line.ranges]
    title = "Speed-up of an epoch against the number of workers"
    x = axes.whole("workers", workers)
    return line_plot(title, lines, x, axes.linear("speed-up (times one worker)", highest))


def gaps_by_time(study: Study, summaries: Sequence[Summary]) -> str:
    """Of the objective, against the training clock."""
    longest = axes.linear("training time (s)", [one.times[-1] for one in summaries])
    title = "Objective gap against training time"
    return _gaps(study, summaries, title, longest, [one.times for one in summaries])


def gaps_by_epoch(study: Study, summaries: Sequence[Summary]) -> str:
    """Of the objective, against the epochs."""
    epochs = [[float(n + 1) for n in range(len(one.gaps))] for one in summaries]
    x = axes.counts("epochs", max(len(one.gaps) for one in summaries))
    return _gaps(study, summaries, "Objective gap against epochs", x, epochs)


def split(study: Study, summaries: Sequence[Summary]) -> str:
    """Where the time of the median run went."""
    bars = [_bar(one) for one in summaries]
    ends = [sum(bar.parts) for bar in bars] + [bar.mark or 0.0 for bar in bars]
    mark = "an equal share of one worker's training" if len(bars) > 1 else None
    return bar_plot(
        "Where the time of a run goes",
        bars,
        list(PARTS.values()),
        axes.linear("seconds of the median run", ends),
        mark,
    )


def _bar(summary: Summary) -> Bar:
    parts = [getattr(summary.whole, name) for name in PARTS]
    ideal = summary.ideal_training if summary.configuration.workers > 1 else None
    return Bar(summary.name, parts, ideal)


def _range(summary: Summary) -> tuple[float, float, float]:
    """The speed-ups of the greatest and of the least epoch, where there is a baseline's median."""
    base = summary.baseline.epoch if summary.baseline else 0.0
    epoch = summary.epoch
    return float(summary.configuration.workers), base / epoch.greatest, base / epoch.least


def _gaps(
    study: Study,
    summaries: Sequence[Summary],
    title: str,
    x: Axis,
    places: Sequence[Sequence[float]],
) -> str:
    y = axes.logarithmic(
        "gap (share of the best objective)",
        [gap for one in summaries for gap in one.gaps] + [study.plan.target],
    )
    target = [(x.least, study.plan.target), (x.most, study.plan.target)]
    lines = [Line(f"target {study.plan.target:g}", target, INK, None, 2)]
    for one, at in zip(summaries, places, strict=True):
        points = list(zip(at, one.gaps, strict=True))
        colour, marker, dash = _looks(study, one.configuration)
        lines.append(Line(one.name, points, colour, marker, dash))
    return line_plot(title, lines, x, y)


def _looks(study: Study, configuration: Configuration) -> tuple[int, int, int]:
    """Colour and marker are the strategy's, dashes are the number of workers'."""
    if configuration.strategy is None:
        return INK, 0, 0
    colour, marker = _look(study, configuration.strategy)
    more = [count for count in study.plan.workers if count > 1 or study.plan.own_baseline]
    return colour, marker, more.index(configuration.workers) if configuration.workers in more else 0


def _look(study: Study, strategy: str) -> tuple[int, int]:
    """A colour and a marker; where there are more strategies than colours, another pair."""
    number = study.plan.strategies.index(strategy)
    return number % COLOURS, (number + 3 * (number // COLOURS) + 1) % len(MARKERS)
