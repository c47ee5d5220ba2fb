"""Documents to hashed columns: the published hash, the twin in plain Python, labels, bad input."""

import pickle
import re
import warnings

import numpy as np
import pytest
import reference_features as twin
from combinations import each

import hogwild
from hogwild import DataError, Features, HogwildWarning, OptionError, cli
from hogwild.features import blocks, hashing
from hogwild.features.murmur import hashes_of

PIECES = [
    *"aAbZ09_ .,'-\t",
    "Ärger",
    "ÉTÉ",
    "Жук",
    "ΣΊΣΥΦΟΣ",
    "ẤM",
    "日本",
    "हिन्दी",
    "İ",
    "Ⱥ",
    "😀",
]
PIECES += ["“", "\u00a0", "the ", "of ", "x" * 70, "\U00010400"]  # fmt: skip


def documents(count: int, seed: int = 0) -> list[str]:
    draw = np.random.default_rng(seed)
    return ["".join(draw.choice(PIECES, draw.integers(0, 60))) for _ in range(count)]


def as_dicts(rows: hogwild.Rows) -> list[dict[int, float]]:
    bounds = zip(rows.begins.tolist(), rows.ends.tolist(), strict=True)
    return [
        dict(zip(rows.indices[a:b].tolist(), rows.values[a:b].tolist(), strict=True))
        for a, b in bounds
    ]


def assert_rows_are(rows: hogwild.Rows, expected: list[dict[int, float]]) -> None:
    for number, (found, wanted) in enumerate(zip(as_dicts(rows), expected, strict=True)):
        assert list(found) == list(wanted), f"row {number}"  # in ascending order, too
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-12), f"row {number}"


@pytest.mark.parametrize("bits", [5, 20])
def test_rows_of_every_length_are_sorted(bits):
    """Up to 64 keys are sorted in blocks of 16 that are compared, more of them by digits."""
    draw = np.random.default_rng(bits)
    given = [" ".join(map(str, draw.integers(0, 300, size))) for size in range(140)]
    rows = Features(bits=bits).rows(given)
    assert_rows_are(rows, [twin.row(one, bits=bits) for one in given])


@pytest.fixture
def small(monkeypatch):
    """Blocks, rooms and batches of next to nothing."""
    monkeypatch.setattr(blocks, "BLOCK", 40)
    for name, size in (("FIELDS", 4), ("ENTRIES", 3), ("KEYS", 2), ("NAMES", 2)):
        monkeypatch.setattr(hashing, name, size)
    monkeypatch.setattr(hashing, "NAME_BYTES", 8)


def test_the_hash_is_murmurhash3():
    published = {
        (b"", 0): 0,
        (b"", 1): 0x514E28B7,
        (b"test", 0): 0xBA6BD213,
        (b"Hello, world!", 0): 0xC0363E43,
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C): 0x2FA826CD,
    }
    for (key, seed), expected in published.items():
        assert hashes_of([key], seed)[0] == expected == twin.murmur(key, seed)
    # The reference implementation's own check of all lengths and seeds
    keys = [bytes(range(size)) for size in range(256)]
    found = [int(hashes_of([key], 256 - size)[0]) for size, key in enumerate(keys)]
    everything = b"".join(h.to_bytes(4, "little") for h in found)
    assert hashes_of([everything])[0] == 0xB0F57EE3
    assert found == [twin.murmur(key, 256 - size) for size, key in enumerate(keys)]


@each(
    ngrams=[1, 2, 3, 0],
    characters=[0, "3:5", "1:2"],
    lowercase=[True, False],
    counting=["log", "count", "binary"],
    norm=["l2", "none"],
    bits=[20, 4, 15],
    hashes=[1, 3],
    stop_words=[(), ("the", "of", "été")],
)
def test_rows_are_those_of_the_twin(
    ngrams, characters, lowercase, counting, norm, bits, hashes, stop_words
):
    if not ngrams and not characters:
        characters = "2"
    options = {
        "ngrams": ngrams,
        "lowercase": lowercase,
        "counting": counting,
        "norm": norm,
        "bits": bits,
        "hashes": hashes,
        "stop_words": stop_words,
    }
    given = documents(60)
    rows = Features(characters=characters, **options).rows(given)
    least, _, most = str(characters).partition(":")
    runs = int(least), int(most or least)
    assert_rows_are(rows, [twin.row(one, characters=runs, **options) for one in given])
    assert rows.columns == 2**bits


def test_columns_are_those_of_scikit_learn():
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    given = documents(300, seed=1)
    plain = [document.replace("\u0307", "") for document in given]
    plain = [" ".join(twin.words_of(d.replace("हिन्दी", ""), True)) for d in plain]
    words = {"lowercase": False, "token_pattern": r"\S+"}
    counts = HashingVectorizer(ngram_range=(1, 2), norm=None, **words).transform(plain)
    ours = Features(ngrams=2, counting="count", norm="none").rows(plain).to_scipy()
    assert abs(counts - ours).max() == 0
    theirs = TfidfTransformer().fit_transform(counts)
    rows = Features(ngrams=2, counting="count", idf=True).rows(plain)
    counts.eliminate_zeros()
    assert abs(TfidfTransformer().fit_transform(counts) - rows.to_scipy()).max() < 1e-6
    assert theirs.shape == rows.to_scipy().shape
    # Other documents get the idf of these
    again = rows.features.rows(plain[:7])
    np.testing.assert_array_equal(again.to_scipy().toarray(), rows.to_scipy()[:7].toarray())


def test_small_blocks_change_nothing(tmp_path, small):
    file = tmp_path / "text.txt"
    given = documents(80, seed=2)
    lines = [f"{'ab'[k % 2]}\t" + d.replace("\t", " ") for k, d in enumerate(given)]
    file.write_bytes("\r\n".join(lines).encode())  # and no last line end
    rows = hogwild.load(file, format="text", ngrams=2, characters="2:3", keep_names=True)
    assert_rows_are(rows, [twin.row(d, ngrams=2, characters=(2, 3)) for d in given])
    assert rows.y.tolist() == [label for k, label in zip(range(80), "ab" * 40, strict=True)]
    names = rows.features.names
    assert len(names.columns) == len(np.unique(rows.indices))
    for column, sign, text in zip(*names, strict=True):
        hashes = (twin.murmur(text.encode(), seed) for seed in (0, twin.murmur(b"char")))
        where = {place for h in hashes for place in twin.places(h)}
        assert (column, sign) in where or len(text.encode()) >= 250  # longer names are cut


@pytest.mark.parametrize(
    ("text", "y"),
    [
        ("pos\tgood\n\nneg\tbad one\n", ["pos", "neg"]),
        ("1 good\n-1 bad\n", [1, -1]),
        ("0.5 good\n+1e3 bad\n", [0.5, 1000]),
        ("1 a\n0x b\n", ["1", "0x"]),
        ("__label__x good\n__label__ü bad", ["x", "ü"]),
        ("very good\tfine\nbad\tawful\n", None),
        ("\ufeffpos\tgood\r\nneg\tbad\r\n", ["pos", "neg"]),
    ],
)
def test_labels(tmp_path, text, y):
    file = tmp_path / "text.txt"
    file.write_bytes(text.encode())
    style = {} if y else {"label_style": "tab"}
    rows = hogwild.load(file, format="text", **style)
    assert rows.y.tolist() == (y or ["very good", "bad"])
    assert len(rows) == 2


def test_several_files_are_one_data_set(tmp_path):
    given = documents(40, seed=3)
    lines = [f"{k % 3}\t" + d.replace("\t", " ") for k, d in enumerate(given)]
    for name, some in (("a.txt", lines[:25]), ("b.txt", lines[25:])):
        (tmp_path / name).write_text("\n".join(some))
    (tmp_path / "all.text").write_text("\n".join(lines))
    how = {"format": "text", "idf": True, "keep_names": True}
    rows = hogwild.load(tmp_path / "*.txt", **how)
    whole = hogwild.load(tmp_path / "all.text", **how)
    assert as_dicts(rows) == as_dicts(whole)
    assert rows.y.tolist() == whole.y.tolist()
    assert rows.features.names.texts == whole.features.names.texts
    (tmp_path / "b.txt").write_text("1\tx\nno tab")
    with pytest.raises(DataError, match=r"b\.txt: line 2, column 1"):
        hogwild.load(tmp_path / "*.txt", **how)


@pytest.mark.parametrize("change", ["grows", "shrinks"])
def test_a_file_that_changes_is_refused(tmp_path, monkeypatch, change):
    file = tmp_path / "text.txt"
    file.write_text("1\tsome words\n" * 100_000)
    parse = hashing.Hasher.hash

    def changing(*given):
        with file.open("r+b") as other:
            other.truncate(2_000_000 if change == "grows" else 100)
        return parse(*given)

    monkeypatch.setattr(hashing.Hasher, "hash", changing)
    with pytest.raises(DataError, match="has changed while it was read"):
        hogwild.load(file, format="text")


def test_several_labels(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("__label__a __label__b both\n__label__b one\nnone of them\n")
    rows = hogwild.load(file, format="text")
    assert rows.y.names.tolist() == ["a", "b"]
    assert [rows.y[k : k + 1].numbers.tolist() for k in range(3)] == [[0, 1], [1], []]


BAD = [
    (b"a\tx\nno tab\n", {}, "line 2, column 1: the line has no tab"),
    (b"a\tx\nb\ty\xff z\n", {"strict_utf8": True}, "line 2, column 4: is not UTF-8"),
    (b"__label__a x\nb\n", {}, "row 2 has no label"),
    (b"\n\n", {}, "there are no rows"),
    (b"", {}, "there are no rows"),
    (b"a\xff\tx\nb\ty\n", {}, "a label is not UTF-8"),
    (b"\x1f\x8b\x08", {}, "gzip"),
    (b"a\tx\n", {"label_style": "none"}, "no labels to learn from"),
]


@pytest.mark.parametrize(("text", "options", "message"), BAD)
def test_what_is_wrong_is_named(tmp_path, text, options, message):
    file = tmp_path / "text.txt"
    file.write_bytes(text)
    with pytest.raises(DataError, match=message) as error:
        hogwild.load(file, format="text", **options)
    assert str(error.value).startswith(str(file))


def test_the_first_mistake_is_named_whoever_finds_it(tmp_path, small):
    file = tmp_path / "text.txt"
    lines = ["a\tsome words"] * 200
    lines[57] = lines[58] = lines[140] = "nothing"
    file.write_text("\n".join(lines))
    for _ in range(5):
        with pytest.raises(DataError, match="line 58, column 1"):
            hogwild.load(file, format="text")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 31}, "bits: must be from 1 to 30"),
        ({"ngrams": 0}, "ngrams: 0 takes no words"),
        ({"characters": "5:3"}, "characters: must be from"),
        ({"counting": "tf"}, "counting: must be one of count"),
        ({"counting": None}, "counting: must be one of count"),
        ({"interact": "a"}, "interact: must be pairs"),
        ({"ngram": 2}, "ngram"),
        ({"norm": "l1", "hashes": 0}, "hashes: must be from 1"),
    ],
)
def test_options_out_of_range(tmp_path, options, message):
    with pytest.raises((OptionError, TypeError), match=message):
        hogwild.load(tmp_path / "none.txt", **options)


def test_options_of_tables_are_refused(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("1 a\n0 b\n")
    with pytest.raises(OptionError, match=r"interact: not for text.*\nlabel: not for text"):
        hogwild.load(file, format="text", label="x", interact="a:b")


def test_a_copy_of_a_model_takes_raw_text(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("".join(f"{k % 3} {'abc'[k % 3]}\n" for k in range(60)))
    for labels, some in ((3, ["a", "c"]), (2, ["a", "b"])):
        file.write_text("".join(f"{k % labels} {'abc'[k % labels]}\n" for k in range(60)))
        model = hogwild.train(file, format="text").model
        copied = pickle.loads(pickle.dumps(model))
        assert copied.predict(some).tolist() == [0, labels - 1]


def test_a_model_of_documents_in_memory_takes_files(tmp_path):
    file = tmp_path / "new.txt"
    file.write_text("0\ta b\n1\tb c\n")
    model = hogwild.train(Features().rows(["a b", "b c"] * 20, [0, 1] * 20)).model
    assert model.evaluate(model.load(file))["error"] == 0


def test_rows_of_other_features_are_refused():
    given = ["a b", "b c"] * 20
    model = hogwild.train(Features(ngrams=2).rows(given, [0, 1] * 20)).model
    with pytest.raises(DataError, match=r"other settings than the training data \(ngrams\)"):
        model.predict(Features().rows(given))
    plain = hogwild.train(hogwild.Rows(np.eye(4), [0, 1, 0, 1])).model
    with pytest.raises(DataError, match="and those of the training data were not"):
        plain.predict(Features(bits=2).rows(given))


def test_words_side_by_side_are_those_one_by_one():
    """Names need each word by itself, without them 16 are added at a time; lengths up to 90."""
    given = [
        " ".join("Xy" * (n // 2) + str(n) for n in range(size)) for size in (1, 16, 17, 34, 90)
    ]
    expected = [twin.row(document, ngrams=3) for document in given]
    for naming in (False, True):
        assert_rows_are(Features(ngrams=3, keep_names=naming).rows(given), expected)


def test_damaged_text_is_counted_and_separates_words(tmp_path):
    """Also forms that are longer than needed, surrogates, and characters that are cut off."""
    damaged = [
        b"\xff",
        b"\xc0\xaf",
        b"\xe0\x80\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
    ]
    damaged += [b"\xf5\x80\x80\x80", b"\x80", b"\xc3"]
    file = tmp_path / "text.txt"
    file.write_bytes(b"".join(b"1 ab" + some + b"cd\n" for some in damaged))
    with pytest.warns(HogwildWarning, match=f"{sum(map(len, damaged))} bytes are not UTF-8"):
        rows = hogwild.load(file, format="text")
    expected = [some.decode("utf-8", "replace") for some in damaged]
    assert_rows_are(rows, [twin.row(f"ab{some}cd") for some in expected])


def test_a_model_takes_raw_text(tmp_path, capsys):
    train, test, model = (tmp_path / name for name in ("train.txt", "test.txt", "m.hog"))
    run = cli.main
    assert not run(f"generate text {train} --rows 3000".split())
    assert not run(f"generate text {test} --rows 500 --first-row 3000".split())
    options = "--format text --ngrams 2 --idf --keep-names --task logistic --l2 1e-5"
    assert not run(f"train {train} {options} --test {test} --model {model}".split())
    capsys.readouterr()
    assert not run(["predict", str(model), str(test)])
    labelled = capsys.readouterr().out.split()
    documents = [line.split("\t")[1] for line in test.read_text().splitlines()]
    test.with_name("new.txt").write_text("\n".join(documents))
    assert not run(["predict", str(model), str(tmp_path / "new.txt")])
    assert capsys.readouterr().out.split() == labelled
    found = hogwild.load_model(model)
    assert found.predict(documents).tolist() == labelled
    assert not run(["inspect", str(model), "--top", "3"])
    assert len(capsys.readouterr().out.partition("largest weights of pos\n")[2].splitlines()) == 3
    # The weight of a name is what a document of this word alone gets
    rows = hogwild.load(train, format="text", norm="none", keep_names=True, bits=8)
    small = hogwild.train(rows, epochs=2).model
    for name, weight in small.top_features(50)["pos"]:
        score = small.decision_function([name])[0] - small.intercept
        assert score == pytest.approx(weight, rel=1e-5)


def test_columns_collide_as_often_as_random_ones(tmp_path, capsys):
    """Of m columns, N features use m (1 - exp(-N / m))."""
    file = tmp_path / "text.txt"
    words = [twin.murmur(str(k).encode()) for k in range(60_000)]
    lines = [" ".join(f"w{w}" for w in words[k : k + 60]) for k in range(0, 60_000, 60)]
    file.write_text("".join(f"{k % 2} {line}\n" for k, line in enumerate(lines)))
    assert not cli.main(f"inspect {file} --format text --bits 15".split())
    said = capsys.readouterr().out
    features, share, used, expected = (
        float(n.replace(",", ""))
        for n in re.search(
            r"features +([\d,]+) different ones, ([\d.]+) %.*\n +([\d,]+) .*; ([\d,]+)", said
        ).groups()
    )
    assert features == pytest.approx(len(set(words)), rel=1e-3)
    assert used == pytest.approx(2**15 * (1 - np.exp(-60_000 / 2**15)), rel=0.01)
    assert expected == pytest.approx(used, rel=0.01)
    assert share == pytest.approx(100 * (1 - np.exp(-60_000 / 2**15)), rel=0.01)


def test_a_file_to_predict_must_have_all_labels_or_none(tmp_path):
    file = tmp_path / "text.txt"
    file.write_text("pos good\nneg bad\n" * 20)
    model = hogwild.train(file, format="text").model
    file.write_text("pos good\nwhat a film\n")
    with pytest.raises(DataError, match="of the first 2 lines, 1 begin with a label"):
        model.load(file, labels=False)


def fuzzed(case: int, path) -> None:
    """Whatever is in a file is read or refused with a place, and rows are sound."""
    draw = np.random.default_rng(case)
    good = "".join(f"pos\t{d}\n" for d in documents(4)).encode()
    data = bytearray(good if case % 3 else draw.bytes(draw.integers(0, 300)))
    for place in draw.integers(0, max(1, len(data)), draw.integers(0, 6)):
        data[place : place + 1] = draw.bytes(draw.integers(0, 3))
    if case % 5 == 0:
        del data[draw.integers(0, len(data) + 1) :]
    path.write_bytes(data)
    style = (None, "word", "fasttext", "tab")[case % 4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HogwildWarning)
        try:
            rows = hogwild.load(
                path, format="text", label_style=style, ngrams=2, characters="2:4", bits=9
            )
        except DataError as problem:
            assert str(problem).startswith(str(path))
            return
    text = bytes(data).removeprefix(b"\xef\xbb\xbf")
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    assert len(rows) == sum(bool(line.strip(b" \t")) for line in lines)
    assert rows.indices.max(initial=0) < 512


def test_bad_files(tmp_path):
    for case in range(600):
        fuzzed(case, tmp_path / "text.txt")


@pytest.mark.slow
def test_many_bad_files(tmp_path):
    for case in range(600, 30_600):
        fuzzed(case, tmp_path / "text.txt")
