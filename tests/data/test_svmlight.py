"""svmlight text: numbers to the last bit, mistakes with their places, and blocks of any size."""

import bz2
import errno
import gzip
import os
import struct
from collections.abc import Iterator
from decimal import Decimal, localcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hogwild import DataError, HogwildError, OptionError, Rows, load, save
from hogwild.data import pieces, svmlight
from hogwild.paths import writing
from tests.small_pieces import by_two_threads, cut_into

relaxed = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=[64, 1 << 20], ids=["small pieces", "large pieces"])
def blocks(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_into(request.param, monkeypatch)
    by_two_threads(monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.svm"


def loaded(file: Path, text: str | bytes, **options: Any) -> Rows:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(file, **options)


def bits(array: Any) -> Any:
    return np.asarray(array).view(f"u{array.dtype.itemsize}")


def assert_same(a: Rows, b: Rows) -> None:
    assert (len(a), a.columns, a.index_base) == (len(b), b.columns, b.index_base)
    for name in ("indptr", "indices"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
    np.testing.assert_array_equal(bits(a.values), bits(b.values))
    assert (a.y is None) == (b.y is None)
    if a.y is not None:
        np.testing.assert_array_equal(a.y, b.y)


def naive(text: str) -> Rows:
    """What a file means, in as few words as possible."""
    labels: list[float] = []
    rows: list[list[tuple[int, float]]] = []
    for line in text.split("\n"):
        tokens = line.rstrip("\r").split()
        comments = [n for n, token in enumerate(tokens) if token.startswith("#")]
        tokens = tokens[: comments[0]] if comments else tokens
        if tokens:
            pairs = [token.split(":") for token in tokens[1:]]
            labels.append(float(tokens[0]))
            rows.append([(int(index), float(value)) for index, value in pairs])
    flat = [pair for row in rows for pair in row]
    base = 0 if any(index == 0 for index, _ in flat) else 1
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([index for index, _ in flat], np.int64) - base
    values = np.array([value for _, value in flat], np.float32)
    columns = int(indices.max(initial=-1)) + 1
    return Rows.from_arrays(indptr, indices, values, columns, np.array(labels), index_base=base)


blanks = st.sampled_from([" ", "  ", "\t", " \t "])
short_numbers = st.sampled_from(["1", "-1", "+1", "0.5", ".5", "5.", "1e-3", "2E+2", "-0.0125"])
odd_numbers = st.sampled_from(["0.1234567890123456789012", "1e23", "7e-40", "9007199254740993"])
numbers = st.one_of(short_numbers, odd_numbers)


@st.composite
def lines(draw: Any) -> str:
    if draw(st.integers(0, 5)) == 0:
        return str(draw(st.sampled_from(["", "  ", "# 1 1:x", "\t#"])))
    indices = draw(st.sets(st.sampled_from([0, 1, 2, 3, 17, 400, 65536, 12345678, 2**32 - 2])))
    text = draw(st.sampled_from(["", " "])) + draw(numbers)
    for index in sorted(indices):
        text += draw(blanks) + f"{index}:{draw(numbers)}"
    return str(text + draw(st.sampled_from(["", " ", "\t", " # a note: 1:1", " #"])))


@st.composite
def texts(draw: Any) -> str:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(["1 3:4", *draw(st.lists(lines(), max_size=8))])
    return str(text + draw(st.sampled_from(["", end])))


@relaxed
@given(text=texts())
def test_a_file_means_what_the_naive_parser_says(text: str, blocks: None, file: Path) -> None:
    assert_same(loaded(file, text), naive(text))


def test_a_line_longer_than_many_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_into(64, monkeypatch)
    by_two_threads(monkeypatch)
    text = "\n".join(
        f"{n} " + " ".join(f"{k}:{k / 8}" for k in range(1, size))
        for n, size in enumerate((900, 5, 3000))
    )
    assert_same(loaded(file, text), naive(text))


@pytest.mark.parametrize("block", [64, 1000, 1 << 20])
def test_arrays_that_are_too_short_grow(
    block: int, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_into(block, monkeypatch)
    by_two_threads(monkeypatch)
    monkeypatch.setattr(pieces, "MAPPED", 400)
    text = "1 # " + "long " * 500 + "\n" + "1 1:1 2:2 3:3\n" * 2000
    rows = loaded(file, text)
    assert_same(rows, naive(text))
    assert all(array.base.base is None for array in (rows.indices, rows.values))
    assert rows.indices.base.nbytes == rows.indices.nbytes  # nothing is left over behind


# Numbers

digits = st.text("0123456789", min_size=1, max_size=25)
plain = st.one_of(
    digits,
    st.builds("{}.{}".format, digits, st.one_of(st.just(""), digits)),
    st.builds(".{}".format, digits),
    st.builds("0.{}".format, st.text("0123456789", min_size=1, max_size=18)),
)
exponents = st.builds(
    "{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 330)
)
doubles = st.integers(0, 2**64 - 1).map(lambda n: struct.unpack("d", struct.pack("Q", n))[0])
halfway = st.integers(2**53, 2**54).map(lambda n: str(2 * n + 1))  # between two doubles
tokens = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "+", "-"]),
    st.one_of(plain, halfway),
    st.one_of(st.just(""), exponents),
)
tokens = st.one_of(tokens, doubles.filter(np.isfinite).map(repr)).filter(
    lambda token: np.isfinite(float(token))
)


@relaxed
@given(some=st.lists(tokens, min_size=1, max_size=30))
def test_numbers_are_those_of_python(some: list[str], file: Path) -> None:
    rows = loaded(file, "\n".join(some))
    np.testing.assert_array_equal(bits(rows.y), bits(np.array([float(token) for token in some])))


@relaxed
@given(some=st.lists(tokens, min_size=1, max_size=30))
def test_values_are_the_doubles_rounded(some: list[str], file: Path) -> None:
    with np.errstate(over="ignore"):
        wanted = np.array([float(token) for token in some]).astype(np.float32)
    fine = np.isfinite(wanted)
    some = [token for token, ok in zip(some, fine, strict=True) if ok]
    rows = loaded(file, "1 1:1\n" + "\n".join(f"1 5:{token}" for token in some))
    np.testing.assert_array_equal(bits(rows.values[1:]), bits(wanted[fine]))


@pytest.mark.parametrize("form", ["{!r}", "{:.17e}", "{:.21e}", "{:.30f}", "{:.9e}"])
@pytest.mark.parametrize("decades", [3, 60])
def test_so_many_numbers_that_rounding_is_met_at_its_edges(
    form: str, decades: int, file: Path
) -> None:
    random = np.random.default_rng(0)
    numbers = random.random(20_000) * 10.0 ** random.integers(-decades, 4, 20_000)
    some = [form.format(float(number)) for number in numbers]
    rows = loaded(file, "\n".join(some))
    np.testing.assert_array_equal(bits(rows.y), bits(np.array([float(token) for token in some])))


def test_the_middle_between_two_doubles_is_rounded_to_even(file: Path) -> None:
    numbers = np.random.default_rng(0).random(300)
    with localcontext(prec=200):
        middles = [(Decimal(x) + Decimal(float(np.nextafter(x, 1)))) / 2 for x in numbers.tolist()]
        some = [str(middle + n) for middle in middles for n in (0, Decimal("1e-99"), 1)]
    rows = loaded(file, "\n".join(some))
    np.testing.assert_array_equal(bits(rows.y), bits(np.array([float(token) for token in some])))


def test_hard_numbers_beside_easy_ones_are_left_to_python(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    add = svmlight._Found._take_line

    def noted(found: svmlight._Found, line: svmlight._Line) -> None:
        left.append(line.piece.line_of(line.begin))
        add(found, line)

    monkeypatch.setattr(svmlight._Found, "_take_line", noted)
    rows = loaded(file, "1 1:0.1234567 2:1e-30 3:0.12345678901234567\n1 1:1e23\n1 2:3\n")
    assert left == [2]
    np.testing.assert_array_equal(
        rows.values, np.array([0.1234567, 1e-30, 0.12345678901234567, 1e23, 3], np.float32)
    )


# Mistakes

LONG = "7:" + "x" * 100
BAD_LINES = [
    # line, column, words of the message
    ("1 3:0.5 x", 9, ["'x'", "has no colon", "7:0.5"]),
    ("1 3 4:1", 3, ["'3'", "has no colon"]),
    ("1 3:", 3, ["'3:'", "has no value"]),
    ("1 3: 0.5", 3, ["'3:'", "has no value", "without a blank"]),
    ("1 :5", 3, ["':5'", "no proper index", "4294967295"]),
    ("1 a:5", 3, ["'a:5'", "no proper index"]),
    ("1 +3:5", 3, ["'+3:5'", "no proper index"]),
    ("1 1.5:5", 3, ["'1.5:5'", "no proper index"]),
    ("1 -3:5", 3, ["'-3:5'", "negative index"]),
    ("1 4294967296:5", 3, ["too large an index", "4294967295"]),
    ("1 " + "9" * 5000 + ":5", 3, ["too large an index", "..."]),
    ("1 2:1 2:1", 7, ["'2:1'", "repeats the index 2", "only once"]),
    ("1 3:1\t 2:1", 8, ["'2:1'", "after the index 3", "ascend"]),
    ("1 123456789:1 23456789:1", 15, ["after the index 123456789"]),
    ("1 3:abc", 5, ["'abc'", "is not a number", "-0.5"]),
    ("1 3:1:2", 5, ["'1:2'", "is not a number"]),
    ("1 3:1,5", 5, ["'1,5'", "is not a number"]),
    ("1 3:1_000", 5, ["'1_000'", "is not a number"]),
    ("1 3:0x10", 5, ["'0x10'", "is not a number"]),
    ("1 3:1e", 5, ["'1e'", "is not a number"]),
    ("1 3:-", 5, ["'-'", "is not a number"]),
    ("1 3:-+1", 5, ["'-+1'", "is not a number"]),
    ("1 3:.", 5, ["'.'", "is not a number"]),
    ("1 3:1.2.3", 5, ["'1.2.3'", "is not a number"]),
    ("1 3:1#note", 5, ["'1#note'", "is not a number", "a blank before a comment"]),
    ("1 3:\u0661", 5, ["is not a number"]),
    ("1 3:1\r4:1", 5, [r"'1\r4:1'", "is not a number"]),
    ("1 3:1\x0b4:1", 5, [r"'1\x0b4:1'", "is not a number"]),
    ("1 3:nan", 5, ["'nan'", "is not finite"]),
    ("1 3:-NaN", 5, ["'-NaN'", "is not finite"]),
    ("1 3:+inf", 5, ["'+inf'", "is not finite"]),
    ("1 3:Infinity", 5, ["'Infinity'", "is not finite"]),
    ("1 3:1.#INF", 5, ["'1.#INF'", "is not finite"]),
    ("1 3:-1.#IND", 5, ["'-1.#IND'", "is not finite"]),
    ("1 3:1e39", 5, ["'1e39'", "is too large", "3.4e38"]),
    ("1 3:3.4028236e38", 5, ["is too large"]),
    ("1 3:-" + "9" * 40, 5, ["is too large"]),
    ("1 3:1e999999999999999999999", 5, ["is too large"]),
    ("nan 3:1", 1, ["'nan'", "is not finite", "a label"]),
    ("1e309 3:1", 1, ["'1e309'", "is too large", "a label"]),
    ("spam 3:1", 1, ["'spam'", "is not a number", "a label"]),
    ("3:1 4:1", 1, ["'3:1'", "label must come first", "labels=False"]),
    ("1 qid:3 4:1", 3, ["'qid:3'", "ranking", "not supported", "without qid"]),
    ("  1   3:x", 9, ["'x'"]),
    ("1 " + LONG, 5, ["'xxx", "...", "is not a number"]),
    ("\u00e4\u00f6 1 3:x", 1, [r"'\xe4\xf6'"]),
]


@pytest.mark.parametrize(("line", "column", "words"), BAD_LINES)
def test_a_mistake_is_named_with_its_place(
    line: str, column: int, words: list[str], blocks: None, file: Path
) -> None:
    text = f"# head\n1 3:0.5 9:1e23\n\n-1 2:1\r\n{line}\n1 1:1\n"
    with pytest.raises(DataError) as caught:
        loaded(file, text)
    message = str(caught.value)
    assert message.startswith(f"{file}: line 5, column {column}: ")
    assert "; expected " in message
    assert message.isascii() or not str(file).isascii()
    assert message.isprintable()
    assert len(message) < len(str(file)) + 250
    for word in words:
        assert word in message


def test_columns_count_characters_not_bytes(file: Path) -> None:
    with pytest.raises(DataError, match="line 1, column 5: "):
        loaded(file, "\u00e4\u00f61 3:1".replace("\u00e4\u00f61", "1 2:\u00e4"))
    with pytest.raises(DataError, match="line 1, column 3: 'abc' has no colon"):
        loaded(file, b"\xef\xbb\xbf1 abc")


def test_a_last_line_without_newline_may_be_wrong(blocks: None, file: Path) -> None:
    with pytest.raises(DataError, match="line 2, column 5: '1e' is not"):
        loaded(file, "1 1:1\n1 3:1e")


# Index bases and labels


@pytest.mark.parametrize(
    ("text", "option", "indices", "base"),
    [
        ("1 1:1 3:1\n1 2:1", "auto", [0, 2, 1], 1),
        ("1 1:1 3:1\n1 0:1 2:1", "auto", [1, 3, 0, 2], 0),
        ("1 0:1 3:1\n1 2:1", "auto", [0, 3, 2], 0),
        ("1\n1 4294967295:1\n1 0:1", "auto", [2**32 - 1, 0], 0),
        ("1 1:1 3:1", 0, [1, 3], 0),
        ("1 1:1 3:1", 1, [0, 2], 1),
        ("# index_base 0\n1 1:1 3:1", "auto", [1, 3], 0),
        ("# index_base 0\r\n1 1:1 3:1\r\n", "auto", [1, 3], 0),
        ("# index_base 0\n1 1:1 3:1", 1, [0, 2], 1),
        ("1\n# index_base 0\n1 1:1 3:1", "auto", [0, 2], 1),
    ],
)
def test_index_bases(
    text: str, option: Any, indices: list[int], base: int, blocks: None, file: Path
) -> None:
    rows = loaded(file, text, index_base=option)
    assert rows.indices.tolist() == indices
    assert (rows.index_base, rows.columns) == (base, max(indices) + 1)


def test_a_zero_late_in_a_large_file_moves_all_columns(blocks: None, file: Path) -> None:
    rows = loaded(file, "1 1:1 2:1\n" * 300 + "1 0:1\n" + "1 7:1\n" * 10)
    assert rows.indices.tolist() == [1, 2] * 300 + [0] + [7] * 10
    assert (rows.index_base, rows.columns) == (0, 8)


def test_zero_is_refused_where_columns_count_from_one(file: Path) -> None:
    with pytest.raises(
        DataError, match=r"line 2, column 4: '0:2' has the index 0; expected indices from 1 on"
    ):
        loaded(file, "1 1:1\n-1 0:2\n", index_base=1)


@pytest.mark.parametrize("wrong", [2, -1, "one", None, True, 1.5])
def test_index_bases_there_are_not(wrong: Any, file: Path) -> None:
    with pytest.raises(OptionError, match='"auto", 0 or 1'):
        loaded(file, "1 1:1\n", index_base=wrong)


def test_rows_without_features_have_no_columns(file: Path) -> None:
    rows = loaded(file, "1\n-1 # nothing\n2.5\n")
    assert (len(rows), rows.columns, rows.nonzeros) == (3, 0, 0)
    assert rows.y is not None
    assert rows.y.tolist() == [1, -1, 2.5]
    assert rows.y.dtype == np.float64


def test_data_without_labels_is_read_to_predict(blocks: None, file: Path) -> None:
    rows = loaded(file, "1:1 3:0.5\n\n# none\n2:1e23\n1:2 9:1 # end\n", labels=False)
    assert rows.y is None
    assert rows.indptr.tolist() == [0, 2, 3, 5]
    assert rows.indices.tolist() == [0, 2, 1, 0, 8]


def test_labels_that_are_there_are_read_to_predict(file: Path) -> None:
    rows = loaded(file, "3.5 1:1\n-7\n", labels=False)
    assert rows.y is not None
    assert rows.y.tolist() == [3.5, -7]


@pytest.mark.parametrize(
    ("text", "place"), [("1 1:1\n2:1", "without a label"), ("2:1\n1 1:1", "is a label")]
)
def test_labels_in_some_lines_only_are_refused(text: str, place: str, file: Path) -> None:
    with pytest.raises(DataError, match=rf"line 2, column 1: .*{place}.*; expected"):
        loaded(file, text, labels=False)


# Files


@pytest.mark.parametrize("text", ["", "\n\n", "# only this\n", " "])
def test_a_file_without_rows_is_refused(text: str, file: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        loaded(file, text)


BINARY = {
    "gzip": gzip.compress(b"1 1:1\n"),
    "bzip2": bz2.compress(b"1 1:1\n"),
    "zip": b"PK\x03\x04rest",
    "UTF-16": "1 1:1\n".encode("utf-16"),
    "binary": b"1 1:1\n\0\0\0",
}


@pytest.mark.parametrize("kind", BINARY)
def test_what_is_not_text_is_named(kind: str, file: Path) -> None:
    with pytest.raises(DataError, match=f"not svmlight text but .*{kind}"):
        loaded(file, BINARY[kind])


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        load(tmp_path / "nothing.svm")
    with pytest.raises(DataError, match="the folder has no files in it"):
        load(tmp_path)
    unreadable = tmp_path / "secret.svm"
    unreadable.write_text("1 1:1")
    unreadable.chmod(0)
    if not os.access(unreadable, os.R_OK):
        with pytest.raises(DataError, match="not permitted"):
            load(unreadable)


TEXT = "".join(f"{n % 2} 1:{n} 3:0.5\n" for n in range(3000))


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_packed_files(suffix: str, pack: Any, blocks: None, tmp_path: Path) -> None:
    file = tmp_path / f"data.svm{suffix}"
    packed = pack(TEXT.encode())
    assert_same(loaded(file, packed), naive(TEXT))
    assert_same(loaded(file, packed + packed), naive(TEXT + TEXT))  # parts one after the other
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 0xFF
    for damaged in (packed[: len(packed) // 2], bytes(broken), TEXT.encode()):
        with pytest.raises(DataError, match="cut off, damaged, or not a"):
            loaded(file, damaged)


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    reading, writing_end = os.pipe()
    os.write(writing_end, b"1 1:1\n-1 2:1\n")
    os.close(writing_end)
    try:
        assert len(load(f"/dev/fd/{reading}")) == 2
    finally:
        os.close(reading)


# Writing

float32s = st.integers(0, 2**32 - 1).map(lambda n: struct.unpack("f", struct.pack("I", n))[0])
handy = st.sampled_from(
    [0.0, -0.0, 1.0, 0.1, 1e-45, 1.17549435e-38, 3.4028235e38, -1e-4, 16777216.0]
)
rows_strategy = st.lists(
    st.dictionaries(
        st.one_of(st.integers(0, 40), st.sampled_from([2**31, 2**32 - 2])),
        st.one_of(float32s.filter(np.isfinite), handy),
        max_size=6,
    ),
    min_size=1,
    max_size=12,
)
labels_strategy = st.one_of(
    st.integers(-3, 3), st.floats(allow_nan=False, allow_infinity=False), st.just(2.0**60)
)


def rows_of(some: list[dict[int, float]], y: Any, base: int) -> Rows:
    flat = [pair for row in some for pair in sorted(row.items())]
    indices = np.array([index for index, _ in flat], np.uint32)
    values = np.array([value for _, value in flat], np.float32)
    columns = int(indices.max(initial=0)) + 1 if len(indices) else 0
    indptr = np.cumsum([0, *map(len, some)])
    return Rows.from_arrays(indptr, indices, values, columns, y, index_base=base)


@relaxed
@given(
    some=rows_strategy,
    data=st.data(),
    base=st.sampled_from([0, 1]),
    chunk=st.sampled_from([1, 5, 99]),
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_what_is_saved_is_loaded_bit_for_bit(
    some: list[dict[int, float]],
    data: Any,
    base: int,
    chunk: int,
    suffix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(svmlight, "VALUES", chunk)
    labels = st.lists(labels_strategy, min_size=len(some), max_size=len(some))
    y = np.array(data.draw(labels), np.float64)
    rows = rows_of(some, y, base if rows_of(some, y, 0).nonzeros else 1)
    file = tmp_path / f"saved.svm{suffix}"
    save(rows, file)
    assert_same(load(file), rows)


def test_data_without_labels_is_saved_and_loaded(tmp_path: Path) -> None:
    rows = rows_of([{0: 1.0}, {2: 0.5, 3: 4.0}], None, 1)
    save(rows, tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_text() == "1:1\n3:0.5 4:4\n"
    assert_same(load(tmp_path / "a.svm", labels=False), rows)


def test_what_is_written_is_short() -> None:
    wanted = ["1", "0.5", "1e-7", "123456.7", "3000000000", "1e10", "-2.5e-30", "0.00012345678"]
    assert written([float(token) for token in wanted]) == wanted


def written(values: Any) -> list[str]:
    values = np.asarray(values, np.float32)
    count = len(values)
    rows = Rows.from_arrays(np.array([0, count]), np.arange(count), values, count, [1])
    line = bytes(svmlight._lines_of(rows, 0, 1, 1)).decode()
    return [token.split(":")[1] for token in line.split()[1:]]


def test_values_have_as_few_digits_as_numpy_needs() -> None:
    random = np.random.default_rng(0)
    values = random.integers(1, 0x7F800000, 20_000, dtype=np.uint32).view(np.float32)

    def length(token: str) -> int:
        return len(token.partition("e")[0].replace(".", "").strip("0"))

    for ours, value in zip(written(values), values, strict=True):
        theirs = np.format_float_scientific(value, unique=True, trim="-")
        assert length(ours) <= length(theirs), (ours, theirs)


@pytest.mark.parametrize(
    ("y", "text"),
    [
        ([True, False], "1\n0\n"),
        ([1.0, -1.0], "1\n-1\n"),
        ([0.1, 1e300], "0.1\n1e+300\n"),
        (np.array([3, 2**62], np.int64), "3\n4611686018427387904\n"),
    ],
)
def test_labels_are_written_as_whole_numbers_where_they_are(y: Any, text: str, file: Path) -> None:
    save(rows_of([{}, {}], np.array(y), 1), file)
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (rows_of([{1: 1.0}, {}], None, 1), "row 2 has neither a label nor values"),
        (rows_of([{1: 1.0}], np.array(["spam"]), 1), "labels of the type"),
        (
            Rows.from_arrays(np.array([0, 1, 3]), np.array([2, 1, 1]), np.ones(3), 3, [1, 2]),
            "row 2 do not ascend.*sum_duplicates",
        ),
    ],
)
def test_what_the_text_cannot_hold_is_refused(rows: Rows, words: str, file: Path) -> None:
    with pytest.raises(DataError, match=words):
        save(rows, file)
    assert not list(file.parent.iterdir())


def test_a_base_is_kept_and_can_be_chosen(file: Path) -> None:
    rows = rows_of([{1: 1.0, 4: 1.0}], [1], 0)
    save(rows, file)
    assert file.read_text() == "# index_base 0\n1 1:1 4:1\n"
    assert_same(load(file), rows)
    save(rows, file, index_base=1)
    assert file.read_text() == "1 2:1 5:1\n"
    with pytest.raises(OptionError, match="0, 1 or None"):
        save(rows, file, index_base=3)


def test_the_same_rows_make_the_same_packed_bytes(tmp_path: Path) -> None:
    rows = rows_of([{1: 1.0, 4: 1.0}], [1], 1)
    for name in ("a.svm.gz", "b.svm.gz"):
        save(rows, tmp_path / name)
    assert (tmp_path / "a.svm.gz").read_bytes() == (tmp_path / "b.svm.gz").read_bytes()


# Whole or not at all

FAILURES: dict[str, tuple[BaseException, type[BaseException], str]] = {
    "full disk": (OSError(errno.ENOSPC, "No space left on device"), HogwildError, "disk is full"),
    "other": (OSError(errno.EIO, "Input/output error"), HogwildError, "Input/output error"),
    "Ctrl-C": (KeyboardInterrupt("stop"), KeyboardInterrupt, "stop"),
    "mistake": (ValueError("spam"), ValueError, "spam"),
}


@pytest.mark.parametrize("suffix", ["svm", "svm.gz", "svm.bz2", "npz"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_leaves_what_was_there(
    failure: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised, expected, words = FAILURES[failure]
    file = tmp_path / f"data.{suffix}"
    file.write_text("before")

    def fail(_: int) -> None:
        raise raised

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(expected, match=words):
        save(rows_of([{1: 1.0}], [1], 1), file)
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_places_that_cannot_be_written_to(tmp_path: Path) -> None:
    rows = rows_of([{1: 1.0}], [1], 1)
    with pytest.raises(HogwildError, match=r"no folder .*missing; make it"):
        save(rows, tmp_path / "missing" / "data.svm")
    with pytest.raises(HogwildError, match="is a folder"):
        save(rows, tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(HogwildError, match="a device or a pipe"):
        save(rows, pipe)
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.fixture
def usual_permissions() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_permissions_and_links_are_kept(tmp_path: Path, usual_permissions: None) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    with writing(real) as file:
        file.write(b"one")
    assert real.stat().st_mode & 0o777 == 0o644
    real.chmod(0o600)
    link.symlink_to(real)
    with writing(link) as file:
        file.write(b"two")
    assert link.is_symlink()
    assert real.read_bytes() == b"two"
    assert real.stat().st_mode & 0o777 == 0o600


SEVERAL = "3,7,12 1:0.5 3:2\n7 2:1\n 1:4\n3,-1.5 2:2 # of two\n12,3\n"


def test_several_labels_are_read_and_written_as_libsvm_writes_them(
    blocks: None, file: Path, tmp_path: Path
) -> None:
    rows = loaded(file, SEVERAL)
    y = rows.y
    found = [y.names[y.numbers[a:b]].tolist() for a, b in pairwise(y.starts)]
    assert found == [[3, 7, 12], [7], [], [3, -1.5], [12, 3]]
    for name in ("again.svm", "again.npz"):
        save(rows, tmp_path / name)
        again = load(tmp_path / name)
        for array in ("starts", "numbers", "names"):
            assert np.array_equal(getattr(again.y, array), getattr(y, array))
        assert np.array_equal(again.values, rows.values)
    assert (tmp_path / "again.svm").read_text() == SEVERAL.replace(" # of two", "")


def test_a_row_may_lack_labels_only_where_some_row_has_several(file: Path) -> None:
    with pytest.raises(DataError, match="line 2, column 1: '2:3' is a feature"):
        loaded(file, "1 1:2\n2:3\n")
    assert loaded(file, "1 1:2\n2:3\n3,4 1:1\n").y.starts.tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize(("label", "column"), [("1,x", 3), ("1,", 3), ("1,,2", 3), (",1", 1)])
def test_a_mistake_among_several_labels_is_named(label: str, column: int, file: Path) -> None:
    with pytest.raises(DataError, match=f"line 1, column {column}: .* is not a number"):
        loaded(file, f"{label} 1:2\n")


def test_a_row_with_neither_labels_nor_values_cannot_be_written(tmp_path: Path) -> None:
    X = np.array([[1, 0], [0, 0]], np.float32)
    with pytest.raises(DataError, match="row 2 has neither a label nor values"):
        save(Rows(X, [[1, 2], []]), tmp_path / "x.svm")
