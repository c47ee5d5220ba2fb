"""How a training run shows itself: lines, with a live one below them on a terminal; or JSON."""

import json
import shutil
import sys
import textwrap
import time
from typing import Any

from hogwild.cli.streams import complain, silence
from hogwild.coordinator import Watcher
from hogwild.learn.choosing import AS_ASKED, METHODS
from hogwild.learn.problem import Shown
from hogwild.learn.proof import nearness
from hogwild.trace import Row

THROUGHPUT = {"nonzeros_per_second": "M nnz/s", "ratings_per_second": "M ratings/s"}
BAR = 24
CELL, CELL_OF_FOLDS = 12, 22  # characters, of a number in the table of a search
WORTH_A_WORD = 0.01  # seconds of preparation
FINE = 1e-3  # a gap, from where on rounding may be why it gets no smaller
EVERY = 0.1  # seconds between two redrawings


class Lines(Watcher):
    """For people: a line per epoch, and on a terminal a bar for the running one."""

    def __init__(self) -> None:
        self._live = sys.stdout is not None and sys.stdout.isatty()
        self._drawn = 0.0  # when the bar was
        self._shown = False  # the bar

    def note(self, text: str) -> None:
        self._wipe()
        say(f"note: {text}")

    def start(self, header: Row) -> None:
        chosen, options = header["chosen"], header["options"]
        self._shown_numbers = [Shown(**shown) for shown in header["shown"]]
        data, objective = header["summary"]
        say(data)
        self._proves = chosen["proves"]
        say(f"{objective}, {_way(options, chosen)}")
        if chosen.get("solver_why", AS_ASKED) != AS_ASKED:
            say(f"solver {chosen['solver']}: {chosen['solver_why']}")
        workers = chosen["workers"]
        team = f"{chosen['strategy']} with {workers} {'worker' if workers == 1 else 'workers'}"
        if chosen["prepare_seconds"] >= WORTH_A_WORD:
            team += f", ready after {chosen['prepare_seconds']:.3f} s"
        width = min(100, shutil.get_terminal_size().columns)
        say(textwrap.fill(f"{team}: {chosen['why']}", width, subsequent_indent="  "))
        self._throughput = header["throughput"]
        titles = [shown.title for shown in self._shown_numbers]
        which = "gap" if self._proves else "rate"
        titles = ["seconds", "objective", *titles, which, THROUGHPUT[self._throughput]]
        say(" epoch" + "".join(f"{title:>{_width(title) + 1}}" for title in titles))

    def tick(self, epoch: int, share: float, seconds: float) -> None:
        if not self._live or time.monotonic() - self._drawn < EVERY:
            return
        self._drawn = time.monotonic()
        self._shown = True
        full = int(BAR * min(1.0, max(0.0, share)))
        bar = "#" * full + "." * (BAR - full)
        say(f"\r{epoch:>6} {seconds:>9.3f} [{bar}] {100 * share:3.0f} %", end="")

    def epoch(self, row: Row) -> None:
        self._wipe()
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
        """A line for what is compared, for each row of the table, and for what was picked."""
        self._wipe()
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

    def _wipe(self) -> None:
        if self._shown:
            say("\r\033[K", end="")
            self._shown = False

    def end(self, result: Any) -> None:
        """The last line: why training stopped."""
        self._wipe()
        epochs = len(result.trace)
        seconds = result.trace[-1]["seconds"] if epochs else 0.0
        say(
            f"stopped: {result.reason}, after {epochs} {'epoch' if epochs == 1 else 'epochs'} "
            f"and {seconds:.3f} s of training{_proof(result)}"
        )


class Silent(Watcher):
    """Prints nothing but notes."""

    def note(self, text: str) -> None:
        complain(text)

    def end(self, result: Any) -> None:
        pass


class Json(Silent):
    """For programs: the header, a row for each epoch, and the end, as JSON lines."""

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


def _proof(result: Any) -> str:
    """What was proved, if anything was."""
    looked = [row for row in result.trace if row["objective"] is not None]
    gap = looked[-1].get("gap") if looked else None
    options, proves = result.header["options"], result.header["chosen"]["proves"]
    is_bounded = proves and (options["l2"] or options["l1"])
    # Shares of the objective are compared with tol, and a gap is one of the bound
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


def say(text: str, end: str = "\n") -> None:
    """A line, at once. Where none can be written any more, training goes on in silence."""
    try:
        print(text, end=end, flush=True)
    except OSError as problem:
        silence(sys.stdout)
        if not isinstance(problem, BrokenPipeError):
            complain(f"standard output: {problem.strerror}")


def _width(title: str) -> int:
    """Of a column, without the space before it."""
    return {"seconds": 9, "objective": 11, "rate": 9, "gap": 9}.get(title, len(title) + 1)


def _formatted(value: float | None, form: str, width: int) -> str:
    if value is None:
        return f"{'-':>{width}}"
    if form == "percent":
        return f"{100 * value:>{width - 2}.2f} %"
    short = form.endswith("d") or abs(value) < 1e4
    return f"{value:{width}{form}}" if short else f"{value:{width}.4e}"
