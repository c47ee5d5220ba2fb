"""`hogwild train -`: a stream of rows."""

import argparse
import json
from typing import Any

from hogwild.cli.options import config_options
from hogwild.cli.streams import complain, say
from hogwild.errors import OptionError
from hogwild.streaming import STANDARD_INPUT, StreamResult, train_stream
from hogwild.trace import Row

# Options that a stream cannot have, besides those of `Config`
OTHERS = ("test", "validate", "sample_weight", "folds", "metric", "trace", "columns")
HEAD = "      rows       loss     recent   columns    seconds"


def labels_of(parsed: argparse.Namespace, words: bool = False) -> tuple[Any, ...] | None:
    """The given classes: numbers, or else text if the data may have words."""
    if parsed.labels is None:
        return None
    given = parsed.labels.split(",")
    try:
        return tuple(float(text) for text in given)
    except ValueError:
        if words:
            return tuple(given)
        raise OptionError(
            f"labels: expected numbers with commas between them, not {parsed.labels!r}"
        ) from None


def train_on_stream(parsed: argparse.Namespace) -> int:
    """Learns from standard input, and prints the loss at growing intervals."""
    given = [name for name in OTHERS if getattr(parsed, name) is not None]
    given += [name for name in ("cache", "why") if getattr(parsed, name)]
    if given:
        refused = (f"{name}: not available for a stream; leave it out" for name in given)
        raise OptionError("\n".join(refused))
    if parsed.json and parsed.quiet:
        raise OptionError("json: it prints the record, and --quiet nothing; choose one")
    is_table = not (parsed.json or parsed.quiet)
    result = train_stream(
        STANDARD_INPUT,
        labels=labels_of(parsed),
        model=parsed.model,
        save_every=parsed.save_every,
        index_base=parsed.index_base,
        show=_as_json if parsed.json else _Table() if is_table else _not_at_all,
        **config_options(parsed),
    )
    if is_table:
        say(_end_of(result))
        if parsed.model:
            say(f"saved: {parsed.model}")
    return exit_code(result.reason, parsed.model)


def exit_code(reason: str, model: str | None, checkpoint: str | None = None) -> int:
    """The exit code of a training; after Ctrl-C it says where the model so far is."""
    if reason != "interrupted":
        return 0
    kept = f"the model so far is in {model}" if model else "no --model was asked for"
    then = "; go on with the same command and --resume auto" if checkpoint else ""
    complain(f"interrupted; {kept}{then}")
    return 130


def _end_of(result: StreamResult) -> str:
    words = {"end": "the end of the stream", "time": "the time limit", "interrupted": "Ctrl-C"}
    return (
        f"stopped by {words[result.reason]} after {result.rows:,} rows; progressive loss "
        f"{result.loss:.6g}"
    )


class _Table:
    """Prints a line for each row of the trace, and the head above the first line."""

    head = HEAD + "\n"

    def __call__(self, row: Row) -> None:
        say(self.head + _as_line(row))
        self.head = ""


def _as_line(row: Row) -> str:
    return (
        f"{row['rows']:>10,} {row['loss']:>10.6f} {row['recent_loss']:>10.6f} "
        f"{row['columns']:>9,} {row['seconds']:>10.3f}"
    )


def _as_json(row: Row) -> None:
    say(json.dumps({"kind": "rows"} | row))


def _not_at_all(row: Row) -> None:
    """Prints nothing: for --quiet."""
