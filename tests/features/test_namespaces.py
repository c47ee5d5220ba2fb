"""Vowpal Wabbit's text to hashed columns: the twin in plain Python agrees; bad input."""

import numpy as np
import pytest
import reference_features as twin

import hogwild
from hogwild import DataError, OptionError, cli
from hogwild.features import blocks, hashing

NAMES = ["user", "item", "x", "", "étage"]
WORDS = ["a", "b:2", "c:-0.5", "d:1e-3", "é", "x:y:3", "zero:0", "12", "f:+1.25"]


def line(draw: np.random.Generator, labelled: bool = True) -> str:
    head = draw.choice(["1", "-1 0.5", "1 2 'tag", "-1 1.5 tag", "1 "]) if labelled else ""
    spaces = [
        f"|{draw.choice(NAMES)}{draw.choice(['', ':0.5', ':3'])} "
        + " ".join(draw.choice(WORDS, draw.integers(0, 5)))
        for _ in range(draw.integers(1, 4))
    ]
    return f"{head}{'' if head[-3:] == 'tag' and chr(39) not in head else ' '}{' '.join(spaces)}"


def expected(text: str, pairs: tuple[str, ...] = ()) -> dict[int, float]:
    found: dict[int, float] = {}
    features: dict[str, list[tuple[int, float]]] = {}
    for space in text.split("|")[1:]:
        name, *words = space.replace("\t", " ").split(" ")
        name, _, weight = name.partition(":")
        for word in filter(None, words):
            feature, colon, value = word.rpartition(":")
            feature = feature if colon else word
            number = float(value) if colon else 1.0
            if number:
                h = twin.murmur(feature.encode(), twin.murmur(name.encode()))
                scaled = float(np.float32(number * float(weight or 1)))
                features.setdefault(name, []).append((h, scaled))
    every = [one for some in features.values() for one in some]
    for pair in pairs:
        a, b = pair.split(":")
        for h, v in features.get(a, []):
            every += [(twin.of_hash(g, h), v * w) for g, w in features.get(b, [])]
    for h, value in every:
        for column, sign in twin.places(h):
            found[column] = found.get(column, 0.0) + sign * value
    return {column: value for column, value in sorted(found.items()) if abs(value) > 1e-9}


@pytest.mark.parametrize("small", [False, True])
def test_rows_are_those_of_the_twin(tmp_path, monkeypatch, small):
    if small:
        monkeypatch.setattr(blocks, "BLOCK", 50)
        for name, size in (("FIELDS", 3), ("ENTRIES", 3), ("KEYS", 2), ("NAMES", 2)):
            monkeypatch.setattr(hashing, name, size)
    draw = np.random.default_rng(0)
    lines = [line(draw) for _ in range(200)]
    file = tmp_path / "data.vw"
    file.write_text("\n\n".join(lines))
    pairs = "user:item", "x:étage"
    rows = hogwild.load(file, interact=pairs, keep_names=True)
    assert len(rows) == len(lines)
    for number, text in enumerate(lines):
        begin, end = int(rows.begins[number]), int(rows.ends[number])
        got = dict(zip(rows.indices[begin:end].tolist(), rows.values[begin:end].tolist()))  # noqa: B905
        got = {column: value for column, value in got.items() if abs(value) > 1e-9}
        assert got == pytest.approx(expected(text, pairs), rel=1e-6), text
    assert rows.y.tolist() == [float(text.split()[0]) for text in lines]
    weights = [text.split("|")[0].split() for text in lines]
    weights = [float(head[1]) if len(head) > 1 else 1.0 for head in weights]
    assert rows.sample_weight.tolist() == weights
    names = dict(zip(rows.features.names.texts, rows.features.names.columns, strict=True))
    h = twin.murmur(b"a", twin.murmur(b"user"))
    assert names["user=a"] == next(twin.places(h))[0]


def test_a_model_takes_lines_without_labels(tmp_path, capsys):
    draw = np.random.default_rng(1)
    lines = []
    for _ in range(2000):
        a, b = draw.integers(0, 2, 2)
        lines.append(f"{(-1, 1)[a ^ b]} |user u{a} |item i{b}")
    file, model = tmp_path / "d.vw", tmp_path / "m.hog"
    file.write_text("\n".join(lines))
    options = "--interact user:item --task logistic --keep-names"
    assert not cli.main(f"train {file} {options} --model {model}".split())
    (tmp_path / "new.vw").write_text("|user u0 |item i1\n'x |item i1 |user u1\n")
    capsys.readouterr()
    assert not cli.main(["predict", str(model), str(tmp_path / "new.vw")])
    assert capsys.readouterr().out.split() == ["1", "-1"]
    assert not cli.main(["inspect", str(model), "--top", "4"])
    assert "user=u0:item=i1" in capsys.readouterr().out


BAD = [
    ("1 |a x\n1 a x\n", "line 2, column 1: the line has no |"),
    ("1 |a x\n1 2 3 |a x\n", "line 2, column 5: expected no more than label, importance"),
    ("1 |a x:b\n", "line 1, column 6: the value behind the colon is not a number"),
    ("1 |a:b x\n", "line 1, column 4: the value behind the colon is not a number"),
    ("1 |a x:1e39\n", "line 1, column 6: the value behind the colon"),
    ("1 -2 |a x\n", "line 1, column 3: '-2' is not a number, as a weight must be"),
    ("1 |a x\n |a y\n", "row 2 has no label"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_wrong_is_named(tmp_path, text, message):
    file = tmp_path / "data.vw"
    file.write_text(text)
    with pytest.raises(DataError) as error:
        hogwild.load(file, bits=10)
    assert message in str(error.value)


def test_options_of_other_formats_are_refused(tmp_path):
    file = tmp_path / "data.vw"
    file.write_text("1 |a x\n")
    with pytest.raises(OptionError, match=r"label: not for Vowpal Wabbit.*\nngrams: not for"):
        hogwild.load(file, label="x", ngrams=2)
    assert hogwild.load(file).columns == 2**20  # whose name is enough


def test_bad_files(tmp_path):
    draw = np.random.default_rng(2)
    file = tmp_path / "data.vw"
    for case in range(300):
        data = bytearray("\n".join(line(draw) for _ in range(4)).encode())
        for place in draw.integers(0, len(data), draw.integers(0, 5)):
            data[place : place + 1] = draw.choice([b"|", b":", b" ", b"\n", b"'", b"\xff", b"9"])
        file.write_bytes(data if case % 4 else draw.bytes(200))
        try:
            rows = hogwild.load(file, bits=9)
        except DataError as problem:
            assert str(problem).startswith(str(file))
            continue
        assert rows.indices.max(initial=0) < 512
        assert np.isfinite(rows.values).all()
