"""Ids: which code stands for which id, whatever kinds they are of, and the way back."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hogwild import DataError
from hogwild.data import given_ids
from hogwild.data import ids as module
from hogwild.data.ids import UNKNOWN, Coder, Ids
from hogwild.data.texts import Texts, written

quick = settings(deadline=None, max_examples=100)

whole = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 30) | st.integers(0, 2**23)
letters = st.text("aé\U0001f4180-", min_size=1, max_size=20)
anything = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
any_texts = letters | anything | whole.map(str)


@pytest.fixture(params=["small", "large"], autouse=True)
def sizes(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way through the code with few ids: several blocks, tables that grow, no direct one."""
    if request.param == "small":
        for any_module in (module, given_ids):
            monkeypatch.setattr(any_module, "BLOCK", 3)
        monkeypatch.setattr(module, "FEW", 1)
        monkeypatch.setattr(module, "DIRECT", 5)


def first_appearance(entries: list[Any]) -> list[Any]:
    return list(dict.fromkeys(entries))


def texts_of(entries: list[str]) -> Texts:
    """Texts as they stand in a file: with other things between them."""
    parts = [entry.encode() + b"," for entry in entries]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.uint64)
    blob = np.frombuffer(b"".join(parts) + bytes(16), np.uint8)
    return Texts(blob, ends[:-1], ends[1:] - np.uint64(1))


def coded(*columns: list[str]) -> tuple[Ids, list[int]]:
    """What becomes of blocks of texts that come one after the other."""
    coder = Coder()
    codes = np.empty(sum(map(len, columns)), np.uint32)
    at = 0
    for column in columns:
        coder.add(texts_of(column), codes[at : at + len(column)])
        at += len(column)
    return coder.ids(codes), codes.tolist()


@quick
@given(st.lists(whole))
def test_numbers_get_codes_in_ascending_order(entries: list[int]) -> None:
    ids, codes = Ids.of(np.array(entries, np.int64))
    assert ids.tolist() == sorted(set(entries))
    assert [ids[code] for code in codes] == entries
    assert all(type(entry) is int for entry in ids.tolist())


@quick
@given(st.lists(any_texts))
def test_text_gets_codes_in_order_of_first_appearance(entries: list[str]) -> None:
    ids, codes = Ids.of(entries)
    assert ids.tolist() == first_appearance(entries)
    assert ids.take(codes).__class__ is (list if entries else np.ndarray)
    assert list(ids.take(codes)) == entries


@quick
@given(st.lists(st.lists(any_texts)), st.booleans())
def test_texts_of_a_file_are_numbers_if_all_of_them_are(
    columns: list[list[str]], numbers: bool
) -> None:
    if numbers:
        columns = [[str(len(text)) for text in column] for column in columns]
    entries = [text for column in columns for text in column]
    ids, codes = coded(*columns)
    if all(is_whole(text) for text in entries):
        assert ids.tolist() == sorted({int(text) for text in entries})
    else:
        assert ids.tolist() == first_appearance(entries)
    assert [str(ids[code]) for code in codes] == entries


def is_whole(text: str) -> bool:
    """Whether a text is what Python writes for some number of 64 bits."""
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:
        return False


@pytest.mark.parametrize(
    "odd",
    ["01", "+1", "-0", "", "-", "1.0", "1e3", " 1", "1_0", "0x1", "9223372036854775808",
     "-9223372036854775809", "99999999999999999999", "00", "-01", "12345678a", "1234567890a",
     "12:4", "/123", "१"],
)  # fmt: skip
def test_one_odd_text_makes_all_of_them_text(odd: str) -> None:
    numbers = ["7", "-9223372036854775808", "9223372036854775807", "0", "12345678", "123456789"]
    assert coded(numbers)[0].tolist() == sorted(map(int, numbers))
    ids, codes = coded(numbers, ["7", odd, "0"], ["8"])
    assert ids.tolist() == [*numbers, odd, "8"]
    assert codes == [0, 1, 2, 3, 4, 5, 0, 6, 3, 7]


@quick
@given(st.lists(any_texts), st.lists(any_texts))
def test_ids_are_found_and_others_are_not(entries: list[str], asked: list[str]) -> None:
    ids, _ = Ids.of(entries)
    place = {text: code for code, text in enumerate(first_appearance(entries))}
    wanted = [place.get(text, UNKNOWN) for text in asked + entries]
    assert ids.codes_of(asked + entries).tolist() == wanted


@quick
@given(st.lists(whole), st.lists(whole))
def test_numbers_are_found_as_numbers_and_as_text(entries: list[int], asked: list[int]) -> None:
    distinct = first_appearance(entries)
    place = {number: code for code, number in enumerate(sorted(distinct))}
    asked = asked + entries
    wanted = [place.get(number, UNKNOWN) for number in asked]
    ids, _ = Ids.of(entries)
    assert ids.codes_of(asked).tolist() == wanted
    assert ids.codes_of([str(number) for number in asked]).tolist() == wanted
    assert not len(asked) or ids.codes_of([f"0{abs(asked[0])}"]).tolist() == [UNKNOWN]
    as_text, _ = Ids.of([str(number) for number in sorted(distinct)])
    assert as_text.codes_of(asked).tolist() == wanted
    other, _ = Ids.of(asked)
    assert ids.codes_of(other).tolist() == ids.codes_of(other.tolist()).tolist()


def test_a_single_id_is_found() -> None:
    ids, _ = Ids.of(["b", "a", "5"])
    assert [ids.codes_of(one).tolist() for one in ("a", 5, np.int64(5), "c")] == [
        [1], [2], [2], [UNKNOWN],
    ]  # fmt: skip


def test_numbered_ids_store_nothing() -> None:
    ids = Ids.numbered(1000)
    assert (len(ids), ids[0], ids[999], ids.nbytes) == (1000, 0, 999, 8)
    assert ids.codes_of([0, 999, 1000, -1]).tolist() == [0, 999, UNKNOWN, UNKNOWN]
    assert ids == Ids.of(np.arange(1000)[::-1])[0]
    assert ids != Ids.numbered(999) != Ids.of(np.arange(1, 1000))[0]


@quick
@given(st.lists(whole | any_texts), st.lists(whole | any_texts), st.booleans())
def test_joined_ids_keep_their_codes(first: list[Any], second: list[Any], text: bool) -> None:
    def ids_of(entries: list[Any]) -> Ids:
        kind = str if text else int
        return Ids.of([entry for entry in entries if isinstance(entry, kind)])[0]

    mine, other = ids_of(first), ids_of(second)
    joined = mine.joined(other)
    assert joined.tolist() == first_appearance(mine.tolist() + other.tolist())
    assert joined.codes_of(mine).tolist() == list(range(len(mine)))
    assert UNKNOWN not in joined.codes_of(other).tolist()


def test_numbers_joined_with_text_become_text() -> None:
    numbers, texts = Ids.of([3, 5])[0], Ids.of(["x", "5"])[0]
    assert numbers.joined(texts).tolist() == ["3", "5", "x"]
    assert texts.joined(numbers).tolist() == ["x", "5", "3"]


@quick
@given(st.lists(whole) | st.lists(any_texts))
def test_arrays_hold_all_that_ids_are(entries: list[Any]) -> None:
    ids, _ = Ids.of(entries)
    arrays = {name: array.copy() for name, array in ids.arrays().items()}
    again = Ids.from_arrays(arrays)
    assert all(array.ndim == 1 for array in arrays.values())
    assert again == ids
    assert again.tolist() == ids.tolist()
    assert again.codes_of(entries).tolist() == ids.codes_of(entries).tolist()


def test_damaged_arrays_are_refused() -> None:
    good = Ids.of(["é", "b"])[0].arrays()
    for wrong in (
        {},
        {"text": good["text"]},
        {"ends": good["ends"], "text": good["text"][:-1]},
        {"ends": good["ends"][1:], "text": good["text"]},
        {"ends": np.array([0, 3, 2, 3], np.uint64), "text": good["text"]},
        {"ends": np.array([0, 1, 3], np.uint64), "text": good["text"]},
        {"ends": good["ends"].astype(float), "text": good["text"]},
        {"numbers": np.array([0.5])},
        {"count": np.array([-1])},
        {"count": np.array([1, 2])},
    ):
        with pytest.raises(DataError, match="these: damaged"):
            Ids.from_arrays(wrong, "these")


@pytest.mark.parametrize(
    "entries",
    [
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], object),
        ["b", "a", "b"],
        ("b", "a", "b"),
        np.array(["b", "a", "b"], np.dtypes.StringDType()),
        [np.str_("b"), "a", "b"],
    ],
)
def test_text_may_come_in_many_ways(entries: Any) -> None:
    ids, codes = Ids.of(entries)
    assert (ids.tolist(), codes.tolist()) == (["b", "a"], [0, 1, 0])
    assert ids.codes_of(entries).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", [*"bhilqBHILQO", ">i4", "list", "strided"])
def test_numbers_may_come_in_many_ways(dtype: str) -> None:
    given: Any = [7, 3, 7]
    if dtype == "strided":
        given = np.array([7, 0, 3, 0, 7, 0])[::2]
    elif dtype != "list":
        given = np.array(given, dtype)
    ids, codes = Ids.of(given)
    assert (ids.tolist(), codes.tolist()) == ([3, 7], [1, 0, 1])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([1, "a"], r"number 2 is 'a', a str; ids must all be whole numbers, or all be text"),
        (["a", 1], r"number 2 is 1, a int"),
        (["a", None], r"number 2 is missing \(None\); leave out"),
        ([1, float("nan")], r"number 2 is missing \(nan\)"),
        ([None], "number 1 is missing"),
        ([True, False], "number 1 is True, a bool"),
        ([1, True], "number 2 is True, a bool"),
        (np.array([True]), r"type bool; .* \.astype\(str\)"),
        (np.array([1.0, 2.0]), r"type float64; .* \.astype\(int\)"),
        (np.array([1.0, np.nan]), "number 2 is nan; leave out"),
        ([1.5], "number 1 is 1.5, a float"),
        ([b"a"], "a bytes"),
        (np.array([b"a"]), "type |S1"),
        (np.array([[1, 2]]), r"shape \(1, 2\)"),
        (np.array([2**63], np.uint64), "9223372036854775808 does not fit into 64 bits; .* text"),
        ([2**70, 1], "1180591620717411303424 does not fit"),
        (["a", ""], "number 2 is empty"),
        (["\ud800"], "not Unicode"),
        (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
    ],
)
def test_what_is_no_id_is_refused(entries: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"the users:? .*{message}|the users: {message}"):
        Ids.of(entries, "the users")


def test_many_ids_that_are_alike() -> None:
    """Hash tables filled in unfortunate ways: by multiples of powers of two, by long prefixes."""
    numbers = (np.arange(5000) << 40) - (1 << 60)
    ids, codes = Ids.of(numbers[::-1])
    assert codes.tolist() == list(range(5000))[::-1]
    alike = [f"{'x' * 64}{number:05d}{'y' * (number % 9)}" for number in range(5000)]
    ids, codes = Ids.of(alike * 2)
    assert codes.tolist() == list(range(5000)) * 2
    assert ids.codes_of(alike).tolist() == list(range(5000))


def test_codes_out_of_range_are_refused() -> None:
    ids, _ = Ids.of(["a", "b"])
    for code in (-1, 2):
        with pytest.raises(IndexError, match="codes go from 0 to 1"):
            ids[code]
        with pytest.raises(IndexError, match="codes go from 0 to 1"):
            ids.take([0, code])
    assert repr(ids) == "<2 Ids: 'a', 'b'>"


def test_written_numbers_are_pythons() -> None:
    numbers = [0, -1, 10**18, -(2**63), 2**63 - 1, 9, 10, -10]
    assert written(np.array(numbers)).tolist() == [str(number) for number in numbers]
