"""Raw text and tables to hashed columns and to models, beside scikit-learn, VW and fastText.

The text is that of `hogwild generate text`, the table has the shape of Criteo's: 13 columns of
numbers and 26 of categories. All files are in a temporary folder and in the page cache. Vowpal
Wabbit and fastText get the same rows in their own text, which is written before.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

import hogwild
from experiments import measure, report
from experiments.children import finish
from experiments.environments import Environment
from experiments.measure import Line, best, seconds, timed
from hogwild import HogwildError
from hogwild.data.synthetic_text import reviews
from hogwild.machine import usable_cores

DOCUMENTS, TESTED = 110_000, 10_000  # 100 MB
CLICKS = 500_000
NUMBERS, CATEGORIES = 13, 26
SKLEARN_DOCUMENTS = 10_000  # that scikit-learn hashes
REPEATS = 3
PEERS = {"vowpalwabbit": "vowpalwabbit", "fasttext": "fasttext-wheel"}
VERSIONS = report.FOLDER / "peers-text.txt"
HOW = "python experiments/loading_raw.py --install"
SCRIPT = Path(__file__).with_name("text_peer.py")

NOTES = f"""
The best of {REPEATS} (scikit-learn once); files in the page cache. fastText's reading is an epoch
of one dimension, its training has its defaults and pairs of words, VW's reading is a pass with
--noop. Ours to a saved model is the whole command, the others' is without their imports."""


def environment(name: str) -> Environment:
    """The environment of another trainer."""
    return Environment(name, (PEERS[name], "numpy"), VERSIONS, HOW)


def asked(name: str, **request: Any) -> dict[str, Any] | None:
    """The quickest answer of another trainer; None if it is not there."""
    if problem := environment(name).missing():
        report.say(f"Left out  {name}: {problem}")
        return None
    answer = environment(name).ask(SCRIPT, {"repeats": REPEATS} | request, usable_cores())
    if answer.problem or not answer.rows:
        raise HogwildError(f"{name} failed: {answer.problem}")
    return min(answer.rows, key=lambda row: float(row["seconds"]))


def write_text(folder: Path) -> None:
    """Training and test documents, as they are and in the formats of others."""
    for name, count, first in (("train", DOCUMENTS, 0), ("test", TESTED, DOCUMENTS)):
        text = b"".join(reviews(count, first_row=first))
        (folder / f"{name}.txt").write_bytes(text)
        prefixed = [b"__label__" + line.replace(b"\t", b" ", 1) for line in text.splitlines()]
        (folder / f"{name}.ft").write_bytes(b"\n".join(prefixed) + b"\n")
        signs = {b"pos": b"1 |w ", b"neg": b"-1 |w "}
        lines = (line.split(b"\t", 1) for line in text.splitlines())
        with (folder / f"{name}.vw").open("wb") as file:
            file.writelines(signs[label] + words + b"\n" for label, words in lines)


def text_lines(folder: Path) -> Iterator[Line]:
    """Text to hashed words and pairs of words, and to a saved model."""
    write_text(folder)
    train, test, model = (folder / name for name in ("train.txt", "test.txt", "model"))
    size = train.stat().st_size
    report.say(f"Data      {train.name}: {size / 1e6:,.0f} MB, {DOCUMENTS:,} documents")
    load = partial(hogwild.load, train, format="text", ngrams=2)
    load()  # compiles
    speed = size / best({"ours": partial(timed, load)}, REPEATS)["ours"]
    documents = [line.split("\t")[1] for line in train.read_text().splitlines()]
    some = documents[:SKLEARN_DOCUMENTS]
    hashing = HashingVectorizer(ngram_range=(1, 2))
    others = {"scikit-learn": (sum(map(len, some)) / timed(lambda: hashing.transform(some)), 30.0)}
    vw = str(folder / "train.vw")
    if found := asked("vowpalwabbit", file=vw, options="--noop -b 20 --ngram w2"):
        others["Vowpal Wabbit"] = size / found["seconds"], 3.0
    few = {"wordNgrams": 2, "epoch": 1, "dim": 1}
    if found := asked("fasttext", file=str(folder / "train.ft"), options=few, model=None):
        others["fastText"] = size / found["seconds"], 3.0
    cores = usable_cores()
    what = f"text to words and pairs, {cores} cores"
    for name, (other, least) in others.items():
        yield Line(what, speed, other, megabytes_per_second, name, True, least)
    yield from shell_lines(folder, train, test, model)


def shell_lines(folder: Path, train: Path, test: Path, model: Path) -> Iterator[Line]:
    """From a file to a saved model, with the errors on other documents."""
    command = [sys.executable, "-m", "hogwild", "train", str(train), "--format", "text"]
    command += ["--ngrams", "2", "--task", "logistic", "--l2", "1e-5", "--model", str(model)]
    finish(command)
    ours = best({"ours": partial(timed, partial(finish, command))}, REPEATS)["ours"]
    trained = hogwild.load_model(model)
    error = trained.evaluate(trained.load(test))["error"]
    report.say(f"Error     hogwild {100 * error:.2f} %")
    found: dict[str, Any] = {}
    learned = timed(lambda: found.update(pipeline=by_sklearn(train)))
    lines = test.read_text().splitlines()
    y, documents = zip(*(line.split("\t") for line in lines), strict=True)
    wrong = float(np.mean(found["pipeline"].predict(documents) != np.array(y)))
    report.say(f"Error     scikit-learn {100 * wrong:.2f} %")
    what = "text to a saved model, shell"
    yield Line(what, ours, learned, seconds, "scikit-learn", least=5.0)
    request = {"file": str(folder / "train.ft"), "test": str(folder / "test.ft")}
    answer = asked("fasttext", **request, options={"wordNgrams": 2}, model=str(model), repeats=1)
    if answer:
        report.say(f"Error     fastText {100 * answer['error']:.2f} %")
        yield Line(what, ours, answer["seconds"], seconds, "fastText", least=2.0)


def by_sklearn(train: Path) -> Any:
    """scikit-learn's pipeline for such text, from the file on."""
    lines = train.read_text().splitlines()
    y, documents = zip(*(line.split("\t") for line in lines), strict=True)
    hashing = HashingVectorizer(ngram_range=(1, 2))
    learner = SGDClassifier(loss="log_loss", alpha=1e-5)
    return make_pipeline(hashing, TfidfTransformer(), learner).fit(documents, y)


def write_clicks(folder: Path) -> None:
    """A table of Criteo's shape, as CSV and in Vowpal Wabbit's text."""
    draw = np.random.default_rng(0)
    score = draw.logistic(size=CLICKS)
    columns, words = [], []
    for sizes in np.geomspace(10, 1_000_000, CATEGORIES).astype(int):
        values = (sizes * draw.random(CLICKS) ** 3).astype(np.int64)
        score += 0.3 * draw.normal(size=1_000)[values % 1_000]
        words.append([f"{value * 2654435761 % 2**32:08x}" for value in values.tolist()])
    for _ in range(NUMBERS):
        values = np.exp(draw.normal(2, 1.5, CLICKS)).astype(int).astype(str)
        columns.append(np.where(draw.random(CLICKS) < 0.2, "", values).tolist())
    labels = (score > 1).astype(int).tolist()
    names = [f"I{k}" for k in range(NUMBERS)], [f"C{k}" for k in range(CATEGORIES)]
    with (folder / "clicks.csv").open("w") as table, (folder / "clicks.vw").open("w") as vw:
        table.write(",".join(["label", *names[0], *names[1]]) + "\n")
        for label, *fields in zip(labels, *columns, *words, strict=True):
            table.write(f"{label},{','.join(fields)}\n")
            given = zip(names[0], fields, strict=False)
            numbers = " ".join(f"{name}:{value}" for name, value in given if value)
            spaces = " ".join(f"|{chr(97 + k)} {f}" for k, f in enumerate(fields[NUMBERS:]))
            vw.write(f"{2 * label - 1} |I {numbers} {spaces}\n")


def table_lines(folder: Path) -> Iterator[Line]:
    """A table to a model, in memory."""
    write_clicks(folder)
    table = folder / "clicks.csv"
    report.say(f"Data      {table.name}: {table.stat().st_size / 1e6:,.0f} MB, {CLICKS:,} rows")
    names = [f"C{k}" for k in range(CATEGORIES)]

    def ours() -> None:
        rows = hogwild.load(table, label="label", categorical=names)
        hogwild.train(rows, task="logistic", solver="sgd", epochs=1)

    ours()
    spent = best({"ours": partial(timed, ours)}, REPEATS)["ours"]
    found = asked(
        "vowpalwabbit", file=str(folder / "clicks.vw"), options="--loss_function logistic -b 20"
    )
    other = found["seconds"] if found else None
    yield Line("table to a model, one epoch", spent, other, seconds, "Vowpal Wabbit", least=10.0)


def megabytes_per_second(value: float) -> str:
    return f"{value / 1e6:.0f} MB/s"


PARTS = {"text": text_lines, "table": table_lines}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--install", action="store_true", help="the others, and nothing else")
    parsed = parser.parse_args()
    if parsed.install:
        for name in PEERS:
            report.say(f"{name:<13} {environment(name).install() or 'installed'}")
        return
    report.say(report.about_machine())
    with tempfile.TemporaryDirectory(prefix="hogwild-loading-") as folder:
        lines = [line for name in parsed.only for line in PARTS[name](Path(folder))]
    report.say("\n" + measure.table(lines))
    report.say(NOTES)
    report.record("loading_raw", [report.header({}), *map(Line.record, lines)])
    measure.check(lines)


if __name__ == "__main__":
    sys.exit(report.command(main))
