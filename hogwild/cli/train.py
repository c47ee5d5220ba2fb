"""`hogwild train`."""

import argparse
from functools import partial

from hogwild.checkpoint import EVERY, checked
from hogwild.cli.features import add_features, feature_options
from hogwild.cli.options import (
    add_columns,
    add_config,
    add_data,
    add_duplicates,
    add_index_base,
    config_options,
    files_in,
    number_or_text,
)
from hogwild.cli.parser import Parser, group
from hogwild.cli.streams import say
from hogwild.cli.train_stream import exit_code, labels_of, train_on_stream
from hogwild.data.files import features_of
from hogwild.data.sets import files_of, named
from hogwild.display import Json, Lines, Silent
from hogwild.errors import OptionError
from hogwild.paths import check_files
from hogwild.results import Result
from hogwild.selection import check_options, is_search, search
from hogwild.streaming import STANDARD_INPUT
from hogwild.training import train, with_task

GOING_ON = ("start", "checkpoint", "every", "resume")  # options of what to go on from
EXAMPLES = (
    "part-*.svm.gz --task logistic --test test.svm --model m.hog",
    "ratings.csv --rank 64 --early-stopping 0.05 --model taste.hog",
)


def add_options(parser: Parser) -> None:
    add_data(
        parser,
        "rows: .rows, svmlight text or .npz, or - for a stream of svmlight text from standard "
        "input, which is learned from in one pass; text or tables, with options for features; or "
        "ratings, for the task mf: .csv, .tsv, .mtx, .dat (a::b::c) or .npz; text also as .gz, "
        ".bz2, .xz or .zst",
        optional=True,
    )
    add = group(parser, "data").add_argument
    add("--test", metavar="FILE", help="rows or ratings to report the error of")
    add(
        "--validate",
        metavar="FILE",
        help="rows that are not learned from: stop when their loss no longer decreases, and return "
        "the best epoch",
    )
    add(
        "--cache",
        action="store_true",
        help="keep the rows of each file beside it, as NAME.rows, and read those from then on, "
        "until the file changes",
    )
    add("--sample-weight", metavar="FILE", help="weights of the rows of DATA: a number a line")
    add(
        "--folds",
        type=number_or_text(int),
        metavar="N",
        help="number of folds to cross-validate with, before training on all rows",
    )
    add(
        "--metric",
        metavar="NAME",
        help="what to compare by, with --folds or several values: loss, error, auc, ... [loss]",
    )
    add(
        "--labels",
        metavar="LABEL,LABEL",
        help="the classes, where DATA or the first rows of a stream may not have them all",
    )
    add = group(parser, "output").add_argument
    add(
        "--save-every",
        type=number_or_text(int),
        metavar="N",
        help="with a stream: save the model each time that another N rows were learned from",
    )
    add("--model", metavar="OUT", help="where to save the model")
    add("--trace", metavar="FILE", help="where to save the record, as JSON lines")
    add(
        "--checkpoint",
        metavar="FILE",
        help="where to save all that is needed to go on, to the bit, if training is broken off",
    )
    add(
        "--every",
        metavar="WHEN",
        help=f"epochs, or a time (30s, 5m), after which that is saved again [{EVERY}]",
    )
    add(
        "--resume",
        metavar="FILE|auto",
        help="go on from this checkpoint; auto: from the --checkpoint, if there is one",
    )
    add("--json", action="store_true", help="print the record, as JSON lines")
    add("--quiet", action="store_true", help="print nothing but problems")
    add("--why", action="store_true", help="print the reasons for what was chosen, too")
    group(parser, "training").add_argument(
        "--start",
        metavar="MODEL",
        help="go on from the weights of a model, such as with more data or for more epochs",
    )
    group(parser, "training").add_argument(
        "--config",
        metavar="FILE",
        help="take options from a TOML file, or from the trace of an earlier run; those on the "
        "command line win",
    )
    add_index_base(parser)
    add_columns(parser)
    add_duplicates(parser)
    add_features(parser)
    add_config(parser)


def run(parsed: argparse.Namespace) -> int:
    if not parsed.data:
        parsed.parser.error("the following arguments are required: DATA")
    if files_in(parsed) == STANDARD_INPUT:
        reasons = [
            f"{name}: not for a stream, which has svmlight text" for name in feature_options(parsed)
        ]
        reasons += [
            f"{name}: not for a stream, which is learned from in one pass; see --save-every"
            for name in GOING_ON
            if getattr(parsed, name)
        ]
        if reasons:
            raise OptionError("\n".join(reasons))
        return train_on_stream(parsed)
    if parsed.save_every is not None:
        raise OptionError("save_every: only for a stream (-); others save the model at the end")
    _check(parsed)
    data = files_in(parsed)
    settings, options = with_task(config_options(parsed) | feature_options(parsed), data)
    display = Json() if parsed.json else Silent() if parsed.quiet else Lines(_typed, parsed.why)
    common = {
        "test": parsed.test,
        "validate": parsed.validate,
        "sample_weight": parsed.sample_weight,
        "model": parsed.model,
        "trace": parsed.trace,
        "watcher": display,
        "index_base": parsed.index_base,
    }
    result: Result
    if is_search(options, parsed.folds):
        wrong = {"cache": "hogwild convert DATA train.rows, once", "labels": "leave them out"}
        wrong |= dict.fromkeys(GOING_ON, "leave it out")
        problems = [f"{name}: not with a search; {cure}" for name, cure in wrong.items()]
        given = [text for name, text in zip(wrong, problems, strict=True) if getattr(parsed, name)]
        if given:
            raise OptionError("\n".join(given))
        metric = {} if parsed.metric is None else {"metric": parsed.metric}
        options |= settings
        result = search(data, folds=parsed.folds, **metric, **common, **options)
    else:
        ratings = {"columns": parsed.columns, "duplicates": parsed.duplicates}
        more = {"cache": parsed.cache, "labels": labels_of(parsed, words=True)}
        going = {name: getattr(parsed, name) for name in GOING_ON if getattr(parsed, name)}
        result = train(data, **more, **ratings, **going, **common, **options, **settings)
    if parsed.model and not (parsed.json or parsed.quiet):
        say(f"saved: {parsed.model}")
    if parsed.checkpoint and result.reason == "time" and not (parsed.json or parsed.quiet):
        say("to go on, give the same command again, with --resume auto")
    return exit_code(result.reason, parsed.model, parsed.checkpoint)


def _typed(name: str, value: str) -> str:
    return f"--{name.replace('_', '-')} {value}"


def _check(parsed: argparse.Namespace) -> None:
    """Refuses the call with a list of all that is wrong, before any file is read."""
    problems: list[str] = []
    data, validate = files_in(parsed), parsed.validate is not None
    settings = feature_options(parsed)
    _, options = with_task(config_options(parsed) | settings, data)
    outputs = {name: getattr(parsed, name) for name in ("model", "trace", "checkpoint")}
    inputs = named(data, parsed.test, parsed.validate, parsed.sample_weight)
    checks = (
        partial(check_options, options, parsed.folds, validate, parsed.metric),
        partial(check_files, outputs, *inputs),
        partial(features_of, None, settings),
        partial(checked, parsed.checkpoint, parsed.every or EVERY, parsed.resume),
    )
    for check in checks:
        try:
            check()
        except OptionError as problem:
            problems.append(str(problem))
    for name in ("test", "validate", "sample_weight", "start"):
        path = getattr(parsed, name)
        if path and not all(file.exists() for file in files_of(path)):
            problems.append(f"{name}: there is no file {path}")
    if parsed.json and parsed.quiet:
        problems.append("json: it prints the record, and --quiet nothing; choose one")
    if problems:
        raise OptionError("\n".join(problems))
