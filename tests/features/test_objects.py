"""JSON lines to hashed columns: the same rows as those of a table; bad input."""

import csv
import json
import warnings
from typing import Any

import numpy as np
import pytest

import hogwild
from hogwild import DataError, HogwildWarning
from hogwild.features import blocks, hashing

TEXTS = [
    "a",
    "B c",
    'say "x"',
    "x,y",
    "two\nlines",
    "tab\there",
    "été",
    "😀 😁",
    "\\",
    "a/b",
    "\x07",
]
KEYS = {"y": None, "site": TEXTS, "price": [1, -2.5, 1e300 * 0, 3e-7, None], "text": TEXTS}
SAID = {"label": "y", "categorical": "site", "numeric": "price", "text": "text"}


def drawn(count: int, seed: int = 0) -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        row: dict[str, Any] = {"y": ("no", "yes")[number % 2]}
        for key in draw.permutation(list(KEYS)[1:]):
            if draw.random() < 0.9:
                some = KEYS[key]
                row[str(key)] = some[draw.integers(0, len(some))]
        rows.append(row)
    return rows


def written(rows: list[dict[str, Any]]) -> str:
    """In every way that JSON may be written."""
    ways = [{}, {"ensure_ascii": False}, {"separators": (",", ":")}]
    lines = [json.dumps(row, **ways[k % 3]) for k, row in enumerate(rows)]
    return "\n".join(
        line.replace("a/b", "a\\/b") if k % 2 else f" {line}\t\r" for k, line in enumerate(lines)
    )


@pytest.mark.parametrize("small", [False, True])
def test_rows_are_those_of_the_table(tmp_path, monkeypatch, small):
    rows = drawn(200)
    table = tmp_path / "t.csv"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(KEYS), restval="", quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows([{k: "" if v is None else v for k, v in row.items()} for row in rows])
    expected = hogwild.load(table, **SAID, interact="site:text", ngrams=2)
    if small:
        monkeypatch.setattr(blocks, "BLOCK", 300)
        for name, size in (("FIELDS", 3), ("ENTRIES", 3), ("KEYS", 2)):
            monkeypatch.setattr(hashing, name, size)
    lines = tmp_path / "t.jsonl"
    lines.write_text(written(rows))
    found = hogwild.load(lines, **SAID, interact="site:text", ngrams=2)
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
    assert found.y.tolist() == expected.y.tolist()


def test_lists_are_several_values(tmp_path):
    file = tmp_path / "t.jsonl"
    rows = [
        {"y": ["a", "b"], "tags": ["x", "y z"]},
        {"y": "a", "tags": []},
        {"y": [], "tags": [1, 2]},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    found = hogwild.load(file, label="y", categorical="tags", keep_names=True)
    assert found.y.names.tolist() == ["a", "b"]
    assert [len(found.y[k : k + 1].numbers) for k in range(3)] == [2, 1, 0]
    assert set(found.features.names.texts) == {"tags=x", "tags=y z", "tags=1", "tags=2"}


@pytest.mark.filterwarnings("ignore:columns by their first")
def test_what_keys_are_is_guessed_from_their_values(tmp_path):
    file = tmp_path / "t.jsonl"
    row = '{"y": %d, "zip": "01234", "price": %d, "on": true, "words": "one two three four"}\n'
    file.write_text("".join(row % (k % 2, k) for k in range(40)))
    rows = hogwild.load(file, label="y")
    kinds = {"y": "label", "zip": "categorical", "price": "numeric", "on": "categorical"}
    assert dict(rows.features.table) == kinds | {"words": "text"}
    # Keys that were not learned from are left out, and those that are missing are missing
    file.write_text('{"other": 1, "price": 3}\n')
    model = hogwild.train(rows, epochs=1).model
    assert len(model.predict(model.load(file, labels=False))) == 1


GOOD = '{"y": 1, "a": 2}\n{"y": 0, "a": 3}\n'
BAD = [
    (GOOD + '{"y": 1, "a": }\n', "line 3, column 15: this is no JSON object"),
    (GOOD + '{"y": 1, "a": 2\n', "line 3, column"),
    (GOOD + '{"y": 1, "a": 2} 3\n', "line 3, column"),
    (GOOD + '{"y": 1, "a": 2,}\n', "line 3, column"),
    (GOOD + '{"y": 1, "a": {"b": 2}}\n', "line 3, column 15: an object or a list within a value"),
    (GOOD + '{"y": 1, "a": 2, "a": 3}\n', "line 3, column 18: the key is there twice"),
    (GOOD + '{"y": 1, "a": "x"}\n', "line 3, column 16: 'x' is not a number, as the column a"),
    (GOOD + "[1]\n", "line 3, column 1: this is no JSON object"),
    (GOOD + '{"a": 2}\n', "row 3 has no label"),
    (GOOD + '{"y": 1, "a": "\\x"}\n', "line 3, column 15: this is no JSON object"),
    (GOOD * 700 + '{"y": 1, "late": 2}\n', "line 1401, column 10: the key is not in the first"),
    ("[1]\n", "there are no objects in it"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_wrong_is_named(tmp_path, text, message):
    file = tmp_path / "t.jsonl"
    file.write_text(text)
    with pytest.raises(DataError) as error:
        hogwild.load(file, label="y", numeric="a")
    assert message in str(error.value)


def fuzzed(case: int, path) -> None:
    """What Python reads as flat objects is read, and rows are sound."""
    draw = np.random.default_rng(case)
    good = written(drawn(5)).encode()
    marks = [b'"', b"\\", b",", b"}", b"{", b"[", b"]", b":", b"\n", b"\xff", b"u"]
    data = bytearray(good if case % 4 else draw.bytes(draw.integers(0, 200)))
    for place in draw.integers(0, len(data) + 1, draw.integers(0, 4)):
        data[place : place + 1] = draw.choice(marks)
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HogwildWarning)
        try:
            rows = hogwild.load(path, **SAID, bits=9)
        except DataError as problem:
            assert str(problem).startswith(str(path))
            return
    # A key that was damaged may be a column of numbers; each has two columns
    assert rows.indices.max(initial=0) < rows.columns <= 512 + 2 * data.count(b":")
    assert np.isfinite(rows.values).all()


def test_bad_files(tmp_path):
    for case in range(400):
        fuzzed(case, tmp_path / "t.jsonl")


@pytest.mark.slow
def test_many_bad_files(tmp_path):
    for case in range(400, 30_400):
        fuzzed(case, tmp_path / "t.jsonl")
