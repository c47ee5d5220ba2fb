"""Tables to hashed columns: the csv module and the twin in plain Python agree; bad input."""

import csv
import io
import math
import warnings

import numpy as np
import pytest
import reference_features as twin

import hogwild
from hogwild import DataError, HogwildWarning, OptionError, cli
from hogwild.features import blocks, hashing

CELLS = ["a", "B c", "", 'say "x"', "x,y", "two\nlines", " spaced ", "été", "NA", "7", ";", "'"]
NUMBERS = ["1", "-2.5", "1e3", "", "NA", "nan", "?", "+4", "123456789012345678901234567890", "0"]
NUMBERS += [
    "007",
    "12345678",
    "16777217",
    "123456789",
]  # short whole numbers are read by themselves


def table(rows: int, seed: int = 0) -> list[list[str]]:
    draw = np.random.default_rng(seed)
    kinds = ["yes", "no"], CELLS, CELLS, NUMBERS, NUMBERS, CELLS, CELLS
    return [[str(draw.choice(kind)) for kind in kinds] for _ in range(rows)]


HEADER = ["label", "site", "device", "price", "age", "title", "junk"]
SAID = {
    "label": "label",
    "categorical": "site,device",
    "numeric": "price,age",
    "text": "title",
    "ignore": "junk",
}


def as_csv(rows: list[list[str]], **how) -> bytes:
    out = io.StringIO()
    csv.writer(out, **how).writerows([HEADER, *rows])
    return out.getvalue().encode()


def missing(cell: str) -> bool:
    return cell.strip().lower() in ("", "na", "nan", "null", "none", "n/a", "?")


def expected(rows: list[list[str]], interact: tuple[str, ...] = ()) -> list[dict[int, float]]:
    """The columns of rows: standardized numbers, hashed categories, words; all scaled to norm 1."""
    place = {name: number for number, name in enumerate(HEADER)}
    spread = {}
    for name in ("price", "age"):
        there = [np.float32(row[place[name]]) for row in rows if not missing(row[place[name]])]
        spread[name] = np.mean(there, dtype=float), np.std(there, dtype=float)
    seeds = {name: twin.murmur(name.encode()) for name in HEADER}
    found = []
    for row in rows:
        values: dict[int, float] = {}
        hashes: dict[str, list[int]] = {}
        for slot, name in enumerate(("price", "age")):
            cell = row[place[name]]
            if missing(cell):
                values[2 + slot] = 1.0
            else:
                values[slot] = (float(np.float32(cell)) - spread[name][0]) / spread[name][1]
        words: dict[int, float] = {}
        title = [w for w in twin.words_of(row[place["title"]].replace("\n", " ")) if w]
        hashes["title"] = [twin.murmur(w.encode(), seeds["title"]) for w in title]
        for h in hashes["title"]:
            for column, sign in twin.places(h):
                words[column + 4] = words.get(column + 4, 0) + sign
        for column, value in words.items():
            if value:
                values[column] = math.copysign(1 + math.log(abs(value)), value)
        for name in ("site", "device"):
            hashes[name] = [twin.murmur(row[place[name]].strip(" ").encode(), seeds[name])]
        pairs = [pair.split(":") for pair in interact]
        more = [twin.of_hash(b, a) for x, y in pairs for a in hashes[x] for b in hashes[y]]
        for h in [*hashes["site"], *hashes["device"], *more]:
            for column, sign in twin.places(h):
                values[column + 4] = values.get(column + 4, 0.0) + sign
        norm = math.sqrt(sum(v * v for v in values.values())) or 1
        found.append({k: v / norm for k, v in sorted(values.items()) if v or k < 4})
    return found


def check(rows: hogwild.Rows, wanted: list[dict[int, float]]) -> None:
    assert len(rows) == len(wanted)
    for number, values in enumerate(wanted):
        begin, end = int(rows.begins[number]), int(rows.ends[number])
        assert rows.indices[begin:end].tolist() == list(values), f"row {number}"
        np.testing.assert_allclose(
            rows.values[begin:end], list(values.values()), rtol=2e-6, atol=1e-6
        )


@pytest.mark.parametrize("small", [False, True])
def test_rows_are_those_of_the_twin(tmp_path, monkeypatch, small):
    if small:
        monkeypatch.setattr(blocks, "BLOCK", 50)
        for name, size in (("FIELDS", 7), ("ENTRIES", 3), ("KEYS", 2), ("NAMES", 2)):
            monkeypatch.setattr(hashing, name, size)
    rows = table(150)
    file = tmp_path / "table.csv"
    file.write_bytes(as_csv(rows))
    pairs = "site:device", "site:title"
    made = hogwild.load(file, **SAID, interact=pairs, keep_names=True)
    check(made, expected(rows, pairs))
    assert made.y.tolist() == [row[0] for row in rows]
    assert made.columns == 4 + 2**20
    # The same rows, whatever the order of columns and the separator, by what was learned
    order = [5, 1, 0, 4, 3, 2]
    other = tmp_path / "other.tsv"
    whole = [[row[k].strip(" ") for k in order] for row in [HEADER, *rows[:20]]]
    out = io.StringIO()
    csv.writer(out, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(whole)
    other.write_text("\n\n" + out.getvalue().rstrip("\n"), newline="")
    again = hogwild.load(other, features=made.features)
    check(again, expected(rows, pairs)[:20])
    names = dict(zip(made.features.names.texts, made.features.names.columns, strict=True))
    assert names["price"] == 0
    assert names["age is missing"] == 3
    for row in rows:
        site, device = row[1].strip(" "), row[2].strip(" ")
        assert {f"site={site}", f"site={site}:device={device}"} <= names.keys()


def test_what_columns_are_is_guessed_and_said(tmp_path, capsys):
    file, model = tmp_path / "t.csv", tmp_path / "m.hog"
    lines = ["y,price,city,review,empty"]
    for k in range(300):
        word = ("good", "bad")[k % 2]
        lines.append(f"{k % 2},{k}.5,{'AB'[k % 7 == 0]},what a very {word} film it was,")
    file.write_text("\n".join(lines))
    assert not cli.main(f"train {file} --label y --keep-names --model {model}".split())
    said = capsys.readouterr()
    assert "numeric: price; categorical: city, empty; text: review" in said.out + said.err
    assert not cli.main(["inspect", str(model), "--top", "2"])
    assert "review=" in capsys.readouterr().out
    (tmp_path / "new.csv").write_text(
        "\n".join(line[2:] for line in ["y," + lines[0][2:], *lines[1:]])
    )
    assert not cli.main(["predict", str(model), str(tmp_path / "new.csv")])
    assert capsys.readouterr().out.split() == ["0", "1"] * 150
    assert not cli.main(["evaluate", str(model), str(file)])


def test_a_model_of_a_table_takes_tables_of_any_format(tmp_path):
    file, other = tmp_path / "t.csv", tmp_path / "u.tsv"
    file.write_bytes(HEAD)
    other.write_text("b\ty\ta\nz\t-1\t3\n")
    rows = hogwild.load(file, label="y", format="csv")
    again = hogwild.load(other, features=rows.features)
    begin = int(rows.begins[1])
    assert again.indices.tolist() == rows.indices[begin:].tolist()
    assert again.values.tolist() == rows.values[begin:].tolist()


def test_a_very_long_field(tmp_path):
    file = tmp_path / "t.csv"
    words = " ".join(f"w{k}" for k in range(50_000))
    file.write_text(f'y,a\n1,"{words}\n{words}"\n0,short\n')
    rows = hogwild.load(file, label="y", text="a", counting="count", norm="none")
    once = twin.row(words, twin.murmur(b"a"), counting="count", norm="none")
    begin, end = int(rows.begins[0]), int(rows.ends[0])
    assert rows.indices[begin:end].tolist() == list(once)
    assert rows.values[begin:end].tolist() == [2 * value for value in once.values()]


def test_a_table_without_a_header(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("1;x;0.5\n-1;y;2\n1;x;7\n")
    rows = hogwild.load(file, label=1, header=False, categorical="2")
    assert rows.y.tolist() == [1, -1, 1]
    assert [name for name, kind in rows.features.table if kind == "numeric"] == ["3"]


def test_a_file_of_ratings_is_rows_only_if_that_is_said(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("user,item,rating\n1,2,3\n2,1,4\n1,1,5\n")
    assert hogwild.train(file, epochs=1).model.kind == "factors"
    with pytest.raises(OptionError, match=r"task: .* holds ratings or a table, by its name"):
        hogwild.train(file, task="regression")
    model = hogwild.train(file, label="rating", categorical="user,item", task="regression").model
    assert model.kind == "linear"
    with pytest.raises(OptionError, match=r"label: which column of .* user, item, rating"):
        hogwild.train(file, format="csv")
    with pytest.raises(OptionError, match="not available for the task mf"):
        hogwild.train(file, label="rating", task="mf")


HEAD = b"y,a,b\n1,2,x\n-1,3,z\n"
BAD = [
    (HEAD + b"1,2\n", {}, "line 4, column 1: the row has 2 fields, and there are 3 columns"),
    (HEAD + b"1,2,3,4\n", {}, "line 4, column 1: the row has 4 fields"),
    (HEAD + b'1,2,"x\n\n', {}, "line 4, column 5: a quote is not closed"),
    (HEAD + b'1,2,"x"y\n', {}, "line 4, column 5: a quote is not closed"),
    (
        HEAD + b"1,abc,x\n",
        {"numeric": "a"},
        "line 4, column 3: 'abc' is not a number, as the column a",
    ),
    (HEAD + b"1,1e39,x\n", {"numeric": "a"}, "line 4, column 3: '1e39' is too large"),
    (HEAD + b",1,x\n", {}, "line 4, column 1: the label is missing"),
    (b"y,a,a\n1,2,3\n", {}, "the column 'a' is there twice"),
    (b"y,a,b\n", {}, "no rows"),
    (b"", {}, "no rows"),
    (HEAD + b"1,2,\xff\n", {"strict_utf8": True, "text": "b"}, "line 4, column 5: is not UTF-8"),
]


@pytest.mark.parametrize(("text", "options", "message"), BAD)
def test_what_is_wrong_is_named(tmp_path, text, options, message):
    file = tmp_path / "t.csv"
    file.write_bytes(text)
    with pytest.raises(DataError, match=message) as error:
        hogwild.load(file, label="y", **options)
    assert str(error.value).startswith(str(file))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "labl"}, "label: .* has no column 'labl'; did you mean label"),
        ({"label": "label", "numeric": "label"}, "numeric: the column 'label' is the label one"),
        ({"label": "label", "interact": "site:price"}, "'price' is not categorical or text"),
        ({"label": "label", "interact": "site:sit"}, "'sit' is not used"),
    ],
)
def test_columns_that_are_not_there(tmp_path, options, message):
    file = tmp_path / "t.csv"
    file.write_bytes(as_csv(table(30)))
    with pytest.raises(OptionError, match=message):
        hogwild.load(file, **options)


def test_another_table_must_have_the_columns(tmp_path):
    file, other = tmp_path / "t.csv", tmp_path / "u.csv"
    file.write_bytes(HEAD)
    other.write_bytes(b"y,b\n1,x\n")
    features = hogwild.load(file, label="y").features
    with pytest.raises(DataError, match="there is no column 'a', which the training data had"):
        hogwild.load(other, features=features)


def fuzzed(case: int, path) -> bool:
    """Whatever is in a table is read or refused by name, and rows are sound; whether it is read."""
    draw = np.random.default_rng(case)
    good = as_csv(table(6))
    data = bytearray(good if case % 3 else HEADER_LINE + draw.bytes(draw.integers(0, 200)))
    for place in draw.integers(len(HEADER_LINE), len(data) + 1, draw.integers(0, 4)):
        data[place : place + 1] = draw.choice([b'"', b",", b"\n", b"\r", b"\0", b"\xff", b"7"])
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HogwildWarning)
        try:
            rows = hogwild.load(path, **SAID, bits=9)
        except (DataError, OptionError) as problem:
            assert str(path) in str(problem)
            return False
    assert rows.indices.max(initial=0) < 4 + 512
    assert np.isfinite(rows.values).all()
    return True


HEADER_LINE = (",".join(HEADER) + "\r\n").encode()


def test_bad_files(tmp_path):
    assert sum(fuzzed(case, tmp_path / "t.csv") for case in range(500)) > 25


@pytest.mark.slow
def test_many_bad_files(tmp_path):
    for case in range(500, 30_500):
        fuzzed(case, tmp_path / "t.csv")
