"""Readers of text on bad input: what they give is what a plain twin reads, or they refuse it."""

import gzip
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hogwild import DataError, load, load_ratings
from hogwild.data import ids, sources
from hogwild.data.columns import Unclear, layout_of, rating_of
from hogwild.data.labels import LabelSets
from tests.small_pieces import SIZES, cut_into

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
LARGEST = 2.0**128 - 2.0**103  # what is below rounds to a finite float32
NUMBERS = ["1", "-1", "0.5", ".5", "5.", "+2", "1e-3", "3E+2", "0.1234567", "7e-40", "1e23", "-0"]
NUMBERS += ["0.12345678901234567890123", "9007199254740993", "1e999", "3.4028236e38", "1e-400"]
BYTES = b"\0\t\n\r #+-.:,;\"'0123456789eExn\x0b\x80\xc3\xff|"

Case = random.Random


def numbers(case: Case) -> str:
    if case.random() < 0.3:
        return repr(case.uniform(-1, 1) * 10.0 ** case.randint(-45, 38))
    return case.choice(NUMBERS)


def svmlight(case: Case) -> bytes:
    several, lines = case.random() < 0.2, []
    for _ in range(case.randint(0, 12)):
        labels = [numbers(case) for _ in range(case.randint(0, 3) if several else 1)]
        indices = sorted(case.sample([0, 1, 2, 3, 17, 400, 65536, 2**32 - 2], case.randint(0, 4)))
        start = case.randint(0, case.choice([0, 1]))
        tokens = [",".join(labels), *(f"{n}:{numbers(case)}" for n in indices if n >= start)]
        line = case.choice([" ", "  ", "\t"]).join(tokens)
        lines.append(line + case.choice(["", "", "", " # 1:1", " ", "\r"]))
    return "\n".join(lines).encode() + case.choice([b"", b"\n"])


def ratings(case: Case) -> bytes:
    separator = case.choice([",", ",", "\t", ";", "::", " "])
    known = case.choice([["1", "2", "30"], ["1", "a", "b c", "07"], ["5", "99999999", "-3"]])
    lines = [separator.join(["user", "item", "rating"])] * case.randint(0, 1)
    for _ in range(case.randint(0, 12)):
        fields = [case.choice(known), case.choice(known), numbers(case)]
        if case.random() < 0.2:
            fields[case.randint(0, 1)] = '"a ""quoted"", id"'
        lines.append(separator.join(fields + ["978300760"] * case.randint(0, 1)))
    return case.choice(["\n", "\r\n"]).join(lines).encode() + case.choice([b"", b"\n"])


def mutated(case: Case, text: bytes) -> bytes:
    """Good text with some damage, cut text, or noise."""
    if case.random() < 0.05:
        return case.randbytes(case.randint(0, 200))
    for _ in range(case.choice([0, 0, 1, 1, 2, 5])):
        at = case.randint(0, len(text))
        end = min(len(text), at + case.randint(0, 5))
        put = [b"", bytes([case.choice(BYTES)]), text[at:end] * 2, case.randbytes(1)]
        text = text[:at] + case.choice(put) + text[end:]
    return text[: case.randint(0, len(text))] if case.random() < 0.1 else text


Meaning = list[tuple[list[float], list[tuple[int, float]]]]


def svmlight_means(text: bytes) -> Meaning | None:
    """Labels and features of each row; None where the text is wrong."""
    if text.startswith(tuple(sources.BINARY)):
        return None
    rows: Meaning = []
    several = unlabelled = False
    for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        found = re.findall(rb"[^ \t]+", line.removesuffix(b"\r"))
        comments = [n for n, token in enumerate(found) if token.startswith(b"#")]
        tokens = found[: comments[0]] if comments else found
        if not tokens:
            continue
        labels = [] if b":" in tokens[0] else tokens.pop(0).split(b",")
        several |= len(labels) > 1 or (not labels and line[:1] in b" \t")
        unlabelled |= not labels
        pairs = [token.partition(b":")[::2] for token in tokens]
        values = [*labels, *(value for _, value in pairs)]
        if not all(NUMBER.fullmatch(value) for value in values):
            return None
        if not all(re.fullmatch(rb"[0-9]+", index) for index, _ in pairs):
            return None
        indices = [int(index) for index, _ in pairs]
        if indices != sorted(set(indices)) or max(indices, default=0) >= 2**32:
            return None
        features = [(n, float(value)) for n, (_, value) in zip(indices, pairs, strict=True)]
        if any(abs(value) >= LARGEST for _, value in features):
            return None
        rows.append(([float(label) for label in labels], features))
        if not np.isfinite(rows[-1][0]).all():
            return None
    return rows if rows and (several or not unlabelled) else None


def check_svmlight(path: Path, text: bytes, threads: int) -> None:
    wanted = svmlight_means(text)
    try:
        rows = load(path, threads=threads)
    except DataError as problem:
        assert str(problem).startswith(f"{path}: ")
        assert wanted is None or b"\0" in text, text
        return
    assert wanted is not None, text
    flat = [pair for _, features in wanted for pair in features]
    base = 0 if any(index == 0 for index, _ in flat) else 1
    base = 0 if text.partition(b"\n")[0].rstrip() == b"# index_base 0" else base
    assert rows.index_base == base
    assert rows.indptr.tolist() == np.cumsum([0, *(len(one) for _, one in wanted)]).tolist()
    assert rows.indices.tolist() == [index - base for index, _ in flat]
    values = np.array([value for _, value in flat], np.float64).astype(np.float32)
    assert rows.values.tobytes() == values.tobytes(), text
    y = rows.y
    sets = isinstance(y, LabelSets)
    given = [y.names[some.numbers].tolist() for some in (y[[n]] for n in range(len(y)))] if sets \
        else [[label] for label in y.tolist()]  # fmt: skip
    assert given == [labels for labels, _ in wanted]


def check_ratings(path: Path, text: bytes, threads: int) -> None:
    text = text.removeprefix(b"\xef\xbb\xbf")
    try:
        found = load_ratings(path, threads=threads)
    except DataError as problem:
        assert str(problem).startswith(f"{path}: ")
        return
    lines = [line for line in text.split(b"\n") if line.strip()]
    layout = layout_of(path, lines[:20], None, True, 1)
    try:
        wanted = [rating_of(line, layout) for line in lines[layout.header :]]
    except Unclear as problem:
        pytest.fail(f"{problem}: {text!r}")
    for place, some in ((0, found.user_ids), (1, found.item_ids)):
        codes = (found.users, found.items)[place]
        texts = some.texts.tolist()
        assert [texts[code] for code in codes] == [one[place].decode() for one in wanted], text
    values = np.array([value for *_, value in wanted], np.float64).astype(np.float32)
    assert found.values.tobytes() == values.tobytes()


@contextmanager
def packed(case: Case, path: Path, text: bytes) -> Iterator[Path]:
    """The text as it is, or now and then compressed."""
    if case.random() < 0.1:
        path = path.with_name(path.name + ".gz")
        path.write_bytes(gzip.compress(text, 1))
    else:
        path.write_bytes(text)
    yield path


READERS: dict[str, tuple[Callable[[Case], bytes], Callable[[Path, bytes, int], None]]] = {
    "a.svm": (svmlight, check_svmlight),
    "a.csv": (ratings, check_ratings),
    "a.dat": (ratings, check_ratings),
}


def fuzz(name: str, cases: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in cases:
        fuzzed(random.Random(f"{name} {number}"), tmp_path / name, monkeypatch)


def fuzzed(case: Case, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, check = READERS[path.name]
    monkeypatch.setattr(ids, "DIRECT", 1000)  # so that there are larger numbers, too
    text = mutated(case, make(case))
    size = case.choice([3, 20, 1000])
    # The header of a file of ratings is in its first piece
    cut_into(size, monkeypatch, SIZES if path.name == "a.svm" else SIZES[1:])
    with packed(case, path, text) as file:
        check(file, text, case.choice([1, 1, 2]))


@pytest.mark.parametrize("name", READERS)
def test_fuzz(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fuzz(name, range(700), tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("name", READERS)
def test_fuzz_for_long(
    name: str, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuzz(name, range(700 + 8400 * part, 700 + 8400 * (part + 1)), tmp_path, monkeypatch)


@pytest.mark.parametrize("seed", range(200))
def test_damaged_compression_gives_the_whole_text_or_nothing(seed: int, tmp_path: Path) -> None:
    case, path = random.Random(seed), tmp_path / "a.svm.gz"
    text = svmlight(case) + b"1 1:1\n"
    path.write_bytes(mutated(case, gzip.compress(text)))
    try:
        rows = load(path)
    except DataError:
        return
    assert len(rows) == len(svmlight_means(text) or [])


def test_a_line_of_100_mb(tmp_path: Path) -> None:
    path, count = tmp_path / "a.svm", 8_000_000
    with path.open("wb") as file:
        file.write(b"1 1:1\n-1")
        for begin in range(1, count + 1, 100_000):
            file.write(b"".join(b" %d:0.5" % n for n in range(begin, begin + 100_000)))
        file.write(b"\n1 2:1")
    assert path.stat().st_size > 90_000_000
    rows: Any = load(path)
    assert rows.indptr.tolist() == [0, 1, count + 1, count + 2]
    assert np.array_equal(rows.indices[1:-1], np.arange(count))
    assert (rows.values[1:-1] == 0.5).all()
