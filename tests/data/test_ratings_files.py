"""Files of ratings: what they mean by Python's csv module, and what is said of wrong ones."""

import bz2
import csv
import gzip
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import io as scipy_io
from scipy import sparse

from hogwild import DataError, HogwildError, OptionError
from hogwild.data import delimited, given_ids, ids
from hogwild.data.ratings import Ratings
from hogwild.data.ratings_files import FORMATS, load_ratings, save_ratings
from hogwild.kernels.delimited import BLANKS
from tests.small_pieces import by_two_threads, cut_into

relaxed = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=["small", "large"], autouse=True)
def sizes(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of bytes, of lines, of ids and tables that are small enough to have several."""
    if request.param == "small":
        cut_into(64, monkeypatch)
        by_two_threads(monkeypatch)
        monkeypatch.setattr(delimited, "LINES", 3)
        monkeypatch.setattr(delimited, "WRITTEN", 2)
        monkeypatch.setattr(ids, "FEW", 1)
        for module in (ids, given_ids):
            monkeypatch.setattr(module, "BLOCK", 2)
        monkeypatch.setattr(ids, "DIRECT", 4)


Triple = tuple[Any, Any, float]


def loaded(path: Path, text: str | bytes, **options: Any) -> Ratings:
    path.write_bytes(text.encode(errors="surrogateescape") if isinstance(text, str) else text)
    return load_ratings(path, **options)


def triples_of(ratings: Ratings) -> list[Triple]:
    values = np.ones(len(ratings)) if ratings.values is None else ratings.values
    users = ratings.user_ids.take(ratings.users)
    items = ratings.item_ids.take(ratings.items)
    users, items = (list(column) for column in (users, items))
    return [(*entry, float(v)) for *entry, v in zip(users, items, values, strict=True)]


def meant(rows: list[list[str]], places: tuple[int, ...] = (0, 1, 2)) -> list[Triple]:
    """What fields mean: the twin of the whole of reading, in as few words as possible."""
    users, items = ([row[place] for row in rows] for place in places[:2])
    values = [float(np.float32(float(row[places[2]]))) if places[2:] else 1.0 for row in rows]
    return list(zip(numbers_if_all(users), numbers_if_all(items), values, strict=True))


def numbers_if_all(column: list[str]) -> list[Any]:
    def is_number(text: str) -> bool:
        return text.removeprefix("-").isdecimal() and text.isascii() and str(int(text)) == text

    return [int(text) for text in column] if all(map(is_number, column)) else column


def by_csv(text: str, separator: str = ",") -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]


printable = st.characters(exclude_categories=["Cs", "Cc"])
some_text = st.text("ab,;\t'\":|é\U0001f419 07-", min_size=1, max_size=12) | st.text(
    printable, min_size=1, max_size=30
)
words = st.text("abé\U0001f41907-_.", min_size=1, max_size=12)
whole = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 99)
values = st.floats(-1e38, 1e38).map(np.float32).map(float) | st.sampled_from([0.5, 3, 4.5])
value_texts = values.map(str) | values.map(lambda v: f"{v:.3e}") | st.sampled_from(
    ["99999999999999999999", "9.9999999999999999999", "4", "3.5", ".5", "5.", "+2", "-0.0", "1e-3",
     "12345678901234567890.5", "0.1000000000000000055511151231257827021181583404541015625"]
)  # fmt: skip


@relaxed
@given(
    st.lists(st.tuples(some_text, some_text, value_texts), min_size=1),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_quoted_text_is_what_pythons_csv_reads(
    tmp_path: Path, rows: list[tuple[str, str, str]], separator: str, newline: str, header: bool
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=newline, quoting=csv.QUOTE_ALL)
    writer.writerows([["User-ID", "ISBN", "Book-Rating"]] * header)
    writer.writerows(rows)
    ratings = loaded(tmp_path / "a.csv", out.getvalue())
    assert triples_of(ratings) == meant(by_csv(out.getvalue(), separator)[header:])


@relaxed
@given(
    st.lists(st.tuples(words, words | whole.map(str), value_texts), min_size=1),
    st.sampled_from([",", ";", "\t", "::", " "]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from(["", "\n", "\n\n  \n"]),
    st.sampled_from([(0, 1, 2), (2, 0, 3), (4, 3, 0)]),
)
def test_plain_fields_are_found_by_separator_and_place(
    tmp_path: Path,
    rows: list[tuple[str, str, str]],
    separator: str,
    newline: str,
    header: bool,
    end: str,
    places: tuple[int, int, int],
) -> None:
    rows = [("1", "1", "1"), *rows]  # a number, so that it can't be taken for a header
    lines = [["9"] * (5 + k % 2) for k in range(len(rows))]
    for line, row in zip(lines, rows, strict=True):
        for place, field in zip(places, row, strict=True):
            line[place] = field
    names = ["other", "title", "genre", "time", "tag"]
    for place, name in zip(places, ["User Id".replace(" ", "_"), "movieId", "RATING"], strict=True):
        names[place] = name
    text = newline.join(separator.join(line) for line in [names] * header + lines) + end
    columns = None if header else [place + 1 for place in places]
    ratings = loaded(tmp_path / "a.dat", "\ufeff" + text, columns=columns)
    assert triples_of(ratings) == meant(lines, places)
    pairs = loaded(tmp_path / "a.dat", text, columns=columns and columns[:2], values=False)
    assert pairs.values is None
    assert triples_of(pairs) == [(user, item, 1.0) for user, item, _ in meant(lines, places)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1,1193,3.5,978300760\n2,7,4", [(1, 1193, 3.5), (2, 7, 4)]),
        ("1::1193::5::978300760\n2::0007::4::1", [(1, "1193", 5), (2, "0007", 4)]),
        ("1 1193 5\n2\t7  4 ", [(1, 1193, 5), (2, 7, 4)]),
        ("  1   1193 5\r\n2 7 4 \r\n", [(1, 1193, 5), (2, 7, 4)]),
        ("196\t242\t3\t881250949\n", [(196, 242, 3)]),
        ("u1, i1 , 3\nu2,i2,4 \n", [("u1", "i1", 3), ("u2", "i2", 4)]),
        ('"276725";"034545104X";"0"\n"2";"9";"5"', [(276725, "034545104X", 0), (2, "9", 5)]),
        ('"a, b","say ""x""",1\nc,d"e,2', [("a, b", 'say "x"', 1), ("c", 'd"e', 2)]),
        ('" a","b " ,1\r\n', [(" a", "b ", 1)]),
        ('1,2,3,"a ""title"", with\'s"\n4,5,6,"x"', [(1, 2, 3), (4, 5, 6)]),
        ("\n\n1,2,3\n\n4,5,6\n\n\n", [(1, 2, 3), (4, 5, 6)]),
        ("userId,movieId,rating,timestamp\n1,2,3,4\n", [(1, 2, 3)]),
        ("timestamp;Rating;Movie ID;user\n9;4;3;2\n", [(2, 3, 4)]),
        ('"","user","item","rating"\n"1","a","b",3\n', [("a", "b", 3)]),
        ("1,a:b:c,2\n1,x;y,3", [(1, "a:b:c", 2), (1, "x;y", 3)]),
        ("1::a:b:c::2\n1::,;::3\n1:::x::4", [(1, "a:b:c", 2), (1, ",;", 3), (1, ":x", 4)]),
        ("a;b;c,7,3.5\nd;e;f,8,4", [("a;b;c", 7, 3.5), ("d;e;f", 8, 4)]),
        ("a b,c d,1\ne f,g h,2", [("a b", "c d", 1), ("e f", "g h", 2)]),
        ("1,2,3\n1,2,4", [(1, 2, 3), (1, 2, 4)]),
        ("1,2,3e0\n-5,2,-4.25", [(1, 2, 3), (-5, 2, -4.25)]),
        ("9223372036854775807,1,1\n9223372036854775808,1,1",
         [("9223372036854775807", 1, 1), ("9223372036854775808", 1, 1)]),
        ("1,2,3.00000017881393432617187499\n", [(1, 2, 3.0000002)]),
    ],
)  # fmt: skip
def test_what_texts_mean(tmp_path: Path, text: str, wanted: list[Triple]) -> None:
    assert triples_of(loaded(tmp_path / "a.txt", text)) == [
        (user, item, float(np.float32(value))) for user, item, value in wanted
    ]


def blank_lines_only(
    text: Any, begin: int, end: int, separator: int, way: int, *_: Any
) -> tuple[int, int, int]:
    """In place of the kernel: it leaves all lines with anything in them to the slower way."""
    lines = 0
    while begin < end:
        line = text[begin:end].tobytes().split(b"\n")[0]
        if line.removesuffix(b"\r").strip(b" \t" if way == BLANKS else b" "):
            break
        begin += len(line) + 1
        lines += 1
    return begin, 0, lines


@settings(relaxed, max_examples=200)
@given(
    st.lists(st.text('12ab.,,,"" \t\r-e:;', min_size=1, max_size=14)),
    st.sampled_from([",", ";", "\t", "::", " "]),
    st.booleans(),
)
def test_the_kernel_agrees_with_the_slower_way(
    tmp_path: Path, odd: list[str], separator: str, valued: bool
) -> None:
    sound = [separator.join(["a", "b", "3", "x"])] * delimited.SAMPLE
    text = "\n".join([*sound, *odd, *(line.replace(",", separator) for line in odd)])

    def outcome() -> Any:
        try:
            ratings = loaded(tmp_path / "a", text, columns=(1, 2, 3)[: 2 + valued], values=valued)
        except DataError as error:
            return str(error)
        return triples_of(ratings)

    by_kernel = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "split_lines", blank_lines_only)
        patch.setattr(delimited, "get_ready", lambda *_: None)
        assert outcome() == by_kernel


def test_ids_are_what_they_were_given_as(tmp_path: Path) -> None:
    ratings = loaded(tmp_path / "a", "10,b,1\n9,a,1\n10,a,1\n")
    assert ratings.user_ids.tolist() == [9, 10]
    assert ratings.item_ids.tolist() == ["b", "a"]
    assert (ratings.users.tolist(), ratings.items.tolist()) == ([1, 0, 1], [0, 1, 1])


@pytest.mark.parametrize(
    "columns",
    ["b,c,a", ("b", "c", "a"), ["B", "C", "A"], "2,3,1", (2, 3, 1), ["2", "3", "1"], " b , c,a"],
)
def test_columns_by_names_or_by_places(tmp_path: Path, columns: Any) -> None:
    ratings = loaded(tmp_path / "a.csv", "a,b,c\n1,2,3\n4,5,6\n", columns=columns)
    assert triples_of(ratings) == [(2, 3, 1), (5, 6, 4)]
    pairs = load_ratings(tmp_path / "a.csv", columns=columns, values=False)
    assert triples_of(pairs) == [(2, 3, 1), (5, 6, 1)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1,2\n3,4", [(1, 2), (3, 4)]),
        ("1,2,rubbish\n3,4", [(1, 2), (3, 4)]),
        ("user,item\n3,4", [(3, 4)]),
        ("a,b\nc,d", [("a", "b"), ("c", "d")]),
        ("a,1\nb,2", [("a", 1), ("b", 2)]),
        ("a,x\nb,1", [("a", "x"), ("b", "1")]),
        ("1 2\n3 4\n", [(1, 2), (3, 4)]),
    ],
)
def test_pairs_need_no_values(tmp_path: Path, text: str, wanted: list[tuple[Any, Any]]) -> None:
    ratings = loaded(tmp_path / "a.csv.txt", text, values=False)
    assert ratings.values is None
    assert [triple[:2] for triple in triples_of(ratings)] == wanted


GOOD = "1,2,3\n" * 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no ratings in it"),
        ("\n \n", "has no ratings in it"),
        (100 * "\n" + "user,item,rating\n1,2,x\n", "line 102: 'x'"),
        ("\n\nuser,item,rating\n\n1,2,3\n1,2,x\n", "line 6: 'x'"),
        ("user,item,rating\n" + 30 * GOOD + "1,2,x\n", "line 152: 'x'"),
        ("user,item,rating\n", "has no ratings in it"),
        ("1,2\n3,4\n", "line 1: 2 fields .separated by commas.; expected user, item and value "
         "in at least 3 .for pairs without values: values=False"),
        ("1|2\n2|3\n", "line 1: '1.2' is one field; expected user, item and value, "
         'separated by one of: "::", tabs, semicolons, commas, blanks'),
        (b"\x7fELF\2\1\0\n", r"is not text but binary .line 1 has a zero byte"),
        (GOOD + "1,2\n" + GOOD, "line 6: 2 fields"),
        (GOOD + "\n\n1;2;3\n", "line 8: '1;2;3' is one field"),
        (GOOD + "1,2,x\n", r"line 6: 'x' \(field 3\) is not a number; expected a value such as"),
        ("1,2,x\n" + GOOD, r"line 1: 'x' \(field 3\) is not a number"),
        (GOOD + "1,2,\n", r"line 6: '' \(field 3\) is not a number"),
        (GOOD + "1,2,nan\n", r"line 6: 'nan' \(field 3\) is not finite"),
        ("1,2,NaN\n" + GOOD, r"line 1: 'NaN' \(field 3\) is not finite"),
        (GOOD + "1,2,-Infinity\n", "line 6: '-Infinity' .* is not finite"),
        (GOOD + "1,2,1e39\n", "line 6: '1e39' .* is too large"),
        (GOOD + "1,2,1e999\n", "line 6: '1e999' .* is too large"),
        (GOOD + "1,2,3.4.5\n", "line 6: '3.4.5' .* is not a number"),
        (GOOD + "1,2,3 4\n", "line 6: '3 4' .* is not a number"),
        (GOOD + "1,2,0x10\n", "line 6: '0x10' .* is not a number"),
        ("1;2;3,5\n1;2;3\n", "line 1: '3,5' .* is not a number; .* a point and not a comma"),
        (GOOD + ",2,3\n", r"line 6: the user \(field 1\) is empty"),
        (GOOD + "1, ,3\n", r"line 6: the item \(field 2\) is empty"),
        (GOOD + '1,"",3\n', r"line 6: the item \(field 2\) is empty"),
        (GOOD + '1,"2,3\n4",5,6\n', "line 6: a quote is not closed; text over several lines"),
        (GOOD + '1,"2"2,3\n', r"line 6: '\"2\"' is followed by something else than commas"),
        (GOOD + '1,2,3,"a\nb"\n', "line 6: a quote is not closed"),
        (GOOD + "1,\0,3\n", r"is not text but binary \(line 6 has a zero byte\)"),
        (GOOD.encode() + b"1,\xff,3\n", "line 6: an id is not UTF-8"),
        (GOOD.encode() + b"1,2,3\n\xc3,\xa9,3\n", "line 7: an id is not UTF-8"),
        (b"\x1f\x8b123", "is not delimited text but gzip"),
        (b"PK\x03\x04123", r"\.npz"),
        (b"\x93NUMPY123", "hogwild.Ratings"),
        ("reader name,paper,mark\n" + GOOD, "line 1: neither a rating nor a header with names that "
         "are known: 'reader name', 'paper', 'mark'; say which are wanted: columns=\"user,item,"),
        ("user,movie,book,rating\n1,2,3,4\n", "the columns 'movie' and 'book' may both hold the "
         "item; say which"),
        ("user,item,time\n1,2,3\n", "none of the columns 'user', 'item', 'time' is known to hold "
         "values; say which .* values=False"),
        (os.urandom(3000).replace(b",", b""), "binary|line|gzip"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(DataError, match=f"a.txt: .*({message})"):
        loaded(path, text)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("a,b,d", "line 1: the column 'd' is not among 'a', 'b', 'c', 'c'"),
        ("a,b,c", "line 1: the column 'c' is more than once among"),
        (
            "1,2,5",
            "line 1: 4 fields .separated by commas.; expected user, item and value in at .* 5",
        ),
    ],
)
def test_columns_that_are_not_there(tmp_path: Path, columns: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        loaded(tmp_path / "a.csv", "a,b,c,c\n1,2,3,4\n", columns=columns)


@pytest.mark.parametrize(
    "columns", ["a", "a,b", "a,b,c,d", "a,a,b", (1, 2), (1, 2, 0), (1, "b", 3), 5, (1, 2, True),
                "1,2,-3", ("a", "", "b"), (1.0, 2.0, 3.0), "0,1,2", {1, 2, 3}],
)  # fmt: skip
def test_columns_that_make_no_sense(tmp_path: Path, columns: Any) -> None:
    with pytest.raises(OptionError, match=r"columns is .* it (must|names)"):
        loaded(tmp_path / "a.csv", GOOD, columns=columns)


def test_pairs_with_an_unknown_header(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1: neither a rating nor a header"):
        loaded(tmp_path / "a.csv", "reader,paper\n1,2\n3,4", values=False)
    pairs = load_ratings(tmp_path / "a.csv", columns="1,2", values=False)
    assert triples_of(pairs) == [(1, 2, 1), (3, 4, 1)]


def test_duplicates_are_merged_when_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert triples_of(loaded(path, "1,2,3\n1,2,4\n", duplicates="mean")) == [(1, 2, 3.5)]
    assert triples_of(load_ratings(path, duplicates="last")) == [(1, 2, 4)]
    assert len(load_ratings(path)) == 2
    with pytest.raises(DataError, match=r"a\.csv: user 1 and item 2 occur together twice"):
        load_ratings(path, duplicates="error")
    with pytest.raises(OptionError, match="keep, mean, last, error"):
        load_ratings(path, duplicates="sum")


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_packed_text(tmp_path: Path, suffix: str, pack: Any) -> None:
    data = "".join(f"u{k},{k},{k / 2}\n" for k in range(1, 3000)).encode()
    path = tmp_path / f"a.csv{suffix}"
    ratings = loaded(path, pack(data))
    assert triples_of(ratings) == meant(by_csv(data.decode()))
    with pytest.raises(DataError, match="cut off, damaged"):
        loaded(path, pack(data)[:-20])
    with pytest.raises(DataError, match="no such file"):
        load_ratings(tmp_path / "b.csv")


stored_ids = st.lists(some_text | whole.map(str), unique=True, min_size=1, max_size=8)


@st.composite
def any_ratings(draw: Any) -> Ratings:
    count = draw(st.integers(1, 12))
    columns = []
    for _ in range(2):
        known = draw(stored_ids | st.lists(whole, unique=True, min_size=1, max_size=8))
        columns.append(draw(st.lists(st.sampled_from(known), min_size=count, max_size=count)))
    given_values = draw(st.none() | st.lists(values, min_size=count, max_size=count))
    return Ratings(*columns, given_values)


def assert_same(a: Ratings, b: Ratings) -> None:
    assert (a.user_ids, a.item_ids) == (b.user_ids, b.item_ids)
    np.testing.assert_array_equal(a.users, b.users)
    np.testing.assert_array_equal(a.items, b.items)
    assert (a.values is None) == (b.values is None)
    if a.values is not None:
        np.testing.assert_array_equal(a.values.view(np.uint32), b.values.view(np.uint32))


@relaxed
@given(any_ratings(), st.sampled_from([".csv", ".tsv", ".csv.gz", ".tsv.bz2", ".npz"]))
def test_what_is_saved_is_loaded(tmp_path: Path, ratings: Ratings, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    save_ratings(ratings, path)
    again = load_ratings(path, values=ratings.values is not None)
    if suffix != ".npz":  # text that looks like numbers has become numbers
        columns = [numbers_if_all([*map(str, i.take(c))]) for i, c in (
            (ratings.user_ids, ratings.users), (ratings.item_ids, ratings.items)
        )]  # fmt: skip
        ratings = Ratings(*columns, ratings.values)
    assert_same(again, ratings)


def test_a_part_keeps_its_ids_in_npz(tmp_path: Path) -> None:
    ratings = Ratings(range(100), [f"i{k}" for k in range(100)], np.arange(100))
    part = ratings.split(0.5, 0)[0]
    save_ratings(part, tmp_path / "a.npz")
    assert_same(load_ratings(tmp_path / "a.npz"), part)


@pytest.mark.parametrize("bad", ["a\nb", "a\0b"])
def test_what_text_cannot_hold(tmp_path: Path, bad: str) -> None:
    ratings = Ratings([bad], [1], [1])
    path = tmp_path / "a.csv"
    path.write_text("before")
    with pytest.raises(DataError, match=r"an id holds .* save it as \.npz"):
        save_ratings(ratings, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    save_ratings(ratings, tmp_path / "a.npz")
    assert load_ratings(tmp_path / "a.npz").user_ids[0] == bad


@pytest.mark.parametrize("name", ["a.dat", "a", "a.gz", "a.npz.gz"])
def test_a_suffix_must_be_known_to_save(tmp_path: Path, name: str) -> None:
    with pytest.raises(HogwildError, match=r"\.csv, \.tsv, \.npz, \.mtx|leave out \.gz"):
        save_ratings(Ratings([1], [1], [1]), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_reads_what_it_writes(tmp_path: Path, suffix: str) -> None:
    ratings = Ratings([2, 1, 0, 0], [0, 1, 0, 1], [1, 2.5, 0, -1e-5])
    save_ratings(ratings, tmp_path / f"a{suffix.upper()}")
    assert_same(load_ratings(tmp_path / f"a{suffix.upper()}"), ratings)
    pairs = load_ratings(tmp_path / f"a{suffix.upper()}", values=False)
    assert pairs.values is None
    assert pairs.users.tolist() == [2, 1, 0, 0]


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_npz_of_scipy(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a.npz"
    matrix = sparse.random(30, 20, 0.2, "coo", rng=np.random.default_rng(0))
    sparse.save_npz(path, matrix.asformat(form))
    ratings = load_ratings(path)
    assert ratings.shape == (30, 20)
    assert (ratings.to_scipy() != matrix.astype(np.float32).tocsr()).nnz == 0
    assert load_ratings(path, values=False).values is None
    twice = sparse.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), (2, 2))
    sparse.save_npz(path, twice)
    assert triples_of(load_ratings(path)) == [(0, 1, 1), (0, 1, 2)]


def test_npz_of_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for names in (("users", "items", "values"), ("user", "item", "rating")):
        arrays = [np.array(["b", "a"]), np.array([7, 5]), np.array([1, 2.5])]
        np.savez(path, **dict(zip(names, arrays, strict=True)))
        assert triples_of(load_ratings(path)) == [("b", 7, 1), ("a", 5, 2.5)]
    np.savez(path, users=[1, 2], items=[3, 4])
    assert triples_of(load_ratings(path, values=False)) == [(1, 3, 1), (2, 4, 1)]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": [1]}, "in it, only a; expected users, items and values, or a matrix"),
        ({"users": [1]}, "in it, only users; expected users"),
        ({"users": [1], "items": [2]}, "has no array of values, only users, items"),
        ({"users": [1], "items": [2], "values": [1], "rating": [1]}, "has values and rating; keep"),
        ({"users": [1], "items": [2, 3], "values": [1]}, "1 users, 2 items"),
        ({"users": [1.5], "items": [2], "values": [1]}, "the users are of the type float64"),
        ({"users": [1], "items": [2], "values": ["x"]}, "'values' is an array of <U1"),
        ({"users": [[1]], "items": [2], "values": [1]}, "'users' is an array of int64 in 2"),
        ({"users": np.array([0], np.uint32), "items": np.array([0], np.uint32), "values": [1],
          "user_ids.count": [0], "item_ids.count": [1]}, "user 0 in the rating 1"),
        ({"users": np.array([0], np.uint32), "items": np.array([0], np.uint32), "values": [1],
          "user_ids.count": [1]}, "item_ids: damaged"),
        ({"row": [0, 5], "col": [0, 0], "shape": [2, 2], "format": "coo"}, "axis 0 index 5 "),
        ({"row": [0, -1], "col": [0, 0], "shape": [2, 2], "format": "coo"}, "negative axis 0"),
        ({"indices": [0, 1], "indptr": [0, 3, 2], "shape": [2, 2]}, "the csr matrix is damaged"),
    ],
)  # fmt: skip
def test_what_npz_must_hold(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(DataError, match=rf"a\.npz: .*{message}|a\.npz: {message}"):
        load_ratings(tmp_path / "a.npz")


def test_matrix_market_is_what_scipy_reads_and_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    matrix = sparse.random(30, 20, 0.2, "coo", rng=np.random.default_rng(0)).astype(np.float32)
    scipy_io.mmwrite(path, matrix, comment="from scipy\nand more")
    ratings = load_ratings(path)
    assert ratings.shape == (30, 20)
    assert (ratings.to_scipy() != matrix.tocsr()).nnz == 0
    save_ratings(ratings, path)
    again = scipy_io.mmread(path)
    np.testing.assert_array_equal(again.toarray().astype(np.float32), matrix.toarray())
    save_ratings(load_ratings(path, values=False), tmp_path / "b.mtx.gz")
    assert "pattern" in gzip.decompress((tmp_path / "b.mtx.gz").read_bytes())[:50].decode()
    assert np.all(load_ratings(tmp_path / "b.mtx.gz").values == 1)


HEAD = "%%MatrixMarket matrix coordinate real general\n% words\n\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a Matrix Market file"),
        (HEAD, "ends before the size"),
        ("1 2 3\n", "is not a Matrix Market file; expected a first line like %%MatrixMarket"),
        (HEAD.replace("coordinate", "array") + "2 2\n", "line 1: a matrix that is array, real"),
        (HEAD.replace("general", "symmetric"), "coordinate, real, symmetric; expected"),
        (HEAD.replace("real", "complex"), "coordinate, complex, general"),
        (HEAD + "2 2\n", "line 4: '2 2' is not a size"),
        (HEAD + "2 x 1\n", "line 4: '2 x 1' is not a size"),
        (HEAD + "2 3 2\n1 1 5\n", "has 1 entries, but 2 are announced"),
        (HEAD + "2 3 1\n1 1 5\n2 2 5\n", "has 2 entries, but 1 are announced"),
        (HEAD + "2 3 1\n\n3 1 5\n", "line 6: the row '3' is not a whole number from 1 to 2"),
        (HEAD + "2 3 2\n1 1 5\n2 0 5\n", "line 6: the column '0' .* from 1 to 3"),
        (HEAD + "2 3 1\n1 1\n", "line 5: 2 fields"),
        (HEAD + "2 3 1\n1 1 x\n", "line 5: 'x' .* is not a number"),
        (HEAD + "2 3 0\n", "nothing"),
        (HEAD + "2 3 1\n1\udcff 1 5\n", "line 5: the row '1\ufffd' is not a whole number"),
        (HEAD + "2 3 1\n1 1\udcff 5\n", "line 5: the column '1\ufffd' is not a whole number"),
        (HEAD + "2 \udcff 1\n", "line 4: '2 \ufffd 1' is not a size"),
        (HEAD + "2 99999999999999999999 1\n", "line 4: the size 99999999999999999999 is too large"),
        (HEAD + "2 3 1" + 5000 * "0" + "\n", "line 4: the size 10000.* is too large"),
        (HEAD + "2 4294967296 1\n", "line 4: 4,294,967,296 columns; at most"),
    ],
)
def test_wrong_matrix_market(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.mtx"
    if message == "nothing":
        assert len(loaded(path, text)) == 0
        return
    with pytest.raises(DataError, match=rf"a\.mtx: .*({message})|a\.mtx: ({message})"):
        loaded(path, text)


def test_a_matrix_holds_no_ids(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"items are not 0, 1, 2 \.\.\.; save it as \.csv"):
        save_ratings(Ratings([0, 1], ["a", "b"], [1, 2]), tmp_path / "a.mtx")
    for name in ("a.mtx", "a.npz"):
        save_ratings(Ratings([0, 1], [0, 0], [1, 2]), tmp_path / name)
        with pytest.raises(OptionError, match="columns is for delimited text"):
            load_ratings(tmp_path / name, columns="1,2,3")
