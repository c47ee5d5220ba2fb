"""What a training run prints: lines, or JSON."""

import json
import shutil
import textwrap
from collections.abc import Callable
from typing import Any

from hogwild.cli.streams import complain, say
from hogwild.learn.choosing import AS_ASKED, METHODS
from hogwild.learn.problem import Shown
from hogwild.learn.proof import nearness
from hogwild.results import Watcher
from hogwild.trace import Row

THROUGHPUT = {"nonzeros_per_second": "M nnz/s", "ratings_per_second": "M ratings/s"}
CELL, CELL_OF_FOLDS = 12, 22  # characters of a number in the table of a search
WORTH_A_WORD = 0.01  # seconds of preparation; shorter ones are not printed
FINE = 1e-3  # a gap below which rounding may keep it from getting smaller
FALLS = 5e-4  # share of the objective per epoch: a smaller decrease counts as hardly any
MORE = 3  # factor for the epochs, or the time, to try if there were too few


class Lines(Watcher):
    """Prints for people: what is trained and how, a line for each epoch, and how training ended.

    With `why`, also prints the reasons for what was chosen. `named` writes an option as users type
    it.
    """

    def __init__(
        self, named: Callable[[str, str], str] = "{}={}".format, why: bool = False
    ) -> None:
        self._named, self._why = named, why

    def note(self, text: str) -> None:
        say(f"note: {text}")

    def tell(self, text: str) -> None:
        say(text)

    def start(self, header: Row) -> None:
        chosen, options = header["chosen"], header["options"]
        self._shown_numbers = [Shown(**shown) for shown in header["shown"]]
        data, objective = header["summary"]
        say(data)
        self._proves = chosen["proves"]
        say(f"{objective}, {_way(options, chosen)}")
        if self._why and chosen.get("solver_why", AS_ASKED) != AS_ASKED:
            say(f"solver {chosen['solver']}: {chosen['solver_why']}")
        workers = chosen["workers"]
        team = f"{chosen['strategy']} with {workers} {'worker' if workers == 1 else 'workers'}"
        if chosen["prepare_seconds"] >= WORTH_A_WORD:
            team += f", ready after {chosen['prepare_seconds']:.3f} s"
        if self._why:
            width = min(100, shutil.get_terminal_size().columns)
            team = textwrap.fill(f"{team}: {chosen['why']}", width, subsequent_indent="  ")
        say(team)
        self._throughput = header["throughput"]
        titles = [shown.title for shown in self._shown_numbers]
        which = "gap" if self._proves else "rate"
        titles = ["seconds", "objective", *titles, which, THROUGHPUT[self._throughput]]
        say(" epoch" + "".join(f"{title:>{_width(title) + 1}}" for title in titles))

    def epoch(self, row: Row) -> None:
        shown = "".join(
            f" {_formatted(row[number.key], number.form, _width(number.title))}"
            for number in self._shown_numbers
        )
        speed = f"{row[self._throughput] / 1e6:.0f}"
        say(
            f"{row['epoch']:>6} {row['seconds']:>9.3f} {_formatted(row['objective'], '.6f', 11)}"
            f"{shown} {self._rate_or_gap(row)} {speed:>{_width(THROUGHPUT[self._throughput])}}"
        )

    def _rate_or_gap(self, row: Row) -> str:
        if not self._proves:
            return f"{row['rate']:>9.3g}"
        gap = row["gap"]
        if gap is None:
            return f"{'-':>9}"
        return f"{100 * gap:>7.2g} %" if gap < 1.0 else f"{'> 100 %':>9}"

    def search(self, row: Row) -> None:
        """Prints a line for what is compared, for each row of the table, and for the choice."""
        if row["kind"] == "search":
            self._table = Table(row)
            say(self._table.head())
        elif row["kind"] == "compared":
            for line in self._table.lines(row):
                say(line)
        else:
            picked = ", ".join(f"{name} {value:g}" for name, value in row["options"].items())
            then = f"training on all {row['rows']:,} rows"
            if row["epochs"]:
                then += f", for {row['epochs']} epochs at most"
            say(f"picked {picked}; {then}" if picked else then)

    def end(self, result: Any) -> None:
        say(ending(result, self._named))


class Silent(Watcher):
    """Prints nothing but notes."""

    def note(self, text: str) -> None:
        complain(text)


class Json(Silent):
    """Prints for programs: the header, a row for each epoch, and the end, as JSON lines."""

    def start(self, header: Row) -> None:
        say(json.dumps(header))

    def epoch(self, row: Row) -> None:
        say(json.dumps(row))

    def search(self, row: Row) -> None:
        say(json.dumps(row))

    def end(self, result: Any) -> None:
        say(json.dumps(result.records()[-1]))


class Table:
    """The table of a search: a line for each combination of values, or for each fold of one."""

    def __init__(self, about: Row) -> None:
        self._about = about
        self._shown = list(dict.fromkeys([*about["shown"], about["metric"]]))
        self._firsts = list(about["options"] or ["fold"])
        width = CELL_OF_FOLDS if about["folds"] and about["options"] else CELL
        rooms = [max(width, len(name) + 2) for name in self._shown]
        self._rooms = [*(CELL for _ in self._firsts), *rooms, CELL]

    def head(self) -> str:
        """What is compared, and the titles."""
        options, folds, rows = (self._about[name] for name in ("options", "folds", "rows"))
        what = " and ".join(f"{len(values)} values of {name}" for name, values in options.items())
        held = self._about["held_out"]
        by = f"{folds} folds of {rows:,} rows" if folds else f"{held[0]:,} rows held out"
        first = f"comparing {what} by the {self._about['metric']} on {by}"
        if not options:
            first = f"cross-validation: {by}, each judged by a model that did not learn from it"
        return f"{first}\n{self._line(*self._firsts, *self._shown, 'epochs')}"

    def lines(self, row: Row) -> list[str]:
        """A row of the table; if it is the only one, its folds."""
        if self._about["options"]:
            values = [f"{row[name]:.4g}" for name in self._firsts]
            return [self._cells(row, *values, spread=bool(self._about["folds"]))]
        folds = [self._cells(fold, str(number)) for number, fold in enumerate(row["folds"], 1)]
        spread = {name: row.get(f"{name}_std") for name in self._shown}
        return [*folds, self._cells(row, "mean"), self._cells(spread, "spread")]

    def _line(self, *cells: str) -> str:
        padded = (f"{cell:>{room}}" for cell, room in zip(cells, self._rooms, strict=True))
        return "".join(padded).rstrip()

    def _cells(self, row: Row, *firsts: str, spread: bool = False) -> str:
        """The metrics, some with their standard deviation, and the epochs."""
        texts = {name: _short(row.get(name)) for name in self._shown}
        if spread:
            texts |= {k: f"{t} +- {_short(row.get(f'{k}_std'), '.2g')}" for k, t in texts.items()}
        epochs = f"{row['epochs']:.4g}" if "epochs" in row else ""
        return self._line(*firsts, *texts.values(), epochs)


def _way(options: Row, chosen: Row) -> str:
    """How training goes."""
    if chosen["proves"]:
        counted = f" ({chosen['operations']:.1g} operations)" if "operations" in chosen else ""
        return METHODS[chosen["solver"]] + counted
    found = f"found in {chosen['eta0_seconds']:.3f} s" if chosen["eta0_found"] else "given"
    return f"{options['schedule']} rate with eta0 {chosen['eta0']:.4g} ({found})"


def ending(result: Any, named: Callable[[str, str], str]) -> str:
    """How training ended, and what to do if it was too soon."""
    options, trace = result.header["options"], result.trace
    count = f"{len(trace)} {'epoch' if len(trace) == 1 else 'epochs'}"
    seconds = trace[-1]["seconds"] if trace else 0.0
    how, then = "stopped", _proof(result)
    after = f" after {count} in {seconds:.3f} s"
    if result.reason == "epochs":
        after = f" after {count} (the limit) in {seconds:.3f} s"
        then = _still(result, named("epochs", str(MORE * len(trace))))
    elif result.reason == "time":
        after = f" after {count} in {seconds:.3f} s (the time limit)"
        more = named("time_limit", f"{MORE * (options['time_limit'] or seconds):g}")
        then = _still(result, more)
    elif result.reason == "target":
        after = f" at the target{after}"
    elif result.reason == "overfitting":
        best = result.model.about["trace"]["last"]["epoch"]
        then = f": the loss on held-out data no longer falls; the model is from epoch {best}"
    elif result.reason == "unreachable":
        then += "; the target is below the optimum"
    elif result.reason in ("converged", "interrupted"):
        how = result.reason
    elif result.reason != "stuck":
        after = f" by a callback ({result.reason}){after}"
    return how + after + then


def _still(result: Any, more: str) -> str:
    """How much the objective could still fall, and how to ask for more epochs."""
    if proof := _proof(result):
        return f", not converged: {proof.removeprefix(', ')}; try {more}"
    last = [row["objective"] for row in result.trace if row["objective"] is not None][-2:]
    if len(last) < 2 or result.header["options"]["objective_every"] != 1:
        return f", not converged: there were too few epochs to tell; try {more}"
    fall = (last[0] - last[1]) / max(abs(last[0]), 1e-300)
    if fall < FALLS:
        return ": the objective hardly falls any more"
    return f", not converged: the objective still falls {100 * fall:.2g} % an epoch; try {more}"


def _proof(result: Any) -> str:
    """What was proved, if anything was."""
    looked = [row for row in result.trace if row["objective"] is not None]
    gap = looked[-1].get("gap") if looked else None
    options, proves = result.header["options"], result.header["chosen"]["proves"]
    is_bounded = proves and (options["l2"] or options["l1"])
    # tol is a share of the objective, but a gap is a share of the bound
    is_nothing = gap is None or gap > 2 * options["tol"]
    if result.reason == "converged" and is_bounded and is_nothing:
        return ", the gap is proved to be nothing beside the objective of zero weights"
    if gap is None:
        return ""
    is_fine = result.reason == "stuck" and gap < FINE
    more = "; single precision may prove no more" if is_fine else ""
    return f", {nearness(gap)} the optimum, proved{more}"


def _short(value: float | None, form: str = ".5g") -> str:
    return "-" if value is None else f"{value:{form}}"


def _width(title: str) -> int:
    """The width of a column, without the space before it."""
    return {"seconds": 9, "objective": 11, "rate": 9, "gap": 9}.get(title, len(title) + 1)


def _formatted(value: float | None, form: str, width: int) -> str:
    if value is None:
        return f"{'-':>{width}}"
    if form == "percent":
        return f"{100 * value:>{width - 2}.2f} %"
    short = form.endswith("d") or abs(value) < 1e4
    return f"{value:{width}{form}}" if short else f"{value:{width}.4e}"
